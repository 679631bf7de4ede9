package cordwood.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.tools.DumpLogSegments;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** `dump`: what DumpLogSegments writes to its two outputs. */
final class Dumping {
    private Dumping() { }

    static void answer(JsonNode question, ObjectNode answer) {
        List<String> arguments = new ArrayList<>();
        question.get("arguments").forEach(argument -> arguments.add(argument.asText()));
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        PrintStream outBefore = System.out;
        PrintStream errBefore = System.err;
        System.setOut(new PrintStream(out, false, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, false, StandardCharsets.UTF_8));
        String failed = null;
        try {
            DumpLogSegments.main(arguments.toArray(String[]::new));
        } catch (Throwable e) {
            failed = e.toString();
        } finally {
            System.out.flush();
            System.err.flush();
            System.setOut(outBefore);
            System.setErr(errBefore);
        }
        answer.put("out", out.toByteArray());
        answer.put("err", err.toByteArray());
        answer.put("failed", failed);
    }
}

package cordwood.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.utils.AppInfoParser;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** Answers questions until standard input ends: one JSON object a line in, one out. README.md lists them. */
public final class Main {
    static final ObjectMapper JSON = new ObjectMapper();

    private Main() { }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err); // Kafka's tools print
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer(JSON.readTree(line), answer);
            } catch (Throwable e) {
                error(e, answer);
            }
            answers.println(answer);
            answers.flush();
        }
        Broker.stop(JSON.createObjectNode());
        System.exit(0); // a broker may have left threads
    }

    private static void answer(JsonNode question, ObjectNode answer) throws Exception {
        switch (question.get("do").asText()) {
            case "version" -> answer.put("version", AppInfoParser.getVersion());
            case "open" -> Opening.answer(question, answer);
            case "load" -> Loading.answer(question, answer);
            case "write" -> Writing.answer(question, answer);
            case "rebuild" -> Rebuilding.answer(question, answer);
            case "dump" -> Dumping.answer(question, answer);
            case "index" -> Indexing.answer(question, answer);
            case "lock" -> Locks.lock(question, answer);
            case "unlock" -> Locks.unlock(question);
            case "start" -> Broker.start(question, answer);
            case "stop" -> Broker.stop(answer);
            case "try_start" -> Starting.answer(question, answer);
            case "create_topic" -> Broker.createTopic(question, answer);
            case "consume" -> Broker.consume(question, answer);
            case "produce" -> Broker.produce(question, answer);
            case "use_coordinators" -> Coordinators.use(question);
            case "describe_cluster" -> Coordinators.describe(question, answer);
            default -> throw new IllegalArgumentException("no question is called " + question.get("do"));
        }
    }

    /** The class and message of an error and of what caused it. */
    static void error(Throwable error, ObjectNode answer) {
        StringBuilder text = new StringBuilder();
        for (Throwable e = error; e != null; e = e.getCause()) {
            text.append(text.isEmpty() ? "" : "; caused by ").append(e.getClass().getSimpleName()).append(": ").append(e.getMessage());
        }
        answer.put("error", text.toString());
    }
}

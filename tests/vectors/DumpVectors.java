import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.tools.DumpLogSegments;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.PrintStream;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import java.util.zip.GZIPOutputStream;

/** Writes dump_texts.jsonl.gz: what DumpLogSegments prints for each file of tests/golden with several sets of options. */
public final class DumpVectors {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<String> SUFFIXES = List.of(".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint");
    /** Options, and the suffixes of the files with which they are used. The first two are used for all files. */
    private static final String[][] OPTIONS = {
        {""},
        {".log", "--deep-iteration"},
        {".log", "--print-data-log", "--skip-record-metadata"},
        {"index", "--index-sanity-check"},
        {"index", "--verify-index-only"},
        {".log", "--deep-iteration", "--max-bytes", "5000"},
        {".index", "--max-message-size", "400"},
        {".log", "--key-decoder-class", "org.apache.kafka.tools.api.IntegerDecoder"},
        {".log", "--value-decoder-class", "org.apache.kafka.tools.api.LongDecoder"},
    };
    private static final String[][] PARSERS = {
        {"", "--offsets-decoder"},
        {"", "--transaction-log-decoder"},
        {"", "--cluster-metadata-decoder"},
        {"", "--remote-log-metadata-decoder"},
        {"", "--share-group-state-decoder"},
    };

    private static List<Path> files;

    public static void main(String[] arguments) throws Exception {
        Path golden = Path.of(arguments[0], "..", "golden").toAbsolutePath().normalize();
        // Kafka creates files that are missing
        Path copy = Files.createTempDirectory("golden");
        copyTree(golden, copy);
        try (Writer out = new OutputStreamWriter(new GZIPOutputStream(Files.newOutputStream(Path.of(arguments[0], "dump_texts.jsonl.gz"))),
            StandardCharsets.UTF_8)) {
            int number = 0;
            files = files(copy);
            for (Path file : files) {
                String name = file.getFileName().toString();
                boolean isInternal = file.getParent().getFileName().toString().startsWith("__");
                for (int set = 0; set < OPTIONS.length; set++) {
                    if (name.contains(OPTIONS[set][0]) && (set < 2 || (number + set) % 5 == 0)) run(copy, file, OPTIONS[set], out);
                }
                for (String[] parser : PARSERS) {
                    if (isInternal && (name.endsWith(".log") || name.endsWith(".checkpoint"))) run(copy, file, parser, out);
                }
                number++;
            }
        }
        System.exit(0);
    }

    private static void run(Path root, Path file, String[] options, Writer out) throws IOException {
        List<String> arguments = new ArrayList<>(List.of("--files", file.toString()));
        arguments.addAll(List.of(options).subList(1, options.length));
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        ByteArrayOutputStream messages = new ByteArrayOutputStream();
        PrintStream[] before = {System.out, System.err};
        System.setOut(new PrintStream(text, false, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(messages, false, StandardCharsets.UTF_8));
        boolean failed = false;
        try {
            DumpLogSegments.main(arguments.toArray(String[]::new));
        } catch (Throwable e) {
            failed = true;
        }
        System.out.flush();
        System.err.flush();
        for (Path created : files(file.getParent())) {
            // an index that is missing
            if (!files.contains(created)) Files.delete(created);
        }
        System.setOut(before[0]);
        System.setErr(before[1]);
        byte[] printed = relative(root, text).getBytes(StandardCharsets.UTF_8);
        CRC32C crc = new CRC32C();
        crc.update(printed);
        ObjectNode line = JSON.createObjectNode();
        line.put("file", root.relativize(file).toString());
        line.set("options", JSON.valueToTree(List.of(options).subList(1, options.length)));
        line.put("bytes", printed.length).put("crc32c", crc.getValue());
        line.put("err", relative(root, messages)).put("failed", failed);
        out.write(line + "\n");
    }

    private static String relative(Path root, ByteArrayOutputStream text) {
        return text.toString(StandardCharsets.UTF_8).replace(root + "/", "");
    }

    private static List<Path> files(Path root) throws IOException {
        try (Stream<Path> found = Files.walk(root)) {
            return found.filter(file -> SUFFIXES.stream().anyMatch(file.getFileName().toString()::endsWith)).sorted().toList();
        }
    }

    private static void copyTree(Path from, Path to) throws IOException {
        try (Stream<Path> found = Files.walk(from)) {
            for (Path file : found.toList()) {
                Path target = to.resolve(from.relativize(file).toString());
                if (Files.isDirectory(file)) {
                    Files.createDirectories(target);
                } else {
                    Files.copy(file, target);
                    target.toFile().setWritable(true);
                }
            }
        }
    }
}

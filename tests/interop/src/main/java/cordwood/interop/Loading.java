package cordwood.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.zip.CRC32C;

/** `load`: what UnifiedLog does to a directory when it opens it, also where it throws; it sees a copy only, and reads nothing. */
final class Loading {
    private Loading() { }

    static void answer(JsonNode question, ObjectNode answer) throws Exception {
        Path source = Path.of(question.get("dir").asText());
        Path scratch = Files.createTempDirectory("interop");
        try {
            Path dir = scratch.resolve(source.getFileName().toString());
            Partition.copy(source, dir);
            load(dir, question, answer);
            answer.set("after", checksums(dir));
        } finally {
            Opening.complaints(answer, scratch);
            Partition.delete(scratch);
        }
    }

    private static void load(Path dir, JsonNode question, ObjectNode answer) throws Exception {
        Background background = new Background();
        UnifiedLog log;
        try {
            log = Partition.open(dir, Partition.config(question.path("settings")), question.path("log_start_offset").asLong(0),
                question.path("recovery_point").asLong(0), question.path("clean").asBoolean(), new Clock(0), background,
                Optional.empty());
        } catch (Exception e) {
            answer.put("exception", e.getClass().getName());
            return;
        }
        log.updateHighWatermark(log.logEndOffset());
        answer.put("last_stable_offset", log.lastStableOffset());
        Opening.describe(log, answer);
        ArrayNode producers = answer.putArray("producer_ids");
        log.producerStateManager().activeProducers().keySet().stream().sorted().forEach(producers::add);
        background.run();
        log.close();
    }

    /** Name to [size, CRC-32C]. */
    private static ObjectNode checksums(Path dir) throws IOException {
        ObjectNode checksums = Main.JSON.createObjectNode();
        for (Path file : Partition.files(dir)) {
            CRC32C crc = new CRC32C();
            byte[] bytes = Files.readAllBytes(file);
            crc.update(bytes);
            checksums.putArray(file.getFileName().toString()).add(bytes.length).add(crc.getValue());
        }
        return checksums;
    }
}

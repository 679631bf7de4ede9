package cordwood.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/** `rebuild`: into a new directory, the .log files of another, and beside them what LogSegment.recover derives from them. */
final class Rebuilding {
    private Rebuilding() { }

    static void answer(JsonNode question, ObjectNode answer) throws Exception {
        Path source = Path.of(question.get("dir").asText());
        Path dir = Path.of(question.get("into").asText());
        Files.createDirectories(dir);
        for (Path file : Partition.files(source)) {
            if (file.toString().endsWith(".log")) Files.copy(file, dir.resolve(file.getFileName().toString()));
        }
        LogConfig config = Partition.config(question.path("settings"));
        Clock clock = new Clock(0);
        Background background = new Background();
        var topicPartition = UnifiedLog.parseTopicPartitionName(dir.toFile());
        LeaderEpochFileCache epochs = UnifiedLog.createLeaderEpochCache(dir.toFile(), topicPartition, new LogDirFailureChannel(1),
            Optional.empty(), background);
        ProducerStateManager producers = new ProducerStateManager(topicPartition, dir.toFile(), Partition.TRANSACTION_TIMEOUT_MS,
            Partition.producers(Integer.MAX_VALUE), clock);
        long cut = 0;
        for (Path file : Partition.files(dir)) {
            if (!file.toString().endsWith(".log")) continue;
            LogSegment segment = LogSegment.open(dir.toFile(), LogFileUtils.offsetFromFile(file.toFile()), config, clock, true, 0, false, "");
            cut += segment.recover(producers, epochs);
            segment.close();
        }
        background.run();
        answer.put("bytes_cut", cut);
        answer.set("files", Partition.listing(dir));
        Opening.complaints(answer, dir);
    }
}

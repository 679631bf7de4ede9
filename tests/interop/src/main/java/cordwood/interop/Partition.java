package cordwood.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.stream.Stream;

/** A partition directory as Kafka's classes want it. */
final class Partition {
    static final int TRANSACTION_TIMEOUT_MS = 15 * 60 * 1000;
    private static final int LEAST_SEGMENT_BYTES = 1 << 20;

    private Partition() { }

    /** Topic settings under Kafka's names. Below 1 MiB a segment size has another name. */
    static LogConfig config(JsonNode settings) {
        Properties properties = new Properties();
        settings.fields().forEachRemaining(s -> properties.put(s.getKey(), s.getValue().asText()));
        String bytes = properties.getProperty("segment.bytes");
        if (bytes != null && Long.parseLong(bytes) < LEAST_SEGMENT_BYTES) {
            properties.remove("segment.bytes");
            properties.put("internal.segment.bytes", bytes);
        }
        return new LogConfig(properties);
    }

    /** Producer ids expire after `expirationMs`; transactions are not verified with a coordinator. */
    static ProducerStateManagerConfig producers(int expirationMs) {
        return new ProducerStateManagerConfig(expirationMs, false);
    }

    static UnifiedLog open(Path dir, LogConfig config, long logStart, long recoveryPoint, boolean clean, Clock clock,
                           Background background, Optional<Uuid> topicId) throws IOException {
        return open(dir, config, logStart, recoveryPoint, clean, clock, background, topicId, Integer.MAX_VALUE);
    }

    static UnifiedLog open(Path dir, LogConfig config, long logStart, long recoveryPoint, boolean clean, Clock clock,
                           Background background, Optional<Uuid> topicId, int expirationMs) throws IOException {
        return UnifiedLog.create(dir.toFile(), config, logStart, recoveryPoint, background, new BrokerTopicStats(), clock,
            TRANSACTION_TIMEOUT_MS, producers(expirationMs), Integer.MAX_VALUE, new LogDirFailureChannel(1), clean, topicId);
    }

    static void copy(Path from, Path to) throws IOException {
        try (Stream<Path> paths = Files.walk(from)) {
            for (Path path : (Iterable<Path>) paths::iterator) {
                Path target = to.resolve(from.relativize(path).toString());
                if (Files.isDirectory(path)) Files.createDirectories(target);
                else Files.copy(path, target);
            }
        }
    }

    static void delete(Path dir) throws IOException {
        try (Stream<Path> paths = Files.walk(dir)) {
            for (Path path : (Iterable<Path>) paths.sorted(Comparator.reverseOrder())::iterator) Files.delete(path);
        }
    }

    static List<Path> files(Path dir) throws IOException {
        try (Stream<Path> paths = Files.list(dir)) {
            return paths.filter(Files::isRegularFile).sorted().toList();
        }
    }

    /** Name to [size, sha256], of the files that lie directly in the directory. */
    static ObjectNode listing(Path dir) throws IOException {
        ObjectNode listing = Main.JSON.createObjectNode();
        for (Path file : files(dir)) {
            byte[] bytes = Files.readAllBytes(file);
            listing.putArray(file.getFileName().toString()).add(bytes.length).add(hex(sha256().digest(bytes)));
        }
        return listing;
    }

    static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }
}

package cordwood.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.PreCleanStats;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;

import java.io.File;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/** `compact`: what a thread of LogCleaner does with a log, once. */
final class Compacting {
    private static final int BUFFER_BYTES = 1 << 16;
    private static final double LOAD_FACTOR = 0.9;

    private Compacting() { }

    /** What LogManager does after a truncation. */
    static void lowerCheckpoint(UnifiedLog log) throws Exception {
        ConcurrentMap<TopicPartition, UnifiedLog> logs = new ConcurrentHashMap<>(Map.of(log.topicPartition(), log));
        LogCleanerManager manager = new LogCleanerManager(List.of(log.parentDirFile()), logs, new LogDirFailureChannel(1));
        try {
            manager.maybeTruncateCheckpoint(log.parentDirFile(), log.topicPartition(), log.activeSegment().baseOffset());
        } finally {
            manager.removeMetrics();
        }
    }

    static void compact(UnifiedLog log, Clock clock, JsonNode step, ObjectNode result) throws Exception {
        ConcurrentMap<TopicPartition, UnifiedLog> logs = new ConcurrentHashMap<>(Map.of(log.topicPartition(), log));
        File folder = log.parentDirFile();
        LogCleanerManager manager = new LogCleanerManager(List.of(folder), logs, new LogDirFailureChannel(1));
        try {
            Optional<LogToClean> found = manager.grabFilthiestCompactedLog(clock, new PreCleanStats());
            result.put("is_due", found.isPresent());
            if (found.isEmpty()) return;
            LogToClean dirty = found.get();
            int buffer = step.path("buffer").asInt(BUFFER_BYTES);
            Throttler unlimited = new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "cleaner-io", "bytes", Time.SYSTEM);
            Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(step.get("bytes").asInt()), buffer, log.config().maxMessageSize(),
                LOAD_FACTOR, unlimited, clock, partition -> { });
            Map.Entry<Long, CleanerStats> done = cleaner.doClean(dirty, clock.milliseconds());
            manager.doneCleaning(log.topicPartition(), folder, done.getKey());
            result.put("first_dirty_offset", dirty.firstDirtyOffset()).put("first_uncleanable_offset", dirty.firstUncleanableOffset());
            result.put("clean_bytes", dirty.cleanBytes()).put("cleanable_bytes", dirty.cleanableBytes());
            result.put("dirty_ratio", dirty.cleanableRatio()).put("end_offset", done.getKey());
        } finally {
            manager.removeMetrics();
        }
    }
}

package cordwood.bench;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.PreCleanStats;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;

import java.io.File;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/** What a thread of LogCleaner does with a log, once, with a broker's default settings. */
final class Compactions {
    /** log.cleaner.io.buffer.size, half of it for reading. */
    private static final int BUFFER_BYTES = (512 << 10) / 2;
    /** log.cleaner.io.buffer.load.factor. */
    private static final double LOAD_FACTOR = 0.9;

    private Compactions() { }

    static String compact(String[] words) throws Exception {
        Properties properties = new Properties();
        properties.put("cleanup.policy", "compact");
        properties.put("segment.bytes", words[2]);
        LogConfig config = new LogConfig(properties);
        long now = Long.parseLong(words[4]);
        KafkaScheduler scheduler = Logs.scheduler();
        UnifiedLog log = Logs.open(new File(words[1]), config, scheduler);
        log.updateHighWatermark(log.logEndOffset());
        File folder = log.parentDirFile();
        ConcurrentMap<TopicPartition, UnifiedLog> logs = new ConcurrentHashMap<>(Map.of(log.topicPartition(), log));
        LogCleanerManager manager = new LogCleanerManager(List.of(folder), logs, new LogDirFailureChannel(1));
        Throttler unlimited = new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "cleaner-io", "bytes", Time.SYSTEM);
        Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(Integer.parseInt(words[3])), BUFFER_BYTES, config.maxMessageSize(),
            LOAD_FACTOR, unlimited, Time.SYSTEM, partition -> { });
        Stopwatch watch = new Stopwatch();
        LogToClean dirty = manager.grabFilthiestCompactedLog(Time.SYSTEM, new PreCleanStats()).orElseThrow();
        Map.Entry<Long, CleanerStats> done = cleaner.doClean(dirty, now);
        manager.doneCleaning(log.topicPartition(), folder, done.getKey());
        String time = watch.stop();
        String answer = time + " end=" + done.getKey() + " size=" + log.size();
        manager.removeMetrics();
        // the replaced files are deleted by a task of a minute later
        log.close();
        scheduler.shutdown();
        return answer;
    }
}

package cordwood.bench;

import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.Properties;

/** Appends to an empty log, and the recovery of a segment. */
final class Appends {
    private Appends() { }

    static String append(String[] words) throws Exception {
        File dir = new File(words[1]);
        ByteBuffer[] batches = batches(Path.of(words[2]));
        int count = Integer.parseInt(words[3]);
        LogConfig config = config(words[4]);
        Files.createDirectories(dir.toPath());
        boolean keep = Boolean.parseBoolean(words[5]);
        return words[0].equals("segment") ? segment(dir, batches, count, config, keep) : log(words[0], dir, batches, count, config, keep);
    }

    private static String segment(File dir, ByteBuffer[] batches, int count, LogConfig config, boolean keep) throws IOException {
        MemoryRecords[] records = records(batches);
        LogSegment segment = LogSegment.open(dir, 0, config, Time.SYSTEM, false, 0, false, "");
        Stopwatch watch = new Stopwatch();
        for (int offset = 0, i = 0; offset < count; offset++) {
            batches[i].putLong(0, offset);
            segment.append(offset, records[i]);
            if (++i == batches.length) i = 0;
        }
        String time = watch.stop();
        int size = segment.size();
        if (keep) segment.close();
        else segment.deleteIfExists();
        return time + " end=" + count + " size=" + size;
    }

    private static String log(String how, File dir, ByteBuffer[] batches, int count, LogConfig config, boolean keep)
            throws Exception {
        MemoryRecords[] records = records(batches);
        KafkaScheduler scheduler = Logs.scheduler();
        UnifiedLog log = Logs.open(dir, config, scheduler);
        boolean leads = how.equals("leader");
        Stopwatch watch = new Stopwatch();
        for (int offset = 0, i = 0; offset < count; offset++) {
            // a leader is sent offsets from 0 on, and writes its own over them
            batches[i].putLong(0, leads ? 0 : offset);
            if (leads) log.appendAsLeader(records[i], 0);
            else log.appendAsFollower(records[i], 0);
            if (++i == batches.length) i = 0;
        }
        String time = watch.stop();
        String answer = time + " end=" + log.logEndOffset() + " size=" + log.size();
        if (keep) log.close();
        else log.closeHandlers();
        scheduler.shutdown();
        return answer;
    }

    static String recover(String[] words) throws Exception {
        File dir = new File(words[1]);
        LogConfig config = config(words[2]);
        long base = words.length > 3 ? Long.parseLong(words[3]) : 0;
        var partition = UnifiedLog.parseTopicPartitionName(dir);
        KafkaScheduler scheduler = Logs.scheduler();
        var epochs = UnifiedLog.createLeaderEpochCache(dir, partition, new LogDirFailureChannel(1), Optional.empty(), scheduler);
        var producers = new ProducerStateManager(partition, dir, Logs.TRANSACTION_TIMEOUT_MS,
            new ProducerStateManagerConfig(Integer.MAX_VALUE, false), Time.SYSTEM);
        LogSegment segment = LogSegment.open(dir, base, config, Time.SYSTEM, true, 0, false, "");
        Stopwatch watch = new Stopwatch();
        int cut = segment.recover(producers, epochs);
        String time = watch.stop();
        String answer = time + " cut=" + cut + " size=" + segment.size() + " end=" + segment.readNextOffset();
        segment.close();
        scheduler.shutdown();
        return answer;
    }

    static LogConfig config(String interval) {
        Properties properties = new Properties();
        properties.put("index.interval.bytes", interval);
        return new LogConfig(properties);
    }

    /** The batches of a file, in buffers of the heap, where requests lie that a broker receives. */
    static ByteBuffer[] batches(Path file) throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        // all batches of the file have one size
        int size = ByteBuffer.wrap(bytes).getInt(8) + 12;
        ByteBuffer[] batches = new ByteBuffer[bytes.length / size];
        for (int i = 0; i < batches.length; i++) {
            batches[i] = ByteBuffer.allocate(size).put(0, bytes, i * size, size);
        }
        return batches;
    }

    static MemoryRecords[] records(ByteBuffer[] batches) {
        MemoryRecords[] records = new MemoryRecords[batches.length];
        for (int i = 0; i < records.length; i++) records[i] = MemoryRecords.readableRecords(batches[i]);
        return records;
    }
}

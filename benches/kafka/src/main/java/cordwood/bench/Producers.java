package cordwood.bench;

import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.CRC32C;

/** Batches of idempotent producers: appended by a leader, and their states loaded. */
final class Producers {
    private static final int CRC = 17;
    private static final int ATTRIBUTES = 21;
    private static final int BASE_SEQUENCE = 53;
    private static final int COUNT = 57;

    private Producers() { }

    /** The batches are those of PRODUCERS producers in turn. Before they are appended again, they get their next sequences; not timed. */
    static String append(String[] words) throws Exception {
        File dir = new File(words[1]);
        ByteBuffer[] batches = Appends.batches(Path.of(words[2]));
        MemoryRecords[] records = Appends.records(batches);
        int count = Integer.parseInt(words[3]);
        boolean keep = Boolean.parseBoolean(words[5]);
        int producers = Integer.parseInt(words[6]);
        Files.createDirectories(dir.toPath());
        KafkaScheduler scheduler = Logs.scheduler();
        UnifiedLog log = Logs.open(dir, Appends.config(words[4]), scheduler);
        long wall = 0;
        long cpu = 0;
        for (int start = 0; start < count; start += batches.length) {
            for (int i = 0; i < batches.length; i++) setSequence(batches[i], (start + i) / producers);
            Stopwatch watch = new Stopwatch();
            for (MemoryRecords batch : records) log.appendAsLeader(batch, 0);
            wall += watch.wall();
            cpu += watch.cpu();
        }
        String answer = Stopwatch.times(wall, cpu) + " end=" + log.logEndOffset() + " size=" + log.size();
        if (keep) {
            ByteBuffer last = batches[batches.length - 1];
            resend(log, last, count);
            log.close();
        } else {
            log.closeHandlers();
        }
        scheduler.shutdown();
        return answer;
    }

    /** The last batch again, and one after a gap: neither changes the log. */
    private static void resend(UnifiedLog log, ByteBuffer batch, int count) throws Exception {
        long end = log.logEndOffset();
        batch.putLong(0, 0);
        var answer = log.appendAsLeader(MemoryRecords.readableRecords(batch), 0);
        if (answer.lastOffset() != end - 1 || log.logEndOffset() != end) throw new IllegalStateException("the duplicate: " + answer);
        setSequence(batch, count);
        try {
            log.appendAsLeader(MemoryRecords.readableRecords(batch), 0);
        } catch (OutOfOrderSequenceException expected) {
            return;
        }
        throw new IllegalStateException("the gap was accepted");
    }

    /** The sequence of a producer's batch of that number; as sent, with offsets from 0 on. */
    private static void setSequence(ByteBuffer batch, int number) {
        batch.putLong(0, 0).putInt(BASE_SEQUENCE, number * batch.getInt(COUNT));
        CRC32C crc = new CRC32C();
        crc.update(batch.array(), ATTRIBUTES, batch.capacity() - ATTRIBUTES);
        batch.putInt(CRC, (int) crc.getValue());
    }

    /** An opening, and then the append of a batch and the close, which are not timed, so that there is a new snapshot. */
    static String open(String[] words) throws Exception {
        KafkaScheduler scheduler = Logs.scheduler();
        Stopwatch watch = new Stopwatch();
        UnifiedLog log = Logs.open(new File(words[1]), Appends.config("4096"), scheduler);
        String time = watch.stop();
        int producers = log.activeProducers().size();
        log.appendAsLeader(MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(Path.of(words[2])))), 0);
        String answer = time + " producers=" + producers + " end=" + log.logEndOffset() + " size=" + log.size();
        log.close();
        scheduler.shutdown();
        return answer;
    }
}

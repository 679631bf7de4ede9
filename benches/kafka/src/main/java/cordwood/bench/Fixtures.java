package cordwood.bench;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.TimeIndex;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;

/** Writes the files that both sides read: the same bytes for the same arguments. */
final class Fixtures {
    private static final long START = 1_700_000_000_000L;
    private static final int OFFSET_ENTRY = 8;
    private static final int TIME_ENTRY = 12;

    private Fixtures() { }

    /** The base offset in a file's name. */
    static long base(Path file) {
        String name = file.getFileName().toString();
        return Long.parseLong(name.substring(0, name.indexOf('.')));
    }

    static String index(String[] words) throws IOException {
        Path file = Path.of(words[2]);
        int entries = Integer.parseInt(words[3]);
        Numbers random = new Numbers(Long.parseLong(words[4]));
        if (words[1].equals("offset-index")) offsetIndex(file, entries, random);
        else timeIndex(file, entries, random);
        return "done=1";
    }

    /** About 40 records to an entry, sometimes many more. */
    private static void offsetIndex(Path file, int entries, Numbers random) throws IOException {
        long offset = base(file);
        long position = 0;
        // positions of a larger index are closer, because they have 31 bits
        long step = Math.min(4096, Integer.MAX_VALUE / entries - 1024);
        OffsetIndex index = new OffsetIndex(file.toFile(), offset, entries * OFFSET_ENTRY, true);
        for (int i = 0; i < entries; i++) {
            offset += 1 + random.below(80) + (random.below(50) == 0 ? random.below(2000) : 0);
            position += step + random.below(1024);
            index.append(offset, Math.toIntExact(position));
        }
        index.flush();
        index.close();
    }

    /** About 50 ms between entries, sometimes seconds. */
    private static void timeIndex(Path file, int entries, Numbers random) throws IOException {
        long offset = base(file);
        long timestamp = START;
        TimeIndex index = new TimeIndex(file.toFile(), offset, entries * TIME_ENTRY, true);
        for (int i = 0; i < entries; i++) {
            timestamp += 1 + random.below(100) + (random.below(50) == 0 ? random.below(5000) : 0);
            offset += 1 + random.below(80);
            index.maybeAppend(timestamp, offset, true);
        }
        index.flush();
        index.close();
    }

    /** Batches of three to five quarters of a size, until their bytes before compression reach a sum. */
    static String log(String[] words) throws IOException {
        Path dir = Path.of(words[1]);
        int batchBytes = Integer.parseInt(words[2]);
        long logBytes = Long.parseLong(words[3]);
        Compression compression = Compression.of(CompressionType.forName(words[4])).build();
        Files.createDirectories(dir);
        LogSegment segment = LogSegment.open(dir.toFile(), 0, Appends.config("4096"), Time.SYSTEM, false, 0, false, "");
        Orders orders = new Orders();
        Numbers random = new Numbers(8);
        ByteBuffer buffer = ByteBuffer.allocate(4 * batchBytes + 4096);
        long offset = 0;
        for (long written = 0; written < logBytes;) {
            MemoryRecordsBuilder builder = MemoryRecords.builder(buffer.clear(), RecordBatch.MAGIC_VALUE_V2, compression,
                TimestampType.CREATE_TIME, offset, RecordBatch.NO_TIMESTAMP, 0);
            long full = batchBytes * 3L / 4 + random.below(batchBytes / 2);
            do {
                orders.next();
                builder.appendWithOffset(offset++, orders.timestamp(), orders.key(), orders.value(), orders.headers());
            } while (builder.uncompressedBytesWritten() < full);
            segment.append(offset - 1, builder.build());
            written += builder.uncompressedBytesWritten();
        }
        segment.onBecomeInactiveSegment();
        segment.flush();
        segment.close();
        return "end=" + offset;
    }
}

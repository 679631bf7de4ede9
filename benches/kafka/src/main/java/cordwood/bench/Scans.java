package cordwood.bench;

import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;

/** Every batch of the segment 0, or every record. */
final class Scans {
    private static final BufferSupplier BUFFERS = BufferSupplier.create();
    /** The size is the default of max.partition.fetch.bytes. */
    private static final ByteBuffer FETCHED = ByteBuffer.allocate(1 << 20);
    private static final Columns ALL = new Columns(true);
    private static final Columns TWO = new Columns(false);

    private Scans() { }

    private static FileRecords open(String dir) throws IOException {
        return FileRecords.open(new File(dir, String.format("%020d.log", 0)), false);
    }

    static String headers(String[] words) throws IOException {
        boolean checked = Boolean.parseBoolean(words[2]);
        return timed(words, records -> headers(records, checked));
    }

    private static long headers(FileRecords records, boolean checked) {
        long batches = 0;
        long sum = 0;
        for (FileChannelRecordBatch batch : records.batches()) {
            if (checked) batch.ensureValid();
            batches++;
            sum += batch.sizeInBytes() + batch.baseOffset() * 31 + batch.lastOffset() * 961 + batch.maxTimestamp();
        }
        return sum + batches;
    }

    static String columns(String[] words) throws IOException {
        Columns columns = words[3].equals("all") ? ALL : TWO;
        if (words[2].equals("file")) return timed(words, records -> fromFile(records, columns));
        return timed(words, records -> fetched(records, columns));
    }

    private static long fromFile(FileRecords records, Columns columns) {
        long sum = 0;
        columns.clear();
        for (FileChannelRecordBatch batch : records.batches()) {
            batch.ensureValid();
            sum += add(batch, columns);
        }
        return sum + columns.digest() + columns.last();
    }

    /** As a consumer reads: many batches are in one buffer. */
    private static long fetched(FileRecords records, Columns columns) throws IOException {
        long sum = 0;
        columns.clear();
        for (int position = 0; position < records.sizeInBytes();) {
            FETCHED.clear();
            records.readInto(FETCHED, position);
            // without the last one, if it is not complete
            for (MutableRecordBatch batch : MemoryRecords.readableRecords(FETCHED).batches()) {
                batch.ensureValid();
                sum += add(batch, columns);
                position += batch.sizeInBytes();
            }
        }
        return sum + columns.digest() + columns.last();
    }

    private static long add(RecordBatch batch, Columns columns) {
        long sum = 0;
        try (CloseableIterator<Record> iterator = batch.streamingIterator(BUFFERS)) {
            while (iterator.hasNext()) {
                if (columns.rows() == Columns.MAX_ROWS) {
                    sum += columns.digest();
                    columns.clear();
                }
                columns.add(iterator.next());
            }
        }
        return sum;
    }

    static String contents(String[] words) throws IOException {
        try (FileRecords records = open(words[1])) {
            long hash = 0;
            Columns columns = new Columns(true);
            for (FileChannelRecordBatch batch : records.batches()) {
                for (Record record : batch) columns.add(record);
                hash = columns.hash(hash);
                columns.clear();
            }
            return "sum=" + hash;
        }
    }

    /** A pass over a file; its number depends on all answers. */
    private interface Pass {
        long over(FileRecords records) throws IOException;
    }

    private static String timed(String[] words, Pass pass) throws IOException {
        int passes = Integer.parseInt(words[words.length - 1]);
        try (FileRecords records = open(words[1])) {
            long sum = 0;
            Stopwatch watch = new Stopwatch();
            for (int i = 0; i < passes; i++) sum += pass.over(records);
            return watch.stop() + " sum=" + sum;
        }
    }
}

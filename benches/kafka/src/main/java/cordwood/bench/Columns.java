package cordwood.bench;

import org.apache.kafka.common.record.internal.Record;

import java.nio.ByteBuffer;
import java.util.Arrays;

/** Columns that grow, and are filled again after they were read: the first pass makes them large enough for all others. */
final class Columns {
    /** As many as a record batch of ours has at most. */
    static final int MAX_ROWS = 65_536;

    private final boolean withBytes;
    private long[] offsets = new long[1024];
    private long[] timestamps = new long[1024];
    private final Bytes keys = new Bytes();
    private final Bytes values = new Bytes();
    private int rows;

    Columns(boolean withBytes) {
        this.withBytes = withBytes;
    }

    void add(Record record) {
        if (rows == offsets.length) {
            offsets = Arrays.copyOf(offsets, 2 * rows);
            timestamps = Arrays.copyOf(timestamps, 2 * rows);
        }
        offsets[rows] = record.offset();
        timestamps[rows] = record.timestamp();
        if (withBytes) {
            keys.add(rows, record.key());
            values.add(rows, record.value());
        }
        rows++;
    }

    int rows() {
        return rows;
    }

    /** Rows, lengths and the last row, of which the sum over all columns is the same however they are cut. */
    long digest() {
        return rows + 31L * keys.length() + 961L * values.length();
    }

    /** Offset and timestamp of the last row. */
    long last() {
        return offsets[rows - 1] * 31 + timestamps[rows - 1];
    }

    void clear() {
        rows = 0;
        keys.clear();
        values.clear();
    }

    /** A hash of the rows, continued: FNV-1a over 8 bytes at a time, and over the bytes of keys and values. */
    long hash(long hash) {
        for (int row = 0; row < rows; row++) {
            hash = (hash ^ offsets[row]) * Bytes.PRIME;
            hash = (hash ^ timestamps[row]) * Bytes.PRIME;
            hash = values.hash(row, keys.hash(row, hash));
        }
        return hash;
    }

    /** A column of bytes: all in one array, and where each row ends. */
    private static final class Bytes {
        static final long PRIME = 0x100000001B3L;

        private byte[] data = new byte[1024];
        private int[] ends = new int[1024];
        private boolean[] nulls = new boolean[1024];
        private int length;

        void add(int row, ByteBuffer value) {
            if (row == ends.length) {
                ends = Arrays.copyOf(ends, 2 * row);
                nulls = Arrays.copyOf(nulls, 2 * row);
            }
            nulls[row] = value == null;
            if (value != null) {
                int size = value.remaining();
                if (length + size > data.length) data = Arrays.copyOf(data, Math.max(2 * data.length, length + size));
                value.get(data, length, size);
                length += size;
            }
            ends[row] = length;
        }

        int length() {
            return length;
        }

        void clear() {
            length = 0;
        }

        long hash(int row, long hash) {
            if (nulls[row]) return (hash ^ -1) * PRIME;
            int start = row == 0 ? 0 : ends[row - 1];
            hash = (hash ^ ends[row] - start) * PRIME;
            for (int i = start; i < ends[row]; i++) hash = (hash ^ data[i]) * PRIME;
            return hash;
        }
    }
}

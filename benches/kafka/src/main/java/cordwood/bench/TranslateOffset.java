package cordwood.bench;

import org.apache.kafka.common.record.internal.FileRecords.LogOffsetPosition;
import org.apache.kafka.storage.internals.log.LogSegment;

import java.io.DataOutputStream;
import java.io.IOException;

/** {@code LogSegment.translateOffset}: the base offset and the size of a batch, packed, and its position. */
final class TranslateOffset implements LookUps {
    /** Base offsets are below 2^40, sizes below 2^23. */
    private static final int SIZE_SHIFT = 40;

    private final LogSegment segment;

    TranslateOffset(LogSegment segment) {
        this.segment = segment;
    }

    @Override
    public long throughput(long[] targets, int start, int end) throws IOException {
        LogSegment segment = this.segment;
        long sum = 0;
        for (int i = start; i < end; i++) {
            LogOffsetPosition found = segment.translateOffset(targets[i]);
            sum += batch(found) * 31 + found.position;
        }
        return sum;
    }

    @Override
    public long latency(long[] targets, int start, int end) throws IOException {
        LogSegment segment = this.segment;
        long sum = 0;
        long last = 0;
        for (int i = start; i < end; i++) {
            LogOffsetPosition found = segment.translateOffset(targets[i] + (last >> 63));
            last = found.position;
            sum += batch(found) * 31 + last;
        }
        return sum;
    }

    @Override
    public void answers(long[] targets, DataOutputStream to) throws IOException {
        for (long target : targets) {
            LogOffsetPosition found = segment.translateOffset(target);
            to.writeLong(batch(found));
            to.writeLong(found.position);
        }
    }

    private static long batch(LogOffsetPosition found) {
        return found.offset + ((long) found.size << SIZE_SHIFT);
    }

    @Override
    public void close() throws IOException {
        segment.close();
    }
}

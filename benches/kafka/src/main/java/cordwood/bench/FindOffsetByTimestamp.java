package cordwood.bench;

import org.apache.kafka.common.record.internal.FileRecords.TimestampAndOffset;
import org.apache.kafka.storage.internals.log.LogSegment;

import java.io.DataOutputStream;
import java.io.IOException;

/** {@code LogSegment.findOffsetByTimestamp} from the segment's start: timestamp and offset. */
final class FindOffsetByTimestamp implements LookUps {
    private final LogSegment segment;

    FindOffsetByTimestamp(LogSegment segment) {
        this.segment = segment;
    }

    @Override
    public long throughput(long[] targets, int start, int end) throws IOException {
        LogSegment segment = this.segment;
        long sum = 0;
        for (int i = start; i < end; i++) {
            TimestampAndOffset found = segment.findOffsetByTimestamp(targets[i], 0).orElseThrow();
            sum += found.timestamp * 31 + found.offset;
        }
        return sum;
    }

    @Override
    public long latency(long[] targets, int start, int end) throws IOException {
        LogSegment segment = this.segment;
        long sum = 0;
        long last = 0;
        for (int i = start; i < end; i++) {
            TimestampAndOffset found = segment.findOffsetByTimestamp(targets[i] + (last >> 63), 0).orElseThrow();
            last = found.offset;
            sum += found.timestamp * 31 + last;
        }
        return sum;
    }

    @Override
    public void answers(long[] targets, DataOutputStream to) throws IOException {
        for (long target : targets) {
            TimestampAndOffset found = segment.findOffsetByTimestamp(target, 0).orElseThrow();
            to.writeLong(found.timestamp);
            to.writeLong(found.offset);
        }
    }

    @Override
    public void close() throws IOException {
        segment.close();
    }
}

package cordwood.bench;

import org.apache.kafka.storage.internals.log.TimeIndex;
import org.apache.kafka.storage.internals.log.TimestampOffset;

import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Random;

/** {@code TimeIndex.lookup} in one file: timestamp and offset. */
final class TimeIndexLookUps implements LookUps {
    private final TimeIndex index;

    TimeIndexLookUps(Path file) throws IOException {
        index = open(file);
    }

    /** An existing file, mapped for reading. */
    static TimeIndex open(Path file) throws IOException {
        return new TimeIndex(file.toFile(), Fixtures.base(file), -1, false);
    }

    /** Timestamps anywhere in the index. */
    long[] spread(int count) {
        return new Random(1).longs(count, index.entry(0).timestamp(), index.lastEntry().timestamp()).toArray();
    }

    @Override
    public long throughput(long[] targets, int start, int end) {
        TimeIndex index = this.index;
        long sum = 0;
        for (int i = start; i < end; i++) {
            TimestampOffset found = index.lookup(targets[i]);
            sum += found.timestamp() * 31 + found.offset();
        }
        return sum;
    }

    @Override
    public long latency(long[] targets, int start, int end) {
        TimeIndex index = this.index;
        long sum = 0;
        long last = 0;
        for (int i = start; i < end; i++) {
            TimestampOffset found = index.lookup(targets[i] + (last >> 63));
            last = found.offset();
            sum += found.timestamp() * 31 + last;
        }
        return sum;
    }

    @Override
    public void answers(long[] targets, DataOutputStream to) throws IOException {
        for (long target : targets) {
            TimestampOffset found = index.lookup(target);
            to.writeLong(found.timestamp());
            to.writeLong(found.offset());
        }
    }

    @Override
    public void close() throws IOException {
        index.closeHandler();
    }
}

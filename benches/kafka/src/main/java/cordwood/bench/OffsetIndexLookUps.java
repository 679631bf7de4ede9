package cordwood.bench;

import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.OffsetPosition;

import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Random;

/** {@code OffsetIndex.lookup} in one file: offset and position. */
final class OffsetIndexLookUps implements LookUps {
    private final OffsetIndex index;

    OffsetIndexLookUps(Path file) throws IOException {
        index = open(file);
    }

    /** An existing file, mapped for reading. */
    static OffsetIndex open(Path file) throws IOException {
        return new OffsetIndex(file.toFile(), Fixtures.base(file), -1, false);
    }

    /** Offsets anywhere in the index. */
    long[] spread(int count) {
        return new Random(1).longs(count, index.entry(0).offset(), index.lastOffset()).toArray();
    }

    @Override
    public long throughput(long[] targets, int start, int end) {
        OffsetIndex index = this.index;
        long sum = 0;
        for (int i = start; i < end; i++) {
            OffsetPosition found = index.lookup(targets[i]);
            sum += found.offset() * 31 + found.position();
        }
        return sum;
    }

    @Override
    public long latency(long[] targets, int start, int end) {
        OffsetIndex index = this.index;
        long sum = 0;
        long last = 0;
        for (int i = start; i < end; i++) {
            OffsetPosition found = index.lookup(targets[i] + (last >> 63));
            last = found.position();
            sum += found.offset() * 31 + last;
        }
        return sum;
    }

    @Override
    public void answers(long[] targets, DataOutputStream to) throws IOException {
        for (long target : targets) {
            OffsetPosition found = index.lookup(target);
            to.writeLong(found.offset());
            to.writeLong(found.position());
        }
    }

    @Override
    public void close() throws IOException {
        index.closeHandler();
    }
}

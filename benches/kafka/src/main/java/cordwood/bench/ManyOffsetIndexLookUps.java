package cordwood.bench;

import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.OffsetPosition;

import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.file.Path;

/** {@code OffsetIndex.lookup} in many files: offset and position. */
final class ManyOffsetIndexLookUps implements LookUps {
    private final OffsetIndex[] indexes;

    ManyOffsetIndexLookUps(Path[] files) throws IOException {
        indexes = new OffsetIndex[files.length];
        for (int i = 0; i < files.length; i++) indexes[i] = OffsetIndexLookUps.open(files[i]);
    }

    @Override
    public long throughput(long[] targets, int start, int end) {
        OffsetIndex[] indexes = this.indexes;
        long sum = 0;
        for (int i = start; i < end; i++) {
            OffsetPosition found = indexes[LookUps.file(i, indexes.length)].lookup(targets[i]);
            sum += found.offset() * 31 + found.position();
        }
        return sum;
    }

    @Override
    public long latency(long[] targets, int start, int end) {
        OffsetIndex[] indexes = this.indexes;
        long sum = 0;
        long last = 0;
        for (int i = start; i < end; i++) {
            OffsetPosition found = indexes[LookUps.file(i, indexes.length)].lookup(targets[i] + (last >> 63));
            last = found.position();
            sum += found.offset() * 31 + last;
        }
        return sum;
    }

    @Override
    public void answers(long[] targets, DataOutputStream to) throws IOException {
        for (int i = 0; i < targets.length; i++) {
            OffsetPosition found = indexes[LookUps.file(i, indexes.length)].lookup(targets[i]);
            to.writeLong(found.offset());
            to.writeLong(found.position());
        }
    }

    @Override
    public void close() throws IOException {
        for (OffsetIndex index : indexes) index.closeHandler();
    }
}

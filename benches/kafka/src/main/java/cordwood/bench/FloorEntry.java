package cordwood.bench;

import java.io.DataOutputStream;
import java.io.IOException;
import java.util.concurrent.ConcurrentSkipListMap;

/** {@code ConcurrentSkipListMap.floorEntry}, as {@code LogSegments.floorSegment} calls it: the base offset, twice. */
final class FloorEntry implements LookUps {
    private final ConcurrentSkipListMap<Long, Segment> segments = new ConcurrentSkipListMap<>();

    /** The part of a segment that is read. */
    private record Segment(long base) { }

    FloorEntry(long[] bases) {
        for (long base : bases) segments.put(base, new Segment(base));
    }

    @Override
    public long throughput(long[] targets, int start, int end) {
        ConcurrentSkipListMap<Long, Segment> segments = this.segments;
        long sum = 0;
        for (int i = start; i < end; i++) {
            long base = segments.floorEntry(targets[i]).getValue().base();
            sum += base * 31 + base;
        }
        return sum;
    }

    @Override
    public long latency(long[] targets, int start, int end) {
        ConcurrentSkipListMap<Long, Segment> segments = this.segments;
        long sum = 0;
        long last = 0;
        for (int i = start; i < end; i++) {
            last = segments.floorEntry(targets[i] + (last >> 63)).getValue().base();
            sum += last * 31 + last;
        }
        return sum;
    }

    @Override
    public void answers(long[] targets, DataOutputStream to) throws IOException {
        for (long target : targets) {
            long base = segments.floorEntry(target).getValue().base();
            to.writeLong(base);
            to.writeLong(base);
        }
    }

    @Override
    public void close() { }
}

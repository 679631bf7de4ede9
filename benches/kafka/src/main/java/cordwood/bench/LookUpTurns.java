package cordwood.bench;

import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.LogSegment;

import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** What was opened last, its targets, and the turns of look-ups. */
final class LookUpTurns {
    private static final int WARM_UP_TARGETS = 1 << 16;

    private LookUps lookUps;
    private long[] targets;

    String turn(String[] words) throws Exception {
        switch (words[0]) {
            case "warm-up" -> warmUp(Long.parseLong(words[1]), Path.of(words[2]), Path.of(words[3]));
            case "open" -> {
                if (lookUps != null) lookUps.close();
                lookUps = open(words[1], Arrays.stream(words, 2, words.length).map(Path::of).toArray(Path[]::new));
            }
            case "targets" -> targets = longs(Path.of(words[1]));
            case "answers" -> {
                try (var to = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(Path.of(words[1])), 1 << 16))) {
                    lookUps.answers(targets, to);
                }
            }
            case "look-up" -> {
                return lookUp(words[1].equals("latency"), Integer.parseInt(words[2]), Integer.parseInt(words[3]));
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "done=1";
    }

    private static LookUps open(String kind, Path[] paths) throws IOException {
        return switch (kind) {
            case "offset-index" -> paths.length == 1 ? new OffsetIndexLookUps(paths[0]) : new ManyOffsetIndexLookUps(paths);
            case "time-index" -> new TimeIndexLookUps(paths[0]);
            case "translate-offset" -> new TranslateOffset(segment(paths[0]));
            case "find-offset" -> new FindOffsetByTimestamp(segment(paths[0]));
            case "floor-entry" -> new FloorEntry(longs(paths[0]));
            default -> throw new IllegalArgumentException(kind);
        };
    }

    /** The segment 0 of a directory. */
    private static LogSegment segment(Path dir) throws IOException {
        return LogSegment.open(dir.toFile(), 0, Appends.config("4096"), Time.SYSTEM, true, 0, false, "");
    }

    private static long[] longs(Path file) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file));
        long[] longs = new long[bytes.remaining() / Long.BYTES];
        bytes.asLongBuffer().get(longs);
        return longs;
    }

    /** Look-ups in both index classes, as in a broker: code that both share is then compiled for both. */
    private static void warmUp(long millis, Path offsetFile, Path timeFile) throws IOException {
        try (var offsets = new OffsetIndexLookUps(offsetFile); var times = new TimeIndexLookUps(timeFile)) {
            long[] ofOffsets = offsets.spread(WARM_UP_TARGETS);
            long[] ofTimes = times.spread(WARM_UP_TARGETS);
            long end = System.nanoTime() + millis * 1_000_000;
            while (System.nanoTime() < end) {
                offsets.throughput(ofOffsets, 0, WARM_UP_TARGETS);
                times.throughput(ofTimes, 0, WARM_UP_TARGETS);
                offsets.latency(ofOffsets, 0, WARM_UP_TARGETS);
                times.latency(ofTimes, 0, WARM_UP_TARGETS);
            }
        }
    }

    /** Each thread passes over all targets, from its own start. The CPU time is that of all threads. */
    private String lookUp(boolean latency, int threads, int passes) throws Exception {
        if (threads == 1) {
            Stopwatch watch = new Stopwatch();
            long sum = passes(latency, 0, passes);
            return watch.stop() + " sum=" + sum;
        }
        long[] sums = new long[threads];
        long[] cpus = new long[threads];
        Thread[] started = new Thread[threads];
        long start = System.nanoTime();
        for (int i = 0; i < threads; i++) {
            int thread = i;
            started[i] = new Thread(() -> {
                Stopwatch watch = new Stopwatch();
                try {
                    sums[thread] = passes(latency, targets.length / threads * thread, passes);
                } catch (IOException e) {
                    throw new java.io.UncheckedIOException(e);
                }
                cpus[thread] = watch.cpu();
            });
            started[i].start();
        }
        for (Thread thread : started) thread.join();
        return Stopwatch.times(System.nanoTime() - start, Arrays.stream(cpus).sum()) + " sum=" + Arrays.stream(sums).sum();
    }

    private long passes(boolean latency, int start, int passes) throws IOException {
        long sum = 0;
        for (int pass = 0; pass < passes; pass++) {
            sum += part(latency, start, targets.length);
            if (start > 0) sum += part(latency, 0, start);
        }
        return sum;
    }

    private long part(boolean latency, int start, int end) throws IOException {
        return latency ? lookUps.latency(targets, start, end) : lookUps.throughput(targets, start, end);
    }
}

package cordwood.interop;

import org.apache.kafka.server.util.Scheduler;

import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/** Kafka's background work (flush after a roll, delayed deletion), done on the caller's thread when it asks; what repeats never runs. */
final class Background implements Scheduler {
    private final Queue<Runnable> waiting = new ArrayDeque<>();

    void run() {
        for (Runnable task = waiting.poll(); task != null; task = waiting.poll()) task.run();
    }

    @Override
    public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
        if (periodMs < 0) waiting.add(task);
        return new Never();
    }

    @Override
    public void startup() { }

    @Override
    public void shutdown() { }

    @Override
    public void resizeThreadPool(int size) { }

    private static final class Never extends CompletableFuture<Void> implements ScheduledFuture<Void> {
        @Override
        public long getDelay(TimeUnit unit) {
            return Long.MAX_VALUE;
        }

        @Override
        public int compareTo(Delayed other) {
            return 0;
        }
    }
}

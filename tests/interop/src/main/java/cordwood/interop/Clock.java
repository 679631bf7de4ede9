package cordwood.interop;

import org.apache.kafka.common.utils.Time;

import java.util.function.Supplier;

/** A clock that moves only when it is told to: what Kafka writes must not depend on the day. */
final class Clock implements Time {
    private volatile long now;

    Clock(long now) {
        this.now = now;
    }

    void set(long now) {
        this.now = now;
    }

    @Override
    public long milliseconds() {
        return now;
    }

    @Override
    public long nanoseconds() {
        return now * 1_000_000;
    }

    @Override
    public void sleep(long ms) {
        now += ms;
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
        throw new UnsupportedOperationException("nothing waits here");
    }
}

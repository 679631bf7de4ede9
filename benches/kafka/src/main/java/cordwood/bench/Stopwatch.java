package cordwood.bench;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/** Wall time, and CPU time of the thread that made it: the compiler's and the collector's are not counted. */
final class Stopwatch {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final long cpu = THREADS.getCurrentThreadCpuTime();
    private final long wall = System.nanoTime();

    /** The CPU time until now, ns. */
    long cpu() {
        return THREADS.getCurrentThreadCpuTime() - cpu;
    }

    /** The time until now, ns. */
    long wall() {
        return System.nanoTime() - wall;
    }

    /** Both times until now, as an answer has them. */
    String stop() {
        return times(wall(), cpu());
    }

    static String times(long wall, long cpu) {
        return "wall=" + wall + " cpu=" + cpu;
    }
}

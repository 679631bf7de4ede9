package cordwood.bench;

import java.io.DataOutputStream;
import java.io.IOException;

/**
 * Look-ups of one kind. An answer is two numbers, the second of which is never negative. Each class has its
 * own loops, so that each loop calls only one of Kafka's methods; a loop that is shared would be slower.
 */
interface LookUps extends AutoCloseable {
    /** {@code first * 31 + second}, summed over the answers of the targets [start, end), which do not wait for each other. */
    long throughput(long[] targets, int start, int end) throws IOException;

    /** The same sum, but each look-up waits for the previous answer: its sign, which is 0, is added to the target. */
    long latency(long[] targets, int start, int end) throws IOException;

    /** Writes both numbers of each answer. */
    void answers(long[] targets, DataOutputStream to) throws IOException;

    @Override
    void close() throws IOException;

    /** Which of several files has a target: a fixed permutation, not a counter. */
    static int file(int target, int files) {
        return (int) ((target * 0x9E3779B1 & 0xFFFFFFFFL) * files >>> 32);
    }
}

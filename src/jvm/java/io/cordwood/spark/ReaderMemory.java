package io.cordwood.spark;

import org.apache.spark.TaskContext;
import org.apache.spark.memory.MemoryConsumer;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.memory.TaskMemoryManager;

/**
 * Charges the native memory of a reader to the off-heap memory of its task, so that Spark spills other
 * consumers when it is short.
 *
 * <p>Spark has a budget for off-heap memory only with spark.memory.offHeap.enabled. Otherwise the memory is a
 * part of spark.executor.memoryOverhead, for which Spark keeps no account; to charge the heap instead would
 * free none of it.
 *
 * <p>The core allocates before this class can ask, and the options maxBatchRows and maxBatchBytes bound what
 * it allocates. So a refusal is not an error. If another consumer needs the memory, the charge is given up
 * for the rest of the task: a reader has nothing to spill, and a query that could go on must not fail.
 */
final class ReaderMemory extends MemoryConsumer {
    private boolean isGivenUp;

    private ReaderMemory(TaskMemoryManager manager) {
        super(manager, MemoryMode.OFF_HEAP);
    }

    /** Returns the consumer of the current task, null if there is no task or no off-heap memory. */
    static ReaderMemory ofTask() {
        TaskContext context = TaskContext.get();
        if (context == null || context.taskMemoryManager().getTungstenMemoryMode() != MemoryMode.OFF_HEAP) {
            return null;
        }
        return new ReaderMemory(context.taskMemoryManager());
    }

    /** Changes the charge to a number of bytes, or to less if Spark does not grant it. */
    void charge(long bytes) {
        long more = bytes - getUsed();
        if (more > 0 && !isGivenUp) {
            acquireMemory(more);
        } else if (more < 0) {
            freeMemory(-more);
        }
    }

    /** Gives up the charge, and not the memory, which the reader needs until the batch ends. */
    @Override
    public long spill(long size, MemoryConsumer trigger) {
        if (trigger == this) {
            return 0;
        }
        isGivenUp = true;
        long charged = getUsed();
        freeMemory(charged);
        return charged;
    }
}

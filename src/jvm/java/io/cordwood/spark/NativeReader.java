package io.cordwood.spark;

import java.lang.ref.Cleaner;
import org.apache.spark.sql.types.StructType;

/**
 * The core's reader of one task, and the owner of its memory.
 *
 * <p>Vectors read that memory by address, so it is never freed while a thread could be reading it. {@link #next} and {@link #close} end
 * the current batch, and its vectors throw from then on. Spark can complete a task in one thread while another thread still iterates over
 * its rows: then the memory is freed by that thread at its next call, or when the reader and its vectors are unreachable.
 */
final class NativeReader implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();
    static final long CLOSED = -1;

    private final long handle;
    private final Cleaner.Cleanable release;
    private final ReaderMemory memory = ReaderMemory.ofTask();
    private final long[] layout;
    private long[] metrics = new long[ReadMetrics.ALL.size()];
    private Thread user;
    private long generation;
    private boolean isAtEnd;

    NativeReader(String query, byte[] task, StructType schema) {
        layout = new long[Layout.size(schema)];
        long opened = Core.logged(() -> Core.open(query, task));
        handle = opened;
        release = CLEANER.register(this, () -> Core.close(opened));
    }

    /** Reads the next batch and returns its number of rows; -1 at the end, where the reader closes itself. */
    int next() {
        if (isAtEnd) {
            return -1;
        }
        begin();
        try {
            int rows = Core.next(handle, layout);
            end(rows);
            return rows;
        } catch (Throwable failure) {
            close();
            throw failure;
        } finally {
            Core.logWarnings();
        }
    }

    private synchronized void begin() {
        checkOpen();
        user = Thread.currentThread();
        generation++;
    }

    private synchronized void end(int rows) {
        checkOpen();
        metrics = Core.metrics(handle);
        charge(Core.memory(handle));
        if (rows < 0) {
            isAtEnd = true;
            close();
        }
    }

    private void charge(long bytes) {
        if (memory != null) {
            memory.charge(bytes);
        }
    }

    private void checkOpen() {
        if (generation == CLOSED) {
            // the thread that closed the reader may have left this to the user
            release.clean();
            throw new IllegalStateException("expected a reader of a running task, found it closed");
        }
    }

    /** Returns the addresses of the current batch. */
    long[] layout() {
        return layout;
    }

    /** Returns the number of the current batch, which is never that of an older one; {@link #CLOSED} if the reader is closed. */
    long generation() {
        return generation;
    }

    /** Returns the metrics after the latest batch, also of a closed reader. */
    long[] metrics() {
        return metrics;
    }

    @Override
    public synchronized void close() {
        generation = CLOSED;
        charge(0);
        if (user == null || user == Thread.currentThread() || !user.isAlive()) {
            release.clean();
        }
    }
}

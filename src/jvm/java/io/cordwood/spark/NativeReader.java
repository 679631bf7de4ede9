package io.cordwood.spark;

import java.lang.ref.Cleaner;
import org.apache.spark.sql.types.StructType;

/**
 * The core's reader of one task, and the owner of its memory.
 *
 * <p>Vectors read that memory by address, and Spark can close a reader while another thread reads a row of
 * the current batch. So the memory of a batch is freed by the next call of {@link #next}, which ends the
 * batch, or when the reader and its vectors are unreachable. {@link #close} closes the files at once, and
 * vectors throw from then on.
 */
final class NativeReader implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();
    static final long CLOSED = -1;

    private final long handle;
    private final Cleaner.Cleanable release;
    private final ReaderMemory memory = ReaderMemory.ofTask();
    private final long[] layout;
    private long[] metrics = new long[ReadMetrics.ALL.size()];
    private long generation;
    private boolean isAtEnd;
    private boolean hasBatch;

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
        generation++;
        hasBatch = false;
    }

    private synchronized void end(int rows) {
        checkOpen();
        metrics = Core.metrics(handle);
        charge(Core.memory(handle));
        hasBatch = rows > 0;
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
        if (generation != CLOSED) {
            generation = CLOSED;
            charge(0);
            Core.finish(handle);
            if (!hasBatch) {
                release.clean();
            }
        }
    }
}

package io.cordwood.spark;

import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The functions of the native library. It has all rules: options, planning, the meaning of filters, offsets
 * of streams, reading and decoding; the classes of this package translate between it and Spark.
 *
 * <p>{@link NativeLibrary#load} must have been called. All functions may throw {@link CordwoodException}.
 *
 * <p>Options are a flat array: name, value, name, value … with the names in any case. A schema is the JSON of
 * Spark's StructType. A query is the JSON that {@link Query#toJson} describes. Handles are numbers above 0.
 * Offsets of streams are stable JSON texts.
 */
final class Core {
    private static final Logger LOGGER = LoggerFactory.getLogger("cordwood");

    private Core() { }

    /** Calls the core, and logs the warnings that it recorded for this thread. */
    static <T> T logged(Supplier<T> call) {
        try {
            return call.get();
        } finally {
            logWarnings();
        }
    }

    /** Logs the warnings that the core recorded for this thread. */
    static void logWarnings() {
        for (String warning : takeWarnings()) {
            LOGGER.warn(warning);
        }
    }

    /** Returns the version of the library. */
    static native String version();

    /** Checks the options and the paths, and returns the schema that they select. */
    static native String schema(String[] options);

    /** Checks a schema that the user gave. */
    static native void checkSchema(String[] options, String schema);

    /** Returns for each filter of the query whether the source applies it exactly; the others only leave out what cannot match. */
    static native boolean[] exactFilters(String query);

    /** Returns whether the source answers the aggregates of the query. */
    static native boolean canAggregate(String query);

    /** Returns the bytes to read and the number of rows, -1 where it is unknown. */
    static native long[] statistics(String query);

    /** Returns the tasks of the query, at least one. */
    static native byte[][] plan(String query);

    /** Describes in one line what is read. */
    static native String describe(String query);

    /** Opens a task and returns its reader. A reader is used by one thread at a time. */
    static native long open(String query, byte[] task);

    /**
     * Reads the next batch and returns its number of rows, -1 at the end. {@link Layout} describes the array
     * that is filled. The addresses in it are valid until the next call of this method or of {@link #close}.
     */
    static native int next(long reader, long[] layout);

    /** Returns the bytes of native memory of the current batch. */
    static native long memory(long reader);

    /** Returns the values of {@link ReadMetrics#ALL}, in that order. */
    static native long[] metrics(long reader);

    /** Ends the task: closes its files. The addresses of the current batch stay valid. */
    static native void finish(long reader);

    /** Frees the reader with the memory of the current batch. */
    static native void close(long reader);

    static native long openStream(String query);

    /** Returns the option maxOffsetsPerTrigger, -1 if it is not given. */
    static native long maxRowsPerTrigger(long stream);

    static native String initialOffset(long stream);

    /** Returns the end of the next micro-batch, equal to the start if there is nothing to read. {@code maxRows} -1: no limit. */
    static native String latestOffset(long stream, String start, long maxRows);

    static native void prepareForTriggerAvailableNow(long stream);

    /** Returns the ends of the logs, null if they are unknown. */
    static native String reportLatestOffset(long stream);

    /** Returns metrics for the progress of the query as a flat array: name, value … {@code consumed}: null if nothing was read. */
    static native String[] streamMetrics(long stream, String consumed);

    static native byte[][] planStream(long stream, String start, String end);

    static native void closeStream(long stream);

    private static native String[] takeWarnings();
}

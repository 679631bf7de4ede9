package io.cordwood.spark;

/**
 * An error of the source. Its message is one line: the code in brackets, the place, the reason, and the code
 * and the place again as JSON. Spark passes only texts from an executor to a Python driver, where {@code
 * cordwood.spark.errors.parse} reads that JSON.
 *
 * <p>It extends the exception that Spark's own sources throw for their options, because PySpark hides the
 * Java stack of a few classes only, and this is one of them.
 */
public final class CordwoodException extends IllegalArgumentException {
    private static final long serialVersionUID = 1;

    private final String code;
    private final String topic;
    private final int partition;
    private final long segment;
    private final long position;

    /** Called by the native library. A number is negative if it is not known; the topic is null if it is not known. */
    CordwoodException(String message, String code, String topic, int partition, long segment, long position) {
        super(message);
        this.code = code;
        this.topic = topic;
        this.partition = partition;
        this.segment = segment;
        this.position = position;
    }

    /** An error that did not come from the core, and has no place in a log. */
    CordwoodException(String code, String reason, Throwable cause) {
        this("[" + code + "] " + oneLine(reason) + " | cordwood: {\"code\": \"" + code + "\"}", code, null, -1, -1, -1);
        initCause(cause);
    }

    private static String oneLine(String text) {
        return String.join(" ", text.split("\\R"));
    }

    /** Returns the code, for example {@code CORDWOOD_CORRUPT_BATCH}. */
    public String code() {
        return code;
    }

    /** Returns the topic, null if it is not known. */
    public String topic() {
        return topic;
    }

    /** Returns the partition, null if it is not known. */
    public Integer partition() {
        return partition < 0 ? null : partition;
    }

    /** Returns the base offset of the segment, null if it is not known. */
    public Long segment() {
        return segment < 0 ? null : segment;
    }

    /** Returns the position in bytes from the start of the segment's log, null if it is not known. */
    public Long position() {
        return position < 0 ? null : position;
    }
}

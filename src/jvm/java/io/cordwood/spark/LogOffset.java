package io.cordwood.spark;

import org.apache.spark.sql.connector.read.streaming.Offset;

/** A position in all partitions of a stream, in the core's JSON. */
final class LogOffset extends Offset {
    private final String json;

    LogOffset(String json) {
        this.json = json;
    }

    @Override
    public String json() {
        return json;
    }
}

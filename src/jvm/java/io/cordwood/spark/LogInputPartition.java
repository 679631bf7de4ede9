package io.cordwood.spark;

import java.util.stream.Stream;
import org.apache.spark.sql.connector.read.InputPartition;

/** The input of one task, in bytes that only the core reads. */
record LogInputPartition(byte[] task) implements InputPartition {

    static InputPartition[] of(byte[][] tasks) {
        return Stream.of(tasks).map(LogInputPartition::new).toArray(InputPartition[]::new);
    }
}

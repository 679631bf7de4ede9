package io.cordwood.spark;

import java.io.IOException;
import java.util.stream.IntStream;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.TaskCompletionListener;

/** Reads a task batch by batch. It is closed at the end, at a failure, and when its task is completed or killed. */
final class LogPartitionReader implements PartitionReader<ColumnarBatch> {
    private final String query;
    private final LogInputPartition partition;
    private final StructType schema;
    private NativeReader reader;
    private ColumnarBatch batch;

    LogPartitionReader(String query, LogInputPartition partition, StructType schema) {
        this.query = query;
        this.partition = partition;
        this.schema = schema;
    }

    /**
     * Reads the next batch.
     *
     * @throws IOException if the core fails, with the message of its {@link CordwoodException}. The driver
     * cannot deserialize a class of a
     *     jar that was added to a running session, and would report an unknown reason instead.
     */
    @Override
    public boolean next() throws IOException {
        try {
            if (reader == null) {
                open();
            }
            int rows = reader.next();
            batch = rows < 0 ? null : new ColumnarBatch(Layout.vectors(reader, schema), rows);
            return batch != null;
        } catch (CordwoodException error) {
            IOException known = new IOException(error.getMessage());
            known.setStackTrace(error.getStackTrace());
            throw known;
        }
    }

    private void open() {
        NativeLibrary.load();
        reader = new NativeReader(query, partition.task(), schema);
        TaskContext context = TaskContext.get();
        if (context != null) {
            // Spark's own listener does not close the reader if its update of the metrics fails
            context.addTaskCompletionListener((TaskCompletionListener) completed -> close());
        }
    }

    @Override
    public ColumnarBatch get() {
        return batch;
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
        long[] values = reader == null ? new long[0] : reader.metrics();
        return IntStream.range(0, values.length)
            .mapToObj(i -> new TaskMetric(ReadMetrics.ALL.get(i).name(), values[i]))
            .toArray(CustomTaskMetric[]::new);
    }

    private record TaskMetric(String name, long value) implements CustomTaskMetric { }

    @Override
    public void close() {
        if (reader != null) {
            reader.close();
        }
    }
}

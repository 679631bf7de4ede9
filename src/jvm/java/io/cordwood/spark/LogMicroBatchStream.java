package io.cordwood.spark;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxRows;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.StructType;

/**
 * The source of a streaming query, in the driver. Methods are synchronized, because Spark can plan a
 * micro-batch in another thread than that of the query.
 */
final class LogMicroBatchStream implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics {
    private final String query;
    private final StructType schema;
    private final long handle;
    private boolean isStopped;

    LogMicroBatchStream(String query, StructType schema) {
        this.query = query;
        this.schema = schema;
        handle = Core.logged(() -> Core.openStream(query));
    }

    private synchronized <T> T call(Supplier<T> function) {
        if (isStopped) {
            throw new IllegalStateException("expected a running stream, found it stopped");
        }
        return Core.logged(function);
    }

    @Override
    public Offset initialOffset() {
        return new LogOffset(call(() -> Core.initialOffset(handle)));
    }

    @Override
    public Offset deserializeOffset(String json) {
        return new LogOffset(json);
    }

    @Override
    public ReadLimit getDefaultReadLimit() {
        long maxRows = call(() -> Core.maxRowsPerTrigger(handle));
        return maxRows < 0 ? ReadLimit.allAvailable() : ReadLimit.maxRows(maxRows);
    }

    @Override
    public Offset latestOffset(Offset start, ReadLimit limit) {
        long maxRows = limit instanceof ReadMaxRows rows ? rows.maxRows() : -1;
        return new LogOffset(call(() -> Core.latestOffset(handle, start.json(), maxRows)));
    }

    @Override
    public Offset latestOffset() {
        throw new UnsupportedOperationException("expected latestOffset(Offset, ReadLimit), because the stream limits its batches");
    }

    @Override
    public void prepareForTriggerAvailableNow() {
        call(() -> {
            Core.prepareForTriggerAvailableNow(handle);
            return null;
        });
    }

    @Override
    public Offset reportLatestOffset() {
        String latest = call(() -> Core.reportLatestOffset(handle));
        return latest == null ? null : new LogOffset(latest);
    }

    @Override
    public Map<String, String> metrics(Optional<Offset> consumed) {
        String[] namesAndValues = call(() -> Core.streamMetrics(handle, consumed.map(Offset::json).orElse(null)));
        Map<String, String> metrics = new HashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            metrics.put(namesAndValues[i], namesAndValues[i + 1]);
        }
        return metrics;
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start, Offset end) {
        return LogInputPartition.of(call(() -> Core.planStream(handle, start.json(), end.json())));
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new LogReaderFactory(query, schema);
    }

    /** Does nothing: the files belong to the broker. */
    @Override
    public void commit(Offset end) { }

    @Override
    public synchronized void stop() {
        if (!isStopped) {
            isStopped = true;
            Core.closeStream(handle);
        }
    }

    /** Shown as the description of the source in the progress of the query. */
    @Override
    public String toString() {
        return "cordwood (JVM) " + Core.describe(query);
    }
}

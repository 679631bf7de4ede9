package io.cordwood.spark;

import java.util.OptionalLong;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;

/** One query with all that was pushed down. */
final class LogScan implements SupportsReportStatistics {
    private final Query query;
    private final String json;
    private final StructType schema;
    private final LogBatch batch;
    private Statistics statistics;

    LogScan(Query query, StructType schema) {
        this.query = query;
        this.schema = schema;
        json = query.toJson();
        batch = new LogBatch(json, schema);
    }

    @Override
    public StructType readSchema() {
        return schema;
    }

    /** Shown by explain(). "(JVM)" tells this source from the one in Python, whose scans are marked "(Python)". */
    @Override
    public String description() {
        return "(JVM) " + Core.describe(json);
    }

    @Override
    public synchronized Statistics estimateStatistics() {
        if (statistics == null) {
            long[] bytesAndRows = Core.logged(() -> Core.statistics(json));
            statistics = new Estimate(known(bytesAndRows[0]), known(bytesAndRows[1]));
        }
        return statistics;
    }

    private record Estimate(OptionalLong sizeInBytes, OptionalLong numRows) implements Statistics { }

    private static OptionalLong known(long value) {
        return value < 0 ? OptionalLong.empty() : OptionalLong.of(value);
    }

    /** Spark asks for this once instead of for each task. */
    @Override
    public ColumnarSupportMode columnarSupportMode() {
        return ColumnarSupportMode.SUPPORTED;
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
        return ReadMetrics.ofScan();
    }

    @Override
    public Batch toBatch() {
        return batch;
    }

    @Override
    public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
        return new LogMicroBatchStream(query.ofStream().toJson(), schema);
    }
}

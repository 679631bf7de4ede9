package io.cordwood.spark;

import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;

/**
 * The tasks of a batch query. They are planned once, although Spark copies the nodes of a plan. Two batches
 * of the same query are equal, so that Spark can reuse an exchange.
 */
final class LogBatch implements Batch {
    private final String query;
    private final StructType schema;
    private InputPartition[] partitions;

    LogBatch(String query, StructType schema) {
        this.query = query;
        this.schema = schema;
    }

    @Override
    public synchronized InputPartition[] planInputPartitions() {
        if (partitions == null) {
            partitions = LogInputPartition.of(Core.logged(() -> Core.plan(query)));
        }
        return partitions;
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new LogReaderFactory(query, schema);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof LogBatch batch && query.equals(batch.query);
    }

    @Override
    public int hashCode() {
        return query.hashCode();
    }
}

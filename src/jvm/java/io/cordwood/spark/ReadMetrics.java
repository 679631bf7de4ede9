package io.cordwood.spark;

import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.util.MutableURLClassLoader;

/** The metrics of a scan in Spark's UI. Spark creates them by the names of their classes, so each one is a public class. */
public final class ReadMetrics {
    /** All metrics, in the order of their values in {@link Core#metrics}. */
    static final List<CustomMetric> ALL = List.of(
        new BatchesRead(), new BatchesSkipped(), new BatchesDecompressed(), new BytesRead(), new RecordsRead());

    private ReadMetrics() { }

    /**
     * Returns the metrics that Spark's UI can show: none if the jar was added to a running session. The UI
     * creates them in threads that do not have the class loader of the session, and would log an error for
     * each metric of each query.
     */
    static CustomMetric[] ofScan() {
        ClassLoader loader = ReadMetrics.class.getClassLoader();
        // the loader of Spark's class path, or that of spark.jars; loaders of sessions are of other classes
        boolean isVisible = loader == SparkContext.class.getClassLoader() || loader.getClass() == MutableURLClassLoader.class;
        return isVisible ? ALL.toArray(CustomMetric[]::new) : new CustomMetric[0];
    }

    private abstract static class Sum extends CustomSumMetric {
        private final String name;
        private final String description;

        Sum(String name, String description) {
            this.name = name;
            this.description = description;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public String description() {
            return description;
        }
    }

    public static final class BatchesRead extends Sum {
        public BatchesRead() {
            super("batchesRead", "record batches read");
        }
    }

    public static final class BatchesSkipped extends Sum {
        public BatchesSkipped() {
            super("batchesSkipped", "record batches skipped");
        }
    }

    public static final class BatchesDecompressed extends Sum {
        public BatchesDecompressed() {
            super("batchesDecompressed", "record batches decompressed");
        }
    }

    public static final class BytesRead extends Sum {
        public BytesRead() {
            super("bytesRead", "bytes read");
        }
    }

    public static final class RecordsRead extends Sum {
        public RecordsRead() {
            super("recordsRead", "records read");
        }
    }
}

package io.cordwood.spark;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The rows of partition directories. It is not for writing: the interface is there so that a write fails with advice. */
final class LogTable implements SupportsRead, SupportsWrite {
    private final StructType schema;
    private final TableOptions options;
    private final Map<String, String> properties;

    LogTable(StructType schema, TableOptions options, Map<String, String> properties) {
        this.schema = schema;
        this.options = options;
        this.properties = properties;
    }

    @Override
    public String name() {
        return "cordwood";
    }

    /** Deprecated in favour of columns(), but abstract in Spark 4.0; columns() calls it. */
    @Override
    @SuppressWarnings("deprecation")
    public StructType schema() {
        return schema;
    }

    /** Returns what a catalog stores, for SHOW CREATE TABLE. */
    @Override
    public Map<String, String> properties() {
        return properties;
    }

    @Override
    public Set<TableCapability> capabilities() {
        return Set.of(
            TableCapability.BATCH_READ,
            TableCapability.MICRO_BATCH_READ,
            // so that Spark calls newWriteBuilder
            TableCapability.BATCH_WRITE,
            TableCapability.STREAMING_WRITE,
            TableCapability.TRUNCATE,
            TableCapability.ACCEPT_ANY_SCHEMA);
    }

    /** Refuses. */
    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        throw new CordwoodException("CORDWOOD_UNSUPPORTED", "the data source in Java only reads logs: in Python, call "
            + "cordwood.spark.register(spark) and write with format(\"cordwood_sink\"), which has the options of Spark's Kafka sink", null);
    }

    /** The options of a query are those of the table, unless SQL's WITH clause adds some. */
    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap queryOptions) {
        TableOptions all = options.with(queryOptions.asCaseSensitiveMap());
        NativeLibrary.load();
        if (!all.equals(options)) {
            checkSameColumns(all);
        }
        Core.logged(() -> {
            Core.checkSchema(all.toArray(), schema.json());
            return null;
        });
        return new LogScanBuilder(schema, all);
    }

    /** Fails if the options of a query select other columns than those of the table, which has only its own. */
    private void checkSameColumns(TableOptions all) {
        StructType found = LogDataSource.schemaOf(all);
        StructType expected = LogDataSource.schemaOf(options);
        if (!found.equals(expected)) {
            throw new CordwoodException("CORDWOOD_BAD_OPTION", "options of a query: expected some that leave the columns of the table as they are, "
                + expected.simpleString() + ", found options that select " + found.simpleString() + "; give such options to the table "
                + "(CREATE TABLE … OPTIONS) or to its catalog (spark.sql.catalog.NAME.…)", null);
        }
    }
}

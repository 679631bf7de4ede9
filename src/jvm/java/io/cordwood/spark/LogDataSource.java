package io.cordwood.spark;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * {@code format("cordwood")}: Kafka partition directories as rows.
 *
 * <p>Spark creates an object of every registered source to look up a format, so the constructor must not
 * fail: the native library is loaded by the first method that needs it.
 */
public final class LogDataSource implements TableProvider, DataSourceRegister {
    @Override
    public String shortName() {
        return "cordwood";
    }

    /**
     * Loads the native library and returns its version. SQL calls it to test whether this source works in a
     * session, in the driver by {@code SELECT java_method('io.cordwood.spark.LogDataSource', 'version') FROM
     * VALUES (1)}, and without FROM in an executor.
     */
    public static String version() {
        NativeLibrary.load();
        return Core.version();
    }

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return schemaOf(TableOptions.of(options.asCaseSensitiveMap()));
    }

    static StructType schemaOf(TableOptions options) {
        NativeLibrary.load();
        return (StructType) DataType.fromJson(Core.logged(() -> Core.schema(options.toArray())));
    }

    /**
     * Returns the table. It is checked when it is read: a catalog must be able to load, describe and drop a
     * table whose directory or schema has changed.
     */
    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        Map<String, String> stored = new HashMap<>(properties);
        // the location again: the catalog adds it when it loads a table
        stored.remove(TableOptions.PATH);
        return new LogTable(schema, TableOptions.of(properties), stored);
    }

    /** The user may give a schema, and a catalog may store it. */
    @Override
    public boolean supportsExternalMetadata() {
        return true;
    }
}

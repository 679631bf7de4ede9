package io.cordwood.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A catalog whose tables are paths: with {@code spark.sql.catalog.cordwood=io.cordwood.spark.LogCatalog}, SQL
 * reads {@code cordwood.`/data/orders-0`}. Settings {@code spark.sql.catalog.cordwood.NAME} are options of
 * all its tables, and a query adds its own by {@code WITH ('subscribe' = 'orders')}.
 */
public final class LogCatalog implements TableCatalog {
    private String name;
    private TableOptions options;

    @Override
    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
        this.options = TableOptions.of(options.asCaseSensitiveMap());
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Table loadTable(Identifier identifier) throws NoSuchTableException {
        if (identifier.namespace().length > 0) {
            throw new NoSuchTableException(identifier);
        }
        TableOptions ofTable = options.with(Map.of(TableOptions.PATH, identifier.name()));
        return new LogTable(LogDataSource.schemaOf(ofTable), ofTable, Map.of());
    }

    /** Returns whether a path has a partition. */
    @Override
    public boolean tableExists(Identifier identifier) {
        try {
            loadTable(identifier);
            return true;
        } catch (NoSuchTableException error) {
            return false;
        } catch (CordwoodException error) {
            if (error.code().equals("CORDWOOD_NOT_FOUND")) {
                return false;
            }
            throw error;
        }
    }

    @Override
    public Table createTable(
        Identifier identifier, Column[] columns, Transform[] partitioning, Map<String, String> properties) {
        throw readOnly();
    }

    /** Returns none: a path is known to be a table only when it is read. */
    @Override
    public Identifier[] listTables(String[] namespace) {
        return new Identifier[0];
    }

    @Override
    public Table alterTable(Identifier identifier, TableChange... changes) {
        throw readOnly();
    }

    @Override
    public boolean dropTable(Identifier identifier) {
        throw readOnly();
    }

    @Override
    public void renameTable(Identifier from, Identifier to) {
        throw readOnly();
    }

    private UnsupportedOperationException readOnly() {
        return new UnsupportedOperationException("the catalog " + name + " only reads paths; CREATE TABLE … USING cordwood OPTIONS (path "
            + "'…') in Spark's own catalog gives a path a name");
    }
}

package io.cordwood.spark;

import java.util.Collections;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.catalog.TableCatalog;

/** The options of a table or a query that are cordwood's. Names are case-insensitive. */
final class TableOptions {
    static final String PATH = "path";

    private final SortedMap<String, String> values = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);

    private TableOptions() { }

    /**
     * Returns the options among the properties that Spark passes.
     *
     * <p>From {@code load()} all of them are options. From a catalog they are the properties of a table: its
     * options have a prefix, and its owner, comment and TBLPROPERTIES are not options. A catalog adds a path
     * to every table; it is the user's if there is a location, which is how {@code OPTIONS (path …)} and
     * {@code LOCATION} are stored.
     */
    static TableOptions of(Map<String, String> properties) {
        TableOptions options = new TableOptions();
        if (!properties.containsKey(TableCatalog.PROP_PROVIDER)) {
            options.values.putAll(properties);
            return options;
        }
        properties.forEach((name, value) -> {
            if (name.startsWith(TableCatalog.OPTION_PREFIX)) {
                options.values.put(name.substring(TableCatalog.OPTION_PREFIX.length()), value);
            }
        });
        if (properties.containsKey(TableCatalog.PROP_LOCATION)) {
            options.values.put(PATH, properties.get(PATH));
        }
        return options;
    }

    /** Returns these options and others, which replace those of the same name. */
    TableOptions with(Map<String, String> others) {
        TableOptions options = new TableOptions();
        options.values.putAll(values);
        options.values.putAll(others);
        return options;
    }

    Map<String, String> asMap() {
        return Collections.unmodifiableMap(values);
    }

    /** Returns the flat array that the core takes: name, value, name, value … */
    String[] toArray() {
        return values.entrySet().stream()
            .flatMap(option -> Stream.of(option.getKey(), option.getValue()))
            .toArray(String[]::new);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof TableOptions options && values.equals(options.values);
    }

    @Override
    public int hashCode() {
        return values.hashCode();
    }
}

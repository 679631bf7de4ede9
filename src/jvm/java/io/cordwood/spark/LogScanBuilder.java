package io.cordwood.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownFilters;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Collects what Spark pushes down into one query. Spark creates one for each scan, so queries do not affect each other. */
final class LogScanBuilder implements
    SupportsPushDownFilters, SupportsPushDownAggregates, SupportsPushDownLimit, SupportsPushDownRequiredColumns {

    private final StructType schema;
    private final TableOptions options;
    private StructType required;
    private List<PushedFilter> filters = List.of();
    private Filter[] pushedFilters = {};
    private Integer limit;
    private List<PushedAggregate> aggregates;

    LogScanBuilder(StructType schema, TableOptions options) {
        this.schema = schema;
        this.options = options;
        required = schema;
    }

    /** Passes the filters to the core, and returns those that Spark must evaluate again. */
    @Override
    public Filter[] pushFilters(Filter[] ofQuery) {
        List<Filter> pushed = new ArrayList<>();
        List<Filter> remaining = new ArrayList<>();
        filters = new ArrayList<>();
        for (Filter filter : ofQuery) {
            PushedFilter found = PushedFilter.of(filter);
            if (found == null) {
                remaining.add(filter);
            } else {
                filters.add(found);
                pushed.add(filter);
            }
        }
        boolean[] isExact = Core.exactFilters(query().toJson());
        for (int i = 0; i < isExact.length; i++) {
            if (!isExact[i]) {
                remaining.add(pushed.get(i));
            }
        }
        pushedFilters = pushed.toArray(Filter[]::new);
        return remaining.toArray(Filter[]::new);
    }

    @Override
    public Filter[] pushedFilters() {
        return pushedFilters;
    }

    /** Spark calls this only if no filter remains. It combines the rows of the tasks. */
    @Override
    public boolean pushAggregation(Aggregation aggregation) {
        List<PushedAggregate> functions =
            Stream.of(aggregation.aggregateExpressions()).map(PushedAggregate::of).toList();
        if (aggregation.groupByExpressions().length > 0 || functions.stream().anyMatch(Objects::isNull)) {
            return false;
        }
        aggregates = functions;
        if (!Core.canAggregate(query().toJson())) {
            aggregates = null;
        }
        return aggregates != null;
    }

    /** Spark calls this only if no filter remains. The limit holds for each task, so Spark applies it again. */
    @Override
    public boolean pushLimit(int rows) {
        limit = rows;
        return true;
    }

    /** Selects whole columns: the fields of headers are not pruned. */
    @Override
    public void pruneColumns(StructType pruned) {
        required = new StructType(
            Stream.of(pruned.fieldNames()).map(schema::apply).toArray(StructField[]::new));
    }

    @Override
    public Scan build() {
        if (aggregates != null) {
            required = new StructType(
                aggregates.stream().map(aggregate -> aggregate.field(schema)).toArray(StructField[]::new));
        }
        return new LogScan(query(), required);
    }

    private Query query() {
        List<String> columns = aggregates == null ? List.of(required.fieldNames()) : List.of();
        return new Query(options, schema, columns, filters, limit, aggregates, false);
    }
}

package io.cordwood.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.util.RawValue;
import java.util.List;
import org.apache.spark.sql.types.StructType;

/**
 * One query, as the core is asked for it.
 *
 * @param schema the schema of the table
 * @param columns the columns to return, in this order; without columns, rows are counted
 * @param filters all must hold
 * @param limit the most rows of each task, null if there is no limit
 * @param aggregates null if rows are returned; otherwise each task returns one row with these
 * @param isStream whether it is read by micro-batches, of which an error then tells what to do
 */
record Query(
    TableOptions options,
    StructType schema,
    List<String> columns,
    List<PushedFilter> filters,
    Integer limit,
    List<PushedAggregate> aggregates,
    boolean isStream) {

    private static final ObjectMapper MAPPER = new ObjectMapper();

    /** Returns the same query, read by micro-batches. */
    Query ofStream() {
        return new Query(options, schema, columns, filters, limit, aggregates, true);
    }

    /**
     * Returns the query as the core reads it:
     *
     * <pre>
     * {"options": {"path": "/data"}, "schema": {"type": "struct", …}, "columns": ["offset"],
     *  "filters": [{"column": "offset", "op": ">=", "value": 10}], "limit": 5,
     *  "aggregates": [{"function": "min", "column": "offset"}], "isStream": false}
     * </pre>
     */
    String toJson() {
        ObjectNode query = MAPPER.createObjectNode();
        query.set("options", MAPPER.valueToTree(options.asMap()));
        query.putRawValue("schema", new RawValue(schema.json()));
        query.set("columns", MAPPER.valueToTree(columns));
        ArrayNode conjuncts = query.putArray("filters");
        for (PushedFilter filter : filters) {
            ObjectNode conjunct = conjuncts.addObject().put("column", filter.column()).put("op", filter.op());
            if (filter.value() != null) {
                conjunct.set("value", MAPPER.valueToTree(filter.value()));
            }
        }
        query.put("limit", limit);
        query.put("isStream", isStream);
        ArrayNode functions = aggregates == null ? null : query.putArray("aggregates");
        if (functions == null) {
            query.putNull("aggregates");
        } else {
            for (PushedAggregate aggregate : aggregates) {
                ObjectNode function = functions.addObject().put("function", aggregate.function());
                if (aggregate.column() != null) {
                    function.put("column", aggregate.column());
                }
            }
        }
        try {
            return MAPPER.writeValueAsString(query);
        } catch (JsonProcessingException error) {
            throw new IllegalStateException("a query of texts and numbers that is not JSON", error);
        }
    }
}

package io.cordwood.spark;

import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * An aggregate over the rows of a task, as the core is asked for it.
 *
 * @param function {@code count}, {@code min} or {@code max}
 * @param column null for {@code count}, which is the number of rows
 */
record PushedAggregate(String function, String column) {

    /** Returns Spark's aggregate in this form, null if it has another one. */
    static PushedAggregate of(AggregateFunc aggregate) {
        if (aggregate instanceof CountStar) {
            return new PushedAggregate("count", null);
        }
        if (aggregate instanceof Min min) {
            return ofColumn("min", columnOf(min.column()));
        }
        if (aggregate instanceof Max max) {
            return ofColumn("max", columnOf(max.column()));
        }
        return null;
    }

    private static PushedAggregate ofColumn(String function, String column) {
        return column == null ? null : new PushedAggregate(function, column);
    }

    /** Returns the name of a top-level column, null for everything else. */
    private static String columnOf(Expression expression) {
        return expression instanceof NamedReference reference && reference.fieldNames().length == 1
            ? reference.fieldNames()[0]
            : null;
    }

    /** Returns the column of the result. */
    StructField field(StructType table) {
        return column == null
            ? DataTypes.createStructField("count(*)", DataTypes.LongType, true)
            : DataTypes.createStructField(function + "(" + column + ")", table.apply(column).dataType(), true);
    }
}

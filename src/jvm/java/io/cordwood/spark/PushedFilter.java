package io.cordwood.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A filter on one column, as the core is asked for it. The core decides what it can do with it.
 *
 * @param op one of {@code = <=> < <= > >= in startsWith isNotNull}
 * @param value a number, a text, or for {@code in} a list of them; timestamps are microseconds since the epoch; null for
 *     {@code isNotNull}
 */
record PushedFilter(String column, String op, Object value) {
    // Spark's names of the predicates that have a column and one constant
    private static final Map<String, String> COMPARISONS = Map.of(
        "=", "=", "<=>", "<=>", "<", "<", "<=", "<=", ">", ">", ">=", ">=", "STARTS_WITH", "startsWith");
    private static final Map<String, String> MIRRORED = Map.of(
        "=", "=", "<=>", "<=>", "<", ">", "<=", ">=", ">", "<", ">=", "<=");

    /** Returns Spark's predicate in this form, null if it has another one. */
    static PushedFilter of(Predicate predicate) {
        Expression[] operands = predicate.children();
        String op = predicate.name();
        if (operands.length == 0) {
            return null;
        }
        String column = columnOf(operands[0]);
        if (op.equals("IS_NOT_NULL") && column != null) {
            return new PushedFilter(column, "isNotNull", null);
        }
        if (op.equals("IN") && column != null) {
            List<Object> values = new ArrayList<>();
            for (Expression operand : List.of(operands).subList(1, operands.length)) {
                Object value = constantOf(operand);
                if (value == null) {
                    return null;
                }
                values.add(value);
            }
            return new PushedFilter(column, "in", values);
        }
        if (operands.length != 2) {
            return null;
        }
        if (column != null) {
            return comparison(column, COMPARISONS.get(op), constantOf(operands[1]));
        }
        return comparison(columnOf(operands[1]), MIRRORED.get(op), constantOf(operands[0]));
    }

    private static PushedFilter comparison(String column, String op, Object value) {
        return column == null || op == null || value == null ? null : new PushedFilter(column, op, value);
    }

    /** Returns the name of a top-level column, null for everything else. */
    static String columnOf(Expression expression) {
        return expression instanceof NamedReference reference && reference.fieldNames().length == 1
            ? reference.fieldNames()[0]
            : null;
    }

    /** Returns the value of a constant that is not null; null if it has another type, or is not a constant. */
    private static Object constantOf(Expression expression) {
        if (!(expression instanceof Literal<?> literal)) {
            return null;
        }
        DataType type = literal.dataType();
        // a text in another collation has another type
        if (type.equals(DataTypes.StringType)) {
            return literal.value() instanceof UTF8String text && text.isValid() ? text.toString() : null;
        }
        boolean isNumber = type.equals(DataTypes.LongType) || type.equals(DataTypes.IntegerType)
            || type.equals(DataTypes.ShortType) || type.equals(DataTypes.ByteType) || type.equals(DataTypes.TimestampType);
        return isNumber ? literal.value() : null;
    }
}

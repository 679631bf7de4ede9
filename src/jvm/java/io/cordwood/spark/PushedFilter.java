package io.cordwood.spark;

import java.sql.Timestamp;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.sources.EqualNullSafe;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.StringStartsWith;

/**
 * A filter on one column, as the core is asked for it. The core decides what it can do with it.
 *
 * <p>These are the filters of Spark's first interface: with the newer one, Spark 4.3 fails for a null
 * condition inside an expression, before the source is asked.
 *
 * @param op one of {@code = <=> < <= > >= in startsWith isNotNull}
 * @param value a number, a text, or for {@code in} a list of them; timestamps are microseconds since the
 * epoch; null for
 *     {@code isNotNull}
 */
record PushedFilter(String column, String op, Object value) {

    /** Returns Spark's filter in this form, null if it has another one. */
    static PushedFilter of(Filter filter) {
        if (filter instanceof EqualTo equal) {
            return comparison(equal.attribute(), "=", equal.value());
        }
        if (filter instanceof EqualNullSafe equal) {
            return comparison(equal.attribute(), "<=>", equal.value());
        }
        if (filter instanceof LessThan less) {
            return comparison(less.attribute(), "<", less.value());
        }
        if (filter instanceof LessThanOrEqual less) {
            return comparison(less.attribute(), "<=", less.value());
        }
        if (filter instanceof GreaterThan greater) {
            return comparison(greater.attribute(), ">", greater.value());
        }
        if (filter instanceof GreaterThanOrEqual greater) {
            return comparison(greater.attribute(), ">=", greater.value());
        }
        if (filter instanceof StringStartsWith start) {
            return comparison(start.attribute(), "startsWith", start.value());
        }
        if (filter instanceof IsNotNull known) {
            return new PushedFilter(known.attribute(), "isNotNull", null);
        }
        return filter instanceof In in ? oneOf(in) : null;
    }

    private static PushedFilter oneOf(In in) {
        List<Object> values = new ArrayList<>();
        for (Object value : in.values()) {
            Object constant = constantOf(value);
            if (constant == null) {
                return null;
            }
            values.add(constant);
        }
        return new PushedFilter(in.attribute(), "in", values);
    }

    private static PushedFilter comparison(String column, String op, Object value) {
        Object constant = constantOf(value);
        return constant == null ? null : new PushedFilter(column, op, constant);
    }

    /** Returns a number or a text; null for null and for values of other types. */
    private static Object constantOf(Object value) {
        if (value instanceof Timestamp || value instanceof Instant) {
            return CatalystTypeConverters.convertToCatalyst(value);
        }
        boolean isKnown = value instanceof Long || value instanceof Integer || value instanceof Short || value instanceof Byte
            || value instanceof String;
        return isKnown ? value : null;
    }
}

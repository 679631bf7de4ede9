package io.cordwood.spark;

import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;

/**
 * Creates vectors from the addresses of a batch. Columns and their children are in depth-first order, four
 * longs each:
 *
 * <pre>
 * validity  address of a bitmap: bit i % 8 of byte i / 8 is 1 if value i is not null; 0 if no value is null
 * data      address of the values
 * offsets   address of int offsets into the data or the child, one more than values; 0 if the type has none
 * length    number of values
 * </pre>
 *
 * <p>Numbers are little-endian, timestamps microseconds, booleans a bitmap. A column with the same value in
 * all rows has the negative number -n - 1 as data: the value is the n bytes at offsets, or null if validity
 * is 1.
 */
final class Layout {
    private static final int LONGS_PER_COLUMN = 4;
    private static final ColumnVector[] NO_CHILDREN = {};

    private final NativeReader reader;
    private final long[] longs;
    private int next;

    private Layout(NativeReader reader) {
        this.reader = reader;
        longs = reader.layout();
    }

    /** Returns the number of longs for the columns of a schema. */
    static int size(StructType schema) {
        int size = 0;
        for (StructField field : schema.fields()) {
            size += size(field.dataType());
        }
        return size;
    }

    private static int size(DataType type) {
        if (type instanceof ArrayType array) {
            return LONGS_PER_COLUMN + size(array.elementType());
        }
        return LONGS_PER_COLUMN + (type instanceof StructType struct ? size(struct) : 0);
    }

    /** Returns new vectors for the current batch of a reader. */
    static ColumnVector[] vectors(NativeReader reader, StructType schema) {
        return new Layout(reader).vectors(schema);
    }

    private ColumnVector[] vectors(StructType schema) {
        StructField[] fields = schema.fields();
        ColumnVector[] vectors = new ColumnVector[fields.length];
        for (int i = 0; i < fields.length; i++) {
            vectors[i] = vector(fields[i].dataType());
        }
        return vectors;
    }

    private ColumnVector vector(DataType type) {
        long validity = longs[next];
        long data = longs[next + 1];
        long offsets = longs[next + 2];
        int length = (int) longs[next + 3];
        next += LONGS_PER_COLUMN;
        if (data < 0) {
            return new ConstantVector(reader, type, validity == 1, offsets, (int) (-data - 1), length);
        }
        ColumnVector[] children = NO_CHILDREN;
        if (type instanceof ArrayType array) {
            children = new ColumnVector[] {vector(array.elementType())};
        } else if (type instanceof StructType struct) {
            children = vectors(struct);
        }
        return new NativeVector(reader, type, validity, data, offsets, length, children);
    }
}

package io.cordwood.spark;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarMap;

/**
 * A column of one batch of a reader, with the types that cordwood's tables have. It extends only {@link
 * ColumnVector}: later versions of Spark add abstract methods to the interfaces below it.
 */
abstract class BatchVector extends ColumnVector {
    // no generation of a reader
    private static final long ENDED = NativeReader.CLOSED - 1;

    private final NativeReader reader;
    private long generation;

    BatchVector(NativeReader reader, DataType type) {
        super(type);
        this.reader = reader;
        generation = reader.generation();
        if (generation == NativeReader.CLOSED) {
            throw ended();
        }
    }

    /** Every access calls this first, because the memory of an ended batch may be gone. */
    final void checkReadable() {
        if (reader.generation() != generation) {
            throw ended();
        }
    }

    private static IllegalStateException ended() {
        return new IllegalStateException(
            "expected a vector of the current batch, found one of a batch that has ended; copy rows that are needed longer");
    }

    /** Ends this vector; the reader owns the memory. */
    @Override
    public final void close() {
        generation = ENDED;
    }

    @Override
    public final float getFloat(int row) {
        throw unsupported("float");
    }

    @Override
    public final Decimal getDecimal(int row, int precision, int scale) {
        throw unsupported("decimal");
    }

    @Override
    public final ColumnarMap getMap(int row) {
        throw unsupported("map");
    }

    final UnsupportedOperationException unsupported(String wanted) {
        return new UnsupportedOperationException("expected a column of type " + wanted + ", found " + type.simpleString());
    }
}

package io.cordwood.spark;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column in native memory. {@link Layout} describes the memory. Strings and binaries are copied to the
 * heap, so no value refers to the memory after the batch.
 */
final class NativeVector extends BatchVector {
    private final long validity;
    private final long data;
    private final long offsets;
    private final int length;
    private final ColumnVector[] children;

    NativeVector(
        NativeReader reader, DataType type, long validity, long data, long offsets, int length, ColumnVector[] children) {
        super(reader, type);
        this.validity = validity;
        this.data = data;
        this.offsets = offsets;
        this.length = length;
        this.children = children;
    }

    @Override
    public boolean hasNull() {
        return validity != 0;
    }

    @Override
    public int numNulls() {
        int nulls = 0;
        for (int row = 0; hasNull() && row < length; row++) {
            nulls += isNullAt(row) ? 1 : 0;
        }
        return nulls;
    }

    @Override
    public boolean isNullAt(int row) {
        checkReadable();
        return validity != 0 && !bit(validity, row);
    }

    private static boolean bit(long bitmap, int index) {
        return (Platform.getByte(null, bitmap + (index >> 3)) >> (index & 7) & 1) == 1;
    }

    @Override
    public boolean getBoolean(int row) {
        checkReadable();
        return bit(data, row);
    }

    @Override
    public byte getByte(int row) {
        checkReadable();
        return Platform.getByte(null, data + row);
    }

    @Override
    public short getShort(int row) {
        checkReadable();
        return Platform.getShort(null, data + 2L * row);
    }

    @Override
    public int getInt(int row) {
        checkReadable();
        return Platform.getInt(null, data + 4L * row);
    }

    @Override
    public long getLong(int row) {
        checkReadable();
        return Platform.getLong(null, data + 8L * row);
    }

    @Override
    public double getDouble(int row) {
        checkReadable();
        return Platform.getDouble(null, data + 8L * row);
    }

    @Override
    public byte[] getBinary(int row) {
        if (isNullAt(row)) {
            return null;
        }
        int start = offset(row);
        byte[] bytes = new byte[offset(row + 1) - start];
        Platform.copyMemory(null, data + start, bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length);
        return bytes;
    }

    private int offset(int index) {
        return Platform.getInt(null, offsets + 4L * index);
    }

    @Override
    public UTF8String getUTF8String(int row) {
        return UTF8String.fromBytes(getBinary(row));
    }

    @Override
    public ColumnarArray getArray(int row) {
        if (isNullAt(row)) {
            return null;
        }
        int start = offset(row);
        return new ColumnarArray(children[0], start, offset(row + 1) - start);
    }

    @Override
    public ColumnVector getChild(int ordinal) {
        checkReadable();
        return children[ordinal];
    }
}

package io.cordwood.spark;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** A string or an int that is the same in all rows of a batch: the topic and the partition. It is copied to the heap once. */
final class ConstantVector extends BatchVector {
    private final boolean isNull;
    private final int number;
    private final UTF8String text;
    private final int length;

    ConstantVector(NativeReader reader, DataType type, boolean isNull, long address, int size, int length) {
        super(reader, type);
        this.isNull = isNull;
        this.length = length;
        if (isNull) {
            number = 0;
            text = null;
        } else if (type instanceof IntegerType) {
            number = Platform.getInt(null, address);
            text = null;
        } else {
            byte[] bytes = new byte[size];
            Platform.copyMemory(null, address, bytes, Platform.BYTE_ARRAY_OFFSET, size);
            number = 0;
            text = UTF8String.fromBytes(bytes);
        }
    }

    @Override
    public boolean hasNull() {
        return isNull;
    }

    @Override
    public int numNulls() {
        return isNull ? length : 0;
    }

    @Override
    public boolean isNullAt(int row) {
        checkReadable();
        return isNull;
    }

    @Override
    public int getInt(int row) {
        checkReadable();
        return number;
    }

    @Override
    public UTF8String getUTF8String(int row) {
        checkReadable();
        return text;
    }

    @Override
    public boolean getBoolean(int row) {
        throw unsupported("boolean");
    }

    @Override
    public byte getByte(int row) {
        throw unsupported("byte");
    }

    @Override
    public short getShort(int row) {
        throw unsupported("short");
    }

    @Override
    public long getLong(int row) {
        throw unsupported("long");
    }

    @Override
    public double getDouble(int row) {
        throw unsupported("double");
    }

    @Override
    public byte[] getBinary(int row) {
        throw unsupported("binary");
    }

    @Override
    public ColumnarArray getArray(int row) {
        throw unsupported("array");
    }

    @Override
    public ColumnVector getChild(int ordinal) {
        throw unsupported("struct");
    }
}

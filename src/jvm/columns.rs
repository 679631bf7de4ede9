//! The memory of a batch by address. The layout is documented in `Layout.java`.

use arrow_array::Array;
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use super::boundary::{Result, wrong_argument};
use crate::plan::{TaskBatch, TaskColumn};

/// A batch, which owns the memory, and the addresses of its columns: four numbers for each column and each of
/// their children, in depth-first order.
pub(super) struct Columns {
    batch: TaskBatch,
    /// What is not in the batch as Java reads it: bits that do not start in a byte, and the partition.
    copies: Vec<Buffer>,
    numbers: Vec<i64>,
}

impl Columns {
    pub(super) fn new(batch: TaskBatch) -> Result<Self> {
        let mut columns = Self { batch, copies: Vec::new(), numbers: Vec::new() };
        for column in columns.batch.columns.clone() {
            match column {
                TaskColumn::Values(array) => columns.add(&array.to_data())?,
                TaskColumn::Topic => {
                    let topic = columns.batch.topic.clone();
                    columns.add_constant(topic.as_deref().map(str::as_bytes));
                }
                TaskColumn::Partition => {
                    let partition = columns.batch.partition.map(|number| Buffer::from_vec(vec![number]));
                    columns.add_constant(partition.as_deref());
                    columns.copies.extend(partition);
                }
            }
        }
        Ok(columns)
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.batch.rows
    }

    /// The addresses.
    pub(super) fn numbers(&self) -> &[i64] {
        &self.numbers
    }

    /// The bytes of memory.
    pub(super) fn memory(&self) -> usize {
        let of_column = |column: &TaskColumn| match column {
            TaskColumn::Values(array) => array.get_buffer_memory_size(),
            TaskColumn::Topic | TaskColumn::Partition => 0,
        };
        self.batch.columns.iter().map(of_column).sum()
    }

    fn add(&mut self, values: &ArrayData) -> Result<()> {
        let (length, offset) = (values.len(), values.offset());
        let validity = match values.nulls() {
            Some(nulls) if nulls.null_count() > 0 => self.bits(nulls.inner()),
            _ => 0,
        };
        let buffer = |number: usize, width: usize| {
            values.buffers().get(number).map_or(0, |buffer| address(buffer, offset * width))
        };
        let (data, offsets) = match values.data_type() {
            DataType::Boolean => {
                let bits = values.buffers().first().cloned().unwrap_or_default();
                (self.bits(&BooleanBuffer::new(bits, offset, length)), 0)
            }
            DataType::Utf8 | DataType::Binary => (buffer(1, 0), buffer(0, size_of::<i32>())),
            DataType::List(_) => (0, buffer(0, size_of::<i32>())),
            DataType::Struct(_) => (0, 0),
            other => {
                let width = other.primitive_width();
                let unknown =
                    || wrong_argument(&format!("expected a type of a column of Spark, found {other}"));
                (buffer(0, width.ok_or_else(unknown)?), 0)
            }
        };
        self.push(validity, data, offsets, length);
        let is_struct = matches!(values.data_type(), DataType::Struct(_));
        for child in values.child_data() {
            // the rows of a struct are its children's rows; the offsets of a list refer to all values of its
            // child
            if is_struct { self.add(&child.slice(offset, length))? } else { self.add(child)? }
        }
        Ok(())
    }

    /// A value that all rows have.
    fn add_constant(&mut self, bytes: Option<&[u8]>) {
        let rows = self.batch.rows;
        match bytes {
            Some(bytes) => self.push(0, -as_number(bytes.len()) - 1, as_number(bytes.as_ptr().addr()), rows),
            None => self.push(1, -1, 0, rows),
        }
    }

    /// The address of bits; the first is the lowest bit of a byte.
    fn bits(&mut self, bits: &BooleanBuffer) -> i64 {
        if bits.offset().is_multiple_of(8) {
            return address(bits.inner(), bits.offset() / 8);
        }
        let copy = bits.sliced();
        let found = address(&copy, 0);
        self.copies.push(copy);
        found
    }

    fn push(&mut self, validity: i64, data: i64, offsets: i64, length: usize) {
        self.numbers.extend([validity, data, offsets, as_number(length)]);
    }
}

fn address(buffer: &Buffer, offset: usize) -> i64 {
    as_number(buffer.as_ptr().addr() + offset)
}

/// An address or a length, which are below 2^63 on every platform.
fn as_number(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

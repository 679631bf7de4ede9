//! The column `error`: the damaged ranges of a scan as structs, null for records and batches.

use std::sync::Arc;

use arrow_array::builder::{PrimitiveBuilder, StringBuilder};
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, StructArray};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{ArrowError, DataType, Field, Fields};

use crate::log::DamagedRange;

/// The field of the column: the fields of [`DamagedRange`]. In a file name that is not UTF-8, invalid bytes become U+FFFD.
pub(super) fn damage_field() -> Field {
    Field::new("error", DataType::Struct(fields()), true)
}

fn fields() -> Fields {
    Fields::from(vec![
        Field::new("file", DataType::Utf8, false),
        Field::new("start_position", DataType::Int64, false),
        Field::new("end_position", DataType::Int64, false),
        Field::new("start_offset", DataType::Int64, false),
        Field::new("end_offset", DataType::Int64, true),
        Field::new("reason", DataType::Utf8, false),
    ])
}

/// The column under construction.
#[derive(Debug)]
pub(super) struct DamageBuilder {
    file: StringBuilder,
    /// Start position, end position, start offset, end offset.
    numbers: [PrimitiveBuilder<Int64Type>; 4],
    reason: StringBuilder,
    validity: NullBufferBuilder,
}

impl Default for DamageBuilder {
    fn default() -> Self {
        Self {
            file: StringBuilder::new(),
            numbers: Default::default(),
            reason: StringBuilder::new(),
            validity: NullBufferBuilder::new(0),
        }
    }
}

impl DamageBuilder {
    /// Adds the row of a damaged range, or a null.
    pub(super) fn append(&mut self, range: Option<&DamagedRange>) {
        let numbers = range.map_or([Some(0); 4], |range| {
            [
                Some(range.start_position.cast_signed()),
                Some(range.end_position.cast_signed()),
                Some(range.start_offset),
                range.end_offset,
            ]
        });
        for (builder, number) in self.numbers.iter_mut().zip(numbers) {
            builder.append_option(number);
        }
        // the children of a null struct have values: their fields are not nullable
        let file = range.map(|range| range.file.to_string_lossy()).unwrap_or_default();
        self.file.append_value(file);
        self.reason.append_value(range.map(|range| range.reason.as_str()).unwrap_or_default());
        self.validity.append(range.is_some());
    }

    /// Returns the rows so far and empties the column.
    pub(super) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let [start_position, end_position, start_offset, end_offset] = &mut self.numbers;
        let children: Vec<ArrayRef> = vec![
            Arc::new(self.file.finish()),
            Arc::new(start_position.finish()),
            Arc::new(end_position.finish()),
            Arc::new(start_offset.finish()),
            Arc::new(end_offset.finish()),
            Arc::new(self.reason.finish()),
        ];
        Ok(Arc::new(StructArray::try_new(fields(), children, self.validity.finish())?))
    }
}

//! The column `error`: the damaged ranges of a scan as structs, null for records and batches.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray, StructArray};
use arrow_schema::{ArrowError, DataType, Field, Fields};

use crate::log::DamagedRange;

/// The field of the column: the fields of [`DamagedRange`]. In a file name that is not UTF-8, invalid bytes
/// become U+FFFD.
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
#[derive(Debug, Default)]
pub(super) struct DamageBuilder {
    rows: usize,
    /// The damaged ranges, each with its row; all other rows are null.
    ranges: Vec<(usize, DamagedRange)>,
}

impl DamageBuilder {
    /// Adds the row of a damaged range.
    pub(super) fn append(&mut self, range: &DamagedRange) {
        self.ranges.push((self.rows, range.clone()));
        self.rows += 1;
    }

    /// Adds rows that are null.
    pub(super) fn append_nulls(&mut self, count: usize) {
        self.rows += count;
    }

    /// Returns the rows so far and empties the column.
    pub(super) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let Self { rows, ranges } = std::mem::take(self);
        let mut by_row = vec![None; rows];
        for (row, range) in &ranges {
            if let Some(place) = by_row.get_mut(*row) {
                *place = Some(range);
            }
        }
        // the children of a null struct have values: their fields are not nullable
        let number = |of: fn(&DamagedRange) -> Option<i64>| -> ArrayRef {
            Arc::new(by_row.iter().map(|range| range.map_or(Some(0), of)).collect::<Int64Array>())
        };
        let text = |of: fn(&DamagedRange) -> Cow<'_, str>| -> ArrayRef {
            let texts = by_row.iter().map(|range| range.map(of).unwrap_or_default());
            Arc::new(StringArray::from_iter_values(texts))
        };
        let children = vec![
            text(|range| range.file.to_string_lossy()),
            number(|range| Some(range.start_position.cast_signed())),
            number(|range| Some(range.end_position.cast_signed())),
            number(|range| Some(range.start_offset)),
            number(|range| range.end_offset),
            text(|range| range.reason.as_str().into()),
        ];
        let validity = by_row.iter().map(Option::is_some).collect();
        Ok(Arc::new(StructArray::try_new(fields(), children, Some(validity))?))
    }
}

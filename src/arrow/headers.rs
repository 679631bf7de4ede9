//! The headers of records as a list of structs.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::types::{BinaryType, Utf8Type};
use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field};

use super::byte_values::ByteValues;
use super::validity::Validity;
use super::{HeaderKeys, header_fields};
use crate::record::{Headers, RecordSpan, java_string};

/// The size of a header with an empty name and value, bytes: two offsets and two validities, rounded up.
const HEADER_BYTES: usize = 16;

/// The maximum size of a header in the column, relative to its size in a record: an empty one has two bytes
/// there, and a name's byte that is not UTF-8 becomes three.
pub(super) const GROWTH: usize = HEADER_BYTES / 2;

/// The column of headers under construction; null if a record has none.
#[derive(Debug)]
pub(super) struct HeadersBuilder {
    header_keys: HeaderKeys,
    keys: ByteValues,
    values: ByteValues,
    /// 0, and the number of headers up to each row.
    offsets: Vec<i32>,
    validity: Validity,
}

impl HeadersBuilder {
    pub(super) fn new(header_keys: HeaderKeys) -> Self {
        Self {
            header_keys,
            keys: ByteValues::default(),
            values: ByteValues::default(),
            offsets: vec![0],
            validity: Validity::default(),
        }
    }

    /// Adds a row for each record; returns their size in bytes.
    pub(super) fn extend(&mut self, payload: &[u8], spans: &[RecordSpan]) -> usize {
        self.validity.extend(spans, |span| !span.headers.is_empty());
        let mut bytes = 0;
        for span in spans {
            if !span.headers.is_empty() {
                for (key, value) in span.headers.of(payload) {
                    let name = decoded(key, self.header_keys);
                    bytes += size(&name, value);
                    self.keys.repeat(Some(&name), 1);
                    self.values.repeat(value, 1);
                }
            }
            self.end_row();
        }
        bytes
    }

    /// The size of a record's headers in this column, bytes.
    pub(super) fn size(&self, headers: Headers<'_>) -> usize {
        headers.map(|(key, value)| size(&decoded(key, self.header_keys), value)).sum()
    }

    /// Adds a row that is null.
    pub(super) fn append_null(&mut self) {
        self.validity.repeat(false, 1);
        self.end_row();
    }

    fn end_row(&mut self) {
        self.offsets.push(i32::try_from(self.keys.len()).unwrap_or(i32::MAX));
    }

    pub(super) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let keys: ArrayRef = match self.header_keys {
            HeaderKeys::Utf8 => Arc::new(self.keys.finish::<Utf8Type>()?),
            HeaderKeys::Binary => Arc::new(self.keys.finish::<BinaryType>()?),
        };
        let fields = header_fields(self.header_keys);
        let values = Arc::new(self.values.finish::<BinaryType>()?);
        let structs = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let item = Arc::new(Field::new("item", DataType::Struct(fields), true));
        Ok(Arc::new(ListArray::try_new(item, offsets, Arc::new(structs), self.validity.finish())?))
    }
}

/// A name as it is stored in the column.
fn decoded(key: &[u8], header_keys: HeaderKeys) -> Cow<'_, [u8]> {
    match header_keys {
        HeaderKeys::Binary => Cow::Borrowed(key),
        HeaderKeys::Utf8 => match java_string(key) {
            Cow::Borrowed(name) => Cow::Borrowed(name.as_bytes()),
            Cow::Owned(name) => Cow::Owned(name.into_bytes()),
        },
    }
}

/// The size of a header in the column, bytes.
fn size(name: &[u8], value: Option<&[u8]>) -> usize {
    HEADER_BYTES + name.len() + value.map_or(0, <[u8]>::len)
}

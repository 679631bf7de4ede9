//! A column of byte strings under construction.

use arrow_array::GenericByteArray;
use arrow_array::types::ByteArrayType;
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use super::recycled::RecycledBuffers;
use super::validity::Validity;
use crate::record::ByteSpan;

/// The length of a byte string up to which it is copied together with the bytes after it.
const SHORT: usize = 32;

/// Byte strings one after another, some of which may be null.
#[derive(Debug, Default)]
pub(super) struct ByteValues {
    bytes: Vec<u8>,
    /// 0, and the end of each; empty before the first.
    offsets: Vec<i32>,
    validity: Validity,
    recycled_bytes: RecycledBuffers,
    recycled_offsets: RecycledBuffers,
}

impl ByteValues {
    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Adds one byte string for each item. Returns the number of bytes added.
    #[inline]
    pub(super) fn extend<I>(&mut self, payload: &[u8], items: &[I], span: impl Fn(&I) -> ByteSpan) -> usize {
        self.make_room();
        self.validity.extend(items, |item| !span(item).is_null());
        self.offsets.reserve(items.len());
        let before = self.bytes.len();
        for item in items {
            copy(&mut self.bytes, payload, span(item));
            self.offsets.push(offset(self.bytes.len()));
        }
        self.bytes.len() - before
    }

    /// Adds `count` times the same byte string, or null.
    pub(super) fn repeat(&mut self, bytes: Option<&[u8]>, count: usize) {
        self.make_room();
        self.validity.repeat(bytes.is_some(), count);
        for _ in 0..count {
            self.bytes.extend_from_slice(bytes.unwrap_or_default());
            self.offsets.push(offset(self.bytes.len()));
        }
    }

    /// Returns the rows so far and empties the column.
    ///
    /// # Errors
    /// [`ArrowError`] if the values have more bytes than their offsets can count, and for a type of strings
    /// if a value is not UTF-8.
    pub(super) fn finish<T: ByteArrayType<Offset = i32>>(
        &mut self,
    ) -> Result<GenericByteArray<T>, ArrowError> {
        if i32::try_from(self.bytes.len()).is_err() {
            return Err(ArrowError::OffsetOverflowError(self.bytes.len()));
        }
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        let offsets = self.recycled_offsets.buffer(std::mem::take(&mut self.offsets));
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let bytes = self.recycled_bytes.buffer(std::mem::take(&mut self.bytes));
        GenericByteArray::try_new(offsets, bytes, self.validity.finish())
    }

    fn make_room(&mut self) {
        if self.offsets.is_empty() {
            self.bytes = self.recycled_bytes.take_larger(SHORT);
            self.offsets = self.recycled_offsets.take();
            self.offsets.push(0);
        }
    }
}

/// An offset; one that is too large makes [`ByteValues::finish`] fail. The limits of a record batch keep them
/// far below 2^31.
fn offset(position: usize) -> i32 {
    i32::try_from(position).unwrap_or(i32::MAX)
}

/// Appends a byte string. A short one is copied with the bytes after it, which are cut off again: a copy of a
/// constant length takes a few instructions, others are a call.
#[inline]
fn copy(bytes: &mut Vec<u8>, payload: &[u8], span: ByteSpan) {
    let end = bytes.len() + span.len();
    match payload.get(span.start()..).and_then(|rest| rest.first_chunk::<SHORT>()) {
        Some(chunk) if span.len() <= SHORT => {
            bytes.extend_from_slice(chunk);
            bytes.truncate(end);
        }
        _ => bytes.extend_from_slice(span.bytes(payload)),
    }
}

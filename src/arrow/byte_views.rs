//! A column of views of byte strings under construction.

use arrow_array::GenericByteViewArray;
use arrow_array::types::ByteViewType;
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::ArrowError;
use bytes::Bytes;

use super::validity::Validity;
use crate::record::ByteSpan;
use crate::segment::SharedBytes;

/// The maximum length of a byte string that is stored in its view.
const INLINE: usize = 12;

/// The length to which a buffer of an array grows: a view has a 31-bit position in its buffer.
const MAX_BUFFER: usize = 1 << 30;

/// Views of byte strings, of which some may be null. Short byte strings are in their views. The others stay where they are: the
/// buffers of the array are the bytes of the file, or those of a decompressed batch.
///
/// ```text
///  0        4               8        12         16     (little-endian)
/// │ length │ first 4 bytes │ buffer │ position │       more than 12 bytes
/// │ length │ the bytes, then zeros             │       up to 12 bytes; a null is empty
/// ```
#[derive(Debug, Default)]
pub(super) struct ByteViews {
    views: Vec<u128>,
    buffers: Vec<SharedBytes>,
    validity: Validity,
    /// The number of rows of the last array: the next one is probably as long.
    expected: usize,
    /// See [`ByteViews::kept`].
    kept: usize,
}

impl ByteViews {
    /// Adds one view for each item; returns the number of bytes of the byte strings. `payload`: the bytes of the spans.
    pub(super) fn extend<I>(
        &mut self,
        payload: &SharedBytes,
        items: &[I],
        span: impl Fn(&I) -> ByteSpan,
    ) -> usize {
        self.make_room();
        self.validity.extend(items, |item| !span(item).is_null());
        // a buffer without a view would only keep its bytes in memory
        let is_inline = items.iter().all(|item| span(item).len() <= INLINE);
        let (buffer, shift) = if is_inline { (0, 0) } else { self.buffer(payload) };
        let bytes = payload.bytes();
        self.views.extend(items.iter().map(|item| view(bytes, span(item), buffer, shift)));
        items.iter().map(|item| span(item).len()).sum()
    }

    /// Adds a row that is null.
    pub(super) fn append_null(&mut self) {
        self.validity.repeat(false, 1);
        self.views.push(0);
    }

    /// The memory that the views keep, without that of the last payload.
    pub(super) fn kept(&self) -> usize {
        self.kept
    }

    /// Returns the rows so far and empties the column.
    ///
    /// # Errors
    /// For a type of strings: [`ArrowError`] if a value is not UTF-8.
    pub(super) fn finish<T: ByteViewType + ?Sized>(&mut self) -> Result<GenericByteViewArray<T>, ArrowError> {
        self.expected = self.views.len();
        self.kept = 0;
        let buffers: Vec<_> =
            self.buffers.drain(..).map(|shared| Buffer::from(Bytes::from_owner(shared))).collect();
        let views = ScalarBuffer::from(std::mem::take(&mut self.views));
        GenericByteViewArray::try_new(views, buffers, self.validity.finish())
    }

    /// The number of the buffer that contains the payload, and the position of the payload in it.
    fn buffer(&mut self, payload: &SharedBytes) -> (u128, usize) {
        let range = payload.range();
        if let Some(last) = self.buffers.last_mut().filter(|last| last.has_owner_of(payload)) {
            let start = last.range().start;
            let end = last.range().end.max(range.end);
            if start <= range.start && end - start <= MAX_BUFFER {
                *last = payload.clone().with_range(start..end);
                return (self.buffers.len() as u128 - 1, range.start - start);
            }
        } else {
            self.kept += self.buffers.last().map_or(0, SharedBytes::memory);
        }
        self.buffers.push(payload.clone());
        (self.buffers.len() as u128 - 1, 0)
    }

    fn make_room(&mut self) {
        if self.views.is_empty() {
            self.views.reserve_exact(self.expected);
        }
    }
}

/// The view of a byte string of a payload that is at the position `shift` of a buffer.
#[inline]
fn view(payload: &[u8], span: ByteSpan, buffer: u128, shift: usize) -> u128 {
    let length = span.len();
    if length > INLINE {
        let prefix = first_bytes::<4>(payload, span.start());
        return length as u128 | prefix << 32 | buffer << 64 | ((shift + span.start()) as u128) << 96;
    }
    let whole = first_bytes::<INLINE>(payload, span.start()) & ((1 << (8 * length)) - 1);
    length as u128 | whole << 32
}

/// The number whose little-endian bytes are `N` bytes of the payload; zeros after its end.
#[inline]
#[expect(clippy::little_endian_bytes, reason = "the format of a view is little-endian")]
fn first_bytes<const N: usize>(payload: &[u8], start: usize) -> u128 {
    let mut word = [0; 16];
    let rest = payload.get(start..).unwrap_or_default();
    match (rest.first_chunk::<N>(), word.first_chunk_mut::<N>()) {
        (Some(bytes), Some(word)) => *word = *bytes,
        _ => word.iter_mut().zip(rest).for_each(|(word, byte)| *word = *byte),
    }
    u128::from_le_bytes(word)
}

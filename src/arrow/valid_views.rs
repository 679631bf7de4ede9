//! Views of byte strings that are valid by construction, so that arrays of them are made without reading
//! every value again.
#![expect(unsafe_code, reason = "SAFETY.md, S6: arrays of views that were checked when they were made")]

use std::str::Utf8Error;
use std::sync::Arc;

use arrow_array::types::BinaryViewType;
use arrow_array::{BinaryViewArray, GenericByteViewArray, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use bytes::Bytes;

use super::byte_type::check_text;
use super::recycled::RecycledBuffers;
use super::validity::{Validity, Word};
use crate::record::ByteSpan;
use crate::segment::SharedBytes;

/// The maximum length of a byte string that is stored in its view.
const INLINE: usize = 12;

/// The length to which a buffer of an array grows: a view has a 31-bit position in its buffer.
const MAX_BUFFER: usize = 1 << 30;

/// Views, and the buffers in which their bytes are.
///
/// ```text
///  0        4               8        12         16     (little-endian)
/// │ length │ first 4 bytes │ buffer │ position │       more than 12 bytes
/// │ length │ the bytes, then zeros             │       up to 12 bytes; a null is empty
/// ```
#[derive(Debug, Default)]
pub(super) struct ValidViews {
    views: Vec<u128>,
    recycled: RecycledBuffers,
    buffers: Vec<SharedBytes>,
    /// The memory of all buffers but the last.
    kept: usize,
    /// Whether a span is outside its payload: then there is no array.
    is_broken: bool,
    /// Whether a value may not be UTF-8: it was not checked, or was checked in a mapping.
    may_not_be_text: bool,
}

/// The place of a payload in the buffers.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// The number of the buffer.
    buffer: usize,
    /// The position of the payload in the buffer.
    shift: usize,
    /// Whether the buffer is there, and its range grows. Otherwise the payload is a new buffer.
    is_last: bool,
}

impl ValidViews {
    /// The memory that the views keep, without that of the last payload.
    pub(super) fn kept(&self) -> usize {
        self.kept
    }

    /// The memory that the views keep.
    pub(super) fn memory(&self) -> usize {
        self.kept + self.buffers.last().map_or(0, SharedBytes::memory)
    }

    /// Adds an empty view.
    pub(super) fn push_empty(&mut self) {
        self.room().push(0);
    }

    /// Adds one view for each item; returns the number of bytes of the byte strings. `payload`: the bytes of
    /// the spans.
    pub(super) fn extend<I>(
        &mut self,
        payload: &SharedBytes,
        items: &[I],
        span: impl Fn(&I) -> ByteSpan,
        validity: &mut Validity,
    ) -> usize {
        self.may_not_be_text |= !items.is_empty();
        self.extend_spans(payload, items, span, validity)
    }

    /// [`ValidViews::extend`] for text.
    ///
    /// # Errors
    /// The number of the first item whose bytes are not UTF-8; no view is added.
    pub(super) fn extend_text<I>(
        &mut self,
        payload: &SharedBytes,
        items: &[I],
        span: impl Fn(&I) -> ByteSpan,
        validity: &mut Validity,
    ) -> Result<usize, (usize, Utf8Error)> {
        check_text(payload.bytes(), items, &span)?;
        // another process may change a mapping after this check
        self.may_not_be_text |= payload.is_mapped();
        Ok(self.extend_spans(payload, items, span, validity))
    }

    fn extend_spans<I>(
        &mut self,
        payload: &SharedBytes,
        items: &[I],
        span: impl Fn(&I) -> ByteSpan,
        validity: &mut Validity,
    ) -> usize {
        let bytes = payload.bytes();
        let place = self.place(payload);
        let (mut total, mut end, mut longest) = (0, 0, 0);
        let views = self.room();
        validity.extend_words(items, |items| {
            let mut valid = Word::default();
            views.extend(items.iter().map(|item| {
                let span = span(item);
                let length = span.len();
                valid.push(!span.is_null());
                total += length;
                end = end.max(span.start() + length);
                longest = longest.max(length);
                view(bytes, span, place)
            }));
            valid
        });
        self.is_broken |= end > bytes.len();
        // a buffer without a view would only keep its bytes in memory
        if longest > INLINE {
            self.include(payload, place);
        }
        total
    }

    /// Returns the views as an array and removes them.
    ///
    /// # Errors
    /// [`ArrowError`] if a byte string is outside its payload, or if there are not as many `nulls` as views.
    pub(super) fn finish_binary(&mut self, nulls: Option<NullBuffer>) -> Result<BinaryViewArray, ArrowError> {
        if self.is_broken {
            self.take();
            return Err(ArrowError::InvalidArgumentError("a byte string is outside its batch".to_owned()));
        }
        let (views, buffers) = self.take();
        let has_nulls_of_all = nulls.as_ref().is_none_or(|nulls| nulls.len() == views.len());
        if !has_nulls_of_all {
            return GenericByteViewArray::try_new(views, buffers, nulls);
        }
        debug_assert!(BinaryViewArray::try_new(views.clone(), Arc::clone(&buffers), nulls.clone()).is_ok());
        // SAFETY: S6. Every view was made by `extend_spans` or is empty, and no span was outside its payload.
        Ok(unsafe { GenericByteViewArray::<BinaryViewType>::new_unchecked(views, buffers, nulls) })
    }

    /// [`ValidViews::finish_binary`] as text.
    ///
    /// # Errors
    /// As [`ValidViews::finish_binary`], and if a value is not UTF-8.
    pub(super) fn finish_text(&mut self, nulls: Option<NullBuffer>) -> Result<StringViewArray, ArrowError> {
        let may_not_be_text = std::mem::take(&mut self.may_not_be_text);
        let array = self.finish_binary(nulls)?;
        if may_not_be_text {
            return array.to_string_view();
        }
        debug_assert!(array.clone().to_string_view().is_ok());
        // SAFETY: S6. All views are from `extend_text` or empty, and no value is in a mapping.
        Ok(unsafe { array.to_string_view_unchecked() })
    }

    /// Removes and returns the views and the buffers.
    fn take(&mut self) -> (ScalarBuffer<u128>, Arc<[Buffer]>) {
        let buffers = self.buffers.drain(..).map(|shared| Buffer::from(Bytes::from_owner(shared))).collect();
        (self.kept, self.is_broken, self.may_not_be_text) = (0, false, false);
        let views = self.recycled.buffer(std::mem::take(&mut self.views));
        (ScalarBuffer::from(views), buffers)
    }

    fn room(&mut self) -> &mut Vec<u128> {
        if self.views.is_empty() {
            self.views = self.recycled.take();
        }
        &mut self.views
    }

    fn place(&self, payload: &SharedBytes) -> Place {
        let range = payload.range();
        if let Some(last) = self.buffers.last().filter(|last| last.has_owner_of(payload)) {
            let start = last.range().start;
            if start <= range.start && range.end.max(last.range().end) - start <= MAX_BUFFER {
                return Place { buffer: self.buffers.len() - 1, shift: range.start - start, is_last: true };
            }
        }
        Place { buffer: self.buffers.len(), shift: 0, is_last: false }
    }

    /// Makes the payload a part of the buffers.
    fn include(&mut self, payload: &SharedBytes, place: Place) {
        match self.buffers.last_mut() {
            Some(last) if place.is_last => {
                last.extend_to(payload.range().end);
                return;
            }
            Some(last) if !last.has_owner_of(payload) => self.kept += last.memory(),
            _ => {}
        }
        self.buffers.push(payload.clone());
    }
}

/// The view of a byte string of a payload.
#[inline]
fn view(payload: &[u8], span: ByteSpan, place: Place) -> u128 {
    let length = span.len();
    let first = first_bytes(payload, span.start());
    if length > INLINE {
        let position = (place.shift + span.start()) as u128;
        return length as u128 | (first & 0xffff_ffff) << 32 | (place.buffer as u128) << 64 | position << 96;
    }
    length as u128 | (first & ((1 << (8 * length)) - 1)) << 32
}

/// The number whose little-endian bytes are 16 bytes of the payload; zeros after its end.
#[inline]
#[expect(clippy::little_endian_bytes, reason = "the format of a view is little-endian")]
fn first_bytes(payload: &[u8], start: usize) -> u128 {
    let rest = payload.get(start..).unwrap_or_default();
    if let Some(bytes) = rest.first_chunk() {
        return u128::from_le_bytes(*bytes);
    }
    let mut word = [0; 16];
    word.iter_mut().zip(rest).for_each(|(word, byte)| *word = *byte);
    u128::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use arrow_array::Array;
    use proptest::prelude::*;

    use super::*;

    /// Spans of a payload: the number of the buffer, the range of the payload in it, and start and length of
    /// each span.
    type Added = (usize, Range<usize>, Vec<(usize, i32)>);

    fn added() -> impl Strategy<Value = Added> {
        let length = prop_oneof![Just(-1i32), 0..17i32, 0..60i32];
        let spans = proptest::collection::vec((0..100usize, length), 0..8);
        (0..3usize, 0..100usize, 100..200usize, spans)
            .prop_map(|(buffer, start, end, spans)| (buffer, start..end, spans))
    }

    fn span(&(start, length): &(usize, i32)) -> ByteSpan {
        ByteSpan::new(start, length).unwrap()
    }

    /// Whether all spans are in their payload.
    fn is_inside((_, range, spans): &Added) -> bool {
        spans.iter().all(|(start, length)| start + usize::try_from(*length).unwrap_or(0) <= range.len())
    }

    /// Adds the spans; returns the values, as far as they are in the payload.
    fn add(views: &mut ValidViews, buffers: &[Arc<Vec<u8>>], added: &Added, is_text: bool) -> Vec<Vec<u8>> {
        let (buffer, range, spans) = added;
        let shared = SharedBytes::buffer(&buffers[*buffer], range.clone());
        let values: Vec<_> = spans.iter().map(|item| span(item).bytes(shared.bytes()).to_vec()).collect();
        if is_text {
            let invalid = values.iter().position(|value| std::str::from_utf8(value).is_err());
            let found = views.extend_text(&shared, spans, span, &mut Validity::default());
            assert_eq!(found.err().map(|(index, _)| index), invalid);
            return if invalid.is_some() { Vec::new() } else { values };
        }
        let bytes = views.extend(&shared, spans, span, &mut Validity::default());
        assert_eq!(bytes, spans.iter().map(|item| span(item).len()).sum::<usize>());
        values
    }

    proptest! {
        #![proptest_config(crate::types::fixed_seed(4_000))]

        /// The safe twin is `try_new`, which checks every view.
        #[test]
        fn arrays_made_without_a_check_are_valid(
            bytes in proptest::collection::vec(any::<u8>(), 600),
            rounds in proptest::collection::vec(proptest::collection::vec(added(), 0..6), 1..3),
        ) {
            let buffers: Vec<_> = bytes.chunks(200).map(|bytes| Arc::new(bytes.to_vec())).collect();
            let mut views = ValidViews::default();
            for round in rounds {
                let values: Vec<_> =
                    round.iter().flat_map(|added| add(&mut views, &buffers, added, false)).collect();
                let array = views.finish_binary(None);
                prop_assert_eq!(array.is_ok(), round.iter().all(is_inside));
                let Ok(array) = array else { continue };
                array.to_data().validate_full().unwrap();
                prop_assert!(array.iter().map(Option::unwrap).eq(&values));
                let (views, buffers, nulls) = array.into_parts();
                BinaryViewArray::try_new(views, buffers, nulls).unwrap();
            }
        }

        #[test]
        fn text_is_checked_before_it_is_added(
            text in "[a-zé€]{120,200}",
            all in proptest::collection::vec(added(), 0..6),
        ) {
            let text = &text.as_bytes()[..120];
            let buffers: Vec<_> = (0..3).map(|n| Arc::new([text, &vec![b'x'; 80 + n]].concat())).collect();
            let mut views = ValidViews::default();
            let all: Vec<_> = all.into_iter().filter(is_inside).collect();
            let values: Vec<_> = all.iter().flat_map(|added| add(&mut views, &buffers, added, true)).collect();
            let array = views.finish_text(None).unwrap();
            array.to_data().validate_full().unwrap();
            prop_assert!(array.iter().map(|value| value.unwrap().as_bytes()).eq(&values));
        }
    }

    fn of(buffer: &Arc<Vec<u8>>, items: &[(usize, i32)]) -> ValidViews {
        let mut views = ValidViews::default();
        views.extend(&SharedBytes::buffer(buffer, 0..buffer.len()), items, span, &mut Validity::default());
        views
    }

    #[test]
    fn a_span_outside_its_payload_is_an_error_and_no_array() {
        let buffer = Arc::new(vec![b'x'; 40]);
        assert_eq!(of(&buffer, &[(0, 40), (20, 20)]).finish_binary(None).unwrap().len(), 2);
        for span in [(0, 41), (21, 20), (41, 13), (1 << 31, 20), (36, 5), (41, 1), (1 << 31, 1)] {
            assert!(of(&buffer, &[span]).finish_binary(None).is_err(), "{span:?}");
        }
        let mut views = ValidViews::default();
        for item in [(0, 40), (0, 5)] {
            // a range that ends after its buffer
            views.extend(&SharedBytes::buffer(&buffer, 20..60), &[item], span, &mut Validity::default());
            assert!(views.finish_binary(None).is_err(), "{item:?}");
        }
        let text = Arc::new(vec![b'x', 0xc3]);
        let text = SharedBytes::buffer(&text, 0..2);
        assert!(views.extend_text(&text, &[(1, 5)], span, &mut Validity::default()).is_ok());
        assert!(views.finish_text(None).is_err());
        assert_eq!(views.finish_text(None).unwrap().len(), 0);
    }

    #[test]
    fn another_number_of_nulls_than_of_views_is_an_error() {
        let buffer = Arc::new(vec![b'x'; 40]);
        assert!(of(&buffer, &[(0, 20)]).finish_binary(Some(NullBuffer::new_null(2))).is_err());
        assert!(of(&buffer, &[(0, 20)]).finish_binary(Some(NullBuffer::new_null(1))).is_ok());
    }

    #[test]
    fn unchecked_bytes_become_text_only_after_a_check() {
        for (value, is_text) in [("a text of some length", true), ("short", true), ("\u{fe}", false)] {
            let bytes: Vec<u8> = value.chars().map(|c| u8::try_from(c).unwrap()).collect();
            let length = i32::try_from(bytes.len()).unwrap();
            let array = of(&Arc::new(bytes), &[(0, length)]).finish_text(None);
            assert_eq!(array.is_ok(), is_text, "{value}");
        }
    }
}

//! A column of views of byte strings under construction.

use std::str::Utf8Error;

use arrow_array::{BinaryViewArray, StringViewArray};
use arrow_schema::ArrowError;

use super::valid_views::ValidViews;
use super::validity::Validity;
use crate::record::ByteSpan;
use crate::segment::SharedBytes;

/// Views of byte strings, some of which may be null. Short byte strings are in their views. The others stay
/// where they are: the buffers of the array are the bytes of the file, or of a decompressed batch.
#[derive(Debug, Default)]
pub(super) struct ByteViews {
    views: ValidViews,
    validity: Validity,
}

impl ByteViews {
    /// Adds one view for each item; returns the number of bytes of the byte strings. `payload`: the bytes of
    /// the spans.
    pub(super) fn extend<I>(
        &mut self,
        payload: &SharedBytes,
        items: &[I],
        span: impl Fn(&I) -> ByteSpan,
    ) -> usize {
        self.views.extend(payload, items, span, &mut self.validity)
    }

    /// [`ByteViews::extend`] for text.
    ///
    /// # Errors
    /// The number of the first item whose bytes are not UTF-8; the column is then incomplete.
    pub(super) fn extend_text<I>(
        &mut self,
        payload: &SharedBytes,
        items: &[I],
        span: impl Fn(&I) -> ByteSpan,
    ) -> Result<usize, (usize, Utf8Error)> {
        self.views.extend_text(payload, items, span, &mut self.validity)
    }

    /// Adds a row that is null.
    pub(super) fn append_null(&mut self) {
        self.validity.repeat(false, 1);
        self.views.push_empty();
    }

    /// See [`ValidViews::kept`].
    pub(super) fn kept(&self) -> usize {
        self.views.kept()
    }

    /// See [`ValidViews::memory`].
    pub(super) fn memory(&self) -> usize {
        self.views.memory()
    }

    /// Returns the rows so far and empties the column.
    ///
    /// # Errors
    /// As [`ValidViews::finish_binary`].
    pub(super) fn finish_binary(&mut self) -> Result<BinaryViewArray, ArrowError> {
        self.views.finish_binary(self.validity.finish())
    }

    /// Returns the rows so far as text and empties the column.
    ///
    /// # Errors
    /// As [`ValidViews::finish_text`].
    pub(super) fn finish_text(&mut self) -> Result<StringViewArray, ArrowError> {
        self.views.finish_text(self.validity.finish())
    }
}

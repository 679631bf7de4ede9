//! Keys and values of text columns that are not UTF-8.

use std::sync::Arc;

use crate::record::ByteSpan;
use crate::segment::SharedBytes;

/// What a column of text has for bytes that are not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InvalidText {
    /// An error, which names the offset.
    #[default]
    Raise,
    /// Null.
    Null,
    /// The text with U+FFFD for each invalid sequence, as Python's `errors="replace"`.
    Replace,
}

impl InvalidText {
    /// Byte strings without invalid ones, and the buffer that has them. Unless it is
    /// [`InvalidText::Replace`], invalid ones are null.
    pub(super) fn correct<I>(
        self,
        payload: &[u8],
        items: &[I],
        span: impl Fn(&I) -> ByteSpan,
    ) -> (SharedBytes, Vec<ByteSpan>) {
        let mut bytes = Vec::with_capacity(payload.len());
        let correct = |item| {
            let value = span(item).of(payload)?;
            if self == Self::Replace {
                bytes.extend_from_slice(String::from_utf8_lossy(value).as_bytes());
            } else {
                bytes.extend_from_slice(std::str::from_utf8(value).ok()?.as_bytes());
            }
            Some(bytes.len())
        };
        let ends: Vec<_> = items.iter().map(correct).collect();
        let mut start = 0;
        let spans = ends.into_iter().map(|end| {
            let bytes = end.and_then(|end| bytes.get(start..end));
            start = end.unwrap_or(start);
            ByteSpan::ending_at(start, bytes)
        });
        let spans = spans.collect();
        let length = bytes.len();
        (SharedBytes::buffer(&Arc::new(bytes), 0..length), spans)
    }
}

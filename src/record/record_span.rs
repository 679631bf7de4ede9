//! A record as positions in the bytes of its batch's records.

use super::record_ref::Headers;

/// A range of bytes, or null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteSpan {
    start: u32,
    /// Negative: null.
    length: i32,
}

impl ByteSpan {
    /// `length`: negative is null, which has no position. `None` for positions that a batch never reaches.
    #[inline]
    pub(crate) fn new(start: usize, length: i32) -> Option<Self> {
        Some(Self { start: u32::try_from(start).ok()?, length })
    }

    /// Bytes that end at `end`; `None` is null.
    pub(crate) fn ending_at(end: usize, bytes: Option<&[u8]>) -> Self {
        let Some(bytes) = bytes else { return Self { start: 0, length: -1 } };
        let start = u32::try_from(end - bytes.len()).unwrap_or(u32::MAX);
        Self { start, length: i32::try_from(bytes.len()).unwrap_or(i32::MAX) }
    }

    #[inline]
    pub(crate) fn is_null(self) -> bool {
        self.length < 0
    }

    /// The position of the first byte.
    #[inline]
    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    /// The number of bytes, 0 for null.
    #[inline]
    pub(crate) fn len(self) -> usize {
        usize::try_from(self.length).unwrap_or(0)
    }

    /// The number of bytes, −1 for null.
    #[cfg(any(feature = "arrow", feature = "inspect"))]
    #[inline]
    pub(crate) fn size(self) -> i32 {
        self.length.max(-1)
    }

    /// The bytes; `None` for null.
    #[inline]
    pub(crate) fn of(self, payload: &[u8]) -> Option<&[u8]> {
        if self.is_null() { None } else { Some(self.bytes(payload)) }
    }

    /// The bytes; none for null.
    #[inline]
    pub(crate) fn bytes(self, payload: &[u8]) -> &[u8] {
        payload.get(self.start()..).and_then(|rest| rest.get(..self.len())).unwrap_or_default()
    }
}

/// A record whose key, value and headers are positions in the payload of its batch. Unlike a
/// [`RecordRef`](super::RecordRef), it can be kept while the payload is borrowed elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordSpan {
    /// Logical offset, absolute.
    pub(crate) offset: i64,
    /// Milliseconds since the epoch; −1 = none.
    pub(crate) timestamp: i64,
    pub(crate) key: ByteSpan,
    pub(crate) value: ByteSpan,
    pub(crate) headers: HeaderSpan,
}

/// The position of checked headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HeaderSpan {
    start: u32,
    count: u32,
}

impl HeaderSpan {
    /// Headers whose bytes end at `end`.
    pub(super) fn ending_at(end: usize, headers: &Headers<'_>) -> Self {
        let start = u32::try_from(end - headers.bytes().len()).unwrap_or(u32::MAX);
        Self { start, count: u32::try_from(headers.len()).unwrap_or(u32::MAX) }
    }

    #[cfg(feature = "arrow")]
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.count == 0
    }

    /// The headers.
    #[inline]
    pub(crate) fn of(self, payload: &[u8]) -> Headers<'_> {
        Headers::new(self.count as usize, payload.get(self.start as usize..).unwrap_or_default())
    }
}

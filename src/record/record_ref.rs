//! One record, borrowed from its batch's bytes.

use super::varint;
use crate::error::Malformed;
use crate::types::TimestampType;

/// A record; keys, values and headers are borrowed from the batch's (decompressed) bytes. Kafka: `Record`.
#[derive(Debug, Clone)]
pub struct RecordRef<'a> {
    /// Logical offset, absolute.
    pub offset: i64,
    /// Milliseconds since the epoch; −1 = none.
    pub timestamp: i64,
    /// The meaning of the timestamp.
    pub timestamp_type: TimestampType,
    /// −1 = none.
    pub sequence: i32,
    /// `None` is null, which is not the same as empty.
    pub key: Option<&'a [u8]>,
    /// `None` is null (a tombstone), which is not the same as empty.
    pub value: Option<&'a [u8]>,
    /// In the order in which they are stored, with duplicates.
    pub headers: Headers<'a>,
}

/// The headers of a record, checked when the record was read: name (any bytes) and value (`None` is null).
#[derive(Debug, Clone, Default)]
pub struct Headers<'a> {
    count: usize,
    bytes: &'a [u8],
}

impl<'a> Headers<'a> {
    /// Reads the headers from the start of `bytes`, checks that they are well-formed, and advances it.
    #[inline]
    pub(super) fn take(bytes: &mut &'a [u8]) -> Result<Self, Malformed> {
        let count = varint::read_i32(bytes)?;
        // a header has at least two bytes, so a larger count is invalid
        let count = usize::try_from(count)
            .ok()
            .filter(|count| *count <= bytes.len() / 2)
            .ok_or_else(|| too_many(count, bytes.len()))?;
        let start = *bytes;
        for _ in 0..count {
            take_header(bytes)?;
        }
        Ok(Self { count, bytes: start })
    }

    /// Headers that were checked before: `count` of them, at the start of `bytes`.
    #[inline]
    pub(super) fn new(count: usize, bytes: &'a [u8]) -> Self {
        Self { count, bytes }
    }

    /// The bytes of the headers, and those after them.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The number of headers.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        take_header(&mut self.bytes).ok()
    }
}

fn take_header<'a>(bytes: &mut &'a [u8]) -> Result<(&'a [u8], Option<&'a [u8]>), Malformed> {
    let key = take_sized(bytes)?.ok_or_else(|| Malformed::new("a header name", "null"))?;
    Ok((key, take_sized(bytes)?))
}

/// Reads a length (negative is null) and that many bytes from the start of `bytes`, and advances it.
#[inline]
pub(super) fn take_sized<'a>(bytes: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Malformed> {
    let length = varint::read_i32(bytes)?;
    let Ok(length) = usize::try_from(length) else { return Ok(None) };
    let Some((taken, rest)) = bytes.split_at_checked(length) else { return Err(cut(length, bytes.len())) };
    *bytes = rest;
    Ok(Some(taken))
}

/// Out of line, like similar functions: formatting an error within the code for every record would prevent
/// inlining.
#[cold]
fn cut(length: usize, left: usize) -> Malformed {
    Malformed::new(format!("{length} bytes, as a length says"), format!("{left} left"))
}

#[cold]
fn too_many(count: i32, left: usize) -> Malformed {
    Malformed::new("a count of headers that fits their bytes", format!("{count} in {left} bytes"))
}

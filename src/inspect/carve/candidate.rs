//! Whether a batch may begin at a position, by the fields of its header.

use crate::record::{BatchHeader, Codec, LOG_OVERHEAD, MAX_BATCH_BYTES, PREFIX, V2_HEADER};

/// The number of bytes that are looked at.
pub(super) const HEADER: usize = V2_HEADER;

/// The header at the start of `bytes`, if it may be that of a batch. `available`: bytes up to the end of the
/// image.
#[inline]
pub(super) fn header(bytes: &[u8], available: u64) -> Option<BatchHeader> {
    let number = |at: usize| {
        bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(-1, |number| i32::from_be_bytes(*number))
    };
    // cheap tests first: the parser describes what is wrong
    let magic = *bytes.get(PREFIX - 1)?;
    let smallest = match magic {
        2 if bytes.get(21) == Some(&0) => V2_HEADER - LOG_OVERHEAD,
        0 | 1 => 14,
        _ => return None,
    };
    let length = usize::try_from(number(8)).ok()?;
    let sizes = smallest + LOG_OVERHEAD..=MAX_BATCH_BYTES;
    if !sizes.contains(&(length + LOG_OVERHEAD))
        || length as u64 + LOG_OVERHEAD as u64 > available
        || number(0) < 0
    {
        return None;
    }
    // the checksum, which the caller compares, makes a v2 batch acceptable that has more records than offsets
    let header = BatchHeader::parse_unproven(bytes, available).ok()?;
    let is_possible =
        if header.magic == 2 { is_possible(&header) } else { is_possible_legacy(&header, bytes) };
    is_possible.then_some(header)
}

fn is_possible(header: &BatchHeader) -> bool {
    header.attributes.codec().is_ok()
        && header.attributes.0 & !0x7f == 0
        && header.max_timestamp >= -1
        && header.producer_id >= -1
        && header.producer_epoch >= -1
        && header.base_sequence >= -1
}

/// The lengths of the key and the value of an old message, and its overhead, are its length.
fn is_possible_legacy(header: &BatchHeader, bytes: &[u8]) -> bool {
    let (fields, allowed) = if header.magic == 0 { (PREFIX + 1, 0x07) } else { (PREFIX + 9, 0x0f) };
    let is_codec = matches!(header.codec(), Ok(codec) if codec != Codec::Zstd);
    let number = |at: usize| {
        bytes
            .get(at..)
            .and_then(|bytes| bytes.first_chunk())
            .map(|number| i64::from(i32::from_be_bytes(*number)))
    };
    let Some(key) = number(fields).filter(|key| *key >= -1) else { return false };
    let rest = i64::from(header.size) - i64::try_from(fields + 8).unwrap_or(0) - key.max(0);
    let value = usize::try_from(key.max(0)).ok().and_then(|key| number(fields + 4 + key));
    let is_value = value.map_or(rest >= 0, |value| value >= -1 && value.max(0) == rest);
    is_codec
        && header.attributes.0 & !allowed == 0
        && is_value
        && header.base_offset >= 0
        && header.size as usize > LOG_OVERHEAD
}

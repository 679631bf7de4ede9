//! Formats v0 and v1: single messages, and wrappers whose value is a compressed sequence of messages.
//!
//! They differ in the offsets of the entries in a wrapper: in v0 they are absolute, in v1 relative and
//! counted from zero. In both formats the wrapper's offset is that of its last entry. Kafka:
//! `AbstractLegacyRecordBatch`.

use super::payload::Payload;
use super::record_span::{ByteSpan, HeaderSpan, RecordSpan};
use super::{Attributes, BatchHeader, Codec, LOG_OVERHEAD, PREFIX, codec};
use super::{i32_at, i64_at, u32_at};
use crate::error::Malformed;
use crate::types::TimestampType;

/// The minimum `length` of a v0 entry: CRC, magic, attributes and two sizes.
pub(super) const V0_OVERHEAD: usize = 14;
/// The same for v1, which also has a timestamp.
pub(super) const V1_OVERHEAD: usize = 22;

/// The header of an entry whose magic (0 or 1) and size were checked; `None` if the bytes end inside it.
pub(super) fn header(bytes: &[u8], offset: i64, size: u32) -> Option<BatchHeader> {
    let magic = *bytes.get(PREFIX - 1)?;
    let attributes = Attributes(i16::from(*bytes.get(PREFIX)?));
    Some(BatchHeader {
        magic,
        size,
        base_offset: offset,
        last_offset: offset,
        leader_epoch: -1,
        crc: u32_at(bytes, 12)?,
        attributes,
        base_timestamp: None,
        max_timestamp: if magic == 0 { -1 } else { i64_at(bytes, 18)? },
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        count: None,
    })
}

/// Opens an entry for reading. Returns the header with its actual base offset, the number to add to the
/// offsets of the entries in the payload, and the location of the payload.
pub(super) fn open(
    mut header: BatchHeader,
    bytes: &[u8],
    max_batch_bytes: usize,
    buffer: &mut Vec<u8>,
) -> Result<(BatchHeader, i64, Payload), Malformed> {
    let codec = header.codec()?;
    if codec == Codec::None {
        return Ok((header, 0, Payload::Batch(0)));
    }
    let value = message(bytes)?.value;
    let value = value.ok_or_else(|| Malformed::new("a wrapper with compressed messages", "a null value"))?;
    codec::decompress(codec, header.magic, value, max_batch_bytes, buffer)
        .map_err(|malformed| header.with_offsets(malformed))?;
    let (mut first, mut last, mut at) = (None, 0, 0);
    let mut is_regular = true;
    while let Some(entry) = entry(buffer, at)? {
        if entry.attributes.is_compressed() {
            return Err(Malformed::new("plain messages in a wrapper", "a compressed one"));
        }
        is_regular &= entry.magic < 2 && (first.is_none() || entry.offset > last);
        first.get_or_insert(entry.offset);
        (last, at) = (entry.offset, at + entry.size);
    }
    let first = first.ok_or_else(|| Malformed::new("messages in a wrapper", "none"))?;
    let shift = match header.magic {
        0 => 0,
        // some old producers left the wrapper's offset at zero
        _ if header.last_offset == 0 => 0,
        _ => header.last_offset.checked_sub(last).filter(|shift| *shift >= 0).ok_or_else(|| {
            Malformed::new(
                format!("inner offsets up to {}", header.last_offset),
                format!("inner offset {last}"),
            )
        })?,
    };
    let (first, last) = (first.saturating_add(shift), last.saturating_add(shift));
    if first < 0 || last < 0 || header.last_offset < 0 {
        return Err(Malformed::new(
            format!("inner offsets that end at the wrapper's, {}", header.last_offset),
            format!("offsets {first} to {last}"),
        ));
    }
    if !is_regular || at < buffer.len() || last != header.last_offset && header.last_offset != 0 {
        // read as Kafka reads it, but not if it may be a flipped bit
        header.ensure_valid(bytes)?;
    }
    if header.last_offset == 0 {
        header.last_offset = last;
    }
    header.base_offset = first.min(header.last_offset);
    Ok((header, shift, Payload::Buffer))
}

/// The entry at a position of a wrapper's payload; `None` at the end, or at a part of an entry, which Kafka
/// ignores.
///
/// *Source*: `AbstractLegacyRecordBatch.DataLogInputStream.nextBatch`.
fn entry(payload: &[u8], at: usize) -> Result<Option<Message<'_>>, Malformed> {
    let rest = payload.get(at..).unwrap_or_default();
    let Some(length) = i32_at(rest, 8) else { return Ok(None) };
    let size = usize::try_from(length).ok().filter(|length| *length >= V0_OVERHEAD);
    let Some(size) = size.map(|length| length.saturating_add(LOG_OVERHEAD)) else {
        return Err(Malformed::new(format!("a message of {V0_OVERHEAD} bytes or more"), format!("{length}")));
    };
    if rest.len() < size { Ok(None) } else { message(rest).map(Some) }
}

/// The header of a wrapper with the offsets of the first and the last entry in it. If the entries cannot be
/// read but the checksum is right, it remains as it is: Kafka keeps such a wrapper, and its consumers fail at
/// the records.
pub(super) fn resolved(
    header: &BatchHeader,
    bytes: &[u8],
    max_batch_bytes: usize,
    buffer: &mut Vec<u8>,
) -> Result<BatchHeader, Malformed> {
    match open(*header, bytes, max_batch_bytes, buffer) {
        Ok((header, ..)) => Ok(header),
        Err(malformed) if !malformed.is_too_large() && header.ensure_valid(bytes).is_ok() => Ok(*header),
        Err(malformed) => Err(malformed),
    }
}

/// The record at the position `at` of the payload, and the position after it: an entry of a wrapper's
/// payload, or the entry itself if it is uncompressed. `None` at the end.
pub(super) fn record(
    header: &BatchHeader,
    shift: i64,
    payload: &[u8],
    at: usize,
) -> Result<Option<(RecordSpan, usize)>, Malformed> {
    let Some(entry) = entry(payload, at)? else { return Ok(None) };
    // an entry has the timestamp of its own format, also in a wrapper of v0; only entries of v1 take the
    // wrapper's
    let is_stamped = entry.magic == 1 && header.timestamp_type() == TimestampType::LogAppendTime;
    let timestamp = if is_stamped { header.max_timestamp } else { entry.timestamp };
    let record = RecordSpan {
        offset: entry.offset.saturating_add(shift),
        timestamp,
        key: ByteSpan::ending_at(at + entry.key_end, entry.key),
        value: ByteSpan::ending_at(at + entry.value_end, entry.value),
        headers: HeaderSpan::default(),
    };
    Ok(Some((record, at + entry.size)))
}

/// The fields of one v0 or v1 entry.
struct Message<'a> {
    offset: i64,
    size: usize,
    magic: u8,
    attributes: Attributes,
    timestamp: i64,
    key: Option<&'a [u8]>,
    /// The position after the key.
    key_end: usize,
    value: Option<&'a [u8]>,
    /// The position after the value; Kafka ignores bytes after it.
    value_end: usize,
}

/// The entry at the start of some bytes. Kafka reads any magic above 0 as 1.
///
/// *Source*: `LegacyRecord.key`, `LegacyRecord.value`.
fn message(bytes: &[u8]) -> Result<Message<'_>, Malformed> {
    let torn = || Malformed::new("a whole message", format!("the end after {} bytes", bytes.len()));
    let offset = i64_at(bytes, 0).ok_or_else(torn)?;
    let length = i32_at(bytes, 8).ok_or_else(torn)?;
    let size = usize::try_from(length).map_err(|_| torn())?.saturating_add(LOG_OVERHEAD);
    let bytes = bytes.get(..size).ok_or_else(torn)?;
    let magic = *bytes.get(PREFIX - 1).ok_or_else(torn)?;
    let attributes = Attributes(i16::from(*bytes.get(PREFIX).ok_or_else(torn)?));
    let (timestamp, fields) = match magic {
        0 => (-1, PREFIX + 1),
        _ => (i64_at(bytes, PREFIX + 1).ok_or_else(torn)?, PREFIX + 9),
    };
    let mut rest = bytes.get(fields..).ok_or_else(torn)?;
    let key = take_sized(&mut rest)?;
    let key_end = size - rest.len();
    let value = take_sized(&mut rest)?;
    let value_end = size - rest.len();
    Ok(Message { offset, size, magic, attributes, timestamp, key, key_end, value, value_end })
}

/// Reads a length (i32; negative is null) and that many bytes from the start of `bytes`, and advances it.
fn take_sized<'a>(bytes: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Malformed> {
    let (length, rest) = bytes
        .split_first_chunk()
        .map(|(length, rest)| (i32::from_be_bytes(*length), rest))
        .ok_or_else(|| Malformed::new("a length", format!("{} bytes", bytes.len())))?;
    *bytes = rest;
    let Ok(length) = usize::try_from(length) else { return Ok(None) };
    let (taken, rest) = rest.split_at_checked(length).ok_or_else(|| {
        Malformed::new(format!("{length} bytes, as a length says"), format!("{} left", rest.len()))
    })?;
    *bytes = rest;
    Ok(Some(taken))
}

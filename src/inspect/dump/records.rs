//! The records of a batch as Kafka iterates over them.
//!
//! [`crate::record::Records`] also requires that offsets ascend and stay within the batch. Kafka does not,
//! and the dump shows what Kafka reads.

use super::batch::DumpedBatch;
use super::legacy_message::LegacyMessage;
use crate::error::Malformed;
use crate::record::{
    Codec, Headers, LOG_OVERHEAD, Payload, RecordFields, V2_HEADER, codec, decode_v2, i32_at, i64_at,
};
use crate::types::TimestampType;

/// The smallest length of a message in a wrapper.
const MIN_LENGTH: i32 = 14;

/// A record that is shown.
#[derive(Debug)]
pub(super) struct DumpedRecord<'a> {
    pub(super) offset: i64,
    pub(super) timestamp: i64,
    /// −1: null, in old formats any negative number.
    pub(super) key_size: i32,
    pub(super) value_size: i32,
    /// −1: none.
    pub(super) sequence: i32,
    pub(super) headers: Headers<'a>,
    /// Key and value of a batch of magic 2.
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    /// The message of an older batch.
    pub(super) message: Option<LegacyMessage<'a>>,
}

impl<'a> DumpedRecord<'a> {
    /// The key; `None` is null.
    ///
    /// # Errors
    /// [`Malformed`] if it is not within its message, of magic 0 or 1.
    pub(super) fn key(&self) -> Result<Option<&'a [u8]>, Malformed> {
        self.message.map_or(Ok(self.key), LegacyMessage::key)
    }

    /// The value; `None` is null.
    ///
    /// # Errors
    /// As [`DumpedRecord::key`].
    pub(super) fn value(&self) -> Result<Option<&'a [u8]>, Malformed> {
        self.message.map_or(Ok(self.value), LegacyMessage::value)
    }
}

/// An iterator over the records of one batch. The bytes are passed to each step, as in
/// [`crate::record::Records`].
///
/// Kafka: `DefaultRecordBatch.iterator`, `AbstractLegacyRecordBatch.iterator`.
#[derive(Debug)]
pub(super) struct BatchRecords {
    batch: DumpedBatch,
    payload: Payload,
    /// The position of the next record in the payload.
    position: usize,
    /// The number of records that are still to come; for a wrapper, of messages that were found in it.
    left: u32,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A batch of magic 2.
    Batch,
    /// A message that is not compressed.
    Message,
    /// A wrapper of messages. `shift`: to be added to their offsets.
    Wrapper { shift: i64 },
}

impl BatchRecords {
    /// Starts the iteration. `buffer` receives the records of a compressed batch, which are checked at once,
    /// as in Kafka: one that is malformed hides those before it. Records that are not compressed are
    /// checked one by one.
    ///
    /// # Errors
    /// [`Malformed`], which is no damage for more than `max_batch_bytes`.
    pub(super) fn open(
        batch: DumpedBatch,
        bytes: &[u8],
        max_batch_bytes: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<Self, Malformed> {
        if !batch.is_v2() {
            return Self::open_legacy(batch, bytes, max_batch_bytes, buffer);
        }
        if bytes.len() < V2_HEADER {
            return Err(Malformed::new(
                format!("a batch of {V2_HEADER} bytes or more"),
                format!("{}", bytes.len()),
            ));
        }
        let count = batch.header.count.unwrap_or(0);
        let records = |payload, left| Self { batch, payload, position: 0, left, kind: Kind::Batch };
        if count == 0 {
            return Ok(records(Payload::Batch(bytes.len()), 0));
        }
        let codec = batch.header.attributes.codec()?;
        let left = u32::try_from(count)
            .map_err(|_| Malformed::new("a count of records from 0 up", format!("count {count}")))?;
        if codec == Codec::None {
            return Ok(records(Payload::Batch(V2_HEADER), left));
        }
        let stream = bytes.get(V2_HEADER..).unwrap_or_default();
        codec::decompress(codec, 2, stream, max_batch_bytes, buffer)?;
        let mut checked = records(Payload::Buffer, left);
        while checked.next_fields(buffer)?.is_some() {}
        Ok(records(Payload::Buffer, left))
    }

    fn open_legacy(
        batch: DumpedBatch,
        bytes: &[u8],
        max_batch_bytes: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<Self, Malformed> {
        let message = LegacyMessage::of_entry(bytes);
        let codec = message.attributes().codec()?;
        let records = |payload, left, kind| Self { batch, payload, position: 0, left, kind };
        if codec == Codec::None {
            return Ok(records(Payload::Batch(0), 1, Kind::Message));
        }
        if codec == Codec::Zstd {
            return Err(Malformed::new(
                "a codec of the old formats",
                format!("zstd in magic {}", batch.place.magic),
            ));
        }
        let value = message.value()?;
        let value =
            value.ok_or_else(|| Malformed::new("a wrapper with compressed messages", "a null value"))?;
        codec::decompress(codec, batch.header.magic, value, max_batch_bytes, buffer)?;
        let (count, last_offset) = count_messages(buffer)?;
        let shift =
            if batch.place.magic == 1 { shift_of_wrapper(batch.place.offset, last_offset)? } else { 0 };
        Ok(records(Payload::Buffer, count, Kind::Wrapper { shift }))
    }

    /// The location of the payload.
    pub(super) fn payload(&self) -> Payload {
        self.payload
    }

    /// The batch.
    pub(super) fn batch(&self) -> &DumpedBatch {
        &self.batch
    }

    /// The next record; `None` after the last.
    ///
    /// # Errors
    /// [`Malformed`] if it cannot be read, and for bytes after the last record of a batch of magic 2.
    pub(super) fn next<'a>(&mut self, payload: &'a [u8]) -> Result<Option<DumpedRecord<'a>>, Malformed> {
        match self.kind {
            Kind::Batch => Ok(self.next_fields(payload)?.map(|fields| self.record(&fields, payload))),
            Kind::Message | Kind::Wrapper { .. } => self.next_message(payload),
        }
    }

    fn next_fields(&mut self, payload: &[u8]) -> Result<Option<RecordFields>, Malformed> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        let fields = decode_v2(payload, self.position)?;
        if left == 0 && fields.end != payload.len() {
            let found = format!("{} bytes more", payload.len() - fields.end);
            return Err(Malformed::new("the end of the batch after its last record", found));
        }
        (self.left, self.position) = (left, fields.end);
        Ok(Some(fields))
    }

    fn record<'a>(&self, fields: &RecordFields, payload: &'a [u8]) -> DumpedRecord<'a> {
        let header = &self.batch.header;
        let timestamp = match header.timestamp_type() {
            TimestampType::LogAppendTime => header.max_timestamp,
            _ => header.base_timestamp.unwrap_or(-1).wrapping_add(fields.timestamp_delta),
        };
        DumpedRecord {
            offset: header.base_offset.wrapping_add(i64::from(fields.offset_delta)),
            timestamp,
            key_size: fields.key.size(),
            value_size: fields.value.size(),
            sequence: header.sequence_at(i64::from(fields.offset_delta)),
            headers: fields.headers.of(payload),
            key: fields.key.of(payload),
            value: fields.value.of(payload),
            message: None,
        }
    }

    fn next_message<'a>(&mut self, payload: &'a [u8]) -> Result<Option<DumpedRecord<'a>>, Malformed> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        let rest = payload.get(self.position..).unwrap_or_default();
        let Some((offset, entry)) = entry(rest)? else { return Ok(None) };
        let message = LegacyMessage::of_entry(entry);
        let mut timestamp = message.timestamp();
        let mut shifted = offset;
        if let Kind::Wrapper { shift } = self.kind {
            if message.attributes().codec()? != Codec::None {
                return Err(Malformed::new("plain messages in a wrapper", "a compressed one"));
            }
            shifted = offset.wrapping_add(shift);
            // only messages of magic 1 take the time at which the wrapper was appended
            if message.magic() == 1 && self.batch.header.timestamp_type() == TimestampType::LogAppendTime {
                timestamp = Ok(self.batch.header.max_timestamp);
            }
        }
        let record = DumpedRecord {
            offset: shifted,
            timestamp: timestamp?,
            key_size: message.key_size()?,
            value_size: message.value_size()?,
            sequence: -1,
            headers: Headers::default(),
            key: None,
            value: None,
            message: Some(message),
        };
        (self.left, self.position) = (left, self.position + entry.len());
        Ok(Some(record))
    }
}

/// The entry at the start of the bytes, and its offset; `None` if they do not contain a whole one. Source:
/// `AbstractLegacyRecordBatch.DataLogInputStream`.
fn entry(bytes: &[u8]) -> Result<Option<(i64, &[u8])>, Malformed> {
    let Some((offset, length)) = i64_at(bytes, 0).zip(i32_at(bytes, 8)) else { return Ok(None) };
    if length < MIN_LENGTH {
        return Err(Malformed::new(format!("a length of {MIN_LENGTH} or above"), format!("length {length}")));
    }
    let size = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(LOG_OVERHEAD);
    Ok(bytes.get(..size).map(|entry| (offset, entry)))
}

/// The number of messages in a wrapper, and the offset of the last one.
fn count_messages(payload: &[u8]) -> Result<(u32, i64), Malformed> {
    let (mut count, mut last_offset, mut rest) = (0, 0, payload);
    while let Some((offset, entry)) = entry(rest)? {
        (count, last_offset) = (count + 1, offset);
        rest = rest.get(entry.len()..).unwrap_or_default();
    }
    if count == 0 { Err(Malformed::new("messages in a wrapper", "none")) } else { Ok((count, last_offset)) }
}

/// The number that makes the offset of the last message of a wrapper of magic 1 that of the wrapper. Some old
/// producers left the wrapper's offset at zero.
fn shift_of_wrapper(wrapper_offset: i64, last_offset: i64) -> Result<i64, Malformed> {
    if wrapper_offset == 0 {
        return Ok(0);
    }
    if wrapper_offset < last_offset {
        let expected = format!("inner offsets up to {wrapper_offset}, the wrapper's");
        return Err(Malformed::new(expected, format!("offset {last_offset}")));
    }
    Ok(wrapper_offset.wrapping_sub(last_offset))
}

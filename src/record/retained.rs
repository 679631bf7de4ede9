//! Batches from which compaction removes records. Kafka: `MemoryRecords.filterTo`,
//! `buildRetainedRecordsInto`.

use super::attributes::{APPEND_TIME, CONTROL, DELETE_HORIZON, TRANSACTIONAL};
use super::builder::{as_i64, size_of_sized, write_header, write_sized};
use super::{Attributes, BatchHeader, MAX_BATCH_BYTES, RecordRef, V2_HEADER, codec, seal, varint};
use crate::error::{Error, Result, SizeLimit};
use crate::types::TimestampType;

/// Rebuilds batches from the records that remain.
#[derive(Debug, Default)]
pub(crate) struct BatchRewriter {
    plain: Vec<u8>,
}

impl BatchRewriter {
    /// Appends to `out` a batch of `records`, which are some records of the batch with `header`, at least
    /// one. It has the same offsets, sequences, producer, epoch and codec (at its default level); the
    /// base and the last offset, and so the last sequence, remain even if the records there do not. A
    /// batch of an old format becomes one of magic 2, with the offsets of its records. `delete_horizon`:
    /// ms since the epoch, if the new batch has one.
    ///
    /// Kafka decodes the names of headers and encodes them again, which changes a name that is not UTF-8.
    /// Here they are copied.
    ///
    /// # Errors
    /// [`Error::RecordTooLarge`] for a batch above [`MAX_BATCH_BYTES`]; [`Error::Config`] if the codec
    /// refuses.
    pub(crate) fn rebuild(
        &mut self,
        header: &BatchHeader,
        records: &[RecordRef<'_>],
        delete_horizon: Option<i64>,
        out: &mut Vec<u8>,
    ) -> Result<BatchHeader> {
        let (Some(first), Some(last)) = (records.first(), records.last()) else {
            return Err(Error::config("records", "at least one", "none"));
        };
        let (base_offset, last_offset) = match header.magic {
            2 => (header.base_offset, header.last_offset),
            _ => (first.offset, last.offset),
        };
        let delete_horizon = delete_horizon.filter(|horizon| *horizon >= 0);
        let base_timestamp = delete_horizon.unwrap_or(first.timestamp);
        let codec = header.codec().map_err(|found| Error::config("batch", found.expected, found.found))?;
        self.plain.clear();
        for record in records {
            let body = Body {
                timestamp_delta: record.timestamp.wrapping_sub(base_timestamp),
                offset_delta: record.offset - base_offset,
                record,
            };
            body.write(&mut self.plain);
        }
        let start = out.len();
        out.resize(start + V2_HEADER, 0);
        codec::compress(codec, None, &self.plain, out).inspect_err(|_| out.truncate(start))?;
        let largest = records.iter().map(|record| record.timestamp).max().unwrap_or(-1).max(-1);
        let is_append_time = header.timestamp_type() == TimestampType::LogAppendTime;
        let rebuilt = BatchHeader {
            base_offset,
            last_offset,
            attributes: Attributes(
                kept_attributes(header)
                    | codec.id()
                    | if delete_horizon.is_some() { DELETE_HORIZON } else { 0 },
            ),
            base_timestamp: Some(base_timestamp),
            max_timestamp: if is_append_time { header.max_timestamp } else { largest },
            count: i32::try_from(records.len()).ok(),
            ..*header
        };
        complete(rebuilt, start, out)
    }
}

/// Appends to `out` the batch with `header` without its records: 61 bytes, which keep its offsets, sequences
/// and producer. The delete horizon is dropped.
///
/// *Source*: `DefaultRecordBatch.writeEmptyHeader`.
pub(crate) fn write_empty_batch(header: &BatchHeader, out: &mut Vec<u8>) -> Result<BatchHeader> {
    let start = out.len();
    out.resize(start + V2_HEADER, 0);
    let empty = BatchHeader {
        attributes: Attributes(kept_attributes(header)),
        base_timestamp: Some(-1),
        count: Some(0),
        ..*header
    };
    complete(empty, start, out)
}

/// The timestamp type and the flags; in an old format the flags have other meanings.
fn kept_attributes(header: &BatchHeader) -> i16 {
    let mask = match header.magic {
        0 => 0,
        1 => APPEND_TIME,
        _ => APPEND_TIME | TRANSACTIONAL | CONTROL,
    };
    header.attributes.0 & mask
}

/// Writes the header of the batch that begins at `start` and ends with `out`.
fn complete(header: BatchHeader, start: usize, out: &mut Vec<u8>) -> Result<BatchHeader> {
    let size = out.len() - start;
    let span = i32::try_from(header.last_offset - header.base_offset);
    let (Ok(span), Some(size)) = (span, u32::try_from(size).ok().filter(|_| size <= MAX_BATCH_BYTES)) else {
        out.truncate(start);
        let found = format!("{size} bytes, offsets {} to {}", header.base_offset, header.last_offset);
        return Err(Error::RecordTooLarge {
            limit: SizeLimit::Readable,
            max_bytes: MAX_BATCH_BYTES as u64,
            found,
        });
    };
    let mut header = BatchHeader { magic: 2, size, crc: 0, ..header };
    let batch = out.get_mut(start..).unwrap_or_default();
    write_header(batch, &header, span, header.base_timestamp.unwrap_or(-1), header.count.unwrap_or(0));
    header.crc = seal(batch);
    Ok(header)
}

/// A record as it is written.
struct Body<'a> {
    timestamp_delta: i64,
    offset_delta: i64,
    record: &'a RecordRef<'a>,
}

impl Body<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let Self { timestamp_delta, offset_delta, record } = self;
        let headers = record.headers.clone();
        let of_headers: usize =
            headers.clone().map(|(name, value)| size_of_sized(Some(name)) + size_of_sized(value)).sum();
        let body = 1
            + varint::size(*timestamp_delta)
            + varint::size(*offset_delta)
            + size_of_sized(record.key)
            + size_of_sized(record.value)
            + varint::size(as_i64(headers.len()))
            + of_headers;
        varint::write(out, as_i64(body));
        out.push(0);
        varint::write(out, *timestamp_delta);
        varint::write(out, *offset_delta);
        write_sized(out, record.key);
        write_sized(out, record.value);
        varint::write(out, as_i64(headers.len()));
        for (name, value) in headers {
            write_sized(out, Some(name));
            write_sized(out, value);
        }
    }
}

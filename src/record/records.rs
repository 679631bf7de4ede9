//! An iterator over the records of one batch.

use super::payload::Payload;
use super::record_ref::{Headers, RecordRef, take_sized};
use super::{BatchHeader, Codec, V2_HEADER, codec, legacy, varint};
use crate::error::Malformed;
use crate::types::TimestampType;

/// Iterates over a batch's records. It stores its position but not the bytes: the caller passes them at each step, so that
/// the iteration can pause and the buffers can be owned elsewhere.
///
/// Kafka: `DefaultRecordBatch.iterator`, `AbstractLegacyRecordBatch.DeepRecordsIterator`.
#[derive(Debug)]
pub struct Records {
    header: BatchHeader,
    /// The position of the next record in the payload.
    position: usize,
    /// v2: the number of records returned. v0 and v1: the number to add to an inner offset.
    returned_or_shift: i64,
    /// The offset of the last record returned; before the first, one below the base offset.
    previous: i64,
}

impl Records {
    /// Starts the iteration: decompresses a compressed batch into `buffer` and returns the location of the payload. The caller
    /// verifies the checksum first ([`BatchHeader::ensure_valid`]).
    ///
    /// # Errors
    /// [`Malformed`] for a codec that is unknown or not compiled in, a damaged compressed stream, or a stream of more bytes than
    /// [`MAX_DECOMPRESSED_BYTES`](super::MAX_DECOMPRESSED_BYTES).
    pub fn open(
        header: BatchHeader,
        bytes: &[u8],
        buffer: &mut Vec<u8>,
    ) -> Result<(Self, Payload), Malformed> {
        if header.magic < 2 {
            let (header, shift, payload) = legacy::open(header, bytes, buffer)?;
            return Ok((
                Self { header, position: 0, returned_or_shift: shift, previous: header.base_offset - 1 },
                payload,
            ));
        }
        let payload = match header.codec()? {
            Codec::None => Payload::Batch(V2_HEADER),
            // an empty batch has no compressed stream
            _ if bytes.len() == V2_HEADER && header.count == Some(0) => Payload::Batch(V2_HEADER),
            codec => {
                codec::decompress(codec, header.magic, bytes.get(V2_HEADER..).unwrap_or_default(), buffer)?;
                Payload::Buffer
            }
        };
        Ok((Self { header, position: 0, returned_or_shift: 0, previous: header.base_offset - 1 }, payload))
    }

    /// The batch's header, with its actual base offset.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The lowest offset that the next record may have.
    pub fn expected_offset(&self) -> i64 {
        self.previous + 1
    }

    /// The next record, or `None` after the last. `payload` are the bytes selected by the [`Payload`].
    ///
    /// # Errors
    /// [`Malformed`] if a record breaks the format, its offset is outside the batch or not above the previous one, or
    /// the records do not end at the end of the payload.
    #[inline]
    pub fn next<'a>(&mut self, payload: &'a [u8]) -> Result<Option<RecordRef<'a>>, Malformed> {
        let rest = payload.get(self.position..).unwrap_or_default();
        let (record, used) = if self.header.magic == 2 {
            if i64::from(self.header.count.unwrap_or(0)) == self.returned_or_shift {
                if rest.is_empty() {
                    return Ok(None);
                }
                return Err(self.bytes_after_last(rest.len()));
            }
            self.returned_or_shift += 1;
            record_v2(&self.header, rest)?
        } else {
            if rest.is_empty() {
                return Ok(None);
            }
            legacy::record(&self.header, self.returned_or_shift, rest)?
        };
        if record.offset <= self.previous || record.offset > self.header.last_offset {
            return Err(self.out_of_place(record.offset));
        }
        self.previous = record.offset;
        self.position += used;
        Ok(Some(record))
    }

    #[cold]
    fn bytes_after_last(&self, left: usize) -> Malformed {
        let expected = format!("the end of the batch after {} records", self.returned_or_shift);
        Malformed::new(expected, format!("{left} bytes more"))
    }

    #[cold]
    fn out_of_place(&self, offset: i64) -> Malformed {
        let expected =
            format!("records with ascending offsets up to {}, the batch's last", self.header.last_offset);
        Malformed::new(expected, format!("offset {offset} after {}", self.previous))
    }
}

#[inline]
fn record_v2<'a>(header: &BatchHeader, bytes: &'a [u8]) -> Result<(RecordRef<'a>, usize), Malformed> {
    let mut rest = bytes;
    let body = take_sized(&mut rest)?
        .ok_or_else(|| Malformed::new("the length of a record", "a negative length"))?;
    let used = bytes.len() - rest.len();
    let mut body = body;
    let Some((_attributes, after)) = body.split_first() else {
        return Err(Malformed::new("a record", "an empty record"));
    };
    body = after;
    let timestamp_delta = varint::read_i64(&mut body)?;
    let offset_delta = varint::read_i32(&mut body)?;
    let key = take_sized(&mut body)?;
    let value = take_sized(&mut body)?;
    let headers = Headers::take(&mut body)?;
    if !body.is_empty() {
        return Err(bytes_after_headers(body.len()));
    }
    let timestamp_type = header.attributes.timestamp_type();
    let timestamp = if timestamp_type == TimestampType::LogAppendTime {
        header.max_timestamp
    } else {
        // Java's addition wraps, and a delta is relative to the delete horizon if there is one
        header.base_timestamp.unwrap_or(-1).wrapping_add(timestamp_delta)
    };
    let record = RecordRef {
        offset: header.base_offset.saturating_add(i64::from(offset_delta)),
        timestamp,
        timestamp_type,
        sequence: header.sequence_at(i64::from(offset_delta)),
        key,
        value,
        headers,
    };
    Ok((record, used))
}

#[cold]
fn bytes_after_headers(left: usize) -> Malformed {
    Malformed::new("the end of the record after its headers", format!("{left} bytes more"))
}

//! An iterator over the records of one batch.

use super::payload::Payload;
use super::record_ref::RecordRef;
use super::record_span::RecordSpan;
use super::record_v2::RecordFields;
use super::{BatchHeader, Codec, MAX_BATCH_BYTES, V2_HEADER, codec, legacy, record_v2};
use crate::error::Malformed;
use crate::types::TimestampType;

/// Iterates over a batch's records. It stores its position but not the bytes: the caller passes them at each
/// step, so that the iteration can pause and the buffers can be owned elsewhere.
///
/// Kafka: `DefaultRecordBatch.iterator`, `AbstractLegacyRecordBatch.DeepRecordsIterator`.
#[derive(Debug)]
pub struct Records {
    header: BatchHeader,
    /// The position of the next record in the payload.
    position: usize,
    /// v2: the number of records decoded. v0 and v1: the number to add to an inner offset.
    returned_or_shift: i64,
    /// The offset of the last record returned; before the first, one below the base offset.
    previous: i64,
    /// The offset of the first record so far that is not above the one before it, or above the last offset
    /// of the batch.
    out_of_place: Option<i64>,
    /// What to do with such a record.
    on_out_of_place: OnOutOfPlace,
}

/// What to do with a record whose offset is not above the one before it, or above the last offset of the
/// batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnOutOfPlace {
    /// Leave out the first kind, as a consumer does.
    LeaveOut,
    Return,
    Refuse,
}

impl Records {
    /// Starts the iteration: decompresses a compressed batch into `buffer` and returns the location of the
    /// payload. The caller verifies the checksum first ([`BatchHeader::ensure_valid`]).
    ///
    /// # Errors
    /// [`Malformed`] for a codec that is unknown or not compiled in, a damaged compressed stream, or a stream
    /// of more bytes than [`MAX_BATCH_BYTES`].
    pub fn open(
        header: BatchHeader,
        bytes: &[u8],
        buffer: &mut Vec<u8>,
    ) -> Result<(Self, Payload), Malformed> {
        Self::open_up_to(MAX_BATCH_BYTES, header, bytes, buffer)
    }

    /// [`Records::open`] with another limit on the bytes of the decompressed records.
    ///
    /// # Errors
    /// As [`Records::open`].
    pub fn open_up_to(
        max_batch_bytes: usize,
        header: BatchHeader,
        bytes: &[u8],
        buffer: &mut Vec<u8>,
    ) -> Result<(Self, Payload), Malformed> {
        if header.magic < 2 {
            let (header, shift, payload) = legacy::open(header, bytes, max_batch_bytes, buffer)?;
            return Ok((
                Self {
                    header,
                    position: 0,
                    returned_or_shift: shift,
                    previous: header.base_offset - 1,
                    out_of_place: None,
                    on_out_of_place: OnOutOfPlace::LeaveOut,
                },
                payload,
            ));
        }
        if let Some(count) = header.count.filter(|count| *count < 0) {
            return Err(Malformed::new("a count of records from 0 up", format!("{count} records")));
        }
        let payload = match header.codec()? {
            Codec::None => Payload::Batch(V2_HEADER),
            // an empty batch has no compressed stream
            _ if bytes.len() == V2_HEADER && header.count == Some(0) => Payload::Batch(V2_HEADER),
            codec => {
                let stream = bytes.get(V2_HEADER..).unwrap_or_default();
                codec::decompress(codec, header.magic, stream, max_batch_bytes, buffer)
                    .map_err(|malformed| header.with_offsets(malformed))?;
                Payload::Buffer
            }
        };
        let previous = header.base_offset - 1;
        Ok((
            Self {
                header,
                position: 0,
                returned_or_shift: 0,
                previous,
                out_of_place: None,
                on_out_of_place: OnOutOfPlace::LeaveOut,
            },
            payload,
        ))
    }

    /// Whether the records of an uncompressed v2 batch have ascending offsets that the header covers, so that
    /// their number is the header's. A broker checks this only in compressed batches. *Cost*: reads the
    /// start of each record.
    #[cfg(any(feature = "inspect", feature = "plan"))]
    pub(crate) fn are_in_place(header: &BatchHeader, bytes: &[u8]) -> bool {
        let payload = bytes.get(V2_HEADER..).unwrap_or_default();
        let (mut at, mut previous) = (0, -1);
        for _ in 0..header.count.unwrap_or(0) {
            let Some(record) = record_v2::deltas(payload, at) else { return false };
            if record.offset_delta <= previous {
                return false;
            }
            (at, previous) = (record.end, record.offset_delta);
        }
        at == payload.len() && i64::from(previous) < header.offsets()
    }

    /// The timestamp of the only record of an uncompressed v2 batch with create times, ms; `None` for another
    /// batch, and if the header does not cover the record's offset. *Cost*: reads the start of the
    /// record.
    #[cfg(any(feature = "inspect", feature = "plan"))]
    pub(crate) fn only_timestamp(header: &BatchHeader, bytes: &[u8]) -> Option<i64> {
        let is_such = header.magic == 2 && header.count == Some(1) && !header.attributes.is_compressed();
        let payload = bytes.get(V2_HEADER..).filter(|_| is_such)?;
        let record = record_v2::deltas(payload, 0)?;
        let is_in_place = (0..header.offsets()).contains(&i64::from(record.offset_delta));
        let timestamp = create_time(header, record.timestamp_delta);
        (is_in_place && record.end == payload.len()).then_some(timestamp)
    }

    /// The batch's header, with its actual base offset.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The lowest offset that the next record may have.
    pub fn expected_offset(&self) -> i64 {
        self.previous + 1
    }

    /// The offset of the first record so far that is not above the one before it, or above the last offset of
    /// the batch; `None` if there is none. Brokers accept such records from a producer.
    pub fn out_of_place(&self) -> Option<i64> {
        self.out_of_place
    }

    /// Leaves out records up to an offset, which were read from a batch before this one.
    pub(crate) fn leave_out_up_to(&mut self, offset: i64) {
        self.previous = self.previous.max(offset);
    }

    /// Makes a record out of place an error, for a batch whose checksum was not verified: a flipped bit must
    /// not leave out a record.
    pub(crate) fn refuse_out_of_place(&mut self) {
        self.on_out_of_place = OnOutOfPlace::Refuse;
    }

    /// Returns also the records whose offsets are not above those before them, as Kafka's cleaner sees them.
    pub(crate) fn keep_out_of_place(&mut self) {
        self.on_out_of_place = OnOutOfPlace::Return;
    }

    /// The next record, or `None` after the last. `payload` are the bytes selected by the [`Payload`]. A
    /// record whose offset is not above that of the record before it is left out, as Kafka's consumer
    /// does. One above the last offset of the batch is returned.
    ///
    /// *Source*: `CompletedFetch.nextFetchedRecord`.
    ///
    /// # Errors
    /// [`Malformed`] if a record breaks the format, or the records do not end at the end of the payload.
    #[inline]
    pub fn next<'a>(&mut self, payload: &'a [u8]) -> Result<Option<RecordRef<'a>>, Malformed> {
        let Some(span) = self.next_span(payload, record_v2::decode)? else { return Ok(None) };
        Ok(Some(RecordRef {
            offset: span.offset,
            timestamp: span.timestamp,
            timestamp_type: self.header.timestamp_type(),
            sequence: self.header.sequence_at(span.offset - self.header.base_offset),
            key: span.key.of(payload),
            value: span.value.of(payload),
            headers: span.headers.of(payload),
        }))
    }

    /// Replaces `spans` by the next records, at most `max` of them. False after the last record of the batch.
    /// `passed` is called with the position of each of them in the payload, but for unusual ones.
    ///
    /// # Errors
    /// As [`Records::next`], for the first record of the call. A later record with an error ends the call
    /// without it, and the next call returns the error.
    #[cfg(feature = "arrow")]
    pub(crate) fn next_spans(
        &mut self,
        payload: &[u8],
        max: usize,
        spans: &mut Vec<RecordSpan>,
        mut passed: impl FnMut(usize),
    ) -> Result<bool, Malformed> {
        spans.clear();
        spans.reserve(max);
        while spans.len() < max {
            if self.header.magic == 2 {
                self.short_spans(payload, max, spans, &mut passed);
                if spans.len() == max {
                    break;
                }
            }
            match self.next_span(payload, record_v2::checked) {
                Ok(Some(span)) => spans.push(span),
                Ok(None) => return Ok(false),
                Err(malformed) if spans.is_empty() => return Err(malformed),
                Err(_) => return Ok(true),
            }
        }
        Ok(true)
    }

    /// Decodes records up to the first one that [`record_v2::short`] does not decode, or that is not in its
    /// place, and up to the last. The state of the iteration stays in registers.
    #[cfg(feature = "arrow")]
    fn short_spans(
        &mut self,
        payload: &[u8],
        max: usize,
        spans: &mut Vec<RecordSpan>,
        passed: &mut impl FnMut(usize),
    ) {
        let header = self.header;
        let left = i64::from(header.count.unwrap_or(0)) - self.returned_or_shift;
        let left = usize::try_from(left).unwrap_or(0).min(max - spans.len());
        let (mut position, mut previous, before) = (self.position, self.previous, spans.len());
        for _ in 0..left {
            let Some(fields) = record_v2::short(payload, position) else { break };
            let span = span_v2(&header, &fields);
            if span.offset <= previous || span.offset > header.last_offset {
                break;
            }
            passed(position);
            (position, previous) = (fields.end, span.offset);
            spans.push(span);
        }
        (self.position, self.previous) = (position, previous);
        self.returned_or_shift += i64::try_from(spans.len() - before).unwrap_or(0);
    }

    /// `decode`: decodes a record of magic 2.
    #[inline]
    fn next_span(
        &mut self,
        payload: &[u8],
        decode: impl Fn(&[u8], usize) -> Result<RecordFields, Malformed>,
    ) -> Result<Option<RecordSpan>, Malformed> {
        loop {
            let (span, end) = if self.header.magic == 2 {
                if i64::from(self.header.count.unwrap_or(0)) == self.returned_or_shift {
                    return match payload.len().saturating_sub(self.position) {
                        0 => Ok(None),
                        left => Err(self.bytes_after_last(left)),
                    };
                }
                let fields = decode(payload, self.position)?;
                (span_v2(&self.header, &fields), fields.end)
            } else {
                let record = legacy::record(&self.header, self.returned_or_shift, payload, self.position)?;
                let Some(record) = record else { return Ok(None) };
                record
            };
            let is_next = span.offset > self.previous;
            if !is_next || span.offset > self.header.last_offset {
                if self.on_out_of_place == OnOutOfPlace::Refuse {
                    return Err(self.refused(span.offset));
                }
                self.out_of_place.get_or_insert(span.offset);
            }
            self.returned_or_shift += i64::from(self.header.magic == 2);
            self.position = end;
            if is_next || self.on_out_of_place == OnOutOfPlace::Return {
                self.previous = span.offset;
                return Ok(Some(span));
            }
        }
    }

    #[cold]
    fn bytes_after_last(&self, left: usize) -> Malformed {
        let expected = format!("the end of the batch after {} records", self.returned_or_shift);
        Malformed::new(expected, format!("{left} bytes more"))
    }

    #[cold]
    fn refused(&self, offset: i64) -> Malformed {
        let expected = format!(
            "records with ascending offsets up to {}, the batch's last (if the checksum is not verified)",
            self.header.last_offset
        );
        Malformed::new(expected, format!("offset {offset} after {}", self.previous))
    }
}

#[inline]
fn span_v2(header: &BatchHeader, fields: &RecordFields) -> RecordSpan {
    let timestamp = if header.attributes.timestamp_type() == TimestampType::LogAppendTime {
        header.max_timestamp
    } else {
        create_time(header, fields.timestamp_delta)
    };
    RecordSpan {
        offset: header.base_offset.saturating_add(i64::from(fields.offset_delta)),
        timestamp,
        key: fields.key,
        value: fields.value,
        headers: fields.headers,
    }
}

/// Java's addition wraps, and a delta is relative to the delete horizon if there is one.
#[inline]
fn create_time(header: &BatchHeader, timestamp_delta: i64) -> i64 {
    header.base_timestamp.unwrap_or(-1).wrapping_add(timestamp_delta)
}

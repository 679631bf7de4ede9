//! Builds a v2 batch, record by record, in one buffer that is reused.
//!
//! ```text
//! ┌──────────── 61 bytes, reserved ─────────────┬──────────┬──────────┬───
//! │ the header, written when the batch is done  │ record 0 │ record 1 │ …
//! └─────────────────────────────────────────────┴──────────┴──────────┴───
//! ```
//!
//! A record's bytes are written once, in place, and the checksum reads them once. Of the header's fields only
//! the base timestamp must be known before the records: it is the first record's timestamp, and the others
//! are relative to it.
//!
//! Kafka: `MemoryRecordsBuilder`, `DefaultRecord.writeTo`, `DefaultRecordBatch.writeHeader`.

use super::attributes::{CONTROL, TRANSACTIONAL};
use super::{Attributes, BatchHeader, Codec, MAX_BATCH_BYTES, V2_HEADER, codec, put, seal, varint};
use crate::error::{Error, Result, SizeLimit};
use crate::types::TimestampType;

/// A record to be written, borrowed.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewRecord<'a> {
    /// Milliseconds since the epoch; −1 = none.
    pub timestamp: i64,
    /// `None` is null, which is not the same as empty.
    pub key: Option<&'a [u8]>,
    /// `None` is null (a tombstone), which is not the same as empty.
    pub value: Option<&'a [u8]>,
    /// Names (UTF-8) and values, in order; duplicates are kept.
    pub headers: &'a [(&'a [u8], Option<&'a [u8]>)],
}

impl NewRecord<'_> {
    /// Checks what the format requires of every record.
    ///
    /// # Errors
    /// [`Error::Config`] for a negative timestamp other than −1 and a header name that is not UTF-8.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.timestamp < -1 {
            return Err(negative(self.timestamp));
        }
        if !self.headers.is_empty() {
            check_names(self.headers)?;
        }
        Ok(())
    }
}

/// The fields of a batch that are not derived from its records.
#[derive(Debug, Clone, Copy)]
pub struct BatchOptions {
    /// The offset of its first record.
    pub base_offset: i64,
    /// −1 if there is none.
    pub leader_epoch: i32,
    /// How the records are compressed.
    pub codec: Codec,
    /// The codec's level; `None` is Kafka's default.
    pub level: Option<i32>,
    /// [`TimestampType::LogAppendTime`]: readers see `log_append_time` instead of each record's timestamp.
    pub timestamp_type: TimestampType,
    /// Milliseconds since the epoch; used only with [`TimestampType::LogAppendTime`].
    pub log_append_time: i64,
}

/// The producer of a batch, and the kind of the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchProducer {
    /// −1 if there is none.
    pub producer_id: i64,
    /// −1 if there is none.
    pub producer_epoch: i16,
    /// The sequence of its first record; −1 if it has none.
    pub base_sequence: i32,
    /// Whether the batch is in a transaction.
    pub is_transactional: bool,
    /// Whether its records are control records.
    pub is_control: bool,
}

impl BatchProducer {
    /// No producer.
    pub const NONE: Self = Self {
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        is_transactional: false,
        is_control: false,
    };

    fn attributes(self) -> i16 {
        let transactional = if self.is_transactional { TRANSACTIONAL } else { 0 };
        transactional | if self.is_control { CONTROL } else { 0 }
    }
}

/// Builds v2 batches, one after another. It reuses its buffers, so that it allocates nothing once they are
/// large enough, except in a codec.
///
/// ```
/// use cordwood::record::{BatchBuilder, BatchHeader, BatchOptions, Codec, NewRecord};
/// use cordwood::types::TimestampType;
///
/// # fn main() -> cordwood::Result<()> {
/// let mut builder = BatchBuilder::new();
/// builder.append(&NewRecord { timestamp: 1000, key: Some(b"k"), value: Some(b"v"), headers: &[] })?;
/// assert_eq!((builder.count(), builder.size()), (1, 70));
///
/// let mut bytes = Vec::new();
/// let options = BatchOptions {
///     base_offset: 7,
///     leader_epoch: 0,
///     codec: Codec::None,
///     level: None,
///     timestamp_type: TimestampType::CreateTime,
///     log_append_time: -1,
/// };
/// let header = builder.finish(&options, &mut bytes)?;
/// assert_eq!((header.base_offset, header.last_offset, bytes.len()), (7, 7, 70));
/// assert_eq!(BatchHeader::parse(&bytes, 70).unwrap(), header);
/// assert!(builder.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct BatchBuilder {
    /// Space for the header, then the records. Empty before the first record, so that an unused builder
    /// allocates nothing.
    plain: Vec<u8>,
    /// The same for a compressed batch.
    packed: Vec<u8>,
    count: i32,
    /// Valid if there is a record.
    base_timestamp: i64,
    /// Valid if there is a record.
    max_timestamp: i64,
}

impl BatchBuilder {
    /// An empty builder. It allocates nothing until the first record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record. If the record is refused, the batch is unchanged.
    ///
    /// # Errors
    /// Those of [`NewRecord::check`]; [`Error::RecordTooLarge`] for a record with which the batch would
    /// exceed [`MAX_BATCH_BYTES`].
    ///
    /// # Source
    /// Kafka: `MemoryRecordsBuilder.appendWithOffset`, `DefaultRecord.writeTo`.
    #[inline]
    pub fn append(&mut self, record: &NewRecord<'_>) -> Result<()> {
        record.check()?;
        let delta = self.delta(record);
        let body = self.body_size(record, delta);
        // saturating: a key, a value or a header may be of any size
        let size = varint::size(as_i64(body)).saturating_add(body);
        if size > MAX_BATCH_BYTES - self.size() {
            return Err(too_large(format!("{} bytes and {size} more", self.size())));
        }
        if self.count == 0 {
            self.plain.resize(V2_HEADER, 0);
            (self.base_timestamp, self.max_timestamp) = (record.timestamp, record.timestamp);
        }
        let out = &mut self.plain;
        out.reserve(size);
        varint::write(out, as_i64(body));
        out.push(0);
        varint::write(out, delta);
        varint::write(out, i64::from(self.count));
        write_sized(out, record.key);
        write_sized(out, record.value);
        varint::write(out, as_i64(record.headers.len()));
        for (name, value) in record.headers {
            write_sized(out, Some(name));
            write_sized(out, *value);
        }
        // a record has at least seven bytes, so the size limit keeps the count far below the maximum of an
        // i32
        self.count += 1;
        self.max_timestamp = self.max_timestamp.max(record.timestamp);
        Ok(())
    }

    /// The number of records.
    pub fn count(&self) -> i32 {
        self.count
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The uncompressed size of the batch in bytes, including the header.
    pub fn size(&self) -> usize {
        self.plain.len().max(V2_HEADER)
    }

    /// The exact uncompressed size of the batch with one more record, in bytes.
    ///
    /// # Source
    /// Kafka: `MemoryRecordsBuilder.hasRoomFor` (an upper bound there).
    pub fn size_with(&self, record: &NewRecord<'_>) -> usize {
        let body = self.body_size(record, self.delta(record));
        self.size().saturating_add(varint::size(as_i64(body))).saturating_add(body)
    }

    /// The largest timestamp so far, ms; −1 if no record has one.
    pub fn max_timestamp(&self) -> i64 {
        if self.count == 0 { -1 } else { self.max_timestamp }
    }

    /// Removes the records and keeps the buffers.
    pub fn clear(&mut self) {
        self.plain.truncate(V2_HEADER);
        self.packed.clear();
        self.count = 0;
    }

    /// Appends the whole batch to `out` and starts a new one. After an error the builder still has the
    /// records, and `out` is unchanged.
    ///
    /// # Errors
    /// As [`BatchBuilder::seal`].
    pub fn finish(&mut self, options: &BatchOptions, out: &mut Vec<u8>) -> Result<BatchHeader> {
        self.finish_of(options, &BatchProducer::NONE, out)
    }

    /// [`BatchBuilder::finish`] for a batch of a producer.
    ///
    /// # Errors
    /// As [`BatchBuilder::seal`].
    pub fn finish_of(
        &mut self,
        options: &BatchOptions,
        producer: &BatchProducer,
        out: &mut Vec<u8>,
    ) -> Result<BatchHeader> {
        let (header, bytes) = self.seal_of(options, producer)?;
        out.extend_from_slice(bytes);
        self.clear();
        Ok(header)
    }

    /// Completes the batch in the builder's buffer, for a caller that writes it immediately.
    /// [`BatchBuilder::clear`] starts the next batch. A second call, with other options, completes the
    /// same batch again.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no record, an offset or an epoch is out of its range, or the codec
    /// refuses (see [`compress`](codec::compress)); [`Error::RecordTooLarge`] for a compressed batch
    /// above [`MAX_BATCH_BYTES`].
    ///
    /// # Source
    /// Kafka: `MemoryRecordsBuilder.close`, `DefaultRecordBatch.writeHeader`.
    pub fn seal(&mut self, options: &BatchOptions) -> Result<(BatchHeader, &[u8])> {
        self.seal_of(options, &BatchProducer::NONE)
    }

    /// [`BatchBuilder::seal`] for a batch of a producer.
    ///
    /// # Errors
    /// As [`BatchBuilder::seal`].
    pub fn seal_of(
        &mut self,
        options: &BatchOptions,
        producer: &BatchProducer,
    ) -> Result<(BatchHeader, &[u8])> {
        if self.count == 0 {
            return Err(Error::config("records", "at least one", "none"));
        }
        let last_delta = self.count - 1;
        let last_offset = options.base_offset.checked_add(i64::from(last_delta));
        let last_offset =
            last_offset.filter(|last| options.base_offset >= 0 && *last < i64::MAX).ok_or_else(|| {
                Error::config(
                    "base_offset",
                    "offsets from 0 to 2^63 - 2",
                    format!("{} for {} records", options.base_offset, self.count),
                )
            })?;
        if options.leader_epoch < -1 {
            let found = options.leader_epoch.to_string();
            return Err(Error::config("leader_epoch", "an epoch from 0 up, or -1 for none", found));
        }
        let bytes = if options.codec == Codec::None {
            codec::check_level(Codec::None, options.level)?;
            &mut self.plain
        } else {
            self.packed.clear();
            self.packed.resize(V2_HEADER, 0);
            let records = self.plain.get(V2_HEADER..).unwrap_or_default();
            codec::compress(options.codec, options.level, records, &mut self.packed)?;
            &mut self.packed
        };
        // compression makes incompressible data slightly larger
        let size = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= MAX_BATCH_BYTES);
        let size = size.ok_or_else(|| too_large(format!("{} bytes", bytes.len())))?;
        let is_append_time = options.timestamp_type == TimestampType::LogAppendTime;
        let mut header = BatchHeader {
            magic: 2,
            size,
            base_offset: options.base_offset,
            last_offset,
            leader_epoch: options.leader_epoch,
            crc: 0,
            attributes: Attributes(
                options.codec.id() | i16::from(is_append_time) << 3 | producer.attributes(),
            ),
            base_timestamp: Some(self.base_timestamp),
            max_timestamp: if is_append_time { options.log_append_time } else { self.max_timestamp },
            producer_id: producer.producer_id,
            producer_epoch: producer.producer_epoch,
            base_sequence: producer.base_sequence,
            count: Some(self.count),
        };
        write_header(bytes, &header, last_delta, self.base_timestamp, self.count);
        header.crc = seal(bytes);
        Ok((header, bytes))
    }

    /// The record's timestamp relative to the base timestamp. The subtraction wraps, as in Java, and so does
    /// the reader's addition.
    fn delta(&self, record: &NewRecord<'_>) -> i64 {
        if self.count == 0 { 0 } else { record.timestamp.wrapping_sub(self.base_timestamp) }
    }

    /// Bytes of the record without its length. Kafka: `DefaultRecord.sizeOfBodyInBytes`.
    fn body_size(&self, record: &NewRecord<'_>, delta: i64) -> usize {
        let fixed = 1 + varint::size(delta) + varint::size(i64::from(self.count));
        let sized = size_of_sized(record.key).saturating_add(size_of_sized(record.value));
        let count = varint::size(as_i64(record.headers.len()));
        record
            .headers
            .iter()
            .fold(fixed + count, |sum, (name, value)| {
                sum.saturating_add(size_of_sized(Some(name))).saturating_add(size_of_sized(*value))
            })
            .saturating_add(sized)
    }
}

#[cold]
fn too_large(found: String) -> Error {
    Error::RecordTooLarge { limit: SizeLimit::Readable, max_bytes: MAX_BATCH_BYTES as u64, found }
}

/// Writes the 61 bytes of the header, with the header's own value as the checksum.
#[inline]
pub(super) fn write_header(
    bytes: &mut [u8],
    header: &BatchHeader,
    last_delta: i32,
    base_timestamp: i64,
    count: i32,
) {
    let Some(header_bytes) = bytes.first_chunk_mut::<V2_HEADER>() else { return };
    put(header_bytes, 0, header.base_offset.to_be_bytes());
    // the length counts the bytes after the length field (LOG_OVERHEAD)
    put(header_bytes, 8, header.size.saturating_sub(12).to_be_bytes());
    put(header_bytes, 12, header.leader_epoch.to_be_bytes());
    put(header_bytes, 16, [header.magic]);
    put(header_bytes, 17, header.crc.to_be_bytes());
    put(header_bytes, 21, header.attributes.0.to_be_bytes());
    put(header_bytes, 23, last_delta.to_be_bytes());
    put(header_bytes, 27, base_timestamp.to_be_bytes());
    put(header_bytes, 35, header.max_timestamp.to_be_bytes());
    put(header_bytes, 43, header.producer_id.to_be_bytes());
    put(header_bytes, 51, header.producer_epoch.to_be_bytes());
    put(header_bytes, 53, header.base_sequence.to_be_bytes());
    put(header_bytes, 57, count.to_be_bytes());
}

/// A length (−1 for null) and the bytes.
#[inline]
pub(super) fn write_sized(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => out.push(1),
        Some(bytes) => {
            varint::write(out, as_i64(bytes.len()));
            out.extend_from_slice(bytes);
        }
    }
}

pub(super) fn size_of_sized(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| varint::size(as_i64(bytes.len())) + bytes.len())
}

/// Lengths of slices fit into an i64.
pub(super) fn as_i64(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Fails for header names that are not UTF-8: Kafka's clients read names as strings and replace other bytes.
fn check_names(headers: &[(&[u8], Option<&[u8]>)]) -> Result<()> {
    for (name, _) in headers {
        if std::str::from_utf8(name).is_err() {
            return Err(Error::config(
                "headers",
                "names in UTF-8",
                format!("the bytes {}", name.escape_ascii()),
            ));
        }
    }
    Ok(())
}

#[cold]
fn negative(timestamp: i64) -> Error {
    Error::config("timestamp", "milliseconds from 0 up, or -1 for none", timestamp.to_string())
}

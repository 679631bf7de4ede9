//! Bytes → batches → records: Kafka's three record formats, as pure functions of bytes.
//!
//! Every entry of a `.log` begins with the same fields in all formats. All integers are big-endian, two's
//! complement:
//!
//! ```text
//!  0        8        12       16    17
//! ┌────────┬────────┬────────┬─────┬──────────────────────────────────────────────
//! │ offset │ length │ v0, v1: CRC-32 · v2: leader epoch
//! │  i64   │  i32   │  4     │magic│ …           length = bytes after this field
//! └────────┴────────┴────────┴─────┴──────────────────────────────────────────────
//!            v0, v1: offset of the message, or the LAST one of a wrapper · v2: BASE offset
//!
//! v0, v1     17 attributes i8 │ (v1: timestamp i64) │ key length i32, key │ value length i32, value
//!            the CRC covers everything from the magic on; a compressed value contains entries
//!
//! v2         17 crc u32 │ 21 attributes i16 │ 23 lastOffsetDelta i32 │ 27 baseTimestamp i64
//!            35 maxTimestamp i64 │ 43 producerId i64 │ 51 producerEpoch i16 │ 53 baseSequence i32
//!            57 count i32 │ 61 records, or one compressed stream of them
//!            the CRC-32C covers everything from the attributes (21) on: offset, length, epoch and magic are outside it
//!
//! v2 record  length │ attributes i8 │ timestampDelta │ offsetDelta │ keyLength, key │ valueLength, value
//!            │ headersCount { keyLength, key │ valueLength, value }        lengths and deltas: zigzag varints
//! ```
//!
//! Kafka: `DefaultRecordBatch`, `DefaultRecord`, `LegacyRecord`, `AbstractLegacyRecordBatch`.

mod append_validation;
mod attributes;
mod builder;
pub mod codec;
pub mod control;
pub mod crc;
mod header;
mod header_name;
mod legacy;
#[cfg(any(feature = "binding", test))]
mod partitioner;
mod payload;
mod record_ref;
mod record_span;
mod record_v2;
mod records;
mod retained;
mod stamp;
pub mod varint;

pub use append_validation::{Analyzed, Origin, Validation, analyze};
pub use attributes::{Attributes, Codec};
pub use builder::{BatchBuilder, BatchOptions, BatchProducer, NewRecord};
pub use header::BatchHeader;
pub(crate) use header::sequence_after;
#[doc(hidden)]
pub use header_name::java_string;
#[cfg(feature = "binding")]
#[doc(hidden)]
pub use partitioner::partition_of_key;
pub use payload::Payload;
pub use record_ref::{Headers, RecordRef};
#[cfg(feature = "arrow")]
pub(crate) use record_span::{ByteSpan, RecordSpan};
#[cfg(feature = "inspect")]
pub(crate) use record_v2::{RecordFields, decode as decode_v2};
pub use records::Records;
pub(crate) use retained::{BatchRewriter, write_empty_batch};
pub use stamp::{stamp, stamp_log_append_time, stamp_timestamps};

/// Bytes before the part that `length` counts.
pub const LOG_OVERHEAD: usize = 12;

/// The smallest `length` of any format, bytes: that of an entry of v0 without key and value.
///
/// *Source*: `LegacyRecord.RECORD_OVERHEAD_V0`.
pub(crate) const MIN_LENGTH: usize = legacy::V0_OVERHEAD;

/// The bytes of an entry that contain its size and its magic.
pub const PREFIX: usize = 17;

/// Size of the header of a v2 batch, bytes.
pub const V2_HEADER: usize = 61;

/// The largest batch that is built, and that is read unless the option `max_batch_bytes` of a reader raises
/// the limit: bytes as stored, and bytes of its decompressed records. It bounds the memory that one batch can
/// take. Kafka's own default for batches as stored is 1 MiB. Valid data compresses up to 1:30,000, so a limit
/// on the ratio would not help.
pub const MAX_BATCH_BYTES: usize = 128 << 20;

/// The largest batch of the format, bytes as stored: Kafka counts them in an `i32`.
pub(crate) const MAX_STORED_BYTES: usize = i32::MAX as usize;

/// The i64 at `position`, if the bytes reach that far.
#[inline]
pub(crate) fn i64_at(bytes: &[u8], position: usize) -> Option<i64> {
    Some(i64::from_be_bytes(*bytes.get(position..)?.first_chunk()?))
}

/// The i32 at `position`, if the bytes reach that far.
#[inline]
pub(crate) fn i32_at(bytes: &[u8], position: usize) -> Option<i32> {
    Some(i32::from_be_bytes(*bytes.get(position..)?.first_chunk()?))
}

/// The u32 at `position`, if the bytes reach that far.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], position: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(position..)?.first_chunk()?))
}

/// The i16 at `position`, if the bytes reach that far.
#[inline]
pub(crate) fn i16_at(bytes: &[u8], position: usize) -> Option<i16> {
    Some(i16::from_be_bytes(*bytes.get(position..)?.first_chunk()?))
}

/// Writes a field at `position`, if the bytes reach that far.
#[inline]
fn put<const N: usize>(bytes: &mut [u8], position: usize, field: [u8; N]) {
    if let Some(room) = bytes.get_mut(position..).and_then(<[u8]>::first_chunk_mut) {
        *room = field;
    }
}

/// Computes the checksum of a whole v2 batch, writes it into the batch, and returns it.
fn seal(batch: &mut [u8]) -> u32 {
    let crc = crc::crc32c(batch.get(21..).unwrap_or_default());
    put(batch, 17, crc.to_be_bytes());
    crc
}

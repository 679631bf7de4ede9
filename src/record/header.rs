//! The header of a batch (magic 2) or of an entry (magic 0 and 1), read without touching its records.

use super::{Attributes, Codec, LOG_OVERHEAD, MAX_BATCH_BYTES, MAX_STORED_BYTES, PREFIX, V2_HEADER};
use super::{crc, i16_at, i32_at, i64_at, legacy, u32_at};
use crate::error::Malformed;
use crate::types::TimestampType;

/// The header fields of a batch. In formats v0 and v1 every uncompressed message, and every wrapper of
/// compressed messages, is a batch; fields that those formats lack are −1 (or `None`). Kafka: `RecordBatch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchHeader {
    /// 0, 1 or 2.
    pub magic: u8,
    /// The size of the whole batch, including the first 12 bytes.
    pub size: u32,
    /// The first offset that the batch covers. A compressed v0 or v1 wrapper does not contain it: before
    /// [`BatchHeader::resolve_base_offset`] it equals `last_offset`.
    pub base_offset: i64,
    /// The last offset that the batch covers, inclusive.
    pub last_offset: i64,
    /// −1 if there is none.
    pub leader_epoch: i32,
    /// The stored checksum.
    pub crc: u32,
    /// Codec and flags.
    pub attributes: Attributes,
    /// The raw field, ms: the delete horizon, if the batch has one. `None` for v0 and v1.
    pub base_timestamp: Option<i64>,
    /// The largest timestamp of its records, ms; −1 if none has one.
    pub max_timestamp: i64,
    /// −1 if there is none.
    pub producer_id: i64,
    /// −1 if there is none.
    pub producer_epoch: i16,
    /// −1 if there is none.
    pub base_sequence: i32,
    /// The number of records; `None` for v0 and v1.
    pub count: Option<i32>,
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`. `available` is the number of bytes from the start of this
    /// batch to the end of its file; `bytes` need not contain more than the first [`V2_HEADER`] of them.
    ///
    /// A header with more records than offsets, a negative count, a last offset below the base offset (which
    /// is then taken as the last offset) or a leader epoch below −1 is accepted if `bytes` contain the
    /// whole batch and its checksum is right: Kafka keeps such a batch. Old producers wrote the first
    /// kind.
    ///
    /// # Errors
    /// [`Malformed`] if a length, the magic or a count breaks the format, or the file ends inside the batch.
    pub fn parse(bytes: &[u8], available: u64) -> Result<Self, Malformed> {
        let header = Self::read(bytes, available)?;
        if header.is_consistent() {
            Ok(header)
        } else {
            header.proven(bytes).ok_or_else(|| header.inconsistency())
        }
    }

    /// As [`Self::parse`], but a checksum that would be needed is taken to be right: of a torn batch it
    /// cannot be.
    pub(crate) fn parse_unproven(bytes: &[u8], available: u64) -> Result<Self, Malformed> {
        let header = Self::read(bytes, available)?;
        if header.is_consistent() || header.is_provable() {
            Ok(header.clamped())
        } else {
            Err(header.inconsistency())
        }
    }

    /// The header, if its magic and length are possible.
    #[inline]
    fn read(bytes: &[u8], available: u64) -> Result<Self, Malformed> {
        let torn = || Malformed::new("a whole batch", format!("the end of the file after {available} bytes"));
        let offset = i64_at(bytes, 0).ok_or_else(torn)?;
        let length = i32_at(bytes, 8).ok_or_else(torn)?;
        let magic = *bytes.get(PREFIX - 1).ok_or_else(torn)?;
        let min = match magic {
            0 => legacy::V0_OVERHEAD,
            1 => legacy::V1_OVERHEAD,
            2 => V2_HEADER - LOG_OVERHEAD,
            _ => return Err(Malformed::new("magic 0, 1 or 2", format!("magic {magic}"))),
        };
        let size = usize::try_from(length)
            .ok()
            .filter(|length| (min..=MAX_STORED_BYTES - LOG_OVERHEAD).contains(length))
            .and_then(|length| u32::try_from(length + LOG_OVERHEAD).ok())
            .ok_or_else(|| {
                let max = MAX_STORED_BYTES - LOG_OVERHEAD;
                Malformed::new(format!("a length from {min} to {max}"), format!("length {length}"))
            })?;
        if u64::from(size) > available {
            return Err(Malformed::new(
                format!("a batch of {size} bytes, as its length says"),
                format!("the end of the file after {available} bytes"),
            ));
        }
        let header = if magic == 2 {
            bytes.first_chunk().and_then(|bytes| Self::v2(bytes, offset, size))
        } else {
            legacy::header(bytes, offset, size)
        };
        header.ok_or_else(torn)
    }

    /// The size of the batch at the start of `bytes`, if [`Self::parse`] needs all of its bytes to accept its
    /// header.
    #[cold]
    pub(crate) fn size_to_prove(bytes: &[u8]) -> Option<usize> {
        let size = usize::try_from(i32_at(bytes, 8)?).ok()?.checked_add(LOG_OVERHEAD)?;
        let is_v2 = bytes.get(PREFIX - 1) == Some(&2) && size <= MAX_STORED_BYTES;
        let header = Self::v2(bytes.first_chunk()?, i64_at(bytes, 0)?, u32::try_from(size).ok()?)?;
        (is_v2 && !header.is_consistent() && header.is_provable()).then_some(size)
    }

    /// A header that is not consistent, if the checksum of the whole batch in `bytes` is right.
    #[cold]
    fn proven(&self, bytes: &[u8]) -> Option<Self> {
        let whole = bytes.get(..usize::try_from(self.size).ok()?)?;
        let is_proven = self.is_provable() && self.ensure_valid(whole).is_ok();
        is_proven.then(|| self.clamped())
    }

    /// With a last offset that is not below the base offset.
    fn clamped(&self) -> Self {
        Self { last_offset: self.last_offset.max(self.base_offset), ..*self }
    }

    /// Whether a right checksum makes the header acceptable.
    fn is_provable(&self) -> bool {
        let has_last_offset = self.last_offset != i64::MIN && self.last_offset != i64::MAX;
        self.magic == 2 && (0..i64::MAX).contains(&self.base_offset) && has_last_offset
    }

    /// The header of a batch of `size` bytes as Kafka's file reader takes it: nothing is checked, any magic
    /// from 2 up is read as v2, and any other one, also a negative one, as v0 or v1. `None` if `bytes`
    /// are too few for it.
    ///
    /// *Source*: `FileLogInputStream.nextBatch`, `FileChannelRecordBatch`.
    #[cfg(feature = "inspect")]
    pub(crate) fn unchecked(bytes: &[u8], size: u32) -> Option<Self> {
        let magic = *bytes.get(PREFIX - 1)?;
        let offset = i64_at(bytes, 0)?;
        if magic.cast_signed() < 2 {
            return legacy::header(bytes, offset, size);
        }
        let last_offset = offset.wrapping_add(i64::from(i32_at(bytes, 23)?));
        Some(Self { magic, last_offset, ..Self::v2(bytes.first_chunk()?, offset, size)? })
    }

    /// Never `None`: the compiler knows the length of the array, and removes the checks that each field is
    /// within it.
    #[inline]
    pub(crate) fn v2(bytes: &[u8; V2_HEADER], base_offset: i64, size: u32) -> Option<Self> {
        Some(Self {
            magic: 2,
            size,
            base_offset,
            // on overflow the result is below the base offset, which is not consistent
            last_offset: base_offset.checked_add(i64::from(i32_at(bytes, 23)?)).unwrap_or(i64::MIN),
            leader_epoch: i32_at(bytes, 12)?,
            crc: u32_at(bytes, 17)?,
            attributes: Attributes(i16_at(bytes, 21)?),
            base_timestamp: Some(i64_at(bytes, 27)?),
            max_timestamp: i64_at(bytes, 35)?,
            producer_id: i64_at(bytes, 43)?,
            producer_epoch: i16_at(bytes, 51)?,
            base_sequence: i32_at(bytes, 53)?,
            count: Some(i32_at(bytes, 57)?),
        })
    }

    /// Whether the offsets, the leader epoch and the count are possible.
    #[inline]
    pub(crate) fn is_consistent(&self) -> bool {
        self.has_possible_offsets() && self.leader_epoch >= -1 && self.has_possible_count()
    }

    #[inline]
    fn has_possible_offsets(&self) -> bool {
        self.base_offset >= 0 && self.last_offset >= self.base_offset && self.last_offset != i64::MAX
    }

    /// Compaction removes records and does not change the offsets, so the count may be lower, but never
    /// higher.
    #[inline]
    fn has_possible_count(&self) -> bool {
        self.count.is_none_or(|count| count >= 0 && i64::from(count) <= self.offsets())
    }

    /// The rule that a header which is not consistent breaks.
    #[cold]
    fn inconsistency(&self) -> Malformed {
        let Self { base_offset, last_offset, leader_epoch, .. } = self;
        let of_offsets = |found: String| Malformed::new("offsets and a count that match", found);
        if !self.has_possible_offsets() {
            of_offsets(format!("base offset {base_offset}, last offset {last_offset}"))
        } else if *leader_epoch < -1 {
            Malformed::new("a leader epoch from −1 (none) up", format!("leader epoch {leader_epoch}"))
        } else {
            let count = self.count.unwrap_or(0);
            of_offsets(format!("{count} records from offset {base_offset} to {last_offset}"))
        }
    }

    /// Whether the batch covers offsets without a record, because compaction removed it. False for v0 and v1.
    pub fn is_sparse(&self) -> bool {
        self.count.is_some_and(|count| count >= 0 && i64::from(count) < self.offsets())
    }

    /// The number of offsets that it covers, at least 1.
    pub(crate) fn offsets(&self) -> i64 {
        self.last_offset - self.base_offset + 1
    }

    /// Compares the stored checksum with the checksum of the batch's bytes (`size` of them).
    ///
    /// # Errors
    /// [`Malformed`] with both checksums. Kafka: `DefaultRecordBatch.ensureValid`,
    /// `LegacyRecord.ensureValid`.
    pub fn ensure_valid(&self, bytes: &[u8]) -> Result<(), Malformed> {
        let computed = if self.magic == 2 {
            crc::crc32c(bytes.get(21..).unwrap_or_default())
        } else {
            crc::crc32(bytes.get(PREFIX - 1..).unwrap_or_default())
        };
        self.compare_checksum(computed)
    }

    /// [`BatchHeader::ensure_valid`] with the computed checksum.
    pub(crate) fn compare_checksum(&self, computed: u32) -> Result<(), Malformed> {
        if computed == self.crc {
            return Ok(());
        }
        Err(Malformed::new(
            format!("CRC {:#010x}, as stored", self.crc),
            format!("CRC {computed:#010x} of its bytes"),
        ))
    }

    /// The reason why a batch of these bytes, whose checksum may not have been verified, cannot be read:
    /// bytes that this version does not support, or of which there are too many, are damage if their
    /// checksum does not match.
    pub(crate) fn damage_or(&self, malformed: Malformed, bytes: &[u8]) -> Malformed {
        if malformed.is_damage() { malformed } else { self.ensure_valid(bytes).err().unwrap_or(malformed) }
    }

    /// Adds the offsets of the batch to the description of one that is too large.
    #[cold]
    pub(super) fn with_offsets(&self, malformed: Malformed) -> Malformed {
        if !malformed.is_too_large() {
            return malformed;
        }
        let found = if self.is_wrapper() {
            format!("offsets up to {} in {}", self.last_offset, malformed.found)
        } else {
            format!("offsets {} to {} in {}", self.base_offset, self.last_offset, malformed.found)
        };
        Malformed { found, ..malformed }
    }

    /// Why the batch cannot be read if it has more bytes as stored than `max_batch_bytes`.
    ///
    /// # Errors
    /// [`Malformed`], which is no damage.
    #[inline]
    pub(crate) fn ensure_size(&self, max_batch_bytes: usize) -> Result<(), Malformed> {
        if self.size as usize <= max_batch_bytes {
            return Ok(());
        }
        let found = format!("{} bytes, as stored", self.size);
        Err(self.with_offsets(Malformed::too_large(max_batch_bytes, found)))
    }

    /// Whether this is a v0 or v1 wrapper, whose first offset is known only from the entries in it.
    pub fn is_wrapper(&self) -> bool {
        self.magic < 2 && self.attributes.is_compressed()
    }

    /// Sets the base offset of a v0 or v1 wrapper from the entries in it, which are decompressed into
    /// `buffer`; and also the last offset, if an old producer left it at zero. Does not change the header
    /// of a batch that is not a wrapper.
    ///
    /// # Errors
    /// [`Malformed`] if the entries break the format.
    pub fn resolve_base_offset(&mut self, bytes: &[u8], buffer: &mut Vec<u8>) -> Result<(), Malformed> {
        self.resolve_base_offset_up_to(MAX_BATCH_BYTES, bytes, buffer)
    }

    /// [`BatchHeader::resolve_base_offset`] with another limit on the bytes of the decompressed entries.
    ///
    /// # Errors
    /// As [`BatchHeader::resolve_base_offset`].
    pub fn resolve_base_offset_up_to(
        &mut self,
        max_batch_bytes: usize,
        bytes: &[u8],
        buffer: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        if self.is_wrapper() {
            *self = legacy::resolved(self, bytes, max_batch_bytes, buffer)?;
        }
        Ok(())
    }

    /// The codec.
    ///
    /// # Errors
    /// [`Malformed`] for an id without a codec, and for zstd in v0 or v1.
    pub fn codec(&self) -> Result<Codec, Malformed> {
        match self.attributes.codec()? {
            Codec::Zstd if self.magic < 2 => {
                Err(Malformed::new("a codec of the old formats", format!("zstd in magic {}", self.magic)))
            }
            codec => Ok(codec),
        }
    }

    /// The meaning of the records' timestamps.
    pub fn timestamp_type(&self) -> TimestampType {
        if self.magic == 0 { TimestampType::NoTimestampType } else { self.attributes.timestamp_type() }
    }

    /// Whether it may have records above its largest timestamp: a wrapper of v0 has no timestamp, and the log
    /// cleaner of old brokers put messages of v1 into such wrappers.
    pub(crate) fn hides_times(&self) -> bool {
        self.magic == 0 && self.attributes.is_compressed()
    }

    /// True for a v2 batch of control records.
    pub fn is_control(&self) -> bool {
        self.magic == 2 && self.attributes.is_control()
    }

    /// True for a v2 batch that belongs to a transaction (data or marker).
    pub fn is_transactional(&self) -> bool {
        self.magic == 2 && self.attributes.is_transactional()
    }

    /// The time from which the cleaner may remove the batch's tombstones and markers, ms since the epoch.
    pub fn delete_horizon(&self) -> Option<i64> {
        self.base_timestamp.filter(|_| self.attributes.has_delete_horizon())
    }

    /// The sequence of the last offset, −1 if there is none. Sequences wrap from 2³¹ − 1 to 0.
    /// Kafka: `DefaultRecordBatch.lastSequence`.
    pub fn last_sequence(&self) -> i32 {
        match self.base_sequence {
            -1 => -1,
            // no producer writes one below −1, and no checksum excludes it
            base => sequence_after(base, to_increment(self.last_offset.wrapping_sub(self.base_offset))),
        }
    }

    /// The sequence `delta` offsets after the base offset, −1 if there is none.
    pub(crate) fn sequence_at(&self, delta: i64) -> i32 {
        if self.base_sequence < 0 { -1 } else { sequence_after(self.base_sequence, to_increment(delta)) }
    }
}

/// The distance of two offsets of a batch with sequences, which is stored in 32 bits.
fn to_increment(delta: i64) -> i32 {
    i32::try_from(delta).unwrap_or_default()
}

/// The sequence `increment` records after another one, in Java's 32 bits. Sequences wrap from 2³¹ − 1 to 0.
///
/// *Source*: `DefaultRecordBatch.incrementSequence`.
pub(crate) fn sequence_after(sequence: i32, increment: i32) -> i32 {
    let left = i32::MAX.wrapping_sub(increment);
    if sequence > left {
        increment.wrapping_sub(i32::MAX.wrapping_sub(sequence)).wrapping_sub(1)
    } else {
        sequence.wrapping_add(increment)
    }
}

#[cfg(test)]
mod tests {
    use super::sequence_after;

    /// The results of Kafka's `DefaultRecordBatch.incrementSequence`.
    #[test]
    fn sequences_after_others_are_those_of_kafka() {
        for (sequence, increment, after) in [
            (0, 0, 0),
            (10, 5, 15),
            (i32::MAX, 0, i32::MAX),
            (i32::MAX, 1, 0),
            (i32::MAX - 1, 3, 1),
            (i32::MAX - 5, 10, 4),
            (i32::MAX, i32::MAX, i32::MAX - 1),
            (5, -3, -2_147_483_646),
            (0, i32::MIN, 0),
            (-1, 1, 0),
            (-7, i32::MAX, 2_147_483_640),
            (-7, -3, 2_147_483_638),
            (i32::MIN, 1, i32::MIN + 1),
        ] {
            assert_eq!(sequence_after(sequence, increment), after, "{sequence} + {increment}");
        }
    }
}

//! Validates v2 batches before they are appended: as a leader, which assigns their offsets, or as a follower,
//! which keeps them.
//!
//! Lengths, checksums, counts, attributes and every record are checked, in compressed batches too. What Kafka
//! rejects is rejected. The differences from what Kafka accepts are:
//!
//! - magic 0 and 1 are refused; so are transactional batches without a producer id, undefined attribute bits,
//!   and batches larger than [`Validation::max_batch_bytes`], stored or decompressed, which readers with that
//!   limit refuse;
//! - a partial batch at the end is refused; Kafka drops it silently;
//! - a leader's records must have the relative offsets 0, 1, 2, …; Kafka checks this in compressed batches
//!   only (a follower keeps what its leader has);
//! - a follower's batch is refused if its records break the format, which Kafka does not check; if a record's
//!   timestamp is above the header's largest (a search by time would miss the record); or if its leader epoch
//!   is below the previous one (readers report that as damage);
//! - a leader accepts several batches at once, each like a single batch, and ignores their base offsets.
//!
//! Sequences and epochs of producers are checked against the log: `crate::state::producers`.
//!
//! Kafka: `UnifiedLog.analyzeAndValidateRecords`, `LogValidator`.

use std::fmt;
use std::ops::Range;

use super::attributes::APPEND_TIME;
use super::control::ControlType;
use super::{BatchHeader, Codec, NewRecord, Records, V2_HEADER};
use crate::error::{Error, Malformed, Result, SizeLimit};
use crate::types::TimestampType;

/// What assigns the offsets of the batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// This log: the offsets and epochs in the batches are ignored.
    Leader,
    /// Their leader: offsets are ascending, at or above the log end offset, and may have gaps.
    Follower {
        /// The lowest offset that the first batch may have.
        log_end_offset: i64,
        /// The newest leader epoch of the log, −1 before the first. The batches' epochs must not be lower.
        leader_epoch: i32,
    },
}

/// The rules, from a topic's settings.
#[derive(Debug, Clone, Copy)]
pub struct Validation {
    /// What assigns the offsets. All other fields but `max_batch_bytes` apply to a leader only.
    pub origin: Origin,
    /// The largest batch, bytes, as stored and decompressed.
    pub max_batch_bytes: usize,
    /// `max.message.bytes`: applies to a whole batch as received, and to the recompressed batch.
    pub max_message_bytes: u32,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub after_max_ms: i64,
    /// The clock, ms since the epoch.
    pub now: i64,
    /// `cleanup.policy` contains `compact`: every record needs a key.
    pub is_compacted: bool,
    /// `compression.type`; `None` is `producer`, which keeps each batch's own.
    pub codec: Option<Codec>,
}

/// A valid batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analyzed {
    /// The batch's header. For a leader it has base offset 0 and no leader epoch, regardless of the bytes.
    pub header: BatchHeader,
    /// The range of its bytes in the buffer.
    pub range: Range<usize>,
    /// The codec to store it with. If it differs from the header's, [`Analyzed::rebuild`] is needed.
    pub codec: Codec,
    /// The timestamp type to store.
    pub timestamp_type: TimestampType,
    /// The largest timestamp to store, ms; −1 if no record has one.
    pub max_timestamp: i64,
}

impl Analyzed {
    /// Whether the batch needs [`Analyzed::rebuild`]; otherwise [`Analyzed::stamp`] is enough.
    pub fn must_rebuild(&self) -> bool {
        self.header.attributes.codec() != Ok(self.codec)
    }
}

/// Validates every batch of `bytes`. Returns them in order; empty for no bytes. Nothing is changed.
///
/// Cost: one pass for the checksums and one over the records; compressed batches are decompressed.
///
/// # Errors
/// [`Error::InvalidRecord`] for `raw` (bytes that break a rule), `timestamp` or `key`, with the position of
/// the batch in `bytes`; [`Error::RecordTooLarge`] for `max.message.bytes`. Both name the batch, counted from
/// 0.
///
/// # Source
/// Kafka: `UnifiedLog.analyzeAndValidateRecords`, `LogValidator.validateMessagesAndAssignOffsets`.
pub fn analyze(bytes: &[u8], rules: &Validation) -> Result<Vec<Analyzed>> {
    let mut batches: Vec<Analyzed> = Vec::new();
    let mut plain = Vec::new();
    let mut position = 0;
    while let Some(rest) = bytes.get(position..).filter(|rest| !rest.is_empty()) {
        let place = Place { batch: batches.len(), position };
        let (header, batch) = read_batch(rest, rules.origin).map_err(|found| place.refuse(found))?;
        if let Origin::Follower { log_end_offset, leader_epoch } = rules.origin {
            let before = batches.last().map(|batch| &batch.header);
            let (min_offset, epoch) = before.map_or((log_end_offset, leader_epoch), |before| {
                (before.last_offset + 1, before.leader_epoch)
            });
            follows(&header, min_offset, epoch).map_err(|found| place.refuse(found))?;
        } else if header.size > rules.max_message_bytes {
            return Err(place.too_large(rules.max_message_bytes, header.size));
        }
        header.ensure_size(rules.max_batch_bytes).map_err(|found| place.refuse(found))?;
        let max_timestamp = rules.records(&header, batch, &mut plain, place)?;
        let end = position + batch.len();
        batches
            .push(rules.analyzed(header, position..end, max_timestamp).map_err(|found| place.refuse(found))?);
        position = end;
    }
    Ok(batches)
}

impl Validation {
    /// Validates one new record, as [`analyze`] does the records of a leader's batches.
    ///
    /// # Errors
    /// [`Error::InvalidRecord`] for `timestamp` (too far from the clock) or `key` (a compacted log needs
    /// one).
    ///
    /// # Source
    /// Kafka: `LogValidator.validateRecord`.
    #[inline]
    pub fn check(&self, record: &NewRecord<'_>) -> Result<()> {
        self.check_fields(record.timestamp, record.key.is_some(), None)
    }

    /// `place`: the position of the record in a buffer of batches, if it is in one.
    #[inline]
    fn check_fields(&self, timestamp: i64, has_key: bool, place: Option<RecordPlace>) -> Result<()> {
        if self.is_compacted && !has_key {
            return Err(refused("key", "a key, as the log is compacted", "null", place));
        }
        if self.timestamp_type == TimestampType::LogAppendTime || timestamp == -1 {
            return Ok(());
        }
        // the difference may wrap, as in Java
        let age = self.now.wrapping_sub(timestamp);
        if age > self.before_max_ms || age.wrapping_neg() > self.after_max_ms {
            let expected = format!(
                "a time no more than {} ms before {now} (message.timestamp.before.max.ms) and no more than {} ms after \
                 it (message.timestamp.after.max.ms)",
                self.before_max_ms,
                self.after_max_ms,
                now = self.now
            );
            return Err(refused("timestamp", expected, timestamp.to_string(), place));
        }
        Ok(())
    }

    /// Validates the records of a batch. Returns their largest timestamp, −1 if none has one.
    fn records(&self, header: &BatchHeader, batch: &[u8], plain: &mut Vec<u8>, place: Place) -> Result<i64> {
        let is_leader = self.origin == Origin::Leader;
        let mut read_as = *header;
        if is_leader {
            // the record's own timestamp: the flag is set later, from the topic's setting
            read_as.attributes.0 &= !APPEND_TIME;
        }
        let claims_append_time = header.timestamp_type() == TimestampType::LogAppendTime;
        let (mut records, payload) = Records::open_up_to(self.max_batch_bytes, read_as, batch, plain)
            .map_err(|found| place.refuse(found))?;
        let payload = payload.of(batch, plain);
        let mut largest = -1;
        let mut index = 0u64;
        while let Some(record) = records.next(payload).map_err(|found| place.refuse_record(index, found))? {
            if is_leader {
                let at = Some(RecordPlace { index, batch: place });
                self.check_fields(record.timestamp, record.key.is_some(), at)?;
                let has_own_time = self.timestamp_type == TimestampType::CreateTime && record.timestamp != -1;
                if claims_append_time && !has_own_time {
                    return Err(refused("timestamp", "CreateTime in a batch to append", "LogAppendTime", at));
                }
            } else if record.timestamp > header.max_timestamp {
                let found = Malformed::new(
                    format!("timestamps up to {}, the batch's largest", header.max_timestamp),
                    record.timestamp.to_string(),
                );
                return Err(place.refuse_record(index, found));
            } else if header.is_control() {
                ControlType::parse(record.key).map_err(|found| place.refuse_record(index, found))?;
            }
            largest = largest.max(record.timestamp);
            index += 1;
        }
        if let Some(offset) = records.out_of_place().filter(|_| is_leader) {
            let expected =
                format!("records with ascending offsets up to {}, the batch's last", header.last_offset);
            return Err(place.refuse(Malformed::new(expected, format!("offset {offset} out of place"))));
        }
        Ok(largest)
    }

    fn analyzed(
        &self,
        header: BatchHeader,
        range: Range<usize>,
        max_timestamp: i64,
    ) -> std::result::Result<Analyzed, Malformed> {
        let own = header.codec()?;
        let (codec, timestamp_type, max_timestamp) = match (self.origin, self.timestamp_type) {
            (Origin::Follower { .. }, _) => (own, header.timestamp_type(), header.max_timestamp),
            (Origin::Leader, TimestampType::LogAppendTime) => {
                (self.codec.unwrap_or(own), TimestampType::LogAppendTime, self.now)
            }
            (Origin::Leader, _) => (self.codec.unwrap_or(own), TimestampType::CreateTime, max_timestamp),
        };
        Ok(Analyzed { header, range, codec, timestamp_type, max_timestamp })
    }
}

/// The undefined attribute bits.
const RESERVED: i16 = !0x7f;

/// The batch at the start of `bytes`, after all checks except the checks of its records.
fn read_batch(bytes: &[u8], origin: Origin) -> std::result::Result<(BatchHeader, &[u8]), Malformed> {
    let partial = || Malformed::new("whole batches", format!("{} bytes of one", bytes.len()));
    // checked first: batches of another magic have other fields
    if let Some(magic) = bytes.get(16).filter(|magic| **magic != 2) {
        return Err(Malformed::new("batches of magic 2", format!("magic {magic}")));
    }
    let mut head: [u8; V2_HEADER] = *bytes.first_chunk().ok_or_else(partial)?;
    if origin == Origin::Leader {
        super::stamp(&mut head, 0, -1);
    }
    let available = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let header = match origin {
        Origin::Leader => BatchHeader::parse(&head, available)?,
        // an odd header is accepted if the checksum is right
        Origin::Follower { .. } => BatchHeader::parse(bytes, available)?,
    };
    let stored = BatchHeader::v2(&head, header.base_offset, header.size).map(|stored| stored.last_offset);
    if let Some(last) = stored.filter(|last| *last < header.base_offset) {
        let expected = format!("a last offset from {} up", header.base_offset);
        return Err(Malformed::new(expected, format!("last offset {last}")));
    }
    let size = usize::try_from(header.size).unwrap_or(usize::MAX);
    let batch = bytes.get(..size).ok_or_else(partial)?;
    header.ensure_valid(batch)?;
    if header.attributes.0 & RESERVED != 0 {
        let found = format!("attributes {:#06x}", header.attributes.0);
        return Err(Malformed::new("attribute bits from 0 to 6", found));
    }
    if header.is_transactional() && header.producer_id < 0 {
        return Err(Malformed::new("a producer id in a transactional batch", header.producer_id.to_string()));
    }
    if origin == Origin::Leader {
        if header.is_control() {
            return Err(Malformed::new("data batches", "a control batch"));
        }
        if header.producer_id >= 0 && header.base_sequence < 0 {
            let expected = "a sequence, 0 or above, in a batch with a producer id";
            return Err(Malformed::new(expected, header.base_sequence.to_string()));
        }
        let count = i64::from(header.count.unwrap_or(0));
        if count == 0 || count != header.last_offset + 1 {
            return Err(Malformed::new(
                "as many records as offsets, and at least one",
                format!("{count} records and last relative offset {}", header.last_offset),
            ));
        }
    }
    Ok((header, batch))
}

/// Checks that a follower may append the batch: offsets of at least `min_offset`, epochs of at least `epoch`.
fn follows(header: &BatchHeader, min_offset: i64, epoch: i32) -> std::result::Result<(), Malformed> {
    if header.base_offset < min_offset {
        let found = format!("{} to {}", header.base_offset, header.last_offset);
        return Err(Malformed::new(format!("offsets at or above {min_offset}"), found));
    }
    if header.leader_epoch < epoch.max(0) {
        let expected = format!("a leader epoch of {} or above", epoch.max(0));
        return Err(Malformed::new(expected, header.leader_epoch.to_string()));
    }
    Ok(())
}

/// A batch in a buffer: its number and its position.
#[derive(Debug, Clone, Copy)]
struct Place {
    batch: usize,
    position: usize,
}

impl Place {
    fn description(self) -> String {
        format!(" in batch {} at position {}", self.batch, self.position)
    }

    #[cold]
    fn refuse(self, found: Malformed) -> Error {
        Error::InvalidRecord {
            argument: "raw",
            position: u64::try_from(self.position).ok(),
            expected: found.expected,
            found: found.found + &self.description(),
        }
    }

    #[cold]
    fn refuse_record(self, index: u64, found: Malformed) -> Error {
        refused("raw", found.expected, found.found, Some(RecordPlace { index, batch: self }))
    }

    #[cold]
    fn too_large(self, max_bytes: u32, size: u32) -> Error {
        let found = format!("{size} bytes{}", self.description());
        Error::RecordTooLarge { limit: SizeLimit::MaxMessageBytes, max_bytes: max_bytes.into(), found }
    }
}

/// A record in a batch; both are counted from 0.
#[derive(Debug, Clone, Copy)]
struct RecordPlace {
    index: u64,
    batch: Place,
}

#[cold]
fn refused(
    argument: &'static str,
    expected: impl Into<String>,
    found: impl fmt::Display,
    place: Option<RecordPlace>,
) -> Error {
    let description = place
        .map_or_else(String::new, |place| format!(" in record {}{}", place.index, place.batch.description()));
    Error::InvalidRecord {
        argument,
        position: place.and_then(|place| u64::try_from(place.batch.position).ok()),
        expected: expected.into(),
        found: format!("{found}{description}"),
    }
}

//! The records of a batch whose checksum is right: a producer or a broker with a bug wrote it so.

use super::finding::Finding;
use super::rule::Rule;
use crate::error::{Malformed, Reason, Result};
use crate::record::control::ControlType;
use crate::record::{BatchHeader, Records};
use crate::segment::{Batch, Walk};
use crate::types::TimestampType;

/// What is wrong with the records of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrongRecords {
    pub(super) rule: Rule,
    pub(super) malformed: Malformed,
}

impl WrongRecords {
    fn new(malformed: Malformed) -> Self {
        let rule = match malformed.reason {
            Reason::Unsupported => Rule::UnsupportedBatch,
            Reason::TooLarge => Rule::BatchTooLarge,
            Reason::Damaged => Rule::DamagedRecords,
        };
        Self { rule, malformed }
    }

    /// Of a batch whose payload cannot be decoded.
    fn opening(header: &BatchHeader, malformed: Malformed) -> Self {
        let wrong = Self::new(malformed);
        let is_undecodable = header.is_wrapper() && wrong.rule == Rule::DamagedRecords;
        if is_undecodable { Self { rule: Rule::UndecodableWrapper, ..wrong } } else { wrong }
    }

    pub(super) fn into_finding(self, partition: &std::path::Path, file: std::path::PathBuf) -> Finding {
        Finding::malformed(self.rule, partition, file, self.malformed)
    }
}

/// Decodes all records of the batch that a walk returned last; see [`check`].
pub(super) fn check_batch(
    batch: &Batch,
    walk: &mut Walk,
    buffer: &mut Vec<u8>,
) -> Result<std::result::Result<Option<ControlType>, WrongRecords>> {
    let max_batch_bytes = walk.log.max_batch_bytes();
    if let Err(malformed) = batch.header.ensure_size(max_batch_bytes) {
        return Ok(Err(WrongRecords::new(malformed)));
    }
    Ok(check(batch.header, walk.bytes(batch)?, max_batch_bytes, buffer))
}

/// Decodes all records of a batch, and compares them with its header: their count, lengths and offsets, the
/// end of the payload, and the largest timestamp. For a control batch, returns the type of its first record.
fn check(
    header: BatchHeader,
    bytes: &[u8],
    max_batch_bytes: usize,
    buffer: &mut Vec<u8>,
) -> std::result::Result<Option<ControlType>, WrongRecords> {
    let opened = Records::open_up_to(max_batch_bytes, header, bytes, buffer);
    let (mut records, payload) = opened.map_err(|malformed| WrongRecords::opening(&header, malformed))?;
    let header = *records.header();
    let payload = payload.of(bytes, buffer);
    let (mut largest, mut control) = (None, None);
    while let Some(record) = records.next(payload).map_err(WrongRecords::new)? {
        largest = largest.max(Some(record.timestamp));
        if header.is_control() && control.is_none() {
            control = Some(ControlType::parse(record.key).map_err(WrongRecords::new)?);
        }
    }
    if let Some(offset) = records.out_of_place() {
        let expected = format!("ascending offsets from {} to {}", header.base_offset, header.last_offset);
        let malformed = Malformed::new(expected, format!("offset {offset} out of place"));
        return Err(WrongRecords { rule: Rule::OffsetsOutOfPlace, malformed });
    }
    // for times below -1 a broker stores -1; the header's is the broker's time with LogAppendTime, and
    // compaction keeps it in a batch without records
    if let Some(largest) = largest.map(|largest| largest.max(-1))
        && header.magic == 2
        && header.timestamp_type() == TimestampType::CreateTime
        && largest != header.max_timestamp
    {
        let expected = format!("the largest timestamp of its records, {largest}");
        let malformed = Malformed::new(expected, format!("{} in its header", header.max_timestamp));
        return Err(WrongRecords { rule: Rule::WrongMaxTimestamp, malformed });
    }
    Ok(control)
}

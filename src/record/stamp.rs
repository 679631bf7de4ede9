//! The fields that a leader writes into a batch that it received.
//!
//! Base offset and leader epoch are outside the checksum. The timestamp type and the largest timestamp are
//! inside it: changing them requires a new checksum. Kafka: `DefaultRecordBatch.setLastOffset`,
//! `setPartitionLeaderEpoch`, `setMaxTimestamp`.

use super::attributes::APPEND_TIME;
use super::{
    Analyzed, BatchBuilder, BatchHeader, BatchOptions, BatchProducer, NewRecord, Records, i16_at, i64_at,
    put, seal,
};
use crate::error::{Error, Malformed, Result};
use crate::types::TimestampType;

/// Writes a base offset and a leader epoch into the v2 batch at the start of `batch`. The last offset is
/// relative to the base offset.
pub fn stamp(batch: &mut [u8], base_offset: i64, leader_epoch: i32) {
    put(batch, 0, base_offset.to_be_bytes());
    put(batch, 12, leader_epoch.to_be_bytes());
}

/// Sets the timestamp of every record to `now` (ms). `batch` is exactly one v2 batch.
pub fn stamp_log_append_time(batch: &mut [u8], now: i64) {
    stamp_timestamps(batch, TimestampType::LogAppendTime, now);
}

/// Writes the timestamp type and the largest timestamp (ms). `batch` is exactly one v2 batch. If the batch
/// already has both values, nothing is written.
pub fn stamp_timestamps(batch: &mut [u8], timestamp_type: TimestampType, max_timestamp: i64) {
    let Some(before) = i16_at(batch, 21) else { return };
    let attributes = match timestamp_type {
        TimestampType::LogAppendTime => before | APPEND_TIME,
        _ => before & !APPEND_TIME,
    };
    if attributes == before && i64_at(batch, 35) == Some(max_timestamp) {
        return;
    }
    put(batch, 21, attributes.to_be_bytes());
    put(batch, 35, max_timestamp.to_be_bytes());
    seal(batch);
}

impl Analyzed {
    /// Changes the batch (its bytes, or a copy) in place to the form to be stored, and returns its header.
    ///
    /// # Errors
    /// [`Error::Config`] if an offset would be out of range, or the batch has to be rebuilt
    /// ([`Analyzed::must_rebuild`]).
    pub fn stamp(&self, batch: &mut [u8], base_offset: i64, leader_epoch: i32) -> Result<BatchHeader> {
        if self.must_rebuild() {
            let found = self.header.attributes.codec().map_or("unknown", super::Codec::name);
            return Err(Error::config(
                "batch",
                format!("a batch with the codec {}", self.codec.name()),
                found,
            ));
        }
        let span = self.header.last_offset - self.header.base_offset;
        let is_in_range =
            base_offset >= 0 && base_offset.checked_add(span).is_some_and(|last| last < i64::MAX);
        if !is_in_range {
            let found = format!("{base_offset}, and {span} more");
            return Err(Error::config("base_offset", "offsets from 0 to 2^63 - 2", found));
        }
        stamp(batch, base_offset, leader_epoch);
        stamp_timestamps(batch, self.timestamp_type, self.max_timestamp);
        let available = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        BatchHeader::parse(batch, available).map_err(|found| refused(found, ""))
    }

    /// Rebuilds the batch from its records, with the codec to store it with, and appends it to `out`. `batch`
    /// are its bytes. `builder` provides buffers and is cleared. Of `options`, only base offset, leader
    /// epoch and level are used.
    ///
    /// # Errors
    /// [`Error::Config`] if [`BatchBuilder`] refuses a record or the batch. The caller checks the new batch's
    /// size against its limit.
    ///
    /// # Source
    /// Kafka: `LogValidator.buildRecordsAndAssignOffsets`.
    pub fn rebuild(
        &self,
        batch: &[u8],
        builder: &mut BatchBuilder,
        options: &BatchOptions,
        out: &mut Vec<u8>,
    ) -> Result<BatchHeader> {
        builder.clear();
        let mut read_as = self.header;
        read_as.attributes.0 &= !APPEND_TIME;
        let mut plain = Vec::new();
        let mut headers = Vec::new();
        let (mut records, payload) =
            Records::open(read_as, batch, &mut plain).map_err(|found| refused(found, ""))?;
        let payload = payload.of(batch, &plain);
        while let Some(record) = records.next(payload).map_err(|found| refused(found, " in a record"))? {
            headers.clear();
            headers.extend(record.headers);
            builder.append(&NewRecord {
                timestamp: record.timestamp,
                key: record.key,
                value: record.value,
                headers: &headers,
            })?;
        }
        let options = BatchOptions {
            codec: self.codec,
            timestamp_type: self.timestamp_type,
            log_append_time: self.max_timestamp,
            ..*options
        };
        // without a producer id the other fields have no meaning; Kafka keeps them, and the bytes must equal
        // Kafka's
        let BatchHeader { producer_id, producer_epoch, base_sequence, .. } = self.header;
        let is_transactional = self.header.is_transactional();
        let producer =
            BatchProducer { producer_id, producer_epoch, base_sequence, is_transactional, is_control: false };
        builder.finish_of(&options, &producer, out)
    }
}

fn refused(found: Malformed, place: &str) -> Error {
    Error::config("batch", found.expected, found.found + place)
}

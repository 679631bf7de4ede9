//! One pass of compaction: first the map of the dirty keys, then the groups of segments, each of which becomes one segment.
//! Kafka: `Cleaner.doClean`, `buildOffsetMap`, `cleanSegments`.

use std::collections::HashMap;
use std::sync::Arc;

use super::CompactedSegment;
use super::filter::Filter;
use super::history::{History, Unusable, for_each_batch};
use super::output::Output;
use super::plan::CleaningRange;
use super::transactions::CleanedTransactions;
use crate::config::LogConfig;
use crate::error::Result;
use crate::fs::Directory;
use crate::fs::seeded_bugs::{self, SeededBug};
use crate::index::due_entries::EntryRule;
use crate::log::{Log, OffsetMap};
use crate::record::control::{ControlType, first_record};
use crate::record::{BatchHeader, BatchRewriter, Records};
use crate::segment::{Batch, Segment};
use crate::state::producers::LastRecord;
use crate::writer::replacement;

/// A log that is cleaned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) log: &'a Log,
    pub(super) config: &'a LogConfig,
    pub(super) range: &'a CleaningRange,
    /// ms since the epoch.
    pub(super) now: i64,
}

/// The last offsets of the dirty keys.
#[derive(Debug)]
pub(super) struct DirtyKeys {
    map: OffsetMap,
    /// The last offset up to which all keys are in the map; −1 if there is none.
    latest_offset: i64,
}

impl DirtyKeys {
    /// The number of different keys.
    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    /// The first offset whose key may be missing: the first dirty offset after the pass.
    pub(super) fn end_offset(&self) -> i64 {
        self.latest_offset + 1
    }

    /// Reads the dirty records. `bytes`: the memory of the map. If it is full, the pass ends before the next record with a key.
    ///
    /// *Source*: `Cleaner.buildOffsetMap`.
    pub(super) fn read(source: Source<'_>, history: &History, bytes: usize) -> Result<Self> {
        let Source { log, range, .. } = source;
        let start = range.first_dirty_offset;
        let mut keys = Self { map: OffsetMap::new(bytes, history.dirty_records)?, latest_offset: -1 };
        // without those that end before: Kafka takes the records of the producer's next transaction, if that was committed, for aborted
        // ones, and older records of their keys remain after the tombstones
        let ahead: Vec<_> =
            history.aborted.iter().filter(|ended| ended.last_offset >= start).copied().collect();
        let mut transactions = CleanedTransactions::new(&ahead);
        let mut leader_epoch = -1;
        for (segment, next) in range.dirty_segments(log) {
            let mut is_full = false;
            leader_epoch = for_each_batch(&segment, log, leader_epoch, |batch, bytes| {
                if !is_full {
                    is_full = !keys.add(batch, bytes, start, &mut transactions)?;
                }
                Ok(())
            })?;
            if is_full {
                return Ok(keys);
            }
            // offsets may be missing at the end of the segment
            keys.latest_offset = next - 1;
        }
        Ok(keys)
    }

    /// Adds the keys of a batch. False if the map was full before its last one.
    ///
    /// *Source*: `Cleaner.buildOffsetMapForSegment`.
    fn add(
        &mut self,
        batch: &Batch,
        bytes: &[u8],
        start: i64,
        transactions: &mut CleanedTransactions,
    ) -> std::result::Result<bool, Unusable> {
        let header = &batch.header;
        let mut buffer = Vec::new();
        if header.is_control() {
            transactions.add_marker(header, control_type(header, bytes, &mut buffer)?);
        } else if !transactions.add_batch(header) || seeded_bugs::is(SeededBug::AbortedRecordsCount) {
            let (mut records, payload) = Records::open(*header, bytes, &mut buffer)?;
            let payload = payload.of(bytes, &buffer);
            while let Some(record) = records.next(payload)? {
                let Some(key) = record.key.filter(|_| record.offset >= start) else { continue };
                if self.map.is_full() {
                    return Ok(false);
                }
                let is_known = seeded_bugs::is(SeededBug::FirstRecordKept) && self.map.get(key).is_some();
                if !is_known {
                    self.map.put(key, record.offset)?;
                }
                self.latest_offset = record.offset;
            }
        }
        if header.last_offset >= start {
            self.latest_offset = header.last_offset;
        }
        Ok(true)
    }
}

/// The type of the marker in a control batch; `None` if compaction has removed it.
pub(super) fn control_type(
    header: &BatchHeader,
    bytes: &[u8],
    buffer: &mut Vec<u8>,
) -> std::result::Result<Option<ControlType>, Unusable> {
    Ok(match first_record(*header, bytes, buffer)? {
        Some(record) => Some(ControlType::parse(record.key)?),
        None => None,
    })
}

/// The second part of a pass.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    source: Source<'a>,
    filter: Filter<'a>,
    /// Tombstones in an old format remain in segments modified after this time, ms.
    old_delete_horizon: i64,
    leader_epoch: i32,
}

impl<'a> Pass<'a> {
    pub(super) fn new(source: Source<'a>, history: &History, keys: &'a DirtyKeys) -> Result<Self> {
        let Source { log, config, range, now } = source;
        let clean = log.segments().between(0, range.first_dirty_offset).last();
        let old_delete_horizon = match clean {
            Some(clean) => clean.identity()?.modified_ms().saturating_sub(config.delete_retention_ms),
            None => 0,
        };
        let filter = Filter {
            map: &keys.map,
            latest_offset: keys.latest_offset,
            first_uncleanable: range.first_uncleanable_offset,
            now,
            delete_retention_ms: config.delete_retention_ms,
            producers: HashMap::new(),
            transactions: CleanedTransactions::new(&history.aborted),
            rewriter: BatchRewriter::default(),
        };
        Ok(Self { source, filter, old_delete_horizon, leader_epoch: -1 })
    }

    /// Cleans the next group of segments. `directory`: where the new segment is written; `None`: the result is only counted. If this
    /// fails, no file remains.
    ///
    /// *Source*: `Cleaner.cleanSegments`.
    pub(super) fn clean(
        &mut self,
        group: &[Arc<Segment>],
        producers: HashMap<i64, LastRecord>,
        directory: Option<&Directory>,
    ) -> Result<Vec<CompactedSegment>> {
        self.filter.producers = producers;
        let (Some(first), Some(last)) = (group.first(), group.last()) else { return Ok(Vec::new()) };
        let base_offset = first.base_offset();
        let config = self.source.config;
        let rule = EntryRule {
            interval_bytes: u64::from(config.index_interval_bytes),
            max_index_size: u64::from(config.segment_index_bytes),
        };
        let cleaned = Output::create(directory, base_offset, rule).and_then(|mut output| {
            let segments = group
                .iter()
                .map(|segment| self.clean_segment(segment, base_offset, &mut output))
                .collect::<Result<Vec<_>>>()?;
            output.finish(last.identity()?)?;
            Ok(segments)
        });
        if let (Err(_), Some(directory)) = (&cleaned, directory) {
            // the next open deletes what cannot be deleted now
            let _ = replacement::remove(directory, base_offset);
        }
        cleaned
    }

    /// *Source*: `Cleaner.cleanInto`.
    fn clean_segment(
        &mut self,
        segment: &Arc<Segment>,
        new_base_offset: i64,
        output: &mut Output<'_>,
    ) -> Result<CompactedSegment> {
        let keeps_old_tombstones = segment.identity()?.modified_ms() > self.old_delete_horizon;
        let start = output.size();
        let (mut records_before, mut records_after) = (0, 0);
        let filter = &mut self.filter;
        self.leader_epoch = for_each_batch(segment, self.source.log, self.leader_epoch, |batch, bytes| {
            let remains = filter.apply(&batch.header, bytes, keeps_old_tombstones, output.buffer())?;
            records_before += remains.records_before;
            records_after += remains.records_after;
            if let Some(aborted) = remains.aborted {
                output.add_aborted(aborted);
            }
            if let Some(header) = remains.header {
                output.add(header).map_err(Unusable::from)?;
            }
            Ok(())
        })?;
        Ok(CompactedSegment {
            base_offset: segment.base_offset(),
            new_base_offset,
            bytes_before: segment.size()?,
            bytes_after: output.size() - start,
            records_before,
            records_after,
        })
    }
}

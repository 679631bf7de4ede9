//! The second part of a pass of compaction: the groups of segments, each of which becomes one segment. Kafka: `Cleaner.doClean`,
//! `cleanSegments`.

use std::collections::HashMap;
use std::sync::Arc;

use super::CompactedSegment;
use super::dirty_keys::DirtyKeys;
use super::filter::Filter;
use super::history::{History, Unusable, for_each_batch};
use super::output::Output;
use super::plan::CleaningRange;
use super::transactions::CleanedTransactions;
use crate::config::LogConfig;
use crate::error::Result;
use crate::fs::Directory;
use crate::index::due_entries::EntryRule;
use crate::log::Log;
use crate::record::control::{ControlType, first_record};
use crate::record::{BatchHeader, BatchRewriter};
use crate::segment::Segment;
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
            keys,
            first_uncleanable: range.first_uncleanable_offset,
            now,
            delete_retention_ms: config.delete_retention_ms,
            producers: HashMap::new(),
            transactions: CleanedTransactions::new(&history.aborted),
            rewriter: BatchRewriter::default(),
            plain: Vec::new(),
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

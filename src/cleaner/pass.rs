//! The second part of a pass of compaction: the groups of segments, each of which becomes one segment. Kafka:
//! `Cleaner.doClean`, `cleanSegments`.

use std::collections::HashMap;
use std::sync::Arc;

use super::CompactedSegment;
use super::batches::{BytesOf, SegmentBatches};
use super::dirty_keys::DirtyKeys;
use super::filter::{Decision, Filter, Remains, Rules, Scratch};
use super::history::History;
use super::output::Output;
use super::plan::CleaningRange;
use super::rounds::{self, Rounds};
use super::transactions::CleanedTransactions;
use crate::config::LogConfig;
use crate::error::Result;
use crate::fs::Directory;
use crate::index::due_entries::EntryRule;
use crate::log::Log;
use crate::segment::{EpochsBefore, Segment};
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

/// The second part of a pass.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    source: Source<'a>,
    rules: Rules<'a>,
    filter: Filter<'a>,
    scratch: Scratch,
    /// Batches that several threads rewrite. `None` with one thread.
    rounds: Option<Rounds<Decision, Scratch, u8, Remains>>,
    /// Tombstones in an old format remain in segments modified after this time, ms.
    old_delete_horizon: i64,
    epochs: EpochsBefore,
}

impl<'a> Pass<'a> {
    pub(super) fn new(
        source: Source<'a>,
        history: &History,
        keys: &'a DirtyKeys,
        threads: usize,
    ) -> Result<Self> {
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
            producers: HashMap::new(),
            transactions: CleanedTransactions::new(&history.aborted),
            keeps_old_tombstones: false,
            plain: Vec::new(),
        };
        Ok(Self {
            source,
            rules: Rules {
                keys,
                now,
                delete_retention_ms: config.delete_retention_ms,
                max_batch_bytes: log.options().max_batch_bytes,
            },
            filter,
            scratch: Scratch::default(),
            rounds: (threads > 1).then(|| Rounds::new(threads)),
            old_delete_horizon,
            epochs: EpochsBefore::UNKNOWN,
        })
    }

    /// Cleans the next group of segments. `directory`: where the new segment is written; `None`: the result
    /// is only counted. If this fails, no file remains.
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
        segment: &Segment,
        new_base_offset: i64,
        output: &mut Output<'_>,
    ) -> Result<CompactedSegment> {
        self.filter.keeps_old_tombstones = segment.identity()?.modified_ms() > self.old_delete_horizon;
        let start = output.size();
        let mut counts = Counts::default();
        let (log, bytes_of) = (self.source.log, BytesOf::AllBatches);
        let mut batches = SegmentBatches::new(segment, log, self.epochs, bytes_of)?;
        loop {
            let found = batches.next();
            if !matches!(found, Ok(Some(_))) {
                // before an error: one of the batches before it comes first
                self.run(&mut batches, output, &mut counts)?;
            }
            let Some(place) = found? else { break };
            let header = &place.batch.header;
            let (decision, aborted) = match self.filter.decide(header, batches.bytes(&place)?) {
                Ok(decided) => decided,
                Err(unusable) => {
                    self.run(&mut batches, output, &mut counts)?;
                    return Err(batches.error(&place, unusable));
                }
            };
            if let Some(aborted) = aborted {
                output.add_aborted(aborted);
            }
            if let Some(removed) = decision.of_removed(header) {
                counts.add(&removed);
                continue;
            }
            if let Some(rounds) = self.rounds.as_mut().filter(|_| rounds::accepts(header)) {
                if rounds.add(place, batches.bytes(&place)?, decision) {
                    self.run(&mut batches, output, &mut counts)?;
                }
                continue;
            }
            self.run(&mut batches, output, &mut counts)?;
            let bytes = batches.bytes(&place)?;
            let remains = self.rules.apply(decision, header, bytes, &mut self.scratch, output.buffer());
            let remains = remains.map_err(|unusable| batches.error(&place, unusable))?;
            counts.add(&remains);
            if let Some(header) = remains.header {
                output.add(header)?;
            }
        }
        self.epochs = batches.epochs();
        Ok(CompactedSegment {
            base_offset: segment.base_offset(),
            new_base_offset,
            bytes_before: segment.size()?,
            bytes_after: output.size() - start,
            records_before: counts.records_before,
            records_after: counts.records_after,
        })
    }

    /// Rewrites the batches that wait for it.
    fn run(
        &mut self,
        batches: &mut SegmentBatches<'_>,
        output: &mut Output<'_>,
        counts: &mut Counts,
    ) -> Result<()> {
        let Self { rounds: Some(rounds), rules, .. } = self else { return Ok(()) };
        rounds.work(|place, decision, bytes, (scratch, out)| {
            rules.apply(*decision, &place.batch.header, bytes, scratch, out)
        });
        let finished = rounds.finish(|_, remains, bytes| {
            let remains = remains?;
            counts.add(&remains);
            if let Some(header) = remains.header {
                output.buffer().extend_from_slice(bytes);
                output.add(header)?;
            }
            Ok(())
        });
        finished.map_err(|refused| batches.error(&refused.0, refused.1))
    }
}

/// The records of a segment before and after.
#[derive(Debug, Default)]
struct Counts {
    records_before: u64,
    records_after: u64,
}

impl Counts {
    fn add(&mut self, remains: &Remains) {
        self.records_before += remains.records_before;
        self.records_after += remains.records_after;
    }
}

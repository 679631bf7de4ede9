//! Which transactional records a committed reader sees, from the markers in the log.
//!
//! A transaction is open from a producer's first transactional batch to its next marker. One walk over the
//! headers finds the aborted transactions, and the last stable offset: the start of the oldest one that is
//! still open. While a transaction is open, checksums are verified. `.txnindex` files could only shorten the
//! walk, and a missing one looks like "none aborted", so they are read only if damage has destroyed a marker.
//!
//! A refreshed log continues the walk of the earlier one from a [`Checkpoint`], unless there was damage.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::Log;
use super::transaction_checkpoint::{Checkpoint, ReadSegment};
use crate::error::{Error, Malformed, Result};
use crate::record::control::ControlType;
use crate::segment::{Batch, DamagedSpan, EpochsBefore, SCAN_READ, Segment, Step, Walk};

/// An aborted transaction: its producer's id, its first offset and the offset of its marker.
pub type AbortedRange = (i64, i64, i64);

/// The transactions of a log, from its markers.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    /// The first offset of the oldest open transaction, or the log end offset: the exclusive end for a
    /// committed reader.
    pub(crate) last_stable_offset: i64,
    /// The same, if every transaction whose marker damage may have destroyed counts as ended there: the
    /// exclusive end for a committed reader that skips damage and leaves out undecided transactions.
    pub(crate) readable_end: i64,
    /// First and last offset of each aborted transaction, by producer, in order.
    aborted: HashMap<i64, Arc<Vec<(i64, i64)>>>,
    /// The same for transactions whose marker damage may have destroyed: that marker may differ from the
    /// producer's next one.
    undecided: HashMap<i64, Vec<(i64, i64)>>,
    /// The first damage that may have destroyed a marker: file, position, offset and what is wrong.
    first_damage: Option<(std::path::PathBuf, u64, i64, Malformed)>,
    /// The segments that were read to their ends.
    passed: Vec<ReadSegment>,
    /// Where a refreshed log continues; `None` if there was damage.
    checkpoint: Option<Checkpoint>,
}

/// The outcome of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed,
    Aborted,
    /// Damage may have destroyed the marker.
    Undecided,
}

/// An open transaction.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenTransaction {
    pub(super) first: i64,
    /// The last offset of its last batch.
    last: i64,
    /// The first batch after the damage that ends at `damage_end`.
    first_after_damage: Option<i64>,
    /// The exclusive end offset of damage that may have destroyed the marker.
    damage_end: Option<i64>,
    /// Whether that marker may have been an ABORT: no transaction index excludes it.
    may_be_aborted: bool,
}

impl OpenTransaction {
    /// The offset from which it is certainly open, if no marker follows the batches read so far.
    fn certainly_open_from(&self) -> Option<i64> {
        if self.damage_end.is_some() { self.first_after_damage } else { Some(self.first) }
    }

    fn at(first: i64) -> Self {
        Self { first, last: first, first_after_damage: None, damage_end: None, may_be_aborted: false }
    }

    /// Whether all of its records were deleted: it holds nothing back. Kafka forgets it when it loads the
    /// log.
    fn is_deleted(&self, log_start_offset: i64) -> bool {
        self.last < log_start_offset && self.damage_end.is_none()
    }
}

/// The open transactions by producer.
pub(super) type OpenTransactions = HashMap<i64, OpenTransaction>;

impl Transactions {
    /// Reads the transactions of a log. `earlier`: those of a log that it was refreshed from.
    pub(super) fn read(log: &Log, earlier: Option<&Self>) -> Result<Self> {
        let mut transactions =
            earlier.map_or(Ok(None), |earlier| earlier.until_checkpoint(log))?.unwrap_or_default();
        let mut resumed = transactions.checkpoint.clone();
        let mut open = resumed.as_ref().map_or_else(OpenTransactions::new, |resumed| resumed.open.clone());
        let mut is_damaged = false;
        let mut epochs = EpochsBefore::UNKNOWN;
        for segment in log.segments().iter().skip(transactions.passed.len()) {
            let mut last = resumed.as_ref().and_then(Checkpoint::last);
            let mut walk = match resumed.take() {
                Some(checkpoint) => checkpoint.walk(segment)?,
                None => segment.walk(epochs, SCAN_READ)?,
            };
            is_damaged |= transactions.read_segment(segment, &mut walk, &mut open, &mut last)?;
            epochs = EpochsBefore::after(walk.before);
            transactions.passed.push(ReadSegment { segment: Arc::clone(segment), last });
        }
        if is_damaged {
            transactions.checkpoint = None;
        }
        let end = log.log_end_offset()?;
        open.retain(|_, open| !open.is_deleted(log.log_start_offset()));
        let end_before = |first: Option<i64>| first.unwrap_or(end).max(log.log_start_offset());
        transactions.last_stable_offset = end_before(open.values().map(|open| open.first).min());
        transactions.readable_end =
            end_before(open.values().filter_map(OpenTransaction::certainly_open_from).min());
        for (producer_id, open) in open {
            if let Some(below) = open.damage_end {
                transactions.undecided.entry(producer_id).or_default().push((open.first, below - 1));
            }
        }
        Ok(transactions)
    }

    /// What is known of a refreshed log up to the checkpoint; `None` if the log has changed before it.
    fn until_checkpoint(&self, log: &Log) -> Result<Option<Self>> {
        let Some(checkpoint) = &self.checkpoint else { return Ok(None) };
        let passed = self.passed.get(..checkpoint.passed).unwrap_or_default();
        let Some(kept) = checkpoint.find_in(passed, log)? else { return Ok(None) };
        let mut aborted = self.aborted.clone();
        // the markers after the checkpoint are read again
        aborted.retain(|_, ranges| {
            let known = ranges.partition_point(|(_, last)| *last < checkpoint.offset);
            if known < ranges.len() {
                Arc::make_mut(ranges).truncate(known);
            }
            known > 0
        });
        let passed = passed.iter().skip(passed.len() - kept).cloned().collect();
        let checkpoint = Some(checkpoint.after(kept));
        Ok(Some(Self { aborted, passed, checkpoint, ..Self::default() }))
    }

    /// Reads the rest of a segment; returns whether there was damage. `last`: its last batch so far.
    fn read_segment(
        &mut self,
        segment: &Arc<Segment>,
        walk: &mut Walk,
        open: &mut OpenTransactions,
        last: &mut Option<Batch>,
    ) -> Result<bool> {
        let (mut buffer, mut is_damaged) = (Vec::new(), false);
        let passed = self.passed.len();
        loop {
            segment.open_files().interrupt.check()?;
            let before = walk.before;
            let due = Checkpoint::is_due(self.checkpoint.as_ref(), passed, walk).then(|| {
                Checkpoint::new(passed, ReadSegment { segment: Arc::clone(segment), last: *last }, walk, open)
            });
            let step = walk.step()?;
            if let Step::Batch(batch) = &step {
                *last = Some(*batch);
                self.checkpoint = due.or(self.checkpoint.take());
            }
            let damage = match step {
                Step::End => return Ok(is_damaged),
                Step::Batch(batch)
                    if !batch.header.is_transactional()
                        && open.is_empty()
                        && walk.is_continued(&batch)? =>
                {
                    continue;
                }
                Step::Batch(batch) => match self.take(&batch, walk, open, &mut buffer)? {
                    Ok(()) => continue,
                    Err(malformed) => walk.reject(&batch, before, malformed),
                },
                Step::Damage(damage) => damage,
            };
            is_damaged = true;
            let span = segment.resume(walk, &damage)?;
            self.close_from_index(segment, span, open);
            if !open.is_empty() && self.first_damage.is_none() {
                self.first_damage = Some((segment.path(), damage.position, damage.offset, damage.malformed));
            }
        }
    }

    /// Processes one batch: it opens a transaction, belongs to an open one, ends it, or is not transactional.
    /// The batch is verified: a flipped bit makes a marker look like any other batch, and its transaction
    /// would stay open and include the next one.
    fn take(
        &mut self,
        batch: &Batch,
        walk: &mut Walk,
        open: &mut OpenTransactions,
        buffer: &mut Vec<u8>,
    ) -> Result<std::result::Result<(), Malformed>> {
        let header = batch.header;
        if let Err(malformed) = walk.verify(batch)? {
            return Ok(Err(malformed));
        }
        if !header.is_transactional() {
            return Ok(Ok(()));
        }
        if !header.is_control() {
            let open =
                open.entry(header.producer_id).or_insert_with(|| OpenTransaction::at(header.base_offset));
            open.last = header.last_offset;
            if open.damage_end.is_some() {
                open.first_after_damage.get_or_insert(header.base_offset);
            }
            return Ok(Ok(()));
        }
        match ControlType::outcome(header, walk.bytes(batch)?, buffer) {
            Ok(Some(kind)) => {
                if let Some(open) = open.remove(&header.producer_id) {
                    self.close(header.producer_id, open, kind, header.last_offset);
                }
                Ok(Ok(()))
            }
            Ok(None) => Ok(Ok(())),
            Err(malformed) if malformed.is_too_large() => {
                Err(malformed.at(walk.log.path(), batch.position, Some(header.base_offset)))
            }
            Err(malformed) => Ok(Err(malformed)),
        }
    }

    /// A marker at `last` ends a transaction. The part of it before damage may have been ended by a destroyed
    /// marker, with another outcome.
    fn close(&mut self, producer_id: i64, open: OpenTransaction, kind: ControlType, last: i64) {
        let aborted_from = open.damage_end.unwrap_or(open.first);
        if kind == ControlType::Abort {
            Arc::make_mut(self.aborted.entry(producer_id).or_default()).push((aborted_from, last));
        }
        if let Some(below) = open.damage_end
            && (kind == ControlType::Abort || open.may_be_aborted)
        {
            self.undecided.entry(producer_id).or_default().push((open.first, below - 1));
        }
    }

    /// After damage: if the transaction index has an abort marker inside it, that transaction is closed. A
    /// missing or damaged index excludes nothing: transactions that are still open may have been aborted.
    fn close_from_index(&mut self, segment: &Segment, span: DamagedSpan, open: &mut OpenTransactions) {
        let end = span.end_offset.unwrap_or(segment.upper());
        let index = segment.or_warn(segment.transaction_index());
        let mut is_whole = index.as_ref().is_some_and(|index| index.sanity_check().is_ok());
        for entry in index.iter().flat_map(|index| index.iter()) {
            let Ok(entry) = entry else {
                is_whole = false;
                break;
            };
            if (span.start_offset..end).contains(&entry.last_offset)
                && let Some(open) = open.remove(&entry.producer_id)
            {
                self.close(entry.producer_id, open, ControlType::Abort, entry.last_offset);
            }
        }
        for open in open.values_mut() {
            open.damage_end = Some(end);
            open.first_after_damage = None;
            open.may_be_aborted |= !is_whole;
        }
    }

    /// The transactions of a split, which ends below every open transaction. Sorted here, because callers may
    /// construct a split themselves.
    pub(super) fn of_split(aborted: &[AbortedRange]) -> Self {
        let mut transactions =
            Self { last_stable_offset: i64::MAX, readable_end: i64::MAX, ..Self::default() };
        for (producer_id, first, last) in aborted {
            Arc::make_mut(transactions.aborted.entry(*producer_id).or_default()).push((*first, *last));
        }
        transactions.aborted.values_mut().for_each(|ranges| Arc::make_mut(ranges).sort_unstable());
        transactions
    }

    /// The aborted transactions that overlap a range of offsets, in order; `None` if damage leaves one
    /// undecided, or if there are more than `max`.
    pub(crate) fn aborted_in(&self, offsets: Range<i64>, max: usize) -> Option<Vec<AbortedRange>> {
        if self.first_damage.is_some() || !self.undecided.is_empty() {
            return None;
        }
        let mut overlapping = Vec::new();
        for (producer_id, ranges) in &self.aborted {
            // a producer's transactions do not overlap
            let from = ranges.partition_point(|(_, last)| *last < offsets.start);
            let inside = ranges.iter().skip(from).take_while(|(first, _)| *first < offsets.end);
            for (first, last) in inside {
                if overlapping.len() == max {
                    return None;
                }
                overlapping.push((*producer_id, *first, *last));
            }
        }
        overlapping.sort_unstable();
        Some(overlapping)
    }

    /// The outcome of a producer's transactional batch at `offset`, which is below the last stable offset.
    pub(crate) fn outcome(&self, producer_id: i64, offset: i64) -> Outcome {
        let is_in = |ranges: &[(i64, i64)]| {
            let after = ranges.partition_point(|(first, _)| *first <= offset);
            after.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|(_, last)| offset <= *last)
        };
        match () {
            () if self.aborted.get(&producer_id).is_some_and(|ranges| is_in(ranges)) => Outcome::Aborted,
            () if self.undecided.get(&producer_id).is_some_and(|ranges| is_in(ranges)) => Outcome::Undecided,
            () => Outcome::Committed,
        }
    }

    /// An error if damage leaves the outcome of a transaction undecided, for callers that do not skip damage.
    pub(crate) fn ensure_decided(&self) -> Result<()> {
        match &self.first_damage {
            None => Ok(()),
            Some((file, position, offset, malformed)) => {
                let error: Error = malformed.clone().at(file, *position, Some(*offset));
                Err(error)
            }
        }
    }
}

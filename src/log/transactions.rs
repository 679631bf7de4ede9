//! Which transactional records a committed reader sees, from the markers in the log.
//!
//! A transaction is open from a producer's first transactional batch to its next marker. One walk over the headers
//! finds the aborted transactions, and the last stable offset: the start of the oldest one that is still open. While a
//! transaction is open, checksums are verified. `.txnindex` files could only shorten the walk, and a missing one looks
//! like "none aborted", so they are read only if damage has destroyed a marker.

use std::collections::HashMap;
use std::ops::Range;

use super::Log;
use crate::error::{Error, Malformed, Result};
use crate::record::control::{self, ControlType};
use crate::segment::{Batch, DamagedSpan, SCAN_READ, Segment, Step, Walk};

/// An aborted transaction: its producer's id, its first offset and the offset of its marker.
pub type AbortedRange = (i64, i64, i64);

/// The transactions of a log, from its markers.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    /// The first offset of the oldest open transaction, or the log end offset: the exclusive end for a committed reader.
    pub(crate) last_stable_offset: i64,
    /// The same, if every transaction whose marker damage may have destroyed counts as ended there: the exclusive end for a
    /// committed reader that skips damage and leaves out undecided transactions.
    pub(crate) readable_end: i64,
    /// First and last offset of each aborted transaction, by producer, in order.
    aborted: HashMap<i64, Vec<(i64, i64)>>,
    /// The same for transactions whose marker damage may have destroyed: that marker may differ from the producer's next
    /// one.
    undecided: HashMap<i64, Vec<(i64, i64)>>,
    /// The first damage that may have destroyed a marker: file, position, offset and what is wrong.
    first_damage: Option<(std::path::PathBuf, u64, i64, Malformed)>,
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
struct OpenTransaction {
    first: i64,
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

    /// Whether all of its records were deleted: it holds nothing back. Kafka forgets it when it loads the log.
    fn is_deleted(&self, log_start_offset: i64) -> bool {
        self.last < log_start_offset && self.damage_end.is_none()
    }
}

/// The open transactions by producer.
type OpenTransactions = HashMap<i64, OpenTransaction>;

impl Transactions {
    /// Reads the transactions of a log.
    pub(super) fn read(log: &Log) -> Result<Self> {
        let mut transactions = Self::default();
        let mut open = OpenTransactions::new();
        let mut leader_epoch = -1;
        for segment in log.segments().iter() {
            let mut walk = segment.walk_after(leader_epoch, SCAN_READ)?;
            transactions.read_segment(segment, &mut walk, &mut open)?;
            leader_epoch = walk.before.map_or(-1, |before| before.leader_epoch);
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

    fn read_segment(
        &mut self,
        segment: &Segment,
        walk: &mut Walk,
        open: &mut OpenTransactions,
    ) -> Result<()> {
        let mut buffer = Vec::new();
        loop {
            segment.open_files().interrupt.check()?;
            let before = walk.before;
            let damage = match walk.step()? {
                Step::End => return Ok(()),
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
            let span = segment.resume(walk, &damage)?;
            self.close_from_index(segment, span, open);
            if !open.is_empty() && self.first_damage.is_none() {
                self.first_damage = Some((segment.path(), damage.position, damage.offset, damage.malformed));
            }
        }
    }

    /// Processes one batch: it opens a transaction, belongs to an open one, ends it, or is not transactional. The batch is
    /// verified: a flipped bit makes a marker look like any other batch, and its transaction would stay open and include
    /// the next one.
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
        match marker(header, walk.bytes(batch)?, buffer) {
            Ok(Some(kind)) => {
                if let Some(open) = open.remove(&header.producer_id) {
                    self.close(header.producer_id, open, kind, header.last_offset);
                }
                Ok(Ok(()))
            }
            Ok(None) => Ok(Ok(())),
            Err(malformed) => Ok(Err(malformed)),
        }
    }

    /// A marker at `last` ends a transaction. The part of it before damage may have been ended by a destroyed marker, with
    /// another outcome.
    fn close(&mut self, producer_id: i64, open: OpenTransaction, kind: ControlType, last: i64) {
        let aborted_from = open.damage_end.unwrap_or(open.first);
        if kind == ControlType::Abort {
            self.aborted.entry(producer_id).or_default().push((aborted_from, last));
        }
        if let Some(below) = open.damage_end
            && (kind == ControlType::Abort || open.may_be_aborted)
        {
            self.undecided.entry(producer_id).or_default().push((open.first, below - 1));
        }
    }

    /// After damage: if the transaction index has an abort marker inside it, that transaction is closed. A missing or
    /// damaged index excludes nothing: transactions that are still open may have been aborted.
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

    /// The transactions of a split, which ends below every open transaction. Sorted here, because callers may construct a
    /// split themselves.
    pub(super) fn of_split(aborted: &[AbortedRange]) -> Self {
        let mut transactions =
            Self { last_stable_offset: i64::MAX, readable_end: i64::MAX, ..Self::default() };
        for (producer_id, first, last) in aborted {
            transactions.aborted.entry(*producer_id).or_default().push((*first, *last));
        }
        transactions.aborted.values_mut().for_each(|ranges| ranges.sort_unstable());
        transactions
    }

    /// The aborted transactions that overlap a range of offsets, in order; `None` if damage leaves one undecided, or if
    /// there are more than `max`.
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
        let is_in = |transactions: &HashMap<i64, Vec<(i64, i64)>>| {
            transactions.get(&producer_id).is_some_and(|ranges| {
                let after = ranges.partition_point(|(first, _)| *first <= offset);
                after.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|(_, last)| offset <= *last)
            })
        };
        match () {
            () if is_in(&self.aborted) => Outcome::Aborted,
            () if is_in(&self.undecided) => Outcome::Undecided,
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

/// The type of the (first) control record of a batch; `None` if compaction removed it, or if it does not end a
/// transaction.
pub(super) fn marker(
    header: crate::record::BatchHeader,
    bytes: &[u8],
    buffer: &mut Vec<u8>,
) -> std::result::Result<Option<ControlType>, Malformed> {
    let Some(record) = control::first_record(header, bytes, buffer)? else { return Ok(None) };
    Ok(match ControlType::parse(record.key)? {
        ControlType::Other(_) => None,
        kind => Some(kind),
    })
}

//! Which transactional records a committed reader sees, from the markers in the log alone.
//!
//! A transaction is open from a producer's first transactional batch to its next marker. One walk over the headers finds
//! the aborted ones, and the oldest that is still open: the last stable offset. While one is open, checksums are
//! verified. `.txnindex` files could only shorten the walk, and a missing one looks like "none aborted"; they are asked
//! where damage has swallowed a marker.

use std::collections::HashMap;
use std::ops::Range;

use super::Log;
use crate::error::{Error, Malformed, Result};
use crate::record::Records;
use crate::record::control::ControlType;
use crate::segment::{Batch, DamagedSpan, SCAN_READ, Segment, Step, Walk};

/// An aborted transaction: its producer's id, its first offset and that of its marker.
pub type AbortedRange = (i64, i64, i64);

/// What the markers of a log say.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    /// Offsets from here on belong to, or come after, a transaction that is still open. Exclusive end of what a committed
    /// reader sees.
    pub(crate) last_stable_offset: i64,
    /// The same if every transaction that damage may have ended was ended there: how far one may read who passes over
    /// damage, and leaves out what is in doubt.
    pub(crate) readable_end: i64,
    /// First and last offset of each aborted transaction, by producer, in order.
    aborted: HashMap<i64, Vec<(i64, i64)>>,
    /// The same of what a marker swallowed by damage may have ended in another way than the next one did.
    undecided: HashMap<i64, Vec<(i64, i64)>>,
    /// The first damage that may have swallowed a marker: file, position, offset and what is wrong.
    unsure: Option<(std::path::PathBuf, u64, i64, Malformed)>,
}

/// What becomes of the records of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed,
    Aborted,
    /// Damage may have swallowed the marker that says so.
    Undecided,
}

/// A transaction under way.
#[derive(Debug, Clone, Copy)]
struct OpenTransaction {
    first: i64,
    /// Its first batch behind the damage of `marked_below`.
    first_behind: Option<i64>,
    /// Its marker may lie in a damaged stretch that ends below this offset.
    marked_below: Option<i64>,
    /// That marker may have been an ABORT: no transaction index says that it was none.
    may_be_aborted: bool,
}

impl OpenTransaction {
    /// From where on it is open for certain, if it has no marker behind what is known of it.
    fn certainly_open(&self) -> Option<i64> {
        if self.marked_below.is_some() { self.first_behind } else { Some(self.first) }
    }

    fn at(first: i64) -> Self {
        Self { first, first_behind: None, marked_below: None, may_be_aborted: false }
    }
}

/// The open transactions by producer.
type OpenTransactions = HashMap<i64, OpenTransaction>;

impl Transactions {
    /// Reads them from a log.
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
        let end_before = |first: Option<i64>| first.unwrap_or(end).max(log.log_start_offset());
        transactions.last_stable_offset = end_before(open.values().map(|open| open.first).min());
        transactions.readable_end =
            end_before(open.values().filter_map(OpenTransaction::certainly_open).min());
        for (producer_id, open) in open {
            if let Some(below) = open.marked_below {
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
            if !open.is_empty() && self.unsure.is_none() {
                self.unsure = Some((segment.path(), damage.position, damage.offset, damage.malformed));
            }
        }
    }

    /// One batch: opens a transaction, belongs to an open one, ends it, or has nothing to do with any. It is verified: a
    /// flipped bit makes a marker look like any other batch, and its transaction would stay open and take in the next.
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
            if open.marked_below.is_some() {
                open.first_behind.get_or_insert(header.base_offset);
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

    /// A marker at `last` ends a transaction. What lies before a damaged stretch may have been ended in there already, and
    /// otherwise.
    fn close(&mut self, producer_id: i64, open: OpenTransaction, kind: ControlType, last: i64) {
        let aborted_from = open.marked_below.unwrap_or(open.first);
        if kind == ControlType::Abort {
            self.aborted.entry(producer_id).or_default().push((aborted_from, last));
        }
        if let Some(below) = open.marked_below
            && (kind == ControlType::Abort || open.may_be_aborted)
        {
            self.undecided.entry(producer_id).or_default().push((open.first, below - 1));
        }
    }

    /// Damage swallowed a stretch: where the transaction index names an abort marker in it, that transaction is over. An
    /// index that is not there (or not whole) says nothing, and what is open then may have been aborted.
    fn close_from_index(&mut self, segment: &Segment, stretch: DamagedSpan, open: &mut OpenTransactions) {
        let end = stretch.end_offset.unwrap_or(segment.upper());
        let index = segment.or_warn(segment.transaction_index());
        let mut is_whole = index.as_ref().is_some_and(|index| index.sanity_check().is_ok());
        for entry in index.iter().flat_map(|index| index.iter()) {
            let Ok(entry) = entry else {
                is_whole = false;
                break;
            };
            if (stretch.start_offset..end).contains(&entry.last_offset)
                && let Some(open) = open.remove(&entry.producer_id)
            {
                self.close(entry.producer_id, open, ControlType::Abort, entry.last_offset);
            }
        }
        for open in open.values_mut() {
            open.marked_below = Some(end);
            open.first_behind = None;
            open.may_be_aborted |= !is_whole;
        }
    }

    /// Those of a split, which lies below every open transaction. Sorted here: a split may be made by hand.
    pub(super) fn of_split(aborted: &[AbortedRange]) -> Self {
        let mut transactions =
            Self { last_stable_offset: i64::MAX, readable_end: i64::MAX, ..Self::default() };
        for (producer_id, first, last) in aborted {
            transactions.aborted.entry(*producer_id).or_default().push((*first, *last));
        }
        transactions.aborted.values_mut().for_each(|ranges| ranges.sort_unstable());
        transactions
    }

    /// The aborted transactions that overlap a range of offsets, in order; `None` where damage leaves one in doubt, or they
    /// are more than `most`.
    pub(super) fn aborted_in(&self, offsets: Range<i64>, most: usize) -> Option<Vec<AbortedRange>> {
        if self.unsure.is_some() || !self.undecided.is_empty() {
            return None;
        }
        let mut overlapping = Vec::new();
        for (producer_id, ranges) in &self.aborted {
            // a producer's transactions come one after another
            let from = ranges.partition_point(|(_, last)| *last < offsets.start);
            let inside = ranges.iter().skip(from).take_while(|(first, _)| *first < offsets.end);
            for (first, last) in inside {
                if overlapping.len() == most {
                    return None;
                }
                overlapping.push((*producer_id, *first, *last));
            }
        }
        overlapping.sort_unstable();
        Some(overlapping)
    }

    /// What becomes of a producer's transactional batch at `offset`, which lies below the last stable offset.
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

    /// An error where damage leaves it open how a transaction ended, for who does not pass over damage.
    pub(crate) fn ensure_decided(&self) -> Result<()> {
        match &self.unsure {
            None => Ok(()),
            Some((file, position, offset, malformed)) => {
                let error: Error = malformed.clone().at(file, *position, Some(*offset));
                Err(error)
            }
        }
    }
}

/// The type of the (first) control record of a batch, or `None` where compaction left none or it ends no transaction.
pub(super) fn marker(
    header: crate::record::BatchHeader,
    bytes: &[u8],
    buffer: &mut Vec<u8>,
) -> std::result::Result<Option<ControlType>, Malformed> {
    let (mut records, payload) = Records::open(header, bytes, buffer)?;
    let Some(record) = records.next(payload.of(bytes, buffer))? else { return Ok(None) };
    Ok(match ControlType::parse(record.key)? {
        ControlType::Other(_) => None,
        kind => Some(kind),
    })
}

//! Reading a range of a log: batches in order, tested by their headers, and the records of those that pass.

mod damage;
mod damaged_range;
mod ranges;
mod stats;
mod uncommitted;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use damage::break_off;
pub use damaged_range::DamagedRange;
use damaged_range::rest_of;
pub use ranges::Ranges;
pub use stats::ScanStats;
pub(crate) use uncommitted::Uncommitted;

use super::{Log, Outcome, Transactions};
use crate::error::{Error, Malformed, Result};
use crate::record::{BatchHeader, Payload, RecordRef, Records};
use crate::segment::{Batch, SCAN_READ, Segment, Step, Walk};
use crate::types::{IsolationLevel, TimestampType};

/// What a scan does where the log is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// Ends with [`Error::Corrupt`].
    #[default]
    Raise,
    /// Goes on behind it; [`Scan::damaged_ranges`] names the stretch.
    Skip,
    /// As `Skip`, and [`ScanStep::DamagedRange`] says so in its place among the batches.
    Report,
}

/// What a scan reads.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScanOptions {
    /// Which records.
    pub ranges: Ranges,
    /// Which transactions.
    pub isolation_level: IsolationLevel,
    /// Whether control records are given too.
    pub include_control: bool,
    /// What to do about damage.
    pub on_damage: OnDamage,
    /// Give every batch of the range by its header, control batches too, and open none.
    pub batches_only: bool,
}

/// What comes next in a scan.
#[derive(Debug)]
pub enum ScanStep {
    /// A batch; [`Scan::next_record`] gives its records that are in the range.
    Batch(Batch),
    /// A damaged stretch (with [`OnDamage::Report`] only).
    DamagedRange(DamagedRange),
}

/// A scan under way. *Memory*: one batch and what it decompresses to.
#[derive(Debug)]
pub struct Scan {
    log: Log,
    options: ScanOptions,
    start: i64,
    end: i64,
    transactions: Option<Arc<Transactions>>,
    segment: Option<Arc<Segment>>,
    walk: Option<Walk>,
    /// The offset after the last batch of `segment`, once its end was reached.
    segment_end: Option<i64>,
    /// The base offset that the next segment must lie above; `None` before the first.
    after_segment: Option<i64>,
    /// The offset behind the last batch seen.
    next_offset: Option<i64>,
    leader_epoch: i32,
    batch: Option<(Batch, Records, Payload)>,
    buffer: Vec<u8>,
    damaged_ranges: Vec<DamagedRange>,
    stats: ScanStats,
    /// Of a scan that gives records which a committed reader may not see.
    uncommitted: Option<Uncommitted>,
    /// The offset of the first record given of the batch that is read now.
    first_given: Option<i64>,
    finished: bool,
    /// Another thread's word that the scan is not wanted any more.
    stop: Option<Arc<AtomicBool>>,
}

impl Log {
    /// Starts a scan.
    ///
    /// # Errors
    /// [`Error::OffsetOutOfRange`] for a start below the log start or above the log end
    /// offset; [`Error::Config`] for a start above its end or a negative time; with read-committed
    /// what [`Log::last_stable_offset`] may give.
    pub fn scan(&self, options: ScanOptions) -> Result<Scan> {
        let (start, mut end) = self.resolve(&options.ranges)?;
        let mut transactions = None;
        if options.isolation_level == IsolationLevel::ReadCommitted {
            let found = self.transactions()?;
            if options.on_damage == OnDamage::Raise {
                // a range below every open transaction does not ask how they ended
                if end > found.last_stable_offset {
                    found.ensure_decided()?;
                }
                end = end.min(found.last_stable_offset);
            } else {
                end = end.min(found.readable_end);
            }
            transactions = Some(found);
        }
        Ok(Scan {
            log: self.clone(),
            options,
            start,
            end,
            transactions,
            segment: None,
            walk: None,
            segment_end: None,
            after_segment: None,
            next_offset: None,
            leader_epoch: -1,
            batch: None,
            buffer: Vec::new(),
            damaged_ranges: Vec::new(),
            stats: ScanStats::default(),
            uncommitted: (options.isolation_level == IsolationLevel::ReadUncommitted
                && !options.batches_only)
                .then(Uncommitted::default),
            first_given: None,
            finished: start >= end,
            stop: None,
        })
    }
}

impl Scan {
    /// The log that is read.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The base offset of the segment that is read now.
    pub fn segment(&self) -> Option<i64> {
        self.segment.as_ref().map(|segment| segment.base_offset())
    }

    /// Lets another thread end the scan: once `stop` is set, the next step is [`Error::Interrupted`].
    pub fn stop_when(&mut self, stop: &Arc<AtomicBool>) {
        self.stop = Some(Arc::clone(stop));
    }

    /// The damaged stretches passed over so far.
    pub fn damaged_ranges(&self) -> &[DamagedRange] {
        &self.damaged_ranges
    }

    /// What was done so far.
    pub fn stats(&self) -> ScanStats {
        self.stats
    }

    /// The first offset given so far of a transaction that was aborted, or has not ended: a committed reader does not see
    /// it. `None` where there is none. *Cost*: where what was scanned ends within a transaction, the log is read on up to
    /// its marker.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::LogChanged`], [`Error::Interrupted`].
    pub fn first_uncommitted(&self) -> Result<Option<i64>> {
        self.uncommitted().map_or(Ok(None), |uncommitted| uncommitted.find(&self.log))
    }

    /// What is known of the transactions of the records given so far; `None` where all are committed.
    pub(crate) fn uncommitted(&self) -> Option<Uncommitted> {
        let mut uncommitted = self.uncommitted.clone()?;
        uncommitted.closes(self.first_given);
        (!uncommitted.is_none()).then_some(uncommitted)
    }

    /// The next batch with records that may be in the range, or a gap; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with [`OnDamage::Raise`]; and, however damage is met, [`Error::UnsupportedFormat`],
    /// [`Error::Io`], [`Error::LogChanged`] and [`Error::Interrupted`]. An error ends the scan.
    pub fn next_step(&mut self) -> Result<Option<ScanStep>> {
        self.batch = None;
        let first_given = self.first_given.take();
        if let Some(uncommitted) = &mut self.uncommitted {
            uncommitted.closes(first_given);
        }
        if self.finished {
            return Ok(None);
        }
        let next = self.find_next();
        if !matches!(next, Ok(Some(_))) {
            self.finished = true;
        }
        next
    }

    /// The next record of the batch just given that is in the range; `None` after the last.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where a record breaks the format (with [`OnDamage::Raise`]; else the rest
    /// of the batch becomes a gap).
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<RecordRef<'_>>> {
        let Some((batch, records, payload)) = &mut self.batch else { return Ok(None) };
        let Some(bytes) = payload_bytes(batch, *payload, &mut self.walk, &self.buffer)? else {
            return Ok(None);
        };
        loop {
            match records.next(bytes) {
                Ok(None) => return Ok(None),
                Ok(Some(record)) => {
                    if is_in_range(&record, self.start..self.end, &self.options) {
                        self.stats.records += 1;
                        self.first_given.get_or_insert(record.offset);
                        return Ok(Some(record));
                    }
                }
                Err(malformed) => {
                    let broken = break_off(&mut self.batch, self.segment.as_ref(), &self.options, malformed);
                    self.finished |= broken.is_err();
                    self.damaged_ranges.extend(broken?);
                    return Ok(None);
                }
            }
        }
    }

    /// [`Scan::next_record`] for one record after another, as long as `take` answers true: a record is lent where it was
    /// decoded, not moved out, which is what half of a column's time would go into. True where `take` ended it, false
    /// after the last record.
    #[cfg(feature = "arrow")]
    pub(crate) fn each_record(
        &mut self,
        mut take: impl FnMut(&RecordRef<'_>) -> Result<bool>,
    ) -> Result<bool> {
        let Some((batch, records, payload)) = &mut self.batch else { return Ok(false) };
        let Some(bytes) = payload_bytes(batch, *payload, &mut self.walk, &self.buffer)? else {
            return Ok(false);
        };
        loop {
            match &records.next(bytes) {
                Ok(None) => return Ok(false),
                Ok(Some(record)) => {
                    if is_in_range(record, self.start..self.end, &self.options) {
                        self.stats.records += 1;
                        self.first_given.get_or_insert(record.offset);
                        if !take(record)? {
                            return Ok(true);
                        }
                    }
                }
                Err(malformed) => {
                    let malformed = malformed.clone();
                    let broken = break_off(&mut self.batch, self.segment.as_ref(), &self.options, malformed);
                    self.finished |= broken.is_err();
                    self.damaged_ranges.extend(broken?);
                    return Ok(false);
                }
            }
        }
    }

    fn find_next(&mut self) -> Result<Option<ScanStep>> {
        loop {
            self.log.options().interrupt.check()?;
            if self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Err(Error::Interrupted("another thread failed".into()));
            }
            if self.walk.is_none() && !self.next_segment()? {
                return Ok(self.damaged_tail()?.map(ScanStep::DamagedRange));
            }
            let (Some(walk), Some(segment)) = (&mut self.walk, &self.segment) else { return Ok(None) };
            let before = walk.before;
            let batch = match walk.step_through()? {
                Step::End => {
                    self.leader_epoch = before.map_or(self.leader_epoch, |before| before.leader_epoch);
                    self.segment_end = before.map(|before| before.last_offset + 1);
                    self.walk = None;
                    continue;
                }
                Step::Damage(damage) => {
                    let segment = Arc::clone(segment);
                    match self.pass(&segment, &damage)? {
                        Some(gap) => return Ok(Some(ScanStep::DamagedRange(gap))),
                        None => continue,
                    }
                }
                Step::Batch(batch) => batch,
            };
            let header = batch.header;
            // verified before it is passed over or ends the range too: where the next batch lies, and which offsets are
            // left for it, is this header's word
            if let Err(malformed) = walk.verify(&batch)? {
                let damage = walk.reject(&batch, before, malformed);
                let segment = Arc::clone(segment);
                match self.pass(&segment, &damage)? {
                    Some(gap) => return Ok(Some(ScanStep::DamagedRange(gap))),
                    None => continue,
                }
            }
            if header.base_offset >= self.end {
                return Ok(None);
            }
            segment.note_overflow(&batch);
            self.stats.bytes_read += u64::from(header.size);
            if header.last_offset < self.start {
                self.stats.batches_skipped += 1;
                continue;
            }
            if self.next_offset.is_some_and(|expected| header.base_offset > expected) {
                self.stats.offset_gaps += 1;
            }
            // what damage swallowed is not missing between two batches
            let is_after_damage = self
                .damaged_ranges
                .last()
                .is_some_and(|gap| gap.end_position == batch.position && gap.file == segment.path());
            if segment.shows_compaction(&batch, before.filter(|_| !is_after_damage)) {
                self.log.note_compacted(segment);
            }
            self.next_offset = Some(header.last_offset + 1);
            if let Some(uncommitted) = &mut self.uncommitted {
                uncommitted.meets(&batch, walk)?;
            }
            let outcome = self.outcome(&header);
            if !self.wants(&header) || outcome == Outcome::Aborted {
                self.stats.batches_skipped += 1;
                continue;
            }
            if outcome == Outcome::Undecided {
                if self.options.on_damage == OnDamage::Raise
                    && let Some(transactions) = &self.transactions
                {
                    transactions.ensure_decided()?;
                }
                let committed =
                    Malformed::new("the marker of its transaction", "damage where it may have been");
                self.damaged_ranges.push(DamagedRange::new(
                    segment,
                    rest_of(&batch, header.base_offset),
                    &committed,
                ));
                match self.reported() {
                    None => continue,
                    gap => return Ok(gap.map(ScanStep::DamagedRange)),
                }
            }
            if header.count == Some(0) && !self.options.batches_only {
                // compaction kept it for its producer's sake: nothing to open, nothing to give
                self.stats.batches += 1;
                continue;
            }
            if self.options.batches_only || self.open(batch)? {
                if let Some(uncommitted) = &mut self.uncommitted {
                    uncommitted.opens(&header);
                }
                self.stats.batches += 1;
                return Ok(Some(ScanStep::Batch(batch)));
            }
            if let Some(gap) = self.reported() {
                return Ok(Some(ScanStep::DamagedRange(gap)));
            }
        }
    }

    /// Opens the next segment that may hold something of the range; false where there is none.
    fn next_segment(&mut self) -> Result<bool> {
        loop {
            let segments = self.log.segments();
            let next = match self.after_segment {
                None => segments.floor(self.start).or(segments.first()),
                Some(base) => segments.higher(base),
            };
            if let (Some(ended), Some(end)) = (&self.segment, self.segment_end.take()) {
                let high = ended.upper();
                // the offsets after the last good batch are in the gap of the damage then
                let is_damaged =
                    end < high && self.damaged_ranges.last().is_some_and(|gap| gap.end_offset == Some(high));
                if !is_damaged {
                    ended.check_indexes(end);
                }
                if let Some(next) = next.filter(|_| end < self.end.min(high)) {
                    self.log.check_listing(ended, next)?;
                    if !is_damaged {
                        self.log.warn_of_gap(ended, end, next)?;
                    }
                }
            }
            let Some(segment) = next.filter(|segment| segment.base_offset() < self.end).cloned() else {
                return Ok(false);
            };
            self.after_segment = Some(segment.base_offset());
            let from = self.start.max(segment.base_offset());
            // markers are not passed over with what is too old
            let is_waiting = self.uncommitted.as_ref().is_some_and(Uncommitted::is_waiting);
            let walk = match self.options.ranges.start_time.filter(|_| !is_waiting) {
                Some(start_time) => {
                    match segment.largest_record_timestamp() {
                        Ok(largest) if largest < start_time => continue,
                        // where damage hides it, the segment is read; the scan meets the damage itself
                        Err(error) if !error.is_damage() => return Err(error),
                        _ => {}
                    }
                    segment.walk_to_time(start_time, from, SCAN_READ)?
                }
                None if from > segment.base_offset() => {
                    segment.walk_to(from, self.leader_epoch, SCAN_READ)?.0
                }
                None if self.options.on_damage == OnDamage::Raise => {
                    segment.walk(self.leader_epoch, SCAN_READ)?
                }
                None => segment.walk_after(self.leader_epoch, SCAN_READ)?,
            };
            self.stats.segments_opened += 1;
            self.walk = Some(walk);
            self.segment = Some(segment);
            return Ok(true);
        }
    }

    /// Whether a batch may hold a record that is wanted, by its (verified) header.
    fn wants(&self, header: &BatchHeader) -> bool {
        let ranges = &self.options.ranges;
        // a header states no minimum, but where all records share one timestamp, that is it
        let is_one_time = header.timestamp_type() == TimestampType::LogAppendTime || header.count == Some(1);
        let in_time = ranges.start_time.is_none_or(|start| header.max_timestamp >= start)
            && (!is_one_time || ranges.holds_time(header.max_timestamp));
        let visible = self.options.batches_only || self.options.include_control || !header.is_control();
        in_time && visible
    }

    /// What a committed reader may make of a batch; every batch counts as committed to another.
    fn outcome(&self, header: &BatchHeader) -> Outcome {
        match &self.transactions {
            Some(transactions) if header.is_transactional() && !header.is_control() => {
                transactions.outcome(header.producer_id, header.base_offset)
            }
            _ => Outcome::Committed,
        }
    }

    /// Makes a batch's records ready; false where they cannot be read (a gap then, or an error).
    fn open(&mut self, batch: Batch) -> Result<bool> {
        let Some(walk) = &mut self.walk else { return Ok(false) };
        match Records::open(batch.header, walk.bytes(&batch)?, &mut self.buffer) {
            Ok((records, payload)) => {
                self.stats.batches_decompressed += u64::from(payload == Payload::Buffer);
                self.batch = Some((batch, records, payload));
                Ok(true)
            }
            // its checksum holds, so the walk goes on behind it
            Err(malformed) => {
                let Some(segment) = &self.segment else { return Ok(false) };
                let from = batch.header.base_offset;
                // what a later version can read is no damage: passed over, it would be lost without a word
                if malformed.unsupported || self.options.on_damage == OnDamage::Raise {
                    return Err(malformed.at(segment.path(), batch.position, Some(from)));
                }
                self.damaged_ranges.push(DamagedRange::new(segment, rest_of(&batch, from), &malformed));
                Ok(false)
            }
        }
    }
}

/// Where the records of the open batch lie; `None` where there is no walk.
#[inline]
fn payload_bytes<'a>(
    batch: &Batch,
    payload: Payload,
    walk: &'a mut Option<Walk>,
    buffer: &'a [u8],
) -> Result<Option<&'a [u8]>> {
    Ok(match (payload, walk) {
        (Payload::Buffer, _) => Some(buffer),
        // the batch just verified is mapped or still in the window: nothing is read again
        (Payload::Batch(start), Some(walk)) => Some(walk.bytes(batch)?.get(start..).unwrap_or_default()),
        (Payload::Batch(_), None) => None,
    })
}

#[inline]
fn is_in_range(record: &RecordRef<'_>, offsets: Range<i64>, options: &ScanOptions) -> bool {
    offsets.contains(&record.offset) && options.ranges.holds_time(record.timestamp)
}

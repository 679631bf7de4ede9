//! Reading a range of a log: batches in order, tested by their headers, and the records of those that pass.
//!
//! [`cursor`] finds the next batch, [`filter`] decides whether it is returned, and [`damage`] handles damage.

mod cursor;
mod damage;
mod damaged_range;
mod filter;
mod lost_gap;
mod options;
mod progress;
mod ranges;
#[cfg(feature = "arrow")]
mod spans;
mod stats;
mod uncommitted;

use std::ops::ControlFlow;
use std::sync::Arc;

use cursor::Cursor;
use damage::damaged_rest;
pub use damaged_range::DamagedRange;
use filter::Filter;
pub(crate) use lost_gap::LostGap;
pub use options::{OnDamage, ScanOptions, ScanStep};
pub(crate) use progress::Counted;
pub use progress::Progress;
pub use ranges::{Ranges, RecordOffsetRange};
pub use stats::ScanStats;
use uncommitted::Uncommitted;

use super::{Log, Outcome, RecordFilter, RecordOffsets};
use crate::error::Result;
use crate::record::{Payload, RecordRef, Records};
use crate::segment::{Batch, Damage, Walk, reusable};
use crate::types::IsolationLevel;

/// A scan in progress. *Memory*: one batch and its decompressed records.
#[derive(Debug)]
pub struct Scan {
    log: Log,
    filter: Filter,
    cursor: Cursor,
    /// The iterator over the records of the current batch, and the place of their bytes; `None` if they are
    /// not returned.
    records: Option<(Records, Payload)>,
    buffer: Arc<Vec<u8>>,
    damaged_ranges: Vec<DamagedRange>,
    stats: ScanStats,
    /// The first of [`ScanStats::lost_gaps`].
    lost_gap: Option<LostGap>,
    /// For a scan that may return records which a committed reader may not see.
    uncommitted: Option<Uncommitted>,
    /// The offset of the first record returned from the current batch.
    first_returned: Option<i64>,
    /// The number of records in the range that are still to be left out before the first that is returned.
    left_out: u64,
    finished: bool,
}

/// The result of [`Scan::advance`].
enum Advance {
    /// The current batch is returned.
    Batch,
    DamagedRange(DamagedRange),
    /// Nothing is returned yet.
    Skipped,
    End,
}

/// What a scan does with a batch.
enum Decision {
    Returned,
    Skipped,
    /// The batch was added to the damaged ranges, in whole or in part.
    Damaged,
    /// The batch and all others are after the range.
    AfterRange,
}

impl Log {
    /// Starts a scan.
    ///
    /// # Errors
    /// [`Error::OffsetOutOfRange`](crate::Error::OffsetOutOfRange) for a start below the log start or above
    /// the log end offset; [`Error::Config`](crate::Error::Config) for a start above its end or a
    /// negative time; for a committed scan those of [`Log::last_stable_offset`].
    pub fn scan(&self, options: ScanOptions) -> Result<Scan> {
        let filter = Filter::new(self, options)?;
        // at the end of the log, one that raises still fails if valid batches may follow, and one of an empty
        // log reports the bytes that are there
        let has_tail = filter.raises() || filter.start == self.log_start_offset();
        let is_uncommitted =
            options.isolation_level == IsolationLevel::ReadUncommitted && !options.batches_only;
        Ok(Scan {
            log: self.clone(),
            finished: filter.start > filter.end || filter.start == filter.end && !has_tail,
            filter,
            cursor: Cursor::default(),
            records: None,
            buffer: Arc::default(),
            damaged_ranges: Vec::new(),
            stats: ScanStats::default(),
            lost_gap: None,
            uncommitted: is_uncommitted.then(Uncommitted::default),
            first_returned: None,
            left_out: 0,
        })
    }
}

impl Scan {
    /// The log that is read.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The base offset of the current segment.
    pub fn segment(&self) -> Option<i64> {
        self.cursor.segment.as_ref().map(|segment| segment.base_offset())
    }

    /// The batch that was read last, also one that cannot be opened.
    #[cfg(feature = "plan")]
    pub(super) fn current_batch(&self) -> Option<&Batch> {
        self.cursor.batch.as_ref()
    }

    /// All bytes of the batch that [`Scan::next_step`] returned; none before the first and after the last.
    #[cfg(feature = "inspect")]
    pub(crate) fn batch_bytes(&mut self) -> Result<&[u8]> {
        match (&mut self.cursor.walk, &self.cursor.batch) {
            (Some(walk), Some(batch)) => walk.bytes(batch),
            _ => Ok(&[]),
        }
    }

    /// Leaves out the first records in the range. For a scan that begins inside a batch with several records
    /// at one place of the range.
    pub(super) fn leave_out(&mut self, records: u64) {
        self.left_out = records;
    }

    /// Also reports damage at the end of the log if the scan begins there: it continues a scan that has read
    /// up to there.
    #[cfg(feature = "arrow")]
    pub(crate) fn include_tail(&mut self) {
        self.finished &= self.filter.start > self.filter.end;
    }

    /// The damaged ranges that were skipped so far.
    pub fn damaged_ranges(&self) -> &[DamagedRange] {
        &self.damaged_ranges
    }

    /// The size of the current batch, whose header this is, as it would be without compression. Only after
    /// [`Scan::next_step`], and before [`Scan::next_record`] has returned the last record.
    #[cfg(feature = "inspect")]
    pub(crate) fn uncompressed_size(&self, header: &crate::record::BatchHeader) -> u64 {
        match &self.records {
            Some((_, Payload::Buffer)) => {
                // the records of a v0 or v1 wrapper are whole messages
                let before_records = if header.magic == 2 { crate::record::V2_HEADER } else { 0 };
                (before_records + self.buffer.len()) as u64
            }
            _ => u64::from(header.size),
        }
    }

    /// The statistics so far.
    pub fn stats(&self) -> ScanStats {
        self.stats
    }

    /// The first of [`ScanStats::lost_gaps`].
    #[cfg(feature = "plan")]
    pub(crate) fn lost_gap(&self) -> Option<&LostGap> {
        self.lost_gap.as_ref()
    }

    /// The first offset returned so far that belongs to a transaction that was aborted, or has not ended: a
    /// committed reader does not see it. `None` if there is none. *Cost*: if the scan ended within a
    /// transaction, reads the log up to its marker.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged),
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn first_uncommitted(&self) -> Result<Option<i64>> {
        self.uncommitted().map_or(Ok(None), |uncommitted| uncommitted.find(&self.log))
    }

    /// The transactions of the records returned so far; `None` if all are committed.
    fn uncommitted(&self) -> Option<Uncommitted> {
        let mut uncommitted = self.uncommitted.clone()?;
        uncommitted.end_batch(self.first_returned);
        (!uncommitted.is_none()).then_some(uncommitted)
    }

    /// The number of records of the current batch that the scan returns, if the batch's header gives it; 0
    /// for transaction markers. `None` also for an uncompressed batch with records out of place, unless
    /// the scan verifies no checksums: then only headers are read. No broker stores a compressed batch
    /// like that.
    #[cfg(any(feature = "inspect", feature = "plan"))]
    pub(crate) fn count_in_header(&mut self, batch: &Batch) -> Result<Option<i32>> {
        let header = &batch.header;
        if header.is_control() {
            return Ok(Some(0));
        }
        if self.cursor.overlap(batch).is_some() {
            return Ok(None);
        }
        if self.filter.is_cut_by_time(header) {
            let Some(walk) = self.cursor.walk.as_mut().filter(|_| header.count == Some(1)) else {
                return Ok(header.count.filter(|count| *count == 0));
            };
            let timestamp = Records::only_timestamp(header, walk.bytes(batch)?);
            return Ok(timestamp.and_then(|timestamp| self.filter.count_of_one(header, timestamp)));
        }
        let count = self.filter.count_in_header(header);
        let is_counted = count.is_some_and(|count| count > 0);
        let is_doubtful = self.filter.options.check_crcs && !header.attributes.is_compressed();
        let Some(walk) = self.cursor.walk.as_mut().filter(|_| is_counted && is_doubtful) else {
            return Ok(count);
        };
        let are_in_place = Records::are_in_place(header, walk.bytes(batch)?);
        Ok(count.filter(|_| are_in_place))
    }

    /// The next batch with records that may be in the range, or a damaged range; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) with [`OnDamage::Raise`]; and, whatever [`OnDamage`] is,
    /// [`Error::UnsupportedFormat`](crate::Error::UnsupportedFormat),
    /// [`Error::BatchTooLarge`](crate::Error::BatchTooLarge), [`Error::Io`](crate::Error::Io),
    /// [`Error::LogChanged`](crate::Error::LogChanged) and [`Error::Interrupted`](crate::Error::Interrupted).
    /// An error ends the scan.
    pub fn next_step(&mut self) -> Result<Option<ScanStep>> {
        loop {
            if let ControlFlow::Break(step) = self.next_step_within(u64::MAX)? {
                return Ok(step);
            }
        }
    }

    /// [`Scan::next_step`], but `Continue` after about `max_bytes` of batches that are not returned.
    pub(crate) fn next_step_within(&mut self, max_bytes: u64) -> Result<ControlFlow<Option<ScanStep>>> {
        self.records = None;
        let first_returned = self.first_returned.take();
        if let Some(uncommitted) = &mut self.uncommitted {
            uncommitted.end_batch(first_returned);
        }
        if self.finished {
            return Ok(ControlFlow::Break(None));
        }
        let stop = self.stats.bytes_read.saturating_add(max_bytes);
        let next = loop {
            let next = self.advance();
            if !matches!(next, Ok(Advance::Skipped)) || self.stats.bytes_read >= stop {
                break next;
            }
        };
        self.finished |= matches!(next, Ok(Advance::End) | Err(_));
        Ok(match next? {
            Advance::Batch => ControlFlow::Break(self.cursor.batch.map(ScanStep::Batch)),
            Advance::DamagedRange(range) => ControlFlow::Break(Some(ScanStep::DamagedRange(range))),
            Advance::Skipped => ControlFlow::Continue(()),
            Advance::End => ControlFlow::Break(None),
        })
    }

    /// The next record in the range, of the batch that [`Scan::next_step`] returned; `None` after the last.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a record breaks the format (with [`OnDamage::Raise`];
    /// else the rest of the batch becomes a damaged range).
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<RecordRef<'_>>> {
        self.next_record_if(|_, _| true)
    }

    /// As [`Scan::next_record`], and only a record that the filter accepts.
    ///
    /// # Errors
    /// As [`Scan::next_record`].
    #[doc(hidden)]
    pub fn next_accepted(&mut self, filter: Option<&RecordFilter>) -> Result<Option<RecordRef<'_>>> {
        match filter {
            None => self.next_record(),
            Some(filter) => {
                self.next_record_if(|record, offsets| filter.accepts_at(offsets, record.key, record.value))
            }
        }
    }

    #[inline]
    fn next_record_if(
        &mut self,
        accepts: impl Fn(&RecordRef<'_>, RecordOffsets) -> bool,
    ) -> Result<Option<RecordRef<'_>>> {
        let Some((records, payload)) = &mut self.records else { return Ok(None) };
        let Cursor { segment, batch, walk, .. } = &mut self.cursor;
        let Some((bytes, _)) = payload_bytes(batch.as_ref(), *payload, walk, &self.buffer)? else {
            return Ok(None);
        };
        // not that of the records: of a v0 or v1 wrapper it is the last record's
        let last_of_batch = batch.map_or(i64::MAX, |batch| batch.header.last_offset);
        loop {
            match records.next(bytes) {
                Ok(None) => return Ok(None),
                Ok(Some(record)) => {
                    let offsets = RecordOffsets { offset: record.offset, last_of_batch };
                    if !self.filter.accepts_record(offsets, record.timestamp) {
                        continue;
                    }
                    if self.left_out > 0 {
                        self.left_out -= 1;
                    } else if accepts(&record, offsets) {
                        self.stats.records += 1;
                        self.first_returned.get_or_insert(record.offset);
                        return Ok(Some(record));
                    }
                }
                Err(malformed) => {
                    let from = records.expected_offset();
                    self.records = None;
                    let raises = self.filter.raises();
                    let damaged = damaged_rest(segment.as_ref(), batch.as_ref(), from, raises, &malformed);
                    self.finished |= damaged.is_err();
                    self.damaged_ranges.extend(damaged?);
                    return Ok(None);
                }
            }
        }
    }

    /// Reads the next batch.
    fn advance(&mut self) -> Result<Advance> {
        self.log.options().interrupt.check()?;
        if self.cursor.walk.is_none() && !self.next_segment()? {
            return Ok(self.damaged_tail()?.map_or(Advance::End, Advance::DamagedRange));
        }
        let damage = match self.cursor.next_batch()? {
            None => self.damage_of_skipped()?,
            damage => damage,
        };
        let damaged = match damage {
            Some(damage) => self.skip_damage(&damage)?,
            None => match self.decide()? {
                Decision::Returned => return Ok(Advance::Batch),
                Decision::AfterRange => return Ok(Advance::End),
                Decision::Skipped => None,
                Decision::Damaged => self.reported(),
            },
        };
        Ok(damaged.map_or(Advance::Skipped, Advance::DamagedRange))
    }

    /// The damage of a batch that the scan skips by its header. Where the scan verifies no checksums, a
    /// flipped bit in a header would otherwise lose the records of the batch.
    fn damage_of_skipped(&mut self) -> Result<Option<Damage>> {
        if self.filter.options.check_crcs {
            return Ok(None);
        }
        let (Some(batch), Some(walk)) = (&self.cursor.batch, &mut self.cursor.walk) else { return Ok(None) };
        if batch.header.last_offset >= self.filter.start && self.filter.accepts(&batch.header) {
            return Ok(None);
        }
        let damaged = walk.verify(batch)?.err();
        Ok(damaged.map(|malformed| walk.reject(batch, self.cursor.before, malformed)))
    }

    /// Decides what to do with the current batch, and opens it if its records are returned.
    fn decide(&mut self) -> Result<Decision> {
        let (Some(segment), Some(walk), Some(batch)) =
            (&self.cursor.segment, &mut self.cursor.walk, self.cursor.batch)
        else {
            return Ok(Decision::Skipped);
        };
        let header = batch.header;
        if header.base_offset >= self.filter.end {
            self.check_gap(&batch)?;
            return Ok(Decision::AfterRange);
        }
        segment.note_overflow(&batch);
        self.stats.bytes_read += u64::from(header.size);
        if header.last_offset < self.filter.start {
            self.stats.batches_skipped += 1;
            return Ok(Decision::Skipped);
        }
        if let Some(uncommitted) = &mut self.uncommitted {
            uncommitted.observe(&batch, walk)?;
        }
        self.check_gap(&batch)?;
        self.stats.offset_gaps += u64::from(self.cursor.pass(&batch));
        let outcome = self.filter.outcome(&header);
        if !self.filter.accepts(&header) || outcome == Outcome::Aborted {
            self.stats.batches_skipped += 1;
            return Ok(Decision::Skipped);
        }
        if outcome == Outcome::Undecided {
            self.skip_undecided(&batch)?;
            return Ok(Decision::Damaged);
        }
        let is_opened = !self.filter.options.batches_only;
        if is_opened && header.count == Some(0) {
            // compaction leaves such a batch to keep its producer's state
            self.stats.batches += 1;
            return Ok(Decision::Skipped);
        }
        if is_opened && !self.open(batch)? {
            return Ok(Decision::Damaged);
        }
        if let Some(uncommitted) = &mut self.uncommitted {
            uncommitted.begin_batch(&header);
        }
        self.stats.batches += 1;
        Ok(Decision::Returned)
    }

    /// Counts a gap before the current batch, in its segment, that has offsets of the range and that nothing
    /// explains, and warns of it. Offsets in a damaged range do not count as missing.
    fn check_gap(&mut self, batch: &Batch) -> Result<()> {
        let (Some(segment), Some(before)) = (&self.cursor.segment, self.cursor.before) else { return Ok(()) };
        let start = before.last_offset + 1;
        let first_of_range = start.max(self.filter.start);
        if batch.header.base_offset <= first_of_range || first_of_range >= self.filter.end {
            return Ok(());
        }
        let is_after_damage = self
            .damaged_ranges
            .last()
            .is_some_and(|damaged| damaged.end_position == batch.position && damaged.file == segment.path());
        let is_lost = batch.header.base_offset.abs_diff(start) > batch.records_beyond_offsets();
        if is_lost
            && !is_after_damage
            && segment.has_gap_before(batch, Some(before))
            && !self.log.is_compacted()?
        {
            let gap = LostGap::before(batch, segment, start);
            segment.warn(&format!(
                "{gap}: unless the log is compacted, batches were lost. `verify` finds what else is wrong"
            ));
            self.stats.lost_gaps += 1;
            self.lost_gap.get_or_insert(gap);
        }
        Ok(())
    }

    /// Prepares the records of the current batch; false if they cannot be read and are a damaged range.
    /// Called for every batch that is returned, unless only batches are.
    ///
    /// # Errors
    /// As [`Scan::next_step`].
    pub(crate) fn open(&mut self, batch: Batch) -> Result<bool> {
        let Some(walk) = &mut self.cursor.walk else { return Ok(false) };
        let max = walk.log.max_batch_bytes();
        let bytes = walk.bytes(&batch)?;
        match Records::open_up_to(max, batch.header, bytes, reusable(&mut self.buffer)) {
            Ok((mut records, payload)) => {
                if let Some(before) = self.cursor.overlap(&batch) {
                    records.leave_out_up_to(before);
                } else if !self.filter.options.check_crcs {
                    records.refuse_out_of_place();
                }
                self.stats.batches_decompressed += u64::from(payload == Payload::Buffer);
                self.records = Some((records, payload));
                Ok(true)
            }
            Err(malformed) => self.skip_batch(&batch, malformed).map(|()| false),
        }
    }
}

/// The bytes of the current batch's records, and the bytes after the batch that are in memory; `None` if
/// there is no walk.
#[inline]
fn payload_bytes<'a>(
    batch: Option<&Batch>,
    payload: Payload,
    walk: &'a mut Option<Walk>,
    buffer: &'a [u8],
) -> Result<Option<(&'a [u8], &'a [u8])>> {
    let (Some(walk), Some(batch)) = (walk, batch) else {
        return Ok((payload == Payload::Buffer).then_some((buffer, &[])));
    };
    // the batch is mapped or still in the window, so this reads nothing again
    let (bytes, next) = walk.bytes_and_next(batch)?;
    Ok(Some((payload.of(bytes, buffer), next)))
}

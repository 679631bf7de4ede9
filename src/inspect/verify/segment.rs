//! One segment: its batches, and its indexes compared with them.
//!
//! A segment is verified without its neighbours, so that segments can be verified at the same time, and need
//! not be verified again. What has to be compared across segments is in its [`Summary`].

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::index_files::{IndexKind, index_file};
use super::offset_entries::OffsetEntries;
use super::records;
use super::rule::{Rule, Severity};
use super::summary::Summary;
use super::time_entries::TimeEntries;
use super::transaction_entries;
use super::work::Work;
use crate::error::Result;
use crate::log::Log;
use crate::record::control::ControlType;
use crate::record::{BatchHeader, V2_HEADER};
use crate::segment::{
    Batch, Damage, DamagedSpan, LogFile, Preceding, SCAN_READ, Segment, Step, UNSEARCHED, Walk,
};
use crate::state::leader_epochs::LeaderEpochs;

/// The findings of one segment, and what is compared with other segments.
#[derive(Debug, Clone)]
pub(crate) struct SegmentReport {
    pub(super) findings: Vec<Finding>,
    pub(super) summary: Summary,
}

/// A verification in progress.
#[derive(Debug)]
pub(crate) struct SegmentCheck<'a> {
    segment: &'a Segment,
    partition: &'a Path,
    path: PathBuf,
    /// Whether records are decoded.
    is_deep: bool,
    offsets: Option<OffsetEntries>,
    times: Option<TimeEntries>,
    findings: Vec<Finding>,
    summary: Summary,
    /// The present time, ms.
    now: i64,
    /// Findings that were left out.
    left_out: u64,
    buffer: Vec<u8>,
    /// The base offset of the last batch if offsets are missing before it.
    gap_before: bool,
    /// The batch with the largest timestamp.
    latest: Option<Batch>,
}

/// The maximum number of findings of one file: a file made of damage must not exhaust the memory.
const MAX_FINDINGS: usize = 1000;

/// The maximum size of a `.log`, bytes.
const MAX_BYTES: u64 = i32::MAX.unsigned_abs() as u64;

/// A timestamp this far after the present time, ms, is in the future: clocks differ.
const FUTURE_MS: i64 = 24 * 60 * 60 * 1000;

impl<'a> SegmentCheck<'a> {
    pub(crate) fn new(segment: &'a Segment, partition: &'a Path, is_deep: bool, now: i64) -> Self {
        Self {
            segment,
            partition,
            path: segment.path(),
            is_deep,
            offsets: None,
            times: None,
            findings: Vec::new(),
            summary: Summary::new(segment.base_offset(), segment.upper()),
            now,
            left_out: 0,
            buffer: Vec::new(),
            gap_before: false,
            latest: None,
        }
    }

    /// Verifies the whole segment.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged),
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub(crate) fn run(mut self, work: &Work<'_>) -> Result<SegmentReport> {
        let is_too_large = self.size()?;
        let mut walk = self.segment.walk(-1, SCAN_READ)?;
        self.open_indexes(walk.bounds.end)?;
        self.batches(&mut walk, MAX_BYTES, work)?;
        if is_too_large && walk.position < walk.bounds.end {
            // what follows is not read: no index can refer to it
            self.summary.is_damaged = true;
            self.summary.is_damaged_at_end = true;
        } else {
            self.tail(walk.bounds.end)?;
        }
        let end_offset = walk.expected_offset();
        self.summary.end_offset = end_offset;
        self.summary.size = walk.bounds.end;
        self.indexes(end_offset, work)?;
        self.values();
        if self.left_out > 0 {
            let found = format!("{} more", self.left_out);
            let expected = format!("at most {MAX_FINDINGS} findings");
            let finding = Finding::new(Rule::FindingsLeftOut, self.partition, &self.path, expected, found);
            self.findings.push(finding);
        }
        Ok(SegmentReport { findings: self.findings, summary: self.summary })
    }

    fn open_indexes(&mut self, bytes: u64) -> Result<()> {
        let has_grown = self.segment.is_last() && self.segment.has_grown()?;
        let offsets = self.segment.offset_index();
        if let Some(index) = self.or_finding(offsets)?.flatten() {
            self.offsets = Some(OffsetEntries::new(index, self.partition, bytes, has_grown));
        }
        let times = self.segment.time_index();
        if let Some(index) = self.or_finding(times)?.flatten() {
            self.times = Some(TimeEntries::new(index, self.partition, has_grown));
        }
        Ok(())
    }

    /// The result for a file other than the `.log`: an error about it is a finding.
    fn or_finding<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                let finding = super::unreadable(self.partition, error)?;
                self.push(finding);
                Ok(None)
            }
        }
    }

    /// Verifies the batches from the walk's position up to the first one at or after `until`.
    pub(crate) fn batches(&mut self, walk: &mut Walk, until: u64, work: &Work<'_>) -> Result<()> {
        while walk.position < until {
            work.check()?;
            let start = walk.position;
            match walk.step_through()? {
                Step::End => break,
                Step::Batch(batch) => self.batch(&batch, walk)?,
                Step::Damage(damage) => self.damage(&damage, walk)?,
            }
            work.add(walk.position - start);
        }
        Ok(())
    }

    fn damage(&mut self, damage: &Damage, walk: &mut Walk) -> Result<()> {
        let epoch = walk.before.map_or(-1, |before| before.leader_epoch);
        let is_as_written = is_as_written(&mut walk.log, damage.position, walk.bounds.end)?;
        let span = self.segment.resume(walk, damage)?;
        self.pass_damage(&span)?;
        let malformed = span.unsupported().map_or_else(|| damage.malformed.clone(), |newer| newer.malformed);
        let rule = if malformed.is_damage() { Rule::DamagedBatch } else { Rule::UnsupportedBatch };
        let mut finding = Finding::malformed(rule, self.partition, &self.path, malformed)
            .at(span.start_position, span.end_position)
            .offsets(span.start_offset, span.end_offset.or(Some(self.segment.upper())));
        if self.segment.is_last() && span.end_offset.is_none() {
            finding.end_offset = None;
        }
        finding = finding.because(match span.end_offset {
            Some(next) => format!("the next whole batch is at position {}, offset {next}", span.end_position),
            None if span.is_searched => "no whole batch follows in the segment".to_owned(),
            None => "no whole batch was found after it in the segment".to_owned(),
        });
        if is_as_written {
            finding = finding.that_is_as_written();
        }
        if !span.is_searched {
            finding = finding.because(UNSEARCHED.trim().to_owned());
        }
        if epoch >= 0 && span.end_offset.is_some() && span.end_offset == Some(span.start_offset) {
            finding = finding.because("it contains no offset that is missing".to_owned());
        }
        self.push(finding);
        Ok(())
    }

    fn pass_damage(&mut self, span: &DamagedSpan) -> Result<()> {
        self.summary.pass_damage(span);
        self.gap_before = false;
        if let Some(mut offsets) = self.offsets.take() {
            let done = offsets.skip(span);
            self.offsets = self.or_finding(done)?.map(|()| offsets);
        }
        if let Some(mut times) = self.times.take() {
            let done = times.skip(span);
            self.times = self.or_finding(done)?.map(|()| times);
        }
        Ok(())
    }

    fn batch(&mut self, batch: &Batch, walk: &mut Walk) -> Result<()> {
        let header = &batch.header;
        if let Some(offsets) = &mut self.offsets
            && let Err(error) = offsets.add(batch)
        {
            self.offsets = None;
            self.or_finding::<()>(Err(error))?;
        }
        if let Some(times) = &mut self.times
            && let Err(error) = times.add(header)
        {
            self.times = None;
            self.or_finding::<()>(Err(error))?;
        }
        self.header(batch, walk)?;
        // a wrapper whose entries cannot be decoded has one offset for the walk; Kafka may not load it
        let may_be_undecodable = header.is_wrapper() && header.base_offset == header.last_offset;
        if header.is_control() || may_be_undecodable || self.is_deep && header.count != Some(0) {
            match records::check_batch(batch, walk, &mut self.buffer)? {
                Ok(control) => self.control(batch, control),
                Err(wrong) => {
                    let finding = wrong
                        .into_finding(self.partition, self.path.clone())
                        .at(batch.position, batch.end())
                        .offsets(header.base_offset, Some(header.last_offset + 1));
                    self.push(finding);
                }
            }
        }
        let before = self.summary.end_offset;
        if self.summary.batches > 0 && header.base_offset < before {
            let expected = format!("a batch that starts above offset {}", before - 1);
            let found = format!("base offset {}, and a right checksum", header.base_offset);
            let finding = Finding::new(Rule::OverlappingBatch, self.partition, &self.path, expected, found);
            self.push(finding.at(batch.position, batch.end()).offsets(header.base_offset, Some(before)));
        }
        if let Some(repeated) = walk.repeated_after(batch) {
            let expected = format!("a batch that starts above offset {}", header.last_offset);
            let found =
                format!("{} bytes of batches that repeat offsets up to it", repeated.end - repeated.start);
            let finding = Finding::new(Rule::RepeatedBatches, self.partition, &self.path, expected, found);
            self.push(finding.at(repeated.start, repeated.end));
            self.repeated(repeated, walk)?;
        }
        let has_gap =
            self.summary.batches > 0 && !self.summary.is_damaged_at_end && header.base_offset > before;
        self.summary.batches_at_gaps += u64::from(has_gap) + u64::from(has_gap && !self.gap_before);
        self.gap_before = has_gap;
        if header.max_timestamp > self.summary.largest_timestamp {
            self.latest = Some(*batch);
        }
        let shows_compaction =
            batch.is_rewritten() || self.segment.has_gap_before(batch, self.summary.preceding());
        self.summary.add(batch, shows_compaction);
        Ok(())
    }

    /// The index entries of batches that repeat offsets.
    fn repeated(&mut self, mut repeated: Range<u64>, walk: &mut Walk) -> Result<()> {
        while !repeated.is_empty()
            && let Ok(&header) = walk.header_at(repeated.start)?
            && let Some(mut offsets) = self.offsets.take()
        {
            let batch = Batch { position: repeated.start, header };
            let done = offsets.add_repeated(&batch);
            self.offsets = self.or_finding(done)?.map(|()| offsets);
            repeated.start = batch.end();
        }
        Ok(())
    }

    /// What is odd about a header that the checksum shows to be as it was written.
    fn header(&mut self, batch: &Batch, walk: &mut Walk) -> Result<()> {
        let BatchHeader { magic, size, base_offset, last_offset, leader_epoch, .. } = batch.header;
        let mut stored_last = last_offset;
        if magic == 2 && last_offset == base_offset {
            // the walk raises one below the base offset
            let bytes = walk.log.read(batch.position, V2_HEADER)?;
            stored_last =
                BatchHeader::unchecked(bytes, size).map_or(last_offset, |header| header.last_offset);
        }
        let (expected, found) = if leader_epoch < -1 {
            ("a leader epoch from −1 (none) up".to_owned(), format!("leader epoch {leader_epoch}"))
        } else if stored_last < base_offset {
            (format!("a last offset from {base_offset} up"), format!("last offset {stored_last}"))
        } else {
            return Ok(());
        };
        let finding = Finding::new(Rule::OddHeader, self.partition, &self.path, expected, found);
        self.push(finding.at(batch.position, batch.end()).offsets(base_offset, Some(last_offset + 1)));
        Ok(())
    }

    fn control(&mut self, batch: &Batch, control: Option<ControlType>) {
        let header = &batch.header;
        if header.is_transactional() && matches!(control, Some(ControlType::Abort)) {
            self.summary.aborts.push((header.producer_id, header.last_offset));
        }
    }

    /// The bytes after the last batch of the last segment.
    fn tail(&mut self, end: u64) -> Result<()> {
        let Some(cut) = self.segment.tail_cut()? else { return Ok(()) };
        let size = self.segment.file_size()?;
        let mut log = self.segment.log_file(SCAN_READ)?;
        let is_zero = log.is_zero(end, size)?;
        let is_as_written = is_as_written(&mut log, end, size)?;
        let rule = match is_zero {
            true => Rule::ZerosAfterEnd,
            false if !cut.malformed.is_damage() => Rule::UnsupportedBatch,
            // its checksum is right
            false if is_as_written || self.segment.tail()?.is_intact => Rule::DamagedBatch,
            false => Rule::TornTail,
        };
        let malformed = if is_zero {
            crate::error::Malformed::new("a batch, or the end of the file", format!("{} zeros", size - end))
        } else {
            cut.malformed.clone()
        };
        let finding = Finding::malformed(rule, self.partition, &self.path, malformed)
            .at(end, size)
            .offsets(cut.offset, None)
            .because(format!("{} bytes after the last whole batch", size - end));
        let finding = if self.segment.is_being_written()? {
            finding.with_severity(Severity::Info).because("a broker or a writer is appending to the file")
        } else {
            finding
        };
        let is_as_written = is_as_written && rule == Rule::DamagedBatch;
        let finding = if is_as_written { finding.that_is_as_written() } else { finding };
        self.summary.is_damaged_at_end |= !is_zero;
        self.push(finding);
        Ok(())
    }

    /// What is compared after the last batch.
    fn indexes(&mut self, end_offset: i64, work: &Work<'_>) -> Result<()> {
        let is_sealed = !self.segment.is_last();
        if let Some(offsets) = self.offsets.take() {
            let found = offsets.finish(end_offset);
            if let Some((found, distance)) = self.or_finding(found)? {
                self.summary.index_distance = distance;
                self.extend(found);
            }
        }
        if let Some(times) = self.times.take() {
            let found = times.finish(end_offset, is_sealed, self.partition);
            let found = self.or_finding(found)?;
            self.extend(found.unwrap_or_default());
        }
        let index = self.segment.transaction_index();
        if let Some(index) = self.or_finding(index)?.flatten() {
            let found = transaction_entries::check(&index, self.partition, &self.summary, work);
            let found = self.or_finding(found)?;
            self.extend(found.unwrap_or_default());
        }
        for kind in IndexKind::ALL {
            let found = index_file(self.segment, kind, self.partition, &self.summary);
            let found = self.or_finding(found)?;
            self.extend(found.unwrap_or_default());
        }
        Ok(())
    }

    /// The size of the file; whether it is more than positions in an index can have.
    fn size(&mut self) -> Result<bool> {
        let size = self.segment.file_size()?;
        let is_too_large = size > MAX_BYTES;
        if is_too_large {
            let expected = format!("a file of at most {MAX_BYTES} bytes");
            let found = format!("{size} bytes");
            let finding = Finding::new(Rule::SegmentTooLarge, self.partition, &self.path, expected, found);
            self.push(finding);
        }
        Ok(is_too_large)
    }

    /// Offsets and timestamps that are possible, but have consequences.
    fn values(&mut self) {
        let end = self.summary.end_offset;
        if self.summary.batches > 0 && !crate::segment::is_relative(end - 1, self.segment.base_offset()) {
            let expected = format!("offsets up to 2^31 - 1 above {}", self.segment.base_offset());
            let finding = Finding::new(
                Rule::OffsetsTooFar,
                self.partition,
                &self.path,
                expected,
                format!("offset {}", end - 1),
            );
            self.push(finding);
        }
        let largest = self.summary.largest_timestamp;
        if largest > self.now.saturating_add(FUTURE_MS) {
            let finding = Finding::new(
                Rule::FutureTimestamps,
                self.partition,
                &self.path,
                "timestamps up to the present time",
                format!("timestamp {largest}"),
            );
            self.push(match self.latest {
                Some(batch) => {
                    let BatchHeader { base_offset, last_offset, .. } = batch.header;
                    finding.at(batch.position, batch.end()).offsets(base_offset, Some(last_offset + 1))
                }
                None => finding,
            });
        }
    }

    fn push(&mut self, finding: Finding) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        } else {
            self.left_out += 1;
        }
    }

    fn extend(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            self.push(finding);
        }
    }
}

/// Whether a batch at a position has a right checksum: then only what is before it contradicts it.
fn is_as_written(log: &mut LogFile, position: u64, end: u64) -> Result<bool> {
    let available = end.saturating_sub(position);
    let Ok(header) = BatchHeader::parse_unproven(log.read(position, V2_HEADER)?, available) else {
        return Ok(false);
    };
    let size = usize::try_from(header.size).unwrap_or(usize::MAX);
    if size as u64 > available || size > log.max_batch_bytes() {
        return Ok(false);
    }
    Ok(header.ensure_valid(log.read(position, size)?).is_ok())
}

/// The verification of a part of a segment, for tests that change one batch and verify its neighbourhood. It
/// is not part of the API.
#[doc(hidden)]
#[derive(Debug)]
pub struct PartCheck<'a> {
    log: &'a Log,
    segment: &'a Segment,
    epochs: Option<LeaderEpochs>,
}

impl<'a> PartCheck<'a> {
    /// A check of parts of the segment with this number.
    pub fn new(log: &'a Log, number: usize) -> Option<Self> {
        let segment = log.segments().get(number)?;
        let text = LeaderEpochs::read_text(&segment.open_files().directory).ok().flatten();
        let epochs = text.and_then(|text| LeaderEpochs::parse(&text).ok());
        Some(Self { log, segment, epochs })
    }

    /// The finding about the first damage from `start` on, where batches up to `last_offset` in
    /// `leader_epoch` precede it, and below `until`; `None` if there is none. Both are positions of
    /// batches.
    ///
    /// # Errors
    /// As [`verify`](super::verify()).
    pub fn first(
        &self,
        start: u64,
        last_offset: i64,
        leader_epoch: i32,
        until: u64,
    ) -> Result<Option<Finding>> {
        let mut walk = self.segment.walk(-1, SCAN_READ)?;
        walk.position = start;
        walk.before = Some(Preceding { last_offset, leader_epoch, earlier_epoch: leader_epoch });
        let (bytes, is_stopped) = Default::default();
        let work = Work::new(&bytes, &is_stopped);
        let mut check = SegmentCheck::new(self.segment, self.log.path(), false, i64::MAX);
        while walk.position < until && check.findings.is_empty() {
            let position = walk.position;
            check.batches(&mut walk, position + 1, &work)?;
            if walk.position == position {
                break;
            }
        }
        if let Some(finding) = check.findings.into_iter().next() {
            return Ok(Some(finding));
        }
        let Some(epochs) = &self.epochs else { return Ok(None) };
        Ok(super::epochs::first_mismatch(self.log, &check.summary, epochs))
    }
}

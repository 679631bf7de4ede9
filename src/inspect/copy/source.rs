//! The source of a copy, at one moment, and the offsets of the range.

use std::sync::Arc;
use std::time::SystemTime;

use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::log::{DamagedRange, Log, LogOptions, OnDamage, Ranges, ScanOptions, ScanStep};
use crate::segment::{Batch, SCAN_READ, Segment};
use crate::state::copy_journal::CopiedRange;
use crate::types::Io;

use super::CopyOptions;
use super::metadata::snapshots_in;

/// The maximum number of openings of a log whose files change during each of them.
const MAX_ATTEMPTS: u32 = 10;

/// A log at one moment. Nothing of it is mapped: another process may shorten its files.
#[derive(Debug)]
pub(super) struct Source {
    /// With its log start offset.
    pub(super) log: Log,
    /// The log end offset, fixed.
    pub(super) end_offset: i64,
    /// A time before the log was opened.
    pub(super) opened: SystemTime,
    /// The last batch, and its segment; `None` if there is none before the log end offset.
    last: Option<(Arc<Segment>, Batch)>,
    /// The snapshots of a metadata log, and their end offsets.
    pub(super) snapshots: Vec<(String, i64)>,
}

/// The offsets of a copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// The first offset; `None`: from the first segment on.
    pub(super) start: Option<i64>,
    /// Exclusive.
    pub(super) end: i64,
}

impl Source {
    /// Opens a directory, in the state of one moment.
    ///
    /// # Errors
    /// [`Error::LogChanged`] if its segments change during each attempt; the errors of [`Log::open`].
    pub(super) fn open(directory: &Directory, options: &CopyOptions) -> Result<Self> {
        let log_options = LogOptions {
            io: Io::Pread,
            max_batch_bytes: options.max_batch_bytes,
            interrupt: options.interrupt,
            on_warning: options.on_warning,
            ..LogOptions::default()
        };
        let mut attempts = 1;
        loop {
            match Self::attempt(directory, &log_options) {
                Err(Error::LogChanged { .. }) if attempts < MAX_ATTEMPTS => attempts += 1,
                opened => return opened,
            }
        }
    }

    /// Notes the identity of every file, and then compares the directory with them: all of them existed
    /// together between the two passes.
    fn attempt(directory: &Directory, options: &LogOptions) -> Result<Self> {
        let opened = SystemTime::now();
        let log = Log::open_in(directory.clone(), options.clone())?;
        for segment in log.segments().iter() {
            segment.pin_identity()?;
        }
        let again = Log::open_in(directory.clone(), options.clone())?;
        let bases =
            |log: &Log| -> Vec<_> { log.segments().iter().map(|segment| segment.base_offset()).collect() };
        // segments may have been added at the end
        if !bases(&again).starts_with(&bases(&log)) || again.log_start_offset() != log.log_start_offset() {
            return Err(Error::LogChanged {
                file: log.path().to_owned(),
                expected: "the segments of the first listing".to_owned(),
                found: "others".to_owned(),
            });
        }
        for segment in log.segments().iter() {
            segment.ensure_unmodified()?;
        }
        let snapshots = snapshots_in(directory)?;
        let end_offset = log.log_end_offset()?;
        let last = last_batch(&log, end_offset)?;
        log.check_unchanged()?;
        Ok(Self { log, end_offset, opened, last, snapshots })
    }

    /// Fails if the log was truncated since it was opened, also by a process that does not count its
    /// truncations, and also if it has grown again: a truncation removes the last batch.
    ///
    /// # Errors
    /// [`Error::LogChanged`]; [`Error::Io`].
    pub(super) fn ensure_not_truncated(&self) -> Result<()> {
        self.log.check_unchanged()?;
        let Some((segment, last)) = &self.last else { return Ok(()) };
        let named = self.log.directory().identity_of(segment.log_name())?;
        if named.map(|named| named.inode) != Some(segment.identity()?.inode) {
            return Err(truncated(segment));
        }
        let mut walk = segment.walk(-1, SCAN_READ)?;
        let is_same = walk.header_at(last.position)?.is_ok_and(|header| *header == last.header);
        if is_same && walk.verify(last)?.is_ok() { Ok(()) } else { Err(truncated(segment)) }
    }

    /// The error at damage: bytes of a log that was truncated meanwhile are not damage.
    pub(super) fn damaged<T>(&self, error: Error) -> Result<T> {
        if error.is_damage() {
            self.ensure_not_truncated()?;
        }
        Err(error)
    }

    /// Fails if this is not the last batch of the log, though the copy has everything up to the log end
    /// offset. `damaged_ranges`: what was left out.
    ///
    /// # Errors
    /// [`Error::LogChanged`].
    pub(super) fn ensure_last(&self, copied: Option<Batch>, damaged_ranges: &[DamagedRange]) -> Result<()> {
        let Some((segment, last)) = &self.last else { return Ok(()) };
        let path = segment.path();
        let is_left_out = damaged_ranges.iter().any(|range| {
            range.file == path && (range.start_position..range.end_position).contains(&last.position)
        });
        if is_left_out || copied == Some(*last) { Ok(()) } else { Err(truncated(segment)) }
    }

    /// The offsets of a range.
    ///
    /// # Errors
    /// Those of [`Log::scan`].
    pub(super) fn extent(&self, ranges: Ranges, on_damage: OnDamage) -> Result<Extent> {
        self.log.check(&ranges)?;
        let end = ranges.end_offset.unwrap_or(i64::MAX).min(self.end_offset);
        if ranges.start_time.is_none() && ranges.end_time.is_none() {
            return Ok(Extent { start: ranges.start_offset, end });
        }
        let options = ScanOptions { ranges, on_damage, include_control: true, ..ScanOptions::default() };
        let mut scan = self.log.scan(options)?;
        let mut found: Option<(i64, i64)> = None;
        while let Some(step) = scan.next_step().or_else(|error| self.damaged(error))? {
            let ScanStep::Batch(batch) = step else { continue };
            while let Some(record) = scan.next_record().or_else(|error| self.damaged(error))? {
                let offset = record.offset.min(batch.header.last_offset);
                let (start, _) = found.unwrap_or((offset, 0));
                found = Some((start, offset + 1));
                if ranges.end_time.is_none() {
                    return Ok(Extent { start: Some(start), end });
                }
            }
        }
        let (start, end) = found.unwrap_or((end, end));
        Ok(Extent { start: Some(start), end })
    }
}

/// The batch before the log end offset, and its segment.
fn last_batch(log: &Log, end_offset: i64) -> Result<Option<(Arc<Segment>, Batch)>> {
    let log = log.with_hidden_records();
    if end_offset <= log.log_start_offset() {
        return Ok(None);
    }
    let ranges =
        Ranges { start_offset: Some(end_offset - 1), end_offset: Some(end_offset), ..Ranges::default() };
    let on_damage = OnDamage::Skip;
    let mut scan =
        log.scan(ScanOptions { ranges, on_damage, batches_only: true, ..ScanOptions::default() })?;
    let mut last = None;
    while let Some(step) = scan.next_step()? {
        if let ScanStep::Batch(batch) = step {
            let segment = scan.segment().and_then(|base_offset| log.segments().floor(base_offset));
            last = segment.map(|segment| (Arc::clone(segment), batch));
        }
    }
    Ok(last)
}

fn truncated(segment: &Segment) -> Error {
    Error::LogChanged {
        file: segment.path(),
        expected: "the last batch that it had when it was opened".to_owned(),
        found: "another one, or none: the log was truncated".to_owned(),
    }
}

/// A range, as the journal of a copy has it.
pub(super) fn copied_range(ranges: Ranges) -> CopiedRange {
    [ranges.start_offset, ranges.end_offset, ranges.start_time, ranges.end_time]
}

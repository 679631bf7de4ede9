//! The source of a copy, as of one moment, and the offsets of the range.

use std::time::SystemTime;

use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::log::{Log, LogOptions, OnDamage, Ranges, ScanOptions};
use crate::types::Io;

use super::CopyOptions;

/// The maximum number of openings of a log whose files change during each of them.
const MAX_ATTEMPTS: u32 = 10;

/// A log as of one moment. Nothing of it is mapped: another process may shorten its files.
#[derive(Debug)]
pub(super) struct Source {
    /// With its log start offset.
    pub(super) log: Log,
    /// The log end offset, fixed.
    pub(super) end_offset: i64,
    /// A time before the log was opened.
    pub(super) opened: SystemTime,
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
    /// Opens a directory as of one moment.
    ///
    /// # Errors
    /// [`Error::LogChanged`] if its segments change during each attempt; those of [`Log::open`].
    pub(super) fn open(directory: &Directory, options: &CopyOptions) -> Result<Self> {
        let log_options = LogOptions {
            io: Io::Pread,
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

    /// Notes the identity of every file, and then compares the directory with them: all of them existed together between the
    /// two passes.
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
        let end_offset = log.log_end_offset()?;
        log.check_unchanged()?;
        Ok(Self { log, end_offset, opened })
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
        while scan.next_step()?.is_some() {
            while let Some(record) = scan.next_record()? {
                let (start, _) = found.unwrap_or((record.offset, 0));
                found = Some((start, record.offset + 1));
                if ranges.end_time.is_none() {
                    return Ok(Extent { start: Some(start), end });
                }
            }
        }
        let (start, end) = found.unwrap_or((end, end));
        Ok(Extent { start: Some(start), end })
    }
}

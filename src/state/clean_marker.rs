//! `.cordwood.clean`: the log was closed cleanly; lists the sizes of its files at that time.
//!
//! A close writes it last, and an open for writing removes it before the first change. Format:
//! [`checksummed_text`].
//!
//! ```text
//! 0
//! 00000000000000000000.log 52428          the size of each .log, bytes
//! 00000000000000000400.log 1034
//! files 2716334018                        a checksum over the names and sizes of all segment files
//! index-interval-bytes 4096               the writer's, with which the next one continues its indexes
//! log-end-offset 412
//! crc32c 9c4e08f1
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;

use super::checkpoint::DurableOffsetFile;
use super::checksummed_text;
use crate::error::{Error, Malformed, Result};
use crate::fs::Directory;
use crate::fs::names::{FileKind, SegmentFileName, Stage};
use crate::record::crc;

/// The name of the file.
pub(crate) const CLEAN: &str = ".cordwood.clean";
/// The maximum size of the file, bytes: it has a line for each segment.
const MAX_BYTES: u64 = 64 << 20;

const LOG_END_OFFSET: &str = "log-end-offset";
const FILES: &str = "files";
const INDEX_INTERVAL_BYTES: &str = "index-interval-bytes";

/// The contents of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CleanMarker {
    log_end_offset: i64,
    files: i64,
    /// -1 in a marker without it.
    index_interval_bytes: i64,
    /// The size of each `.log` by its name. Names sort in the order of offsets.
    logs: BTreeMap<String, i64>,
}

impl CleanMarker {
    /// The marker for the present state of the directory, whose indexes have this interval.
    pub(crate) fn of(directory: &Directory, log_end_offset: i64, interval: u64) -> Result<Self> {
        let index_interval_bytes = i64::try_from(interval).unwrap_or(-1);
        Ok(Self { index_interval_bytes, ..Self::of_files(directory, log_end_offset)? })
    }

    /// The marker for the present state of the directory, without an interval.
    fn of_files(directory: &Directory, log_end_offset: i64) -> Result<Self> {
        let mut names: Vec<_> = directory.entries()?.into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        let (mut text, mut logs) = (String::new(), BTreeMap::new());
        for name in names {
            let Some(parsed) = SegmentFileName::parse(&name) else { continue };
            let size = directory.identity_of(&name)?.map_or(0, |identity| identity.size);
            // writing to a String cannot fail
            let _ = writeln!(text, "{name} {size}");
            if parsed.kind == FileKind::Log && parsed.stage == Stage::Live {
                logs.insert(name, i64::try_from(size).unwrap_or(i64::MAX));
            }
        }
        let files = i64::from(crc::crc32c(text.as_bytes()));
        Ok(Self { log_end_offset, files, index_interval_bytes: -1, logs })
    }

    /// Reads the file; `None` if there is none, or if its checksum does not match.
    pub(crate) fn read(directory: &Directory) -> Result<Option<Self>> {
        let Some(text) = directory.read_small(CLEAN, MAX_BYTES)? else { return Ok(None) };
        let Ok(mut fields) = checksummed_text::read(&text) else { return Ok(None) };
        let log_end_offset = fields.remove(LOG_END_OFFSET).unwrap_or(-1);
        let files = fields.remove(FILES).unwrap_or(-1);
        let index_interval_bytes = fields.remove(INDEX_INTERVAL_BYTES).unwrap_or(-1);
        Ok(Some(Self { log_end_offset, files, index_interval_bytes, logs: fields }))
    }

    /// Writes the file, durably.
    pub(crate) fn write(&self, directory: &Directory) -> Result<()> {
        let logs = self.logs.iter().map(|(name, size)| (name.as_str(), *size));
        let numbers = [
            (LOG_END_OFFSET, self.log_end_offset),
            (FILES, self.files),
            (INDEX_INTERVAL_BYTES, self.index_interval_bytes),
        ];
        let fields = numbers.into_iter().chain(logs).collect();
        directory.replace(CLEAN, &checksummed_text::write(&fields))
    }

    /// Removes the file, durably.
    pub(crate) fn remove(directory: &Directory) -> Result<()> {
        if directory.identity_of(CLEAN)?.is_some() {
            directory.remove(CLEAN)?;
            directory.sync()?;
        }
        Ok(())
    }

    /// The log end offset at the close.
    pub(crate) fn log_end_offset(&self) -> i64 {
        self.log_end_offset
    }

    /// The `index.interval.bytes` of the writer that closed the log; `None` if the marker does not have it.
    pub(crate) fn index_interval_bytes(&self) -> Option<u64> {
        u64::try_from(self.index_interval_bytes).ok()
    }

    /// Fails if a segment after the first one is missing, or a sealed one has another size. No other check
    /// finds this, because offsets may have gaps. (The log end offset is compared with the durable
    /// offset, and segments before the first one with the log start offset.) Does not fail if the last
    /// segment has changed: then a broker has written to the log in the meantime.
    pub(crate) fn refuse_missing(&self, directory: &Directory) -> Result<()> {
        let advice = format!("to continue with the present files, remove {CLEAN}");
        self.find_missing(directory)?.map_or(Ok(()), |missing| Err(missing.advising(&advice, directory)))
    }

    /// What [`CleanMarker::refuse_missing`] fails at.
    pub(crate) fn find_missing(&self, directory: &Directory) -> Result<Option<MissingSegment>> {
        let now = Self::of_files(directory, self.log_end_offset)?;
        if now.logs.last_key_value() != self.logs.last_key_value() {
            return Ok(None);
        }
        let first = now.logs.keys().next();
        for (name, size) in self.logs.iter().filter(|(name, _)| first.is_some_and(|first| *name >= first)) {
            let found = now.logs.get(name);
            if found != Some(size) {
                let expected = format!("{name} of {size} bytes, its size when the log was closed");
                let found = found.map_or_else(|| "no such file".to_owned(), |found| format!("{found} bytes"));
                return Ok(Some(MissingSegment { expected, found }));
            }
        }
        Ok(None)
    }

    /// Whether the names and sizes of the segment files are the same as at the close.
    pub(crate) fn matches_files(&self, directory: &Directory) -> Result<bool> {
        let now = Self::of_files(directory, self.log_end_offset)?;
        Ok((self.files, &self.logs) == (now.files, &now.logs))
    }
}

/// A segment that is missing, or has another size than at the close.
#[derive(Debug)]
pub(crate) struct MissingSegment {
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl MissingSegment {
    /// The error, with what to do.
    pub(crate) fn advising(self, advice: &str, directory: &Directory) -> Error {
        let Self { expected, found } = self;
        Malformed::new(format!("{expected} ({advice})"), found).at(directory.path(), 0, None)
    }
}

/// The offset up to which everything was synced, if it is known: from the durable offset file, otherwise from
/// the marker, because a close syncs everything.
pub(crate) fn durable_offset(directory: &Directory, marker: Option<&CleanMarker>) -> Result<Option<i64>> {
    let closed_at = marker.map(CleanMarker::log_end_offset).filter(|offset| *offset >= 0);
    Ok(DurableOffsetFile::read(directory)?.or(closed_at))
}

//! What a writer has to know when it comes back, in three files of the partition directory.
//!
//! | file | says | when it is written |
//! |---|---|---|
//! | `.cordwood.checkpoint` | from where on to look after a crash; what lies below the log start | replaced as a whole, after the sync that it names |
//! | `.cordwood.durable` | up to which offset everything was synced | in place, after each such sync, and not synced itself |
//! | `.cordwood.clean` | that the log was closed, and what its files were like then | last thing at the close; gone before the first change |
//!
//! The second is what tells a torn write from a damaged record. After the crash of a process it is exact; after a power
//! loss it may be some seconds old, and never says too much.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::sealed_text;
use crate::error::{Error, Malformed, Result};
use crate::fs::names::SegmentFileName;
use crate::fs::planted::{self, Planted};
use crate::fs::{Directory, WritableFile};
use crate::record::crc;

/// The recovery point and the log start offset.
pub(crate) const CHECKPOINT: &str = ".cordwood.checkpoint";
/// The offset below which everything was synced.
pub(super) const DURABLE: &str = ".cordwood.durable";
/// There after a close, and only until the next change.
pub(super) const CLEAN: &str = ".cordwood.clean";
/// No file of these is larger.
const MOST_BYTES: u64 = 4096;

const RECOVERY_POINT: &str = "recovery-point";
const LOG_START_OFFSET: &str = "log-start-offset";
const STARTING_AT: &str = "starting-at";

/// `.cordwood.checkpoint`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Checkpoint {
    /// Everything below was synced, indexes too: recovery begins with the segment that holds it.
    pub(crate) recovery_point: i64,
    /// No record below exists, whatever the files still hold.
    pub(crate) log_start_offset: i64,
    /// The log is being emptied, to start at this offset: what is left of it is to go.
    pub(crate) starting_at: Option<i64>,
}

impl Checkpoint {
    /// Reads the file; `None` where there is none.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where it is not what was written: records that were deleted would come back.
    pub(crate) fn read(directory: &Directory) -> Result<Option<Self>> {
        let Some(text) = directory.read_small(CHECKPOINT, MOST_BYTES)? else { return Ok(None) };
        if text.is_empty() && planted::is(Planted::EmptyCheckpointIsZero) {
            return Ok(Some(Self::default()));
        }
        let parsed = sealed_text::read(&text).and_then(|fields| {
            let offset = |name: &str| fields.get(name).copied().filter(|offset| *offset >= 0);
            let needed =
                |name: &str| offset(name).ok_or_else(|| format!("expected a line \"{name} OFFSET\""));
            Ok(Self {
                recovery_point: needed(RECOVERY_POINT)?,
                log_start_offset: needed(LOG_START_OFFSET)?,
                starting_at: offset(STARTING_AT),
            })
        });
        parsed.map(Some).map_err(|wrong| {
            let expected = "the recovery point and the log start offset, as they were written (without this file the log \
                            starts at its first segment, and all of it is looked at)";
            Malformed::new(expected, wrong).at(directory.path_of(CHECKPOINT), 0, None)
        })
    }

    /// Replaces the file, durably.
    pub(super) fn write(&self, directory: &Directory) -> Result<()> {
        let mut fields = BTreeMap::from([
            (RECOVERY_POINT, self.recovery_point),
            (LOG_START_OFFSET, self.log_start_offset),
        ]);
        fields.extend(self.starting_at.map(|offset| (STARTING_AT, offset)));
        directory.replace(CHECKPOINT, &sealed_text::write(&fields))
    }
}

/// `.cordwood.durable`: an offset (i64, big-endian) and its CRC-32C.
#[derive(Debug)]
pub(super) struct Watermark {
    file: WritableFile,
    noted: i64,
}

impl Watermark {
    const SIZE: usize = 12;

    /// What the file says; `None` where it is missing or not whole.
    pub(super) fn read(directory: &Directory) -> Result<Option<i64>> {
        let Some(bytes) = directory.read_small(DURABLE, MOST_BYTES)? else { return Ok(None) };
        let Some((offset, checksum)) = bytes.split_first_chunk() else { return Ok(None) };
        let is_whole = checksum == crc::crc32c(offset).to_be_bytes();
        Ok(Some(i64::from_be_bytes(*offset)).filter(|offset| is_whole && *offset >= 0))
    }

    /// Opens the file, or makes it. Its name is durable after the directory's sync.
    pub(super) fn open(directory: &Directory) -> Result<Self> {
        let file = match directory.identity_of(DURABLE)? {
            Some(_) => directory.open_writable(DURABLE)?,
            None => directory.create(DURABLE)?,
        };
        Ok(Self { file, noted: -1 })
    }

    /// Notes that everything below `offset` was synced; less than before is no news.
    pub(super) fn note(&mut self, offset: i64) -> Result<()> {
        if offset <= self.noted {
            return Ok(());
        }
        let mut bytes = [0; Self::SIZE];
        let (number, checksum) = bytes.split_at_mut(8);
        number.copy_from_slice(&offset.to_be_bytes());
        checksum.copy_from_slice(&crc::crc32c(&offset.to_be_bytes()).to_be_bytes());
        self.file.write_all_at(&bytes, 0)?;
        self.noted = offset;
        Ok(())
    }

    /// Notes another offset, durably: an earlier, higher one must not come back.
    pub(super) fn set(&mut self, offset: i64) -> Result<()> {
        self.noted = -1;
        self.note(offset)?;
        self.file.sync()
    }
}

/// `.cordwood.clean`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CleanMarker {
    pub(super) log_end_offset: i64,
    /// A checksum over names and sizes of all segment files.
    files: u32,
}

impl CleanMarker {
    /// Of the directory as it is now.
    pub(super) fn of(directory: &Directory, log_end_offset: i64) -> Result<Self> {
        let mut names: Vec<_> = directory.entries()?.into_iter().map(|(name, _)| name).collect();
        names.retain(|name| SegmentFileName::parse(name).is_some());
        names.sort_unstable();
        let mut text = String::new();
        for name in names {
            let size = directory.identity_of(&name)?.map_or(0, |identity| identity.size);
            // writing into a String does not fail
            let _ = writeln!(text, "{name} {size}");
        }
        Ok(Self { log_end_offset, files: crc::crc32c(text.as_bytes()) })
    }

    /// The marker, where it is whole and the files are those that it was written for.
    pub(super) fn read(directory: &Directory) -> Result<Option<Self>> {
        let Some(text) = directory.read_small(CLEAN, MOST_BYTES)? else { return Ok(None) };
        if planted::is(Planted::CleanMarkerByExistence) {
            let fields = sealed_text::read(&text).unwrap_or_default();
            let log_end_offset = fields.get("log-end-offset").copied().unwrap_or(i64::MAX);
            return Ok(Some(Self { log_end_offset, files: 0 }));
        }
        let Ok(fields) = sealed_text::read(&text) else { return Ok(None) };
        let Some(log_end_offset) = fields.get("log-end-offset") else { return Ok(None) };
        let now = Self::of(directory, *log_end_offset)?;
        Ok((fields.get("files") == Some(&i64::from(now.files))).then_some(now))
    }

    /// Writes the file, durably.
    pub(super) fn write(&self, directory: &Directory) -> Result<()> {
        let fields =
            BTreeMap::from([("log-end-offset", self.log_end_offset), ("files", i64::from(self.files))]);
        directory.replace(CLEAN, &sealed_text::write(&fields))
    }

    /// Takes the file away, durably.
    pub(super) fn remove(directory: &Directory) -> Result<()> {
        if directory.identity_of(CLEAN)?.is_some() {
            directory.remove(CLEAN)?;
            directory.sync()?;
        }
        Ok(())
    }
}

/// An error where acknowledged records are missing.
pub(super) fn missing(directory: &Directory, durable: i64, found: i64) -> Error {
    let expected = format!("a log that ends at offset {durable} or above: up to there it was synced");
    Malformed::new(expected, format!("its end at offset {found}")).at(directory.path(), 0, Some(found))
}

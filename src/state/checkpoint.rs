//! The state that a writer stores in three files of the partition directory. The third one is in
//! `clean_marker`.
//!
//! | file | content | written |
//! |---|---|---|
//! | `.cordwood.checkpoint` | recovery point and log start offset | replaced as a whole, after the corresponding sync |
//! | `.cordwood.durable` | the durable offset | in place, after each sync; not synced itself |
//! | `.cordwood.clean` | the sizes of the files of a closed log | last, at the close; removed before the first change |
//!
//! With the second file, recovery distinguishes a torn write from a damaged record. After a crash of the
//! process it is exact. After a power loss it may be some seconds old, but its offset is never too high.

use std::collections::BTreeMap;

use super::checksummed_text;
use crate::error::{Malformed, Result};
use crate::fs::{Directory, Staged, WritableFile};
use crate::record::crc;

/// The recovery point and the log start offset.
pub(crate) const CHECKPOINT: &str = ".cordwood.checkpoint";
/// The offset below which everything was synced.
pub(crate) const DURABLE: &str = ".cordwood.durable";
/// The maximum size of each file, bytes.
const MAX_BYTES: u64 = 4096;

const RECOVERY_POINT: &str = "recovery-point";
const LOG_START_OFFSET: &str = "log-start-offset";
const STARTING_AT: &str = "starting-at";
const ENDED_AT: &str = "ended-at";
const KEEPS_PRODUCERS: &str = "keeps-producers";

/// `.cordwood.checkpoint`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Checkpoint {
    /// The recovery point: everything below it was synced, including indexes. Recovery starts to read at the
    /// segment that contains it.
    pub(crate) recovery_point: i64,
    /// The log start offset: records below it count as deleted, even if the files still contain some.
    pub(crate) log_start_offset: i64,
    /// Set while all records are being removed: the log continues, empty, at this offset, and its segments
    /// have to be deleted.
    pub(crate) starting_at: Option<i64>,
    /// The log end offset before the removal.
    pub(crate) ended_at: Option<i64>,
    /// Whether the named producers that are stored in their file stay after the removal.
    pub(crate) keeps_producers: bool,
}

impl Checkpoint {
    /// Reads the file; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the checksum does not match. The file is not ignored
    /// then, because deleted records would reappear without it.
    pub(crate) fn read(directory: &Directory) -> Result<Option<Self>> {
        let Some(text) = directory.read_small(CHECKPOINT, MAX_BYTES)? else { return Ok(None) };
        let parsed = checksummed_text::read(&text).and_then(|fields| {
            let offset = |name: &str| fields.get(name).copied().filter(|offset| *offset >= 0);
            let required = |name: &str| offset(name).ok_or_else(|| format!("no line \"{name} OFFSET\""));
            Ok(Self {
                recovery_point: required(RECOVERY_POINT)?,
                log_start_offset: required(LOG_START_OFFSET)?,
                starting_at: offset(STARTING_AT),
                ended_at: offset(ENDED_AT),
                keeps_producers: fields.contains_key(KEEPS_PRODUCERS),
            })
        });
        parsed.map(Some).map_err(|wrong| {
            let expected = "the recovery point and the log start offset with a valid checksum (restore the file, or remove it: \
                            the next open then reads the whole log, which starts at its first segment, and records \
                            deleted from that segment may reappear)";
            Malformed::new(expected, wrong).at(directory.path_of(CHECKPOINT), 0, None)
        })
    }

    /// Replaces the file, durably.
    pub(crate) fn write(&self, directory: &Directory) -> Result<()> {
        self.stage(directory)?.put()
    }

    /// Writes the replacement of the file under a staged name.
    pub(crate) fn stage(&self, directory: &Directory) -> Result<Staged> {
        directory.stage(CHECKPOINT, &self.to_text())
    }

    /// Stages a second replacement, to follow the one that is already staged.
    pub(crate) fn stage_next(&self, directory: &Directory) -> Result<Staged> {
        directory.stage_next(CHECKPOINT, &self.to_text())
    }

    pub(crate) fn to_text(self) -> Vec<u8> {
        let mut fields = BTreeMap::from([
            (RECOVERY_POINT, self.recovery_point),
            (LOG_START_OFFSET, self.log_start_offset),
        ]);
        fields.extend(self.starting_at.map(|offset| (STARTING_AT, offset)));
        fields.extend(self.ended_at.map(|offset| (ENDED_AT, offset)));
        fields.extend(self.keeps_producers.then_some((KEEPS_PRODUCERS, 1)));
        checksummed_text::write(&fields)
    }
}

/// `.cordwood.durable`: an offset (i64, big-endian) and its CRC-32C.
#[derive(Debug)]
pub(crate) struct DurableOffsetFile {
    file: WritableFile,
    written: i64,
}

impl DurableOffsetFile {
    const SIZE: usize = 12;

    /// Reads the offset; `None` if the file is missing or its checksum does not match.
    pub(crate) fn read(directory: &Directory) -> Result<Option<i64>> {
        let Some(bytes) = directory.read_small(DURABLE, MAX_BYTES)? else { return Ok(None) };
        let Some((offset, checksum)) = bytes.split_first_chunk() else { return Ok(None) };
        let is_valid = checksum == crc::crc32c(offset).to_be_bytes();
        Ok(Some(i64::from_be_bytes(*offset)).filter(|offset| is_valid && *offset >= 0))
    }

    /// Opens the file, or creates it. Its name is durable after a sync of the directory.
    pub(crate) fn open(directory: &Directory) -> Result<Self> {
        let file = match directory.identity_of(DURABLE)? {
            Some(_) => directory.open_writable(DURABLE)?,
            None => directory.create(DURABLE)?,
        };
        Ok(Self { file, written: -1 })
    }

    /// Writes the offset below which everything was synced. Ignores an offset at or below the last one
    /// written.
    pub(crate) fn note(&mut self, offset: i64) -> Result<()> {
        if offset <= self.written {
            return Ok(());
        }
        let mut bytes = [0; Self::SIZE];
        let (number, checksum) = bytes.split_at_mut(8);
        number.copy_from_slice(&offset.to_be_bytes());
        checksum.copy_from_slice(&crc::crc32c(&offset.to_be_bytes()).to_be_bytes());
        self.file.write_all_at(&bytes, 0)?;
        self.written = offset;
        Ok(())
    }

    /// Writes an offset durably, even if it is lower: an earlier, higher offset cannot reappear after a
    /// crash.
    pub(crate) fn set(&mut self, offset: i64) -> Result<()> {
        self.written = -1;
        self.note(offset)?;
        self.file.sync()
    }
}

//! The first offset that compaction has not cleaned yet. Kafka: `LogCleanerManager`,
//! `cleaner-offset-checkpoint`.
//!
//! In a Kafka data directory it is the partition's line of `cleaner-offset-checkpoint`. Elsewhere it is in a
//! file of the partition directory, whose presence also tells readers that offsets may be missing. If the
//! offset is not known, the whole log counts as dirty, which costs only time. An offset that is too high
//! would be wrong: a tombstone below it could be removed before the records that it deletes. Therefore a
//! truncation lowers it first.

use std::collections::BTreeMap;

use super::checksummed_text;
use super::data_directory::DataDirectory;
use crate::error::Result;
use crate::fs::Directory;

/// The file of a partition outside a data directory. A copy of a compacted partition has it without an
/// offset. Its name must not end with `.cleaned`, `.swap` or `.deleted`: Kafka's `LogLoader` parses such a
/// name as an offset, and does not load the partition if it is none.
pub(crate) const CLEANED: &str = ".cordwood.compacted";

const FIRST_DIRTY_OFFSET: &str = "first-dirty-offset";
const MAX_BYTES: u64 = 4096;

/// Where the offset of a partition is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CleanerCheckpoint<'a> {
    pub(crate) directory: &'a Directory,
    pub(crate) data_directory: Option<&'a DataDirectory>,
}

impl CleanerCheckpoint<'_> {
    /// The stored offset; `None` if there is none, or if it is damaged.
    pub(crate) fn read(self) -> Result<Option<i64>> {
        let offset = match self.data_directory {
            Some(data_directory) => data_directory.cleaned_offset()?,
            None => self.own()?,
        };
        Ok(offset.filter(|offset| *offset >= 0))
    }

    fn own(self) -> Result<Option<i64>> {
        let Some(text) = self.directory.read_small(CLEANED, MAX_BYTES)? else { return Ok(None) };
        Ok(checksummed_text::read(&text).ok().and_then(|fields| fields.get(FIRST_DIRTY_OFFSET).copied()))
    }

    /// Stores an offset, durably.
    pub(crate) fn write(self, offset: i64) -> Result<()> {
        if let Some(data_directory) = self.data_directory {
            return data_directory.write_cleaned_offset(offset);
        }
        let fields = BTreeMap::from([(FIRST_DIRTY_OFFSET, offset)]);
        self.directory.replace(CLEANED, &checksummed_text::write(&fields))
    }

    /// Lowers the stored offset to `offset` if it is higher, durably: before the records from there on are
    /// removed, and others get their offsets.
    ///
    /// *Source*: `LogCleanerManager.maybeTruncateCheckpoint`.
    pub(crate) fn lower(self, offset: i64) -> Result<()> {
        if self.read()?.is_some_and(|stored| stored > offset) {
            self.write(offset)?;
        }
        if self.data_directory.is_some() && self.own()?.is_some_and(|stored| stored > offset) {
            // from before the partition was moved into the data directory; in effect again if it is moved out
            self.directory.replace(CLEANED, &checksummed_text::write(&BTreeMap::new()))?;
        }
        Ok(())
    }

    /// If the stored offset is above the log end offset, stores the log start offset: later records would be
    /// taken for clean.
    ///
    /// *Source*: `LogCleanerManager.cleanableOffsets`.
    pub(crate) fn reset_beyond(self, log_start_offset: i64, log_end_offset: i64) -> Result<()> {
        if self.read()?.is_some_and(|stored| stored > log_end_offset) {
            self.write(log_start_offset)?;
        }
        Ok(())
    }
}

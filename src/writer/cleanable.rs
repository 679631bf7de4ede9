//! What compaction needs of a writer: the state of the log, and the changes of it. Appends go on between
//! these calls.

use std::collections::HashMap;

use super::{LogWriter, recovery};
use crate::config::LogConfig;
use crate::error::Result;
use crate::fs::Directory;
use crate::index::{AbortedTransaction, encode_aborted};
use crate::log::Log;
use crate::segment::is_relative;
use crate::state::cleaner_checkpoint::CleanerCheckpoint;
use crate::state::producers::LastRecord;
use crate::writer::partition::Partition;
use crate::writer::replacement::remove_cleaned;

/// The state of a log at the start of a compaction.
#[derive(Debug)]
pub(crate) struct Cleanable {
    pub(crate) log: Log,
    pub(crate) directory: Directory,
    pub(crate) config: LogConfig,
    pub(crate) last_stable_offset: i64,
    /// The first offset that is not cleaned, as stored.
    pub(crate) first_dirty_offset: Option<i64>,
    /// ms since the epoch.
    pub(crate) now: i64,
}

impl LogWriter {
    /// The present state of the log. `now`: ms since the epoch; `None`: the clock's time.
    pub(crate) fn cleanable(&mut self, now: Option<i64>) -> Result<Cleanable> {
        let shared = std::sync::Arc::clone(&self.shared);
        let partition = shared.enter()?;
        // under the lock: the log up to the last stable offset
        let log = self.open_reader()?;
        Ok(Cleanable {
            log,
            directory: partition.directory.clone(),
            config: partition.config.clone(),
            last_stable_offset: partition.last_stable_offset(),
            first_dirty_offset: partition.cleaner_checkpoint().read()?,
            now: now.unwrap_or_else(partition.clock),
        })
    }

    /// The last record of each producer.
    pub(crate) fn last_records(&self) -> Result<HashMap<i64, LastRecord>> {
        Ok(self.shared.enter()?.producers.last_records())
    }

    /// Replaces sealed segments with the one whose `.cleaned` files are complete and have the base offset of
    /// the first.
    ///
    /// # Errors
    /// As of any change: the writer is poisoned.
    pub(crate) fn replace_segments(&mut self, replaced: &[i64], is_empty: bool) -> Result<()> {
        let mut partition = self.shared.enter()?;
        let done = partition.replace_segments(replaced, is_empty);
        partition.ends.commit().or_poison(done)
    }

    /// Splits the first segment that begins below `end_offset` and has offsets more than 2^31 - 1 above its
    /// base offset, if there is one. `log`: as [`LogWriter::cleanable`] returned it; `aborted`: its
    /// aborted transactions. Appends wait while the parts, which are complete, are put in place.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the segment is damaged, and
    /// [`Error::Io`](crate::Error::Io) if the disk has no space for a second copy of it, with the segment
    /// unchanged; the errors of any change.
    ///
    /// *Source*: `Cleaner.cleanSegments`; `UnifiedLog.splitOverflowedSegment`.
    pub(crate) fn split_overflowed(
        &mut self,
        log: &Log,
        end_offset: i64,
        aborted: &[AbortedTransaction],
    ) -> Result<bool> {
        let (directory, rule) = {
            let partition = self.shared.enter()?;
            (partition.directory.clone(), Partition::entry_rule(&partition.config))
        };
        for segment in log.segments().between(0, end_offset) {
            let base_offset = segment.base_offset();
            // others cannot overflow
            if is_relative(segment.upper() - 1, base_offset) {
                continue;
            }
            let scanned = recovery::scan(segment, -1, None, rule, log.options().interrupt)?;
            if let Some(cut) = &scanned.cut {
                return Err(segment.corrupt(&cut.damage));
            }
            if !scanned.is_overflowed(base_offset) {
                continue;
            }
            let bases: Vec<_> = scanned.parts.iter().map(|part| part.base_offset).collect();
            if let Some(first) = bases.first().filter(|first| **first > log.log_start_offset())
                && log.segments().iter().next().is_some_and(|first| first.base_offset() == base_offset)
            {
                // there is no record between them, and after a crash the log must not begin above its start
                // offset
                self.delete_before(*first)?;
            }
            let ends = bases.iter().skip(1).copied().chain([segment.upper()]);
            let indexes: Vec<_> = bases
                .iter()
                .zip(ends)
                .map(|(base, end)| {
                    let own = aborted.iter().filter(|aborted| (*base..end).contains(&aborted.last_offset));
                    (*base, own.copied().flat_map(encode_aborted).collect())
                })
                .collect();
            remove_cleaned(&directory)?;
            recovery::write_parts(&directory, base_offset, &scanned.parts, &indexes)?;
            let mut partition = self.shared.enter()?;
            let done = partition.replace_with_parts(base_offset, &bases);
            partition.ends.commit().or_poison(done)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Stores the first offset that is not cleaned. If that fails, the earlier offset remains.
    pub(crate) fn set_first_dirty_offset(&mut self, offset: i64) -> Result<()> {
        let partition = self.shared.enter()?;
        let written = partition.cleaner_checkpoint().write(offset);
        partition.ends.commit().or_poison_after_sync(written)
    }
}

impl Partition {
    /// See [`LogWriter::last_stable_offset`].
    pub(super) fn last_stable_offset(&self) -> i64 {
        let open = self.producers.first_open_offset();
        open.map_or(self.ends.log_end_offset(), |first| first.max(self.ends.log_start_offset()))
    }

    pub(super) fn cleaner_checkpoint(&self) -> CleanerCheckpoint<'_> {
        CleanerCheckpoint { directory: &self.directory, data_directory: self.data_directory.as_ref() }
    }
}

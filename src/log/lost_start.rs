//! A log whose first segments are missing.

use super::Log;
use crate::error::{Error, Result};
use crate::fs::names::FileKind;
use crate::segment::with_descriptors;
use crate::state::checkpoint::{CHECKPOINT, Checkpoint, DURABLE};
use crate::state::data_directory::DataDirectory;
use crate::state::leader_epochs::{LEADER_EPOCH_CHECKPOINT, LeaderEpochs};
use crate::types::{is_or_are, offsets_in_words};

/// The offsets below the first segment that the log has lost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LostStart {
    /// The first lost offset.
    pub(crate) start: i64,
    /// The base offset of the first segment.
    pub(crate) first: i64,
    /// The file that says so: that of a writer's log start offset, or of the leader epochs.
    pub(crate) file: &'static str,
}

impl Log {
    /// The offsets below the first segment that the log has lost; `None` if it has lost none, or if no file
    /// shows it. A writer stores the log start offset before it deletes segments. A broker does not, but
    /// removes the partition's line from `log-start-offset-checkpoint` after the deletion. Both raise the
    /// start of the first leader epoch before it, except one that stops while it deletes them: see
    /// [`Log::unfinished_deletion`].
    pub(crate) fn lost_start(
        &self,
        checkpoint: Option<Checkpoint>,
        data_directory: Option<&DataDirectory>,
    ) -> Result<Option<LostStart>> {
        let Some(first) = self.segments().first().map(|first| first.base_offset()) else { return Ok(None) };
        let own = checkpoint.map(|checkpoint| checkpoint.log_start_offset);
        if own.is_some_and(|start| first <= start) {
            return Ok(None);
        }
        let lost = self.start_by_epochs()?;
        let line = data_directory.map_or(Ok(None), DataDirectory::log_start_offset)?;
        let is_deleted = data_directory.is_some() && line.is_none_or(|start| start >= first);
        if let Some(start) = own.filter(|_| !is_deleted) {
            return Ok(Some(LostStart { start, first, file: CHECKPOINT }));
        }
        // of a log that a writer had, its own files tell; a line at or above the first segment, as a broker
        // leaves it for a minute, too, and one below is that of a log whose start is in remote storage
        if line.is_some() || self.directory().identity_of(DURABLE)?.is_some() {
            return Ok(None);
        }
        let is_lost = lost.is_some() && self.unfinished_deletion(data_directory)?.is_none();
        let file = LEADER_EPOCH_CHECKPOINT;
        Ok(lost.filter(|_| is_lost).map(|start| LostStart { start, first, file }))
    }

    /// The start of the first leader epoch, if it is below the first segment.
    fn start_by_epochs(&self) -> Result<Option<i64>> {
        let first = self.segments().first().map_or(0, |first| first.base_offset());
        Ok(LeaderEpochs::first_start(self.directory())?.filter(|start| *start < first))
    }

    /// The start of the first leader epoch of a log whose first segments a broker was deleting when it
    /// stopped: it renames them to `.deleted` before it writes the new start of the epoch, and removes them a
    /// minute later. They have all offsets up to the first segment. A cleaner's replacement beside them shows
    /// another reason. A writer leaves the start of the epoch, so that it finds the same at each opening,
    /// until it deletes records itself.
    pub(crate) fn unfinished_deletion(&self, data_directory: Option<&DataDirectory>) -> Result<Option<i64>> {
        let (Some(start), Some(first)) = (self.start_by_epochs()?, self.segments().first()) else {
            return Ok(None);
        };
        // the line of a broker says what is deleted; a writer has one as soon as it has opened the log
        let line = data_directory.map_or(Ok(None), DataDirectory::log_start_offset)?;
        let is_said = line.is_some() && self.directory().identity_of(CHECKPOINT)?.is_none();
        if is_said || !self.replacement()?.committed.is_empty() {
            return Ok(None);
        }
        let mut next = start;
        for file in self.deleted_files()?.iter().filter(|file| file.parsed.kind == FileKind::Log) {
            let offsets = self.offsets_of_file(file, false)?;
            next = offsets.filter(|offsets| offsets.contains(&next)).map_or(next, |offsets| offsets.end);
        }
        Ok((next >= first.base_offset()).then_some(start))
    }

    /// Warns of a lost start. `earlier`: the log that this one was refreshed from.
    ///
    /// # Errors
    /// [`Error::LogChanged`], [`Error::Interrupted`]. A file that cannot be read is ignored.
    pub(super) fn warn_of_lost_start(&self, earlier: Option<&Self>) -> Result<()> {
        let first = |log: &Self| log.segments().first().map(|first| first.base_offset());
        let warning = match earlier {
            Some(earlier) if first(earlier) == first(self) => earlier.inner.lost_start.get().cloned(),
            _ if first(self) == Some(0) => None,
            _ => self.lost_start_in_words()?,
        };
        if let Some(warning) = warning {
            self.inner.lookups.report(&warning);
            self.inner.lost_start.get_or_init(|| warning);
        }
        Ok(())
    }

    fn lost_start_in_words(&self) -> Result<Option<String>> {
        // read after the segments were listed: a writer stores the log start offset before it deletes them
        let found = with_descriptors(|| {
            let checkpoint = Checkpoint::read(self.directory())?;
            if checkpoint.is_some_and(|checkpoint| checkpoint.starting_at.is_some()) {
                // all its records are being removed
                return Ok(None);
            }
            if checkpoint.is_none() && self.start_by_epochs()?.is_none() {
                // usual, and known without the files of the data directory
                return Ok(None);
            }
            self.lost_start(checkpoint, DataDirectory::with_lines_of(self.directory())?.as_ref())
        });
        let LostStart { start, first, file } = match found {
            Ok(Some(lost)) => lost,
            Err(error @ Error::Interrupted(_)) => return Err(error),
            Ok(None) | Err(_) => return Ok(None),
        };
        // a writer may have emptied the log in between
        self.check_unchanged()?;
        Ok(Some(format!(
            "{}: {} {} missing: the first segment begins at offset {first}, but by {file} the log begins at {start}. Unless they are \
             in remote storage, segments are lost",
            self.path().display(),
            offsets_in_words(start, Some(first)),
            is_or_are(start, first),
        )))
    }
}

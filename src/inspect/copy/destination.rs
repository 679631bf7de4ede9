//! The directory of a copy: what is in it, the names of the files before the copy is complete, and the step
//! that completes it.
//!
//! The files of segments are staged in the way in which Kafka replaces segments (`log/replacement.rs`), so
//! that one rename makes all of them live:
//!
//! ```text
//!   .cordwood.copy                         written first, removed last
//!   0.log.cleaned 0.index.cleaned …        not committed: Kafka and readers find no segment, and Kafka deletes these files
//!   0.log.cleaned 0.index.swap 90.log.swap …     not committed, because of the .cleaned with the lowest base offset
//!   0.log.swap    0.index.swap 90.log.swap …     committed: Kafka completes the renames, and readers read these files
//!   0.log         0.index      90.log …
//! ```

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::{Error, Result};
use crate::fs::names::{FileKind, SegmentFileName, Stage};
use crate::fs::{Directory, PartitionLocks, STAGED};
use crate::state::COPY_JOURNAL;
use crate::state::copy_journal::{CopiedRange, CopyJournal};

/// What a copy does with the files of its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Writes them. Files that an earlier call has staged are compared, and written from the first difference
    /// on.
    Staging,
    /// Compares them: the copy was complete.
    Complete,
}

/// The directory of a copy.
#[derive(Debug)]
pub(super) struct Destination {
    pub(super) directory: Directory,
    state: State,
    journal: Option<CopyJournal>,
    /// What the journal says, or will say.
    range: CopiedRange,
    /// The files of segments that belong to the copy so far.
    files: BTreeSet<(i64, FileKind)>,
}

impl Destination {
    /// Finds out what is in the directory. Changes nothing.
    ///
    /// # Errors
    /// [`Error::Config`] if there is anything but a copy, or the unfinished copy of another source or range.
    pub(super) fn find(directory: &Directory, source: &Path, range: CopiedRange) -> Result<Self> {
        let journal = CopyJournal::read(directory)?;
        let entries = directory.entries()?;
        let has = |stage| {
            entries
                .iter()
                .any(|(name, _)| SegmentFileName::parse(name).is_some_and(|file| file.stage == stage))
        };
        let (has_live, has_swap, has_cleaned) = (has(Stage::Live), has(Stage::Swap), has(Stage::Cleaned));
        let new =
            |state| Self { directory: directory.clone(), state, journal, range, files: BTreeSet::new() };
        let Some(journal) = journal else {
            let foreign = entries.iter().find(|(name, _)| !is_ours(name)).map(|(name, _)| name.as_str());
            return match foreign {
                Some(_) if has_live && !has_swap && !has_cleaned => Ok(new(State::Complete)),
                Some(foreign) => Err(something_else(directory, foreign)),
                None => Ok(new(State::Staging)),
            };
        };
        if let Some(other) = journal.other_copy(source, range) {
            return Err(something_else(directory, &other));
        }
        if has_cleaned && has_live {
            return Err(something_else(directory, "an unfinished copy, and segments of another log"));
        }
        Ok(new(if has_cleaned || !has_swap && !has_live { State::Staging } else { State::Complete }))
    }

    /// [`Destination::find`]; completes a copy that was committed, and makes one that was not committed ready
    /// to be continued. Other files are not changed.
    pub(super) fn open(directory: &Directory, source: &Path, range: CopiedRange) -> Result<Self> {
        let destination = Self::find(directory, source, range)?;
        if destination.journal.is_none() {
            return Ok(destination);
        }
        if destination.is_complete() {
            destination.make_live()?;
        } else if !destination.staged(Stage::Swap)?.is_empty() {
            destination.rename_all(Stage::Swap, Stage::Cleaned, |_| true)?;
            destination.directory.sync()?;
        }
        Ok(destination)
    }

    /// The log end offset of a copy that was committed by an interrupted call.
    pub(super) fn committed_end(&self) -> Option<i64> {
        self.journal.filter(|_| self.is_complete()).map(|journal| journal.end_offset)
    }

    /// Whether the segments of the copy were complete when the directory was opened: they are compared then.
    pub(super) fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// Whether an earlier call has completed the copy, with all that follows: nothing is written then.
    pub(super) fn is_ended(&self) -> bool {
        self.is_complete() && self.journal.is_none()
    }

    /// Whether staged files may be hard links to files of the source.
    pub(super) fn has_links(&self) -> bool {
        self.journal.is_some_and(|journal| journal.has_links)
    }

    /// Writes the journal, durably, before anything else.
    pub(super) fn begin(&mut self, source: &Path, end_offset: i64, makes_links: bool) -> Result<()> {
        if self.is_complete() {
            return Ok(());
        }
        let journal = CopyJournal::new(source, self.range, end_offset, makes_links || self.has_links());
        if self.journal != Some(journal) {
            journal.write(&self.directory)?;
            self.journal = Some(journal);
        }
        Ok(())
    }

    /// The present name of a segment's file, which from now on belongs to the copy.
    pub(super) fn add(&mut self, base_offset: i64, kind: FileKind) -> String {
        self.files.insert((base_offset, kind));
        let stage = if self.is_complete() { Stage::Live } else { Stage::Cleaned };
        SegmentFileName { base_offset, kind, stage }.to_string()
    }

    /// Puts a small file of a segment.
    pub(super) fn put_segment_file(&mut self, base_offset: i64, kind: FileKind, bytes: &[u8]) -> Result<()> {
        let name = self.add(base_offset, kind);
        if self.is_complete() {
            return self.compare(&name, Some(bytes));
        }
        self.directory.remove(&name)?;
        let file = self.directory.create(&name)?;
        file.write_all_at(bytes, 0)?;
        file.sync()
    }

    /// Puts a file that belongs to no segment; `None`: there is no such file.
    pub(super) fn put(&self, name: &str, bytes: Option<&[u8]>) -> Result<()> {
        match bytes {
            _ if self.is_complete() => self.compare(name, bytes),
            Some(bytes) => self.directory.replace(name, bytes),
            None => self.directory.remove(name),
        }
    }

    fn compare(&self, name: &str, bytes: Option<&[u8]>) -> Result<()> {
        let is_same = match bytes {
            Some(bytes) => self.contains(name, bytes)?,
            None => self.directory.identity_of(name)?.is_none(),
        };
        if is_same { Ok(()) } else { Err(something_else(&self.directory, &format!("another {name}"))) }
    }

    fn contains(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        let size = self.directory.identity_of(name)?.map(|identity| identity.size);
        let is_same_size = size == u64::try_from(bytes.len()).ok();
        Ok(is_same_size && self.directory.read_small(name, size.unwrap_or(0))?.as_deref() == Some(bytes))
    }

    /// Removes staged files that do not belong to the copy, and makes the others live.
    ///
    /// # Errors
    /// [`Error::Config`] if a copy that was complete has another segment; [`Error::Io`].
    pub(super) fn commit(&self) -> Result<()> {
        for (name, _) in self.directory.entries()? {
            let Some(parsed) = SegmentFileName::parse(&name) else { continue };
            if self.files.contains(&(parsed.base_offset, parsed.kind)) {
                continue;
            }
            match parsed.stage {
                Stage::Cleaned => self.directory.remove(&name)?,
                // a writer that has used the copy may have left them
                Stage::Deleted => {}
                Stage::Live | Stage::Swap => return Err(something_else(&self.directory, &name)),
            }
        }
        if self.is_complete() {
            return Ok(());
        }
        self.directory.sync()?;
        let first = self.files.iter().find(|(_, kind)| *kind == FileKind::Log).copied();
        let lowest = self.files.first().map(|(base_offset, _)| *base_offset);
        debug_assert_eq!(
            first.map(|(base_offset, _)| base_offset),
            lowest,
            "a copy has a segment, and no older file"
        );
        self.rename_all(Stage::Cleaned, Stage::Swap, |file| Some(file) != first)?;
        self.directory.sync()?;
        // this commits the copy
        self.rename_all(Stage::Cleaned, Stage::Swap, |file| Some(file) == first)?;
        self.directory.sync()?;
        self.make_live()
    }

    /// Removes the journal, durably: the copy is complete.
    pub(super) fn end(&self) -> Result<()> {
        if self.journal.is_some() { CopyJournal::remove(&self.directory) } else { Ok(()) }
    }

    /// Renames the files of a committed copy.
    fn make_live(&self) -> Result<()> {
        let swapped = self.staged(Stage::Swap)?;
        for segment in swapped.chunk_by(|file, next| file.base_offset == next.base_offset) {
            for file in segment {
                self.rename(*file, Stage::Live)?;
            }
            // in ascending order: a live segment between two `.swap` segments would count as replaced
            self.directory.sync()?;
        }
        Ok(())
    }

    fn rename_all(&self, from: Stage, to: Stage, which: impl Fn((i64, FileKind)) -> bool) -> Result<()> {
        let files = self.staged(from)?.into_iter().filter(|file| which((file.base_offset, file.kind)));
        files.into_iter().try_for_each(|file| self.rename(file, to))
    }

    fn rename(&self, file: SegmentFileName, stage: Stage) -> Result<()> {
        self.directory.rename(&file.to_string(), &SegmentFileName { stage, ..file }.to_string())
    }

    /// The segment files of a stage, by base offset; the `.log` last.
    fn staged(&self, stage: Stage) -> Result<Vec<SegmentFileName>> {
        let mut found: Vec<_> = self
            .directory
            .entries()?
            .into_iter()
            .filter_map(|(name, _)| SegmentFileName::parse(&name).filter(|parsed| parsed.stage == stage))
            .collect();
        found.sort_unstable_by_key(|file| (file.base_offset, file.kind == FileKind::Log, file.kind));
        Ok(found)
    }
}

/// Whether a file may be in the directory of a copy that has not begun.
fn is_ours(name: &str) -> bool {
    name == PartitionLocks::NAME || name.strip_suffix(STAGED) == Some(COPY_JOURNAL)
}

pub(super) fn something_else(directory: &Directory, found: &str) -> Error {
    let expected = "a directory that does not exist or is empty, or a copy of the same range of the source (remove the directory, or \
                    name another one)";
    Error::config("destination", expected, format!("{found} in {}", directory.path().display()))
}

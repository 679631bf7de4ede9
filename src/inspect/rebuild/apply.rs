//! The replacement of derived files.

use super::{DerivedFile, FileState};
use crate::error::Result;
use crate::fs::{Directory, Staged};
use crate::state::clean_marker::CleanMarker;
use crate::writer::Quarantined;

/// Files that are replaced or removed after everything was read.
#[derive(Debug)]
pub(super) struct Replacements {
    directory: Directory,
    /// The marker of a clean close, if it is valid. It contains the sizes of the files, so it is written
    /// again at the end; until then, after a crash, the next writer recovers the log.
    clean_marker: Option<CleanMarker>,
    waiting: Vec<Replacement>,
}

#[derive(Debug)]
struct Replacement {
    name: String,
    /// The new file; `None` if the old one is removed.
    staged: Option<Staged>,
    /// The old bytes; `None` if there is no old file, or if all of its bytes are zero.
    old: Option<Quarantined>,
}

impl Replacements {
    /// Reads the marker. The caller holds the locks of a writer.
    pub(super) fn new(directory: &Directory) -> Result<Self> {
        let mut clean_marker = CleanMarker::read(directory)?;
        if let Some(marker) = &clean_marker
            && !marker.matches_files(directory)?
        {
            clean_marker = None;
        }
        Ok(Self { directory: directory.clone(), clean_marker, waiting: Vec::new() })
    }

    /// Writes the new contents of a file that differs under a staged name, durably, and adds where its old
    /// bytes will be kept.
    pub(super) fn prepare(&mut self, file: &mut DerivedFile, contents: Option<&[u8]>) -> Result<()> {
        let directory = &self.directory;
        if file.state == FileState::Unchanged {
            return Ok(());
        }
        let name = file.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let old = match file.old_size {
            Some(_) => Quarantined::find(directory, &name, &name, 0)?,
            None => None,
        };
        file.quarantine = old.as_ref().map(|old| old.path(directory));
        let staged = contents.map(|contents| directory.stage(&name, contents)).transpose()?;
        self.waiting.push(Replacement { name, staged, old });
        Ok(())
    }

    /// Keeps the old bytes of each file and puts the new one in its place. Each step is durable before the
    /// next. `interval`: the `index.interval.bytes` of the new indexes.
    pub(super) fn apply(self, interval: u64) -> Result<()> {
        let Self { directory, clean_marker, waiting } = self;
        if waiting.is_empty() {
            return Ok(());
        }
        for Replacement { name, staged, old } in waiting {
            if let Some(old) = old {
                old.keep(&directory)?;
            }
            if let Some(staged) = staged {
                staged.put()?;
            } else {
                directory.remove(&name)?;
                directory.sync()?;
            }
        }
        match clean_marker {
            Some(marker) => CleanMarker::of(&directory, marker.log_end_offset(), interval)?.write(&directory),
            None => Ok(()),
        }
    }
}

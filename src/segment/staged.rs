//! An empty segment whose files have staged names, which readers ignore.

use super::appender::SegmentLayout;
use crate::error::Result;
use crate::fs::names::{FileKind, segment_file};
use crate::fs::{Directory, STAGED};

/// The files of a new segment. The `.log` is last: the segment exists once it has its name.
const FILES: [FileKind; 3] = [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::Log];

/// The staged files of an empty segment. Only renames remain to be done, which need no space. The files are
/// removed on drop.
#[derive(Debug)]
pub(crate) struct StagedSegment {
    directory: Directory,
    base_offset: i64,
}

impl StagedSegment {
    /// Creates the files; the indexes are empty. If this fails, no file is left.
    pub(crate) fn make(directory: &Directory, base_offset: i64, layout: &SegmentLayout) -> Result<Self> {
        let staged = Self { directory: directory.clone(), base_offset };
        staged.remove()?;
        for kind in FILES {
            let file = directory.create(&staged.name(kind))?;
            if kind == FileKind::Log && layout.initial_size > 0 {
                file.allocate(layout.initial_size)?;
            }
        }
        Ok(staged)
    }

    /// Renames the files to their final names, replacing those of an existing segment, so that a segment
    /// exists at all times. The names are durable after a sync of the directory.
    pub(crate) fn put(self) -> Result<()> {
        self.directory.remove(&segment_file(self.base_offset, FileKind::TransactionIndex))?;
        for kind in FILES {
            self.directory.rename(&self.name(kind), &segment_file(self.base_offset, kind))?;
        }
        Ok(())
    }

    fn name(&self, kind: FileKind) -> String {
        format!("{}{STAGED}", segment_file(self.base_offset, kind))
    }

    fn remove(&self) -> Result<()> {
        FILES.into_iter().try_for_each(|kind| self.directory.remove(&self.name(kind)))
    }
}

impl Drop for StagedSegment {
    fn drop(&mut self) {
        // a renamed file no longer has its staged name
        let _ = self.remove();
    }
}

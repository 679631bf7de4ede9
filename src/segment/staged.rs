//! An empty segment whose files exist under staged names, which no reader looks for.

use super::appender::SegmentLayout;
use crate::error::Result;
use crate::fs::names::{FileKind, segment_file};
use crate::fs::{Directory, STAGED};

/// The files of a new segment; the `.log` comes last, and with it the segment is there.
const FILES: [FileKind; 3] = [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::Log];

/// The files of an empty segment, which wait for their names. All that needs space has been done. Dropped, they are
/// removed.
#[derive(Debug)]
pub(crate) struct StagedSegment {
    directory: Directory,
    base_offset: i64,
}

impl StagedSegment {
    /// Makes the files, the indexes without a length. Where this fails, none is left.
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

    /// Gives the files their names, which they take from those of a segment that has them: at no moment is there none. Their
    /// names are durable after the directory's sync.
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
        // those that have their names are not found under these
        let _ = self.remove();
    }
}

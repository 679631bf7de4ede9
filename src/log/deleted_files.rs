//! Segments that are marked as deleted, and are still there. Kafka: `LogLoader`, pass 1.

use std::ops::Range;

use super::{Log, loader};
use crate::error::Result;
use crate::fs::SegmentFile;
use crate::fs::names::{FileKind, Stage};

impl Log {
    /// The `.deleted` files of segments as the directory has them now, by name. For a `.log` with its offsets, from the first batch to
    /// the last, which are empty without a batch; `None` for one with damage, and for other files.
    pub(crate) fn deleted_files(&self) -> Result<Vec<(SegmentFile, Option<Range<i64>>)>> {
        let open_files = &self.inner.open_files;
        let files = open_files.directory.segment_files()?;
        let deleted = files.into_iter().filter(|file| file.parsed.stage == Stage::Deleted);
        deleted
            .map(|file| {
                let offsets = match file.parsed.kind {
                    FileKind::Log => loader::offsets_of(open_files, &file, &self.inner.lookups)?,
                    _ => None,
                };
                Ok((file, offsets))
            })
            .collect()
    }
}

//! Complete listings of a directory that other processes change at the same time.
//!
//! `readdir` is not atomic: each entry that is created, deleted or renamed while it runs may be returned or
//! not, independently. One pass over the directory of a log that rolls may therefore miss a segment and
//! return a later one, which looks like a gap. A second pass returns every entry that existed before it
//! began. A segment is created after all segments with lower base offsets, so those that precede the last one
//! of the first pass existed before the second pass began:
//!
//! ```text
//!   first pass     0  129  …  147  154        137 was created during the pass, and missed
//!   second pass    0  129  137  147  154  …  170  178     complete up to 154; 162 may be missing
//! ```
//!
//! Deletions and renames may disturb the second pass too, so passes are repeated until two of them agree.

use super::names::{FileKind, SegmentFileName, Stage};
use super::{Directory, FileType};
use crate::error::{Error, Result};

/// The maximum number of passes. If segments are deleted or replaced during each of them, the listing fails.
const MAX_PASSES: usize = 10;

/// A file that belongs to a segment, as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentFile {
    /// Its name.
    pub name: String,
    /// The parsed name.
    pub parsed: SegmentFileName,
    /// Its type: something other than a regular file may have such a name.
    pub file_type: FileType,
}

impl SegmentFile {
    fn is_live(&self) -> bool {
        self.parsed.stage == Stage::Live && self.file_type != FileType::Directory
    }
}

impl Directory {
    /// The files of segments, sorted by name. Below the largest base offset that is returned, no live segment
    /// is missing. Of the segments that are created during the listing, the newest may be missing.
    ///
    /// # Errors
    /// [`Error::LogChanged`] if segments are deleted or replaced so fast that no two passes agree;
    /// [`Error::Io`].
    pub fn segment_files(&self) -> Result<Vec<SegmentFile>> {
        let mut earlier = self.list_segment_files()?;
        let mut last = last_base(&earlier);
        for _ in 1..MAX_PASSES {
            let mut later = self.list_segment_files()?;
            if first_base(&later) > last {
                // no segment, or no longer any
                last = last_base(&later);
            }
            for files in [&mut earlier, &mut later] {
                files.retain(|file| !file.is_live() || Some(file.parsed.base_offset) <= last);
            }
            if later == earlier {
                return Ok(earlier);
            }
            earlier = later;
        }
        Err(self.unstable("segments deleted or replaced"))
    }

    /// Calls `list` until two calls in a row return the same.
    ///
    /// # Errors
    /// [`Error::LogChanged`] if no two in a row do; the errors of `list`.
    pub fn list_until_stable<T: PartialEq>(&self, list: impl Fn(&Self) -> Result<T>) -> Result<T> {
        let mut earlier = list(self)?;
        for _ in 1..MAX_PASSES {
            let later = list(self)?;
            if later == earlier {
                return Ok(later);
            }
            earlier = later;
        }
        Err(self.unstable("entries created, deleted or renamed"))
    }

    fn unstable(&self, changes: &str) -> Error {
        Error::LogChanged {
            file: self.path().to_owned(),
            expected: "two listings of the directory that agree".to_owned(),
            found: format!("{changes} during each of {MAX_PASSES}"),
        }
    }

    /// The base offsets of the live segments, ascending, as complete as [`Directory::segment_files`].
    ///
    /// # Errors
    /// As [`Directory::segment_files`].
    pub fn segment_bases(&self) -> Result<Vec<i64>> {
        let mut bases: Vec<_> = bases(&self.segment_files()?).collect();
        bases.sort_unstable();
        Ok(bases)
    }

    fn list_segment_files(&self) -> Result<Vec<SegmentFile>> {
        let mut files: Vec<_> = self
            .entries()?
            .into_iter()
            .filter_map(|(name, file_type)| {
                SegmentFileName::parse(&name).map(|parsed| SegmentFile { name, parsed, file_type })
            })
            .collect();
        files.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        Ok(files)
    }
}

fn bases(files: &[SegmentFile]) -> impl Iterator<Item = i64> {
    files
        .iter()
        .filter(|file| file.is_live() && file.parsed.kind == FileKind::Log)
        .map(|file| file.parsed.base_offset)
}

fn first_base(files: &[SegmentFile]) -> Option<i64> {
    bases(files).min()
}

fn last_base(files: &[SegmentFile]) -> Option<i64> {
    bases(files).max()
}

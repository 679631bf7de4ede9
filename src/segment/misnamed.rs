//! A segment whose file has the name of another one: it was renamed, or copied under a second name.

use super::damage::Bounds;
use super::{LOOKUP_READ, Segment, Walk};
use crate::error::{Malformed, Result};
use crate::fs::names::{FileKind, segment_file};

/// The name that a misnamed file had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misnamed {
    /// The base offset of the first batch.
    pub(crate) first_offset: i64,
    pub(crate) malformed: Malformed,
}

impl Misnamed {
    /// What to do.
    pub(crate) fn advice(&self) -> String {
        let name = segment_file(self.first_offset, FileKind::Log);
        format!(
            "rename the .log to {name} and remove its indexes, which cordwood reindex writes again; if another segment has its \
             offsets, move it out of the partition instead"
        )
    }
}

impl Segment {
    /// Whether the batches are below the base offset in the name of the file, and their checksums are right:
    /// of the first two, or of the only one, unless a single flipped bit of its base offset explains it.
    ///
    /// # Errors
    /// Those of reading the `.log`.
    pub(crate) fn misnamed(&self) -> Result<Option<Misnamed>> {
        let base_offset = self.base_offset();
        let bounds = Bounds { base_offset: 0, upper: base_offset, end: self.file_size()? };
        let mut walk = Walk::new(self.log_file(LOOKUP_READ)?, bounds, 0, None);
        let Some(first) = walk.valid_at(0, 0, base_offset)? else { return Ok(None) };
        let first_offset = first.header.base_offset;
        let is_misnamed = if first.end() == bounds.end {
            !((first_offset ^ base_offset).cast_unsigned()).is_power_of_two()
        } else {
            walk.valid_at(first.end(), first.header.last_offset + 1, base_offset)?.is_some()
        };
        let malformed = Malformed::new(
            format!("batches from offset {base_offset} on, by the name of the file"),
            format!("offsets from {first_offset} on, in batches whose checksums are right"),
        );
        Ok(is_misnamed.then_some(Misnamed { first_offset, malformed }))
    }
}

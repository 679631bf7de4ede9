//! Segments that were being replaced, by compaction or by a split, when that was broken off. Kafka: `LogLoader`, passes 1 to
//! 3.
//!
//! A replacement is written under names that end in `.cleaned`, which are then renamed to `.swap`, the highest base offset
//! first. Once all of them are, it counts: the segments that it stands for are deleted, and the names lose `.swap`.
//!
//! ```text
//!   0.log 10.log   20.log.cleaned …       not committed: 0 and 10 count
//!   0.log.cleaned  16.log.swap    …       neither: a .swap above a .cleaned goes with it
//!   0.log.swap     16.log.swap    …       committed: what lies in its offsets does not count any more
//! ```

use std::ops::Range;

use crate::error::Result;
use crate::fs::SegmentFile;
use crate::fs::names::{FileKind, Stage};

/// What becomes of the files of a directory in which segments were being replaced. Empty where none were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Replacement {
    /// Files of a replacement that does not count, in an order in which they can be deleted: `.swap` before `.cleaned`, or
    /// a crash between the two would make those count.
    pub(crate) uncommitted: Vec<String>,
    /// Files of one that does: their names lose `.swap`.
    pub(crate) committed: Vec<SegmentFile>,
    /// The offsets of the committed `.log` files, exclusive end each.
    pub(crate) ranges: Vec<(i64, i64)>,
    /// Live files that it stands for: those with numbers in this range.
    replaced: Range<i64>,
}

impl Replacement {
    /// Decides by the names; `end_of` gives the offset after the last batch of a `.log`.
    ///
    /// Kafka keeps a live segment that begins below the replacement, even if it reaches into it. That is the segment of a
    /// split whose first batch lies above its base offset; here it is replaced, too.
    ///
    /// # Errors
    /// Those of `end_of`.
    pub(super) fn find(
        files: &[SegmentFile],
        mut end_of: impl FnMut(&SegmentFile) -> Result<i64>,
    ) -> Result<Self> {
        let of_stage = |stage| files.iter().filter(move |file| file.parsed.stage == stage);
        let cleaned = of_stage(Stage::Cleaned).map(|file| file.parsed.base_offset).min();
        let counts = |file: &&SegmentFile| cleaned.is_none_or(|cleaned| file.parsed.base_offset < cleaned);
        let (committed, poisoned): (Vec<_>, Vec<_>) = of_stage(Stage::Swap).partition(counts);
        let mut found = Self::default();
        found
            .uncommitted
            .extend(poisoned.into_iter().chain(of_stage(Stage::Cleaned)).map(|file| file.name.clone()));
        for file in committed.iter().filter(|file| file.parsed.kind == FileKind::Log) {
            found.ranges.push((file.parsed.base_offset, end_of(file)?));
        }
        found.committed = committed.into_iter().cloned().collect();
        let low = found.ranges.iter().map(|(base, _)| *base).min();
        let high = found.ranges.iter().map(|(_, end)| *end).max();
        let (Some(low), Some(high)) = (low, high) else { return Ok(found) };
        let below = of_stage(Stage::Live)
            .filter(|file| file.parsed.kind == FileKind::Log && file.parsed.base_offset < low)
            .max_by_key(|file| file.parsed.base_offset);
        let first = match below {
            Some(file) if end_of(file)? > low => file.parsed.base_offset,
            _ => low,
        };
        found.replaced = first..high;
        Ok(found)
    }

    /// Whether a live file does not count any more.
    pub(crate) fn replaces(&self, file: &SegmentFile) -> bool {
        file.parsed.stage == Stage::Live && self.replaced.contains(&file.parsed.base_offset)
    }

    /// Whether there is nothing to be done.
    pub(crate) fn is_empty(&self) -> bool {
        self.uncommitted.is_empty() && self.committed.is_empty()
    }
}

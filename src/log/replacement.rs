//! Replacements of segments, by compaction or by a split, that were interrupted. Kafka: `LogLoader`, passes 1
//! to 3.
//!
//! A replacement is written under names that end in `.cleaned`, which are then renamed to `.swap`, the
//! highest base offset first. Once all of them are renamed, the replacement is committed: the segments that
//! it replaces are deleted, and its files lose the suffix `.swap`.
//!
//! ```text
//!   0.log 10.log   20.log.cleaned …       not committed: the log is 0 and 10
//!   0.log.cleaned  16.log.swap    …       not committed: a .cleaned has a lower base offset
//!   0.log.swap     16.log.swap    …       committed: segments in its offsets are replaced
//! ```

use std::ops::Range;

use crate::error::{Malformed, Result};
use crate::fs::names::{FileKind, Stage, segment_file};
use crate::fs::{Directory, SegmentFile};

/// What to do with the files of a directory in which segments were being replaced. Empty if none were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Replacement {
    /// Files of an uncommitted replacement, in an order in which they can be deleted: `.swap` before
    /// `.cleaned`, or a crash in between would commit the `.swap` files.
    pub(crate) uncommitted: Vec<String>,
    /// Files of a committed replacement, which lose the suffix `.swap`.
    pub(crate) committed: Vec<SegmentFile>,
    /// The offset ranges of the committed `.log` files; ends are exclusive.
    pub(crate) ranges: Vec<(i64, i64)>,
    /// The base offsets of the live files that it replaces.
    replaced: Range<i64>,
    /// The last live segment that it replaces, if that ends above the replacement: compaction may have
    /// removed its last records, or a bit of the replacement's last batch is flipped.
    pub(crate) partly_replaced: Option<i64>,
    /// A committed file that contradicts the segments it would replace, and how.
    contradiction: Option<(String, Malformed)>,
}

impl Replacement {
    /// Decides by the names; `offsets_of` returns the base offset of the first batch of a `.log` and the
    /// offset after its last one.
    ///
    /// A committed file contradicts segments that end below it, unless it has all of their batches: no
    /// checksum covers a base offset. Segments without a batch contradict nothing.
    ///
    /// Kafka keeps a live segment whose base offset is below the replacement's. But if all its batches are
    /// within the replacement's offsets, it is the source of a split, because a part's base offset is
    /// that of its first batch. It is replaced, too.
    ///
    /// `batches_of` returns the offsets of the batches of a `.log`, those of adjacent ones as one range.
    /// Errors of both.
    pub(super) fn find(
        files: &[SegmentFile],
        mut offsets_of: impl FnMut(&SegmentFile) -> Result<Range<i64>>,
        mut batches_of: impl FnMut(&SegmentFile) -> Result<Vec<Range<i64>>>,
    ) -> Result<Self> {
        let of_stage = |stage| files.iter().filter(move |file| file.parsed.stage == stage);
        let cleaned = of_stage(Stage::Cleaned).map(|file| file.parsed.base_offset).min();
        let is_committed =
            |file: &&SegmentFile| cleaned.is_none_or(|cleaned| file.parsed.base_offset < cleaned);
        let (committed, uncommitted): (Vec<_>, Vec<_>) = of_stage(Stage::Swap).partition(is_committed);
        let mut found = Self::default();
        found
            .uncommitted
            .extend(uncommitted.into_iter().chain(of_stage(Stage::Cleaned)).map(|file| file.name.clone()));
        for file in committed.iter().filter(|file| file.parsed.kind == FileKind::Log) {
            found.ranges.push((file.parsed.base_offset, offsets_of(file)?.end));
        }
        found.committed = committed.into_iter().cloned().collect();
        let low = found.ranges.iter().map(|(base, _)| *base).min();
        let high = found.ranges.iter().map(|(_, end)| *end).max();
        let (Some(low), Some(high)) = (low, high) else { return Ok(found) };
        let live = || of_stage(Stage::Live).filter(|file| file.parsed.kind == FileKind::Log);
        let below =
            live().filter(|file| file.parsed.base_offset < low).max_by_key(|file| file.parsed.base_offset);
        let first = match below {
            Some(file) => {
                let offsets = offsets_of(file)?;
                let is_source = !offsets.is_empty() && offsets.start >= low;
                if is_source { file.parsed.base_offset } else { low }
            }
            None => low,
        };
        found.replaced = first..high;
        for file in live() {
            if found.ranges.contains(&(file.parsed.base_offset, file.parsed.base_offset))
                && !offsets_of(file)?.is_empty()
            {
                found.contradict(file, "a batch", "none");
            }
        }
        // some of the originals may be renamed already
        let originals =
            live().chain(of_stage(Stage::Deleted).filter(|file| file.parsed.kind == FileKind::Log));
        let originals: Vec<_> =
            originals.filter(|file| found.replaced.contains(&file.parsed.base_offset)).collect();
        let has_next = live().any(|file| file.parsed.base_offset >= high);
        if let Some((last, end)) = found.compare_ends(originals.clone(), has_next, high, offsets_of)?
            && !found.has_batches_of(&originals, &mut batches_of)?
        {
            let (expected, covered) = (format!("offsets below {end}"), format!("offsets up to {}", high - 1));
            found.contradict(last, &expected, &covered);
        }
        Ok(found)
    }

    /// Whether its offsets include those of all batches of some segments.
    fn has_batches_of(
        &self,
        originals: &[&SegmentFile],
        batches_of: &mut impl FnMut(&SegmentFile) -> Result<Vec<Range<i64>>>,
    ) -> Result<bool> {
        let mut own: Vec<Range<i64>> = Vec::new();
        for file in self.committed.iter().filter(|file| file.parsed.kind == FileKind::Log) {
            own.extend(batches_of(file)?);
        }
        own.sort_by_key(|range| range.start);
        own.dedup_by(|next, range| {
            let is_adjacent = range.end == next.start;
            if is_adjacent {
                range.end = next.end;
            }
            is_adjacent
        });
        for file in originals {
            for range in batches_of(file)? {
                let at = own.partition_point(|own| own.start <= range.start);
                if at.checked_sub(1).and_then(|at| own.get(at)).is_none_or(|own| own.end < range.end) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Compares the end of the last original that has a batch with that of the replacement, `high`, and
    /// returns it with its end if that is lower. An empty one contradicts nothing. It limits the
    /// replacement by the segment after it, `has_next`; without that, those before it do.
    fn compare_ends<'a>(
        &mut self,
        mut originals: Vec<&'a SegmentFile>,
        has_next: bool,
        high: i64,
        mut offsets_of: impl FnMut(&SegmentFile) -> Result<Range<i64>>,
    ) -> Result<Option<(&'a SegmentFile, i64)>> {
        originals.sort_by_key(|file| file.parsed.base_offset);
        let mut offsets = None;
        while let Some(last) = originals.pop() {
            let own = offsets_of(last)?;
            if !own.is_empty() {
                offsets = Some((last, own.end));
            }
            if offsets.is_some() || has_next {
                break;
            }
        }
        if let Some((last, end)) = offsets {
            if end < high {
                return Ok(Some((last, end)));
            }
            if high < end && last.parsed.stage == Stage::Live {
                self.partly_replaced = Some(last.parsed.base_offset);
            }
        }
        Ok(None)
    }

    /// Records that the replacement contradicts a segment that it would replace. It then replaces nothing.
    fn contradict(&mut self, replaced: &SegmentFile, expected: &str, found: &str) {
        let highest = self.committed.iter().rfind(|file| file.parsed.kind == FileKind::Log);
        let name = highest.map(|file| file.name.clone()).unwrap_or_default();
        let expected = format!(
            "{expected}, as in {}, which this file would replace (move one of the two out of the directory)",
            replaced.name
        );
        self.contradiction = Some((name, Malformed::new(expected, found)));
        self.replaced = 0..0;
    }

    /// Fails if a committed file contradicts a segment it would replace.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt).
    pub(crate) fn ensure_consistent(&self, directory: &Directory) -> Result<()> {
        match &self.contradiction {
            Some((name, malformed)) => Err(malformed.clone().at(directory.path_of(name), 0, None)),
            None => Ok(()),
        }
    }

    /// Whether a live file is replaced.
    pub(crate) fn replaces(&self, file: &SegmentFile) -> bool {
        file.parsed.stage == Stage::Live && self.replaced.contains(&file.parsed.base_offset)
    }

    /// The present name of a file of a segment, which may be missing; `None` if there is no such file after
    /// the replacement is finished.
    pub(crate) fn present_name(&self, base_offset: i64, kind: FileKind) -> Option<String> {
        let mut committed = self.committed.iter();
        match committed.find(|file| (file.parsed.base_offset, file.parsed.kind) == (base_offset, kind)) {
            Some(file) => Some(file.name.clone()),
            None => (!self.replaced.contains(&base_offset)).then(|| segment_file(base_offset, kind)),
        }
    }
}

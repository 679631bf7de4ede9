//! Puts new segments in the place of existing ones, by compaction and by a split. Kafka:
//! `LocalLog.replaceSegments`.
//!
//! The new segments are complete and durable under names that end in `.cleaned`. After a crash at any point,
//! the next open by a writer or a broker finishes or undoes the replacement (`crate::log::Replacement`).

use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::fs::names::{FileKind, SegmentFileName, Stage};
use crate::segment::remove_segment;
use crate::writer::partition::Partition;

/// The files of a new segment, in renaming order.
const FILES: [FileKind; 4] =
    [FileKind::Log, FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex];

/// The name of a file.
pub(crate) fn name(base_offset: i64, kind: FileKind, stage: Stage) -> String {
    SegmentFileName { base_offset, kind, stage }.to_string()
}

/// Removes the `.cleaned` files of a segment.
pub(crate) fn remove(directory: &Directory, base_offset: i64) -> Result<()> {
    FILES.into_iter().try_for_each(|kind| directory.remove(&name(base_offset, kind, Stage::Cleaned)))
}

/// Replaces segments. `new`: the base offsets of the new ones, ascending; at least one has a batch.
/// `replaced`: the base offsets of the existing ones, ascending.
///
/// There is no other `.cleaned` file ([`remove_cleaned`]): with one at a lower base offset, the new segments
/// would not count as committed.
pub(super) fn commit(directory: &Directory, new: &[i64], replaced: &[i64]) -> Result<()> {
    for base_offset in new.iter().rev() {
        rename(directory, *base_offset, &FILES, Stage::Cleaned, Stage::Swap)?;
        // durable one by one: a .swap is committed as soon as no .cleaned has a lower base offset
        directory.sync()?;
    }
    remove_ascending(directory, replaced)?;
    for base_offset in new {
        let [log, indexes @ ..] = &FILES;
        for kinds in [std::slice::from_ref(log), indexes] {
            rename(directory, *base_offset, kinds, Stage::Swap, Stage::Live)?;
            // a live segment between two `.swap` segments would be treated as replaced, and so would an index
            // without its `.log`
            directory.sync()?;
        }
    }
    Ok(())
}

/// Removes the `.cleaned` files of an earlier attempt, durably. Called once before new segments are written.
pub(crate) fn remove_cleaned(directory: &Directory) -> Result<()> {
    let mut is_changed = false;
    for (name, _) in directory.entries()? {
        if SegmentFileName::parse(&name).is_some_and(|parsed| parsed.stage == Stage::Cleaned) {
            directory.remove(&name)?;
            is_changed = true;
        }
    }
    if is_changed { directory.sync() } else { Ok(()) }
}

/// Replaces segments with an empty one, whose base offset is that of the first. A `.swap` without a batch
/// would not show which segments it replaces.
fn commit_empty(directory: &Directory, replaced: &[i64]) -> Result<()> {
    let Some((first, rest)) = replaced.split_first() else { return Ok(()) };
    let [log, indexes @ ..] = &FILES;
    // a missing index is built again, and that of other batches is not noticed
    indexes.iter().try_for_each(|kind| directory.remove(&name(*first, *kind, Stage::Live)))?;
    directory.sync()?;
    for kinds in [std::slice::from_ref(log), indexes] {
        rename(directory, *first, kinds, Stage::Cleaned, Stage::Live)?;
        directory.sync()?;
    }
    remove_ascending(directory, rest)
}

/// Removes segments. A later one is removed after the earlier ones: it may hold the tombstone of a record in
/// them.
fn remove_ascending(directory: &Directory, bases: &[i64]) -> Result<()> {
    bases.iter().try_for_each(|base_offset| {
        remove_segment(directory, *base_offset)?;
        directory.sync()
    })
}

fn rename(directory: &Directory, base_offset: i64, kinds: &[FileKind], from: Stage, to: Stage) -> Result<()> {
    for kind in kinds {
        let name_now = name(base_offset, *kind, from);
        // without aborted transactions there is no such file
        if *kind != FileKind::TransactionIndex || directory.identity_of(&name_now)?.is_some() {
            directory.rename(&name_now, &name(base_offset, *kind, to))?;
        }
    }
    Ok(())
}

impl Partition {
    /// Replaces sealed segments that follow one another with one of the same base offset as the first of
    /// them, whose `.cleaned` files are complete. `is_empty`: whether it has no batch.
    ///
    /// *Source*: `UnifiedLog.replaceSegments`.
    pub(super) fn replace_segments(&mut self, replaced: &[i64], is_empty: bool) -> Result<()> {
        let Some((first, rest)) = replaced.split_first() else { return Ok(()) };
        let present: Vec<_> = self.sealed.range(first..).take(replaced.len()).copied().collect();
        if present != replaced {
            let found = format!("{present:?}");
            return Err(Error::config("segments", format!("sealed segments at {replaced:?}"), found));
        }
        // meanwhile readers in this process read what the directory holds
        self.live.withdraw();
        if is_empty {
            commit_empty(&self.directory, replaced)?;
        } else {
            commit(&self.directory, &[*first], replaced)?;
        }
        for base_offset in rest {
            self.sealed.remove(base_offset);
            self.producers.remove_snapshot(&self.directory, *base_offset)?;
        }
        self.publish_segments();
        Ok(())
    }

    /// Replaces a sealed segment with its parts, whose `.cleaned` files are complete. `parts`: their base
    /// offsets, ascending.
    ///
    /// *Source*: `UnifiedLog.splitOverflowedSegment`.
    pub(super) fn replace_with_parts(&mut self, base_offset: i64, parts: &[i64]) -> Result<()> {
        if !self.sealed.contains(&base_offset) {
            let found = format!("{:?}", self.sealed);
            return Err(Error::config("segments", format!("a sealed segment at {base_offset}"), found));
        }
        self.live.withdraw();
        commit(&self.directory, parts, &[base_offset])?;
        self.sealed.remove(&base_offset);
        self.sealed.extend(parts);
        if !parts.contains(&base_offset) {
            self.producers.remove_snapshot(&self.directory, base_offset)?;
        }
        self.publish_segments();
        Ok(())
    }
}

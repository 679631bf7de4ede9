//! What `.deleted` files have that the log does not have, and how their records can be read.

use std::fmt;
use std::ops::Range;

use super::finding::Finding;
use super::rule::Remedy;
use crate::error::Result;
use crate::fs::SegmentFile;
use crate::fs::names::{FileKind, Stage};
use crate::log::{LiveOffsets, Log, OffsetRun};
use crate::segment::Segment;
use crate::state::data_directory::DataDirectory;
use crate::types::offsets_in_words;
use crate::writer::OnlyCopies;

/// How the records of a `.deleted` file can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Advice {
    /// It has all offsets of the live segment of its name, which is damaged.
    Replace,
    Rename,
    /// A live segment has or may have had its name or its offsets: a rename would replace that one, let
    /// offsets go back, or bring back what a compaction removed. Also for a file that no live segment
    /// follows: a truncation leaves this, too, and the log may have other records at these offsets now, or
    /// get them.
    Copy,
}

impl fmt::Display for Advice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Replace => {
                "the segment of this name is damaged, and this file has all of its offsets: to restore it, move the files of the \
                 segment out of the directory, then remove .deleted from the names of these"
            }
            Self::Rename => "without .deleted it is a segment again",
            Self::Copy => {
                "to read its records, copy it to a directory of its own, without .deleted; it may contradict the segments of \
                 this log"
            }
        })
    }
}

const OR_REMOVE: &str = "if its records are not needed, remove it, because a writer keeps it";

/// The `.log` files that are marked as deleted and may have records that no undamaged live batch has, each
/// with that in words.
pub(super) fn only_copies(log: &Log) -> Result<Vec<(String, String)>> {
    let deleted = log.deleted_files()?;
    if deleted.is_empty() {
        return Ok(Vec::new());
    }
    // a writer and a repair keep the files of an unfinished deletion, too
    let start = log.unfinished_deletion(DataDirectory::with_lines_of(log.directory())?.as_ref())?;
    let needed = start.unwrap_or(log.log_start_offset())..i64::MAX;
    let (kept, _) = OnlyCopies::in_log(log)?.split(deleted, &needed)?;
    let mut found = Vec::new();
    for file in kept.into_iter().filter(|file| file.parsed.kind == FileKind::Log) {
        let offsets = log.offsets_of_file(&file, true)?;
        let advice = advice(log, &file, offsets.as_ref())?;
        let evidence = match offsets {
            Some(offsets) => {
                let offsets = offsets_in_words(offsets.start, Some(offsets.end));
                format!(
                    "it has {offsets}, not all of which are in undamaged batches of a segment: {advice}; {OR_REMOVE}"
                )
            }
            None => {
                format!(
                    "it is damaged or cannot be read, and may have records that are in no segment: {advice}; {OR_REMOVE}"
                )
            }
        };
        found.push((file.name, evidence));
    }
    Ok(found)
}

/// Whether each `.deleted` file with batches can be a segment again.
pub(super) fn can_be_renamed(log: &Log) -> Result<bool> {
    for file in log.deleted_files()?.iter().filter(|file| file.parsed.kind == FileKind::Log) {
        if advice(log, file, log.offsets_of_file(file, true)?.as_ref())? != Advice::Rename {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A finding about missing offsets, with the `.deleted` files that have whole batches with some of them.
pub(super) fn beside(mut finding: Finding, log: &Log, missing: &Range<i64>) -> Result<Finding> {
    for (file, offsets) in with_offsets(log, missing)? {
        let advice = advice(log, &file, Some(&offsets))?;
        let offsets = offsets_in_words(offsets.start, Some(offsets.end));
        finding = finding.because(format!("{} has {offsets}: {advice}", file.name));
    }
    Ok(finding)
}

/// To rename the `.deleted` files that have missing offsets, if all of them can be segments again.
pub(super) fn rename_into(log: &Log, missing: &Range<i64>) -> Result<Option<Remedy>> {
    let mut next = missing.start;
    let mut names = Vec::new();
    for (file, offsets) in with_offsets(log, missing)? {
        if advice(log, &file, Some(&offsets))? != Advice::Rename {
            return Ok(None);
        }
        if offsets.contains(&next) {
            next = offsets.end;
        }
        names.push(file.name);
    }
    let Some((first, others)) = names.split_first() else { return Ok(None) };
    let names = others.iter().fold(first.clone(), |names, name| format!("{names}, {name}"));
    let rest = if next < missing.end { ", and restore the other offsets from another replica" } else { "" };
    Ok(Some(Remedy::Manual(
        format!(
            "remove the suffix .deleted from the names of {names} and the indexes of the same name{rest}"
        )
        .into(),
    )))
}

/// The `.deleted` files that have some of these offsets, by their base offsets, with their offsets.
fn with_offsets(log: &Log, wanted: &Range<i64>) -> Result<Vec<(SegmentFile, Range<i64>)>> {
    let mut found = Vec::new();
    for file in log.deleted_files()?.into_iter().filter(|file| file.parsed.kind == FileKind::Log) {
        let Some(offsets) = log.offsets_of_file(&file, true)? else { continue };
        if offsets.start.max(wanted.start) < offsets.end.min(wanted.end) {
            found.push((file, offsets));
        }
    }
    found.sort_by_key(|(_, offsets)| offsets.start);
    Ok(found)
}

/// `offsets`: those of the file; `None` if they are not known.
fn advice(log: &Log, file: &SegmentFile, offsets: Option<&Range<i64>>) -> Result<Advice> {
    let Some(offsets) = offsets else { return Ok(Advice::Copy) };
    let live_name = file.name.strip_suffix(Stage::Deleted.suffix()).unwrap_or(&file.name);
    if log.directory().identity_of(live_name)?.is_some() {
        return Ok(if can_replace(log, file)? { Advice::Replace } else { Advice::Copy });
    }
    if log.segments().last().is_none_or(|last| last.base_offset() < offsets.end) {
        return Ok(Advice::Copy);
    }
    let start = file.parsed.base_offset.min(offsets.start);
    let is_near = |segment: &&Segment| segment.base_offset() < offsets.end && start < segment.upper();
    for segment in log.segments().iter().map(AsRef::as_ref).filter(is_near) {
        if start < end_of(log, segment)? {
            return Ok(Advice::Copy);
        }
    }
    Ok(Advice::Rename)
}

/// Whether a file has all records of the live segment of its name, which is damaged.
fn can_replace(log: &Log, file: &SegmentFile) -> Result<bool> {
    let base_offset = file.parsed.base_offset;
    let segment = log.segments().floor(base_offset).filter(|floor| floor.base_offset() == base_offset);
    let (Some(segment), Some(runs)) = (segment, log.runs_of_file(file, true)?) else { return Ok(false) };
    let live = LiveOffsets::of(segment, true)?;
    let has = |live: &OffsetRun| {
        let is_around = |run: &OffsetRun| {
            run.epoch == live.epoch
                && run.offsets.start <= live.offsets.start
                && live.offsets.end <= run.offsets.end
        };
        runs.iter().any(is_around)
    };
    let ends = segment.upper().min(log.log_end_offset()?)..=segment.upper();
    Ok(!live.is_whole
        && live.runs.iter().all(has)
        && runs.last().is_some_and(|last| ends.contains(&last.offsets.end)))
}

/// The offset below which a segment may have any offset, or had it. The end of a damaged one is not known. In
/// a compacted log, the offsets up to the next segment may be of records that newer ones replace: a rename
/// would bring them back, also those of deleted keys.
fn end_of(log: &Log, segment: &Segment) -> Result<i64> {
    let live = LiveOffsets::of(segment, false)?;
    if !live.is_whole || !segment.is_last() && log.is_compacted()? {
        return Ok(segment.upper());
    }
    Ok(live.runs.last().map_or(segment.base_offset(), |run| run.offsets.end))
}

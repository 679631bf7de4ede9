//! Decides which files of a directory belong to the log, as Kafka does, but without changing any. Kafka:
//! `LogLoader`, passes 1 to 4.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::replacement::Replacement;
use crate::error::Result;
use crate::fs::names::{FileKind, Stage, segment_file};
use crate::fs::{Directory, FileType, SegmentFile};
use crate::segment::{Batch, OpenFiles, SCAN_READ, Segment, SegmentFiles, Step, Warnings, with_descriptors};
use crate::state::kept_files::KeptFiles;

/// The contents of the directory: the files of each segment by base offset, and warnings about ignored files.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) segments: BTreeMap<i64, SegmentFiles>,
    pub(super) warnings: Vec<String>,
}

/// The segments of a writer in this process, without a listing.
pub(super) fn listing_of_writer(bases: &[i64]) -> Listing {
    let files = |base_offset| {
        let name = |kind| segment_file(base_offset, kind);
        SegmentFiles {
            log: name(FileKind::Log),
            offset_index: Some(name(FileKind::OffsetIndex)),
            time_index: Some(name(FileKind::TimeIndex)),
            // a missing file is treated as no index when it is opened
            transaction_index: Some(name(FileKind::TransactionIndex)),
        }
    };
    Listing { segments: bases.iter().map(|base| (*base, files(*base))).collect(), warnings: Vec::new() }
}

/// Lists a partition directory.
///
/// A `.swap` file is a committed replacement: Kafka would delete the segments in its range and rename it, so
/// it is read instead of them. It is not committed if a `.cleaned` file with its base offset or a lower one
/// exists: the replacement was then still in progress.
pub(super) fn list(
    open_files: &Arc<OpenFiles>,
    truncations: Option<u64>,
    warnings: &Arc<Warnings>,
) -> Result<Listing> {
    let mut listing = Listing::default();
    // Kafka considers only files. A symbolic link is included, so that opening it returns the error that it
    // is not followed
    let is_file = |file: &SegmentFile| {
        matches!(file.file_type, FileType::RegularFile | FileType::Symlink | FileType::Unknown)
    };
    let (files, others): (Vec<_>, Vec<_>) =
        with_descriptors(|| open_files.directory.segment_files())?.into_iter().partition(is_file);
    for SegmentFile { name, file_type, .. } in others {
        let path = open_files.directory.path_of(&name);
        listing.warnings.push(format!("{}: not a file but a {file_type:?}; ignored", path.display()));
    }
    let replacement = replacement_in(open_files, &files, truncations, warnings)?;
    for (file, (base_offset, end_offset)) in
        replacement.committed.iter().filter(|file| file.parsed.kind == FileKind::Log).zip(&replacement.ranges)
    {
        if open_files.directory.is_locked() {
            // the writer or the broker is about to rename it
            continue;
        }
        listing.warnings.push(format!(
            "{}: a committed replacement that was not renamed yet, read in place of offsets {base_offset} to {}",
            open_files.directory.path_of(&file.name).display(),
            end_offset - 1
        ));
    }
    let live = files.iter().filter(|file| file.parsed.stage == Stage::Live && !replacement.replaces(file));
    // if two files have one kind and base offset, the later one is used
    let mut effective: Vec<_> = live.chain(&replacement.committed).collect();
    if let Err(contradiction) = replacement.ensure_consistent(&open_files.directory) {
        listing.warnings.push(format!("{contradiction}; the segments that it would replace are read"));
        effective.reverse();
    }
    for SegmentFile { name, parsed, .. } in effective {
        let files = listing.segments.entry(parsed.base_offset).or_default();
        match parsed.kind {
            FileKind::Log => files.log.clone_from(name),
            FileKind::OffsetIndex => files.offset_index = Some(name.clone()),
            FileKind::TimeIndex => files.time_index = Some(name.clone()),
            FileKind::TransactionIndex => files.transaction_index = Some(name.clone()),
            FileKind::Snapshot => {}
        }
    }
    // indexes and snapshots without a log: Kafka deletes them, this leaves them
    listing.segments.retain(|_, files| !files.log.is_empty());
    Ok(listing)
}

/// A `.log` that is not live, as a segment: bytes after its last whole batch are damage, as in each segment
/// but the last.
pub(super) fn segment_of_file(
    open_files: &Arc<OpenFiles>,
    file: &SegmentFile,
    warnings: &Arc<Warnings>,
) -> Result<Segment> {
    let names = SegmentFiles { log: file.name.clone(), ..SegmentFiles::default() };
    let (upper, truncations) = (Some(i64::MAX - 1), open_files.truncations()?);
    Ok(Segment::new(file.parsed.base_offset, upper, names, open_files, truncations, warnings))
}

/// The state of a segment replacement, from these files.
pub(super) fn replacement_in(
    open_files: &Arc<OpenFiles>,
    files: &[SegmentFile],
    truncations: Option<u64>,
    warnings: &Arc<Warnings>,
) -> Result<Replacement> {
    let segment_of = |file: &SegmentFile| {
        let names = SegmentFiles { log: file.name.clone(), ..SegmentFiles::default() };
        Segment::new(file.parsed.base_offset, None, names, open_files, truncations, warnings)
    };
    let offsets_of = |file: &SegmentFile| {
        let segment = segment_of(file);
        let end = segment.end_offset()?;
        Ok(match segment.walk(-1, SCAN_READ)?.step()? {
            Step::Batch(first) => first.header.base_offset..end,
            Step::End | Step::Damage(_) => end..end,
        })
    };
    let files = without_kept(&open_files.directory, files)?;
    Replacement::find(&files, offsets_of, |file| batches_of(&segment_of(file)))
}

/// The files without `.deleted` ones that a recovery has kept, which a replacement after it did not rename.
fn without_kept<'a>(directory: &Directory, files: &'a [SegmentFile]) -> Result<Cow<'a, [SegmentFile]>> {
    let has = |stage| files.iter().any(|file| file.parsed.stage == stage);
    if !(has(Stage::Swap) && has(Stage::Deleted)) {
        return Ok(Cow::Borrowed(files));
    }
    let kept = KeptFiles::read(directory)?;
    let mut others = Vec::new();
    for file in files {
        let size = match file.parsed.stage {
            Stage::Deleted => directory.identity_of(&file.name)?.map(|now| now.size),
            _ => None,
        };
        if size.is_none_or(|size| !kept.may_have(&file.name, size)) {
            others.push(file.clone());
        }
    }
    Ok(Cow::Owned(others))
}

/// The offsets of the batches of a `.log` that have the right checksums, those of adjacent ones as one range.
fn batches_of(segment: &Segment) -> Result<Vec<Range<i64>>> {
    let mut walk = segment.walk(-1, SCAN_READ)?;
    let mut ranges: Vec<Range<i64>> = Vec::new();
    loop {
        match walk.step_through()? {
            Step::Batch(Batch { header, .. }) => match ranges.last_mut() {
                Some(last) if last.end == header.base_offset => last.end = header.last_offset + 1,
                _ => ranges.push(header.base_offset..header.last_offset + 1),
            },
            Step::End => return Ok(ranges),
            Step::Damage(damage) => {
                segment.resume(&mut walk, &damage)?;
            }
        }
    }
}

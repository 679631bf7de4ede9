//! Which files of a directory make up the log, as Kafka would decide it, but without touching one. Kafka: `LogLoader`,
//! passes 1 to 4.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Result;
use crate::fs::names::{FileKind, Stage, segment_file};
use crate::fs::{FileType, SegmentFile};
use crate::segment::{OpenFiles, Segment, SegmentFiles, Warnings};

/// What lies in the directory: the files of each segment by base offset, and words on what was left aside.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) segments: BTreeMap<i64, SegmentFiles>,
    pub(super) warnings: Vec<String>,
}

/// The segments that a writer in this process has.
pub(super) fn of_writer(bases: &[i64]) -> Listing {
    let files = |base_offset| {
        let name = |kind| segment_file(base_offset, kind);
        SegmentFiles {
            log: name(FileKind::Log),
            offset_index: Some(name(FileKind::OffsetIndex)),
            time_index: Some(name(FileKind::TimeIndex)),
            // a missing one counts as none when it is opened
            transaction_index: Some(name(FileKind::TransactionIndex)),
        }
    };
    Listing { segments: bases.iter().map(|base| (*base, files(*base))).collect(), warnings: Vec::new() }
}

/// Lists a partition directory.
///
/// A `.swap` is a replacement that was committed: Kafka would delete what lies in its range and rename it, so it is read
/// in its place. It is not one where a `.cleaned` of its base or a lower one lies there too: then the replacement was
/// still being made.
pub(super) fn list(
    open_files: &Arc<OpenFiles>,
    truncations: Option<u64>,
    warnings: &Arc<Warnings>,
) -> Result<Listing> {
    let mut listing = Listing::default();
    let mut names = Vec::new();
    for SegmentFile { name, parsed, file_type } in open_files.directory.segment_files()? {
        // Kafka looks at files only. A symbolic link is not passed over: opening it says why it is not followed
        if matches!(file_type, FileType::RegularFile | FileType::Symlink | FileType::Unknown) {
            names.push((name, parsed));
        } else {
            let path = open_files.directory.path_of(&name);
            listing.warnings.push(format!("{}: not a file but a {file_type:?}; ignored", path.display()));
        }
    }
    let of_stage = |stage| names.iter().filter(move |(_, parsed)| parsed.stage == stage);
    let uncommitted =
        of_stage(Stage::Cleaned).map(|(_, parsed)| parsed.base_offset).min().unwrap_or(i64::MAX);
    let swapped = || of_stage(Stage::Swap).filter(|(_, parsed)| parsed.base_offset < uncommitted);

    let mut replaced: Option<(i64, i64)> = None;
    for (name, parsed) in swapped().filter(|(_, parsed)| parsed.kind == FileKind::Log) {
        let files = SegmentFiles { log: name.clone(), ..SegmentFiles::default() };
        let segment = Segment::new(parsed.base_offset, None, files, open_files, truncations, warnings);
        let end_offset = segment.end_offset()?;
        let (low, high) = replaced.unwrap_or((parsed.base_offset, end_offset));
        replaced = Some((low.min(parsed.base_offset), high.max(end_offset)));
        listing.warnings.push(format!(
            "{}: a committed replacement that was not renamed yet, read in place of offsets {} to {}",
            open_files.directory.path_of(name).display(),
            parsed.base_offset,
            end_offset - 1
        ));
    }
    let is_replaced = |base| replaced.is_some_and(|(low, high)| (low..high).contains(&base));
    let live = of_stage(Stage::Live).filter(|(_, parsed)| !is_replaced(parsed.base_offset));
    for (name, parsed) in live.chain(swapped()) {
        let files = listing.segments.entry(parsed.base_offset).or_default();
        match parsed.kind {
            FileKind::Log => files.log.clone_from(name),
            FileKind::OffsetIndex => files.offset_index = Some(name.clone()),
            FileKind::TimeIndex => files.time_index = Some(name.clone()),
            FileKind::TransactionIndex => files.transaction_index = Some(name.clone()),
            FileKind::Snapshot => {}
        }
    }
    // indexes and snapshots without a log: Kafka deletes them, here they are left alone
    listing.segments.retain(|_, files| !files.log.is_empty());
    Ok(listing)
}

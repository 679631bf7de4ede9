//! Splits a segment whose offsets are too large, relative to its base offset, for its indexes. Kafka:
//! `UnifiedLog.splitOverflowedSegment`, `LocalLog.replaceSegments`.

use crate::error::Result;
use crate::fs::names::{FileKind, SegmentFileName, Stage, segment_file};
use crate::fs::{Directory, SystemFile};
use crate::segment::{Part, remove_segment};

/// The number of bytes copied at a time.
const CHUNK: u64 = 1 << 20;

/// Replaces a segment with its parts.
///
/// The parts are written and synced under names that end in `.cleaned`; these are renamed to `.swap` in descending order, which
/// commits the split. Then the segment is deleted, and the parts are renamed to their live names. After a crash at any point, the
/// next open by a writer or a broker finishes or undoes the split.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io), also if the disk has no space for a second copy of the segment, which is then unchanged.
pub(super) fn split(directory: &Directory, base_offset: i64, parts: &[Part]) -> Result<()> {
    let source = directory.open_file(&segment_file(base_offset, FileKind::Log))?;
    let written =
        parts.iter().try_for_each(|part| write(directory, &source, part)).and_then(|()| directory.sync());
    if let Err(error) = written {
        // uncommitted: the next open deletes what cannot be deleted now
        for part in parts {
            for kind in FILES {
                let _ = directory.remove(&name(part.base_offset, kind, Stage::Cleaned));
            }
        }
        return Err(error);
    }
    for part in parts.iter().rev() {
        rename(directory, part.base_offset, Stage::Cleaned, Stage::Swap)?;
        // durable one by one: a .swap is committed as soon as no .cleaned has a lower base offset
        directory.sync()?;
    }
    remove_segment(directory, base_offset)?;
    directory.sync()?;
    for part in parts {
        rename(directory, part.base_offset, Stage::Swap, Stage::Live)?;
        // a live segment between two `.swap` segments would be treated as replaced
        directory.sync()?;
    }
    Ok(())
}

/// In renaming order: an index without its `.log` is ignored.
const FILES: [FileKind; 3] = [FileKind::Log, FileKind::OffsetIndex, FileKind::TimeIndex];

fn name(base_offset: i64, kind: FileKind, stage: Stage) -> String {
    SegmentFileName { base_offset, kind, stage }.to_string()
}

fn rename(directory: &Directory, base_offset: i64, from: Stage, to: Stage) -> Result<()> {
    FILES
        .iter()
        .try_for_each(|kind| directory.rename(&name(base_offset, *kind, from), &name(base_offset, *kind, to)))
}

fn write(directory: &Directory, source: &SystemFile, part: &Part) -> Result<()> {
    let cleaned = |kind| name(part.base_offset, kind, Stage::Cleaned);
    for kind in FILES {
        // a file of an earlier attempt
        directory.remove(&cleaned(kind))?;
    }
    let log = directory.create(&cleaned(FileKind::Log))?;
    let (mut chunk, mut done) = (Vec::new(), 0);
    while done < part.state.size {
        chunk.resize(usize::try_from((part.state.size - done).min(CHUNK)).unwrap_or(0), 0);
        source.read_exact_at(part.start + done, &mut chunk)?;
        log.write_all_at(&chunk, done)?;
        done += chunk.len() as u64;
    }
    log.set_modified(source.identity())?;
    log.sync()?;
    for (kind, bytes) in part.indexes.files() {
        let index = directory.create(&cleaned(kind))?;
        index.write_all_at(bytes, 0)?;
        index.sync()?;
    }
    Ok(())
}

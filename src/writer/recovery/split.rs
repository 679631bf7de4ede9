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
/// `transaction_indexes`: for each part, its base offset and the bytes of its transaction index.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io), also if the disk has no space for a second copy of the segment, which is then unchanged.
pub(super) fn split(
    directory: &Directory,
    base_offset: i64,
    parts: &[Part],
    transaction_indexes: &[(i64, Vec<u8>)],
) -> Result<()> {
    let source = directory.open_file(&segment_file(base_offset, FileKind::Log))?;
    let written = parts
        .iter()
        .zip(transaction_indexes)
        .try_for_each(|(part, (_, transactions))| write(directory, &source, part, transactions))
        .and_then(|()| directory.sync());
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
        rename(directory, part.base_offset, &FILES, Stage::Cleaned, Stage::Swap)?;
        // durable one by one: a .swap is committed as soon as no .cleaned has a lower base offset
        directory.sync()?;
    }
    remove_segment(directory, base_offset)?;
    directory.sync()?;
    for part in parts {
        let [log, indexes @ ..] = &FILES;
        for kinds in [std::slice::from_ref(log), indexes] {
            rename(directory, part.base_offset, kinds, Stage::Swap, Stage::Live)?;
            // a live segment between two `.swap` segments would be treated as replaced, and so would an index without its `.log`
            directory.sync()?;
        }
    }
    Ok(())
}

/// In renaming order.
const FILES: [FileKind; 4] =
    [FileKind::Log, FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex];

fn name(base_offset: i64, kind: FileKind, stage: Stage) -> String {
    SegmentFileName { base_offset, kind, stage }.to_string()
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

fn write(directory: &Directory, source: &SystemFile, part: &Part, transactions: &[u8]) -> Result<()> {
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
    let transactions =
        Some((FileKind::TransactionIndex, transactions)).filter(|(_, bytes)| !bytes.is_empty());
    for (kind, bytes) in part.indexes.files().into_iter().chain(transactions) {
        let index = directory.create(&cleaned(kind))?;
        index.write_all_at(bytes, 0)?;
        index.sync()?;
    }
    Ok(())
}

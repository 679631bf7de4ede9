//! Splits a segment whose offsets are too large, relative to its base offset, for its indexes. Kafka:
//! `UnifiedLog.splitOverflowedSegment`, `LocalLog.replaceSegments`.

use crate::error::Result;
use crate::fs::Directory;
use crate::fs::names::{FileKind, Stage, segment_file};
use crate::segment::Part;
use crate::writer::replacement;

/// The number of bytes copied at a time.
const CHUNK: u64 = 1 << 20;

/// Replaces a segment with its parts.
///
/// The parts are written and synced under names that end in `.cleaned`; these are renamed to `.swap` in
/// descending order, which commits the split. Then the segment is deleted, and the parts are renamed to their
/// live names. After a crash at any point, the next open by a writer or a broker finishes or undoes the
/// split.
///
/// `transaction_indexes`: for each part, its base offset and the bytes of its transaction index.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io), also if the disk has no space for a second copy of the segment, which is
/// then unchanged.
pub(super) fn split(
    directory: &Directory,
    base_offset: i64,
    parts: &[Part],
    transaction_indexes: &[(i64, Vec<u8>)],
) -> Result<()> {
    write_parts(directory, base_offset, parts, transaction_indexes)?;
    let bases: Vec<_> = parts.iter().map(|part| part.base_offset).collect();
    replacement::commit(directory, &bases, &[base_offset])
}

/// The first step of [`split`]: the parts are complete and durable, and nothing is committed. If this fails,
/// no file remains.
pub(in crate::writer) fn write_parts(
    directory: &Directory,
    base_offset: i64,
    parts: &[Part],
    transaction_indexes: &[(i64, Vec<u8>)],
) -> Result<()> {
    let source = segment_file(base_offset, FileKind::Log);
    let written = parts
        .iter()
        .zip(transaction_indexes)
        .try_for_each(|(part, (_, transactions))| write(directory, &source, part, transactions))
        .and_then(|()| directory.sync());
    written.inspect_err(|_| {
        // uncommitted: the next open deletes what cannot be deleted now
        for part in parts {
            let _ = replacement::remove(directory, part.base_offset);
        }
    })
}

/// `source`: the name of the `.log`.
fn write(directory: &Directory, source: &str, part: &Part, transactions: &[u8]) -> Result<()> {
    let cleaned = |kind| replacement::name(part.base_offset, kind, Stage::Cleaned);
    // files of an earlier attempt
    replacement::remove(directory, part.base_offset)?;
    let log = directory.create_like(&cleaned(FileKind::Log), source)?;
    let content = directory.open_file(source)?;
    let (mut chunk, mut done) = (Vec::new(), 0);
    while done < part.state.size {
        chunk.resize(usize::try_from((part.state.size - done).min(CHUNK)).unwrap_or(0), 0);
        content.read_exact_at(part.start + done, &mut chunk)?;
        log.write_all_at(&chunk, done)?;
        done += chunk.len() as u64;
    }
    log.set_modified(content.identity())?;
    log.sync()?;
    let transactions =
        Some((FileKind::TransactionIndex, transactions)).filter(|(_, bytes)| !bytes.is_empty());
    for (kind, bytes) in part.indexes.files().into_iter().chain(transactions) {
        let index = directory.create_like(&cleaned(kind), source)?;
        index.write_all_at(bytes, 0)?;
        index.sync()?;
    }
    Ok(())
}

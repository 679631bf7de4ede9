//! `quarantine/`: the bytes that recovery and repair take out of the log, and the files that a rebuild
//! replaces, unchanged, in the partition directory.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;

use crate::error::Result;
use crate::fs::names::{FileKind, SegmentFileName, Stage};
use crate::fs::{Directory, FileType, SystemFile, are_zero};
use crate::record::crc;

/// The name of the folder. Kafka ignores it.
pub(crate) const QUARANTINE: &str = "quarantine";

/// The number of bytes copied at a time, and held in memory.
const CHUNK: u64 = 1 << 20;

/// The largest number of zeros at the end of a copy. Kafka: `max.message.bytes`, by default.
const MAX_ZEROS: u64 = (1 << 20) + 12;

/// Bytes of a file, to be copied to `quarantine/<file>.<position>.<checksum>`. The name depends on the bytes,
/// so that a recovery that is repeated after a crash finds the file written before.
///
/// Zeros at the end of a file may be preallocated space, or the end of a batch: the copy has as many of them
/// as a batch of Kafka's default size can have, as a hole. The copy of a whole file has its full length.
#[derive(Debug)]
pub(crate) struct Quarantined {
    /// The name of the file when it is copied.
    source: String,
    position: u64,
    /// The position after the last byte that is not zero.
    end: u64,
    /// The size of the copy.
    size: u64,
    name: String,
}

impl Quarantined {
    /// Reads the bytes at and after `position`. `present_name`: the name of the file now; `name`: its final
    /// one, which it has when it is copied. `None` if all of the bytes are zero.
    pub(crate) fn find(
        directory: &Directory,
        present_name: &str,
        name: &str,
        position: u64,
    ) -> Result<Option<Self>> {
        let found = Self::find_range(directory, present_name, name, position..u64::MAX)?;
        Ok(found.map(|found| Self { source: name.to_owned(), ..found }))
    }

    /// Reads a range of a file. `name`: the present name of the file; `live_name`: the one in the name of the
    /// copy. `None` if all of the bytes are zero.
    pub(crate) fn find_range(
        directory: &Directory,
        name: &str,
        live_name: &str,
        range: Range<u64>,
    ) -> Result<Option<Self>> {
        let source = directory.open_file(name)?;
        let position = range.start;
        let limit = range.end.min(source.size());
        let mut buffer = Vec::new();
        // `zeros`: the bytes of the chunks before `at` that are not in the checksum, because they are zero
        let (mut checksum, mut zeros, mut end, mut at) = (0, 0, position, position);
        loop {
            // preallocated space may be a hole; the chunks, and so the name, are the same if it is not
            let hole = source.next_data(at)?.unwrap_or(limit).min(limit).saturating_sub(at);
            let skipped = if at + hole < limit { hole - hole % CHUNK } else { hole };
            (zeros, at) = (zeros + skipped, at + skipped);
            if at >= limit {
                break;
            }
            read(&source, at..limit, &mut buffer)?;
            if are_zero(&buffer) {
                zeros += buffer.len() as u64;
            } else {
                // each chunk's checksum includes the previous one
                checksum =
                    crc::crc32c(&[&u32::to_be_bytes(checksum)[..], &zeros_before(zeros), &buffer].concat());
                zeros = 0;
                end = at + buffer.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
            }
            at += buffer.len() as u64;
        }
        let is_tail = limit == source.size() && position > 0;
        let copied_to = if is_tail { limit.min(end.saturating_add(MAX_ZEROS)) } else { limit };
        let size = copied_to.saturating_sub(position);
        let copy = format!("{live_name}.{position}.{checksum:08x}");
        Ok((end > position).then(|| Self { source: name.to_owned(), position, end, size, name: copy }))
    }

    /// The path of the copy.
    pub(crate) fn path(&self, directory: &Directory) -> PathBuf {
        directory.path_of(QUARANTINE).join(&self.name)
    }

    /// Copies the bytes durably.
    pub(crate) fn keep(&self, directory: &Directory) -> Result<()> {
        let Self { source, position, end, size, name } = self;
        let file = directory.open_file(source)?;
        let folder = directory.folder(QUARANTINE)?;
        directory.sync()?;
        if folder.identity_of(name)?.is_some() {
            // the process may have been killed before it synced the name
            return folder.sync();
        }
        let staged = format!("{name}.tmp");
        folder.remove(&staged)?;
        let copy = folder.create(&staged)?;
        directory.access_of(source)?.map_or(Ok(()), |access| copy.set_access(access))?;
        let mut buffer = Vec::new();
        let mut at = *position;
        let mut copied = Ok(());
        while copied.is_ok() && at < *end {
            copied =
                read(&file, at..*end, &mut buffer).and_then(|()| copy.write_all_at(&buffer, at - position));
            at += buffer.len() as u64;
        }
        // a part of it would take the rest of a full disk
        copied.inspect_err(|_| drop(folder.remove(&staged)))?;
        copy.set_size(*size)?;
        copy.sync()?;
        folder.rename(&staged, name)?;
        folder.sync()
    }
}

/// The base offsets of the segments of whose `.log` there are bytes in `quarantine/`.
pub(super) fn segments_with_cuts(directory: &Directory) -> Result<BTreeSet<i64>> {
    let is_there = directory.entries()?.contains(&(QUARANTINE.to_owned(), FileType::Directory));
    let Some(folder) = is_there.then(|| directory.existing_folder(QUARANTINE)).transpose()?.flatten() else {
        return Ok(BTreeSet::new());
    };
    // <file>.<position>.<checksum>
    let base_of = |(name, _): &(String, FileType)| {
        let file = SegmentFileName::parse(name.rsplitn(3, '.').last()?)?;
        (file.kind == FileKind::Log && file.stage == Stage::Live).then_some(file.base_offset)
    };
    Ok(folder.entries()?.iter().filter_map(base_of).collect())
}

/// What the checksum of a chunk includes of so many zeros before it.
fn zeros_before(zeros: u64) -> Vec<u8> {
    if zeros == 0 { Vec::new() } else { zeros.to_be_bytes().to_vec() }
}

/// Reads the start of a range, at most a chunk.
fn read(file: &SystemFile, range: Range<u64>, buffer: &mut Vec<u8>) -> Result<()> {
    let length = usize::try_from((range.end - range.start).min(CHUNK)).unwrap_or(0);
    buffer.resize(length, 0);
    file.read_exact_at(range.start, buffer)
}

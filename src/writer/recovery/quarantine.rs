//! `quarantine/`: what recovery cut from the log, byte for byte, in the partition directory.

use crate::error::Result;
use crate::fs::Directory;
use crate::fs::names::{FileKind, segment_file};
use crate::record::crc;

/// The folder. Kafka passes over it.
pub(crate) const QUARANTINE: &str = "quarantine";

/// What is copied at a time, and held in memory.
const CHUNK: u64 = 1 << 20;

/// Keeps the bytes of a segment from a position on, durably, as `quarantine/<base>.log.<position>.<checksum>`. Zeros alone
/// are not kept: they are room that was made and never written. Nor are those after a torn write; a segment that is kept as
/// a whole has its full length.
///
/// The name says what is in the file, so that recovery, begun again after a crash, finds what it kept.
pub(super) fn keep(directory: &Directory, base_offset: i64, position: u64) -> Result<()> {
    let name = segment_file(base_offset, FileKind::Log);
    let file = directory.open_file(&name)?;
    let mut buffer = Vec::new();
    let mut checksum = 0;
    // what is kept ends with its last byte that is not zero
    let mut end = position;
    let mut at = position;
    while at < file.size() {
        read(&file, at, &mut buffer)?;
        if let Some(last) = buffer.iter().rposition(|byte| *byte != 0) {
            end = at + last as u64 + 1;
        }
        // a chain of checksums does for a name
        checksum = crc::crc32c(&[&u32::to_be_bytes(checksum)[..], &buffer].concat());
        at += buffer.len() as u64;
    }
    if end == position {
        return Ok(());
    }
    let folder = directory.folder(QUARANTINE)?;
    directory.sync()?;
    let kept = format!("{name}.{position}.{checksum:08x}");
    if folder.identity_of(&kept)?.is_some() {
        return Ok(());
    }
    let staged = format!("{kept}.tmp");
    folder.remove(&staged)?;
    let copy = folder.create(&staged)?;
    let mut at = position;
    while at < end {
        read(&file, at, &mut buffer)?;
        copy.write_all_at(&buffer, at - position)?;
        at += buffer.len() as u64;
    }
    copy.set_size(if position == 0 { file.size() } else { end - position })?;
    copy.sync()?;
    folder.rename(&staged, &kept)?;
    folder.sync()
}

fn read(file: &crate::fs::SystemFile, position: u64, buffer: &mut Vec<u8>) -> Result<()> {
    let length = usize::try_from((file.size() - position).min(CHUNK)).unwrap_or(0);
    buffer.resize(length, 0);
    file.read_exact_at(position, buffer)
}

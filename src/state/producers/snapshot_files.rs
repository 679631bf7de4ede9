//! The snapshots in a partition directory.

use std::collections::BTreeMap;

use super::ProducerSnapshot;
use crate::error::{Malformed, Result};
use crate::fs::names::{FileKind, SegmentFileName, Stage, segment_file};
use crate::fs::{Directory, FileType};

/// The largest snapshot that is read, bytes: of more than five million producers. Kafka has no limit.
const MAX_BYTES: u64 = 256 << 20;

/// A file with the name of a snapshot.
#[derive(Debug)]
pub(crate) struct SnapshotFile {
    /// Its size, bytes.
    #[cfg_attr(not(feature = "inspect"), expect(dead_code, reason = "a writer needs only the producers"))]
    pub(crate) size: u64,
    /// Its bytes; none if it is too large.
    #[cfg_attr(not(feature = "inspect"), expect(dead_code, reason = "a writer needs only the producers"))]
    pub(crate) bytes: Vec<u8>,
    /// Its producers, or what is wrong and its position.
    pub(crate) decoded: Result<ProducerSnapshot, (u64, Malformed)>,
}

/// The name of the snapshot at an offset.
pub(crate) fn snapshot_name(offset: i64) -> String {
    segment_file(offset, FileKind::Snapshot)
}

/// The names of the live snapshots in a directory, by their offsets. Of two with one offset, the name has 20
/// digits.
pub(crate) fn list(directory: &Directory) -> Result<BTreeMap<i64, String>> {
    let mut found: BTreeMap<i64, String> = BTreeMap::new();
    for (name, file_type) in directory.entries()? {
        let parsed = SegmentFileName::parse(&name).filter(|_| file_type == FileType::RegularFile);
        if let Some(SegmentFileName { base_offset, kind: FileKind::Snapshot, stage: Stage::Live }) = parsed
            && found.get(&base_offset).is_none_or(|other| name.len() < other.len())
        {
            found.insert(base_offset, name);
        }
    }
    Ok(found)
}

/// Reads a snapshot; `None` if there is no file.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io).
pub(crate) fn read(directory: &Directory, name: &str) -> Result<Option<SnapshotFile>> {
    let Some(size) = directory.identity_of(name)?.map(|file| file.size) else { return Ok(None) };
    if size > MAX_BYTES {
        let malformed = Malformed::new(format!("at most {MAX_BYTES} bytes"), format!("{size} bytes"));
        return Ok(Some(SnapshotFile { size, bytes: Vec::new(), decoded: Err((0, malformed)) }));
    }
    let Some(bytes) = directory.read_small(name, MAX_BYTES)? else { return Ok(None) };
    let decoded = ProducerSnapshot::decode(&bytes);
    Ok(Some(SnapshotFile { size, bytes, decoded }))
}

/// The producers in a snapshot; `None` if there is no file, or if it is damaged or too large.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io).
pub(crate) fn read_valid(directory: &Directory, name: &str) -> Result<Option<ProducerSnapshot>> {
    Ok(read(directory, name)?.and_then(|file| file.decoded.ok()))
}

//! Snapshots of `__cluster_metadata`: `<end offset, 20 digits>-<epoch, 10 digits>.checkpoint`. Kafka:
//! `Snapshots`, `RecordsSnapshotReader`.
//!
//! The end offset is exclusive: the file has the effect of all records below it. It consists of batches,
//! whose offsets begin at 0. The first record is a snapshot header and the last one a snapshot footer, both
//! of them control records.

use std::path::{Path, PathBuf};

use super::state::State;
use crate::error::{Malformed, Result};
use crate::fs::names::metadata_snapshot;
use crate::fs::{Directory, FileBytes};
use crate::inspect::batch_place::{BatchPlace, MIN_LENGTH, TooShort};
use crate::record::control::ControlType;
use crate::record::{BatchHeader, RecordRef, Records, V2_HEADER};

const SUFFIX: &str = ".checkpoint";
/// Where the low byte of the attributes is in a batch, and its bit of control batches.
const V2_ATTRIBUTES: usize = 22;
const CONTROL: u8 = 0x20;
const SNAPSHOT_HEADER: ControlType = ControlType::Other(3);
const SNAPSHOT_FOOTER: ControlType = ControlType::Other(4);

#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) path: PathBuf,
    /// Exclusive; `None` for a file of another name, such as `bootstrap.checkpoint`.
    pub(super) end_offset: Option<i64>,
    bytes: FileBytes,
}

/// The snapshots of a partition, the earliest first.
pub(super) fn snapshots_in(directory: &Directory) -> Result<Vec<Snapshot>> {
    let entries = directory.entries()?;
    let mut names: Vec<_> =
        entries.iter().filter_map(|(name, _)| Some((metadata_snapshot(name)?, name.as_str()))).collect();
    names.sort_unstable();
    names.into_iter().map(|(_, name)| Snapshot::open(directory, name)).collect()
}

impl Snapshot {
    /// The snapshot at a path; `None` if the path does not name one.
    pub(super) fn at(path: &Path) -> Result<Option<Self>> {
        let name = path.file_name().and_then(|name| name.to_str()).filter(|name| name.ends_with(SUFFIX));
        let Some(name) = name.filter(|_| !path.is_dir()) else { return Ok(None) };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = Directory::open(parent.unwrap_or(Path::new(".")), "give the path of a snapshot")?;
        Self::open(&directory, name).map(Some)
    }

    fn open(directory: &Directory, name: &str) -> Result<Self> {
        let bytes = FileBytes::new(directory.open_file(name)?, None, false)?;
        let end_offset = metadata_snapshot(name).map(|(end_offset, _)| end_offset);
        Ok(Self { path: directory.path_of(name), end_offset, bytes })
    }

    /// Applies its records to a state.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) for bytes that are not valid batches, and for a snapshot
    /// without a footer; [`Error::BatchTooLarge`](crate::Error::BatchTooLarge).
    pub(super) fn read(&self, state: &mut State, max_batch_bytes: usize) -> Result<()> {
        let (mut bytes, mut buffer) = (Vec::new(), Vec::new());
        let mut position = 0;
        let mut has_footer = false;
        while position < self.bytes.size() {
            let left = self.bytes.size() - position;
            let at = |malformed: Malformed| malformed.at(&self.path, position, None);
            self.bytes.copy(position, V2_HEADER, &mut bytes)?;
            let header = BatchHeader::parse(&bytes, left).map_err(at)?;
            header.ensure_size(max_batch_bytes).map_err(at)?;
            let size = usize::try_from(header.size).unwrap_or(usize::MAX);
            self.bytes.copy(position, size, &mut bytes)?;
            header.ensure_valid(&bytes).map_err(at)?;
            let opened = Records::open_up_to(max_batch_bytes, header, &bytes, &mut buffer);
            let (mut records, payload) = opened.map_err(at)?;
            while let Some(record) = records.next(payload.of(&bytes, &buffer)).map_err(at)? {
                state.take(header.is_control(), &record);
                has_footer = header.is_control() && ControlType::parse(record.key) == Ok(SNAPSHOT_FOOTER);
            }
            position += u64::from(header.size);
        }
        // a bootstrap file has none
        if has_footer || self.end_offset.is_none() {
            return Ok(());
        }
        let wrong = Malformed::new("a snapshot footer at the end", "none: the snapshot is not complete");
        Err(wrong.at(&self.path, position, None))
    }
}

/// What is wrong with a snapshot.
#[derive(Debug)]
pub(crate) struct SnapshotFault {
    /// Bytes from the start of the file.
    pub(crate) position: u64,
    pub(crate) malformed: Malformed,
    pub(crate) kind: SnapshotFaultKind,
}

/// How a fault of a snapshot counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SnapshotFaultKind {
    /// A broker does not start with it.
    Damage,
    /// A broker starts with it: only the footer is missing, or the end of a bootstrap file.
    Accepted,
    /// Records of a type that is not known, in a file that is otherwise whole: a broker of their version
    /// starts with it.
    LaterVersion,
}

/// What is wrong with the snapshot of a name in a directory, as a broker reads it: bytes after the last whole
/// batch are left out. Of a file of another name, which is `bootstrap.checkpoint`, no checksum is compared,
/// and it needs a level of `metadata.version`.
///
/// *Source*: `RecordsIterator`, `BatchFileReader`, `BootstrapMetadata.fromRecords`.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io).
pub(crate) fn snapshot_fault(directory: &Directory, name: &str) -> Result<Option<SnapshotFault>> {
    let snapshot = Snapshot::open(directory, name)?;
    let size = snapshot.bytes.size();
    let (mut bytes, mut buffer, mut state) = (Vec::new(), Vec::new(), State::default());
    let (mut position, mut has_header, mut has_footer) = (0, false, false);
    let mut later = None;
    let new = |position, malformed, kind| Some(SnapshotFault { position, malformed, kind });
    let fault = |position, malformed| Ok(new(position, malformed, SnapshotFaultKind::Damage));
    loop {
        snapshot.bytes.copy(position, V2_HEADER, &mut bytes)?;
        let place = match BatchPlace::read(&bytes, position, size) {
            Ok(Some(place)) => place,
            Ok(None) => break,
            Err(TooShort(length)) => {
                let expected = format!("a batch with a length of {MIN_LENGTH} or more");
                return fault(position, Malformed::new(expected, format!("length {length}")));
            }
        };
        let length = usize::try_from(place.size).unwrap_or(usize::MAX);
        snapshot.bytes.copy(position, length, &mut bytes)?;
        let read = read_batch(&bytes, snapshot.end_offset.is_some(), &mut buffer, |is_control, record| {
            let control = is_control.then(|| ControlType::parse(record.key));
            has_header |= position == 0 && control == Some(Ok(SNAPSHOT_HEADER));
            has_footer = control == Some(Ok(SNAPSHOT_FOOTER));
            state.take(is_control, record);
        });
        if let Err(malformed) = read {
            return fault(position, malformed);
        }
        if let Some((wrong, is_later_version)) = state.take_fault() {
            let malformed = Malformed::new("records of the metadata", wrong);
            if !is_later_version {
                return fault(position, malformed);
            }
            later = later.or_else(|| new(position, malformed, SnapshotFaultKind::LaterVersion));
        }
        position = place.end();
    }
    // what is left of the footer's batch: no record of the metadata is missing
    let is_footer = bytes.get(V2_ATTRIBUTES).is_some_and(|low| low & CONTROL != 0);
    let end = format!("{} bytes after the last whole batch", size - position);
    if snapshot.end_offset.is_none() && !state.features.contains_key("metadata.version") {
        fault(position, Malformed::new("a record with the level of metadata.version", "none"))
    } else if snapshot.end_offset.is_some() && !has_header {
        fault(0, Malformed::new("a snapshot header in the first batch", "none"))
    } else if position < size {
        let is_accepted = is_footer || snapshot.end_offset.is_none();
        let kind = if is_accepted { SnapshotFaultKind::Accepted } else { SnapshotFaultKind::Damage };
        Ok(new(position, Malformed::new("a whole batch", end), kind))
    } else if snapshot.end_offset.is_some() && !has_footer {
        fault(position, Malformed::new("a snapshot footer at the end", "none"))
    } else {
        Ok(later)
    }
}

/// The records of one batch.
fn read_batch(
    bytes: &[u8],
    has_checksum: bool,
    buffer: &mut Vec<u8>,
    mut each: impl FnMut(bool, &RecordRef<'_>),
) -> std::result::Result<(), Malformed> {
    let header = BatchHeader::parse(bytes, bytes.len() as u64)?;
    if has_checksum {
        header.ensure_valid(bytes)?;
    }
    let (mut records, payload) = Records::open(header, bytes, buffer)?;
    while let Some(record) = records.next(payload.of(bytes, buffer))? {
        each(header.is_control(), &record);
    }
    Ok(())
}

impl From<&Snapshot> for PathBuf {
    fn from(snapshot: &Snapshot) -> Self {
        snapshot.path.clone()
    }
}

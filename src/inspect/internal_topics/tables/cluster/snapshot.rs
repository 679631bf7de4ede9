//! Snapshots of `__cluster_metadata`: `<end offset, 20 digits>-<epoch, 10 digits>.checkpoint`. Kafka: `Snapshots`, `RecordsSnapshotReader`.
//!
//! The end offset is exclusive: the file has the effect of all records below it. It consists of batches, whose offsets begin at 0. The
//! first record is a snapshot header and the last one a snapshot footer, both of them control records.

use std::path::{Path, PathBuf};

use super::state::State;
use crate::error::{Malformed, Result};
use crate::fs::names::metadata_snapshot;
use crate::fs::{Directory, FileBytes};
use crate::record::control::ControlType;
use crate::record::{BatchHeader, Records, V2_HEADER};

const SUFFIX: &str = ".checkpoint";
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
    /// [`Error::Corrupt`](crate::Error::Corrupt) for bytes that are not valid batches, and for a snapshot without a footer.
    pub(super) fn read(&self, state: &mut State) -> Result<()> {
        let (mut bytes, mut buffer) = (Vec::new(), Vec::new());
        let mut position = 0;
        let mut has_footer = false;
        while position < self.bytes.size() {
            let left = self.bytes.size() - position;
            let at = |malformed: Malformed| malformed.at(&self.path, position, None);
            self.bytes.copy(position, V2_HEADER, &mut bytes)?;
            let header = BatchHeader::parse(&bytes, left).map_err(at)?;
            let size = usize::try_from(header.size).unwrap_or(usize::MAX);
            self.bytes.copy(position, size, &mut bytes)?;
            header.ensure_valid(&bytes).map_err(at)?;
            let (mut records, payload) = Records::open(header, &bytes, &mut buffer).map_err(at)?;
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

impl From<&Snapshot> for PathBuf {
    fn from(snapshot: &Snapshot) -> Self {
        snapshot.path.clone()
    }
}

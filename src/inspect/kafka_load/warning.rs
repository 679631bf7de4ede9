//! Damage that Kafka accepts without a word.

use std::fmt;

use super::run::Run;
use super::segment::Segment;
use crate::error::Result;
use crate::fs::names::FileKind;
use crate::index::{OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES};

/// What Kafka does not notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
#[non_exhaustive]
pub enum LoadWarningKind {
    /// The last segment has bytes after its last whole batch. They stay, and the next append follows them.
    TornTail,
    /// The last segment has bytes, but the log ends at its base offset: no batch was found from the last
    /// index entry on.
    EndAtBase,
    /// Zeros at the end of an index are taken for entries.
    PaddedIndex,
    /// A missing time index was created empty; only the active segment gets entries. Searches by time skip
    /// the segment.
    EmptyTimeIndex,
}

impl LoadWarningKind {
    /// A stable name, for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::TornTail => "torn_tail",
            Self::EndAtBase => "end_at_base",
            Self::PaddedIndex => "padded_index",
            Self::EmptyTimeIndex => "empty_time_index",
        }
    }
}

/// Damage that Kafka accepts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct LoadWarning {
    /// What it is.
    pub kind: LoadWarningKind,
    /// The name of the file.
    pub file: String,
    /// Where in the file, bytes from its start.
    pub position: u64,
    /// Bytes.
    pub size: u64,
}

impl fmt::Display for LoadWarning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, file, position, size } = self;
        match kind {
            LoadWarningKind::TornTail => write!(
                formatter,
                "{file}: {size} bytes after the last whole batch, from position {position}, are accepted; the next append \
                 follows them"
            ),
            LoadWarningKind::EndAtBase => write!(
                formatter,
                "{file}: no batch is found in its {size} bytes, and the log ends at its base offset; new records get offsets \
                 that are in it already"
            ),
            LoadWarningKind::PaddedIndex => {
                write!(
                    formatter,
                    "{file}: its last entry of {size} bytes is zeros; they are taken for entries"
                )
            }
            LoadWarningKind::EmptyTimeIndex => {
                write!(formatter, "{file}: created without entries; searches by time skip the segment")
            }
        }
    }
}

/// The warnings about one segment. `end`: for the last segment, the log end offset and the position after the
/// last batch.
pub(super) fn find(run: &Run, segment: &Segment, end: Option<(i64, u64)>) -> Result<Vec<LoadWarning>> {
    let mut warnings = Vec::new();
    let log = segment.name(FileKind::Log);
    match end {
        Some((offset, _)) if offset == segment.base_offset && segment.log_size > 0 => {
            let (kind, size) = (LoadWarningKind::EndAtBase, segment.log_size);
            warnings.push(LoadWarning { kind, file: log, position: 0, size });
        }
        Some((_, position)) if position < segment.log_size => {
            let (kind, size) = (LoadWarningKind::TornTail, segment.log_size - position);
            warnings.push(LoadWarning { kind, file: log, position, size });
        }
        _ => {}
    }
    let time_index = segment.name(FileKind::TimeIndex);
    if !run.disk.before().contains_key(&time_index)
        && run.disk.size(&time_index) == Some(0)
        && segment.log_size > 0
    {
        let kind = LoadWarningKind::EmptyTimeIndex;
        warnings.push(LoadWarning { kind, file: time_index, position: 0, size: 0 });
    }
    for (kind, entry) in
        [(FileKind::OffsetIndex, OFFSET_ENTRY_BYTES), (FileKind::TimeIndex, TIME_ENTRY_BYTES)]
    {
        let name = segment.name(kind);
        if !run.disk.is_unchanged(&name)? {
            continue;
        }
        let bytes = entry as u64;
        let Some(size) = run.disk.size(&name).filter(|size| *size >= 2 * bytes) else { continue };
        let position = size - size % bytes - bytes;
        let last = run.disk.bytes_at(&name, position, entry)?;
        if last.iter().all(|byte| *byte == 0) {
            let kind = LoadWarningKind::PaddedIndex;
            warnings.push(LoadWarning { kind, file: name, position, size: bytes });
        }
    }
    Ok(warnings)
}

//! A log that ends below the offset up to which it was synced: its last records are lost.

use std::path::Path;

use super::metadata;
use crate::fs::Directory;
use crate::state::checkpoint::{DURABLE, DurableOffsetFile};
use crate::state::offset_checkpoint::RECOVERY_POINTS;

/// The offset up to which a log was synced, from a small file of its writer or of a broker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Synced {
    pub(super) offset: i64,
    file: &'static str,
}

impl Synced {
    /// The higher of both files' offsets. It is read before the segments are listed: the segments end at or
    /// above it, unless records are lost or the log is truncated in between. A file that cannot be read
    /// is ignored.
    pub(super) fn read(directory: &Directory, partition: Option<(&str, i32)>) -> Option<Self> {
        let durable = DurableOffsetFile::read(directory).ok().flatten();
        let recovery_point = partition.and_then(|(topic, number)| {
            metadata::checkpointed(directory, RECOVERY_POINTS, topic, number).ok().flatten()
        });
        let durable = durable.map(|offset| Self { offset, file: DURABLE });
        let recovery_point = recovery_point.map(|offset| Self { offset, file: RECOVERY_POINTS });
        durable.into_iter().chain(recovery_point).max_by_key(|synced| synced.offset)
    }

    /// A warning if the log ends before that offset.
    pub(super) fn warning(self, path: &Path, log_end_offset: i64) -> Option<String> {
        let Self { offset, file } = self;
        (log_end_offset < offset).then(|| {
            format!(
                "{}: the log ends at offset {log_end_offset}, but {file} says that it was synced up to offset {offset}: \
                 records are lost from {log_end_offset} on",
                path.display()
            )
        })
    }
}

//! The data directory's checkpoints of offsets. Kafka: `OffsetCheckpointFile`, `CheckpointFile`.
//!
//! ```text
//! 0                    format version
//! 2                    number of lines that follow
//! cities 1 31          topic, partition, offset
//! rivers 0 7
//! ```

use super::checkpoint_file::{self, WrongText};
use crate::error::Result;
use crate::fs::Directory;

/// Log start offsets of partitions whose first segments contain older records. In the data directory.
pub(crate) const LOG_START_OFFSETS: &str = "log-start-offset-checkpoint";
/// Recovery points. In the data directory.
pub(crate) const RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";
/// Offsets up to which the cleaner has compacted partitions. In the data directory.
pub(crate) const CLEANED_OFFSETS: &str = "cleaner-offset-checkpoint";

/// High watermarks. In the data directory.
pub(crate) const HIGH_WATERMARKS: &str = "replication-offset-checkpoint";

/// The maximum size of a checkpoint, bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Offsets by topic and partition, in the order of their lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OffsetCheckpoint(Vec<(String, i32, i64)>);

impl OffsetCheckpoint {
    /// Reads the file at a path relative to `directory`; a missing file has no lines. A damaged file is not
    /// an [`Error`] but a description, because checkpoints are hints.
    ///
    /// # Errors
    /// [`Error::Io`].
    ///
    /// [`Error`]: crate::Error
    /// [`Error::Io`]: crate::Error::Io
    pub(crate) fn read(directory: &Directory, path: &str) -> Result<Result<Self, WrongText>> {
        let text = directory.read_small(path, MAX_BYTES)?;
        Ok(text.map_or_else(|| Ok(Self::default()), |text| Self::parse(&text)))
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// What is wrong with the text.
    fn parse(text: &[u8]) -> Result<Self, WrongText> {
        let lines = checkpoint_file::read(text, |line| {
            let fields = checkpoint_file::fields(line);
            let &[topic, number, offset] = fields.as_slice() else {
                let found = format!("the line {line:?}, not a topic, a partition and an offset");
                return Err(WrongText::from(found));
            };
            let number = checkpoint_file::number(number, "the number of a partition")?;
            Ok((topic.to_owned(), number, checkpoint_file::number(offset, "an offset")?))
        })?;
        Ok(Self(lines))
    }

    /// The text of the file.
    pub(crate) fn to_text(&self) -> String {
        let line = |(topic, partition, offset): &(String, i32, i64)| format!("{topic} {partition} {offset}");
        checkpoint_file::write(self.0.iter().map(line))
    }

    /// The offset of a partition, or `None` if there is no line for it. Of several lines, the last one is
    /// used.
    pub(crate) fn offset_of(&self, topic: &str, partition: i32) -> Option<i64> {
        let mut lines = self.0.iter().rev();
        lines.find(|(name, number, _)| name == topic && *number == partition).map(|(_, _, offset)| *offset)
    }

    /// Sets the offset of a partition. Returns false if it is unchanged.
    pub(crate) fn set(&mut self, topic: &str, partition: i32, offset: i64) -> bool {
        if self.offset_of(topic, partition) == Some(offset) {
            return false;
        }
        self.0.retain(|(name, number, _)| name != topic || *number != partition);
        self.0.push((topic.to_owned(), partition, offset));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::OffsetCheckpoint;
    use crate::state::checkpoint_file::WrongTextKind;

    #[test]
    fn the_offset_is_from_the_line_of_the_partition_and_a_malformed_file_is_an_error() {
        let checkpoint = OffsetCheckpoint::parse(b"0\n2\ncities 1 31\nrivers 0 7\n").unwrap();
        assert_eq!(checkpoint.offset_of("cities", 1), Some(31));
        assert_eq!(checkpoint.offset_of("cities", 0), None);
        assert_eq!(OffsetCheckpoint::parse(b"").unwrap(), OffsetCheckpoint::default());
        for broken in
            [&b"1\n0\n"[..], b"0\n3\ncities 1 31\n", b"0\n1\ncities 1\n", b"0\n1\ncities 1 x\n", b"\xff"]
        {
            assert!(OffsetCheckpoint::parse(broken).is_err());
        }
        let kind = |text| OffsetCheckpoint::parse(text).unwrap_err().kind;
        assert_eq!(kind(b"0\n1\ncities 1 x\n"), WrongTextKind::Number);
        assert_eq!(kind(b"0\n1\ncities 1 99999999999999999999\n"), WrongTextKind::Number);
        assert_eq!(kind(b"0\n2\ncities 1 31\n"), WrongTextKind::Format);
    }

    #[test]
    fn setting_an_offset_does_not_change_the_other_lines() {
        let mut checkpoint = OffsetCheckpoint::parse(b"0\n2\ncities 1 31\nrivers 0 7\n").unwrap();
        assert!(!checkpoint.set("rivers", 0, 7));
        assert!(checkpoint.set("cities", 1, 40));
        assert_eq!(checkpoint.to_text(), "0\n2\nrivers 0 7\ncities 1 40\n");
    }
}

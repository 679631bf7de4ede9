//! `leader-epoch-checkpoint`: the start offset of each leader epoch. Kafka: `LeaderEpochFileCache`,
//! `LeaderEpochCheckpointFile`.
//!
//! ```text
//! 0                    format version
//! 2                    number of lines that follow
//! 0 104                epoch and start offset
//! 1 106
//! ```

use super::checkpoint_file::{self, WrongText};
use crate::error::{Error, Result};
use crate::fs::{Directory, Staged};

/// The name of the file, in the partition directory.
pub const LEADER_EPOCH_CHECKPOINT: &str = "leader-epoch-checkpoint";

/// The file that Kafka writes, and then renames to [`LEADER_EPOCH_CHECKPOINT`].
#[cfg(feature = "inspect")]
pub(crate) const STAGED_CHECKPOINT: &str = "leader-epoch-checkpoint.tmp";

/// The maximum size of the file, bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The history of a log's leader epochs: epochs and their start offsets, both ascending.
///
/// *Source*: `LeaderEpochFileCache`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaderEpochs {
    /// Epochs and start offsets, both strictly ascending.
    entries: Vec<(i32, i64)>,
}

impl LeaderEpochs {
    /// Parses the text of the file; an empty text is an empty history.
    ///
    /// # Errors
    /// A description of what is wrong with the text.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let mut epochs = Self::default();
        for (epoch, offset) in Self::parse_lines(text).map_err(|wrong| wrong.found)? {
            if epoch < 0 || offset < 0 {
                return Err(format!("the line \"{epoch} {offset}\", not an epoch and an offset from 0 up"));
            }
            epochs.assign(epoch, offset);
        }
        Ok(epochs)
    }

    /// The start offset of the first epoch in the file; `None` without one, and for a file that cannot be
    /// parsed.
    pub(crate) fn first_start(directory: &Directory) -> Result<Option<i64>> {
        let text = Self::read_text(directory)?.unwrap_or_default();
        let epochs = Self::parse(&text).unwrap_or_default();
        Ok(epochs.entries().first().map(|(_, start)| *start))
    }

    /// The lines of the file, which Kafka checks afterwards.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub(crate) fn parse_lines(text: &[u8]) -> Result<Vec<(i32, i64)>, WrongText> {
        checkpoint_file::read(text, |line| {
            let fields = checkpoint_file::fields(line);
            let &[epoch, offset] = fields.as_slice() else {
                return Err(format!("the line {line:?}, not an epoch and an offset").into());
            };
            Ok((checkpoint_file::number(epoch, "an epoch")?, checkpoint_file::number(offset, "an offset")?))
        })
    }

    /// Reads the text of the file in a partition directory; `None` if there is none.
    pub(crate) fn read_text(directory: &Directory) -> Result<Option<Vec<u8>>> {
        directory.read_small(LEADER_EPOCH_CHECKPOINT, MAX_BYTES)
    }

    /// Writes the replacement of the file under a staged name.
    pub(crate) fn stage(&self, directory: &Directory) -> Result<Staged> {
        directory.stage(LEADER_EPOCH_CHECKPOINT, self.to_text().as_bytes())
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        checkpoint_file::write(self.entries.iter().map(|(epoch, offset)| format!("{epoch} {offset}")))
    }

    /// Epochs and their start offsets, both ascending.
    pub fn entries(&self) -> &[(i32, i64)] {
        &self.entries
    }

    /// The latest epoch.
    pub fn latest(&self) -> Option<i32> {
        self.entries.last().map(|(epoch, _)| *epoch)
    }

    /// The epoch of an offset; `None` before the first entry.
    ///
    /// *Source*: `LeaderEpochFileCache.epochForOffset`.
    #[cfg(feature = "inspect")]
    pub(crate) fn epoch_at(&self, offset: i64) -> Option<i32> {
        let after = self.entries.partition_point(|(_, start)| *start <= offset);
        self.entries.get(after.checked_sub(1)?).map(|(epoch, _)| *epoch)
    }

    /// Adds an epoch that begins at `offset` (both 0 or above), and removes the entries that contradict it.
    /// Returns whether the history changed.
    ///
    /// *Source*: `LeaderEpochFileCache.assign`.
    pub fn assign(&mut self, epoch: i32, offset: i64) -> bool {
        if self.entries.last().is_some_and(|(latest, start)| epoch == *latest && offset >= *start) {
            return false;
        }
        while self.entries.pop_if(|(known, start)| *known >= epoch || *start >= offset).is_some() {}
        self.entries.push((epoch, offset));
        true
    }

    /// The history that the batches of a log leave, by their epochs and base offsets in log order.
    pub(crate) fn of_batches(batches: impl IntoIterator<Item = (i32, i64)>) -> Self {
        let mut epochs = Self::default();
        for (epoch, offset) in batches {
            epochs.assign(epoch, offset);
        }
        epochs
    }

    /// The end of an epoch's records: the largest known epoch ≤ `epoch`, and the offset after its last
    /// record, which is `log_end_offset` for the latest epoch. `None` if the history has no such entry.
    ///
    /// *Source*: `LeaderEpochFileCache.endOffsetFor`, which returns (−1, −1) for `None`.
    pub fn end_offset_for(&self, epoch: i32, log_end_offset: i64) -> Option<(i32, i64)> {
        if self.latest()? == epoch {
            return Some((epoch, log_end_offset));
        }
        let higher = self.entries.partition_point(|(known, _)| *known <= epoch);
        let (_, end) = self.entries.get(higher).filter(|_| epoch >= 0)?;
        let floor = higher.checked_sub(1).and_then(|floor| self.entries.get(floor));
        Some((floor.map_or(epoch, |(known, _)| *known), *end))
    }

    /// Removes epochs with a start offset at or above `offset`. Returns whether the history changed.
    ///
    /// *Source*: `LeaderEpochFileCache.truncateFromEnd`.
    pub fn truncate_from_end(&mut self, offset: i64) -> bool {
        let count = self.entries.len();
        while self.entries.pop_if(|(_, start)| *start >= offset).is_some() {}
        self.entries.len() != count
    }

    /// Removes epochs that ended at or before `offset`; the epoch that contains `offset` now starts there.
    /// Returns whether the history changed.
    ///
    /// *Source*: `LeaderEpochFileCache.truncateFromStart`.
    pub fn truncate_from_start(&mut self, offset: i64) -> bool {
        let started = self.entries.partition_point(|(_, start)| *start <= offset);
        let Some(last) = started.checked_sub(1) else { return false };
        let before = self.entries.clone();
        self.entries.drain(..last);
        if let Some((_, start)) = self.entries.first_mut() {
            *start = offset;
        }
        self.entries != before
    }

    /// Removes all epochs. Returns whether the history changed.
    ///
    /// *Source*: `LeaderEpochFileCache.clearAndFlush`.
    pub fn clear(&mut self) -> bool {
        let had_epochs = !self.entries.is_empty();
        self.entries.clear();
        had_epochs
    }

    /// The epoch of the next batches to append: `requested`, or the latest epoch, or 0 if there is none.
    ///
    /// # Errors
    /// [`Error::Config`] for an epoch below the latest: epochs must not decrease.
    pub fn next_epoch(&self, requested: Option<i32>) -> Result<i32> {
        let latest = self.latest().unwrap_or(0);
        match requested {
            Some(requested) if requested < latest => {
                let expected =
                    format!("{latest} or above, the latest epoch of the log (or none, to continue with it)");
                Err(Error::config("leader_epoch", expected, requested.to_string()))
            }
            Some(requested) => Ok(requested),
            None => Ok(latest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LeaderEpochs;

    fn of(entries: &[(i32, i64)]) -> LeaderEpochs {
        LeaderEpochs { entries: entries.to_vec() }
    }

    #[test]
    fn the_text_is_read_and_written_as_kafka_does() {
        let text = "0\n2\n0 104\n1 106\n";
        let epochs = LeaderEpochs::parse(text.as_bytes()).unwrap();
        assert_eq!(epochs, of(&[(0, 104), (1, 106)]));
        assert_eq!(epochs.to_text(), text);
        assert_eq!(LeaderEpochs::parse(b"").unwrap(), LeaderEpochs::default());
        assert_eq!(LeaderEpochs::default().to_text(), "0\n0\n");
        for broken in ["1\n0\n", "0\n1\n", "0\n1\n0\n", "0\n1\n0 x\n", "0\n1\n-1 0\n", "0\n1\n0 0\n1 1\n"] {
            assert!(LeaderEpochs::parse(broken.as_bytes()).is_err(), "{broken:?}");
        }
        assert!(LeaderEpochs::parse(b"\xff").is_err());
    }

    #[test]
    fn assigning_an_epoch_removes_contradicting_entries() {
        let mut epochs = of(&[(0, 0), (2, 10), (3, 20)]);
        assert!(!epochs.assign(3, 25));
        assert!(epochs.assign(4, 20));
        assert_eq!(epochs, of(&[(0, 0), (2, 10), (4, 20)]));
        assert!(epochs.assign(1, 30));
        assert_eq!(epochs, of(&[(0, 0), (1, 30)]));
        assert!(epochs.assign(1, 5));
        assert_eq!(epochs, of(&[(0, 0), (1, 5)]));
    }

    #[test]
    fn the_end_of_an_epoch_is_the_start_of_the_next_one() {
        let epochs = of(&[(2, 10), (4, 20), (6, 30)]);
        for (epoch, expected) in [
            (-1, None),
            (0, Some((0, 10))),
            (2, Some((2, 20))),
            (3, Some((2, 20))),
            (5, Some((4, 30))),
            (6, Some((6, 44))),
            (7, None),
        ] {
            assert_eq!(epochs.end_offset_for(epoch, 44), expected, "{epoch}");
        }
        assert_eq!(LeaderEpochs::default().end_offset_for(0, 44), None);
    }

    #[test]
    fn the_history_is_truncated_at_both_ends() {
        let whole = of(&[(2, 10), (4, 20), (6, 30)]);
        for (offset, expected) in
            [(31, &[(2, 10), (4, 20), (6, 30)][..]), (30, &[(2, 10), (4, 20)]), (11, &[(2, 10)]), (10, &[])]
        {
            let mut epochs = whole.clone();
            assert_eq!(epochs.truncate_from_end(offset), expected.len() < 3);
            assert_eq!(epochs.entries(), expected, "{offset}");
        }
        for (offset, expected) in [
            (9, &[(2, 10), (4, 20), (6, 30)][..]),
            (10, &[(2, 10), (4, 20), (6, 30)]),
            (19, &[(2, 19), (4, 20), (6, 30)]),
            (20, &[(4, 20), (6, 30)]),
            (99, &[(6, 99)]),
        ] {
            let mut epochs = whole.clone();
            assert_eq!(epochs.truncate_from_start(offset), expected != whole.entries(), "{offset}");
            assert_eq!(epochs.entries(), expected, "{offset}");
        }
    }
}

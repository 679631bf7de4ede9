//! The leader epochs and their file.
//!
//! *Source*: `LeaderEpochFileCache`, `LeaderEpochCheckpointFile`, `CheckpointFile`.

use super::disk::{Contents, Disk};
use super::exception::{ExceptionKind, Step, Thrown};
use crate::record::BatchHeader;
use crate::state::checkpoint_file::WrongTextKind;
use crate::state::leader_epochs::{LEADER_EPOCH_CHECKPOINT, LeaderEpochs, STAGED_CHECKPOINT};

/// The largest file that is read, bytes.
const MAX_BYTES: usize = 16 << 20;

/// The history, and whether Kafka writes it.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    history: LeaderEpochs,
    /// A change that Kafka writes in the background.
    is_pending: bool,
}

impl Epochs {
    /// Reads the file, which is created empty if it does not exist.
    pub(super) fn read(disk: &mut Disk) -> Step<Self> {
        disk.refuse_directory(LEADER_EPOCH_CHECKPOINT, ExceptionKind::Storage)?;
        // written at the latest when the partition gets a leader
        disk.refuse_directory(STAGED_CHECKPOINT, ExceptionKind::Storage)?;
        if !disk.exists(LEADER_EPOCH_CHECKPOINT) {
            disk.put(LEADER_EPOCH_CHECKPOINT, Contents::made(Vec::new()));
        }
        let mut history = LeaderEpochs::default();
        let text = disk.reader(LEADER_EPOCH_CHECKPOINT)?;
        let text = text.map_or(Ok(Vec::new()), |mut reader| reader.read(0, MAX_BYTES).map(<[u8]>::to_vec))?;
        for (epoch, offset) in parse(&text)? {
            if epoch < 0 || offset < 0 {
                let reason = format!("expected an epoch and an offset, 0 or above, found {epoch} {offset}");
                return Err(thrown(ExceptionKind::IllegalArgument, reason));
            }
            history.assign(epoch, offset);
        }
        Ok(Self { history, is_pending: false })
    }

    pub(super) fn entries(&self) -> &[(i32, i64)] {
        self.history.entries()
    }

    /// Adds the epoch of a batch if it is above the latest one, and writes the file.
    pub(super) fn assign_of(&mut self, disk: &mut Disk, header: &BatchHeader) -> Step<()> {
        let epoch = header.leader_epoch;
        if epoch < 0 || self.history.latest().is_some_and(|latest| epoch <= latest) {
            return Ok(());
        }
        if header.base_offset < 0 {
            let reason = format!("a batch with epoch {epoch} and base offset {}", header.base_offset);
            return Err(thrown(ExceptionKind::IllegalArgument, reason));
        }
        self.history.assign(epoch, header.base_offset);
        self.write(disk);
        Ok(())
    }

    pub(super) fn truncate_from_end(&mut self, offset: i64) {
        if offset >= 0 {
            self.is_pending |= self.history.truncate_from_end(offset);
        }
    }

    /// Kafka writes the file also if this changes only the start of the first epoch to what it was.
    pub(super) fn truncate_from_start(&mut self, offset: i64) {
        self.is_pending |= self.history.entries().first().is_some_and(|(_, start)| *start <= offset);
        self.history.truncate_from_start(offset);
    }

    pub(super) fn clear(&mut self, disk: &mut Disk) {
        self.history.clear();
        self.write(disk);
    }

    /// Writes what Kafka writes in the background. False if that is nothing.
    pub(super) fn flush(&mut self, disk: &mut Disk) -> bool {
        let is_pending = std::mem::take(&mut self.is_pending);
        if is_pending {
            self.write(disk);
        }
        is_pending
    }

    fn write(&self, disk: &mut Disk) {
        disk.put(LEADER_EPOCH_CHECKPOINT, Contents::made(self.history.to_text().into_bytes()));
    }
}

fn thrown(kind: ExceptionKind, reason: impl Into<String>) -> Thrown {
    Thrown::kafka(kind, LEADER_EPOCH_CHECKPOINT, reason)
}

/// The lines of the file.
fn parse(text: &[u8]) -> Step<Vec<(i32, i64)>> {
    LeaderEpochs::parse_lines(text).map_err(|wrong| {
        let kind = match wrong.kind {
            WrongTextKind::Format => ExceptionKind::Storage,
            WrongTextKind::Count => ExceptionKind::IllegalArgument,
            WrongTextKind::Number => ExceptionKind::NumberFormat,
        };
        thrown(kind, wrong.found)
    })
}

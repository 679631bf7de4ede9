//! Bugs that tests can switch on in the writer, to show that the crash tests catch them.
//!
//! Each bug breaks one ordering rule at one place in the writer: `if seeded_bugs::is(SeededBug::AckBeforeFsync)`. Without the
//! feature `crash-disk`, [`is`] is constantly false and the bug is not compiled in.

/// A bug to switch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SeededBug {
    /// An append is acknowledged before its bytes are synced.
    AckBeforeFsync,
    /// A new file's name is treated as durable though the directory was not synced.
    NoDirectorySyncOnCreate,
    /// A renamed file's name is treated as durable though the directory was not synced.
    NoDirectorySyncOnRename,
    /// A removal is treated as durable though the directory was not synced.
    NoDirectorySyncOnDelete,
    /// A truncation removes the oldest segments first, and cuts before it lowers the recovery point.
    SwappedDeleteOrder,
    /// A new segment receives batches before the previous one is synced.
    NewSegmentBeforeOldFlush,
    /// The recovery point is written before the sync that it records.
    RecoveryPointBeforeFsync,
    /// The bytes of a short write after the end of the log are not cut off.
    NoTruncateAfterShortWrite,
    /// A failed sync is retried, and its success is trusted.
    FsyncRetriedAfterError,
    /// A batch whose length exceeds the rest of the file is treated as a clean end.
    LengthTrustedPastEnd,
    /// An empty checkpoint file is read as a checkpoint of zero.
    EmptyCheckpointIsZero,
    /// A clean marker is accepted if it exists, regardless of its contents.
    CleanMarkerByExistence,
    /// Index entries that are only in memory are treated as written.
    IndexEntriesNotWritten,
    /// Segments that are replaced together are published to readers one by one.
    SegmentsReplacedOneByOne,
    /// At a roll, the snapshot of the producers is put in place before the log is synced up to its offset.
    SnapshotBeforeLogSync,
    /// A roll takes no snapshot of the producers.
    NoSnapshotAtRoll,
    /// Snapshots that belong to no segment are not removed.
    StraySnapshotsKept,
    /// A batch that leaves out one sequence is accepted.
    SequenceLeftOut,
    /// Four batches of a producer are remembered, one too few.
    FourBatchesRemembered,
    /// A truncation keeps the producers of the batches that it removes.
    TruncatedProducersKept,
    /// If the batches of an append cannot be written, the transactions that they abort stay in the transaction index.
    AbortedTransactionsNotTakenBack,
    /// A transaction index is treated as durable though it was not synced.
    TransactionIndexNotSynced,
    /// The producer ids of names are treated as durable though the directory was not synced.
    ProducerIdsNotSynced,
    /// A commit is acknowledged as durable before its marker is synced.
    CommitAcknowledgedBeforeSync,
    /// A new transaction does not abort the open one of the same transactional id.
    OpenTransactionLeft,
    /// For compaction, the records of aborted transactions replace earlier ones of their keys.
    AbortedRecordsCount,
    /// Compaction removes the segments that it replaces before their replacement is committed.
    ReplacedBeforeCommit,
    /// Compaction keeps the first record of a key, and not the last.
    FirstRecordKept,
}

impl SeededBug {
    /// All bugs.
    pub const ALL: [Self; 28] = [
        Self::AckBeforeFsync,
        Self::NoDirectorySyncOnCreate,
        Self::NoDirectorySyncOnRename,
        Self::NoDirectorySyncOnDelete,
        Self::SwappedDeleteOrder,
        Self::NewSegmentBeforeOldFlush,
        Self::RecoveryPointBeforeFsync,
        Self::NoTruncateAfterShortWrite,
        Self::FsyncRetriedAfterError,
        Self::LengthTrustedPastEnd,
        Self::EmptyCheckpointIsZero,
        Self::CleanMarkerByExistence,
        Self::IndexEntriesNotWritten,
        Self::SegmentsReplacedOneByOne,
        Self::SnapshotBeforeLogSync,
        Self::NoSnapshotAtRoll,
        Self::StraySnapshotsKept,
        Self::SequenceLeftOut,
        Self::FourBatchesRemembered,
        Self::TruncatedProducersKept,
        Self::AbortedTransactionsNotTakenBack,
        Self::TransactionIndexNotSynced,
        Self::ProducerIdsNotSynced,
        Self::CommitAcknowledgedBeforeSync,
        Self::OpenTransactionLeft,
        Self::AbortedRecordsCount,
        Self::ReplacedBeforeCommit,
        Self::FirstRecordKept,
    ];
}

/// Whether a bug is switched on in the current thread.
#[cfg(not(feature = "crash-disk"))]
#[inline]
pub const fn is(_: SeededBug) -> bool {
    false
}

#[cfg(feature = "crash-disk")]
pub use switch::{is, seed};

#[cfg(feature = "crash-disk")]
mod switch {
    use std::cell::Cell;

    use super::SeededBug;

    thread_local! {
        static SEEDED: Cell<Option<SeededBug>> = const { Cell::new(None) };
    }

    /// Whether a bug is switched on in the current thread.
    #[inline]
    pub fn is(bug: SeededBug) -> bool {
        SEEDED.get() == Some(bug)
    }

    /// Switches a bug on in the current thread, instead of the previous one; `None`: no bug.
    pub fn seed(bug: Option<SeededBug>) {
        SEEDED.set(bug);
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_bug_is_seeded_in_one_thread_only() {
            seed(Some(SeededBug::AckBeforeFsync));
            assert!(is(SeededBug::AckBeforeFsync) && !is(SeededBug::CleanMarkerByExistence));
            std::thread::spawn(|| assert!(SeededBug::ALL.into_iter().all(|bug| !is(bug)))).join().unwrap();
            seed(None);
            assert!(SeededBug::ALL.into_iter().all(|bug| !is(bug)));
        }
    }
}

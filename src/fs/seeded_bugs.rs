//! Bugs that the writer can be asked to have, so that tests show that they would be found.
//!
//! Each is a mistake against one rule of order, made at one place of the writer: `if seeded_bugs::is(SeededBug::AckBeforeFsync)`.
//! Without the feature `crash-disk` [`is`] is constantly false and the mistake is compiled away.

/// A mistake to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SeededBug {
    /// An append is acknowledged before its bytes are synced.
    AckBeforeFsync,
    /// A new file's name is taken for durable though the directory was not synced.
    NoDirectorySyncOnCreate,
    /// A renamed file's name is taken for durable though the directory was not synced.
    NoDirectorySyncOnRename,
    /// A removed file's name is taken for gone though the directory was not synced.
    NoDirectorySyncOnDelete,
    /// A truncation removes the oldest segments first, and cuts before it lowers the recovery point.
    SwappedDeleteOrder,
    /// A new segment takes batches while the one before it is not yet synced.
    NewSegmentBeforeOldFlush,
    /// The recovery point is written before the sync that it speaks of.
    RecoveryPointBeforeFsync,
    /// What a short write left behind the end is not cut off.
    NoTruncateAfterShortWrite,
    /// A sync that failed is tried again, and its success believed.
    FsyncRetriedAfterError,
    /// A batch whose length points behind the end of the file is taken for a clean end.
    LengthTrustedPastEnd,
    /// An empty checkpoint file is read as one that says zero.
    EmptyCheckpointIsZero,
    /// A clean marker counts because it is there, whatever it says.
    CleanMarkerByExistence,
    /// Index entries that are only in memory are taken for written.
    IndexEntriesNotWritten,
    /// Segments that are replaced together are published to readers one by one.
    SegmentsReplacedOneByOne,
}

impl SeededBug {
    /// Every one of them.
    pub const ALL: [Self; 14] = [
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
    ];
}

/// Whether the current thread is asked to make a mistake.
#[cfg(not(feature = "crash-disk"))]
#[inline]
pub const fn is(_: SeededBug) -> bool {
    false
}

#[cfg(feature = "crash-disk")]
pub use asked::{is, plant};

#[cfg(feature = "crash-disk")]
mod asked {
    use std::cell::Cell;

    use super::SeededBug;

    thread_local! {
        static PLANTED: Cell<Option<SeededBug>> = const { Cell::new(None) };
    }

    /// Whether the current thread is asked to make a mistake.
    #[inline]
    pub fn is(mistake: SeededBug) -> bool {
        PLANTED.get() == Some(mistake)
    }

    /// Asks the current thread to make a mistake from now on, instead of any that it was asked for; `None`: none.
    pub fn plant(mistake: Option<SeededBug>) {
        PLANTED.set(mistake);
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_mistake_is_planted_in_one_thread_only() {
            plant(Some(SeededBug::AckBeforeFsync));
            assert!(is(SeededBug::AckBeforeFsync) && !is(SeededBug::CleanMarkerByExistence));
            std::thread::spawn(|| assert!(SeededBug::ALL.into_iter().all(|mistake| !is(mistake))))
                .join()
                .unwrap();
            plant(None);
            assert!(SeededBug::ALL.into_iter().all(|mistake| !is(mistake)));
        }
    }
}

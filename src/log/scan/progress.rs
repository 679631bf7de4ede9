//! What a reading of one or more scans has found so far.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{DamagedRange, LostGap, Scan, ScanStats, Uncommitted};
use crate::error::Result;
use crate::log::Log;

/// The progress of a reader so far; shared with the code that started it.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Mutex<State>>);

#[derive(Debug, Clone, Default)]
struct State {
    damaged_ranges: Vec<DamagedRange>,
    stats: ScanStats,
    /// The first of [`ScanStats::lost_gaps`].
    lost_gap: Option<LostGap>,
    /// The parts with records of transactions that are not known to be committed, in order.
    uncommitted: Vec<(Log, Uncommitted)>,
}

/// The part of a scan that a [`Progress`] contains already.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counted {
    damaged_ranges: usize,
    stats: ScanStats,
    /// The index of the scan in [`State::uncommitted`], once it is known.
    index: Option<usize>,
}

impl Progress {
    /// The maximum number of logs that are kept open for [`Progress::first_uncommitted`], but for those with
    /// an error.
    const MAX_LOGS: usize = 16;

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The damaged ranges that were skipped.
    pub fn damaged_ranges(&self) -> Vec<DamagedRange> {
        self.lock().damaged_ranges.clone()
    }

    /// The statistics of the scans.
    pub fn stats(&self) -> ScanStats {
        self.lock().stats
    }

    /// The first gap within a segment that nothing explains: none if damaged ranges were skipped, which
    /// explain missing offsets.
    #[cfg(feature = "plan")]
    pub(crate) fn unexplained_gap(&self) -> Option<LostGap> {
        let progress = self.lock();
        progress.lost_gap.clone().filter(|_| progress.damaged_ranges.is_empty())
    }

    /// The partition directory and the first returned offset of a transaction that was aborted or has not
    /// ended; see [`Scan::first_uncommitted`].
    ///
    /// # Errors
    /// Those of [`Scan::first_uncommitted`].
    pub fn first_uncommitted(&self) -> Result<Option<(PathBuf, i64)>> {
        let parts = self.lock().uncommitted.clone();
        for (log, uncommitted) in parts {
            if let Some(offset) = uncommitted.find(&log)? {
                return Ok(Some((log.path().to_owned(), offset)));
            }
        }
        Ok(None)
    }

    /// Adds what a scan has found since the last call. `counted` begins empty and belongs to this scan. Scans
    /// are read one after another.
    pub(crate) fn update(&self, scan: &Scan, counted: &mut Counted) {
        if counted.index.is_none() {
            self.decide_earlier();
        }
        let mut progress = self.lock();
        let (ranges, stats) = (scan.damaged_ranges(), scan.stats());
        progress.damaged_ranges.extend_from_slice(ranges.get(counted.damaged_ranges..).unwrap_or_default());
        progress.stats += stats - counted.stats;
        if progress.lost_gap.is_none() {
            progress.lost_gap.clone_from(&scan.lost_gap);
        }
        (counted.damaged_ranges, counted.stats) = (ranges.len(), stats);
        let index = *counted.index.get_or_insert(progress.uncommitted.len());
        progress.uncommitted.truncate(index);
        progress.uncommitted.extend(scan.uncommitted().map(|uncommitted| (scan.log().clone(), uncommitted)));
    }

    /// If many logs were read, forgets those in which all transactions are committed, and those after one in
    /// which one is not: the others keep their logs open.
    fn decide_earlier(&self) {
        if self.lock().uncommitted.len() < Self::MAX_LOGS {
            return;
        }
        // without the lock: a search reads, and may run Python
        let parts = std::mem::take(&mut self.lock().uncommitted);
        let mut kept = Vec::new();
        for (log, uncommitted) in parts {
            let found = uncommitted.clone().find(&log);
            if !matches!(found, Ok(None)) {
                kept.push((log, uncommitted));
            }
            if matches!(found, Ok(Some(_))) {
                break;
            }
        }
        kept.append(&mut self.lock().uncommitted);
        self.lock().uncommitted = kept;
    }

    /// Adds the progress of a reader of the part that follows.
    #[cfg(feature = "arrow")]
    pub(crate) fn merge(&self, other: &Self) {
        self.decide_earlier();
        let other = std::mem::take(&mut *other.lock());
        let mut progress = self.lock();
        progress.damaged_ranges.extend(other.damaged_ranges);
        progress.stats += other.stats;
        progress.lost_gap = progress.lost_gap.take().or(other.lost_gap);
        progress.uncommitted.extend(other.uncommitted);
    }
}

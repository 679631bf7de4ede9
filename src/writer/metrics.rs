//! What a writer has done, for monitoring.

use std::time::Duration;

use crate::record::BatchHeader;

/// What a writer has done since it was opened. The counts only grow; rates and mean times are from the
/// difference of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct WriterMetrics {
    /// Writes to the log: one for each batch that the writer builds, one for a call that appends raw
    /// batches, one for each marker.
    pub appends: u64,
    /// Records in the log by these, with markers. Duplicates are not written.
    pub records: u64,
    /// The bytes of their batches.
    pub bytes: u64,
    /// The time of these writes, with rolls and without flushes, ns.
    pub append_ns: u64,
    /// The longest one, ns.
    pub max_append_ns: u64,
    /// Flushes of the active segment that appends and [`LogWriter::flush`](super::LogWriter::flush) made.
    /// Several appends share one.
    pub flushes: u64,
    /// Their time, ns.
    pub flush_ns: u64,
    /// The longest one, ns.
    pub max_flush_ns: u64,
    /// New segments.
    pub rolls: u64,
    /// The number of segments now.
    pub segments: u64,
}

impl WriterMetrics {
    pub(super) fn appended(&mut self, headers: &[BatchHeader], bytes: usize, time: Duration) {
        let records = |header: &BatchHeader| header.count.and_then(|count| u64::try_from(count).ok());
        self.appends += 1;
        self.records += headers.iter().filter_map(records).sum::<u64>();
        self.bytes += bytes as u64;
        note(time, &mut self.append_ns, &mut self.max_append_ns);
    }

    pub(super) fn flushed(&mut self, time: Duration) {
        self.flushes += 1;
        note(time, &mut self.flush_ns, &mut self.max_flush_ns);
    }
}

fn note(time: Duration, total: &mut u64, longest: &mut u64) {
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    *total = total.saturating_add(ns);
    *longest = ns.max(*longest);
}

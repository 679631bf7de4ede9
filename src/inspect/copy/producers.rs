//! The producers of a copy: entries of the transaction index, and snapshots.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::index::AbortedTransaction;
use crate::log::{Log, OnDamage, Ranges, ScanOptions, ScanStep};
use crate::record::BatchHeader;
use crate::record::control::ControlType;
use crate::state::producers::{
    ProducerReplay, ProducerSnapshot, ProducerStates, ReplayedBatch, snapshot_files,
};

/// The states of the producers while batches are copied.
///
/// They come from the source: a producer of a range has the state that its batches before the range gave it,
/// and a transaction that began before the range has its first offset there, as after a deletion of the
/// records before the range.
#[derive(Debug)]
pub(super) struct Producers {
    replay: ProducerReplay,
    /// The snapshots of the source, by their offsets.
    snapshots: BTreeMap<i64, String>,
    /// Whether the log has not contradicted itself so far.
    is_consistent: bool,
}

impl Producers {
    /// The states before the batch at `start`, from the last snapshot of the source before it and the batches
    /// between the two.
    pub(super) fn before(log: &Log, start: i64) -> Result<Self> {
        let mut snapshots = snapshot_files::list(log.directory())?;
        // one above the last segment is at the end of a log that may have grown since
        let last = log.segments().last().map_or(start, |last| last.base_offset());
        snapshots.retain(|offset, _| *offset <= last);
        let first = log.segments().first().map_or(start, |first| first.base_offset());
        let mut producers = Self { replay: ProducerReplay::default(), snapshots, is_consistent: true };
        let mut from = first;
        for offset in producers.snapshots.range(..=start).rev().map(|(offset, _)| *offset).collect::<Vec<_>>()
        {
            if let Some((snapshot, _)) = producers.read_snapshot(log, offset)? {
                producers.replay.states = ProducerStates::from_snapshot(&snapshot);
                from = offset.max(first);
                break;
            }
        }
        if from < start {
            producers.read(log, from, start)?;
        }
        Ok(producers)
    }

    /// Adds the batches of the source before `end`.
    fn read(&mut self, log: &Log, start: i64, end: i64) -> Result<()> {
        let ranges = Ranges { start_offset: Some(start), end_offset: Some(end), ..Ranges::default() };
        let options =
            ScanOptions { ranges, batches_only: true, on_damage: OnDamage::Skip, ..ScanOptions::default() };
        let mut scan = log.scan(options)?;
        while let Some(step) = scan.next_step()? {
            if let ScanStep::Batch(batch) = step {
                self.append(&batch.header, scan.batch_bytes()?, None);
            }
        }
        Ok(())
    }

    /// Adds a batch. Returns the transaction that it aborts, for the transaction index. `recorded`: the entry
    /// that the source has for the marker at this offset.
    pub(super) fn append(
        &mut self,
        header: &BatchHeader,
        bytes: &[u8],
        recorded: Option<AbortedTransaction>,
    ) -> Option<AbortedTransaction> {
        if header.producer_id < 0 {
            return None;
        }
        let producer = self.replay.states.get(header.producer_id);
        let last_data = producer.and_then(|producer| producer.last_batch()).map(|batch| batch.last_offset);
        match self.replay.add(header, bytes) {
            Ok(ReplayedBatch { ended: Some(ended), .. }) => ended.aborted(),
            // compaction has removed the records of the transaction, and keeps its entry
            Ok(ReplayedBatch { marker: Some(marker), .. }) if marker.control_type == ControlType::Abort => {
                recorded.filter(|entry| {
                    entry.producer_id == header.producer_id
                        && last_data.is_none_or(|last| last < entry.first_offset)
                })
            }
            Ok(_) => None,
            Err(_) => {
                // left out batches, or a log that Kafka does not load either: it rebuilds the states, if it
                // can
                self.is_consistent = false;
                None
            }
        }
    }

    /// The number of open transactions.
    pub(super) fn open_transactions(&self) -> u64 {
        self.replay.states.iter().filter(|producer| producer.open_transaction.is_some()).count() as u64
    }

    /// The bytes of the snapshot at an offset: the source's, where it has one. `None` if the log has no
    /// producers and the source has no snapshot, or if the log contradicts itself. `is_first`: at the
    /// start of the copy, where none is needed if there are no producers.
    pub(super) fn snapshot(&mut self, log: &Log, offset: i64, is_first: bool) -> Result<Option<Vec<u8>>> {
        if let Some((snapshot, bytes)) = self.read_snapshot(log, offset)? {
            // without producers that have expired since
            self.replay.states = ProducerStates::from_snapshot(&snapshot);
            self.is_consistent = true;
            return Ok(Some(bytes));
        }
        let is_needed = !self.replay.states.is_empty() || !is_first && !self.snapshots.is_empty();
        Ok((self.is_consistent && is_needed).then(|| self.replay.states.encode()))
    }

    /// A valid snapshot of the source, and its bytes.
    fn read_snapshot(&self, log: &Log, offset: i64) -> Result<Option<(ProducerSnapshot, Vec<u8>)>> {
        let Some(name) = self.snapshots.get(&offset) else { return Ok(None) };
        let Some(file) = snapshot_files::read(log.directory(), name)? else { return Ok(None) };
        Ok(file.decoded.ok().map(|snapshot| (snapshot, file.bytes)))
    }
}

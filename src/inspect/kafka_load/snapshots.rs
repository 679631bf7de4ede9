//! The producers of the log, and their snapshots in the directory.
//!
//! Producer ids do not expire here: the plan does not depend on the time of day.
//!
//! *Source*: `ProducerStateManager`, `UnifiedLog.rebuildProducerState`.

use std::collections::BTreeMap;
use std::ops::Range;

use super::action::{ActionKind, ActionReason};
use super::disk::{Contents, Disk};
use super::exception::{ExceptionKind, Step, Thrown};
use super::run::{Run, Segments, offset_in};
use super::segment::file_name;
use crate::fs::names::{FileKind, Stage};
use crate::state::producers::snapshot::{ENTRIES, ENTRY, have_same_entries};
use crate::state::producers::{
    ProducerReplay, ProducerSnapshot, ProducerStates, RebuiltProducers, RebuiltSegments, SnapshotStore,
    WhyRemoved,
};

/// Producers, and the names of the snapshots that this object of Kafka's knows of.
pub(super) type Snapshots = RebuiltProducers<String>;

/// With the snapshots that are in the directory, and without producers.
pub(super) fn list(disk: &Disk) -> Step<Snapshots> {
    Ok(RebuiltProducers::new(list_files(disk)?))
}

/// Renames the snapshot of a removed segment to `.deleted`.
pub(super) fn mark_deleted(snapshots: &mut Snapshots, run: &mut Run, offset: i64, reason: ActionReason) {
    if let Some(name) = snapshots.snapshots.remove(&offset) {
        run.delete_later(&name, reason);
    }
}

/// Removes the snapshots that belong to no segment, also those that this object does not know of.
pub(super) fn remove_stray(snapshots: &mut Snapshots, run: &mut Run, bases: &[i64]) -> Step<()> {
    snapshots.snapshots = list_files(&run.disk)?;
    snapshots.remove_strays(run, bases);
    Ok(())
}

/// Forgets everything, and removes all snapshots.
pub(super) fn start_at(snapshots: &mut Snapshots, run: &mut Run, offset: i64) {
    for name in std::mem::take(&mut snapshots.snapshots).into_values() {
        run.delete(&name, ActionReason::BelowLogStart);
    }
    *snapshots = Snapshots { map_end: offset, ..RebuiltProducers::new(BTreeMap::new()) };
}

impl SnapshotStore for Run<'_> {
    type Snapshot = String;
    type Error = Thrown;

    fn read(&mut self, _: i64, name: &String) -> Step<Option<ProducerSnapshot>> {
        Ok(ProducerSnapshot::decode(&whole(&self.disk, name)?).ok())
    }

    /// Kafka writes over a file that exists, and does not shorten it.
    fn take(
        &mut self,
        offset: i64,
        states: &ProducerStates,
        snapshots: &mut BTreeMap<i64, String>,
    ) -> Step<()> {
        let name = file_name(offset, FileKind::Snapshot, Stage::Live);
        self.disk.refuse_directory(&name, ExceptionKind::Io)?;
        let mut bytes = states.encode();
        if let Some(mut before) = self.disk.reader(&name)? {
            let kept = before.size().saturating_sub(bytes.len() as u64);
            let rest = before.read(bytes.len() as u64, usize::try_from(kept).unwrap_or(usize::MAX))?;
            bytes.extend_from_slice(rest);
            let old = before.read(0, bytes.len())?;
            if have_same_entries(old, &bytes) {
                // in Kafka's order
                bytes.copy_from_slice(old);
            }
        }
        self.disk.put(&name, Contents::made(bytes));
        self.act(ActionKind::Write, &name, ActionReason::Producers)?;
        snapshots.insert(offset, name);
        Ok(())
    }

    fn remove(&mut self, name: String, why: WhyRemoved) {
        let reason = match why {
            WhyRemoved::OutOfRange => ActionReason::SnapshotOutOfRange,
            WhyRemoved::Invalid => ActionReason::CorruptSnapshot,
            WhyRemoved::Stray => ActionReason::StraySnapshot,
        };
        self.delete(&name, reason);
    }
}

impl RebuiltSegments<Run<'_>> for Segments {
    fn last_bases(&self) -> Vec<i64> {
        let mut last: Vec<_> = self.bases().rev().take(2).collect();
        last.reverse();
        last
    }

    fn between(&self, offsets: Range<i64>) -> Step<Vec<i64>> {
        Self::between(self, offsets.start, offsets.end)
    }

    /// Checksums are not checked.
    fn add(
        &mut self,
        run: &mut Run<'_>,
        producers: &mut ProducerReplay,
        base_offset: i64,
        offsets: Range<i64>,
    ) -> Step<()> {
        let has_last = self.floor(offsets.end) == Some(base_offset);
        let Some(segment) = self.get_mut(base_offset) else { return Ok(()) };
        let mut end = segment.log_size;
        if has_last && let Some(found) = segment.translate(&mut run.disk, offsets.end)? {
            end = found.position;
        }
        let Some(first) = segment.translate(&mut run.disk, offsets.start)? else { return Ok(()) };
        let mut batches = segment.batches(&run.disk)?;
        if end < first.position {
            let Range { start, end } = offsets;
            let reason = format!("offset {end} is before offset {start} in the file");
            return Err(batches.thrown(ExceptionKind::IllegalArgument, reason));
        }
        batches.limit(end);
        let mut position = first.position;
        producers.add_at_once(|producers| {
            while let Some(batch) = batches.at(position)? {
                run.interrupt.check()?;
                if batch.magic >= 2 {
                    let header = batches.header(&batch)?;
                    batches.add_to(producers, &batch, &header)?;
                }
                position = batch.end();
            }
            Ok(())
        })
    }
}

/// All bytes of a snapshot.
fn whole(disk: &Disk, name: &str) -> Step<Vec<u8>> {
    let mut bytes = disk.bytes(name)?.unwrap_or_default();
    let size = usize::try_from(disk.size(name).unwrap_or(0)).unwrap_or(usize::MAX);
    // the bytes are without the zeros at the end. A file of zeros beyond any snapshot is not one: its
    // checksum is wrong
    bytes.resize(size.min(bytes.len() + (1 << 20)), 0);
    Ok(bytes)
}

/// Whether a file is a snapshot of several producers. Their order in Kafka's file is that of a hash map.
pub(super) fn is_of_several_producers(name: &str, size: u64) -> bool {
    name.ends_with(FileKind::Snapshot.suffix()) && size > (ENTRIES + ENTRY) as u64
}

fn list_files(disk: &Disk) -> Step<BTreeMap<i64, String>> {
    let mut files = BTreeMap::new();
    for name in disk.names() {
        if name.ends_with(FileKind::Snapshot.suffix()) {
            files.insert(offset_in(&name)?, name);
        }
    }
    Ok(files)
}

/// The exception of a segment range that ends before it starts.
pub(super) fn reversed(from: i64, to: i64) -> Thrown {
    let reason = format!("a range of segments from offset {from} to offset {to}");
    Thrown::kafka(ExceptionKind::IllegalArgument, "", reason)
}

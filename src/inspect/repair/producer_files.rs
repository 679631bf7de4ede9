//! Transaction indexes and snapshots, compared with what the batches say after the repair.
//!
//! A file that a change of the log affects has to be what the batches give, byte for byte: the transaction
//! index of a segment at or after the change, and a snapshot at an offset above it. Other files are left
//! alone unless they are damaged or an entry of a transaction index contradicts the ABORT markers: a broker
//! forgets idle producers, and a compaction leaves entries of transactions without records.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::contents::Contents;
use super::decide::Target;
use super::leftovers::Leftovers;
use super::repair_plan::RepairActionKind;
use crate::error::{Error, Result};
use crate::fs::names::{FileKind, segment_file};
use crate::fs::{Directory, FileBytes, Staged};
use crate::index::{AbortedTransaction, TransactionIndex};
use crate::inspect::rebuild::{FromProducers, ProducerFilesReplay, is_empty_snapshot};
use crate::log::Log;
use crate::record::control::ControlType;
use crate::segment::{LogFile, SCAN_READ};
use crate::state::producers::snapshot::have_same_entries;
use crate::state::producers::snapshot_files::{self, read_valid, snapshot_name};
use crate::state::producers::{ProducerReplay, ProducerStates};

/// A segment as it is after the repair.
#[derive(Debug)]
pub(super) struct KeptSegment {
    pub(super) base_offset: i64,
    /// The base offset of the next segment; `i64::MAX` if there is none.
    pub(super) upper: i64,
    /// The offset after its last batch.
    pub(super) end_offset: i64,
    pub(super) has_producers: bool,
    pub(super) contents: Contents,
}

/// The transaction indexes and snapshots that are replaced or removed.
#[derive(Debug, Default)]
pub(super) struct ProducerFiles {
    kept: Vec<KeptSegment>,
    /// The offsets of the snapshots that are derived, ascending.
    wanted: BTreeSet<i64>,
    /// The names of the files that are replaced.
    replaced: HashSet<String>,
    removed: Vec<String>,
}

/// A file that does not match the batches.
#[derive(Debug)]
pub(super) struct Stale {
    pub(super) kind: RepairActionKind,
    /// The name after the repair.
    pub(super) name: String,
    /// The present name; `None` if there is no file.
    pub(super) present: Option<String>,
    pub(super) reason: &'static str,
}

/// An ABORT marker: its producer and its offset.
type Abort = (i64, i64);

/// The first offset from which on a repair changes batches; `None` if it changes none.
pub(super) fn first_change(targets: &[Target]) -> Option<i64> {
    let change = |target: &Target| {
        let of_taken = target.taken.iter().filter_map(|taken| match (taken.kind, taken.lost) {
            (
                RepairActionKind::CorrectHeader
                | RepairActionKind::CorrectMarker
                | RepairActionKind::MoveBatch,
                _,
            ) => Some(target.survey.base_offset()),
            (_, lost) => lost.map(|(start_offset, _)| start_offset),
        });
        of_taken.min()
    };
    targets.iter().filter_map(change).min()
}

impl ProducerFiles {
    /// Compares the files of a directory. `first_change`: the first offset from which on the repair changes
    /// batches; `end_offset`: the log end offset after it.
    pub(super) fn plan(
        directory: &Directory,
        log: &Log,
        leftovers: &Leftovers,
        kept: Vec<KeptSegment>,
        first_change: Option<i64>,
        end_offset: i64,
    ) -> Result<(Self, Vec<Stale>)> {
        let first = kept.first().map_or(0, |segment| segment.base_offset);
        let is_changed = |offset: i64| first_change.is_some_and(|change| offset > change);
        let mut existing = existing_snapshots(directory, leftovers)?;
        let mut stale = Vec::new();
        let mut wanted = BTreeSet::new();
        for (offset, present) in &existing {
            let is_damaged = read_valid(directory, present)?.is_none();
            let is_inside = (first + 1..=end_offset).contains(offset);
            match (is_damaged, is_changed(*offset)) {
                (true, _) | (_, true) if is_inside => {
                    wanted.insert(*offset);
                }
                (true, _) => stale.push(Stale::removed(*offset, present, "the snapshot is damaged")),
                (_, true) if *offset > end_offset => {
                    stale.push(Stale::removed(
                        *offset,
                        present,
                        "it is as of an offset above the end of the log",
                    ));
                }
                _ => {}
            }
        }
        if first_change.is_some() {
            let bases = kept.iter().map(|segment| segment.base_offset).filter(|base| is_changed(*base));
            wanted
                .extend(bases.chain([end_offset]).filter(|offset| (first + 1..=end_offset).contains(offset)));
        }
        existing.retain(|offset, _| wanted.contains(offset));
        let mut files = Self { kept, wanted, ..Self::default() };
        files.for_each(directory, log, |segment, derived, aborts| {
            let present =
                leftovers.present_name(directory, segment.base_offset, FileKind::TransactionIndex)?;
            let new = &derived.transaction_index;
            let is_changed = is_changed(segment.upper);
            if let Some(reason) =
                stale_index(directory, segment, present.as_deref(), new, aborts, is_changed)?
            {
                let name = segment_file(segment.base_offset, FileKind::TransactionIndex);
                stale.push(Stale { kind: RepairActionKind::Rebuild, name, present, reason });
            }
            for (offset, new) in &derived.snapshots {
                stale.extend(stale_snapshot(directory, *offset, existing.remove(offset), new.as_deref())?);
            }
            Ok(())
        })?;
        // snapshots after a contradiction between batches: a broker does not load such a log, and they were
        // derived from another
        stale.extend(existing.iter().map(|(offset, present)| {
            Stale::removed(*offset, present, "the transactions in the log contradict each other before it")
        }));
        for Stale { kind, name, .. } in &stale {
            match kind {
                RepairActionKind::RemoveFile => files.removed.push(name.clone()),
                _ => {
                    files.replaced.insert(name.clone());
                }
            }
        }
        Ok((files, stale))
    }

    /// Writes the new files under staged names.
    pub(super) fn stage(&self, directory: &Directory, log: &Log) -> Result<Vec<Staged>> {
        let mut staged = Vec::new();
        if self.replaced.is_empty() {
            return Ok(staged);
        }
        self.for_each(directory, log, |segment, derived, _| {
            let index = segment_file(segment.base_offset, FileKind::TransactionIndex);
            if self.replaced.contains(&index) {
                staged.push(directory.stage(&index, &derived.transaction_index)?);
            }
            for (offset, bytes) in &derived.snapshots {
                let name = snapshot_name(*offset);
                if let Some(bytes) = bytes.as_ref().filter(|_| self.replaced.contains(&name)) {
                    staged.push(directory.stage(&name, bytes)?);
                }
            }
            Ok(())
        })?;
        Ok(staged)
    }

    /// Puts the new files in place and removes the others, durably.
    pub(super) fn put(&self, directory: &Directory, staged: Vec<Staged>) -> Result<()> {
        staged.into_iter().try_for_each(Staged::put)?;
        if self.removed.is_empty() {
            return Ok(());
        }
        self.removed.iter().try_for_each(|name| directory.remove(name))?;
        directory.sync()
    }

    /// Calls a function with what each segment has from its producers, in the order of the log. Ends at the
    /// first batch that contradicts the batches before it.
    fn for_each(
        &self,
        directory: &Directory,
        log: &Log,
        mut each: impl FnMut(&KeptSegment, &FromProducers, &HashSet<Abort>) -> Result<()>,
    ) -> Result<()> {
        let Some(first) = self.kept.first() else { return Ok(()) };
        let before = read_valid(directory, &snapshot_name(first.base_offset))?;
        let states =
            before.map_or_else(ProducerStates::default, |before| ProducerStates::from_snapshot(&before));
        let mut replay = ProducerFilesReplay::new(states, self.wanted.iter().copied().collect());
        for segment in &self.kept {
            let mut aborts = HashSet::new();
            if segment.has_producers || replay.has_snapshot_below(segment.end_offset) {
                let Some(own) = log.segments().floor(segment.base_offset) else { return Ok(()) };
                if !segment.replay(&mut own.log_file(SCAN_READ)?, &mut replay, &mut aborts)? {
                    return Ok(());
                }
            }
            each(segment, &replay.end_segment(segment.upper), &aborts)?;
        }
        Ok(())
    }
}

impl KeptSegment {
    /// Replays its batches; `false` if one contradicts those before it.
    fn replay(
        &self,
        log: &mut LogFile,
        replay: &mut ProducerFilesReplay,
        aborts: &mut HashSet<Abort>,
    ) -> Result<bool> {
        let mut is_right = true;
        self.contents.for_each_batch_with_bytes(log, ProducerReplay::needs_bytes, |batch, _, bytes| {
            let header = &batch.header;
            if !is_right {
                return Ok(());
            }
            let added = replay.add_header(header, bytes);
            is_right = added.is_ok();
            let marker = added.ok().and_then(|added| added.marker);
            if marker.is_some_and(|marker| marker.control_type == ControlType::Abort) {
                aborts.insert((header.producer_id, header.base_offset));
            }
            Ok(())
        })?;
        Ok(is_right)
    }
}

impl Stale {
    fn removed(offset: i64, present: &str, reason: &'static str) -> Self {
        let name = snapshot_name(offset);
        Self { kind: RepairActionKind::RemoveFile, name, present: Some(present.to_owned()), reason }
    }
}

/// The snapshots that exist when the replacement is finished: their offsets, and their present names.
fn existing_snapshots(directory: &Directory, leftovers: &Leftovers) -> Result<BTreeMap<i64, String>> {
    let mut found = snapshot_files::list(directory)?;
    found.retain(|offset, name| {
        *name == snapshot_name(*offset) && !leftovers.replaced.iter().any(|file| file.name == *name)
    });
    let committed = leftovers.replacement.committed.iter();
    found.extend(
        committed
            .filter(|file| file.parsed.kind == FileKind::Snapshot)
            .map(|file| (file.parsed.base_offset, file.name.clone())),
    );
    Ok(found)
}

/// A snapshot that is not what the batches give. `new`: `None` for an offset inside a batch.
fn stale_snapshot(
    directory: &Directory,
    offset: i64,
    present: Option<String>,
    new: Option<&[u8]>,
) -> Result<Option<Stale>> {
    let rebuilt = |present, reason| {
        let name = snapshot_name(offset);
        Some(Stale { kind: RepairActionKind::Rebuild, name, present, reason })
    };
    let (present, new) = match (present, new) {
        // a broker needs none of no producer
        (None, new) => {
            return Ok(new.filter(|new| !is_empty_snapshot(new)).and_then(|_| rebuilt(None, MISSING)));
        }
        (Some(present), None) => {
            let reason = "it is as of an offset inside a batch";
            return Ok(Some(Stale::removed(offset, &present, reason)));
        }
        (Some(present), Some(new)) => (present, new),
    };
    let bytes = of_size(directory, &present, new.len())?;
    if bytes.is_some_and(|bytes| bytes == new || have_same_entries(&bytes, new)) {
        return Ok(None);
    }
    Ok(rebuilt(Some(present), "its producers are not those of the log"))
}

const MISSING: &str = "the file is missing";

/// Why the transaction index of a segment is replaced; `None` if it is not. `new`: the one that the batches
/// give; `aborts`: the ABORT markers of the segment.
fn stale_index(
    directory: &Directory,
    segment: &KeptSegment,
    present: Option<&str>,
    new: &[u8],
    aborts: &HashSet<Abort>,
    is_changed: bool,
) -> Result<Option<&'static str>> {
    let Some(present) = present else { return Ok((!new.is_empty()).then_some(MISSING)) };
    if of_size(directory, present, new.len())?.is_some_and(|bytes| bytes == new) {
        return Ok(None);
    }
    let size = directory.identity_of(present)?.map_or(0, |file| file.size);
    // each entry has a marker, which is longer
    if is_changed || size > segment.contents.size() {
        return Ok(Some("its entries do not match the batches"));
    }
    let entry_size = AbortedTransaction::BYTES as u64;
    if !size.is_multiple_of(entry_size) {
        return Ok(Some("its last entry is incomplete"));
    }
    let bytes = FileBytes::new(directory.open_file(present)?, None, false)?;
    let index = TransactionIndex::from_bytes(bytes, segment.base_offset);
    let mut found = HashSet::new();
    for entry in index.iter() {
        match entry {
            Ok(entry) => found.insert((entry.producer_id, entry.last_offset)),
            Err(Error::Corrupt { .. } | Error::UnsupportedFormat { .. }) => {
                return Ok(Some("an entry is damaged"));
            }
            Err(error) => return Err(error),
        };
    }
    if !found.is_subset(aborts) {
        return Ok(Some("an entry has no ABORT marker in the log"));
    }
    let (entries, _) = new.as_chunks::<{ AbortedTransaction::BYTES }>();
    let mut entries = entries.iter().map(AbortedTransaction::fields_of);
    let is_complete = entries.all(|entry| found.contains(&(entry.producer_id, entry.last_offset)));
    Ok((!is_complete).then_some("an aborted transaction has no entry"))
}

/// The bytes of a file that has exactly this size.
fn of_size(directory: &Directory, name: &str, size: usize) -> Result<Option<Vec<u8>>> {
    let size = size as u64;
    let is_of_size = directory.identity_of(name)?.is_some_and(|file| file.size == size);
    if is_of_size { directory.read_small(name, size) } else { Ok(None) }
}

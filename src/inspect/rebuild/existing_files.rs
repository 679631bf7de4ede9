//! The derived files in a directory, compared with those that the `.log` files give.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{DerivedFile, FileState};
use crate::error::{Error, Result};
use crate::fs::FileBytes;
use crate::fs::names::{FileKind, SegmentFileName, Stage};
use crate::index::{OffsetIndex, TimeIndex, TransactionIndex};
use crate::log::Log;
use crate::state::checkpoint::CHECKPOINT;
use crate::state::producers::snapshot::have_same_entries;
use crate::state::producers::snapshot_files::{self, read_valid, snapshot_name};
use crate::state::producers::{ProducerEntry, ProducerSnapshot, ProducerStates};

/// The largest file that Kafka opens, bytes. A larger one is not read.
const MAX_SIZE: u64 = i32::MAX as u64;

/// The derived files of some segments.
#[derive(Debug)]
pub(super) struct ExistingFiles<'a> {
    log: &'a Log,
    /// The base offsets of all segments, ascending.
    bases: Vec<i64>,
    /// The base offsets of the segments whose files are compared.
    selected: BTreeSet<i64>,
    /// The offsets of the snapshots in the directory, ascending.
    snapshots: Vec<i64>,
    /// The offset up to which there may be snapshots.
    end: i64,
    /// Whether missing snapshots of no producer are not reported: a `LogWriter` writes none, and a broker
    /// needs none.
    has_no_snapshots: bool,
}

impl<'a> ExistingFiles<'a> {
    /// Lists the directory. `segments`: base offsets; `None`: all.
    ///
    /// # Errors
    /// [`Error::Config`] for a segment that the log does not have; [`Error::Io`].
    pub(super) fn of(log: &'a Log, segments: Option<&[i64]>) -> Result<Self> {
        let bases: Vec<_> = log.segments().iter().map(|segment| segment.base_offset()).collect();
        let selected: BTreeSet<_> = segments.unwrap_or(&bases).iter().copied().collect();
        if let Some(unknown) = selected.iter().find(|base| bases.binary_search(base).is_err()) {
            let expected = "base offsets of segments of the log";
            return Err(Error::config("segments", expected, unknown.to_string()));
        }
        let directory = log.directory();
        let mut names = directory.list_until_stable(snapshot_files::list)?;
        names.retain(|offset, name| *name == snapshot_name(*offset));
        let snapshots: Vec<_> = names.into_keys().collect();
        // whatever it contains: a damaged one is no reason to leave damaged indexes as they are
        let has_no_snapshots = snapshots.is_empty() && directory.identity_of(CHECKPOINT)?.is_some();
        let end = end_of_snapshots(log, snapshots.last().copied())?;
        Ok(Self { log, bases, selected, snapshots, end, has_no_snapshots })
    }

    fn first_base_offset(&self) -> i64 {
        self.bases.first().copied().unwrap_or(0)
    }

    /// The base offset of the last segment whose files are compared.
    pub(super) fn last_selected(&self) -> i64 {
        // the snapshot with the base offset of a segment is taken at the end of the one before
        self.selected.last().copied().unwrap_or(-1)
    }

    /// Whether a file is compared: whether it belongs to a selected segment. A snapshot belongs to the
    /// segment with its offset.
    fn is_selected(&self, name: SegmentFileName) -> bool {
        let at = self.bases.partition_point(|base| *base <= name.base_offset);
        let owner = self.bases.get(at.saturating_sub(1));
        owner.is_some_and(|owner| self.selected.contains(owner))
    }

    /// The offsets of the snapshots that are derived, ascending: a broker's, at the start of each segment but
    /// the first and at the end of the log, and those of the snapshots in the directory.
    pub(super) fn snapshot_offsets(&self) -> Result<Vec<i64>> {
        let end = self.log.segments().last().map_or(Ok(0), |last| last.end_offset())?;
        let offsets: BTreeSet<_> = self.bases.iter().chain(&self.snapshots).copied().chain([end]).collect();
        // a snapshot above the end is not a state of this log
        Ok(offsets
            .into_iter()
            .filter(|offset| *offset > self.first_base_offset() && *offset <= end)
            .collect())
    }

    /// The producers before the first segment: none, or the producers of the snapshot at its base offset.
    pub(super) fn producers_before(&self) -> Result<ProducerStates> {
        let snapshot = self.snapshot(self.first_base_offset())?;
        Ok(snapshot.map_or_else(ProducerStates::default, |snapshot| ProducerStates::from_snapshot(&snapshot)))
    }

    /// The snapshots that are removed because nothing can be in their place: the snapshots below the first
    /// segment and above the end of the log, and a damaged one at the base offset of the first segment.
    pub(super) fn unusable_snapshots(&self) -> Result<Vec<DerivedFile>> {
        let mut found = Vec::new();
        let first = self.first_base_offset();
        for offset in self.snapshots.iter().copied().filter(|offset| *offset <= first || *offset > self.end) {
            let name = name_of(offset);
            let state = if offset == first { FileState::Damaged } else { FileState::Stray };
            if !self.is_selected(name) || state == FileState::Damaged && self.snapshot(offset)?.is_some() {
                continue;
            }
            found.extend(self.removed(name, state)?);
        }
        Ok(found)
    }

    /// The file, compared with the contents that the `.log` gives; `None` if it is not reported. Contents of
    /// `None`: there can be no such file.
    pub(super) fn compare(
        &self,
        name: SegmentFileName,
        contents: Option<&[u8]>,
    ) -> Result<Option<DerivedFile>> {
        if !self.is_selected(name) {
            return Ok(None);
        }
        let Some(contents) = contents else { return self.removed(name, FileState::Stray) };
        let directory = self.log.directory();
        let new_size = contents.len() as u64;
        let of = |state, old_size, first_difference| DerivedFile {
            file: directory.path_of(&name.to_string()),
            state,
            old_size,
            new_size: Some(new_size),
            first_difference,
            quarantine: None,
        };
        let Some(old_size) = directory.identity_of(&name.to_string())?.map(|file| file.size) else {
            let is_expected = match name.kind {
                FileKind::TransactionIndex => contents.is_empty(),
                FileKind::Snapshot => self.has_no_snapshots && is_empty_snapshot(contents),
                _ => false,
            };
            return Ok((!is_expected).then(|| of(FileState::Missing, None, None)));
        };
        let shared = usize::try_from(old_size.min(new_size)).unwrap_or(usize::MAX);
        let mut found = vec![0; shared];
        directory.open_file(&name.to_string())?.read_exact_at(0, &mut found)?;
        let is_same_set = name.kind == FileKind::Snapshot && have_same_entries(&found, contents);
        let differs = || found.iter().zip(contents).position(|(old, new)| old != new);
        let difference = if is_same_set { None } else { differs() };
        let state = match difference {
            None if old_size == new_size => FileState::Unchanged,
            None if old_size > new_size && name.kind.is_preallocated() => FileState::Untrimmed,
            _ if old_size > MAX_SIZE || self.is_damaged(name)? => FileState::Damaged,
            _ if name.kind == FileKind::Snapshot && self.is_expired(name.base_offset, contents)? => {
                FileState::Expired
            }
            _ => FileState::Differs,
        };
        let first_difference = (state != FileState::Unchanged).then(|| difference.unwrap_or(shared) as u64);
        Ok(Some(of(state, Some(old_size), first_difference)))
    }

    /// Whether a file contradicts itself.
    fn is_damaged(&self, name: SegmentFileName) -> Result<bool> {
        if name.kind == FileKind::Snapshot {
            return Ok(self.snapshot(name.base_offset)?.is_none());
        }
        let open = || FileBytes::new(self.log.directory().open_file(&name.to_string())?, None, false);
        let checked = match name.kind {
            FileKind::OffsetIndex => {
                OffsetIndex::from_bytes(open()?, name.base_offset).and_then(|index| index.sanity_check())
            }
            FileKind::TimeIndex => {
                TimeIndex::from_bytes(open()?, name.base_offset).and_then(|index| index.sanity_check())
            }
            _ => TransactionIndex::from_bytes(open()?, name.base_offset).sanity_check(),
        };
        match checked {
            Ok(()) => Ok(false),
            Err(Error::Corrupt { .. } | Error::UnsupportedFormat { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Whether a snapshot has the contents but for producers without an open transaction.
    fn is_expired(&self, offset: i64, contents: &[u8]) -> Result<bool> {
        let (Some(old), Ok(new)) = (self.snapshot(offset)?, ProducerSnapshot::decode(contents)) else {
            return Ok(false);
        };
        let by_id: HashMap<_, _> = new.entries.iter().map(|entry| (entry.producer_id, entry)).collect();
        let is_known = |entry: &ProducerEntry| by_id.get(&entry.producer_id) == Some(&entry);
        Ok(old.entries.iter().all(is_known) && lost_transaction(&old, new.entries.iter()).is_none())
    }

    /// The snapshot at an offset; `None` if there is none, or if it is damaged.
    fn snapshot(&self, offset: i64) -> Result<Option<ProducerSnapshot>> {
        read_valid(self.log.directory(), &snapshot_name(offset))
    }

    /// A file that is removed; `None` if there is no such file.
    fn removed(&self, name: SegmentFileName, state: FileState) -> Result<Option<DerivedFile>> {
        let directory = self.log.directory();
        let found = directory.identity_of(&name.to_string())?;
        Ok(found.map(|found| DerivedFile {
            file: directory.path_of(&name.to_string()),
            state,
            old_size: Some(found.size),
            new_size: None,
            first_difference: None,
            quarantine: None,
        }))
    }
}

/// The first producer with an open transaction that a snapshot lacks, of those that the log gives. One
/// without an open transaction may be missing: a broker forgets it when it was idle.
///
/// *Source*: `ProducerStateManager.isProducerExpired`.
pub(crate) fn lost_transaction<'a>(
    snapshot: &ProducerSnapshot,
    producers: impl Iterator<Item = &'a ProducerEntry>,
) -> Option<&'a ProducerEntry> {
    let known: HashSet<_> = snapshot.entries.iter().map(|entry| entry.producer_id).collect();
    producers
        .filter(|entry| entry.open_transaction.is_some() && !known.contains(&entry.producer_id))
        .min_by_key(|entry| entry.open_transaction)
}

/// The log end offset, above which there can be no snapshot. If `highest`, the highest one, is above the end
/// that the log had when it was opened, the present end counts: a broker may have appended records and rolled
/// a segment since.
pub(crate) fn end_of_snapshots(log: &Log, highest: Option<i64>) -> Result<i64> {
    let end = log.log_end_offset()?;
    if highest.is_none_or(|highest| highest <= end) { Ok(end) } else { log.refresh()?.log_end_offset() }
}

fn name_of(offset: i64) -> SegmentFileName {
    SegmentFileName { base_offset: offset, kind: FileKind::Snapshot, stage: Stage::Live }
}

/// Whether it is the snapshot of no producer.
pub(crate) fn is_empty_snapshot(contents: &[u8]) -> bool {
    contents == ProducerStates::default().encode()
}

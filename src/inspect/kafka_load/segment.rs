//! A segment as Kafka opens, recovers and cuts it.
//!
//! Its indexes are mapped at their first use, as in Kafka: whether that creates or resizes a file is part of
//! the plan.
//!
//! *Source*: `LogSegment`, `LazyIndex`, `TransactionIndex`.
#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the methods themselves are not general enough in their lifetime"
)]

use super::batches::Batches;
use super::disk::{Contents, Disk};
use super::exception::{ExceptionKind, Step, Thrown};
use super::index_file::{IndexFile, Mapped};
use super::run::Run;
use super::snapshots::Snapshots;
use crate::fs::names::{FileKind, Stage};
use crate::index::due_entries::DueEntries;
use crate::index::{AbortedTransaction, OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES};
use crate::inspect::batch_place::BatchPlace;
use crate::record::BatchHeader;
use crate::state::producers::EndedTransaction;
use crate::types::{OffsetPosition, TimestampOffset};

/// A segment after it was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct LoadedSegment {
    /// Its base offset.
    pub base_offset: i64,
    /// Bytes of its `.log`.
    pub size: u64,
    /// What Kafka takes for entries of the offset index.
    pub offset_entries: u64,
    /// What Kafka takes for entries of the time index.
    pub time_entries: u64,
    /// The largest timestamp of the segment, as Kafka has it after loading, ms; −1 if it has none.
    pub largest_timestamp: i64,
}

/// A segment. Its files are on the [`Disk`].
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) base_offset: i64,
    pub(super) stage: Stage,
    /// The bytes of the `.log` that count.
    pub(super) log_size: u64,
    max_index_size: u64,
    offset_index: Option<IndexFile>,
    time_index: Option<IndexFile>,
    /// The largest timestamp and its offset, once Kafka has asked for it.
    pub(super) largest: Option<TimestampOffset>,
    /// The last offset that was added to the transaction index since it was opened.
    last_aborted: Option<i64>,
    /// Bytes since the last index entry, for appends of a split.
    pub(super) bytes_since_entry: u64,
}

/// The name of a segment's file. Kafka writes a negative number as a minus and 20 digits.
pub(super) fn file_name(base_offset: i64, kind: FileKind, stage: Stage) -> String {
    let sign = if base_offset < 0 { "-" } else { "" };
    format!("{sign}{:020}{}{}", base_offset.unsigned_abs(), kind.suffix(), stage.suffix())
}

impl Segment {
    /// Opens a segment; its `.log` is created, with `initial_size` bytes, if it does not exist.
    pub(super) fn open(run: &mut Run, base_offset: i64, stage: Stage, initial_size: u64) -> Step<Self> {
        let name = file_name(base_offset, FileKind::Log, stage);
        let log_size = if let Some(size) = run.disk.size(&name) {
            size
        } else {
            run.disk.refuse_directory(&name, ExceptionKind::Io)?;
            run.disk.put(&name, Contents::Made { bytes: Vec::new(), size: initial_size });
            run.created(&name);
            0
        };
        let transactions = file_name(base_offset, FileKind::TransactionIndex, stage);
        run.disk.refuse_directory(&transactions, ExceptionKind::Io)?;
        if log_size > i32::MAX as u64 {
            return Err(Thrown::kafka(
                ExceptionKind::Kafka,
                &name,
                format!("{log_size} bytes, more than 2 GiB"),
            ));
        }
        Ok(Self {
            base_offset,
            stage,
            log_size,
            max_index_size: u64::from(run.config.segment_index_bytes),
            offset_index: None,
            time_index: None,
            largest: None,
            last_aborted: None,
            bytes_since_entry: 0,
        })
    }

    pub(super) fn name(&self, kind: FileKind) -> String {
        file_name(self.base_offset, kind, self.stage)
    }

    /// Whether the difference of an offset to the base offset fits into an index entry.
    pub(super) fn fits(&self, offset: i64) -> bool {
        // as in Java, the subtraction wraps
        (0..=i64::from(i32::MAX)).contains(&offset.wrapping_sub(self.base_offset))
    }

    pub(super) fn batches(&self, disk: &Disk) -> Step<Batches> {
        Batches::open(disk, &self.name(FileKind::Log), self.log_size)
    }

    /// Runs `change` with the mapped offset index.
    pub(super) fn offset_index<T>(
        &mut self,
        disk: &mut Disk,
        change: impl FnOnce(&mut Mapped<'_, OffsetPosition, OFFSET_ENTRY_BYTES>) -> Step<T>,
    ) -> Step<T> {
        let name = self.name(FileKind::OffsetIndex);
        let mut file = match self.offset_index {
            Some(file) => file,
            None => {
                IndexFile::open::<OFFSET_ENTRY_BYTES>(disk, &name, self.base_offset, self.max_index_size)?
            }
        };
        self.offset_index = Some(file);
        let changed = change(&mut file.mapped(disk, &name)?);
        self.offset_index = Some(file);
        changed
    }

    /// Runs `change` with the mapped time index.
    pub(super) fn time_index<T>(
        &mut self,
        disk: &mut Disk,
        change: impl FnOnce(&mut Mapped<'_, TimestampOffset, TIME_ENTRY_BYTES>) -> Step<T>,
    ) -> Step<T> {
        let name = self.name(FileKind::TimeIndex);
        let mut file = match self.time_index {
            Some(file) => file,
            None => IndexFile::open::<TIME_ENTRY_BYTES>(disk, &name, self.base_offset, self.max_index_size)?,
        };
        self.time_index = Some(file);
        let changed = change(&mut file.mapped(disk, &name)?);
        self.time_index = Some(file);
        changed
    }

    /// The largest timestamp so far; at the first call, that of the last entry of the time index.
    pub(super) fn largest(&mut self, disk: &mut Disk) -> Step<TimestampOffset> {
        if let Some(largest) = self.largest {
            return Ok(largest);
        }
        let last = self.time_index(disk, |index| Ok(index.last()))?;
        self.largest = Some(last);
        Ok(last)
    }

    /// Fails if Kafka cannot open an index because a directory has its name.
    fn refuse_index_directories(&self, disk: &Disk) -> Step<()> {
        disk.refuse_directory(&self.name(FileKind::OffsetIndex), ExceptionKind::Io)?;
        disk.refuse_directory(&self.name(FileKind::TimeIndex), ExceptionKind::Io)
    }

    pub(super) fn resize_indexes(&mut self, disk: &mut Disk) -> Step<()> {
        self.refuse_index_directories(disk)?;
        self.offset_index(disk, |index| index.resize_to_max())?;
        self.time_index(disk, |index| index.resize_to_max())
    }

    /// The first batch that Kafka finds for an offset.
    ///
    /// *Source*: `LogSegment.translateOffset`.
    pub(super) fn translate(&mut self, disk: &mut Disk, offset: i64) -> Step<Option<BatchPlace>> {
        let entry = self.offset_index(disk, |index| Ok(index.lookup(offset)))?;
        let position = u64::try_from(entry.position).unwrap_or(0);
        self.batches(disk)?.search(offset, position)
    }

    /// The offset after the last batch, as far as the last entry of the offset index leads to it; and the
    /// position after that batch.
    ///
    /// *Source*: `LogSegment.readNextOffset`.
    pub(super) fn next_offset(&mut self, disk: &mut Disk) -> Step<(i64, u64)> {
        let last = self.offset_index(disk, |index| Ok(index.last().offset))?;
        let none = (self.base_offset, 0);
        let Some(found) = self.translate(disk, last)? else { return Ok(none) };
        Ok(self.batches(disk)?.next_offset(found.position)?.unwrap_or(none))
    }

    /// Reads the whole segment, cuts it at the first batch that is not valid, and writes its indexes. Returns
    /// the number of bytes that were cut.
    ///
    /// *Source*: `LogSegment.recover`.
    pub(super) fn recover(&mut self, run: &mut Run, producers: &mut Snapshots) -> Step<u64> {
        self.refuse_index_directories(&run.disk)?;
        self.offset_index(&mut run.disk, |index| index.reset())?;
        self.time_index(&mut run.disk, |index| index.reset())?;
        let transactions = self.name(FileKind::TransactionIndex);
        if run.disk.exists(&transactions) {
            run.disk.put(&transactions, Contents::made(Vec::new()));
        }
        self.last_aborted = None;
        self.largest = None;
        let mut valid = 0;
        match self.recover_batches(run, producers, &mut valid) {
            Err(Thrown::Kafka(thrown))
                if matches!(thrown.kind, ExceptionKind::CorruptRecord | ExceptionKind::InvalidRecord) =>
            {
                run.stop_reason = Some(thrown.reason);
            }
            recovered => recovered?,
        }
        let cut = self.log_size - valid;
        if cut > 0 {
            run.disk.truncate(&self.name(FileKind::Log), valid);
            self.log_size = valid;
        }
        self.offset_index(&mut run.disk, |index| index.trim())?;
        let largest = self.largest(&mut run.disk)?;
        self.time_index(&mut run.disk, |index| {
            index.maybe_append(largest, true)?;
            index.trim()
        })?;
        Ok(cut)
    }

    fn recover_batches(&mut self, run: &mut Run, producers: &mut Snapshots, valid: &mut u64) -> Step<()> {
        let mut batches = self.batches(&run.disk)?;
        let none = TimestampOffset { timestamp: -1, offset: self.base_offset };
        let mut due = DueEntries::new(u64::from(run.config.index_interval_bytes), none);
        while let Some(batch) = batches.at(*valid)? {
            run.interrupt.check()?;
            batches.ensure_valid(&batch)?;
            let header = batches.header(&batch)?;
            if !self.fits(header.last_offset) {
                return Err(Thrown::Overflow(self.base_offset));
            }
            let is_due = due.is_due_for(&header);
            self.largest = Some(due.largest());
            if is_due {
                let position = i32::try_from(*valid).unwrap_or(i32::MAX);
                let entry = OffsetPosition { offset: header.last_offset, position };
                self.offset_index(&mut run.disk, |index| index.append(entry))?;
                self.time_index(&mut run.disk, |index| index.maybe_append(due.largest(), false))?;
            }
            *valid = batch.end();
            if batch.magic >= 2 {
                run.epochs.assign_of(&mut run.disk, &header)?;
                self.add_to_producers(run, producers, &mut batches, &batch, &header)?;
            }
        }
        Ok(())
    }

    /// *Source*: `LogSegment.updateProducerState`, `updateTxnIndex`.
    fn add_to_producers(
        &mut self,
        run: &mut Run,
        producers: &mut Snapshots,
        batches: &mut Batches,
        batch: &BatchPlace,
        header: &BatchHeader,
    ) -> Step<()> {
        let ended = batches.add_to(&mut producers.producers, batch, header)?;
        if let Some(entry) = ended.and_then(EndedTransaction::aborted) {
            let name = self.name(FileKind::TransactionIndex);
            if let Some(last) = self.last_aborted.filter(|last| *last >= entry.last_offset) {
                let reason = format!("an entry with last offset {} after one with {last}", entry.last_offset);
                return Err(Thrown::kafka(ExceptionKind::IllegalArgument, &name, reason));
            }
            self.last_aborted = Some(entry.last_offset);
            if !run.disk.exists(&name) {
                run.disk.put(&name, Contents::made(Vec::new()));
            }
            if let Some((bytes, size)) = run.disk.load(&name)? {
                bytes.resize(usize::try_from(*size).unwrap_or(usize::MAX), 0);
                bytes.extend(crate::index::encode_aborted(entry));
                *size = bytes.len() as u64;
            }
        }
        producers.map_end = header.last_offset.wrapping_add(1);
        Ok(())
    }

    /// Whether the transaction index has an entry below the base offset.
    ///
    /// *Source*: `TransactionIndex.sanityCheck`.
    pub(super) fn has_wrong_transactions(&self, disk: &Disk) -> Step<bool> {
        let mut wrong = false;
        self.transactions(disk, |_, last_offset| {
            wrong = last_offset < self.base_offset;
            !wrong
        })?;
        Ok(wrong)
    }

    /// Calls `visit` with the position and the last offset of each entry, until it returns false.
    fn transactions(&self, disk: &Disk, mut visit: impl FnMut(u64, i64) -> bool) -> Step<()> {
        let name = self.name(FileKind::TransactionIndex);
        let Some(mut reader) = disk.reader(&name)? else { return Ok(()) };
        let mut position = 0;
        let entry_bytes = AbortedTransaction::BYTES as u64;
        while position + entry_bytes <= reader.size() {
            let entry = reader.read(position, AbortedTransaction::BYTES)?;
            // Kafka reads only the first byte of the version
            let version = entry.first().map_or(0, |byte| byte.cast_signed());
            let last =
                entry.get(18..).and_then(|rest| rest.first_chunk()).map(|bytes| i64::from_be_bytes(*bytes));
            if version > 0 {
                let reason = format!("an entry of version {version} at position {position}");
                return Err(Thrown::kafka(ExceptionKind::Kafka, &name, reason));
            }
            if !last.is_some_and(|last| visit(position, last)) {
                return Ok(());
            }
            position += entry_bytes;
        }
        Ok(())
    }

    /// Removes everything from the batch with an offset on. Returns the number of bytes that were cut.
    ///
    /// *Source*: `LogSegment.truncateTo`.
    pub(super) fn truncate_to(&mut self, disk: &mut Disk, offset: i64) -> Step<u64> {
        let found = self.translate(disk, offset)?;
        self.offset_index(disk, |index| {
            index.truncate_to(offset);
            Ok(())
        })?;
        self.time_index(disk, |index| {
            index.truncate_to(offset);
            Ok(())
        })?;
        let mut cut_at = None;
        self.transactions(disk, |position, last_offset| {
            cut_at = (last_offset >= offset).then_some(position);
            cut_at.is_none()
        })?;
        if let Some(position) = cut_at {
            disk.truncate(&self.name(FileKind::TransactionIndex), position);
        }
        self.resize_indexes(disk)?;
        let cut = found.map_or(0, |found| self.log_size - found.position);
        if cut > 0 {
            self.log_size -= cut;
            disk.truncate(&self.name(FileKind::Log), self.log_size);
        }
        self.bytes_since_entry = 0;
        if self.largest(disk)?.timestamp >= 0 {
            self.largest = Some(self.read_largest(disk)?);
        }
        Ok(cut)
    }

    /// *Source*: `LogSegment.readLargestTimestamp`.
    fn read_largest(&mut self, disk: &mut Disk) -> Step<TimestampOffset> {
        let mut largest = self.time_index(disk, |index| Ok(index.last()))?;
        let entry = self.offset_index(disk, |index| Ok(index.lookup(largest.offset)))?;
        let mut batches = self.batches(disk)?;
        let mut position = u64::try_from(entry.position).unwrap_or(0);
        while let Some(batch) = batches.at(position)? {
            let header = batches.header(&batch)?;
            if header.max_timestamp > largest.timestamp {
                largest = TimestampOffset { timestamp: header.max_timestamp, offset: header.last_offset };
            }
            position = batch.end();
        }
        Ok(largest)
    }

    /// Renames its files.
    pub(super) fn set_stage(&mut self, disk: &mut Disk, stage: Stage) {
        for kind in [FileKind::Log, FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex] {
            disk.rename(&self.name(kind), &file_name(self.base_offset, kind, stage));
        }
        self.stage = stage;
    }

    /// What a roll, and the end of a split, do to its indexes.
    ///
    /// *Source*: `LogSegment.onBecomeInactiveSegment`.
    pub(super) fn become_inactive(&mut self, disk: &mut Disk) -> Step<()> {
        let largest = self.largest(disk)?;
        self.time_index(disk, |index| index.maybe_append(largest, true))?;
        self.offset_index(disk, |index| index.trim())?;
        self.time_index(disk, |index| index.trim())?;
        disk.truncate(&self.name(FileKind::Log), self.log_size);
        Ok(())
    }

    /// What a clean shutdown does to its files: the last entry of the time index, and no unused bytes.
    ///
    /// *Source*: `LogSegment.close`.
    pub(super) fn close(&mut self, disk: &mut Disk) -> Step<()> {
        if let Some(largest) = self.largest {
            // Kafka only logs a failure here
            let _ = self.time_index(disk, |index| index.maybe_append(largest, true));
        }
        self.offset_index(disk, |index| index.trim())?;
        self.time_index(disk, |index| index.trim())?;
        disk.truncate(&self.name(FileKind::Log), self.log_size);
        Ok(())
    }

    /// What is reported of the segment.
    pub(super) fn loaded(&mut self, disk: &mut Disk) -> Step<LoadedSegment> {
        self.offset_index(disk, |_| Ok(()))?;
        self.time_index(disk, |_| Ok(()))?;
        let entries = |file: Option<IndexFile>| file.map_or(0, |file| file.entries);
        let (offset_entries, time_entries) = (entries(self.offset_index), entries(self.time_index));
        Ok(LoadedSegment {
            base_offset: self.base_offset,
            size: self.log_size,
            offset_entries,
            time_entries,
            largest_timestamp: self.largest(disk)?.timestamp.max(-1),
        })
    }
}

//! Copies of a partition, or of a range of it: the batches as they are, and the files that Kafka keeps beside
//! them.
//!
//! ```text
//!   source ──────▶ scan ──────▶ piece ─────▶ staged_log      a segment's .log: written, synced, read back
//!   as of one      batches,       │  └─────▶ indexes         its offset and time index
//!   moment         verified       └────────▶ producers       its transaction index, snapshots
//!                                 destination                staged files, and the one rename that completes the copy
//! ```

mod companions;
mod data_directory;
mod destination;
mod indexes;
mod metadata;
mod options;
mod piece;
mod producers;
mod source;
mod staged_log;

use std::path::Path;
use std::sync::Arc;

use companions::{Epochs, put_cleaned, put_log_start_offset, put_producer_names, put_topic_id};
pub use data_directory::copy_data_directory;
use destination::Destination;
use metadata::put_metadata;
pub use options::{CopyOptions, CopyProgress, CopyReport};
use piece::Piece;
use producers::Producers;
use source::{Extent, Source, copied_range};

use super::spark_writes::warn_of_copies;
use crate::error::{Error, Result};
use crate::fs::names::FileKind;
use crate::fs::{Directory, PartitionLocks};
use crate::log::{DamagedRange, Log, OnDamage, Ranges, ScanOptions, ScanStep};
use crate::segment::{Batch, SCAN_READ, Segment};
use crate::state::checkpoint::Checkpoint;
use crate::state::data_directory::DataDirectory;

/// The number of bytes between two reports of the progress.
const PROGRESS_BYTES: u64 = 1 << 20;

/// Receives the progress of a copy; an error ends the copy.
pub type OnProgress<'a> = &'a mut (dyn FnMut(CopyProgress) -> Result<()> + Send);

/// Copies a partition, or a range of it, into a directory that does not exist or is empty.
///
/// The batches are copied as they are, bytes, offsets, epochs, producer ids and transactions. Segments that
/// are copied from their first batch on keep their names; a range that begins inside a segment begins with a
/// segment named by its first batch. Indexes, transaction indexes, producer snapshots, leader epochs, topic
/// id and log start offset come with them, so that Kafka opens the copy without recovery, and the names of
/// the producers of a writer; with a whole metadata log of a cluster also its snapshots and `quorum-state`.
/// Each batch's checksum is verified, and the written files are read back and compared.
///
/// The copy has the state in which this call opened the source, which other processes may write to: sealed
/// segments do not change, and the log end offset is fixed.
///
/// An interrupted copy is not a log: a [`LogWriter`](crate::writer::LogWriter) does not open it, and before
/// the last step, which renames its complete files, readers find no segment in it, nor does Kafka (which
/// would create an empty log there). The same call continues it; a call with another range is an error. If
/// the copy is complete, the call compares it with the source and changes nothing.
///
/// With [`CopyOptions::hard_links`] sealed segments that are copied whole share the file with the source, but
/// for the last one of the copy, to which a writer appends. This saves time and space, but is no backup: what
/// changes a file in place changes it in both, as a truncation does, or a broker's recovery.
///
/// A transaction that begins before the range keeps its first offset in the transaction index, as after a
/// deletion of the records before it. One whose marker is after the range is open at the end of the copy; its
/// records stay invisible to committed readers.
///
/// # Errors
/// [`Error::Config`] if `destination` is something else (it is not changed), or is inside the source;
/// [`Error::LogChanged`] if the source changes so that the moment of the copy is lost (call again: what was
/// copied is used); [`Error::Corrupt`] for damage, with [`OnDamage::Raise`]; [`Error::Locked`] if a writer or
/// a broker uses `destination`; the errors of [`Log::open`] and [`Log::scan`].
pub fn copy(
    source: impl AsRef<Path>,
    destination: impl AsRef<Path>,
    options: &CopyOptions,
    progress: OnProgress<'_>,
) -> Result<CopyReport> {
    let mut report = copy_partition(source.as_ref(), destination.as_ref(), options, false, progress)?;
    let opened = Directory::open(&report.source, "copy it again").and_then(|source| source.parent());
    if let Ok(Some(data_directory)) = opened {
        warn_of_copies(&data_directory, std::slice::from_mut(&mut report));
    }
    Ok(report)
}

/// [`copy()`]. `keeps_journal`: the caller removes the journal when it has copied all partitions. Until then
/// a repetition of the call compares the copy with the source as it was.
fn copy_partition(
    source: &Path,
    destination: &Path,
    options: &CopyOptions,
    keeps_journal: bool,
    progress: OnProgress<'_>,
) -> Result<CopyReport> {
    let directory = Directory::open(source, "give the path of a partition directory, such as data/orders-0")?;
    let source = Source::open(&directory, options)?;
    source.log.check(&options.ranges)?;
    refuse_inside(&directory, destination)?;
    let advice = "create the parent folder of the destination first";
    let to = Directory::open_or_create(destination, advice, DataDirectory::refuse)?;
    // before a lock file is created
    DataDirectory::refuse_itself(&to)?;
    DataDirectory::around(&to)?;
    if Destination::find(&to, source.log.path(), copied_range(options.ranges))?.is_ended() {
        PartitionLocks::probe(&to)?;
        return copy_source(&source, &to, options, keeps_journal, progress);
    }
    let mut locks = PartitionLocks::take(&to)?;
    let report = copy_source(&source, &to, options, keeps_journal, progress)?;
    locks.renew(&to)?;
    Ok(report)
}

/// [`copy()`] of an open directory into another one, without a lock: the caller guarantees that nothing else
/// uses it.
///
/// # Errors
/// As [`copy()`].
pub fn copy_in(
    source: &Directory,
    destination: &Directory,
    options: &CopyOptions,
    progress: OnProgress<'_>,
) -> Result<CopyReport> {
    copy_source(&Source::open(source, options)?, destination, options, false, progress)
}

/// Fails if the destination is the source, or inside it.
pub(crate) fn refuse_inside(source: &Directory, destination: &Path) -> Result<()> {
    let resolved = |path: &Path| std::fs::canonicalize(path).ok();
    let absolute = std::path::absolute(destination).unwrap_or_else(|_| destination.to_owned());
    let to = resolved(&absolute).or_else(|| Some(resolved(absolute.parent()?)?.join(absolute.file_name()?)));
    match (to, resolved(source.path())) {
        (Some(to), Some(from)) if to.starts_with(&from) => {
            let expected = "a directory that is not inside the source, to which nothing is written";
            Err(Error::config("destination", expected, to.display().to_string()))
        }
        _ => Ok(()),
    }
}

fn copy_source(
    source: &Source,
    destination: &Directory,
    options: &CopyOptions,
    keeps_journal: bool,
    progress: OnProgress<'_>,
) -> Result<CopyReport> {
    let log = &source.log;
    let mut destination = Destination::open(destination, log.path(), copied_range(options.ranges))?;
    let mut extent = source.extent(options.ranges, options.on_damage)?;
    if let Some(end) = destination.committed_end() {
        extent.end = extent.end.min(end);
    }
    destination.begin(log.path(), extent.end, options.hard_links)?;
    let mut warnings = Vec::new();
    let epochs = Epochs::of(log, &mut warnings)?;
    let report = CopyReport {
        source: log.path().to_owned(),
        path: destination.directory.path().to_owned(),
        warnings,
        ..CopyReport::default()
    };
    Copying {
        source,
        options,
        destination,
        extent,
        epochs,
        producers: None,
        piece: None,
        report,
        read: 0,
        last: None,
    }
    .run(keeps_journal, progress)
}

/// A copy in progress.
struct Copying<'a> {
    source: &'a Source,
    options: &'a CopyOptions,
    destination: Destination,
    extent: Extent,
    epochs: Epochs,
    /// Those before the next batch; `None` before the first one.
    producers: Option<Producers>,
    piece: Option<Piece>,
    report: CopyReport,
    /// Bytes read so far.
    read: u64,
    /// The last batch so far.
    last: Option<Batch>,
}

impl Copying<'_> {
    fn run(mut self, keeps_journal: bool, progress: OnProgress<'_>) -> Result<CopyReport> {
        let log = match self.extent.start {
            Some(_) => self.source.log.clone(),
            None => self.source.log.with_hidden_records(),
        };
        let start = self.extent.start.unwrap_or(log.log_start_offset());
        let segments: Vec<_> =
            log.segments().between(start, self.extent.end.max(start + 1)).cloned().collect();
        let total_bytes = segments.iter().map(|segment| segment.size()).sum::<Result<u64>>()?;
        let (mut rest, mut reported) = (segments.iter(), 0);
        let mut ranges = Ranges { start_offset: Some(start), ..Ranges::default() };
        ranges.end_offset = Some(self.extent.end.max(start));
        let on_damage = self.options.on_damage;
        let mut scan =
            log.scan(ScanOptions { ranges, on_damage, batches_only: true, ..ScanOptions::default() })?;
        while let Some(step) = scan.next_step().or_else(|error| self.source.damaged(error))? {
            let ScanStep::Batch(batch) = step else { continue };
            let base_offset = scan.segment().unwrap_or_default();
            if self.piece.as_ref().is_none_or(|piece| piece.source_base_offset() != base_offset) {
                let is_before = |segment: &&Arc<Segment>| segment.base_offset() < base_offset;
                for empty in rest.by_ref().take_while(is_before) {
                    self.add_empty(empty, start)?;
                }
                if let Some(segment) = log.segments().floor(base_offset).cloned() {
                    self.begin(&log, &segment, &batch)?;
                }
            }
            self.read += u64::from(batch.header.size);
            self.add(&batch, scan.batch_bytes()?)?;
            if self.read - reported >= PROGRESS_BYTES {
                reported = self.read;
                progress(CopyProgress { bytes: self.read, total_bytes })?;
            }
        }
        progress(CopyProgress { bytes: self.read, total_bytes })?;
        self.report.damaged_ranges = scan.damaged_ranges().to_vec();
        for empty in rest {
            self.add_empty(empty, start)?;
        }
        if self.report.segments.is_empty()
            && let Some(last) = log.segments().floor(start).or(log.segments().first()).cloned()
        {
            self.begin_at(&last, 0, start)?;
        }
        self.finish_piece(true)?;
        self.complete(&log, start, keeps_journal)
    }

    /// Adds a segment without copied batches. One that begins before the range is left out.
    fn add_empty(&mut self, segment: &Arc<Segment>, start: i64) -> Result<()> {
        if segment.base_offset() >= start { self.begin_at(segment, 0, segment.base_offset()) } else { Ok(()) }
    }

    /// Begins the segment with this batch.
    fn begin(&mut self, log: &Log, segment: &Arc<Segment>, first: &Batch) -> Result<()> {
        let is_clipped =
            first.position > 0 && self.extent.start.is_some_and(|start| start > segment.base_offset());
        if self.producers.is_none() {
            let before = if is_clipped { first.header.base_offset } else { segment.base_offset() };
            self.producers = Some(Producers::before(&log.with_hidden_records(), before)?);
        }
        if is_clipped {
            self.begin_at(segment, first.position, first.header.base_offset)
        } else {
            self.begin_at(segment, 0, segment.base_offset())
        }
    }

    /// Begins a segment with this base offset, and the snapshot of the producers before it.
    fn begin_at(&mut self, segment: &Arc<Segment>, position: u64, base_offset: i64) -> Result<()> {
        self.finish_piece(false)?;
        self.put_snapshot(base_offset, self.report.segments.is_empty())?;
        let may_link = self.options.hard_links;
        let piece =
            Piece::begin(self.source, &mut self.destination, segment, position, base_offset, may_link)?;
        self.report.segments.push(base_offset);
        self.piece = Some(piece);
        Ok(())
    }

    fn add(&mut self, batch: &Batch, bytes: &[u8]) -> Result<()> {
        let (Some(piece), Some(producers)) = (&mut self.piece, &mut self.producers) else { return Ok(()) };
        piece.add(batch, bytes, producers)?;
        self.epochs.add(&batch.header);
        self.report.batches += 1;
        self.last = Some(*batch);
        Ok(())
    }

    /// Completes a segment. `is_last`: whether it is the last one of the copy.
    fn finish_piece(&mut self, is_last: bool) -> Result<()> {
        let Some(piece) = self.piece.take() else { return Ok(()) };
        let CopyOptions { on_damage, interrupt, .. } = *self.options;
        let finished = piece.finish(self.source, &mut self.destination, is_last, on_damage, interrupt)?;
        self.report.bytes += finished.size;
        self.report.bytes_written += finished.written;
        self.report.linked += u64::from(finished.is_linked);
        Ok(())
    }

    /// Puts the snapshot of the producers at an offset. `is_first`: at the start of the copy, where none is
    /// needed if there are no producers.
    fn put_snapshot(&mut self, offset: i64, is_first: bool) -> Result<()> {
        let log = &self.source.log;
        if self.producers.is_none() {
            self.producers = Some(Producers::before(&log.with_hidden_records(), offset)?);
        }
        let Some(producers) = &mut self.producers else { return Ok(()) };
        match producers.snapshot(log, offset, is_first)? {
            Some(bytes) => self.destination.put_segment_file(offset, FileKind::Snapshot, &bytes),
            None => Ok(()),
        }
    }

    /// Writes the files beside the segments, and completes the copy.
    fn complete(mut self, log: &Log, start: i64, keeps_journal: bool) -> Result<CopyReport> {
        let first = self.report.segments.first().copied().unwrap_or(start);
        let last = self.report.segments.last().copied().unwrap_or(start);
        let mut end = self.last.map_or(last, |batch| batch.header.last_offset + 1).max(last);
        if self.extent.end >= self.source.end_offset {
            if self.options.on_damage == OnDamage::Raise
                && let Some(last) = self.source.log.segments().last()
            {
                last.refuse_uncertain_end()?;
            }
            if start < self.source.end_offset {
                self.source.ensure_last(self.last, &self.report.damaged_ranges)?;
            }
            // a scan that skips damage reports them as damage
            if !self.report.damaged_ranges.iter().any(DamagedRange::is_tail) {
                self.report.warnings.extend(bytes_after_end(&self.source.log)?);
            }
            // a log that a writer has emptied ends at its log start offset, without a batch
            end = end.max(self.source.end_offset);
        }
        // records that a deletion has hidden stay hidden
        let log_start_offset = self.source.log.log_start_offset().clamp(first, end);
        self.put_snapshot(end, false)?;
        (self.report.start_offset, self.report.end_offset) = (Some(first), Some(end));
        self.report.log_start_offset = Some(log_start_offset);
        self.report.open_transactions = self.producers.as_ref().map_or(0, Producers::open_transactions);
        let Self { destination, epochs, mut report, .. } = self;
        epochs.put(&destination, log_start_offset, end)?;
        put_topic_id(&self.source.log, &destination, &mut report.warnings)?;
        put_producer_names(&self.source.log, &destination, &mut report.warnings)?;
        put_cleaned(&self.source.log, &destination)?;
        let Source { log: source_log, snapshots, .. } = self.source;
        if self.options.ranges == Ranges::default() {
            let interrupt = self.options.interrupt;
            put_metadata(source_log.directory(), snapshots, &destination, end, interrupt)?;
        } else if !snapshots.is_empty() {
            let path = source_log.path().display();
            report.warnings.push(format!(
                "{path}: its snapshots belong to the whole log, and are not in a copy of a range"
            ));
        }
        let data_directory = DataDirectory::around(&destination.directory)?;
        let checkpoint = Checkpoint { recovery_point: end, log_start_offset, ..Checkpoint::default() };
        put_log_start_offset(&destination, data_directory.as_ref(), first, checkpoint)?;
        if self.options.on_damage != OnDamage::Raise
            && !report.damaged_ranges.is_empty()
            && let Err(error) = log.last_stable_offset()
        {
            report.warnings.push(format!(
                "{error}: the marker of a transaction may have been there. In the copy its records belong to the next transaction of \
                 the producer"
            ));
        }
        self.source.ensure_not_truncated()?;
        destination.commit()?;
        if let Some(data_directory) = data_directory.filter(|_| !destination.is_ended()) {
            data_directory.write_recovery_point(end)?;
        }
        if !keeps_journal {
            destination.end()?;
        }
        Ok(report)
    }
}

/// A warning if bytes other than zeros follow the last whole batch of a log, which may be a damaged batch or
/// a torn write, and are not being written.
fn bytes_after_end(log: &Log) -> Result<Option<String>> {
    let Some(last) = log.segments().last() else { return Ok(None) };
    let Some(cut) = last.tail_cut()? else { return Ok(None) };
    let is_preallocated = last.log_file(SCAN_READ)?.is_zero(cut.position, last.file_size()?)?;
    Ok(last
        .torn_tail_warning()?
        .filter(|_| !is_preallocated)
        .map(|warning| format!("{warning}; the bytes are not copied")))
}

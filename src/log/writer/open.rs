//! How a writer finds its log: what was left of it is looked at, mended where only a write was torn, and opened.
//!
//! Everything is read before anything is changed: where the log is damaged, the error says so and the directory is as it
//! was. What has to be cut is kept in `quarantine/` first.
//!
//! A torn write or a damaged record? What lies below the offset up to which the log was synced (`.cordwood.durable`) was
//! whole once, so there it is damage: an error. Above it, nobody was told of it, and it is cut. Where that file does not
//! exist, as in a directory that Kafka wrote, a write counts as torn only if no whole batch follows it.

use std::sync::Arc;

use super::checkpoint::{Checkpoint, Watermark};
use super::clean_marker::CleanMarker;
use super::data_directory::DataDirectory;
use super::partition::Partition;
use super::scan::{self, Scanned};
use super::truncate::remove_newest_first;
use super::{WriterOptions, quarantine, refused};
use crate::error::{Error, Result};
use crate::fs::names::{FileKind, SegmentFileName, Stage, segment_file};
use crate::fs::planted::{self, Planted};
use crate::fs::{Directory, FileType, STAGED};
use crate::log::{Log, LogOptions};
use crate::record::BatchBuilder;
use crate::segment::{Held, Segment, SegmentAppender, TRUNCATIONS};
use crate::state::leader_epochs::{LEADER_EPOCH_CHECKPOINT, LeaderEpochs};
use crate::state::partition_metadata::PARTITION_METADATA;
use crate::types::Io;

/// No small text file of a partition is larger.
pub(super) const MOST_BYTES: u64 = 16 << 20;

/// The log that a directory holds, in order.
#[derive(Debug)]
struct Found {
    /// Base offsets, but for the active segment's.
    sealed: Vec<i64>,
    active: Active,
    data_end: i64,
    log_end_offset: i64,
    log_start_offset: i64,
    epochs: LeaderEpochs,
}

/// The active segment.
#[derive(Debug)]
enum Active {
    /// Was made just now.
    Made(Box<SegmentAppender>),
    /// Lies in the directory, and holds this.
    Found(i64, Held),
}

/// Whether the directory is changed, or only looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Open,
    Check,
}

/// Fails where [`open`] would fail because of what lies in the directory; changes nothing.
pub(super) fn check(directory: &Directory, options: &WriterOptions) -> Result<()> {
    let (found, _) = look(directory, options, Purpose::Check)?;
    if let Some(Found { active: Active::Found(base_offset, _), epochs, .. }) = found {
        epochs.next_epoch(options.leader_epoch)?;
        directory.open_writable(&segment_file(base_offset, FileKind::Log))?;
    }
    refused::other_topic(directory, options).map(|_| ())
}

/// Opens the log in a directory, or begins one. What was recovered is durable.
pub(super) fn open(directory: Directory, options: &WriterOptions) -> Result<Partition> {
    let random = options.random | 1;
    let jitter = options.config.random_segment_jitter(random.cast_signed());
    let (found, Surroundings { checkpoint, data_directory, bases }) =
        look(&directory, options, Purpose::Open)?;
    let found = if let Some(found) = found {
        found
    } else {
        make_ready(&directory, data_directory.as_ref(), options)?;
        let starting_at = checkpoint.and_then(|checkpoint| checkpoint.starting_at);
        if starting_at.is_some() {
            // the log was being emptied, and is now
            remove_newest_first(&directory, bases.into_iter().rev())?;
        }
        let start = starting_at.or(checkpoint.map(|checkpoint| checkpoint.log_start_offset));
        begin(&directory, options, start.unwrap_or(0), jitter)?
    };
    let leader_epoch = found.epochs.next_epoch(options.leader_epoch)?;
    let layout = Partition::layout(&options.config);
    let now = (options.clock)();
    let active = match found.active {
        Active::Made(active) => *active,
        Active::Found(base_offset, held) => {
            SegmentAppender::open(&directory, base_offset, held, &layout, now, jitter)?
        }
    };
    let watermark = Watermark::open(&directory)?;
    let mut partition = Partition {
        config: options.config.clone(),
        clock: options.clock,
        leader_epoch,
        epochs: found.epochs,
        sealed: found.sealed.into_iter().collect(),
        active,
        log_start_offset: found.log_start_offset,
        log_end_offset: found.log_end_offset,
        data_end: found.data_end,
        checkpoint: Checkpoint {
            recovery_point: found.log_end_offset,
            log_start_offset: found.log_start_offset,
            ..Checkpoint::default()
        },
        watermark,
        data_directory,
        truncations: 0,
        builder: BatchBuilder::new(),
        random,
        is_closed: false,
        directory,
    };
    partition.settle()?;
    Ok(partition)
}

/// What lies in and around the directory beside the segments.
struct Surroundings {
    checkpoint: Option<Checkpoint>,
    data_directory: Option<DataDirectory>,
    bases: Vec<i64>,
}

/// The log that is there; `None` where one is to be begun.
fn look(
    directory: &Directory,
    options: &WriterOptions,
    purpose: Purpose,
) -> Result<(Option<Found>, Surroundings)> {
    options.check()?;
    refused::unfinished(directory)?;
    let checkpoint = Checkpoint::read(directory)?;
    let data_directory = DataDirectory::around(directory)?;
    let bases = segment_bases(directory)?;
    let starting_at = checkpoint.and_then(|checkpoint| checkpoint.starting_at);
    let found = if bases.is_empty() || starting_at.is_some() {
        let durable = durable_offset(directory, CleanMarker::read(directory)?.as_ref())?;
        if let Some(durable) = durable.filter(|_| starting_at.is_none()) {
            let start = checkpoint.map_or(0, |checkpoint| checkpoint.log_start_offset);
            if durable > start {
                return Err(refused::missing(directory, durable, start));
            }
        }
        if let Some(checkpoint) = checkpoint.filter(|_| !bases.is_empty()) {
            refused::written_since(directory, checkpoint)?;
        }
        None
    } else {
        Some(find(directory, options, checkpoint, data_directory.as_ref(), purpose)?)
    };
    Ok((found, Surroundings { checkpoint, data_directory, bases }))
}

impl Partition {
    /// Makes what was found durable, and says so.
    fn settle(&mut self) -> Result<()> {
        self.active.log().sync()?;
        // of no use after a power loss, but what is found here is to stay so
        match self.directory.identity_of(TRUNCATIONS)? {
            Some(file) => {
                if file.size % 2 == 1 {
                    // one that did not come to its end has, by now
                    self.announce()?;
                }
                self.directory.open_writable(TRUNCATIONS)?.sync()?;
            }
            None => self.directory.create(TRUNCATIONS)?.sync()?,
        }
        // lower than before only where nothing of what it named was lost
        self.watermark.set(self.data_end)?;
        self.write_epochs_if_changed()?;
        if let Some(data_directory) = &self.data_directory {
            data_directory.lower(self.log_start_offset, self.log_end_offset)?;
        }
        // makes the names of what was made durable, too
        self.write_checkpoint(self.checkpoint)
    }

    fn write_epochs_if_changed(&self) -> Result<()> {
        let held = self.directory.read_small(LEADER_EPOCH_CHECKPOINT, MOST_BYTES)?;
        let text = self.epochs.to_text();
        match held {
            Some(held) if held == text.as_bytes() => Ok(()),
            // as Kafka has it before the first epoch
            Some(held) if held.is_empty() && self.epochs.entries().is_empty() => Ok(()),
            None if self.epochs.entries().is_empty() => {
                self.directory.create(LEADER_EPOCH_CHECKPOINT)?.sync()?;
                self.directory.sync()
            }
            _ => self.write_epochs(),
        }
    }
}

/// Base offsets of the live segments, rising.
pub(super) fn segment_bases(directory: &Directory) -> Result<Vec<i64>> {
    let mut bases = Vec::new();
    for (name, kind) in directory.entries()? {
        let parsed = SegmentFileName::parse(&name).filter(|_| kind != FileType::Directory);
        let is_log = |parsed: &SegmentFileName| parsed.kind == FileKind::Log && parsed.stage == Stage::Live;
        bases.extend(parsed.filter(is_log).map(|parsed| parsed.base_offset));
    }
    bases.sort_unstable();
    Ok(bases)
}

/// The first change: what says that the log was closed in order goes before it, durably.
fn make_ready(
    directory: &Directory,
    data_directory: Option<&DataDirectory>,
    options: &WriterOptions,
) -> Result<()> {
    let missing_id = refused::other_topic(directory, options)?;
    CleanMarker::remove(directory)?;
    for (name, _) in directory.entries()? {
        // as large as a segment, where a truncation did not come to its end
        if name.strip_suffix(STAGED).and_then(SegmentFileName::parse).is_some() {
            directory.remove(&name)?;
        }
    }
    if let Some(data_directory) = data_directory {
        data_directory.remove_clean_marker()?;
    }
    missing_id.map_or(Ok(()), |id| directory.replace(PARTITION_METADATA, id.to_file().as_bytes()))
}

/// An empty log that starts at an offset.
fn begin(directory: &Directory, options: &WriterOptions, start: i64, jitter_ms: i64) -> Result<Found> {
    let layout = Partition::layout(&options.config);
    let active = SegmentAppender::create(directory, start, &layout, (options.clock)(), jitter_ms)?;
    Ok(Found {
        sealed: Vec::new(),
        active: Active::Made(Box::new(active)),
        data_end: start,
        log_end_offset: start,
        log_start_offset: start,
        epochs: LeaderEpochs::default(),
    })
}

/// Up to where everything was synced, where that is known: a log that was closed was so to its end.
fn durable_offset(directory: &Directory, marker: Option<&CleanMarker>) -> Result<Option<i64>> {
    let closed_at = marker.map(CleanMarker::log_end_offset).filter(|offset| *offset >= 0);
    Ok(Watermark::read(directory)?.or(closed_at))
}

/// Looks at the log, and mends it.
fn find(
    directory: &Directory,
    options: &WriterOptions,
    checkpoint: Option<Checkpoint>,
    data_directory: Option<&DataDirectory>,
    purpose: Purpose,
) -> Result<Found> {
    let interrupt = options.interrupt;
    let log_options = LogOptions { io: Io::Pread, interrupt, ..LogOptions::default() };
    let log = Log::open_in(directory.clone(), log_options)?;
    let segments: Vec<Arc<Segment>> = log.segments().iter().cloned().collect();
    let marker = CleanMarker::read(directory)?;
    let durable = durable_offset(directory, marker.as_ref())?;
    let recovery_point = match (checkpoint, data_directory) {
        (Some(checkpoint), _) => checkpoint.recovery_point,
        (None, Some(data_directory)) => data_directory.recovery_point()?.unwrap_or(0),
        (None, None) => 0,
    };
    if let Some(checkpoint) = checkpoint {
        refused::later_start(directory, &segments, checkpoint, data_directory)?;
    }
    let clean = match marker {
        Some(marker) => {
            // a broker that compacts makes several segments into one
            if !options.config.cleanup_policy.compact {
                marker.refuse_missing(directory)?;
            }
            marker.fits(directory, &segments)?
        }
        None => false,
    };
    let from = if clean {
        segments.len()
    } else {
        segments.partition_point(|segment| segment.base_offset() <= recovery_point).saturating_sub(1)
    };
    let (before, unclean) = segments.split_at_checked(from).unwrap_or_default();
    if checkpoint.is_none() {
        // the others are looked at anyway
        refused::producers(before, options)?;
    }
    let mut scanned = scan_all(directory, before.last(), unclean, options)?;
    // not by the clean marker: what lies behind the end that it knows was a broker's, and may be more than a torn write
    let cut = what_to_cut(unclean, &mut scanned, Watermark::read(directory)?)?;
    let kept = from + scanned.len();
    let Some(last) = kept.checked_sub(1).and_then(|last| segments.get(last)) else {
        // the first segment is never cut as a whole
        return Err(Error::config("path", "a directory with a segment", "none"));
    };
    let (held, end) = match scanned.last() {
        Some(scanned) => (scanned.held, scanned.end_offset),
        None => (scan::held(last)?, last.end_offset()?),
    };
    if let Some(durable) = durable.filter(|durable| *durable > end) {
        return Err(refused::missing(directory, durable, end));
    }
    let mut log_start_offset = segments.first().map_or(0, |first| first.base_offset());
    if let Some(start) = data_directory.map(DataDirectory::log_start_offset).transpose()?.flatten() {
        // a hint: one that would hide everything does not count
        log_start_offset = if start <= end { log_start_offset.max(start) } else { log_start_offset };
    }
    log_start_offset = log_start_offset.max(checkpoint.map_or(0, |checkpoint| checkpoint.log_start_offset));
    let log_end_offset = end.max(log_start_offset);
    let epochs = epochs(directory, &segments, &scanned, log_start_offset, log_end_offset)?;

    let mut sealed: Vec<_> = segments.iter().take(kept).map(|segment| segment.base_offset()).collect();
    let active = Active::Found(sealed.pop().unwrap_or(log_start_offset), held);
    let found = Found { sealed, active, data_end: end, log_end_offset, log_start_offset, epochs };
    if purpose == Purpose::Check {
        return Ok(found);
    }

    // from here on the directory changes
    make_ready(directory, data_directory, options)?;
    if let Some(cut) = cut {
        mend(directory, unclean, &scanned, cut)?;
    }
    let layout = Partition::layout(&options.config);
    for (segment, scanned) in unclean.iter().zip(&scanned) {
        // what the process before did not live to sync; from here on it counts as durable
        directory.open_writable(&segment_file(segment.base_offset(), FileKind::Log))?.sync()?;
        write_indexes(directory, segment.base_offset(), &scanned.indexes)?;
    }
    for segment in before {
        // either: a crash may have come between the two, or between a roll's new segment and the trimming of the old one
        let is_whole = match (segment.offset_index()?, segment.time_index()?) {
            (Some(offsets), Some(times)) => {
                let is_trimmed =
                    offsets.entries() == offsets.max_entries() && times.entries() == times.max_entries();
                clean || is_trimmed
            }
            _ => false,
        };
        if !is_whole {
            let (interval, max) = (layout.index_interval_bytes, layout.max_index_size);
            let scanned = scan::scan(segment, -1, interval, max, interrupt)?;
            write_indexes(directory, segment.base_offset(), &scanned.indexes)?;
        }
    }
    Ok(found)
}

fn scan_all(
    directory: &Directory,
    before: Option<&Arc<Segment>>,
    unclean: &[Arc<Segment>],
    options: &WriterOptions,
) -> Result<Vec<Scanned>> {
    let layout = Partition::layout(&options.config);
    let mut epoch = match before {
        Some(segment) => segment.last_epoch()?,
        None => -1,
    };
    let mut scanned = Vec::with_capacity(unclean.len());
    for segment in unclean {
        // what the disk has, not what is in memory only because writing it failed
        directory.open_writable(&segment_file(segment.base_offset(), FileKind::Log))?.forget_cached(0)?;
        let (interval, max) = (layout.index_interval_bytes, layout.max_index_size);
        let found = scan::scan(segment, epoch, interval, max, options.interrupt)?;
        epoch = found.leader_epoch;
        scanned.push(found);
    }
    Ok(scanned)
}

/// Which of the scanned segments has a torn write, if one has; `scanned` keeps those that stay.
fn what_to_cut(
    unclean: &[Arc<Segment>],
    scanned: &mut Vec<Scanned>,
    durable: Option<i64>,
) -> Result<Option<usize>> {
    let torn = scanned.iter().position(|scanned| scanned.cut.is_some());
    if let Some(torn) = torn {
        let rest = scanned.get(torn + 1..).unwrap_or_default();
        let is_last = rest.iter().all(|scanned| scanned.held.size == 0);
        if let (Some(segment), Some(Scanned { cut: Some((damage, is_end)), .. })) =
            (unclean.get(torn), scanned.get(torn))
        {
            let is_torn = match durable {
                Some(durable) => damage.offset >= durable,
                None => *is_end && is_last,
            };
            if !is_torn {
                return Err(segment.corrupt(damage));
            }
        }
        if planted::is(Planted::LengthTrustedPastEnd) {
            if let (Some(segment), Some(scanned)) = (unclean.get(torn), scanned.get_mut(torn)) {
                scanned.held.size = segment.size()?;
            }
            return Ok(None);
        }
        scanned.truncate(torn + 1);
        return Ok(Some(torn));
    }
    // a segment that was begun while the one before it was lost in part: nothing was acknowledged of it
    if let (Some(durable), [.., previous, last]) = (durable, scanned.as_slice()) {
        let base_offset = unclean.last().map_or(0, |segment| segment.base_offset());
        if last.held.size == 0 && base_offset > previous.end_offset.max(durable) {
            scanned.pop();
            return Ok(Some(scanned.len() - 1));
        }
    }
    Ok(None)
}

/// Cuts the log behind the data of a segment; what is cut is kept.
fn mend(directory: &Directory, unclean: &[Arc<Segment>], scanned: &[Scanned], cut: usize) -> Result<()> {
    let (Some(segment), Some(found)) = (unclean.get(cut), scanned.get(cut)) else { return Ok(()) };
    let gone = unclean.get(cut + 1..).unwrap_or_default();
    quarantine::keep(directory, segment.base_offset(), found.held.size)?;
    for segment in gone {
        quarantine::keep(directory, segment.base_offset(), 0)?;
    }
    remove_newest_first(directory, gone.iter().rev().map(|segment| segment.base_offset()))?;
    let file = directory.open_writable(&segment_file(segment.base_offset(), FileKind::Log))?;
    file.set_size(found.held.size)?;
    file.sync()
}

/// Writes both indexes of a segment, where they are not that already.
fn write_indexes(directory: &Directory, base_offset: i64, indexes: &scan::IndexBytes) -> Result<()> {
    for (kind, bytes) in
        [(FileKind::OffsetIndex, &indexes.offset_index), (FileKind::TimeIndex, &indexes.time_index)]
    {
        let name = segment_file(base_offset, kind);
        if directory.identity_of(&name)?.is_some_and(|held| held.size == bytes.len() as u64) {
            let mut found = vec![0; bytes.len()];
            directory.open_file(&name)?.read_exact_at(0, &mut found)?;
            if found == *bytes {
                directory.open_writable(&name)?.sync()?;
                continue;
            }
        }
        // as a whole: one that is there and empty would be taken for one without entries, and a reader may have the old one
        // mapped
        directory.replace(&name, bytes)?;
    }
    Ok(())
}

/// The history of leader epochs: that of its file, as far as the log bears it out; else that of the batches. A file that does
/// not know the last batch's epoch is an old one: under a lower epoch nothing could be appended that is then read.
fn epochs(
    directory: &Directory,
    segments: &[Arc<Segment>],
    scanned: &[Scanned],
    log_start_offset: i64,
    log_end_offset: i64,
) -> Result<LeaderEpochs> {
    let text = directory.read_small(LEADER_EPOCH_CHECKPOINT, MOST_BYTES)?;
    let mut last = -1;
    for segment in segments.iter().rev() {
        last = segment.last_epoch()?;
        if last >= 0 {
            break;
        }
    }
    let held = text.and_then(|text| LeaderEpochs::parse(&text).ok());
    let held = held.filter(|held| last < 0 || held.latest().is_some_and(|latest| latest >= last));
    let mut epochs = if let Some(held) = held {
        held
    } else {
        let mut epochs = LeaderEpochs::default();
        for segment in segments {
            for (epoch, offset) in segment.epochs()? {
                epochs.assign(epoch, offset);
            }
        }
        epochs
    };
    epochs.truncate_from_start(log_start_offset);
    epochs.truncate_from_end(log_end_offset);
    for (epoch, offset) in scanned.iter().flat_map(|scanned| &scanned.epochs) {
        let offset = (*offset).max(log_start_offset);
        // an epoch that begins at the log's end would be gone the next time
        if offset < log_end_offset && epochs.latest().is_none_or(|latest| *epoch > latest) {
            epochs.assign(*epoch, offset);
        }
    }
    Ok(epochs)
}

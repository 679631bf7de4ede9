//! What an opening finds, and what it will change. Nothing is changed here.

use std::sync::Arc;

use super::preconditions;
use super::scan_segment::{self, Scanned};
use crate::error::{Error, Malformed, NotFound, Result};
use crate::fs::Directory;
use crate::fs::seeded_bugs::{self, SeededBug};
use crate::log::{Log, LogOptions, Replacement};
use crate::segment::{Segment, SegmentState};
use crate::state::checkpoint::{Checkpoint, DurableOffsetFile};
use crate::state::clean_marker::{CleanMarker, durable_offset};
use crate::state::data_directory::{DataDirectory, start_without_segments};
use crate::state::leader_epochs::{LEADER_EPOCH_CHECKPOINT, LeaderEpochs};
use crate::state::partition_metadata::{PARTITION_METADATA, TopicId};
use crate::types::Io;
use crate::writer::partition::Partition;
use crate::writer::{MAX_SMALL_FILE, WriterOptions};

/// What an opening finds, and what it will change.
#[derive(Debug)]
pub(super) struct RecoveryPlan {
    pub(super) data_directory: Option<DataDirectory>,
    /// To be written to `partition.metadata`, which has none.
    pub(super) topic_id: Option<TopicId>,
    /// What batches are stamped with.
    pub(super) leader_epoch: i32,
    pub(super) work: Work,
}

/// What is to be done.
#[derive(Debug)]
pub(super) enum Work {
    /// There is no log, or one that was being emptied: what is left of it is removed, and an empty one begins.
    Begin { removed: Vec<i64>, log_start_offset: i64 },
    /// There is one.
    Recover(Box<Recovery>),
}

/// What becomes of a log that is there.
#[derive(Debug)]
pub(super) struct Recovery {
    /// The one that is there.
    pub(super) checkpoint: Option<Checkpoint>,
    /// A replacement of segments that was broken off, to be finished or undone first.
    pub(super) replacement: Replacement,
    /// What stays, in order.
    pub(super) segments: Vec<SegmentPlan>,
    pub(super) cut: Option<Cut>,
    /// What the last segment (or the last part of it) holds.
    pub(super) held: SegmentState,
    pub(super) data_end: i64,
    pub(super) log_end_offset: i64,
    pub(super) log_start_offset: i64,
    pub(super) epochs: LeaderEpochs,
}

/// A segment that stays.
#[derive(Debug)]
pub(super) struct SegmentPlan {
    pub(super) base_offset: i64,
    /// What was found in it: its indexes are written anew from that, and it is split where it has to be. `None`: it stays as
    /// it is.
    pub(super) scanned: Option<Scanned>,
    /// Its `.log` may not be durable yet.
    pub(super) is_unclean: bool,
}

impl SegmentPlan {
    /// Its base offset, or where it is split that of its first part.
    fn first_base_offset(&self) -> i64 {
        let first = self.scanned.as_ref().and_then(|scanned| scanned.parts.first());
        first.map_or(self.base_offset, |part| part.base_offset)
    }
}

/// A torn write: everything after it goes, and is kept in `quarantine/`.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) base_offset: i64,
    /// How many bytes of the `.log` stay.
    pub(super) size: u64,
    /// Segments that go as a whole.
    pub(super) removed: Vec<i64>,
}

/// Reads what is there, and decides.
pub(super) fn plan(directory: &Directory, options: &WriterOptions) -> Result<RecoveryPlan> {
    let checkpoint = Checkpoint::read(directory)?;
    let data_directory = DataDirectory::around(directory)?;
    let topic_id = missing_topic_id(directory, options)?;
    let starting_at = checkpoint.and_then(|checkpoint| checkpoint.starting_at);
    let log_options = LogOptions { io: Io::Pread, interrupt: options.interrupt, ..LogOptions::default() };
    let work = match Log::open_in(directory.clone(), log_options) {
        Ok(log) if starting_at.is_none() => {
            Work::Recover(Box::new(recovery(directory, options, checkpoint, data_directory.as_ref(), &log)?))
        }
        Ok(_) | Err(Error::LogNotFound { found: NotFound::NoSegment, .. }) => {
            beginning(directory, checkpoint, data_directory.as_ref())?
        }
        Err(error) => return Err(error),
    };
    let leader_epoch = match &work {
        Work::Begin { .. } => LeaderEpochs::default().next_epoch(options.leader_epoch)?,
        Work::Recover(recovery) => recovery.epochs.next_epoch(options.leader_epoch)?,
    };
    Ok(RecoveryPlan { data_directory, topic_id, leader_epoch, work })
}

/// The topic's id that the partition does not have yet, though one is given.
fn missing_topic_id(directory: &Directory, options: &WriterOptions) -> Result<Option<TopicId>> {
    let held = directory.read_small(PARTITION_METADATA, MAX_SMALL_FILE)?;
    let held = held.map(|text| {
        TopicId::parse_file(&text).map_err(|wrong| {
            let expected = "the id of a topic (remove the file to have it written anew)";
            Malformed::new(expected, wrong).at(directory.path_of(PARTITION_METADATA), 0, None)
        })
    });
    match (held.transpose()?, &options.topic_id) {
        (Some(held), Some(given)) if held != *given => {
            Err(Error::config("topic_id", format!("{held}, as the partition has it"), given.to_string()))
        }
        (None, Some(given)) => Ok(Some(given.clone())),
        _ => Ok(None),
    }
}

/// No log, or one that was being emptied.
fn beginning(
    directory: &Directory,
    checkpoint: Option<Checkpoint>,
    data_directory: Option<&DataDirectory>,
) -> Result<Work> {
    let starting_at = checkpoint.and_then(|checkpoint| checkpoint.starting_at);
    let log_start_offset = match starting_at {
        Some(starting_at) => starting_at,
        None => start_without_segments(directory, checkpoint, data_directory)?,
    };
    preconditions::unfinished(directory)?;
    let removed = directory.segment_bases()?;
    if let Some(checkpoint) = checkpoint.filter(|_| !removed.is_empty()) {
        preconditions::written_since(directory, checkpoint)?;
    }
    Ok(Work::Begin { removed, log_start_offset })
}

fn recovery(
    directory: &Directory,
    options: &WriterOptions,
    checkpoint: Option<Checkpoint>,
    data_directory: Option<&DataDirectory>,
    log: &Log,
) -> Result<Recovery> {
    let segments: Vec<Arc<Segment>> = log.segments().iter().cloned().collect();
    let replacement = log.replacement()?;
    replacement.ensure_consistent(directory)?;
    ensure_whole(&replacement, &segments, options)?;
    let marker = CleanMarker::read(directory)?;
    let durable = durable_offset(directory, marker.as_ref())?;
    let recovery_point = match (checkpoint, data_directory) {
        (Some(checkpoint), _) => checkpoint.recovery_point,
        (None, Some(data_directory)) => data_directory.recovery_point()?.unwrap_or(0),
        (None, None) => 0,
    };
    if let Some(checkpoint) = checkpoint {
        preconditions::later_start(directory, &segments, checkpoint, data_directory)?;
    }
    let clean = match marker {
        Some(marker) => {
            // a broker that compacts makes several segments into one
            if !options.config.cleanup_policy.compact && replacement.is_empty() {
                marker.refuse_missing(directory)?;
            }
            marker.refuse_other_end(directory, &segments)?;
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
        preconditions::producers(before, options)?;
    }
    // not by the clean marker: what follows the end that it states was written by a broker, and may be more than a torn write
    let synced = DurableOffsetFile::read(directory)?;
    let mut scanned = scan_all(before.last(), unclean, synced, options)?;
    let torn = what_to_cut(unclean, &mut scanned, synced)?;
    let cut = torn.and_then(|torn| {
        let base_offset = unclean.get(torn)?.base_offset();
        let removed = unclean.get(torn + 1..).unwrap_or_default();
        let removed = removed.iter().map(|segment| segment.base_offset()).collect();
        Some(Cut { base_offset, size: scanned.get(torn)?.size(), removed })
    });
    let kept = from + scanned.len();
    let Some(last) = kept.checked_sub(1).and_then(|last| segments.get(last)) else {
        // the first segment is never cut as a whole
        return Err(Error::config("path", "a directory with a segment", "none"));
    };
    let end = match scanned.last() {
        Some(scanned) => scanned.end_offset,
        None => last.end_offset()?,
    };
    if let Some(durable) = durable.filter(|durable| *durable > end) {
        return Err(preconditions::missing(directory, durable, end));
    }
    let rule = Partition::index_rule(&options.config);
    let mut plans = Vec::with_capacity(kept);
    for segment in before {
        let is_taken = clean || has_trimmed_indexes(segment)?;
        let scanned = if is_taken && has_indexes(segment)? {
            None
        } else {
            let scanned = scan_segment::scan(segment, -1, None, rule, options.interrupt)?;
            // a reader passes over the damage, and nothing may be lost that it finds after that
            if let (Some((damage, _)), true) = (&scanned.cut, scanned.is_overflowed(segment.base_offset())) {
                return Err(segment.corrupt(damage));
            }
            Some(scanned)
        };
        plans.push(SegmentPlan { base_offset: segment.base_offset(), scanned, is_unclean: false });
    }
    plans.extend(unclean.iter().zip(scanned).map(|(segment, scanned)| SegmentPlan {
        base_offset: segment.base_offset(),
        scanned: Some(scanned),
        is_unclean: true,
    }));
    let mut log_start_offset = plans.first().map_or(0, SegmentPlan::first_base_offset);
    if let Some(start) = data_directory.map(DataDirectory::log_start_offset).transpose()?.flatten() {
        // a hint: one that would hide everything does not count
        log_start_offset = if start <= end { log_start_offset.max(start) } else { log_start_offset };
    }
    log_start_offset = log_start_offset.max(checkpoint.map_or(0, |checkpoint| checkpoint.log_start_offset));
    let log_end_offset = end.max(log_start_offset);
    let epochs = epochs(directory, &segments, &plans, log_start_offset, log_end_offset)?;
    let held = match plans.last().and_then(|last| last.scanned.as_ref()?.parts.last()) {
        Some(part) => part.held,
        None => scan_segment::held(last)?,
    };
    Ok(Recovery {
        checkpoint,
        replacement,
        segments: plans,
        cut,
        held,
        data_end: end,
        log_end_offset,
        log_start_offset,
        epochs,
    })
}

/// Fails where a segment that is to replace others is damaged: what they hold may be whole.
fn ensure_whole(replacement: &Replacement, segments: &[Arc<Segment>], options: &WriterOptions) -> Result<()> {
    let rule = Partition::index_rule(&options.config);
    for (base_offset, _) in &replacement.ranges {
        for segment in segments.iter().filter(|segment| segment.base_offset() == *base_offset) {
            if let Some((damage, _)) = scan_segment::scan(segment, -1, None, rule, options.interrupt)?.cut {
                return Err(segment.corrupt(&damage));
            }
        }
    }
    Ok(())
}

fn has_indexes(segment: &Segment) -> Result<bool> {
    Ok(segment.offset_index()?.is_some() && segment.time_index()?.is_some())
}

/// Whether both indexes are cut to their entries: a crash may have come between a roll's new segment and that.
fn has_trimmed_indexes(segment: &Segment) -> Result<bool> {
    Ok(match (segment.offset_index()?, segment.time_index()?) {
        (Some(offsets), Some(times)) => {
            offsets.entries() == offsets.max_entries() && times.entries() == times.max_entries()
        }
        _ => false,
    })
}

fn scan_all(
    before: Option<&Arc<Segment>>,
    unclean: &[Arc<Segment>],
    synced: Option<i64>,
    options: &WriterOptions,
) -> Result<Vec<Scanned>> {
    // compaction may have removed the batch that ended there
    let synced = synced.filter(|_| !options.config.cleanup_policy.compact);
    let rule = Partition::index_rule(&options.config);
    let mut epoch = match before {
        Some(segment) => segment.last_epoch()?,
        None => -1,
    };
    let mut scanned = Vec::with_capacity(unclean.len());
    for segment in unclean {
        // what the disk has, not what is in memory only because writing it failed
        segment.forget_cached()?;
        let found = scan_segment::scan(segment, epoch, synced, rule, options.interrupt)?;
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
        let is_last = rest.iter().all(|scanned| scanned.size() == 0);
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
        if seeded_bugs::is(SeededBug::LengthTrustedPastEnd) {
            if let (Some(segment), Some(scanned)) = (unclean.get(torn), scanned.get_mut(torn))
                && let Some(part) = scanned.parts.last_mut()
            {
                part.held.size = segment.file_size()? - part.start;
            }
            return Ok(None);
        }
        scanned.truncate(torn + 1);
        return Ok(Some(torn));
    }
    // a segment that was begun while the one before it was lost in part: nothing was acknowledged of it
    if let (Some(durable), [.., previous, last]) = (durable, scanned.as_slice()) {
        let base_offset = unclean.last().map_or(0, |segment| segment.base_offset());
        if last.size() == 0 && base_offset > previous.end_offset.max(durable) {
            scanned.pop();
            return Ok(Some(scanned.len() - 1));
        }
    }
    Ok(None)
}

/// The history of leader epochs: that of its file, as far as the log bears it out; else that of the batches. A file that does
/// not know the last batch's epoch is an old one: under a lower epoch nothing could be appended that is then read.
fn epochs(
    directory: &Directory,
    segments: &[Arc<Segment>],
    plans: &[SegmentPlan],
    log_start_offset: i64,
    log_end_offset: i64,
) -> Result<LeaderEpochs> {
    let text = directory.read_small(LEADER_EPOCH_CHECKPOINT, MAX_SMALL_FILE)?;
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
    let scanned = plans.iter().filter(|plan| plan.is_unclean).filter_map(|plan| plan.scanned.as_ref());
    for (epoch, offset) in scanned.flat_map(|scanned| &scanned.epochs) {
        let offset = (*offset).max(log_start_offset);
        // an epoch that begins at the log's end would be gone the next time
        if offset < log_end_offset && epochs.latest().is_none_or(|latest| *epoch > latest) {
            epochs.assign(*epoch, offset);
        }
    }
    Ok(epochs)
}

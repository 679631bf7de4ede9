//! Pass 5: the recovery of segments.
//!
//! *Source*: `LogLoader.recoverSegment`, `recoverLog`.

use super::action::{ActionKind, ActionReason};
use super::exception::{ExceptionKind, Step, Thrown};
use super::run::{Run, Segments};
use super::segment::Segment;
use super::snapshots::{self, Snapshots};
use crate::fs::names::{FileKind, Stage};

/// The kinds of the files that a recovery writes.
const INDEXES: [FileKind; 3] = [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex];

/// The log while it is loaded.
#[derive(Debug)]
pub(super) struct Loading {
    pub(super) segments: Segments,
    pub(super) producers: Snapshots,
    /// From the checkpoint.
    pub(super) log_start_offset: i64,
    /// From the checkpoint.
    pub(super) recovery_point: i64,
    pub(super) was_closed_cleanly: bool,
    /// A segment that is not yet among the others and whose offsets overflow.
    pub(super) overflowed: Option<Segment>,
}

/// What recovery returns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recovered {
    pub(super) recovery_point: i64,
    pub(super) log_end_offset: i64,
}

/// Recovers a segment that pass 4 has opened, and adds it to the others.
pub(super) fn recover_opened(
    run: &mut Run,
    loading: &mut Loading,
    mut segment: Segment,
    reason: ActionReason,
) -> Step<()> {
    let mut producers = snapshots::list(&run.disk)?;
    let base_offset = segment.base_offset;
    let offsets = loading.log_start_offset..base_offset;
    producers.rebuild(run, &mut loading.segments, offsets, false)?;
    let recovered = recover(run, &mut segment, &mut producers, reason);
    if let Err(Thrown::Overflow(_)) = recovered {
        loading.overflowed = Some(segment);
        return recovered.map(drop);
    }
    loading.segments.add(segment);
    recovered?;
    producers.take(run)
}

/// Recovers one of the segments. Returns the number of bytes that were cut.
fn recover_in(run: &mut Run, loading: &mut Loading, base_offset: i64) -> Step<u64> {
    let mut producers = snapshots::list(&run.disk)?;
    let offsets = loading.log_start_offset..base_offset;
    producers.rebuild(run, &mut loading.segments, offsets, false)?;
    let Some(segment) = loading.segments.get_mut(base_offset) else { return Ok(0) };
    let cut = recover(run, segment, &mut producers, ActionReason::Recovery)?;
    producers.take(run)?;
    Ok(cut)
}

/// Recovers a segment and notes what that does to its files.
fn recover(
    run: &mut Run,
    segment: &mut Segment,
    producers: &mut Snapshots,
    reason: ActionReason,
) -> Step<u64> {
    let before = INDEXES.map(|kind| run.disk.size(&segment.name(kind)));
    let epochs = run.epochs.entries().to_vec();
    let old_size = segment.log_size;
    run.stop_reason = None;
    let recovered = segment.recover(run, producers);
    if let Ok(cut) = &recovered
        && *cut > 0
    {
        let why =
            if run.stop_reason.is_some() { ActionReason::InvalidBatch } else { ActionReason::TornBatch };
        let sizes = (Some(old_size), Some(segment.log_size));
        run.note(ActionKind::Cut, &segment.name(FileKind::Log), why, sizes, true);
        let end = segment.next_offset(&mut run.disk)?.0;
        run.cuts.push((segment.base_offset, end));
    }
    for (kind, old_size) in INDEXES.into_iter().zip(before) {
        let name = segment.name(kind);
        if old_size.is_none() && !run.disk.exists(&name) {
            continue;
        }
        let action = if recovered.is_ok() { ActionKind::Rebuild } else { ActionKind::Resize };
        let is_changed = !run.disk.is_unchanged(&name)?;
        let new_size = run.disk.size(&name);
        run.note(action, &name, reason, (old_size, new_size), is_changed);
    }
    if run.epochs.entries() != epochs {
        run.epochs_written()?;
    }
    recovered
}

/// Recovers the log.
pub(super) fn recover_log(run: &mut Run, loading: &mut Loading) -> Step<Recovered> {
    if !loading.was_closed_cleanly {
        recover_unflushed(run, loading)?;
    }
    let end = remove_if_below_start(run, loading)?;
    if loading.segments.is_empty() {
        let size = u64::from(run.config.init_file_size());
        let segment = Segment::open(run, loading.log_start_offset, Stage::Live, size)?;
        loading.segments.add(segment);
    }
    match end {
        Some(end) if loading.was_closed_cleanly => Ok(Recovered { recovery_point: end, log_end_offset: end }),
        _ => {
            let end = match end {
                Some(end) => end,
                None => end_offset(run, loading)?,
            };
            Ok(Recovered { recovery_point: loading.recovery_point.min(end), log_end_offset: end })
        }
    }
}

fn end_offset(run: &mut Run, loading: &mut Loading) -> Step<i64> {
    loading.segments.last_mut().map_or(Ok(0), |last| Ok(last.next_offset(&mut run.disk)?.0))
}

/// Recovers the segments from the recovery point on, up to the first that is cut; those after it are removed.
fn recover_unflushed(run: &mut Run, loading: &mut Loading) -> Step<()> {
    let unflushed = loading.segments.between(loading.recovery_point, i64::MAX)?;
    for (number, base_offset) in unflushed.iter().enumerate() {
        let cut = match recover_in(run, loading, *base_offset) {
            Err(Thrown::Kafka(thrown))
                if matches!(thrown.kind, ExceptionKind::InvalidOffset | ExceptionKind::Io) =>
            {
                empty(run, loading, *base_offset)?
            }
            recovered => recovered?,
        };
        if cut > 0 {
            if let Some(segment) = loading.segments.get_mut(*base_offset) {
                // only for a message in the broker's log; but it can throw
                segment.next_offset(&mut run.disk)?;
            }
            let rest = unflushed.get(number + 1..).unwrap_or_default();
            remove(run, loading, rest, ActionReason::AfterCut);
            return Ok(());
        }
    }
    Ok(())
}

/// Truncates a segment to its base offset.
fn empty(run: &mut Run, loading: &mut Loading, base_offset: i64) -> Step<u64> {
    let Some(segment) = loading.segments.get_mut(base_offset) else { return Ok(0) };
    let old_size = segment.log_size;
    let cut = segment.truncate_to(&mut run.disk, base_offset)?;
    let sizes = (Some(old_size), Some(segment.log_size));
    let name = segment.name(FileKind::Log);
    run.note(ActionKind::Cut, &name, ActionReason::InvalidOffset, sizes, true);
    run.cuts.push((base_offset, base_offset));
    Ok(cut)
}

/// Removes all segments if the log ends below its start. Returns the log end offset otherwise.
///
/// *Source*: `LogLoader.deleteSegmentsIfLogStartGreaterThanLogEnd`.
fn remove_if_below_start(run: &mut Run, loading: &mut Loading) -> Step<Option<i64>> {
    if loading.segments.is_empty() {
        return Ok(None);
    }
    let end = end_offset(run, loading)?;
    if end >= loading.log_start_offset {
        return Ok(Some(end));
    }
    let all: Vec<_> = loading.segments.bases().collect();
    remove(run, loading, &all, ActionReason::BelowLogStart);
    run.epochs.clear(&mut run.disk);
    run.epochs_written()?;
    snapshots::start_at(&mut loading.producers, run, loading.log_start_offset);
    Ok(None)
}

/// Removes segments and the snapshots at their base offsets.
fn remove(run: &mut Run, loading: &mut Loading, bases: &[i64], reason: ActionReason) {
    for base_offset in bases {
        if let Some(segment) = loading.segments.remove(*base_offset) {
            for kind in [FileKind::Log].into_iter().chain(INDEXES) {
                run.delete_later(&segment.name(kind), reason);
            }
        }
    }
    for base_offset in bases {
        snapshots::mark_deleted(&mut loading.producers, run, *base_offset, reason);
    }
}

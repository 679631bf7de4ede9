//! The passes in which Kafka loads a partition directory.
//!
//! ```text
//! 1  scan       .deleted, .cleaned and uncommitted .swap files are removed
//! 2  swap       files in the offsets of committed .swap files are removed
//! 3  rename     .swap files lose the suffix
//! 4  load       segments are opened; one without an offset index is recovered
//! 5  recover    after an unclean shutdown, segments from the recovery point on; then the active segment's indexes are resized
//! 6  epochs     leader epochs outside the log are dropped
//! 7  producers  the state of the producers is rebuilt
//! ```
//!
//! *Source*: `LogLoader`.

use super::action::{ActionKind, ActionReason};
use super::exception::{ExceptionKind, Step, Thrown};
use super::recovery::{self, Loading};
use super::run::{Run, Segments, offset_in};
use super::segment::{Segment, file_name};
use super::snapshots::{self, Snapshots};
use super::split;
use crate::fs::names::{FileKind, Stage};

/// Where the log starts and ends, as Kafka loads it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoadedOffsets {
    pub(super) log_start_offset: i64,
    pub(super) recovery_point: i64,
    pub(super) log_end_offset: i64,
}

/// Loads the directory. `is_deleted`: the directory's name ends in `-delete`.
pub(super) fn load(run: &mut Run, loading: &mut Loading, is_deleted: bool) -> Step<LoadedOffsets> {
    let swaps = scan(run)?;
    finish_swaps(run, &swaps)?;
    split::retry(run, loading, |run, loading| {
        loading.segments.clear();
        load_segments(run, loading)
    })?;
    let recovered = if is_deleted {
        if loading.segments.is_empty() {
            let size = u64::from(run.config.init_file_size());
            loading.segments.add(Segment::open(run, 0, Stage::Live, size)?);
        }
        recovery::Recovered { recovery_point: 0, log_end_offset: 0 }
    } else {
        let recovered = split::retry(run, loading, recovery::recover_log)?;
        resize_active(run, &mut loading.segments)?;
        recovered
    };
    let end = recovered.log_end_offset;
    run.epochs.truncate_from_end(end);
    let first = loading.segments.bases().next().unwrap_or(0);
    let log_start_offset = loading.log_start_offset.max(first);
    run.epochs.truncate_from_start(loading.log_start_offset);
    let bases: Vec<_> = loading.segments.bases().collect();
    let Loading { segments, producers, was_closed_cleanly, .. } = loading;
    if !producers.producers.states.is_empty() {
        return Err(Thrown::kafka(ExceptionKind::IllegalState, "", "the producer state is not empty"));
    }
    snapshots::remove_stray(producers, run, &bases)?;
    producers.rebuild(run, segments, log_start_offset..end, *was_closed_cleanly)?;
    Ok(LoadedOffsets {
        log_start_offset,
        recovery_point: recovered.recovery_point.max(log_start_offset),
        log_end_offset: end,
    })
}

/// Pass 1: returns the names of the committed `.swap` files.
fn scan(run: &mut Run) -> Step<Vec<String>> {
    let (mut swaps, mut cleaned, mut min_cleaned) = (Vec::new(), Vec::new(), i64::MAX);
    for name in run.disk.names() {
        if name.ends_with(Stage::Deleted.suffix()) && !name.ends_with(".checkpoint.deleted") {
            run.delete(&name, ActionReason::Deleted);
        } else if name.ends_with(Stage::Cleaned.suffix()) {
            min_cleaned = min_cleaned.min(offset_in(&name)?);
            cleaned.push(name);
        } else if name.ends_with(Stage::Swap.suffix()) {
            swaps.push(name);
        }
    }
    let mut committed = Vec::new();
    let mut uncommitted = Vec::new();
    for name in swaps {
        let into = if offset_in(&name)? >= min_cleaned { &mut uncommitted } else { &mut committed };
        into.push(name);
    }
    for name in uncommitted.iter().chain(&cleaned) {
        run.delete(name, ActionReason::Uncommitted);
    }
    Ok(committed)
}

/// Passes 2 and 3.
fn finish_swaps(run: &mut Run, swaps: &[String]) -> Step<()> {
    const SWAP: &str = ".swap";
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    let is_log =
        |name: &str| name.strip_suffix(SWAP).is_some_and(|name| name.ends_with(FileKind::Log.suffix()));
    for name in swaps.iter().filter(|name| is_log(name)) {
        let mut segment = Segment::open(run, offset_in(name)?, Stage::Swap, 0)?;
        low = low.min(segment.base_offset);
        high = high.max(segment.next_offset(&mut run.disk)?.0);
    }
    for name in run.disk.names() {
        let is_replaced = !name.ends_with(SWAP)
            && name.contains('.')
            && offset_in(&name).is_ok_and(|offset| offset >= low && offset < high);
        if is_replaced {
            run.delete(&name, ActionReason::Replaced);
        }
    }
    for name in run.disk.names() {
        if let Some(new_file) = name.strip_suffix(SWAP) {
            run.rename(&name, new_file.to_owned(), ActionReason::Committed);
        }
    }
    Ok(())
}

/// Pass 4.
fn load_segments(run: &mut Run, loading: &mut Loading) -> Step<()> {
    for name in run.disk.names() {
        let is_index = [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex]
            .iter()
            .any(|kind| name.ends_with(kind.suffix()));
        if is_index {
            if !run.disk.exists(&file_name(offset_in(&name)?, FileKind::Log, Stage::Live)) {
                run.delete(&name, ActionReason::Orphaned);
            }
            continue;
        }
        if !name.ends_with(FileKind::Log.suffix()) {
            continue;
        }
        let base_offset = offset_in(&name)?;
        let mut segment = Segment::open(run, base_offset, Stage::Live, 0)?;
        let problem = check(run, &mut segment)?;
        if let Some(reason) = problem {
            recovery::recover_opened(run, loading, segment, reason)?;
        } else {
            loading.segments.add(segment);
        }
    }
    Ok(())
}

/// Why a segment has to be recovered when it is opened.
///
/// *Source*: `LogSegment.sanityCheck`.
fn check(run: &mut Run, segment: &mut Segment) -> Step<Option<ActionReason>> {
    let time_index = segment.name(FileKind::TimeIndex);
    // of a segment that is not recovered, Kafka opens no index: a directory may have its name
    let has = |name: &str| run.disk.exists(name) || run.disk.is_directory(name);
    let had_time_index = has(&time_index);
    if !has(&segment.name(FileKind::OffsetIndex)) {
        return Ok(Some(ActionReason::MissingIndex));
    }
    if !had_time_index {
        segment.time_index(&mut run.disk, |index| index.resize(0))?;
        run.act(ActionKind::Create, &time_index, ActionReason::Missing)?;
    }
    let is_wrong = segment.has_wrong_transactions(&run.disk)?;
    Ok(is_wrong.then_some(ActionReason::WrongTransactionIndex))
}

/// The end of pass 5: the indexes of the active segment get their full size.
fn resize_active(run: &mut Run, segments: &mut Segments) -> Step<()> {
    let Some(segment) = segments.last_mut() else { return Ok(()) };
    let names = [segment.name(FileKind::OffsetIndex), segment.name(FileKind::TimeIndex)];
    let before = names.each_ref().map(|name| run.disk.size(name));
    let resized = segment.resize_indexes(&mut run.disk);
    for (name, old_size) in names.iter().zip(before) {
        let new_size = run.disk.size(name);
        if new_size != old_size {
            let kind = if old_size.is_some() { ActionKind::Resize } else { ActionKind::Create };
            run.note(kind, name, ActionReason::ActiveSegment, (old_size, new_size), true);
        }
    }
    resized
}

/// The producers at the start: none, and the snapshots in the directory.
pub(super) fn producers(run: &Run) -> Step<Snapshots> {
    snapshots::list(&run.disk)
}

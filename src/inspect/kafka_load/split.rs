//! The split of a segment whose offsets do not fit into its indexes.
//!
//! *Source*: `LogLoader.retryOnOffsetOverflow`, `LocalLog.splitOverflowedSegment`, `replaceSegments`,
//! `LogSegment.appendFromFile`.

use super::action::{ActionKind, ActionReason};
use super::disk::Contents;
use super::exception::{ExceptionKind, Step, Thrown};
use super::recovery::Loading;
use super::run::Run;
use super::segment::{Segment, file_name};
use super::snapshots;
use crate::fs::names::{FileKind, Stage};
use crate::inspect::batch_place::BatchPlace;
use crate::types::{OffsetPosition, TimestampOffset};

/// Batches are copied in chunks below this size; one batch may be larger.
const CHUNK_BYTES: u64 = 1 << 20;

/// After so many splits of the same base offset Kafka is taken to go on forever.
const MAX_SPLITS: usize = 3;

/// Runs a step until no segment overflows.
pub(super) fn retry<'a, T>(
    run: &mut Run<'a>,
    loading: &mut Loading,
    mut step: impl FnMut(&mut Run<'a>, &mut Loading) -> Step<T>,
) -> Step<T> {
    let mut splits: Vec<i64> = Vec::new();
    loop {
        let base_offset = match step(run, loading) {
            Err(Thrown::Overflow(base_offset)) => base_offset,
            done => return done,
        };
        splits.push(base_offset);
        if splits.iter().filter(|split| **split == base_offset).count() > MAX_SPLITS {
            let name = file_name(base_offset, FileKind::Log, Stage::Live);
            let reason = "the segment is split again and again: the broker hangs";
            return Err(Thrown::kafka(ExceptionKind::IllegalState, &name, reason));
        }
        split(run, loading, base_offset)?;
    }
}

fn split(run: &mut Run, loading: &mut Loading, base_offset: i64) -> Step<()> {
    let opened = loading.overflowed.take();
    let Some(mut source) = opened.or_else(|| loading.segments.get_mut(base_offset).cloned()) else {
        return Ok(());
    };
    let name = source.name(FileKind::Log);
    let next = source.next_offset(&mut run.disk)?.0;
    if next <= base_offset || source.fits(next.wrapping_sub(1)) {
        let reason = "an offset is too far from the base offset, but not the last one: a split is only permitted for that";
        return Err(Thrown::kafka(ExceptionKind::IllegalArgument, &name, reason));
    }
    let mut parts = Vec::new();
    let copied = copy_parts(run, &mut source, &mut parts);
    if let Err(thrown) = copied {
        for part in &parts {
            remove_files(run, part);
        }
        return Err(thrown);
    }
    for part in &mut parts {
        part.become_inactive(&mut run.disk)?;
    }
    replace(run, loading, source, parts)
}

fn remove_files(run: &mut Run, segment: &Segment) {
    for kind in [FileKind::Log, FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex] {
        run.disk.remove(&segment.name(kind));
    }
}

/// Copies the batches into new segments.
fn copy_parts(run: &mut Run, source: &mut Segment, parts: &mut Vec<Segment>) -> Step<()> {
    let mut position = 0;
    while position < source.log_size {
        let mut batches = source.batches(&run.disk)?;
        let Some(first) = batches.at(position)? else {
            let reason = format!("there is no batch at position {position}");
            return Err(batches.thrown(ExceptionKind::NoSuchElement, reason));
        };
        let base_offset = batches.base_offset(&first)?;
        let mut part =
            Segment::open(run, base_offset, Stage::Cleaned, u64::from(run.config.init_file_size()))?;
        let start = position;
        let copied = copy_part(run, source, &mut part, &mut position);
        run.disk.put(&part.name(FileKind::Log), source.part_of_log(&run.disk, start, position));
        part.log_size = position - start;
        parts.push(part);
        copied?;
        if position == start {
            let reason = format!("no batch at position {position} fits into a new segment");
            return Err(batches.thrown(ExceptionKind::IllegalState, reason));
        }
    }
    Ok(())
}

/// Copies the batches from a position into a new segment, chunk by chunk, while their offsets fit.
fn copy_part(run: &mut Run, source: &Segment, part: &mut Segment, position: &mut u64) -> Step<()> {
    let mut batches = source.batches(&run.disk)?;
    let start = *position;
    let mut capacity = CHUNK_BYTES;
    loop {
        let mut chunk: Vec<BatchPlace> = Vec::new();
        let mut end = *position;
        while let Some(batch) = batches.at(end)? {
            let is_small = chunk.is_empty() || batch.end() - *position < capacity;
            if !part.fits(batches.last_offset(&batch)?) || !is_small {
                break;
            }
            end = batch.end();
            chunk.push(batch);
        }
        // the index is mapped by the question whether an offset fits
        part.offset_index(&mut run.disk, |_| Ok(()))?;
        if chunk.is_empty() {
            return Ok(());
        }
        capacity = capacity.max(end - *position);
        for batch in &chunk {
            run.interrupt.check()?;
            let header = batches.header(batch)?;
            let largest = part.largest(&mut run.disk)?;
            if header.max_timestamp > largest.timestamp {
                part.largest =
                    Some(TimestampOffset { timestamp: header.max_timestamp, offset: header.last_offset });
            }
            if part.bytes_since_entry > u64::from(run.config.index_interval_bytes) {
                let at = i32::try_from(batch.position - start).unwrap_or(i32::MAX);
                let entry = OffsetPosition { offset: header.last_offset, position: at };
                part.offset_index(&mut run.disk, |index| index.append(entry))?;
                let largest = part.largest(&mut run.disk)?;
                part.time_index(&mut run.disk, |index| index.maybe_append(largest, false))?;
                part.bytes_since_entry = 0;
            }
            part.bytes_since_entry += u64::from(batch.size);
        }
        *position = end;
    }
}

/// Puts the new segments in the place of the old one.
fn replace(run: &mut Run, loading: &mut Loading, mut source: Segment, mut parts: Vec<Segment>) -> Step<()> {
    let base_offset = source.base_offset;
    let old_name = source.name(FileKind::Log);
    let old_size = source.log_size;
    parts.sort_by_key(|part| part.base_offset);
    for part in parts.iter_mut().rev() {
        part.set_stage(&mut run.disk, Stage::Swap);
    }
    // while segments are opened, the overflowing one is not yet among them, and Kafka leaves its files
    let is_listed = loading.segments.remove(base_offset).is_some();
    let is_replaced = parts.iter().any(|part| part.base_offset == base_offset);
    if is_listed {
        source.set_stage(&mut run.disk, Stage::Deleted);
        for kind in [FileKind::Log, FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex] {
            run.deleted_later.push(source.name(kind));
        }
        run.note(ActionKind::DeleteLater, &old_name, ActionReason::Split, (Some(old_size), None), true);
    }
    for mut part in parts {
        part.set_stage(&mut run.disk, Stage::Live);
        for kind in [FileKind::Log, FileKind::OffsetIndex, FileKind::TimeIndex] {
            run.act(ActionKind::Write, &part.name(kind), ActionReason::Split)?;
        }
        loading.segments.add(part);
    }
    if is_listed && !is_replaced {
        snapshots::mark_deleted(&mut loading.producers, run, base_offset, ActionReason::Split);
    }
    Ok(())
}

impl Segment {
    /// A part of its `.log`.
    fn part_of_log(&self, disk: &super::disk::Disk, start: u64, end: u64) -> Contents {
        match disk.files().get(&self.name(FileKind::Log)) {
            Some(Contents::Source { name, start: first, .. }) => {
                Contents::Source { name: name.clone(), start: first + start, size: end - start }
            }
            _ => Contents::made(Vec::new()),
        }
    }
}

//! Cutting of ranges into tasks of similar size. Every record of a range is in exactly one piece.

use super::bounds::Bounds;
use super::context::Context;
use super::error::{Code, PlanError, Result};
use super::options::{SourceOptions, Table};
use super::piece::{Piece, Task};
use super::restriction::Restriction;
use crate::log::{Log, OnDamage, PlannedSegment, Ranges, ScanOptions, ScanStep, Split};
use crate::record::BatchHeader;
use crate::types::IsolationLevel;

const MAX_BYTES: u64 = 128 << 20;
/// For smaller tasks the overhead of a task exceeds the cost of reading.
const MIN_BYTES: u64 = 16 << 20;
/// The cost of opening a log, in bytes, when small pieces share a task.
const OPENING_BYTES: u64 = 1 << 20;
/// The tolerance for cuts at batch boundaries.
const BATCH_BYTES: u64 = 256 << 10;
/// If a piece has more offsets than this multiple of the maximum of a part, its offsets are treated as
/// sparse.
const DENSE: u64 = 1000;

/// A plan in progress.
#[derive(Debug)]
pub(crate) struct Cutting<'a> {
    options: &'a SourceOptions,
    restriction: &'a Restriction,
    /// The ranges so far: one piece for each, or for each segment of it.
    coarse: Vec<Piece>,
}

impl<'a> Cutting<'a> {
    pub(crate) fn new(options: &'a SourceOptions, restriction: &'a Restriction) -> Self {
        Self { options, restriction, coarse: Vec::new() }
    }

    /// Adds a range. It is planned from the log as it was when the range was found.
    pub(crate) fn add(&mut self, context: &Context, bounds: &Bounds) -> Result<()> {
        if self.options.table == Table::Segments {
            self.coarse.extend(context.segments_of(bounds, self.options)?);
        } else if bounds.start_offset < bounds.end_offset {
            self.coarse.extend(context.coarse(bounds, self.options, self.restriction)?);
        }
        Ok(())
    }

    /// Cuts the ranges into tasks of similar size, the largest first. There is at least one, which may have
    /// no piece: engines do not accept an empty plan.
    ///
    /// A piece is cut at batch boundaries and has at most `maxPartitionBytes` (or one batch); small pieces
    /// share a task. `minPartitions` makes the pieces smaller, so that there are at least that many (if
    /// there are enough records, and not always if compaction has removed some of them), and
    /// `maxRecordsPerPartition` limits their offsets. Both cut inside a batch if necessary, which two
    /// tasks then read.
    pub(crate) fn finish(self, context: &Context) -> Result<Vec<Task>> {
        let Self { options, coarse, .. } = self;
        if options.table == Table::Segments {
            return Ok(packed(coarse, options.max_partition_bytes.unwrap_or(MAX_BYTES)));
        }
        let total = coarse.iter().fold(0_u64, |total, piece| total.saturating_add(piece.split.size));
        let for_cores = || (total / cores()).clamp(MIN_BYTES, MAX_BYTES);
        let mut target = options.max_partition_bytes.unwrap_or_else(for_cores);
        if let Some(min_partitions) = options.min_partitions {
            target = target.min((total / min_partitions).max(1));
        }
        let mut pieces = Vec::new();
        for piece in coarse {
            pieces.extend(context.finer(piece, target, options)?);
        }
        // the other tables have a row for each batch: two parts of a batch would both have it
        if let Some(max_offsets) = options.max_offsets(&pieces).filter(|_| options.table == Table::Records) {
            let mut smaller = Vec::new();
            for piece in pieces {
                context.by_records(piece, max_offsets, options, &mut smaller)?;
            }
            pieces = smaller;
        }
        let is_alone = options.min_partitions.is_some() || options.max_records_per_partition.is_some();
        Ok(packed(pieces, if is_alone { 0 } else { target }))
    }
}

impl SourceOptions {
    /// The maximum number of offsets of a piece: `maxRecordsPerPartition`, and less if there are fewer pieces
    /// than `minPartitions`.
    fn max_offsets(&self, pieces: &[Piece]) -> Option<u64> {
        let few = self.min_partitions.filter(|min_partitions| (pieces.len() as u64) < *min_partitions);
        let offsets = pieces.iter().map(offsets_of).fold(0, u64::saturating_add);
        let for_min = few.map(|min_partitions| (offsets / min_partitions).max(1));
        match (self.max_records_per_partition, for_min) {
            (Some(max_offsets), Some(for_min)) => Some(max_offsets.min(for_min)),
            (max_offsets, for_min) => max_offsets.or(for_min),
        }
    }
}

impl Context {
    /// The whole range of a log as one piece; none if nothing in it is committed.
    fn coarse(
        &self,
        bounds: &Bounds,
        options: &SourceOptions,
        restriction: &Restriction,
    ) -> Result<Vec<Piece>> {
        let log = self.open(&bounds.directory, options, false)?;
        let mut start = bounds.start_offset;
        if !options.fail_on_data_loss {
            start = start.max(log.log_start_offset().min(bounds.end_offset));
        }
        let ranges = Ranges {
            start_offset: Some(start),
            end_offset: Some(bounds.end_offset),
            start_time: restriction.start_time,
            end_time: restriction.end_time,
        };
        let splits = plan(&log, u64::MAX, ranges, options);
        let splits = splits.map_err(|error| error.in_log(&bounds.directory))?;
        let piece = |split: Split| Piece {
            directory: bounds.directory.clone(),
            is_first: !bounds.continues && split.start_offset == start,
            split,
        };
        Ok(splits.into_iter().map(piece).collect())
    }

    /// The piece cut into parts of about `target` bytes.
    fn finer(&self, piece: Piece, target: u64, options: &SourceOptions) -> Result<Vec<Piece>> {
        let split = &piece.split;
        if split.size <= target {
            return Ok(vec![piece]);
        }
        let log = self.open(&piece.directory, options, false)?;
        // parts of equal size instead of some of maximum size and a small rest; each may vary by a batch
        let limit = target.min(split.size / (split.size / target + 1) + BATCH_BYTES);
        match plan(&log, limit, split.ranges(), options) {
            Ok(parts) => {
                let narrowed =
                    |part: Split| piece.narrowed(part.start_offset..part.end_offset, part.size, part.aborted);
                Ok(parts.into_iter().map(narrowed).collect())
            }
            // data removed in the meantime is reported when the piece is read
            Err(error) if matches!(error.code, Code::OffsetOutOfRange | Code::SegmentGone) => Ok(vec![piece]),
            Err(error) => Err(error.in_log(&piece.directory)),
        }
    }

    /// Cuts a piece until no part has more than `max_offsets` offsets, at batch boundaries as long as there
    /// are any.
    ///
    /// Offsets may be sparse: a log with few records can span billions of offsets. A sparse piece is halved
    /// by size.
    fn by_records(
        &self,
        piece: Piece,
        max_offsets: u64,
        options: &SourceOptions,
        cut: &mut Vec<Piece>,
    ) -> Result<()> {
        let offsets = offsets_of(&piece);
        if offsets <= max_offsets {
            cut.push(piece);
            return Ok(());
        }
        let size = piece.split.size;
        // if offsets are dense, cut to the estimated size; if they are sparse, halve
        let target = if offsets / max_offsets < DENSE {
            u64::try_from(u128::from(size) * u128::from(max_offsets) / u128::from(offsets)).unwrap_or(size)
        } else {
            size / 2
        };
        let parts = self.finer(piece.clone(), target.max(1), options)?;
        if parts.len() > 1 {
            return parts.into_iter().try_for_each(|part| self.by_records(part, max_offsets, options, cut));
        }
        cut.extend(self.inside_batch(piece, max_offsets, options)?);
        Ok(())
    }

    /// Cuts a piece of one batch by its offsets. Missing offsets before it are in the first part.
    fn inside_batch(&self, piece: Piece, max_offsets: u64, options: &SourceOptions) -> Result<Vec<Piece>> {
        let log = self.open(&piece.directory, options, false)?;
        let (start, end) = (piece.split.start_offset, piece.split.end_offset);
        let header =
            first_header(&log, start, end).map_err(|error| PlanError::of(error).in_log(&piece.directory))?;
        let Some(header) = header else { return Ok(vec![piece]) };
        let first = start.max(header.base_offset);
        let stop = end.min(header.last_offset.saturating_add(1));
        let is_small =
            header.count.is_some_and(|count| u64::try_from(count).is_ok_and(|count| count <= max_offsets));
        let dense = u64::try_from(stop.saturating_sub(first)).unwrap_or(0);
        if is_small || dense <= max_offsets || dense >= DENSE.saturating_mul(max_offsets) {
            return Ok(vec![piece]);
        }
        let parts = dense.div_ceil(max_offsets);
        let place = |part: u64| {
            let distance = u128::from(dense) * u128::from(part) / u128::from(parts);
            first.saturating_add_unsigned(u64::try_from(distance).unwrap_or(u64::MAX))
        };
        let starts = [start].into_iter().chain((1..parts).map(place));
        let ends = (1..parts).map(place).chain([end]);
        let size = piece.split.size / parts;
        Ok(starts.zip(ends).map(|(low, high)| piece.narrowed(low..high, size, None)).collect())
    }

    /// A piece for each segment of a range.
    fn segments_of(&self, bounds: &Bounds, options: &SourceOptions) -> Result<Vec<Piece>> {
        let log = self.open(&bounds.directory, options, false)?;
        segments_of(&log, bounds).map_err(|error| PlanError::of(error).in_log(&bounds.directory))
    }
}

fn segments_of(log: &Log, bounds: &Bounds) -> crate::Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    for segment in log.segments().iter() {
        let base_offset = segment.base_offset();
        let following = log.segments().higher(base_offset);
        let end = match following {
            Some(next) => next.base_offset(),
            None => log.log_end_offset()?,
        };
        // a range up to the log end includes an empty last segment
        let begins = base_offset < bounds.end_offset || base_offset == end && end == bounds.end_offset;
        if begins && (end > bounds.start_offset || following.is_none()) {
            let size = segment.size()?;
            let is_last = following.is_none();
            let planned = PlannedSegment { base_offset, size, first_batch_crc: None, is_last };
            let split = Split {
                path: bounds.directory.path.clone(),
                start_offset: base_offset.max(log.log_start_offset()).min(end),
                end_offset: end,
                size,
                segments: vec![planned],
                ..Split::default()
            };
            pieces.push(Piece { directory: bounds.directory.clone(), split, is_first: true });
        }
    }
    Ok(pieces)
}

fn plan(log: &Log, max_bytes: u64, ranges: Ranges, options: &SourceOptions) -> Result<Vec<Split>> {
    let isolation_level = match options.table {
        Table::Records => options.isolation_level,
        Table::Batches | Table::Segments => IsolationLevel::ReadUncommitted,
    };
    let options = ScanOptions { ranges, isolation_level, ..ScanOptions::default() };
    log.plan(max_bytes, &options).map_err(PlanError::of)
}

fn offsets_of(piece: &Piece) -> u64 {
    piece.split.end_offset.abs_diff(piece.split.start_offset)
}

/// The header of the first batch with offsets of a range; `None` if there is none.
fn first_header(log: &Log, start: i64, end: i64) -> crate::Result<Option<BatchHeader>> {
    let ranges = Ranges { start_offset: Some(start), end_offset: Some(end), ..Ranges::default() };
    let options =
        ScanOptions { ranges, on_damage: OnDamage::Skip, batches_only: true, ..ScanOptions::default() };
    let step = log.scan(options)?.next_step()?;
    Ok(if let Some(ScanStep::Batch(batch)) = step { Some(batch.header) } else { None })
}

/// Tasks of about `target` bytes, the largest first; at least one.
fn packed(pieces: Vec<Piece>, target: u64) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    let mut size = target;
    for piece in pieces {
        let cost = piece.split.size + OPENING_BYTES;
        match tasks.last_mut() {
            Some(last) if size + cost <= target => last.pieces.push(piece),
            _ => {
                tasks.push(Task { pieces: vec![piece] });
                size = 0;
            }
        }
        size += cost;
    }
    tasks.sort_by_key(|task| std::cmp::Reverse(task.size()));
    if tasks.is_empty() {
        tasks.push(Task::default());
    }
    tasks
}

fn cores() -> u64 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64)
}

//! The work of a task: its pieces as batches of the columns of a query.

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;

use arrow_schema::TimeUnit;

use super::aggregates::{Aggregate, Aggregated};
use super::context::Context;
use super::error::{Code, PlanError, Result};
use super::gaps::{between_segments, is_compacted, within_segment};
use super::options::{Mode, SourceOptions, Table};
use super::piece::{Piece, Task};
use super::query::Query;
use super::reading::{Reading, is_own, task_batch};
use super::segment_row::describe_segment;
use super::shape::TaskBatch;
use super::warning::Warning;
use crate::arrow::{Column, Progress, Reader, ReaderOptions};
use crate::error::Error;
use crate::log::{DamagedRange, Log, LostGap, OnDamage, Ranges, ScanOptions, ScanStats, Split};

/// Advice for a log that changed during a batch query.
const PLAN_AGAIN: &str =
    "; load() again to read the current log, or set failOnDataLoss=false to skip the missing data";
/// Advice for a log that changed during a stream.
pub(crate) const START_AGAIN: &str =
    "; failOnDataLoss=false continues with the existing data, a new checkpointLocation starts again";

/// Reads the pieces of a task one after the other.
pub struct TaskReader {
    context: Context,
    query: Query,
    /// What is left: with `failOnDataLoss=false` a part for each segment, so that a missing one does not
    /// stop the others.
    parts: VecDeque<Piece>,
    /// The directories that were read. Each is refreshed when it is read first.
    seen: HashSet<PathBuf>,
    current: Option<Reading>,
    /// The remaining rows.
    limit: Option<usize>,
    /// Whether the row of the aggregates was returned.
    has_aggregated: bool,
    /// The statistics of the parts that were read.
    stats: ScanStats,
}

impl TaskReader {
    /// A reader of a task of a query.
    pub fn new(context: Context, query: Query, task: Task) -> Self {
        let loses_nothing = query.options.fail_on_data_loss;
        let parts = task.pieces.into_iter();
        let parts = if loses_nothing {
            parts.collect()
        } else {
            parts.flat_map(|piece| by_segment(&piece)).collect()
        };
        Self {
            context,
            // with aggregates, rows are rows of the aggregates
            limit: query.limit.filter(|_| query.aggregates.is_none()),
            query,
            parts,
            seen: HashSet::new(),
            current: None,
            has_aggregated: false,
            stats: ScanStats::default(),
        }
    }

    /// The query.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// The warnings since the last call.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.context.warnings)
    }

    /// The statistics so far.
    pub fn stats(&self) -> ScanStats {
        let current = self.current.as_ref().map(|reading| reading.progress.stats());
        let mut stats = self.stats;
        stats += current.unwrap_or_default();
        stats
    }

    /// The next batch; `None` at the end.
    ///
    /// # Errors
    /// [`PlanError`]; with [`Code::SegmentGone`] if the log differs from the plan, or has no segment for some
    /// of its offsets and is not compacted (with `failOnDataLoss=false` this is a warning, and the rest
    /// is read). An error ends the task.
    pub fn next_batch(&mut self) -> Result<Option<TaskBatch>> {
        let next = match &self.query.aggregates {
            Some(_) => self.aggregate(),
            None => self.next_rows(),
        };
        if next.is_err() {
            self.parts.clear();
            self.current = None;
        }
        next
    }

    fn next_rows(&mut self) -> Result<Option<TaskBatch>> {
        while self.limit != Some(0) {
            match self.step() {
                Ok(None) => break,
                Ok(Some(batch)) if batch.rows > 0 => {
                    if let Some(limit) = &mut self.limit {
                        *limit = limit.saturating_sub(batch.rows);
                    }
                    return Ok(Some(batch));
                }
                Ok(Some(_)) => {}
                Err(error) if !self.query.options.fail_on_data_loss && error.code == Code::SegmentGone => {
                    self.context.warnings.push(Warning::of(&error, "; left out"));
                    self.end_part();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The rows that are found next, which may be none; `None` at the end.
    fn step(&mut self) -> Result<Option<TaskBatch>> {
        if let Some(reading) = &mut self.current {
            let piece = reading.piece.clone();
            let read = reading.next_batch(&self.query.columns, self.limit);
            return match read.map_err(|error| self.in_piece(error, &piece))? {
                Some(batch) => Ok(Some(batch)),
                None => self.finish_part().map(|()| Some(no_rows())),
            };
        }
        let Some(piece) = self.parts.pop_front() else { return Ok(None) };
        let described = self.start_part(&piece);
        self.seen.insert(piece.directory.path.clone());
        let described = described.map_err(|error| self.in_piece(error, &piece))?;
        Ok(Some(described.unwrap_or_else(no_rows)))
    }

    /// Opens the log of a part. Of a segment it returns the row.
    fn start_part(&mut self, piece: &Piece) -> Result<Option<TaskBatch>> {
        let log = self.open_log(piece)?;
        let options = &self.query.options;
        if options.table == Table::Segments {
            if options.fail_on_data_loss {
                compare(&piece.split, &log)?;
            } else {
                self.remaining(piece.clone(), &log)?;
            }
            let on_damage =
                if self.query.options.mode == Mode::FailFast { OnDamage::Raise } else { OnDamage::Skip };
            let Some(segment) = piece.split.segments.first() else { return Ok(None) };
            let row = describe_segment(&log, segment.base_offset, on_damage)?;
            return row.map(|row| task_batch(&row, &self.query.columns, piece)).transpose();
        }
        let piece =
            if options.fail_on_data_loss { piece.clone() } else { self.remaining(piece.clone(), &log)? };
        let core_columns = self.query.core_columns();
        let (reader, progress) =
            self.scan(&piece, &log, core_columns, on_damage_of(self.query.options.mode))?;
        self.current = Some(Reading::new(piece, log, reader, progress));
        Ok(None)
    }

    /// The log of a part: refreshed the first time.
    pub(super) fn open_log(&mut self, piece: &Piece) -> Result<Log> {
        let refresh = !self.seen.contains(&piece.directory.path);
        self.context.open(&piece.directory, &self.query.options, refresh)
    }

    /// A scan of a part.
    pub(super) fn scan(
        &self,
        piece: &Piece,
        log: &Log,
        columns: Vec<Column>,
        on_damage: OnDamage,
    ) -> Result<(Reader, Progress)> {
        let SourceOptions { table, isolation_level, max_batch_rows, max_batch_bytes, check_crc, .. } =
            self.query.options;
        let split = &piece.split;
        let of_batches = table == Table::Batches;
        if of_batches {
            compare(split, log)?;
        }
        let ranges = Ranges {
            start_offset: Some(split.start_offset),
            end_offset: Some(split.end_offset),
            ..split.ranges()
        };
        let scan = ScanOptions {
            ranges,
            record_offsets: self.query.restriction.record_offsets(),
            isolation_level,
            on_damage: if of_batches && on_damage == OnDamage::Report { OnDamage::Skip } else { on_damage },
            batches_only: of_batches,
            check_crcs: check_crc,
            ..ScanOptions::default()
        };
        let log = if of_batches { log.clone() } else { log.for_split(split)? };
        // checked here, so that a range that no longer exists is an error of the part
        log.check(&ranges)?;
        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        let options = ReaderOptions {
            scan,
            columns,
            timestamp_unit: TimeUnit::Microsecond,
            max_rows: number(max_batch_rows),
            max_bytes: number(max_batch_bytes),
            // rows for damage that another piece reports are read too
            limit: self.limit.filter(|_| on_damage != OnDamage::Report),
            ..ReaderOptions::default()
        };
        let progress = Progress::default();
        Ok((Reader::new(std::iter::once(Ok(log)), options, progress.clone()), progress))
    }

    /// Reports what a part that was read has found.
    fn finish_part(&mut self) -> Result<()> {
        let Some(Reading { piece, log, progress, .. }) = self.current.take() else { return Ok(()) };
        self.stats += progress.stats();
        self.report_damage(&progress, &piece, &log).map_err(|error| self.in_piece(error, &piece))?;
        // after the records, because damage is an error of the scan
        self.check_gaps(&piece, &log, progress.unexplained_gap())
    }

    fn end_part(&mut self) {
        if let Some(reading) = self.current.take() {
            self.stats += reading.progress.stats();
        }
    }

    /// Warns of the damage that a part skipped.
    pub(super) fn report_damage(&mut self, progress: &Progress, piece: &Piece, log: &Log) -> Result<()> {
        for damage in progress.damaged_ranges() {
            if !is_own(&damage, piece, log)? {
                continue;
            }
            let DamagedRange { file, start_position, end_position, start_offset, reason, .. } = damage;
            let (code, file) = (Code::CorruptBatch.name(), file.display().to_string());
            let text =
                format!("[{code}] {file}: bytes {start_position} to {end_position} left out: {reason}");
            let warning = Warning::new(text)
                .with("file", file)
                .with("position", start_position)
                .with("offset", start_offset);
            self.context.warnings.push(warning);
        }
        Ok(())
    }

    /// Reports gaps in the offsets, unless compaction may have removed them. `lost`: the first that the scan
    /// found within a segment.
    pub(super) fn check_gaps(&mut self, piece: &Piece, log: &Log, lost: Option<LostGap>) -> Result<()> {
        if let Some(gap) = lost.filter(|_| self.query.options.is_compacted != Some(true)) {
            let error = within_segment(&gap).in_log(&piece.directory);
            match self.query.options.mode {
                Mode::FailFast => self.report_gap(error)?,
                // of batches that are out of order, one split may have the gap, and another the damage
                _ => self.context.warnings.push(Warning::of(&error, "")),
            }
        }
        let gaps = log.offset_gaps(piece.split.start_offset..piece.split.end_offset);
        let gaps = gaps.map_err(|error| self.in_piece(error.into(), piece))?;
        for gap in gaps {
            let options = &self.query.options;
            if is_compacted(log, options).map_err(|error| self.in_piece(error.into(), piece))? {
                return Ok(());
            }
            self.report_gap(between_segments(&gap).in_log(&piece.directory))?;
        }
        Ok(())
    }

    /// Fails with the error of a gap, or warns of it.
    fn report_gap(&mut self, error: PlanError) -> Result<()> {
        if self.query.options.fail_on_data_loss {
            let advice =
                "; failOnDataLoss=false reads the rest, cleanupPolicy=compact declares the log compacted";
            return Err(error.with_advice(advice));
        }
        self.context.warnings.push(Warning::of(&error, ""));
        Ok(())
    }

    /// Warns of changes after the plan, and returns the piece from the log start on, without the planned
    /// segments.
    pub(super) fn remaining(&mut self, piece: Piece, log: &Log) -> Result<Piece> {
        match compare(&piece.split, log) {
            // compaction may have merged the segment into another one, which has its remaining records
            Err(error) if error.code == Code::SegmentGone => {
                self.context.warnings.push(Warning::of(&error.in_log(&piece.directory), ""));
            }
            compared => compared?,
        }
        let Split { start_offset, end_offset, .. } = piece.split;
        let start = start_offset.max(log.log_start_offset());
        if start > start_offset {
            let reason =
                format!("offsets {start_offset} to {start} were deleted after it was planned; left out");
            let gone = PlanError::new(Code::SegmentGone, reason).in_log(&piece.directory);
            self.context.warnings.push(Warning::of(&gone, ""));
        }
        let split = Split { start_offset: start.min(end_offset), segments: Vec::new(), ..piece.split };
        Ok(Piece { split, ..piece })
    }

    /// The error of a part.
    pub(super) fn in_piece(&self, error: PlanError, piece: &Piece) -> PlanError {
        if error.is_interrupt() {
            return error;
        }
        let error = if error.topic.is_none() { error.in_log(&piece.directory) } else { error };
        if let Some(Error::Config { found, .. }) = error.source.as_deref() {
            // all other arguments were checked when the query was planned
            let reason = format!(
                "expected a time that Spark's microseconds can hold, found {found}; leave the column timestamp out"
            );
            return PlanError::new(Code::Unsupported, reason).in_log(&piece.directory);
        }
        // planned offsets and files existed, so they were removed
        let error = if error.is_missing() { error.with_code(Code::SegmentGone) } else { error };
        let has_changed = matches!(error.source.as_deref(), Some(Error::LogChanged { .. }));
        if self.query.options.fail_on_data_loss && has_changed {
            let advice = if self.query.is_stream { START_AGAIN } else { PLAN_AGAIN };
            return PlanError { position: None, ..error }.with_advice(advice);
        }
        error
    }

    /// The row of the aggregates of the whole task, once.
    fn aggregate(&mut self) -> Result<Option<TaskBatch>> {
        let Some(aggregates) = self.query.aggregates.clone() else { return Ok(None) };
        if aggregates.contains(&Aggregate::Other) {
            return Err(PlanError::internal("expected aggregates that tasks compute"));
        }
        if std::mem::replace(&mut self.has_aggregated, true) {
            return Ok(None);
        }
        let mut found = Aggregated::default();
        while let Some(piece) = self.parts.pop_front() {
            let added = self.aggregate_piece(&piece, &aggregates, &mut found);
            self.seen.insert(piece.directory.path.clone());
            match added.map_err(|error| self.in_piece(error, &piece)) {
                Err(error) if !self.query.options.fail_on_data_loss && error.code == Code::SegmentGone => {
                    self.context.warnings.push(Warning::of(&error, "; left out"));
                }
                added => added?,
            }
        }
        Ok(Some(found.row(&aggregates)))
    }

    /// Adds the statistics of a scan.
    pub(super) fn add_stats(&mut self, stats: ScanStats) {
        self.stats += stats;
    }
}

fn no_rows() -> TaskBatch {
    TaskBatch { rows: 0, columns: Vec::new(), topic: None, partition: None }
}

pub(super) fn on_damage_of(mode: Mode) -> OnDamage {
    match mode {
        Mode::FailFast => OnDamage::Raise,
        Mode::DropMalformed => OnDamage::Skip,
        Mode::Permissive => OnDamage::Report,
    }
}

/// Compares the log with a plan, as the scan of a split does, without reading.
///
/// # Errors
/// [`Code::SegmentGone`] if a planned segment was removed, shortened or replaced.
fn compare(split: &Split, log: &Log) -> Result<()> {
    Ok(log.check_split(split)?)
}

/// A piece for each segment of a piece.
fn by_segment(piece: &Piece) -> Vec<Piece> {
    let split = &piece.split;
    let later = || split.segments.iter().skip(1).map(|segment| segment.base_offset);
    let starts = std::iter::once(split.start_offset).chain(later());
    let ends = later().chain([split.end_offset]);
    if split.segments.is_empty() {
        return vec![piece.clone()];
    }
    let parts = split.segments.iter().zip(starts.zip(ends));
    parts.map(|(segment, (start, end))| piece.narrowed(start..end, segment.size, None)).collect()
}

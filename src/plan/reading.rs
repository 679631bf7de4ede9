//! A part of a task that is being read, and which rows of damage are its own.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};

use super::error::Result;
use super::piece::Piece;
use super::schema::TableColumn;
use super::shape::{TaskBatch, shaped};
use crate::arrow::{Progress, Reader};
use crate::log::{DamagedRange, Log, OnDamage, Ranges, ScanOptions};

/// A part that is being read.
pub(super) struct Reading {
    pub(super) piece: Piece,
    pub(super) log: Log,
    reader: Reader,
    pub(super) progress: Progress,
    /// The number of rows so far that report damage.
    damaged_rows: usize,
    /// Parts of a record batch that are returned next.
    ready: VecDeque<RecordBatch>,
}

impl Reading {
    /// Begins a part.
    pub(super) fn new(piece: Piece, log: Log, reader: Reader, progress: Progress) -> Self {
        Self { piece, log, reader, progress, damaged_rows: 0, ready: VecDeque::new() }
    }

    /// The next rows, at most `limit`, without those that another part reports; `None` at the end.
    pub(super) fn next_batch(
        &mut self,
        columns: &[TableColumn],
        limit: Option<usize>,
    ) -> Result<Option<TaskBatch>> {
        while self.ready.is_empty() {
            let Some(batch) = self.reader.next_batch()? else { return Ok(None) };
            self.add(batch)?;
        }
        let first_rows = |batch: RecordBatch| match limit {
            Some(limit) if limit < batch.num_rows() => batch.slice(0, limit),
            _ => batch,
        };
        let batch = self.ready.pop_front().map(first_rows);
        batch.map(|batch| task_batch(&batch, columns, &self.piece)).transpose()
    }

    /// Adds a record batch to those that are returned: in parts, between the rows for damage that another
    /// piece reports.
    fn add(&mut self, batch: RecordBatch) -> Result<()> {
        let damage = batch.column_by_name("error").filter(|damage| damage.null_count() < batch.num_rows());
        let Some(damage) = damage else {
            self.ready.push_back(batch);
            return Ok(());
        };
        // the n-th row with an error describes the n-th range
        let ranges = self.progress.damaged_ranges();
        let mut start = 0;
        for row in (0..batch.num_rows()).filter(|row| damage.is_valid(*row)) {
            let range = ranges.get(self.damaged_rows);
            self.damaged_rows += 1;
            if range.map_or(Ok(true), |range| is_own(range, &self.piece, &self.log))? {
                continue;
            }
            if row > start {
                self.ready.push_back(batch.slice(start, row - start));
            }
            start = row + 1;
        }
        if start < batch.num_rows() {
            self.ready.push_back(batch.slice(start, batch.num_rows() - start));
        }
        Ok(())
    }
}

/// Rows of a piece in the columns of a query.
pub(super) fn task_batch(batch: &RecordBatch, columns: &[TableColumn], piece: &Piece) -> Result<TaskBatch> {
    Ok(TaskBatch {
        rows: batch.num_rows(),
        columns: shaped(batch, columns)?,
        topic: piece.directory.topic.as_deref().map(Arc::from),
        partition: piece.directory.partition,
    })
}

/// Whether a piece reports a damaged range.
///
/// The piece before reports a range that starts in it. A torn tail is the end of the data: a broker may be
/// writing it.
pub(super) fn is_own(damage: &DamagedRange, piece: &Piece, log: &Log) -> Result<bool> {
    let start = piece.split.start_offset;
    if damage.is_tail() {
        return Ok(false);
    }
    if piece.is_first || damage.start_offset > start {
        return Ok(true);
    }
    if damage.start_offset < start {
        return Ok(false);
    }
    let is_same =
        |other: &DamagedRange| (&other.file, other.start_position) == (&damage.file, damage.start_position);
    Ok(!damage_before(start, log)?.iter().any(is_same))
}

/// The damaged ranges of a scan that ends at an offset.
fn damage_before(offset: i64, log: &Log) -> Result<Vec<DamagedRange>> {
    if offset <= log.log_start_offset() {
        return Ok(Vec::new());
    }
    let ranges = Ranges { start_offset: Some(offset - 1), end_offset: Some(offset), ..Ranges::default() };
    let mut scan = log.scan(ScanOptions { ranges, on_damage: OnDamage::Skip, ..ScanOptions::default() })?;
    while scan.next_step()?.is_some() {
        while scan.next_record()?.is_some() {}
    }
    Ok(scan.damaged_ranges().to_vec())
}

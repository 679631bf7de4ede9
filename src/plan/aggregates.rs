//! Aggregates of a task, from batch headers where these are exact.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, Int64Array, TimestampMicrosecondArray};
use serde_json::Value;

use super::error::{Code, PlanError, Result};
use super::options::Mode;
use super::piece::Piece;
use super::shape::{TaskBatch, TaskColumn};
use super::task_reader::{TaskReader, on_damage_of};
use crate::arrow::Column;
use crate::log::{Log, LostGap, OnDamage, Ranges, ScanOptions, ScanStep};
use crate::record::BatchHeader;
use crate::types::{IsolationLevel, TimestampType};

/// An aggregate over the rows of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aggregate {
    /// The number of rows.
    Count,
    MinOffset,
    MaxOffset,
    MinTimestamp,
    MaxTimestamp,
    /// One that only the engine computes.
    Other,
}

impl Aggregate {
    /// Reads aggregates from JSON: a list of objects with `function`, and `column` unless that is `count`.
    ///
    /// # Errors
    /// [`Code::BadOption`] if it is not such a list.
    pub(crate) fn read_all(aggregates: &Value) -> Result<Vec<Self>> {
        let wrong = || {
            let reason = format!("aggregates: expected functions and columns, found {aggregates}");
            PlanError::new(Code::BadOption, reason)
        };
        let read = |aggregate: &Value| {
            let function = aggregate.get("function")?.as_str()?;
            let column = match aggregate.get("column") {
                None | Some(Value::Null) => None,
                Some(column) => Some(column.as_str()?),
            };
            let known = Self::ALL.iter().find(|known| (known.0, known.1) == (function, column));
            Some(known.map_or(Self::Other, |(_, _, aggregate)| *aggregate))
        };
        let aggregates = aggregates.as_array().ok_or_else(wrong)?;
        aggregates.iter().map(|aggregate| read(aggregate).ok_or_else(wrong)).collect()
    }

    /// Functions and columns.
    const ALL: [(&str, Option<&str>, Self); 5] = [
        ("count", None, Self::Count),
        ("min", Some("offset"), Self::MinOffset),
        ("max", Some("offset"), Self::MaxOffset),
        ("min", Some("timestamp"), Self::MinTimestamp),
        ("max", Some("timestamp"), Self::MaxTimestamp),
    ];

    /// Whether the header of a batch gives the aggregate over its records, all of which are rows.
    fn is_in(self, header: &BatchHeader) -> bool {
        match self {
            Self::Count => true,
            // compaction keeps the offsets of a batch when it removes its first or last record
            Self::MinOffset | Self::MaxOffset => !header.is_sparse(),
            // a read of the records reports a time that microseconds cannot hold. Below 0, the header may
            // have −1 for smaller times
            Self::MaxTimestamp => header.magic == 2 && (0..=i64::MAX / 1000).contains(&header.max_timestamp),
            // a header has the largest timestamp, and the first, which need not be the smallest
            Self::MinTimestamp => {
                let is_appended = header.attributes.timestamp_type() == TimestampType::LogAppendTime;
                is_appended && Self::MaxTimestamp.is_in(header)
            }
            Self::Other => false,
        }
    }

    fn is_of_time(self) -> bool {
        matches!(self, Self::MinTimestamp | Self::MaxTimestamp)
    }
}

impl fmt::Display for Aggregate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (function, column, _) =
            Self::ALL.into_iter().find(|(_, _, aggregate)| aggregate == self).unwrap_or(("", None, *self));
        write!(formatter, "{function}({})", column.unwrap_or("*"))
    }
}

/// The maximum number of ranges of a piece whose records are read on their own: each of them is a scan.
const MAX_RANGES: usize = 16;

/// The aggregates so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Aggregated {
    rows: i64,
    /// The smallest and the largest; `None` without a row.
    offsets: Option<(i64, i64)>,
    /// The same in microseconds.
    timestamps: Option<(i64, i64)>,
}

impl Aggregated {
    fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        for (range, other) in [(&mut self.offsets, other.offsets), (&mut self.timestamps, other.timestamps)] {
            if let Some((least, most)) = other {
                extend(range, least, most);
            }
        }
    }

    fn add_header(&mut self, header: &BatchHeader, count: i32) {
        self.rows += i64::from(count);
        let time = header.max_timestamp.saturating_mul(1000);
        extend(&mut self.offsets, header.base_offset, header.last_offset);
        extend(&mut self.timestamps, time, time);
    }

    fn add_rows(&mut self, offsets: &[i64], timestamps: &[i64]) {
        self.rows += i64::try_from(offsets.len()).unwrap_or(i64::MAX);
        // the offsets of a batch with records out of place may be above those of the next batch
        if let (Some(least), Some(most)) = (offsets.iter().min(), offsets.iter().max()) {
            extend(&mut self.offsets, *least, *most);
        }
        if let (Some(least), Some(most)) = (timestamps.iter().min(), timestamps.iter().max()) {
            extend(&mut self.timestamps, *least, *most);
        }
    }

    /// The row of a task.
    pub(crate) fn row(&self, aggregates: &[Aggregate]) -> TaskBatch {
        let long = |value: Option<i64>| -> ArrayRef { Arc::new(Int64Array::from(vec![value])) };
        let time = |value: Option<i64>| -> ArrayRef {
            Arc::new(TimestampMicrosecondArray::from(vec![value]).with_timezone("UTC"))
        };
        let array = |aggregate: &Aggregate| match aggregate {
            Aggregate::Count => long(Some(self.rows)),
            Aggregate::MinOffset => long(self.offsets.map(|(least, _)| least)),
            Aggregate::MaxOffset => long(self.offsets.map(|(_, most)| most)),
            Aggregate::MinTimestamp => time(self.timestamps.map(|(least, _)| least)),
            Aggregate::MaxTimestamp => time(self.timestamps.map(|(_, most)| most)),
            Aggregate::Other => long(None),
        };
        let columns = aggregates.iter().map(|aggregate| TaskColumn::Values(array(aggregate))).collect();
        TaskBatch { rows: 1, columns, topic: None, partition: None }
    }
}

fn extend(range: &mut Option<(i64, i64)>, least: i64, most: i64) {
    let (low, high) = range.unwrap_or((least, most));
    *range = Some((low.min(least), high.max(most)));
}

/// What the headers of a piece have left.
struct AfterHeaders {
    /// The offsets of the batches whose records are to be read; the whole piece if no batch was added.
    ranges: Vec<Range<i64>>,
    /// The first gap within a segment, of the whole piece; the records show those within their ranges.
    lost_gap: Option<LostGap>,
}

impl TaskReader {
    /// Adds the rows of a piece.
    pub(super) fn aggregate_piece(
        &mut self,
        piece: &Piece,
        aggregates: &[Aggregate],
        found: &mut Aggregated,
    ) -> Result<()> {
        if piece.split.start_offset >= piece.split.end_offset {
            return Ok(());
        }
        let log = self.open_log(piece)?;
        let loses_nothing = self.query().options.fail_on_data_loss;
        let piece = if loses_nothing { piece.clone() } else { self.remaining(piece.clone(), &log)? };
        // a damaged batch that is left out would be counted by its header
        let has_headers = self.query().options.mode == Mode::FailFast && piece.split.start_time.is_none();
        let AfterHeaders { ranges, lost_gap: mut lost } = if has_headers {
            self.aggregate_headers(&piece, &log, aggregates, found)?
        } else {
            let whole = piece.split.start_offset..piece.split.end_offset;
            AfterHeaders { ranges: vec![whole], lost_gap: None }
        };
        let has_times = aggregates.iter().any(|aggregate| aggregate.is_of_time());
        for range in ranges {
            let in_records =
                self.aggregate_records(&piece.narrowed(range, 0, None), &log, has_times, found)?;
            lost = lost.or(in_records);
        }
        self.check_gaps(&piece, &log, lost)
    }

    /// Adds the batches whose headers are exact.
    fn aggregate_headers(
        &mut self,
        piece: &Piece,
        log: &Log,
        aggregates: &[Aggregate],
        found: &mut Aggregated,
    ) -> Result<AfterHeaders> {
        let options = &self.query().options;
        let (start, end) = (piece.split.start_offset, piece.split.end_offset);
        let ranges = Ranges { start_offset: Some(start), end_offset: Some(end), ..Ranges::default() };
        let (isolation_level, check_crcs) = (options.isolation_level, options.check_crc);
        let is_committed = isolation_level == IsolationLevel::ReadCommitted;
        // if the range may begin later than planned, the first batch may have lost records
        let mut may_be_cut = !options.fail_on_data_loss;
        let scan = ScanOptions {
            ranges,
            record_offsets: self.query().restriction.record_offsets(),
            isolation_level,
            batches_only: true,
            check_crcs,
            ..ScanOptions::default()
        };
        let mut scan = log.for_split(&piece.split)?.scan(scan)?;
        let mut of_headers = Aggregated::default();
        let mut rest: Vec<Range<i64>> = Vec::new();
        let mut has_more_offsets = false;
        // whether no batch was counted since the last range; markers and gaps between two ranges are no rows
        let mut extends = false;
        while let Some(step) = scan.next_step()? {
            let ScanStep::Batch(batch) = step else { continue };
            let header = batch.header;
            let in_header = scan.count_in_header(&batch)?;
            // records out of place may have offsets that the header does not cover
            let is_whole = header.base_offset >= start && header.last_offset < end;
            has_more_offsets |= in_header.is_none()
                && header.count.is_some_and(|count| is_whole || i64::from(count) > header.offsets());
            let count = in_header.filter(|count| {
                let is_decided = !(is_committed && header.is_transactional());
                let is_exact = is_decided
                    && !std::mem::take(&mut may_be_cut)
                    && aggregates.iter().all(|aggregate| aggregate.is_in(&header));
                *count == 0 || is_exact
            });
            match count {
                Some(0) => {}
                Some(count) => {
                    of_headers.add_header(&header, count);
                    extends = false;
                }
                None => {
                    let range = header.base_offset.max(start)..(header.last_offset + 1).min(end);
                    match rest.last_mut() {
                        Some(last) if extends => last.end = range.end,
                        _ => rest.push(range),
                    }
                    extends = true;
                }
            }
        }
        self.add_stats(scan.stats());
        let lost_gap = scan.lost_gap().cloned();
        if rest.len() > MAX_RANGES || has_more_offsets {
            let whole = start..end;
            return Ok(AfterHeaders { ranges: vec![whole], lost_gap });
        }
        found.add(&of_headers);
        Ok(AfterHeaders { ranges: rest, lost_gap })
    }

    /// Adds the records of a piece, and returns
    /// [`Progress::unexplained_gap`](crate::log::Progress::unexplained_gap). Their times are
    /// read only where they are needed: microseconds cannot hold every time.
    fn aggregate_records(
        &mut self,
        piece: &Piece,
        log: &Log,
        has_times: bool,
        found: &mut Aggregated,
    ) -> Result<Option<LostGap>> {
        let on_damage = match on_damage_of(self.query().options.mode) {
            // rows for damage are not aggregated
            OnDamage::Report => OnDamage::Skip,
            on_damage => on_damage,
        };
        let columns = if has_times { vec![Column::Offset, Column::Timestamp] } else { vec![Column::Offset] };
        let (mut reader, progress) = self.scan(piece, log, columns, on_damage)?;
        while let Some(batch) = reader.next_batch()? {
            let offsets = batch.column(0).as_primitive::<Int64Type>();
            if !has_times {
                found.add_rows(offsets.values(), &[]);
                continue;
            }
            let times = batch.column(1).as_primitive::<TimestampMicrosecondType>();
            if times.null_count() == 0 {
                found.add_rows(offsets.values(), times.values());
            } else {
                let times: Vec<i64> = times.iter().map(|time| time.unwrap_or(-1000)).collect();
                found.add_rows(offsets.values(), &times);
            }
        }
        self.add_stats(progress.stats());
        self.report_damage(&progress, piece, log)?;
        Ok(progress.unexplained_gap())
    }
}

//! Scans as blocks of lines.

use std::fmt;
use std::ops::ControlFlow;

use super::csv::{self, Csv, FileCells, TerminalCells};
use super::json::JsonLines;
use super::raw::{Raw, RawOnTerminal};
use super::row::{Cells, DAMAGE_COLUMN, Rows};
use super::{Format, UtcOffset};
use crate::error::{Error, Result};
use crate::log::{
    Column, Counted, DamagedRange, Log, OnDamage, Origin, Progress, RecordFilter, Scan, ScanOptions, ScanStep,
};
use crate::record::RecordRef;
use crate::segment::Batch;

/// The size at which a block is complete, bytes.
const BLOCK_BYTES: usize = 1 << 20;

/// The number of bytes of the log after which a block that is not empty is complete.
const MAX_READ: u64 = 16 << 20;

/// Room for the row that completes a block.
const SPARE_BYTES: usize = 4 << 10;

/// Options of [`Lines`].
#[derive(Debug, Clone)]
pub struct LinesOptions {
    /// What to read. `batches_only` is not used: rows are records.
    pub scan: ScanOptions,
    /// The columns, in this order. With [`OnDamage::Report`] the column `error` follows them.
    pub columns: Vec<Column>,
    /// The form of the lines.
    pub format: Format,
    /// The maximum total number of rows. Nothing after the last row is read.
    pub limit: Option<usize>,
    /// Of each log only its last records, this many.
    pub last: Option<usize>,
    /// Only the records that it accepts, which are also those that `limit` and `last` count.
    pub filter: Option<RecordFilter>,
    /// The time zone of timestamps in CSV; `None`: UTC.
    pub utc_offset: Option<UtcOffset>,
    /// Whether CSV begins with a line of headings.
    pub headings: bool,
}

impl Default for LinesOptions {
    fn default() -> Self {
        let columns = Column::DEFAULT.to_vec();
        Self {
            scan: ScanOptions::default(),
            columns,
            format: Format::default(),
            limit: None,
            last: None,
            filter: None,
            utc_offset: None,
            headings: true,
        }
    }
}

impl LinesOptions {
    fn reports_damage(&self) -> bool {
        self.scan.on_damage == OnDamage::Report
    }
}

/// Whole lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Block {
    /// UTF-8.
    pub text: Vec<u8>,
    /// The number of rows. The line of headings of CSV is not one.
    pub rows: usize,
}

/// Reads logs one after another as blocks of lines. *Memory*: the scan's, and a block: 1 MiB and one row. The
/// text of a row can be several times as large as its record, because of escapes, and the buffer twice as
/// large as the text.
///
/// # Examples
///
/// ```
/// use cordwood::log::{Column, Log, LogOptions, Progress};
/// use cordwood::text::{Lines, LinesOptions};
///
/// # fn main() -> cordwood::Result<()> {
/// let log = Log::open("tests/golden/01-plain/orders-0", LogOptions::default())?;
/// let columns = vec![Column::Offset, Column::Codec];
/// let options = LinesOptions { columns, limit: Some(2), ..LinesOptions::default() };
/// let mut lines = Lines::new(std::iter::once(Ok(log)), options, Progress::default());
/// let block = lines.next_block()?.unwrap_or_default();
/// assert_eq!(block.rows, 2);
/// assert_eq!(block.text, b"{\"offset\": 0, \"codec\": \"none\"}\n{\"offset\": 1, \"codec\": \"none\"}\n");
/// assert_eq!(lines.next_block()?, None);
/// # Ok(())
/// # }
/// ```
pub struct Lines {
    options: LinesOptions,
    logs: Box<dyn Iterator<Item = Result<Log>> + Send>,
    current: Option<Part>,
    rows: FormattedRows,
    /// Whether the line of headings is still to be written.
    needs_headings: bool,
    rows_left: usize,
    /// An error after the rows that were returned.
    error: Option<Error>,
    last_offset: i64,
    progress: Progress,
}

impl fmt::Debug for Lines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Lines").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Lines {
    /// The lines of these logs; each is opened after the previous one was read.
    pub fn new(
        logs: impl Iterator<Item = Result<Log>> + Send + 'static,
        options: LinesOptions,
        progress: Progress,
    ) -> Self {
        let scan = ScanOptions { batches_only: false, ..options.scan };
        Self {
            logs: Box::new(logs),
            current: None,
            rows: FormattedRows::new(&options),
            needs_headings: options.headings && options.format.has_headings(),
            rows_left: options.limit.unwrap_or(usize::MAX),
            error: None,
            last_offset: -1,
            options: LinesOptions { scan, ..options },
            progress,
        }
    }

    /// The next block; `None` at the end. A block is complete with 1 MiB of text, or if there is any, after
    /// reading 16 MiB of the log: few records may be in the range. With a filter, it may then also be
    /// empty.
    ///
    /// # Errors
    /// As [`Scan::next_step`], after the rows before the error. An error ends the lines.
    pub fn next_block(&mut self) -> Result<Option<Block>> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut block = Block { text: Vec::with_capacity(BLOCK_BYTES + SPARE_BYTES), rows: 0 };
        if std::mem::take(&mut self.needs_headings) {
            self.write_headings(&mut block.text);
        }
        let filled = self.fill(&mut block);
        let has_more = matches!(filled, Ok(true));
        if let Err(error) = filled {
            self.logs = Box::new(std::iter::empty());
            self.current = None;
            if block.text.is_empty() {
                return Err(error);
            }
            self.error = Some(error);
        }
        Ok((has_more || !block.text.is_empty()).then_some(block))
    }

    /// The offset of the last record that was written of the current log, or of the last one that had any; −1
    /// before the first.
    pub fn last_offset(&self) -> i64 {
        self.last_offset
    }

    fn write_headings(&self, out: &mut Vec<u8>) {
        let names = self.options.columns.iter().map(|column| column.name());
        csv::write_headings(out, names.chain(self.options.reports_damage().then_some(DAMAGE_COLUMN)));
    }

    /// Adds rows until the block is complete or a limit is reached; false at the end.
    fn fill(&mut self, block: &mut Block) -> Result<bool> {
        let mut limits = Limits { rows: 0, read: MAX_READ };
        while self.rows_left > 0 && block.text.len() < BLOCK_BYTES {
            let Some(part) = &mut self.current else {
                let Some(log) = self.logs.next() else { return Ok(false) };
                let log = log?;
                let LinesOptions { scan, filter, .. } = &self.options;
                let scan = match self.options.last {
                    Some(count) => log.last_records(count, *scan, filter.as_ref())?,
                    None => log.scan(*scan)?,
                };
                self.current = Some(Part::new(scan, &self.options));
                continue;
            };
            let (rows_before, read_before) = (block.rows, part.scan.stats().bytes_read);
            limits.rows = self.rows_left;
            let has_more = match &self.rows {
                FormattedRows::JsonLines(rows) => part.fill(rows, block, limits),
                FormattedRows::Csv(rows) => part.fill(rows, block, limits),
                FormattedRows::TerminalCsv(rows) => part.fill(rows, block, limits),
                FormattedRows::Raw(rows) => part.fill(rows, block, limits),
                FormattedRows::TerminalRaw(rows) => part.fill(rows, block, limits),
            };
            self.last_offset = part.last_offset;
            self.rows_left -= block.rows - rows_before;
            limits.read = limits.read.saturating_sub(part.scan.stats().bytes_read - read_before);
            self.progress.update(&part.scan, &mut part.counted);
            if has_more? {
                return Ok(self.rows_left > 0);
            }
            self.current = None;
        }
        Ok(false)
    }
}

/// The rows of each format.
enum FormattedRows {
    JsonLines(Rows<JsonLines>),
    Csv(Rows<Csv<FileCells>>),
    TerminalCsv(Rows<Csv<TerminalCells>>),
    Raw(Rows<Raw>),
    TerminalRaw(Rows<RawOnTerminal>),
}

impl FormattedRows {
    fn new(options: &LinesOptions) -> Self {
        let (columns, reports) = (&options.columns, options.reports_damage());
        // JSON has milliseconds
        let zone = options.utc_offset.clone().filter(|_| options.format != Format::JsonLines);
        match options.format {
            Format::JsonLines => Self::JsonLines(Rows::new(columns, reports, zone)),
            Format::Csv => Self::Csv(Rows::new(columns, reports, zone)),
            Format::TerminalCsv => Self::TerminalCsv(Rows::new(columns, reports, zone)),
            Format::Raw => Self::Raw(Rows::new(&[Column::Value], false, None)),
            Format::TerminalRaw => Self::TerminalRaw(Rows::new(&[Column::Value], false, None)),
        }
    }
}

/// What may be added to a block.
#[derive(Clone, Copy)]
struct Limits {
    rows: usize,
    /// Bytes of the log to read, while the block has any text or records are filtered.
    read: u64,
}

/// A scan that is being read.
struct Part {
    log: Log,
    scan: Scan,
    /// The batch whose records are being read.
    batch: Option<Batch>,
    filter: Option<RecordFilter>,
    reports_damage: bool,
    /// The offset of the last record that was written; −1 before the first.
    last_offset: i64,
    counted: Counted,
}

impl Part {
    fn new(scan: Scan, options: &LinesOptions) -> Self {
        Self {
            log: scan.log().clone(),
            scan,
            batch: None,
            filter: options.filter.clone(),
            reports_damage: options.reports_damage(),
            last_offset: -1,
            counted: Counted::default(),
        }
    }

    /// Adds rows until the block is complete or a limit is reached; false at the end of the log.
    fn fill<C: Cells>(&mut self, rows: &Rows<C>, block: &mut Block, limits: Limits) -> Result<bool> {
        let end = block.rows.saturating_add(limits.rows);
        let read_end = self.scan.stats().bytes_read.saturating_add(limits.read);
        while block.rows < end && block.text.len() < BLOCK_BYTES {
            let Some(batch) = self.batch else {
                let left = read_end.saturating_sub(self.scan.stats().bytes_read);
                if left == 0 && (self.filter.is_some() || !block.text.is_empty()) {
                    break;
                }
                match self.scan.next_step_within(left)? {
                    ControlFlow::Continue(()) => {}
                    ControlFlow::Break(None) => return Ok(false),
                    ControlFlow::Break(Some(ScanStep::DamagedRange(range))) => block.add_damage(rows, &range),
                    ControlFlow::Break(Some(ScanStep::Batch(batch))) => self.batch = Some(batch),
                }
                continue;
            };
            self.add_records(rows, block, &batch, end)?;
        }
        Ok(true)
    }

    /// Adds the records of the current batch until the block is complete or has `end` rows.
    fn add_records<C: Cells>(
        &mut self,
        rows: &Rows<C>,
        block: &mut Block,
        batch: &Batch,
        end: usize,
    ) -> Result<()> {
        let origin = Origin::new(&self.log, &self.scan, batch);
        let before = self.scan.damaged_ranges().len();
        while let Some(record) = self.scan.next_accepted(self.filter.as_ref())? {
            self.last_offset = record.offset;
            block.add(rows, &record, &origin);
            if block.rows == end || block.text.len() >= BLOCK_BYTES {
                return Ok(());
            }
        }
        self.batch = None;
        // a batch that ends in damage is also a damaged range
        let damaged = self.scan.damaged_ranges().get(before..).unwrap_or_default();
        if self.reports_damage
            && let Some(range) = damaged.last()
        {
            block.add_damage(rows, range);
        }
        Ok(())
    }
}

impl Block {
    #[inline]
    fn add<C: Cells>(&mut self, rows: &Rows<C>, record: &RecordRef<'_>, origin: &Origin<'_>) {
        rows.write_record(&mut self.text, record, origin);
        self.rows += 1;
    }

    fn add_damage<C: Cells>(&mut self, rows: &Rows<C>, range: &DamagedRange) {
        rows.write_damage(&mut self.text, range);
        self.rows += 1;
    }
}

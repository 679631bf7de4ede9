//! `kafka-dump-log`: the contents of a partition's files as text, byte for byte as `DumpLogSegments` of Kafka
//! 4.3 prints it.
//!
//! ```text
//!  Dump ─▶ DumpedFile     the path and the name as Java sees them
//!   │
//!   ├─▶ LogDump               .log, .checkpoint     LogEntries: BatchStream ─▶ DumpedBatch ─▶ BatchRecords ─▶ lines
//!   ├─▶ OffsetIndexDump       .index                each entry with the batch at its position
//!   ├─▶ TimeIndexDump         .timeindex            each entry with the batch of its offset, found by a BatchChain
//!   ├─▶ TransactionIndexDump  .txnindex
//!   └─▶ ProducerSnapshotDump  .snapshot
//!               │
//!            Findings             what does not match, for standard error after the last file
//! ```
//!
//! The other modules read what Kafka's format allows, and reject the rest. This one shows what Kafka's
//! classes make of any bytes: a batch with a wrong checksum is shown, with `isvalid: false`, and the file
//! goes on after it; a length that is impossible ends the file at the place where it ends for Kafka. So
//! batches and records are walked here with Kafka's few checks and no more. The decoding of fields, records,
//! codecs and index entries is that of [`crate::record`] and [`crate::index`].
//!
//! Where Kafka's tool ends with an exception, the text is the same up to there, and an
//! [`Error`](crate::Error) follows.
//!
//! *Memory*: a block of text and a window of the file, 512 KiB together; a batch where it is larger; and 16
//! bytes for each finding.

mod batch;
mod batch_chain;
mod batch_stream;
mod decoder;
mod dumped_file;
mod file_list;
mod findings;
mod legacy_message;
mod log_dump;
mod log_entries;
mod offset_index;
mod options;
mod producer_snapshot;
mod records;
#[cfg(feature = "arrow")]
mod rows;
mod text;
mod time_index;
mod transaction_index;

use std::collections::VecDeque;
use std::path::Path;

pub use decoder::Decoder;
pub use file_list::dumped_files;
pub use options::DumpOptions;
#[cfg(feature = "arrow")]
pub use rows::{DumpRanges, DumpRows};

use self::dumped_file::{DumpedFile, DumpedKind};
use self::findings::{FindingLines, Findings};
use self::log_dump::LogDump;
use self::offset_index::OffsetIndexDump;
use self::producer_snapshot::{OpenedSnapshot, ProducerSnapshotDump};
use self::text::Text;
use self::time_index::TimeIndexDump;
use self::transaction_index::TransactionIndexDump;
use crate::error::{Error, Result};

/// Where Kafka's tool writes a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// The contents of the files.
    Stdout,
    /// Files that are not dumped, snapshots that are corrupt, and after the last file everything that does
    /// not match.
    Stderr,
}

/// A piece of the output: whole lines, but for the last one before an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpBlock {
    /// Where Kafka's tool writes it.
    pub stream: OutputStream,
    /// UTF-8.
    pub text: Vec<u8>,
}

/// The dump of files, block by block.
///
/// # Examples
///
/// ```
/// use cordwood::inspect::{Dump, DumpOptions};
///
/// # fn main() -> cordwood::Result<()> {
/// let file = "tests/golden/01-small/tickets-0/00000000000000000000.index";
/// let mut dump = Dump::new([file], DumpOptions::default());
/// let block = dump.next_block()?.map(|block| String::from_utf8_lossy(&block.text).into_owned());
/// assert!(block.unwrap_or_default().starts_with(&format!("Dumping {file}\noffset: ")));
/// assert_eq!(dump.next_block()?, None);
/// # Ok(())
/// # }
/// ```
///
/// Source: `org.apache.kafka.tools.DumpLogSegments`.
#[derive(Debug)]
pub struct Dump {
    options: DumpOptions,
    files: VecDeque<DumpedFile>,
    current: Option<FileDump>,
    /// For standard error, before the findings.
    messages: Text,
    findings: Findings,
    finding_lines: Option<FindingLines>,
    /// An error after the text that was returned.
    error: Option<Error>,
}

/// A file that is being dumped.
#[derive(Debug)]
enum FileDump {
    Log(Box<LogDump>),
    OffsetIndex(Box<OffsetIndexDump>),
    TimeIndex(Box<TimeIndexDump>),
    TransactionIndex(Box<TransactionIndexDump>),
    ProducerSnapshot(Box<ProducerSnapshotDump>),
}

impl Dump {
    /// The dump of these files, in this order. Nothing is opened yet.
    pub fn new<P: AsRef<Path>>(files: impl IntoIterator<Item = P>, options: DumpOptions) -> Self {
        Self {
            options,
            files: files.into_iter().map(|file| DumpedFile::new(file.as_ref())).collect(),
            current: None,
            messages: Text::default(),
            findings: Findings::default(),
            finding_lines: None,
            error: None,
        }
    }

    /// The next piece of the output; `None` at the end.
    ///
    /// # Errors
    /// Where Kafka's tool ends with an exception, after the text before it: [`Error::Corrupt`],
    /// [`Error::UnsupportedFormat`], [`Error::LogNotFound`], [`Error::Io`], and [`Error::Config`] for a
    /// file whose name has no offset. Also [`Error::LogChanged`] for a file that is shortened, and
    /// [`Error::Interrupted`]. An error ends the dump, without findings.
    pub fn next_block(&mut self) -> Result<Option<DumpBlock>> {
        let mut text = Text::block();
        while self.error.is_none() && self.messages.is_empty() && !text.is_full() {
            match self.advance(&mut text) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.files.clear();
                    self.current = None;
                    self.findings = Findings::default();
                    self.error = Some(error);
                }
            }
        }
        let block = |stream, text: Text| Ok(Some(DumpBlock { stream, text: text.into_bytes() }));
        if !text.is_empty() {
            return block(OutputStream::Stdout, text);
        }
        let mut messages = std::mem::take(&mut self.messages);
        if messages.is_empty() {
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            let findings = &mut self.findings;
            let lines = self.finding_lines.get_or_insert_with(|| std::mem::take(findings).into_lines());
            lines.fill(&mut messages);
        }
        if messages.is_empty() { Ok(None) } else { block(OutputStream::Stderr, messages) }
    }

    /// Writes more of the current file, or starts the next one; false after the last.
    fn advance(&mut self, out: &mut Text) -> Result<bool> {
        let (options, findings) = (&self.options, &mut self.findings);
        if let Some(current) = &mut self.current {
            let has_more = match current {
                FileDump::Log(dump) => dump.fill(options, out, findings),
                FileDump::OffsetIndex(dump) => dump.fill(options, out, findings),
                FileDump::TimeIndex(dump) => dump.fill(options, out, findings),
                FileDump::TransactionIndex(dump) => dump.fill(options, out),
                FileDump::ProducerSnapshot(dump) => dump.fill(options, out),
            };
            if !has_more? {
                self.current = None;
            }
            return Ok(true);
        }
        let Some(file) = self.files.pop_front() else { return Ok(false) };
        out.str("Dumping ").str(file.shown()).end_line();
        self.current = self.open(file, out)?;
        Ok(true)
    }

    fn open(&mut self, file: DumpedFile, out: &mut Text) -> Result<Option<FileDump>> {
        let Some(kind) = file.kind() else {
            self.messages.str("Ignoring unknown file ").str(file.shown()).end_line();
            return Ok(None);
        };
        Ok(Some(match kind {
            DumpedKind::Batches => FileDump::Log(Box::new(LogDump::open(file, &self.options, out)?)),
            DumpedKind::OffsetIndex => FileDump::OffsetIndex(Box::new(OffsetIndexDump::open(file)?)),
            DumpedKind::TimeIndex => FileDump::TimeIndex(Box::new(TimeIndexDump::open(file)?)),
            DumpedKind::TransactionIndex => {
                FileDump::TransactionIndex(Box::new(TransactionIndexDump::open(&file)?))
            }
            DumpedKind::ProducerSnapshot => match ProducerSnapshotDump::open(&file, &self.options)? {
                OpenedSnapshot::Valid(dump) => FileDump::ProducerSnapshot(Box::new(dump)),
                OpenedSnapshot::Corrupt(message) => {
                    self.messages.str(&message).end_line();
                    return Ok(None);
                }
            },
        }))
    }
}

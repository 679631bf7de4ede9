//! The batches of a file and the records in them, in the order of the file: one iteration for both outputs,
//! text and rows.

use std::path::Path;

use super::DumpOptions;
use super::batch::DumpedBatch;
use super::batch_stream::{BATCH_WINDOW, BatchStream};
use super::records::{BatchRecords, DumpedRecord};
use crate::error::{Malformed, Result};
use crate::inspect::batch_place::BatchPlace;

/// What becomes of batches and records.
pub(super) trait LogOutput {
    /// Whether nothing more should be added for now.
    fn is_full(&self) -> bool;

    /// Reads the header of a batch, and adds the batch.
    ///
    /// # Errors
    /// As [`DumpedBatch::read`]; as [`BatchStream::corrupt`] for a field that cannot be shown.
    fn add_batch(&mut self, stream: &mut BatchStream, place: BatchPlace) -> Result<DumpedBatch>;

    /// Adds a record. Called only if the options print records.
    ///
    /// # Errors
    /// [`Malformed`] for contents that cannot be shown.
    fn add_record(&mut self, batch: &DumpedBatch, record: &DumpedRecord<'_>) -> Result<(), Malformed>;
}

/// A position in a file of batches.
#[derive(Debug)]
pub(super) struct LogEntries {
    stream: BatchStream,
    /// The rest of the records of the current batch.
    records: Option<BatchRecords>,
    /// The decompressed records of the current batch.
    buffer: Vec<u8>,
}

impl LogEntries {
    /// Opens a file, of which the first `max_bytes` are read.
    ///
    /// # Errors
    /// As [`BatchStream::open`].
    pub(super) fn open(path: &Path, max_bytes: u32) -> Result<Self> {
        let mut stream = BatchStream::open(path, BATCH_WINDOW)?;
        stream.slice(0, u64::from(max_bytes))?;
        Ok(Self { stream, records: None, buffer: Vec::new() })
    }

    /// The bytes after the last batch.
    pub(super) fn trailing_bytes(&self) -> u64 {
        self.stream.end() - self.stream.position()
    }

    /// Adds batches and records until the output is full; false at the end of the file.
    ///
    /// # Errors
    /// Where Kafka's tool ends with an exception: [`Error::Corrupt`](crate::Error::Corrupt),
    /// [`Error::UnsupportedFormat`](crate::Error::UnsupportedFormat). What is before it has been added.
    /// [`Error::LogChanged`](crate::Error::LogChanged), [`Error::Io`](crate::Error::Io),
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub(super) fn fill(&mut self, options: &DumpOptions, output: &mut impl LogOutput) -> Result<bool> {
        while !output.is_full() {
            options.interrupt.check()?;
            if self.records.is_some() {
                self.add_records(options, output)?;
                continue;
            }
            let Some(place) = self.stream.next()? else { return Ok(false) };
            let batch = output.add_batch(&mut self.stream, place)?;
            if options.prints_records() {
                let max = options.max_batch_bytes;
                let bytes = self.stream.batch_up_to(max, &place)?;
                let opened = BatchRecords::open(batch, bytes, max, &mut self.buffer);
                self.records = Some(opened.map_err(|wrong| self.corrupt(wrong, place))?);
            }
        }
        Ok(true)
    }

    /// Adds records of the current batch until the output is full.
    fn add_records(&mut self, options: &DumpOptions, output: &mut impl LogOutput) -> Result<()> {
        let Some(records) = &mut self.records else { return Ok(()) };
        let batch = *records.batch();
        let bytes = self.stream.batch_up_to(options.max_batch_bytes, &batch.place)?;
        let payload = records.payload().of(bytes, &self.buffer);
        let mut add = || -> Result<bool, Malformed> {
            while !output.is_full() {
                let Some(record) = records.next(payload)? else { return Ok(false) };
                output.add_record(&batch, &record)?;
            }
            Ok(true)
        };
        let has_more = add().map_err(|wrong| self.corrupt(wrong, batch.place))?;
        if !has_more {
            self.records = None;
        }
        Ok(())
    }

    fn corrupt(&self, wrong: Malformed, place: BatchPlace) -> crate::Error {
        self.stream.corrupt(wrong, place.position, Some(place.offset))
    }
}

//! A `.timeindex` as text, compared with its `.log` and its `.index`.

use super::DumpOptions;
use super::batch::DumpedBatch;
use super::batch_chain::BatchChain;
use super::batch_stream::{BatchStream, HEADER_WINDOW};
use super::dumped_file::DumpedFile;
use super::findings::{Check, Findings};
use super::offset_index::open_all_slots;
use super::records::BatchRecords;
use super::text::Text;
use crate::error::Result;
use crate::fs::names::FileKind;
use crate::fs::{FileBytes, SystemFile};
use crate::index::{Method, OffsetIndex, TimeIndex};
use crate::inspect::batch_place::BatchPlace;
use crate::types::TimestampOffset;

/// A time index that is being dumped.
#[derive(Debug)]
pub(super) struct TimeIndexDump {
    file: DumpedFile,
    log: BatchStream,
    /// The batches from the first entry's position on; read for the first entry.
    chain: Option<BatchChain>,
    offset_index: OffsetIndex,
    index: TimeIndex,
    /// The slot of the next entry.
    next: u64,
    previous_timestamp: i64,
    buffer: Vec<u8>,
}

impl TimeIndexDump {
    /// Opens the index, the `.log` and the `.index`.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if the name has no offset; as [`BatchStream::open`].
    pub(super) fn open(file: DumpedFile) -> Result<Self> {
        let base_offset = file.number()?;
        let log = BatchStream::open(&file.sibling(FileKind::Log), HEADER_WINDOW)?;
        let offset_index = open_all_slots(&file.sibling(FileKind::OffsetIndex), base_offset)?;
        let bytes = FileBytes::new(SystemFile::open(file.path())?, None, false)?;
        let index = TimeIndex::of_all_slots(bytes, base_offset)?;
        Ok(Self {
            file,
            log,
            chain: None,
            offset_index,
            index,
            next: 0,
            previous_timestamp: -1,
            buffer: Vec::new(),
        })
    }

    /// Writes lines until the buffer is full; false at the end of the index, as in an offset index.
    ///
    /// # Errors
    /// Where Kafka's tool ends with an exception: if a sanity check fails, or if batches of the `.log` cannot
    /// be read. The text before it is in the buffer. [`Error::LogChanged`](crate::Error::LogChanged),
    /// [`Error::Io`](crate::Error::Io), [`Error::Interrupted`](crate::Error::Interrupted).
    pub(super) fn fill(
        &mut self,
        options: &DumpOptions,
        out: &mut Text,
        findings: &mut Findings,
    ) -> Result<bool> {
        if options.index_sanity_check {
            self.index.sanity_check()?;
            out.str(self.file.shown()).str(" passed sanity check.").end_line();
            return Ok(false);
        }
        while !out.is_full() {
            if self.next == self.index.entries() {
                return Ok(false);
            }
            options.interrupt.check()?;
            let entry = self.index.entry(self.next)?;
            if entry.offset == self.index.base_offset() && self.next > 0 {
                return Ok(false);
            }
            self.check(entry, options.max_batch_bytes, findings)?;
            if !options.verify_index_only {
                out.str("timestamp: ").int(entry.timestamp).str(" offset: ").int(entry.offset).end_line();
            }
            self.previous_timestamp = entry.timestamp;
            self.next += 1;
        }
        Ok(true)
    }

    /// Compares an entry with the batch of its offset and with the entry before it.
    fn check(
        &mut self,
        entry: TimestampOffset,
        max_batch_bytes: usize,
        findings: &mut Findings,
    ) -> Result<()> {
        let position = self.offset_index.lookup(entry.offset, Method::Warm)?.position.into();
        let chain = match &mut self.chain {
            Some(chain) => chain,
            unread => unread.insert(BatchChain::read(&mut self.log, position)?),
        };
        let file = &self.file;
        match chain.find(&mut self.log, position, entry.offset)? {
            None => findings.add(Check::OffsetNotFound, file, entry.offset, -1),
            Some((_, last_offset)) if last_offset != entry.offset => {
                findings.add(Check::OffsetNotFound, file, entry.offset, last_offset);
            }
            Some((place, _)) => {
                let max_timestamp = self.max_timestamp(place, max_batch_bytes)?;
                if max_timestamp != entry.timestamp {
                    findings.add(Check::TimestampMismatch, &self.file, entry.timestamp, max_timestamp);
                }
                if self.previous_timestamp >= entry.timestamp {
                    let previous = self.previous_timestamp;
                    findings.add(Check::TimestampOutOfOrder, &self.file, entry.timestamp, previous);
                }
            }
        }
        Ok(())
    }

    /// The largest timestamp of a batch's records, −1 if there is none.
    fn max_timestamp(&mut self, place: BatchPlace, max_batch_bytes: usize) -> Result<i64> {
        let batch = DumpedBatch::read(&mut self.log, place)?;
        let bytes = self.log.batch_up_to(max_batch_bytes, &place)?;
        let mut largest = || {
            let mut records = BatchRecords::open(batch, bytes, max_batch_bytes, &mut self.buffer)?;
            let payload = records.payload().of(bytes, &self.buffer);
            let mut largest = -1;
            while let Some(record) = records.next(payload)? {
                largest = largest.max(record.timestamp);
            }
            Ok(largest)
        };
        let largest = largest();
        largest.map_err(|wrong| self.log.corrupt(wrong, place.position, Some(place.offset)))
    }
}

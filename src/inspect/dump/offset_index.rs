//! A `.index` as text, compared with its `.log`.

use super::DumpOptions;
use super::batch::DumpedBatch;
use super::batch_stream::BatchStream;
use super::dumped_file::DumpedFile;
use super::findings::{Check, Findings};
use super::text::Text;
use crate::error::{Malformed, Result};
use crate::fs::names::FileKind;
use crate::fs::{FileBytes, SystemFile};
use crate::index::OffsetIndex;
use crate::record::V2_HEADER;

/// An offset index that is being dumped.
#[derive(Debug)]
pub(super) struct OffsetIndexDump {
    file: DumpedFile,
    log: BatchStream,
    index: OffsetIndex,
    /// The slot of the next entry.
    next: u64,
}

/// Opens an offset index as Kafka does: all its slots are entries.
pub(super) fn open_all_slots(path: &std::path::Path, base_offset: i64) -> Result<OffsetIndex> {
    OffsetIndex::of_all_slots(FileBytes::new(SystemFile::open(path)?, None, false)?, base_offset)
}

impl OffsetIndexDump {
    /// Opens the index and its `.log`.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if the name has no offset; as [`BatchStream::open`].
    pub(super) fn open(file: DumpedFile) -> Result<Self> {
        let base_offset = file.number()?;
        // entries are much farther apart
        let log = BatchStream::open(&file.sibling(FileKind::Log), V2_HEADER)?;
        let index = open_all_slots(file.path(), base_offset)?;
        Ok(Self { file, log, index, next: 0 })
    }

    /// Writes lines until the buffer is full; false at the end of the index, which is its first entry but the
    /// first that has the base offset: zeros follow the entries of an index that was not closed.
    ///
    /// # Errors
    /// Where Kafka's tool ends with an exception: if a sanity check fails, or if no batch is at the position
    /// of an entry. The text before it is in the buffer. [`Error::LogChanged`](crate::Error::LogChanged),
    /// [`Error::Io`](crate::Error::Io), [`Error::Interrupted`](crate::Error::Interrupted).
    pub(super) fn fill(
        &mut self,
        options: &DumpOptions,
        out: &mut Text,
        findings: &mut Findings,
    ) -> Result<bool> {
        if self.index.entries() == 0 {
            out.str(self.file.shown()).str(" is empty.").end_line();
            return Ok(false);
        }
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
            let last_offset = self.last_offset_at(entry.position, options)?;
            if last_offset != entry.offset {
                findings.add(Check::IndexMismatch, &self.file, entry.offset, last_offset);
            }
            if !options.verify_index_only {
                out.str("offset: ").int(entry.offset).str(" position: ").int(entry.position).end_line();
            }
            self.next += 1;
        }
        Ok(true)
    }

    /// The last offset of the batch at a position.
    fn last_offset_at(&mut self, position: i32, options: &DumpOptions) -> Result<i64> {
        self.log.slice(position.into(), options.max_message_size.into())?;
        let Some(place) = self.log.next()? else {
            let expected =
                format!("a whole batch within {} bytes, the maximum message size", options.max_message_size);
            let found = Malformed::new(expected, "none");
            return Err(self.log.corrupt(found, self.log.position(), None));
        };
        if place.magic < 2 {
            return Ok(place.offset);
        }
        Ok(DumpedBatch::read(&mut self.log, place)?.last_offset())
    }
}

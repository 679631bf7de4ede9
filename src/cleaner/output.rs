//! The segment that replaces a group of segments, under names that end in `.cleaned`.

use crate::error::{Error, Result, SizeLimit};
use crate::fs::names::{FileKind, Stage};
use crate::fs::{Directory, FileIdentity, WritableFile};
use crate::index::due_entries::EntryRule;
use crate::index::{AbortedTransaction, encode_aborted};
use crate::record::BatchHeader;
use crate::segment::{Batch, PartBuilder, is_relative};
use crate::writer::replacement::{self, name};

/// Bytes that are written at a time.
const WRITE_BYTES: usize = 1 << 20;
/// Bytes after which the system begins to write them to the disk, while the next ones are made.
const WRITE_BACK_BYTES: u64 = 8 << 20;

/// The new segment. Without a directory its bytes are only counted.
#[derive(Debug)]
pub(super) struct Output<'a> {
    base_offset: i64,
    directory: Option<&'a Directory>,
    log: Option<WritableFile>,
    /// The batches that are not written yet.
    buffer: Vec<u8>,
    written: u64,
    /// How many of them the system began to write to the disk.
    written_back: u64,
    indexes: PartBuilder,
    transaction_index: Vec<u8>,
}

impl<'a> Output<'a> {
    /// Creates the `.log`. Files of an earlier attempt are removed.
    pub(super) fn create(
        directory: Option<&'a Directory>,
        base_offset: i64,
        rule: EntryRule,
    ) -> Result<Self> {
        let mut log = None;
        if let Some(directory) = directory {
            replacement::remove(directory, base_offset)?;
            log = Some(create(directory, base_offset, FileKind::Log)?);
        }
        Ok(Self {
            base_offset,
            directory,
            log,
            buffer: Vec::new(),
            written: 0,
            written_back: 0,
            indexes: PartBuilder::new(base_offset, 0, rule),
            transaction_index: Vec::new(),
        })
    }

    /// Where the next batch is put.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Bytes of the `.log`.
    pub(super) fn size(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Records the batch that was put at the end of the buffer.
    ///
    /// # Errors
    /// [`Error::RecordTooLarge`] if the segment cannot have it.
    ///
    /// *Source*: `LogSegment.append`.
    pub(super) fn add(&mut self, header: BatchHeader) -> Result<()> {
        let position = self.size() - u64::from(header.size);
        let is_within =
            i32::try_from(self.size()).is_ok() && is_relative(header.last_offset, self.base_offset);
        if !is_within {
            let found = format!(
                "{} bytes, up to offset {}, in the segment at offset {} (if its own offsets are more than 2^31 - 1 above that, \
                 a compaction splits it first, which a plan does not do)",
                self.size(),
                header.last_offset,
                self.base_offset
            );
            return Err(Error::RecordTooLarge {
                limit: SizeLimit::SegmentBytes,
                max_bytes: u64::from(i32::MAX.unsigned_abs()),
                found,
            });
        }
        self.indexes.add(&Batch { position, header });
        if self.buffer.len() >= WRITE_BYTES {
            self.write()?;
        }
        Ok(())
    }

    /// Adds an entry to the transaction index.
    pub(super) fn add_aborted(&mut self, aborted: AbortedTransaction) {
        self.transaction_index.extend(encode_aborted(aborted));
    }

    fn write(&mut self) -> Result<()> {
        if let Some(log) = &self.log {
            log.write_all_at(&self.buffer, self.written)?;
        }
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        let ready = self.written - self.written_back;
        if let Some(log) = self.log.as_ref().filter(|_| ready >= WRITE_BACK_BYTES) {
            log.write_back(self.written_back, ready);
            self.written_back = self.written;
        }
        Ok(())
    }

    /// Makes the files durable, with the modification time of the last segment that they replace. Returns the
    /// size of the `.log`.
    ///
    /// *Source*: `LogSegment.onBecomeInactiveSegment`, `flush`, `setLastModified`.
    pub(super) fn finish(mut self, like: FileIdentity) -> Result<u64> {
        self.write()?;
        let part = self.indexes.finish()?;
        let (Some(directory), Some(log)) = (self.directory, self.log) else { return Ok(self.written) };
        log.set_modified(like)?;
        log.sync()?;
        for (kind, bytes) in part.indexes.files() {
            let index = create(directory, self.base_offset, kind)?;
            index.write_all_at(bytes, 0)?;
            index.set_modified(like)?;
            index.sync()?;
        }
        if !self.transaction_index.is_empty() {
            let index = create(directory, self.base_offset, FileKind::TransactionIndex)?;
            index.write_all_at(&self.transaction_index, 0)?;
            index.sync()?;
        }
        directory.sync()?;
        Ok(self.written)
    }
}

/// Creates a file of the replacement, with the access of the `.log` of the first segment that it replaces.
fn create(directory: &Directory, base_offset: i64, kind: FileKind) -> Result<WritableFile> {
    let like = name(base_offset, FileKind::Log, Stage::Live);
    directory.create_like(&name(base_offset, kind, Stage::Cleaned), &like)
}

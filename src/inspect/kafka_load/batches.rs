//! The batches of a `.log` as Kafka's file reader returns them. It checks less than a reader of this crate.
//!
//! *Source*: `FileRecords`, `FileLogInputStream`.

use std::path::PathBuf;

use super::disk::{Disk, Reader};
use super::exception::{ExceptionKind, Step, Thrown};
use super::wrapper::{self, Refusal};
use crate::error::Malformed;
use crate::inspect::batch_place::{BatchPlace, MIN_LENGTH, TooShort};
use crate::record::control::ControlType;
use crate::record::{BatchHeader, LOG_OVERHEAD, PREFIX, V2_HEADER, crc};
use crate::state::producers::{EndedTransaction, ProducerReplay, RefusedBatch};

/// Bytes of one read of a large batch.
const READ_BYTES: usize = 1 << 20;

/// Reads the batches of a `.log`.
#[derive(Debug)]
pub(super) struct Batches {
    reader: Reader,
    name: String,
    path: PathBuf,
    max_batch_bytes: usize,
    /// The position after the last byte that counts.
    end: u64,
}

impl Batches {
    /// The batches of a file. `size`: the bytes that count, fewer than the file has if it is preallocated.
    pub(super) fn open(disk: &Disk, name: &str, size: u64) -> Step<Self> {
        let reader = disk.reader(name)?;
        let reader =
            reader.ok_or_else(|| Thrown::kafka(ExceptionKind::Io, name, "the file does not exist"))?;
        let (path, max_batch_bytes) = (disk.directory().path_of(name), disk.max_batch_bytes());
        Ok(Self { end: size.min(reader.size()), reader, name: name.to_owned(), path, max_batch_bytes })
    }

    /// Only the bytes below a position count from now on.
    pub(super) fn limit(&mut self, end: u64) {
        self.end = self.end.min(end);
    }

    /// The batch at a position; `None` where Kafka stops without an error: at the end, and where fewer bytes
    /// are left than the batch has.
    pub(super) fn at(&mut self, position: u64) -> Step<Option<BatchPlace>> {
        if !BatchPlace::may_be_at(position, self.end) {
            return Ok(None);
        }
        let prefix = self.reader.read(position, V2_HEADER)?;
        BatchPlace::read(prefix, position, self.end).map_err(|TooShort(length)| {
            let reason =
                format!("the length field at position {position} is {length}, less than {MIN_LENGTH}");
            self.thrown(ExceptionKind::CorruptRecord, reason)
        })
    }

    /// The header of a batch, nothing of which is checked. Kafka reads a whole header also where the batch is
    /// smaller.
    pub(super) fn header(&mut self, batch: &BatchPlace) -> Step<BatchHeader> {
        let bytes = self.reader.read(batch.position, V2_HEADER)?;
        if let Some(header) = BatchHeader::unchecked(bytes, batch.size) {
            return Ok(header);
        }
        let reason = format!("the file ends in the header of the batch at position {}", batch.position);
        Err(self.thrown(ExceptionKind::Kafka, reason))
    }

    /// The checks of `ensureValid`: the size and the checksum.
    pub(super) fn ensure_valid(&mut self, batch: &BatchPlace) -> Step<()> {
        let of_v2 = batch.magic >= 2;
        let min = if of_v2 { V2_HEADER } else { LOG_OVERHEAD + 14 };
        let (crc_at, covered) = if of_v2 { (17, 21) } else { (LOG_OVERHEAD, PREFIX - 1) };
        let size = u64::from(batch.size);
        if size < min as u64 {
            let reason = format!("the batch at position {} has only {size} bytes", batch.position);
            return Err(self.thrown(ExceptionKind::CorruptRecord, reason));
        }
        let stored = self.reader.read(batch.position + crc_at as u64, 4)?;
        let stored = stored.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        let mut computed = crc::Running::new(if of_v2 { 2 } else { 0 });
        let mut position = batch.position + covered as u64;
        while position < batch.end() {
            let left = usize::try_from(batch.end() - position).unwrap_or(usize::MAX);
            let bytes = self.reader.read(position, left.min(READ_BYTES))?;
            computed.update(bytes);
            position += bytes.len() as u64;
        }
        if stored == Some(computed.value()) {
            return Ok(());
        }
        let reason =
            format!("the checksum of the batch at position {} does not match its bytes", batch.position);
        Err(self.thrown(ExceptionKind::CorruptRecord, reason))
    }

    /// The first offset of a batch: that of a wrapper of magic 0 or 1 is in its compressed records.
    pub(super) fn base_offset(&mut self, batch: &BatchPlace) -> Step<i64> {
        if batch.magic >= 2 {
            return Ok(batch.offset);
        }
        if !self.header(batch)?.is_wrapper() {
            return Ok(batch.offset);
        }
        let max = self.max_batch_bytes;
        let found = wrapper::first_offset(batch.magic, self.whole(batch)?, max);
        found.map_err(|refusal| match refusal {
            Refusal::TooLarge(malformed) => self.too_large(malformed, batch),
            Refusal::Thrown(kind, reason) => {
                let position = batch.position;
                self.thrown(kind, format!("the compressed batch at position {position}: {reason}"))
            }
        })
    }

    pub(super) fn last_offset(&mut self, batch: &BatchPlace) -> Step<i64> {
        if batch.magic < 2 { Ok(batch.offset) } else { Ok(self.header(batch)?.last_offset) }
    }

    /// All bytes of a batch.
    fn whole(&mut self, batch: &BatchPlace) -> Step<&[u8]> {
        let size = usize::try_from(batch.size).unwrap_or(usize::MAX);
        if size > self.max_batch_bytes {
            let malformed = Malformed::too_large(self.max_batch_bytes, format!("{size} bytes, as stored"));
            return Err(self.too_large(malformed, batch));
        }
        Ok(self.reader.read(batch.position, size)?)
    }

    /// The plan cannot be made: Kafka reads such a batch.
    fn too_large(&self, malformed: Malformed, batch: &BatchPlace) -> Thrown {
        Thrown::Error(malformed.at(&self.path, batch.position, Some(batch.offset)))
    }

    /// Adds a batch to the producers, and returns the transaction that it ends.
    ///
    /// *Source*: `ProducerAppendInfo.append`, `EndTransactionMarker.deserialize`.
    pub(super) fn add_to(
        &mut self,
        producers: &mut ProducerReplay,
        batch: &BatchPlace,
        header: &BatchHeader,
    ) -> Step<Option<EndedTransaction>> {
        // Kafka reads any higher magic as 2
        let header = BatchHeader { magic: 2, ..*header };
        let bytes = if ProducerReplay::needs_bytes(&header) { self.whole(batch)? } else { &[] };
        let (kind, what, malformed) = match producers.add(&header, bytes) {
            Ok(added) => return Ok(added.ended),
            Err(RefusedBatch::Marker(malformed)) if is_other_type(header, bytes) => {
                (ExceptionKind::IllegalArgument, "marker", malformed)
            }
            Err(RefusedBatch::Marker(malformed)) => (ExceptionKind::InvalidRecord, "marker", malformed),
            Err(RefusedBatch::Contradiction(malformed)) => {
                (ExceptionKind::InvalidTxnState, "batch", malformed)
            }
        };
        let Malformed { expected, found, .. } = malformed;
        let position = batch.position;
        Err(self
            .thrown(kind, format!("the {what} at position {position}: expected {expected}, found {found}")))
    }

    /// The first batch, from a position, that has an offset at or above `target`, as far as Kafka's search
    /// finds it: it compares base offsets, and the last offset of the batch before the first higher one.
    ///
    /// *Source*: `FileRecords.searchForOffsetFromPosition`.
    pub(super) fn search(&mut self, target: i64, position: u64) -> Step<Option<BatchPlace>> {
        let (mut position, mut previous) = (position, None);
        while let Some(batch) = self.at(position)? {
            let base_offset = self.base_offset(&batch)?;
            if base_offset == target {
                return Ok(Some(batch));
            }
            if base_offset > target {
                return Ok(Some(self.reaching(previous, target)?.unwrap_or(batch)));
            }
            position = batch.end();
            previous = Some(batch);
        }
        self.reaching(previous, target)
    }

    /// The batch if its last offset is at or above `target`.
    fn reaching(&mut self, batch: Option<BatchPlace>, target: i64) -> Step<Option<BatchPlace>> {
        let Some(batch) = batch else { return Ok(None) };
        Ok((self.last_offset(&batch)? >= target).then_some(batch))
    }

    /// The offset after the last batch from a position, and the position after it. `None` if there is no
    /// batch.
    pub(super) fn next_offset(&mut self, position: u64) -> Step<Option<(i64, u64)>> {
        let (mut position, mut last) = (position, None);
        while let Some(batch) = self.at(position)? {
            position = batch.end();
            last = Some(batch);
        }
        let Some(last) = last else { return Ok(None) };
        Ok(Some((self.last_offset(&last)?.wrapping_add(1), position)))
    }

    pub(super) fn thrown(&self, kind: ExceptionKind, reason: String) -> Thrown {
        Thrown::kafka(kind, &self.name, reason)
    }
}

/// Whether the first record of a control batch is neither a COMMIT nor an ABORT marker.
fn is_other_type(header: BatchHeader, bytes: &[u8]) -> bool {
    matches!(ControlType::of_batch(header, bytes, &mut Vec::new()), Ok(Some(ControlType::Other(_))))
}

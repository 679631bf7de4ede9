//! A `.snapshot` (producer states) as text. Unlike [`crate::state::producers::ProducerSnapshot`] this accepts
//! what Kafka accepts, and has Kafka's messages for the rest.

use super::DumpOptions;
use super::dumped_file::DumpedFile;
use super::text::Text;
use crate::error::Result;
use crate::fs::{FileBytes, SystemFile};
use crate::record::{crc, i16_at, i32_at, u32_at};
use crate::state::producers::ProducerEntry;
use crate::state::producers::snapshot::{COUNT, ENTRIES, ENTRY, VERSION, decode_entry};

/// Bytes that are read and written at once: whole entries, and few, so that a block does not become much
/// larger than full.
const WINDOW_BYTES: usize = ENTRY * 64;

/// A snapshot that is being dumped.
#[derive(Debug)]
pub(super) struct ProducerSnapshotDump {
    bytes: FileBytes,
    position: u64,
    /// The position after the last producer.
    end: u64,
    window: Vec<u8>,
}

/// A snapshot that was opened.
#[derive(Debug)]
pub(super) enum OpenedSnapshot {
    Valid(ProducerSnapshotDump),
    /// Kafka's message on standard error.
    Corrupt(String),
}

impl ProducerSnapshotDump {
    /// Opens a snapshot, and checks it as Kafka does.
    ///
    /// # Errors
    /// [`Error::LogNotFound`](crate::Error::LogNotFound), [`Error::Io`](crate::Error::Io),
    /// [`Error::LogChanged`](crate::Error::LogChanged), [`Error::Interrupted`](crate::Error::Interrupted).
    pub(super) fn open(file: &DumpedFile, options: &DumpOptions) -> Result<OpenedSnapshot> {
        let bytes = FileBytes::new(SystemFile::open(file.path())?, None, false)?;
        let mut dump = Self { bytes, position: COUNT as u64, end: 0, window: Vec::new() };
        let size = dump.bytes.size();
        let mut head = Vec::new();
        dump.bytes.copy(0, ENTRIES, &mut head)?;
        let invalid =
            |why: &str| Ok(OpenedSnapshot::Corrupt(format!("Snapshot failed schema validation: {why}")));
        match i16_at(&head, 0) {
            Some(VERSION) => {}
            Some(other) => return invalid(&format!("Snapshot contained an unknown file version {other}")),
            // the text of an exception of Java that has none
            None => return invalid("null"),
        }
        let Some((stored, count)) = u32_at(&head, 2).zip(i32_at(&head, COUNT)) else {
            return invalid("null");
        };
        let Ok(count) = u64::try_from(count) else {
            return invalid("non-nullable field producerEntries was serialized as null");
        };
        let left = size - ENTRIES as u64;
        if count > left {
            let why = format!(
                "Tried to allocate a collection of size {count}, but there are only {left} bytes remaining."
            );
            return invalid(&why);
        }
        dump.end = ENTRIES as u64 + count * ENTRY as u64;
        if dump.end > size {
            return invalid("null");
        }
        let computed = dump.checksum(size, options)?;
        if stored != computed {
            return Ok(OpenedSnapshot::Corrupt(format!(
                "Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}"
            )));
        }
        dump.position = ENTRIES as u64;
        Ok(OpenedSnapshot::Valid(dump))
    }

    fn checksum(&mut self, size: u64, options: &DumpOptions) -> Result<u32> {
        let mut running = crc::Running::new(2);
        while self.position < size {
            options.interrupt.check()?;
            self.bytes.copy(self.position, WINDOW_BYTES, &mut self.window)?;
            running.update(&self.window);
            self.position += self.window.len() as u64;
        }
        Ok(running.value())
    }

    /// Writes lines until the buffer is full; false at the end of the snapshot.
    ///
    /// # Errors
    /// [`Error::LogChanged`](crate::Error::LogChanged), [`Error::Io`](crate::Error::Io),
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub(super) fn fill(&mut self, options: &DumpOptions, out: &mut Text) -> Result<bool> {
        while !out.is_full() {
            options.interrupt.check()?;
            let left = usize::try_from(self.end - self.position).unwrap_or(usize::MAX);
            if left == 0 {
                return Ok(false);
            }
            self.bytes.copy(self.position, left.min(WINDOW_BYTES), &mut self.window)?;
            self.position += self.window.len() as u64;
            for entry in self.window.chunks_exact(ENTRY) {
                write_producer(out, &decode_entry(entry));
            }
        }
        Ok(true)
    }
}

fn write_producer(out: &mut Text, producer: &ProducerEntry) {
    out.str("producerId: ").int(producer.producer_id).str(" producerEpoch: ").int(producer.producer_epoch);
    out.str(" coordinatorEpoch: ").int(producer.coordinator_epoch).str(" currentTxnFirstOffset: ");
    out.optional(producer.open_transaction).str(" lastTimestamp: ").int(producer.last_timestamp);
    if let Some(batch) = producer.last_batch() {
        out.str(" firstSequence: ")
            .int(batch.first_sequence())
            .str(" lastSequence: ")
            .int(batch.last_sequence);
        out.str(" lastOffset: ").int(batch.last_offset).str(" offsetDelta: ").int(batch.offset_delta);
        out.str(" timestamp: ").int(batch.timestamp);
    }
    out.end_line();
}

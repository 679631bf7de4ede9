//! A `.snapshot` (producer state) as text.
//!
//! ```text
//! 0         2       6           10       each 46 bytes
//! │ version │ crc   │ producers │ id i64 │ epoch i16 │ last sequence i32 │ last offset i64 │ offset delta i32
//! │ i16 = 1 │ u32   │ i32       │        │ timestamp i64 │ coordinator epoch i32 │ first offset of the transaction i64
//! ```
//!
//! The CRC-32C covers everything from the number of producers on. Kafka: `ProducerStateManager.readSnapshot`,
//! `ProducerSnapshot.json`.

use super::DumpOptions;
use super::dumped_file::DumpedFile;
use super::text::Text;
use crate::error::Result;
use crate::fs::{FileBytes, SystemFile};
use crate::record::{crc, i16_at, i32_at, i64_at, u32_at};

/// The supported version.
const VERSION: i16 = 1;
/// The position of the first byte that the checksum covers.
const CHECKED_FROM: u64 = 6;
/// The position of the first producer.
const PRODUCERS_FROM: u64 = 10;
/// Bytes of a producer.
const PRODUCER_BYTES: usize = 46;
/// Bytes that are read at once: whole producers.
const WINDOW_BYTES: usize = PRODUCER_BYTES * 1024;

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
        let mut dump = Self { bytes, position: CHECKED_FROM, end: 0, window: Vec::new() };
        let size = dump.bytes.size();
        let mut head = Vec::new();
        dump.bytes.copy(0, 10, &mut head)?;
        let invalid =
            |why: &str| Ok(OpenedSnapshot::Corrupt(format!("Snapshot failed schema validation: {why}")));
        match i16_at(&head, 0) {
            Some(VERSION) => {}
            Some(other) => return invalid(&format!("Snapshot contained an unknown file version {other}")),
            // the text of an exception of Java that has none
            None => return invalid("null"),
        }
        let Some((stored, count)) = u32_at(&head, 2).zip(i32_at(&head, 6)) else { return invalid("null") };
        let Ok(count) = u64::try_from(count) else {
            return invalid("non-nullable field producerEntries was serialized as null");
        };
        let left = size - PRODUCERS_FROM;
        if count > left {
            let why = format!(
                "Tried to allocate a collection of size {count}, but there are only {left} bytes remaining."
            );
            return invalid(&why);
        }
        dump.end = PRODUCERS_FROM + count * PRODUCER_BYTES as u64;
        if dump.end > size {
            return invalid("null");
        }
        let computed = dump.checksum(size, options)?;
        if stored != computed {
            return Ok(OpenedSnapshot::Corrupt(format!(
                "Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}"
            )));
        }
        dump.position = PRODUCERS_FROM;
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
            for producer in self.window.as_chunks::<PRODUCER_BYTES>().0 {
                write_producer(out, producer);
            }
        }
        Ok(true)
    }
}

fn write_producer(out: &mut Text, producer: &[u8; PRODUCER_BYTES]) {
    let long = |at| i64_at(producer, at).unwrap_or(-1);
    let integer = |at| i32_at(producer, at).unwrap_or(-1);
    let (last_sequence, last_offset, offset_delta, timestamp) =
        (integer(10), long(14), integer(22), long(26));
    out.str("producerId: ").int(long(0)).str(" producerEpoch: ").int(i16_at(producer, 8).unwrap_or(-1));
    out.str(" coordinatorEpoch: ").int(integer(34)).str(" currentTxnFirstOffset: ");
    out.optional(Some(long(38)).filter(|first| *first >= 0)).str(" lastTimestamp: ").int(timestamp);
    if last_offset >= 0 {
        let first_sequence = sequence_before(last_sequence, offset_delta);
        out.str(" firstSequence: ").int(first_sequence).str(" lastSequence: ").int(last_sequence);
        out.str(" lastOffset: ").int(last_offset).str(" offsetDelta: ").int(offset_delta);
        out.str(" timestamp: ").int(timestamp);
    }
    out.end_line();
}

/// The sequence `decrement` before another one. Source: `DefaultRecordBatch.decrementSequence`.
fn sequence_before(sequence: i32, decrement: i32) -> i32 {
    if sequence < decrement {
        i32::MAX.wrapping_sub(decrement.wrapping_sub(sequence)).wrapping_add(1)
    } else {
        sequence.wrapping_sub(decrement)
    }
}

#[cfg(test)]
mod tests {
    use super::sequence_before;

    #[test]
    fn sequences_wrap_below_zero() {
        for (sequence, decrement, before) in [(9, 4, 5), (2, 4, i32::MAX - 1), (0, 0, 0), (-1, 0, -1)] {
            assert_eq!(sequence_before(sequence, decrement), before, "{sequence} - {decrement}");
        }
    }
}

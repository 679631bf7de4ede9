//! The bytes of a snapshot.

use std::collections::HashSet;

use super::{ProducerEntry, SequenceRange};
use crate::error::Malformed;
use crate::record::crc;

/// The version that is read and written.
pub(crate) const VERSION: i16 = 1;
/// The position of the number of entries, from which on the checksum counts.
pub(crate) const COUNT: usize = 6;
/// The position of the first entry.
pub(crate) const ENTRIES: usize = 10;
/// Bytes of an entry.
pub(crate) const ENTRY: usize = 46;

/// The contents of a `.snapshot` file.
///
/// *Source*: `ProducerStateManager.readSnapshot` and `writeSnapshot`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProducerSnapshot {
    /// In the order of the file.
    pub entries: Vec<ProducerEntry>,
}

impl ProducerSnapshot {
    /// Decodes a file's bytes and checks the version, the checksum and the size.
    ///
    /// # Errors
    /// What is wrong, and its position in the bytes. Kafka deletes such a file, and uses the one before.
    /// Unlike here, it accepts bytes after the last entry and the same producer twice, if the checksum is
    /// right.
    pub fn decode(bytes: &[u8]) -> Result<Self, (u64, Malformed)> {
        let size = bytes.len();
        let truncated = || (0, Malformed::new(format!("at least {ENTRIES} bytes"), format!("{size} bytes")));
        let (head, entries) = bytes.split_at_checked(ENTRIES).ok_or_else(truncated)?;
        let mut head = Fields(head);
        let version = i16::from_be_bytes(head.next());
        if version != VERSION {
            let expected = format!("version {VERSION} of a producer snapshot");
            return Err((0, Malformed::unsupported(expected, format!("version {version}"))));
        }
        let stored = u32::from_be_bytes(head.next());
        let count = i32::from_be_bytes(head.next());
        let computed = crc::crc32c(bytes.get(COUNT..).unwrap_or_default());
        if computed != stored {
            let expected = format!("CRC-32C {stored:#010x}, as stored");
            return Err((2, Malformed::new(expected, format!("CRC-32C {computed:#010x} of its bytes"))));
        }
        if i64::try_from(entries.len()).ok() != Some(i64::from(count) * 46) {
            let expected = format!("entries of {ENTRY} bytes in {} bytes", entries.len());
            return Err((6, Malformed::new(expected, format!("{count} entries"))));
        }
        let mut snapshot = Self { entries: Vec::with_capacity(entries.len() / ENTRY) };
        snapshot.entries.extend(entries.chunks_exact(ENTRY).map(decode_entry));
        match snapshot.repeated() {
            Some((number, id)) => {
                let found = format!("producer id {id} twice");
                let position = (ENTRIES + ENTRY * number) as u64;
                Err((position, Malformed::new("an entry for each producer", found)))
            }
            None => Ok(snapshot),
        }
    }

    /// The first entry whose producer has an entry before it, and the producer's id.
    fn repeated(&self) -> Option<(usize, i64)> {
        let ids = self.entries.iter().map(|entry| entry.producer_id);
        let mut sorted: Vec<_> = ids.clone().collect();
        sorted.sort_unstable();
        if sorted.windows(2).all(|pair| pair.first() != pair.last()) {
            return None;
        }
        let mut seen = HashSet::new();
        ids.enumerate().find(|(_, id)| !seen.insert(*id))
    }

    /// The size of the snapshot at the start of `bytes`, from its number of entries; at most their length.
    pub(crate) fn size_of(bytes: &[u8]) -> usize {
        let count = bytes.get(COUNT..).and_then(|rest| rest.first_chunk()).copied().map(i32::from_be_bytes);
        let count = count.and_then(|count| usize::try_from(count).ok());
        let size = count.and_then(|count| count.checked_mul(ENTRY)?.checked_add(ENTRIES));
        size.unwrap_or(bytes.len()).min(bytes.len())
    }

    /// The bytes of a file with these entries.
    pub fn encode(&self) -> Vec<u8> {
        encode(self.entries.iter())
    }
}

/// The bytes of a file.
pub(crate) fn encode<'a>(entries: impl ExactSizeIterator<Item = &'a ProducerEntry>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ENTRIES + ENTRY * entries.len());
    bytes.extend_from_slice(&VERSION.to_be_bytes());
    // the checksum, when the rest is known
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&i32::try_from(entries.len()).unwrap_or(i32::MAX).to_be_bytes());
    for entry in entries {
        let none = SequenceRange { last_sequence: -1, last_offset: -1, offset_delta: 0, timestamp: -1 };
        let batch = entry.last_batch().unwrap_or(&none);
        bytes.extend_from_slice(&entry.producer_id.to_be_bytes());
        bytes.extend_from_slice(&entry.producer_epoch.to_be_bytes());
        bytes.extend_from_slice(&batch.last_sequence.to_be_bytes());
        bytes.extend_from_slice(&batch.last_offset.to_be_bytes());
        bytes.extend_from_slice(&batch.offset_delta.to_be_bytes());
        bytes.extend_from_slice(&entry.last_timestamp.to_be_bytes());
        bytes.extend_from_slice(&entry.coordinator_epoch.to_be_bytes());
        bytes.extend_from_slice(&entry.open_transaction.unwrap_or(-1).to_be_bytes());
    }
    let crc = crc::crc32c(bytes.get(COUNT..).unwrap_or_default());
    bytes.get_mut(2..COUNT).into_iter().for_each(|stored| stored.copy_from_slice(&crc.to_be_bytes()));
    bytes
}

/// Whether two files are valid snapshots with the same entries, byte for byte, in any order.
#[cfg(feature = "inspect")]
pub(crate) fn have_same_entries(one: &[u8], other: &[u8]) -> bool {
    let sorted = |bytes| {
        ProducerSnapshot::decode(bytes).ok()?;
        let mut entries: Vec<_> = bytes.get(ENTRIES..)?.chunks_exact(ENTRY).collect();
        entries.sort_unstable();
        Some(entries)
    };
    one.len() == other.len() && sorted(one).is_some_and(|entries| Some(entries) == sorted(other))
}

/// Decodes an entry's [`ENTRY`] bytes.
pub(crate) fn decode_entry(bytes: &[u8]) -> ProducerEntry {
    let mut fields = Fields(bytes);
    let producer_id = i64::from_be_bytes(fields.next());
    let producer_epoch = i16::from_be_bytes(fields.next());
    let last_sequence = i32::from_be_bytes(fields.next());
    let last_offset = i64::from_be_bytes(fields.next());
    let offset_delta = i32::from_be_bytes(fields.next());
    let last_timestamp = i64::from_be_bytes(fields.next());
    let coordinator_epoch = i32::from_be_bytes(fields.next());
    let open_transaction = i64::from_be_bytes(fields.next());
    let mut entry = ProducerEntry::new(producer_id);
    entry.producer_epoch = producer_epoch;
    entry.coordinator_epoch = coordinator_epoch;
    entry.last_timestamp = last_timestamp;
    entry.open_transaction = Some(open_transaction).filter(|first| *first >= 0);
    if last_offset >= 0 {
        let timestamp = last_timestamp;
        entry.add(producer_epoch, SequenceRange { last_sequence, last_offset, offset_delta, timestamp });
    }
    entry
}

/// Fixed-size fields, one after the other. The caller has checked the size.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn next<const N: usize>(&mut self) -> [u8; N] {
        let Some((field, rest)) = self.0.split_first_chunk() else { return [0; N] };
        self.0 = rest;
        *field
    }
}

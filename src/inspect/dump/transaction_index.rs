//! A `.txnindex` as text.

use super::DumpOptions;
use super::dumped_file::DumpedFile;
use super::text::Text;
use crate::error::{Malformed, Result};
use crate::fs::{FileBytes, SystemFile};
use crate::index::AbortedTransaction;

/// Entries that are read and written at once: few, so that a block does not become much larger than full.
const WINDOW_ENTRIES: usize = 64;

/// A transaction index that is being dumped.
#[derive(Debug)]
pub(super) struct TransactionIndexDump {
    bytes: FileBytes,
    position: u64,
    window: Vec<u8>,
}

impl TransactionIndexDump {
    /// Opens the index and checks the versions of all entries: Kafka reads all of them before it prints one.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if the name has no offset;
    /// [`Error::UnsupportedFormat`](crate::Error::UnsupportedFormat) for a version above 0; a version below 0
    /// is printed.
    pub(super) fn open(file: &DumpedFile) -> Result<Self> {
        file.number()?;
        let bytes = FileBytes::new(SystemFile::open(file.path())?, None, false)?;
        let mut dump = Self { bytes, position: 0, window: Vec::new() };
        loop {
            let start = dump.position;
            let entries = dump.next_entries()?;
            if entries.is_empty() {
                break;
            }
            let newer = entries.iter().position(|entry| version(entry) > 0);
            if let Some(newer) = newer {
                let found = format!("version {}", entries.get(newer).map_or(0, version));
                let position = start + (newer * AbortedTransaction::BYTES) as u64;
                let path = dump.bytes.path();
                return Err(Malformed::unsupported("entry version 0", found).at(path, position, None));
            }
        }
        dump.position = 0;
        Ok(dump)
    }

    /// Writes lines until the buffer is full; false at the end of the index. A fragment after the last whole
    /// entry is ignored.
    ///
    /// # Errors
    /// [`Error::LogChanged`](crate::Error::LogChanged), [`Error::Io`](crate::Error::Io),
    /// [`Error::Interrupted`](crate::Error::Interrupted).
    pub(super) fn fill(&mut self, options: &DumpOptions, out: &mut Text) -> Result<bool> {
        while !out.is_full() {
            options.interrupt.check()?;
            let entries = self.next_entries()?;
            if entries.is_empty() {
                return Ok(false);
            }
            for entry in entries {
                let aborted = AbortedTransaction::fields_of(entry);
                out.str("version: ").int(version(entry)).str(" producerId: ").int(aborted.producer_id);
                out.str(" firstOffset: ")
                    .int(aborted.first_offset)
                    .str(" lastOffset: ")
                    .int(aborted.last_offset);
                out.str(" lastStableOffset: ").int(aborted.last_stable_offset).end_line();
            }
        }
        Ok(true)
    }

    /// The next entries, none at the end.
    fn next_entries(&mut self) -> Result<&[[u8; AbortedTransaction::BYTES]]> {
        self.bytes.copy(self.position, WINDOW_ENTRIES * AbortedTransaction::BYTES, &mut self.window)?;
        let (entries, _) = self.window.as_chunks();
        self.position += (entries.len() * AbortedTransaction::BYTES) as u64;
        Ok(entries)
    }
}

/// The version as Kafka's reader sees it: the first of the two bytes. Source: `AbortedTxn.version`.
fn version(entry: &[u8; AbortedTransaction::BYTES]) -> i8 {
    entry.first().map_or(0, |byte| byte.cast_signed())
}

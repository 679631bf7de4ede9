//! `.txnindex`: the transactions that were aborted in a segment.

use std::path::Path;

use super::slots::{Slots, field};
use crate::error::{Malformed, Result};
use crate::fs::FileBytes;
use crate::fs::names::FileKind;

/// A transaction that was aborted. Kafka: `AbortedTxn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct AbortedTransaction {
    /// The id of its producer.
    pub producer_id: i64,
    /// The offset of its first record.
    pub first_offset: i64,
    /// The offset of its abort marker: its last, inclusive.
    pub last_offset: i64,
    /// The last stable offset when it was aborted: no transaction that was still open had records below it.
    /// Its value depends on how appends were grouped, so it may differ between two replicas.
    pub last_stable_offset: i64,
}

impl AbortedTransaction {
    /// Bytes of an entry.
    pub(crate) const BYTES: usize = 34;

    /// The fields of an entry, whatever its version.
    pub(crate) fn fields_of(slot: &[u8; Self::BYTES]) -> Self {
        Self {
            producer_id: i64::from_be_bytes(field(slot, 2)),
            first_offset: i64::from_be_bytes(field(slot, 10)),
            last_offset: i64::from_be_bytes(field(slot, 18)),
            last_stable_offset: i64::from_be_bytes(field(slot, 26)),
        }
    }
}

/// A transaction index (`.txnindex`), as it was when it was opened. A segment without one has no aborted
/// transactions.
///
/// The file is not preallocated, so every whole slot is an entry; a fragment after the last is ignored.
///
/// *Concurrency*: `Send + Sync`; readers share it without a lock.
/// *Source*: `TransactionIndex`.
#[derive(Debug)]
pub struct TransactionIndex {
    pub(super) slots: Slots<{ AbortedTransaction::BYTES }>,
    base_offset: i64,
}

impl TransactionIndex {
    /// Opens a file for reading, mapped if `map` is true. Reads nothing yet. `base_offset`: the segment's; if
    /// `None`, the digits at the start of the file's name.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if the name does not start with a number and none is given, or
    /// a negative one is; [`Error::Io`](crate::Error::Io).
    pub fn open(path: &Path, base_offset: Option<i64>, map: bool) -> Result<Self> {
        let (bytes, base_offset) = super::open(path, FileKind::TransactionIndex, base_offset, map)?;
        Ok(Self::from_bytes(bytes, base_offset))
    }

    /// Uses an open file; `base_offset` is the segment's.
    pub fn from_bytes(bytes: FileBytes, base_offset: i64) -> Self {
        Self::of(Slots::new(bytes), base_offset)
    }

    pub(super) fn of(slots: Slots<{ AbortedTransaction::BYTES }>, base_offset: i64) -> Self {
        Self { slots, base_offset }
    }

    /// The path by which the file was opened.
    pub fn path(&self) -> &Path {
        self.slots.path()
    }

    /// Whether the file has no name any more, as after it was deleted.
    pub(crate) fn is_deleted(&self) -> bool {
        self.slots.is_deleted()
    }

    /// The segment's base offset.
    pub fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// Bytes of one entry: 34.
    pub fn entry_size(&self) -> u64 {
        Slots::<{ AbortedTransaction::BYTES }>::size()
    }

    /// The number of entries.
    pub fn entries(&self) -> u64 {
        self.slots.whole()
    }

    /// The entry in slot `n`, counted from 0.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if `n` is not below [`TransactionIndex::entries`];
    /// [`Error::UnsupportedFormat`](crate::Error::UnsupportedFormat) if the entry's version is above 0,
    /// [`Error::Corrupt`](crate::Error::Corrupt) if it is below; [`Error::Io`](crate::Error::Io),
    /// [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn entry(&self, n: u64) -> Result<AbortedTransaction> {
        if n >= self.entries() {
            return Err(super::no_such_entry(n, self.entries()));
        }
        self.decode(n, &self.slots.slot(n)?)
    }

    fn decode(&self, n: u64, slot: &[u8; AbortedTransaction::BYTES]) -> Result<AbortedTransaction> {
        decode(slot).map_err(|malformed| malformed.at(self.path(), n * self.entry_size(), None))
    }

    /// Calls `visit` with all entries, in file order, until it returns false. Unlike
    /// [`TransactionIndex::iter`] it reads many at once.
    pub(crate) fn visit(&self, mut visit: impl FnMut(u64, AbortedTransaction) -> Result<bool>) -> Result<()> {
        let mut numbers = 0..;
        self.slots.visit(self.entries(), |slot| {
            let n = numbers.next().unwrap_or_default();
            visit(n, self.decode(n, slot)?)
        })
    }

    /// All entries, in file order. An entry that cannot be read is returned as an error.
    ///
    /// *Source*: `TransactionIndex.iterable`.
    pub fn iter(&self) -> impl Iterator<Item = Result<AbortedTransaction>> + '_ {
        (0..self.entries()).map(|n| self.entry(n))
    }

    /// The last entry; `None` if there is none.
    ///
    /// # Errors
    /// Those of [`TransactionIndex::entry`].
    pub fn last_entry(&self) -> Result<Option<AbortedTransaction>> {
        self.entries().checked_sub(1).map(|last| self.entry(last)).transpose()
    }

    /// Does Kafka's check: no entry ends below the base offset. A fragment after the last entry is not
    /// damage.
    ///
    /// *Source*: `TransactionIndex.sanityCheck`.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if one does; errors of [`TransactionIndex::entry`].
    pub fn sanity_check(&self) -> Result<()> {
        self.visit(|n, entry| {
            if entry.last_offset < self.base_offset {
                let expected = format!("a last offset at or above the base offset {}", self.base_offset);
                let malformed = Malformed::new(expected, format!("offset {}", entry.last_offset));
                return Err(malformed.at(self.path(), n * self.entry_size(), Some(entry.last_offset)));
            }
            Ok(true)
        })
    }

    /// The aborted transactions of this index that have records in `[fetch_offset, upper_bound)`, and whether
    /// they are complete: `false` if markers in later segments may have aborted others.
    ///
    /// *Source*: `TransactionIndex.collectAbortedTxns`.
    ///
    /// # Errors
    /// Those of [`TransactionIndex::entry`].
    pub fn collect_aborted(
        &self,
        fetch_offset: i64,
        upper_bound: i64,
    ) -> Result<(Vec<AbortedTransaction>, bool)> {
        let mut aborted = Vec::new();
        for entry in self.iter() {
            let entry = entry?;
            if entry.last_offset >= fetch_offset && entry.first_offset < upper_bound {
                aborted.push(entry);
            }
            // every transaction below the bound had ended by then, so no later marker can abort one
            if entry.last_stable_offset >= upper_bound {
                return Ok((aborted, true));
            }
        }
        Ok((aborted, false))
    }
}

pub(crate) fn encode(aborted: AbortedTransaction) -> [u8; AbortedTransaction::BYTES] {
    let AbortedTransaction { producer_id, first_offset, last_offset, last_stable_offset } = aborted;
    let mut slot = [0; AbortedTransaction::BYTES];
    let (_version, fields) = slot.split_at_mut(2);
    for (field, number) in
        fields.chunks_exact_mut(8).zip([producer_id, first_offset, last_offset, last_stable_offset])
    {
        field.copy_from_slice(&number.to_be_bytes());
    }
    slot
}

fn decode(slot: &[u8; AbortedTransaction::BYTES]) -> Result<AbortedTransaction, Malformed> {
    // Kafka checks only the first byte of the version; the field has two
    match i16::from_be_bytes(field(slot, 0)) {
        0 => Ok(AbortedTransaction::fields_of(slot)),
        newer @ 1.. => Err(Malformed::unsupported("entry version 0", format!("version {newer}"))),
        garbage => Err(Malformed::new("entry version 0", format!("version {garbage}"))),
    }
}

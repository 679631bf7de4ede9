//! The offset index and the time index of a segment, as Kafka maps and changes them.
//!
//! ```text
//! bytes     entries ... ][ whatever the file had or zeros ... ]
//!                        ^ the cursor: after `entries` slots   ^ the size of the file
//! ```
//!
//! A file that exists is taken to consist of entries only: nothing tells them from zeros. Dropped entries
//! stay in the file until it is shortened.
//!
//! *Source*: `AbstractIndex`, `OffsetIndex`, `TimeIndex`.

use super::disk::{Contents, Disk};
use super::exception::{ExceptionKind, Step, Thrown};
use crate::index::{Entry, OFFSET_ENTRY_BYTES, Search, TIME_ENTRY_BYTES};
use crate::types::{OffsetPosition, TimestampOffset};

/// The largest file that the JVM maps.
const MAX_MAPPED_BYTES: u64 = i32::MAX as u64;

/// An index that Kafka has mapped. Its bytes are in its file on the [`Disk`].
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexFile {
    base_offset: i64,
    /// `segment.index.bytes`
    max_size: u64,
    pub(super) entries: u64,
}

/// What both kinds of index have. `E` is the kind.
pub(super) struct Mapped<'a, E, const SIZE: usize> {
    file: &'a mut IndexFile,
    bytes: &'a mut Vec<u8>,
    size: &'a mut u64,
    name: &'a str,
    kind: std::marker::PhantomData<E>,
}

impl IndexFile {
    /// Maps a file, which is created if it does not exist.
    pub(super) fn open<const SIZE: usize>(
        disk: &mut Disk,
        name: &str,
        base_offset: i64,
        max_size: u64,
    ) -> Step<Self> {
        if let Some(size) = disk.size(name) {
            if size > MAX_MAPPED_BYTES {
                return Err(Thrown::kafka(ExceptionKind::IllegalArgument, name, "a file of more than 2 GiB"));
            }
            return Ok(Self { base_offset, max_size, entries: size / SIZE as u64 });
        }
        let mut contents = Contents::made(Vec::new());
        if max_size < SIZE as u64 {
            disk.put(name, contents);
            let reason = format!("segment.index.bytes is {max_size}, too small for one entry");
            return Err(Thrown::kafka(ExceptionKind::IllegalArgument, name, reason));
        }
        if let Contents::Made { size, .. } = &mut contents {
            *size = max_size - max_size % SIZE as u64;
        }
        disk.put(name, contents);
        Ok(Self { base_offset, max_size, entries: 0 })
    }

    /// Its bytes.
    pub(super) fn mapped<'a, E: Entry<SIZE>, const SIZE: usize>(
        &'a mut self,
        disk: &'a mut Disk,
        name: &'a str,
    ) -> Step<Mapped<'a, E, SIZE>> {
        let Some((bytes, size)) = disk.load(name)? else {
            return Err(Thrown::kafka(ExceptionKind::IllegalState, name, "the index was deleted"));
        };
        Ok(Mapped { file: self, bytes, size, name, kind: std::marker::PhantomData })
    }
}

impl<E: Entry<SIZE>, const SIZE: usize> Mapped<'_, E, SIZE> {
    fn entry(&self, slot: u64) -> E {
        let start = usize::try_from(slot).unwrap_or(usize::MAX).saturating_mul(SIZE);
        let mut bytes = [0; SIZE];
        let stored = self.bytes.get(start..).unwrap_or_default();
        for (to, from) in bytes.iter_mut().zip(stored) {
            *to = *from;
        }
        E::decode(&bytes, self.file.base_offset)
    }

    /// The last entry, or what Kafka has in its place in an empty index.
    pub(super) fn last(&self) -> E {
        match self.file.entries.checked_sub(1) {
            Some(last) => self.entry(last),
            None => E::before_first(self.file.base_offset),
        }
    }

    /// The largest slot with a value at or below the target, as Kafka searches it. `value`: the key, or the
    /// offset of a time entry.
    fn lower_bound(&self, target: i64, value: impl Fn(&E) -> i64) -> Option<u64> {
        let search = Search { entries: self.file.entries, warm_slots: Some(8192 / SIZE as u64) };
        let Ok(slot) =
            search.lower_bound(target, |slot| Ok::<_, std::convert::Infallible>(value(&self.entry(slot))));
        slot
    }

    /// Kafka's `lookup`.
    pub(super) fn lookup(&self, target: i64) -> E {
        match self.lower_bound(target, E::key) {
            Some(slot) => self.entry(slot),
            None => E::before_first(self.file.base_offset),
        }
    }

    /// Drops the entries at and above an offset.
    pub(super) fn truncate_to(&mut self, offset: i64) {
        self.file.entries = match self.lower_bound(offset, E::offset) {
            None => 0,
            Some(slot) if self.entry(slot).offset() == offset => slot,
            Some(slot) => slot + 1,
        };
    }

    /// Sets the size of the file, rounded down to whole entries.
    pub(super) fn resize(&mut self, size: u64) -> Step<()> {
        let size = size - size % SIZE as u64;
        if *self.size == size {
            return Ok(());
        }
        *self.size = size;
        self.bytes.truncate(usize::try_from(size).unwrap_or(usize::MAX));
        let used = self.file.entries * SIZE as u64;
        if used > size {
            let reason = format!("{used} bytes of entries, more than segment.index.bytes allows ({size})");
            return Err(Thrown::kafka(ExceptionKind::IllegalArgument, self.name, reason));
        }
        Ok(())
    }

    /// Sets the size of the file to `segment.index.bytes`.
    pub(super) fn resize_to_max(&mut self) -> Step<()> {
        self.resize(self.file.max_size)
    }

    pub(super) fn trim(&mut self) -> Step<()> {
        self.resize(self.file.entries * SIZE as u64)
    }

    pub(super) fn reset(&mut self) -> Step<()> {
        self.file.entries = 0;
        self.resize_to_max()
    }

    fn has_slot(&self, is_closing: bool) -> bool {
        E::has_slot(self.file.entries, E::max_entries(*self.size), is_closing)
    }

    fn full(&self) -> Thrown {
        let reason =
            format!("the index is full: it has {} entries in {} bytes", self.file.entries, self.size);
        Thrown::kafka(ExceptionKind::IllegalArgument, self.name, reason)
    }

    fn write(&mut self, entry: E) -> Step<()> {
        let encoded = entry.encode(self.file.base_offset).map_err(|_| {
            let reason = format!("offset {} is too far from the base offset", entry.offset());
            Thrown::kafka(ExceptionKind::IndexOffsetOverflow, self.name, reason)
        })?;
        let start = usize::try_from(self.file.entries).unwrap_or(usize::MAX).saturating_mul(SIZE);
        let end = start.saturating_add(SIZE);
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        if let Some(slot) = self.bytes.get_mut(start..end) {
            slot.copy_from_slice(&encoded);
        }
        self.file.entries += 1;
        Ok(())
    }
}

impl Mapped<'_, OffsetPosition, OFFSET_ENTRY_BYTES> {
    /// Adds an entry.
    pub(super) fn append(&mut self, entry: OffsetPosition) -> Step<()> {
        if !self.has_slot(false) {
            return Err(self.full());
        }
        let last = self.last().offset;
        if self.file.entries > 0 && entry.offset <= last {
            let reason = not_ascending("offset", entry.offset, last);
            return Err(Thrown::kafka(ExceptionKind::InvalidOffset, self.name, reason));
        }
        self.write(entry)
    }
}

impl Mapped<'_, TimestampOffset, TIME_ENTRY_BYTES> {
    /// Adds an entry if its timestamp is above that of the last one. `is_closing`: the entry may use the last
    /// slot.
    pub(super) fn maybe_append(&mut self, entry: TimestampOffset, is_closing: bool) -> Step<()> {
        if !is_closing && !self.has_slot(false) {
            return Err(self.full());
        }
        let last = self.last();
        if self.file.entries > 0 && entry.offset < last.offset {
            let reason = not_ascending("offset", entry.offset, last.offset);
            return Err(Thrown::kafka(ExceptionKind::InvalidOffset, self.name, reason));
        }
        if self.file.entries > 0 && entry.timestamp < last.timestamp {
            let reason = not_ascending("timestamp", entry.timestamp, last.timestamp);
            return Err(Thrown::kafka(ExceptionKind::IllegalState, self.name, reason));
        }
        if entry.timestamp > last.timestamp { self.write(entry) } else { Ok(()) }
    }
}

fn not_ascending(what: &str, found: i64, last: i64) -> String {
    format!("an entry with {what} {found} after one with {last}")
}

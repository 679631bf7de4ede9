//! An index of sorted entries of one size: the common part of the offset index and the time index.

use std::cell::RefCell;
use std::convert::Infallible;
use std::path::Path;

use super::entry::Entry;
use super::interpolation::interpolate;
use super::lazy_model::{LazyModel, ModelState};
use super::learned::{GROUP, Model, ModelBuilder, Place, last_of_group};
use super::search::{Method, Search, WARM_BYTES, upper_bound};
use super::slots::{PageTrace, Slots, field};
use crate::error::{Malformed, Result};
use crate::fs::{FileBytes, prefetch};

/// A file of sorted entries, as it was when it was opened. The module [`index`](crate::index) defines what
/// entries mean.
///
/// *Concurrency*: `Send + Sync`; readers share it without a lock.
/// *Source*: `AbstractIndex`.
#[derive(Debug)]
pub struct Index<E, const SIZE: usize> {
    pub(super) slots: Slots<SIZE>,
    base_offset: i64,
    pub(super) entries: u64,
    pub(super) last_entry: E,
    model: LazyModel,
}

impl<E: Entry<SIZE>, const SIZE: usize> Index<E, SIZE> {
    /// Opens a file for reading, mapped if `map` is true. `base_offset`: the segment's; if `None`, the digits
    /// at the start of the file's name.
    ///
    /// *Cost*: the last page; with a zero tail, a bisection.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if the name does not start with a number and none is given, or
    /// a negative one is; [`Error::Io`](crate::Error::Io);
    /// [`Error::LogChanged`](crate::Error::LogChanged) if the file is cut during the call.
    pub fn open(path: &Path, base_offset: Option<i64>, map: bool) -> Result<Self> {
        let (bytes, base_offset) = super::open(path, E::KIND, base_offset, map)?;
        Self::from_bytes(bytes, base_offset)
    }

    /// Uses an open file; `base_offset` is the segment's.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn from_bytes(bytes: FileBytes, base_offset: i64) -> Result<Self> {
        let slots = Slots::new(bytes);
        let entries = slots.count_before_zeros()?;
        Self::of(slots, base_offset, entries)
    }

    /// Uses an open file as Kafka does: all its whole slots are entries, also the zeros of a preallocated
    /// file.
    ///
    /// # Errors
    /// As [`Index::from_bytes`].
    #[cfg(feature = "inspect")]
    pub(crate) fn of_all_slots(bytes: FileBytes, base_offset: i64) -> Result<Self> {
        let slots = Slots::new(bytes);
        let entries = slots.whole();
        Self::of(slots, base_offset, entries)
    }

    pub(super) fn of(slots: Slots<SIZE>, base_offset: i64, entries: u64) -> Result<Self> {
        let model = if slots.is_opened() { LazyModel::default() } else { LazyModel::never() };
        let last_entry = E::before_first(base_offset);
        let mut index = Self { slots, base_offset, entries, last_entry, model };
        index.keep(entries)?;
        Ok(index)
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

    /// Bytes of one entry: 8 in an offset index, 12 in a time index.
    pub fn entry_size(&self) -> u64 {
        Slots::<SIZE>::size()
    }

    /// The number of entries, without the zeros of a preallocated file.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The number of whole slots of the file.
    ///
    /// *Source*: `AbstractIndex.maxEntries`.
    pub fn max_entries(&self) -> u64 {
        self.slots.whole()
    }

    /// [`Index::max_entries`] in bytes. An offset index file of 67 bytes has 64, a time index file 60.
    pub fn max_index_size(&self) -> u64 {
        self.max_entries() * self.entry_size()
    }

    /// Whether every slot is used; in a time index, every slot but one, which Kafka reserves for the entry
    /// that it writes when it closes a segment. The offset index of a closed segment is cut to its
    /// entries, so it is full.
    ///
    /// *Source*: `AbstractIndex.isFull`, `TimeIndex.isFull`.
    pub fn is_full(&self) -> bool {
        !E::has_slot(self.entries, self.max_entries(), false)
    }

    /// The last entry, with an absolute offset. If there is none, `(base_offset, 0)` in an offset index,
    /// `(−1, base_offset)` in a time index.
    ///
    /// *Source*: `OffsetIndex.lastEntry`, `TimeIndex.lastEntry`.
    pub fn last_entry(&self) -> E {
        self.last_entry
    }

    /// The entry in slot `n`, counted from 0, with an absolute offset.
    ///
    /// *Source*: `OffsetIndex.entry`, `TimeIndex.entry`.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) if `n` is not below [`Index::entries`];
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn entry(&self, n: u64) -> Result<E> {
        if n >= self.entries {
            return Err(super::no_such_entry(n, self.entries));
        }
        self.decoded(n)
    }

    /// All entries, in file order. An entry that cannot be read is returned as an error.
    pub fn iter(&self) -> impl Iterator<Item = Result<E>> + '_ {
        (0..self.entries).map(|n| self.entry(n))
    }

    /// Calls `visit` with all entries, in file order, until it returns false. Unlike [`Index::iter`], it
    /// keeps nothing of a file that is not mapped in memory.
    pub(crate) fn visit(&self, mut visit: impl FnMut(E) -> Result<bool>) -> Result<()> {
        self.slots.visit(self.entries, |slot| visit(E::decode(slot, self.base_offset)))
    }

    /// Does Kafka's checks: the last offset is not below the base offset, and the file is a whole number of
    /// entries; in a time index also, the last timestamp is not below the first. No entry is compared
    /// with the log.
    ///
    /// *Source*: `OffsetIndex.sanityCheck`, `TimeIndex.sanityCheck`.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a check fails; [`Error::Io`](crate::Error::Io),
    /// [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn sanity_check(&self) -> Result<()> {
        if let Some(last_slot) = self.entries.checked_sub(1) {
            let (last, offset) = (self.last_entry, self.last_entry.offset());
            let position = last_slot * self.entry_size();
            let corrupt = |malformed: Malformed| malformed.at(self.path(), position, Some(offset));
            last.check_last(&self.entry(0)?).map_err(corrupt)?;
            if offset < self.base_offset {
                let expected = format!("a last offset at or above the base offset {}", self.base_offset);
                return Err(corrupt(Malformed::new(expected, format!("offset {offset}"))));
            }
        }
        self.slots.check_length()
    }

    /// The last entry whose key is at or below `target`. If there is none, `(base_offset, 0)` in an offset
    /// index, `(−1, base_offset)` in a time index. Every target is allowed: below the base offset, above
    /// every entry.
    ///
    /// In an offset index the key is the offset: a scan from the entry's position reads every record at or
    /// above `target`. In a time index it is the timestamp (ms): the segment's first record at or after
    /// `target` is in the batch that contains the entry's offset, or after it.
    ///
    /// If the keys do not increase, the result is an arbitrary entry, which depends on the method, and with
    /// [`Method::Learned`] on whether all keys have been read.
    ///
    /// *Cost*: with [`Method::Learned`] one page; two for an entry of a time index or one of the last eight
    /// entries; none for a target at or above the last key. The first look-ups read more, and one of them
    /// reads all keys, of which every eighth stays in memory: about 7 % of the file's size, in a time
    /// index up to 10 %. With the other methods about log₂ of the entries' keys. No lock, and no system
    /// call for a page in memory. *Source*: `OffsetIndex.lookup`, `TimeIndex.lookup`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    #[inline]
    pub fn lookup(&self, target: i64, method: Method) -> Result<E> {
        if method == Method::Learned
            && let ModelState::Built(model) = self.model.get()
            && let Some(slots) = self.slots.mapped()
        {
            // offset indexes only: in eight bytes no other entry fits
            if SIZE == 8
                && let Some(slot) =
                    model.last_slot(slots.as_flattened().as_chunks().0, self.base_offset, target)
            {
                return Ok(E::decode(&field(slot, 0), self.base_offset));
            }
            return Ok(self.lookup_mapped(model, slots, target));
        }
        self.lookup_otherwise(target, method)
    }

    #[inline(never)]
    fn lookup_otherwise(&self, target: i64, method: Method) -> Result<E> {
        match self.lower_slot(target, method)? {
            Some(slot) if slot + 1 == self.entries => Ok(self.last_entry),
            Some(slot) => self.decoded(slot),
            None => Ok(E::before_first(self.base_offset)),
        }
    }

    /// Two slots, −1 for none: the last whose key is at or below `target`, and the first whose key is at or
    /// above it. As in Kafka, if `target` equals the key of slot 0, the second is slot 1.
    ///
    /// *Source*: `AbstractIndex.largestLowerBoundSlotFor`, `smallestUpperBoundSlotFor`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn slot_range(&self, target: i64, method: Method) -> Result<(i64, i64)> {
        // a slot is below the file's size, which is an i64 to the system
        let number = |slot: Option<u64>| slot.and_then(|slot| i64::try_from(slot).ok()).unwrap_or(-1);
        let lower = self.lower_slot(target, method)?;
        let upper = upper_bound(self.entries, lower, target, |slot| self.key(slot))?;
        Ok((number(lower), number(upper)))
    }

    /// The numbers of the pages of the file (4,096 bytes each) that [`Index::lookup`] reads now, each once,
    /// in the order of the first read. An entry of a time index can be on two pages. The last entry is in
    /// memory.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), [`Error::LogChanged`](crate::Error::LogChanged).
    pub fn trace(&self, target: i64, method: Method) -> Result<Vec<u64>> {
        let trace = RefCell::new(PageTrace::default());
        let slot = self.find(target, method, |slot| {
            trace.borrow_mut().add(slot * self.entry_size(), E::KEY_BYTES);
            self.key(slot)
        })?;
        let mut trace = trace.into_inner();
        if let Some(slot) = slot.filter(|slot| slot + 1 < self.entries) {
            trace.add(slot * self.entry_size(), self.entry_size());
        }
        Ok(trace.into_pages())
    }

    /// [`Index::lookup`] in a mapped file: the eight slots are one slice, whose bounds are checked once.
    #[inline(never)]
    fn lookup_mapped(&self, model: &Model, slots: &[[u8; SIZE]], target: i64) -> E {
        let load = |group: usize| {
            let rest = slots.get(group.wrapping_mul(GROUP)..).unwrap_or_default();
            if let Some(two_groups) = rest.first_chunk::<{ 2 * GROUP }>() {
                prefetch(two_groups.as_flattened());
            }
        };
        let group = match model.place(target, load) {
            Place::Before => return E::before_first(self.base_offset),
            Place::Last => return self.last_entry,
            Place::Group(start) => usize::try_from(start).ok().and_then(|start| slots.get(start..)),
        };
        // a mapping is as long as the file was when it was opened, so there is always a group
        let Some(group) = group.and_then(|slots| slots.first_chunk::<GROUP>()) else {
            return self.last_entry;
        };
        let slot = |slot: usize| group.get(slot % GROUP).unwrap_or(&[0; SIZE]);
        let Ok(last) = last_of_group(target, |number| Ok::<_, Infallible>(self.key_of(slot(number))));
        E::decode(slot(last), self.base_offset)
    }

    /// The largest slot whose key is at or below `target`; `None` if there is none.
    #[inline]
    pub(crate) fn lower_slot(&self, target: i64, method: Method) -> Result<Option<u64>> {
        if method == Method::Learned && self.model.is_unread() {
            if let Some(last) = self.last_slot_for(target) {
                return Ok(Some(last));
            }
            self.model.count(self.entries, || self.read_model());
        }
        match self.slots.mapped() {
            Some(slots) => {
                let Ok(slot) =
                    self.find(target, method, |slot| Ok::<_, Infallible>(self.key_in(slots, slot)));
                Ok(slot)
            }
            None => self.find(target, method, |slot| self.key(slot)),
        }
    }

    #[inline]
    fn find<F>(
        &self,
        target: i64,
        method: Method,
        key: impl Fn(u64) -> Result<i64, F>,
    ) -> Result<Option<u64>, F> {
        match (method, self.model.get()) {
            (Method::Learned, ModelState::Built(model)) => model.lower_bound(target, key),
            (Method::Learned, ModelState::Unread) if self.entries > 0 => match self.last_slot_for(target) {
                None => interpolate(
                    self.entries,
                    self.last_entry.key(),
                    E::key_before_first(self.base_offset),
                    target,
                    key,
                ),
                last => Ok(last),
            },
            (Method::Learned, _) => self.search(Method::Warm).lower_bound(target, key),
            _ => self.search(method).lower_bound(target, key),
        }
    }

    /// The last slot, if the target is at or above its key, which is in memory.
    #[inline]
    fn last_slot_for(&self, target: i64) -> Option<u64> {
        self.entries.checked_sub(1).filter(|_| target >= self.last_entry.key())
    }

    #[cold]
    fn read_model(&self) -> Result<Option<Model>> {
        let Some(mut builder) = ModelBuilder::new(self.entries) else { return Ok(None) };
        self.slots.visit(self.entries, |slot| Ok(builder.push(self.key_of(slot))))?;
        Ok(builder.finish())
    }

    /// Reduces the index to its first `entries` slots. If the file is being written, its next write
    /// overwrites the slots after them with zeros.
    pub(super) fn keep(&mut self, entries: u64) -> Result<()> {
        let last_entry = match entries.checked_sub(1) {
            None => E::before_first(self.base_offset),
            Some(last) => self.decoded(last)?,
        };
        if let Some(slots) = self.slots.preallocated_mut() {
            slots.truncate(entries);
        }
        (self.entries, self.last_entry) = (entries, last_entry);
        Ok(())
    }

    /// The first slot whose offset is at or above `offset`; offsets do not decrease from slot to slot.
    pub(super) fn first_at_or_above(&self, offset: i64) -> Result<u64> {
        let offset_of = |slot| Ok(self.decoded(slot)?.offset());
        let found = self.search(Method::Warm).lower_bound(offset, offset_of)?;
        let Some(mut slot) = found else { return Ok(0) };
        if offset_of(slot)? != offset {
            return Ok(slot + 1);
        }
        // several timestamps can have one offset, and the search may end at any of them
        while let Some(before) = slot.checked_sub(1)
            && offset_of(before)? == offset
        {
            slot = before;
        }
        Ok(slot)
    }

    pub(super) fn search(&self, method: Method) -> Search {
        let warm_slots = (method == Method::Warm).then_some(WARM_BYTES / self.entry_size());
        Search { entries: self.entries, warm_slots }
    }

    #[inline]
    pub(super) fn decoded(&self, slot: u64) -> Result<E> {
        if let Some(slots) = self.slots.mapped()
            && let Some(bytes) = usize::try_from(slot).ok().and_then(|slot| slots.get(slot))
        {
            return Ok(E::decode(bytes, self.base_offset));
        }
        Ok(E::decode(&self.slots.slot(slot)?, self.base_offset))
    }

    /// The key of a slot of a mapped file. Slots of entries are below the file's length when it was opened,
    /// so the default is never used.
    #[inline]
    fn key_in(&self, slots: &[[u8; SIZE]], slot: u64) -> i64 {
        let bytes = usize::try_from(slot).ok().and_then(|slot| slots.get(slot));
        bytes.map_or(i64::MAX, |bytes| self.key_of(bytes))
    }

    #[inline]
    fn key_of(&self, slot: &[u8]) -> i64 {
        let stored = if E::KEY_BYTES == 4 {
            i64::from(i32::from_be_bytes(field(slot, 0)))
        } else {
            i64::from_be_bytes(field(slot, 0))
        };
        E::absolute_key(stored, self.base_offset)
    }

    /// Reads only the key, because the bytes after it may be on another page.
    fn key(&self, slot: u64) -> Result<i64> {
        if E::KEY_BYTES == 4 {
            Ok(self.key_of(&self.slots.start::<4>(slot)?))
        } else {
            Ok(self.key_of(&self.slots.start::<8>(slot)?))
        }
    }
}

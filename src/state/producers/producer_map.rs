//! Producers by id, in the order in which a `java.util.HashMap<Long, …>` iterates over them: that of the
//! entries in Kafka's snapshots.
//!
//! The keys of the bins in turn. A key's bin is its hash modulo the number of bins, which doubles when three
//! quarters as many keys are in the map, and never shrinks. A bin has its keys in the order of insertion,
//! also after the number of bins has doubled. From nine keys on it is a tree (`tree_bin`), which orders them
//! differently; but a map with fewer than 64 bins doubles them instead. A key that `computeIfAbsent` adds is
//! the first of its bin, which is a tree from eight keys on.
//!
//! ```text
//!   bins      the first slot of each bin's list, or TREE
//!   next      for each slot, the next one in the list of its bin
//!   entries   for each slot, its producer, in the order of insertion
//!   trees     the bins that are trees, by their number
//! ```

use std::collections::HashMap;
use std::iter::successors;

use super::ProducerEntry;
use super::tree_bin::TreeBin;

/// The number of bins with the first key.
const INITIAL_BINS: usize = 16;
/// Bins of fewer maps are not made trees.
const MIN_BINS_WITH_TREES: usize = 64;
/// The largest number of keys in a bin that is not a tree.
const MAX_LIST: usize = 8;
/// The largest part of a tree bin that becomes a list when the bin is split, also if it is the whole bin.
const MAX_LIST_AFTER_SPLIT: usize = 6;
/// The largest number of bins.
const MAX_BINS: usize = 1 << 30;

/// No slot: an empty bin, and the end of a list.
const NONE: usize = usize::MAX;
/// In place of a bin's first slot: the bin is a tree.
const TREE: usize = usize::MAX - 1;

/// The map.
///
/// *Source*: `ProducerStateManager.producers`; `java.util.HashMap` of JDK 17 to 25.
#[derive(Debug, Clone, Default)]
pub(super) struct ProducerMap {
    /// A power of two of them; none before the first key.
    bins: Vec<usize>,
    next: Vec<usize>,
    entries: Vec<ProducerEntry>,
    trees: HashMap<usize, TreeBin>,
}

/// Where a key is put in the list of its bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Last,
}

/// The hash of a `Long`, as the map spreads it.
pub(super) fn hash(key: i64) -> u32 {
    let [high, low] = [key >> 32, key].map(|half| u32::try_from(half & 0xffff_ffff).unwrap_or(0));
    let hash = high ^ low;
    hash ^ (hash >> 16)
}

impl ProducerMap {
    /// A map without producers, with as many bins.
    pub(super) fn emptied(&self) -> Self {
        Self { bins: vec![NONE; self.bins.len()], ..Self::default() }
    }

    /// Removes all producers. *Source*: `HashMap.clear`, which keeps the bins.
    pub(super) fn clear(&mut self) {
        self.bins.fill(NONE);
        self.next.clear();
        self.entries.clear();
        self.trees.clear();
    }

    /// Reserves memory for so many more producers.
    pub(super) fn reserve(&mut self, count: usize) {
        self.next.reserve(count);
        self.entries.reserve(count);
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, producer_id: i64) -> Option<&ProducerEntry> {
        self.entries.get(self.find(producer_id)?)
    }

    pub(super) fn get_mut(&mut self, producer_id: i64) -> Option<&mut ProducerEntry> {
        let slot = self.find(producer_id)?;
        self.entries.get_mut(slot)
    }

    /// The producers in the order of their insertion, which is faster than in the map's.
    pub(super) fn values(&self) -> impl Iterator<Item = &ProducerEntry> {
        self.entries.iter()
    }

    /// The producers in the map's order.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &ProducerEntry> {
        let mut found = Vec::with_capacity(self.len());
        found.extend(self.slots().filter_map(|slot| self.entries.get(slot)));
        found.into_iter()
    }

    /// Removes the producers, in the map's order.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = ProducerEntry> {
        let slots: Vec<_> = self.slots().collect();
        let mut entries: Vec<_> = self.entries.drain(..).map(Some).collect();
        self.clear();
        slots.into_iter().filter_map(move |slot| entries.get_mut(slot).and_then(Option::take))
    }

    /// Adds a producer, or replaces the one with its id. *Source*: `HashMap.put`.
    pub(super) fn insert(&mut self, entry: ProducerEntry) {
        if let Some(known) = self.get_mut(entry.producer_id) {
            *known = entry;
            return;
        }
        if self.bins.is_empty() {
            self.bins.resize(INITIAL_BINS, NONE);
        }
        self.add(entry, Place::Last, MAX_LIST);
        if self.is_full() {
            self.double();
        }
    }

    /// Adds a producer if the map does not contain its id, at the start of its bin. The number of bins
    /// doubles with the next call, whatever its id. *Source*: `HashMap.computeIfAbsent`.
    pub(super) fn insert_if_absent(&mut self, producer_id: i64, new: impl FnOnce() -> ProducerEntry) {
        if self.bins.is_empty() {
            self.bins.resize(INITIAL_BINS, NONE);
        } else if self.is_full() {
            self.double();
        }
        if self.find(producer_id).is_none() {
            self.add(new(), Place::First, MAX_LIST - 1);
        }
    }

    /// Removes producers, as the iterator of the map's entries removes them.
    pub(super) fn retain(&mut self, is_wanted: impl Fn(&ProducerEntry) -> bool) {
        let mut count = 0;
        let mut moved = Vec::with_capacity(self.len());
        moved.extend(self.entries.iter().map(|entry| {
            let is_wanted = is_wanted(entry);
            count += usize::from(is_wanted);
            if is_wanted { count - 1 } else { NONE }
        }));
        if count == self.len() {
            return;
        }
        let moved = |slot: usize| moved.get(slot).copied().unwrap_or(NONE);
        let before = std::mem::replace(&mut self.next, vec![NONE; count]);
        for number in 0..self.bins.len() {
            let first = self.first_of(number);
            if first == TREE {
                if let Some(tree) = self.trees.get_mut(&number) {
                    tree.retain(moved);
                }
                if self.trees.get(&number).is_some_and(|tree| tree.len() == 0) {
                    self.trees.remove(&number);
                    self.set_first(number, NONE);
                }
            } else {
                let list = chain(&before, first).map(moved).filter(|slot| *slot != NONE);
                self.set_list(number, list);
            }
        }
        let mut slot = 0;
        self.entries.retain(|_| {
            slot += 1;
            moved(slot - 1) != NONE
        });
    }

    fn find(&self, producer_id: i64) -> Option<usize> {
        let number = self.bin_of(producer_id);
        match *self.bins.get(number)? {
            TREE => self.trees.get(&number)?.find(producer_id),
            first => chain(&self.next, first).find(|slot| self.id(*slot) == producer_id),
        }
    }

    /// The slots in the map's order.
    fn slots(&self) -> impl Iterator<Item = usize> {
        self.bins.iter().enumerate().flat_map(|(number, first)| {
            let tree = if *first == TREE { self.trees.get(&number) } else { None };
            chain(&self.next, *first).chain(tree.into_iter().flat_map(TreeBin::slots))
        })
    }

    fn id(&self, slot: usize) -> i64 {
        self.entries.get(slot).map_or(-1, |entry| entry.producer_id)
    }

    fn bin_of(&self, producer_id: i64) -> usize {
        usize::try_from(hash(producer_id)).unwrap_or(0) & self.bins.len().wrapping_sub(1)
    }

    fn is_full(&self) -> bool {
        self.len() > self.bins.len() / 4 * 3
    }

    fn first_of(&self, number: usize) -> usize {
        self.bins.get(number).copied().unwrap_or(NONE)
    }

    fn set_first(&mut self, number: usize, first: usize) {
        self.bins.get_mut(number).into_iter().for_each(|bin| *bin = first);
    }

    fn set_next(&mut self, slot: usize, next: usize) {
        self.next.get_mut(slot).into_iter().for_each(|after| *after = next);
    }

    /// Makes a bin a list of these slots.
    fn set_list(&mut self, number: usize, slots: impl IntoIterator<Item = usize>) {
        let mut last = NONE;
        for slot in slots {
            if last == NONE {
                self.set_first(number, slot);
            } else {
                self.set_next(last, slot);
            }
            last = slot;
        }
        if last == NONE {
            self.set_first(number, NONE);
        } else {
            self.set_next(last, NONE);
        }
    }

    /// Makes a bin a tree of these slots, which are in the order of its list.
    fn set_tree(&mut self, number: usize, slots: &[usize]) {
        let keys: Vec<_> = slots.iter().map(|slot| (self.id(*slot), *slot)).collect();
        self.trees.insert(number, TreeBin::new(&keys));
        self.set_first(number, TREE);
    }

    /// Adds a producer that the map does not contain. `max_list`: the largest number of keys in the bin that
    /// does not make it a tree.
    fn add(&mut self, entry: ProducerEntry, place: Place, max_list: usize) {
        let (producer_id, slot) = (entry.producer_id, self.len());
        self.entries.push(entry);
        self.next.push(NONE);
        let number = self.bin_of(producer_id);
        let first = self.first_of(number);
        if first == TREE {
            self.trees.entry(number).and_modify(|tree| tree.insert(producer_id, slot));
            return;
        }
        let (mut len, mut last) = (1, NONE);
        for slot in chain(&self.next, first) {
            (len, last) = (len + 1, slot);
        }
        if place == Place::First || last == NONE {
            self.set_next(slot, first);
            self.set_first(number, slot);
        } else {
            self.set_next(last, slot);
        }
        if len <= max_list {
            return;
        }
        if self.bins.len() < MIN_BINS_WITH_TREES {
            self.double();
        } else {
            let slots: Vec<_> = chain(&self.next, self.first_of(number)).collect();
            self.set_tree(number, &slots);
        }
    }

    /// Doubles the number of bins. The keys of a bin stay in their order.
    fn double(&mut self) {
        let count = self.bins.len();
        if count >= MAX_BINS {
            return;
        }
        self.bins.resize(2 * count, NONE);
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for number in 0..count {
            let first = self.first_of(number);
            if first == NONE {
                continue;
            }
            if self.next.get(first) == Some(&NONE) {
                // most bins have one key
                self.set_first(number, NONE);
                self.set_first(self.bin_of(self.id(first)), first);
                continue;
            }
            let mut tree = self.trees.remove(&number);
            let was_tree = tree.is_some();
            for slot in chain(&self.next, first).chain(tree.iter().flat_map(TreeBin::slots)) {
                let is_low = self.bin_of(self.id(slot)) == number;
                if is_low { &mut low } else { &mut high }.push(slot);
            }
            for (number, other, part) in [(number, &high, &low), (number + count, &low, &high)] {
                if !was_tree || part.len() <= MAX_LIST_AFTER_SPLIT {
                    self.set_list(number, part.iter().copied());
                } else if let Some(tree) = tree.take_if(|_| other.is_empty()) {
                    // its keys stay together
                    self.trees.insert(number, tree);
                    self.set_first(number, TREE);
                } else {
                    self.set_tree(number, part);
                }
            }
            low.clear();
            high.clear();
        }
    }
}

/// The slots of a list; none of a tree.
fn chain(next: &[usize], first: usize) -> impl Iterator<Item = usize> {
    let is_slot = |slot: &usize| *slot < TREE;
    successors(Some(first).filter(is_slot), move |slot| next.get(*slot).copied().filter(is_slot))
}

//! The segments of a log by base offset: a skip list of fat nodes, with one writer and lock-free readers.
//!
//! # Why
//!
//! Every look-up of an offset begins with the floor of that offset among the segments' base offsets. Kafka
//! keeps them in a `ConcurrentSkipListMap` with one key per node: each step down or along is an unpredictable
//! branch and a cache miss. Here a node has a row of 64 keys, the lanes above it have rows of 64 keys too,
//! and one search of constant length is used for both. Writes are rare (a roll, a retention run) and reads
//! are frequent. So the writer copies where necessary, and readers do not lock, do not change a shared
//! counter, and do not wait.
//!
//! # Layout
//!
//! Three nodes; the second was cut by a compaction, the third is being filled (`·` unwritten, a key of
//! `i64::MAX`):
//!
//! ```text
//!  generation   tail = 2 × 64 + 3: three nodes, three keys in the last    ← the only word that publishes a push
//!
//!    lane2      none here; from 65 nodes on the first key of each row of lane1
//!    lane1      [     0   6400   9000      ·      ·  …  · ]      the first key of each node, in whole rows of 64
//!    table      [  0, ●  64, ●  91, ●      ·      ·  …  · ]      entries before the node, and the node, written once
//!                     │      │      └───────────────────────────────────┐
//!                     │      └───────────────┐                          │
//!    node    keys  [ 0  100  200 … 6300 ]  [ 6400 … 8900  · … · ]  [ 9000 9100 9200  · … · ]
//!            slots [ V    V    V …    V ]  [    V …    V  · … · ]  [    V    V    V  · … · ]   each written once
//! ```
//!
//! An entry's *address* is node × 64 + index in the node. The tail is one past the address of the last entry,
//! so one atomic word contains the number of nodes and the number of keys in the last one. In the other nodes
//! an unwritten key marks the end. Because rows are padded to 64 keys, a search always takes the same six
//! halvings and needs no length: a concurrent push adds a key above the active base offset, and only targets
//! below that are searched. A target at or above it, the most frequent case, is found in the reader's copy of
//! the active entry.
//!
//! # Publication
//!
//! *A generation only grows at its end.* A push writes, in this order: slot and key in the last node (or a
//! new node with both, then its place in the table and its key in the lanes), and then the tail, with
//! Release. A reader loads the tail with Acquire and relies on nothing above it. So all other stores may be
//! relaxed, and no reader sees a half-written entry. If the tail were stored first, or relaxed, a reader
//! could find a key without its value, or a lane without the key.
//!
//! *Every other change is a new generation and one atomic swap*: retention at the head, truncation at the
//! tail, compaction in the middle, a full table. The new generation shares every node that is not cut. The
//! nodes that are cut are copied, because readers of the old generation still use them. A full table doubles
//! by the same swap, with no node cut.
//!
//! *A push into a shared node is allowed only if that node was the last one before.* If a truncation drops
//! the nodes after a node with free slots, those slots stay empty (the list is *closed*) and the next push
//! begins a new node. Keys in the free slots would be above the old generation's keys of that node but below
//! those of its later nodes, and a view of the old generation would find them.
//!
//! Nothing is freed explicitly: a generation is freed with its last view, reader or writer, and a node with
//! its last generation. This and write-once slots make `unsafe` unnecessary.
//!
//! # Cost
//!
//! A floor is one compare at the active segment; else it halves one row (one node), two (up to 64 nodes,
//! 4,096 segments) or three. A push writes two words and publishes one; every 64th push begins a node. A
//! change copies the pointers of the shared nodes: microseconds for thousands of segments. An entry takes
//! about 25 bytes with a pointer as value. `benches/segments.rs` measures look-ups against a sorted array and
//! a locked map.
//!
//! # Alternatives that were measured and rejected
//!
//! * One key per node: the floor takes 3–13 times as long.
//! * Nodes of 16 and 32 keys: slower from some thousand segments on, and changes cost more. Nodes of 128
//!   keys: no gain.
//! * Counting the keys of a row, or searching a window of it around a guess: 1.5–3 times as slow as halving
//!   it.
//! * Quartering it (three independent comparisons per step): a look-up that the caller waits for gains a
//!   quarter, one that overlaps with others loses a third. This would be the better choice if look-ups among
//!   100,000 segments, where it saves cache misses, mattered most.
//! * A sorted array copied at each roll: a little faster to search, but a roll copies all of it.
//! * A chain of generations by write-once links: an idle reader would keep all later ones alive.
//! * Interpolation in `lane1`: a gain only far beyond 64 nodes, mostly with evenly spread keys. To be added
//!   if a bench needs it.
//! * A third lane: `lane2` has a second row only from 262,144 segments on, and then its rows are binary
//!   searched.
//!
//! # Checks
//!
//! `tests` compares the list with a sorted `Vec`; `models` explores every interleaving under loom. `make
//! loom` runs the models twice: as they are, and with the tail stored relaxed, which they must detect.

mod generation;
mod key_row;
#[cfg(test)]
#[cfg(loom)]
mod models;
mod node;
mod reader;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
mod view;

use std::ops::Range;

use self::generation::Generation;
use self::key_row::UNWRITTEN;
use self::node::Node;
pub use self::reader::Reader;
pub use self::view::{Iter, View};
use crate::loom_shim::{Arc, KEYS, Swap};

/// A key that would break the order of the list. Nothing is changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("base offset {key} is out of order: allowed here is {} (inclusive) to {} (exclusive)", allowed.start, allowed.end)]
pub struct OutOfOrder {
    /// The key that was refused.
    pub key: i64,
    /// The keys allowed in its place, half-open: from one above the previous key.
    pub allowed: Range<i64>,
}

/// The writer of the list. It creates the readers: [`SkipList::reader`] follows changes, [`SkipList::view`]
/// does not.
///
/// Keys are any `i64` but `i64::MAX`. Values are cloned when a node is cut, so they should be as cheap to
/// clone as an `Arc`.
pub struct SkipList<V, const N: usize = KEYS> {
    /// The pointer by which readers find the current generation.
    shared: Swap<Generation<V, N>>,
    /// The same generation, without a load of the pointer.
    current: Arc<Generation<V, N>>,
    /// Its published tail.
    tail: usize,
    /// The greatest key.
    last: Option<i64>,
    /// The last node accepts no more keys, though it may have free slots: see *Publication* above.
    is_closed: bool,
}

impl<V: Clone> SkipList<V> {
    /// An empty list.
    pub fn new() -> Self {
        Self::with_room(1)
    }

    /// A list of these entries, in ascending order of their keys.
    ///
    /// # Errors
    /// [`OutOfOrder`] names the first key that is not above the one before it.
    pub fn from_sorted(entries: impl IntoIterator<Item = (i64, V)>) -> Result<Self, OutOfOrder> {
        let mut list = Self::with_room(1);
        list.change(i64::MIN..i64::MAX, entries)?;
        Ok(list)
    }
}

impl<V: Clone> Default for SkipList<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Clone, const N: usize> SkipList<V, N> {
    /// An empty list whose table doubles after `room` nodes.
    ///
    /// For any size of node, so that tests reach every boundary with few keys.
    fn with_room(room: usize) -> Self {
        let current = Arc::new(Generation::with_room(room));
        Self { shared: Swap::new(Arc::clone(&current)), current, tail: 0, last: None, is_closed: false }
    }

    /// Adds an entry at the end: a roll.
    ///
    /// *Cost*: a few stores, and a new node every 64th time; if the table is full, also a copy of its node
    /// pointers. *Concurrency*: readers see the whole entry or none of it.
    ///
    /// # Errors
    /// [`OutOfOrder`] if `key` is not above the last key.
    pub fn push(&mut self, key: i64, value: V) -> Result<(), OutOfOrder> {
        // every key is below MAX, so there is one above it
        in_order(key, self.last.map_or(i64::MIN, |last| last + 1)..UNWRITTEN)?;
        if self.is_closed || self.tail.is_multiple_of(N) {
            self.push_node(Node::from_iter([(key, value)]));
        } else if let Some(node) = self.current.node(self.tail / N) {
            node.write(self.tail % N, key, value);
            self.tail += 1;
        }
        self.last = Some(key);
        self.current.publish(self.tail);
        Ok(())
    }

    /// Adds a node of one entry, doubling a full table first.
    fn push_node(&mut self, node: Node<V, N>) {
        let nodes = self.tail.div_ceil(N);
        if nodes == self.current.room() {
            let shared = self.current.nodes().map(Arc::clone);
            self.swap(Generation::of(nodes * 2, shared));
        }
        let before = self.current.len(self.tail);
        self.current.place(nodes, before, Arc::new(node));
        self.tail = nodes * N + 1;
        self.is_closed = false;
    }

    /// Replaces all entries with keys in `range` by `with`, in one swap.
    ///
    /// An empty `with` is retention (up to the first base offset that is kept) or truncation (from a base
    /// offset on); fewer segments are a compaction, others a refresh. The keys of `with` ascend and are
    /// in `range`. If `range` has no entries and `with` is empty, there is no swap.
    ///
    /// *Cost*: a copy of the entries in the nodes that are cut, and of the pointers to all others.
    /// *Concurrency*: readers see all of the change or nothing; earlier views do not change.
    ///
    /// # Errors
    /// [`OutOfOrder`] names the first key of `with` that is outside `range` or not above the one before it.
    pub fn change(
        &mut self,
        range: Range<i64>,
        with: impl IntoIterator<Item = (i64, V)>,
    ) -> Result<(), OutOfOrder> {
        // a range that ends below its start counts as an empty one at its start
        let range = range.start..range.end.max(range.start);
        let with = sorted(range.clone(), with)?;

        let nodes: Vec<_> = self.current.nodes().collect();
        let (below, rest) = split(&nodes, |node| node.last_key() < range.start);
        let (cut, above) = split(rest, |node| node.first_key() < range.end);
        let cut_entries = || cut.iter().flat_map(|node| node.entries());
        if with.is_empty() && !cut_entries().any(|(key, _)| range.contains(&key)) {
            return Ok(());
        }

        let mut run: Vec<_> = cut_entries().take_while(|(key, _)| *key < range.start).collect();
        run.extend(with.iter().map(|(key, value)| (*key, value)));
        run.extend(cut_entries().skip_while(|(key, _)| *key < range.end));
        // joined if both fit into one node, so that a compaction through a whole log leaves full nodes
        let below = match below.split_last() {
            Some((last, others)) if !run.is_empty() && last.len() + run.len() <= N => {
                run.splice(0..0, last.entries());
                others
            }
            _ => below,
        };
        // a kept node that becomes the last one is closed; one that was the last keeps its state
        let is_closed = if above.is_empty() { run.is_empty() } else { self.is_closed };

        let rebuilt = run.chunks(N).map(|entries| {
            Arc::new(entries.iter().map(|&(key, value)| (key, value.clone())).collect::<Node<V, N>>())
        });
        let count = below.len() + rebuilt.len() + above.len();
        let shared = |nodes: &[&Arc<Node<V, N>>]| nodes.iter().copied().map(Arc::clone).collect::<Vec<_>>();
        let generation = Generation::of(
            count + count / 4 + 1,
            shared(below).into_iter().chain(rebuilt).chain(shared(above)),
        );
        self.is_closed = is_closed;
        self.swap(generation);
        self.last = self.tail.checked_sub(1).map(|active| self.current.key(active));
        Ok(())
    }

    /// Publishes `generation` to the readers.
    fn swap(&mut self, generation: Generation<V, N>) {
        self.tail = generation.tail();
        self.current = Arc::new(generation);
        self.shared.store(Arc::clone(&self.current));
    }

    /// A reader that follows this writer; one per thread.
    pub fn reader(&self) -> Reader<V, N> {
        Reader::new(self.shared.cached())
    }

    /// The list as it is now. The view does not change.
    pub fn view(&self) -> View<V, N> {
        View::new(Arc::clone(&self.current), self.tail)
    }
}

/// Fails for a key that is not in `allowed`.
fn in_order(key: i64, allowed: Range<i64>) -> Result<(), OutOfOrder> {
    if allowed.contains(&key) { Ok(()) } else { Err(OutOfOrder { key, allowed }) }
}

/// The entries, after a check of all their keys.
fn sorted<V>(
    range: Range<i64>,
    entries: impl IntoIterator<Item = (i64, V)>,
) -> Result<Vec<(i64, V)>, OutOfOrder> {
    let mut allowed = range;
    let mut checked = Vec::new();
    for (key, value) in entries {
        in_order(key, allowed.clone())?;
        allowed.start = key + 1;
        checked.push((key, value));
    }
    Ok(checked)
}

/// `all`, split before the first item that is not `below`.
fn split<T>(all: &[T], below: impl FnMut(&T) -> bool) -> (&[T], &[T]) {
    all.split_at(all.partition_point(below))
}

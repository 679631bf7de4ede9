//! A generation: nodes in order, the lanes above them, and the tail, which publishes them.

use super::key_row::{KeyRow, UNWRITTEN};
use super::node::Node;
use crate::loom_shim::{Arc, AtomicUsize, OnceLock, Ordering, PUBLISH};

/// A table of nodes that only grows at its end.
///
/// An *address* is node × `N` + index in the node. The *tail* is one past the address of the last entry, 0 if
/// there is none: it contains the number of nodes and the number of keys in the last one, in one word.
/// Everything below a tail that was loaded with Acquire is complete and never changes.
pub(super) struct Generation<V, const N: usize> {
    tail: AtomicUsize,
    /// The first key of each node, in rows.
    lane1: Box<[KeyRow<N>]>,
    /// The first key of each row of `lane1`, in rows; none if `lane1` is a single row.
    lane2: Box<[KeyRow<N>]>,
    table: Box<[OnceLock<Placed<V, N>>]>,
}

/// A node in the table.
struct Placed<V, const N: usize> {
    /// The number of entries in the nodes before it. It is final, because only the last node of a table
    /// grows.
    before: usize,
    node: Arc<Node<V, N>>,
}

impl<V, const N: usize> Generation<V, N> {
    /// An empty generation with space for `room` nodes.
    pub(super) fn with_room(room: usize) -> Self {
        let rows = |keys: usize| (0..keys.div_ceil(N)).map(|_| KeyRow::new()).collect::<Box<[_]>>();
        let lane1 = rows(room);
        let lane2 = if lane1.len() > 1 { rows(lane1.len()) } else { Box::default() };
        Self { tail: AtomicUsize::new(0), lane1, lane2, table: (0..room).map(|_| OnceLock::new()).collect() }
    }

    /// A generation of these nodes, none of them empty, with space for `room`.
    pub(super) fn of(room: usize, nodes: impl Iterator<Item = Arc<Node<V, N>>>) -> Self {
        let generation = Self::with_room(room);
        let (mut before, mut tail) = (0, 0);
        for (index, node) in nodes.enumerate() {
            let len = node.len();
            generation.place(index, before, node);
            before += len;
            tail = index * N + len;
        }
        generation.publish(tail);
        generation
    }

    /// The capacity of the table, nodes.
    pub(super) fn room(&self) -> usize {
        self.table.len()
    }

    /// Adds a node with its first entry at the end of the table, without publishing it.
    pub(super) fn place(&self, index: usize, before: usize, node: Arc<Node<V, N>>) {
        let first = node.keys.key(0);
        let is_fresh = self.table.get(index).is_some_and(|place| place.set(Placed { before, node }).is_ok());
        debug_assert!(is_fresh, "place {index} was taken before");
        let (row, column) = (index / N, index % N);
        if let Some(lane) = self.lane1.get(row) {
            lane.set(column, first);
        }
        if column == 0
            && let Some(lane) = self.lane2.get(row / N)
        {
            lane.set(row % N, first);
        }
    }

    /// Publishes everything below `tail` to readers. This is the one store that orders all others: what it
    /// publishes must be written before.
    #[inline]
    pub(super) fn publish(&self, tail: usize) {
        self.tail.store(tail, PUBLISH);
    }

    /// The published tail. Pairs with [`Generation::publish`].
    #[inline]
    pub(super) fn tail(&self) -> usize {
        self.tail.load(Ordering::Acquire)
    }

    /// All nodes, as the writer sees them.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Arc<Node<V, N>>> {
        self.table.iter().map_while(OnceLock::get).map(|placed| &placed.node)
    }

    fn placed(&self, index: usize) -> Option<&Placed<V, N>> {
        self.table.get(index)?.get()
    }

    #[inline]
    pub(super) fn node(&self, index: usize) -> Option<&Arc<Node<V, N>>> {
        Some(&self.table.get(index)?.get()?.node)
    }

    /// The key at an address, [`UNWRITTEN`] if there is none.
    #[inline]
    pub(super) fn key(&self, address: usize) -> i64 {
        self.node(address / N).map_or(UNWRITTEN, |node| node.keys.key(address % N))
    }

    /// The value at an address below the tail.
    #[inline]
    pub(super) fn value(&self, address: usize) -> Option<&V> {
        self.node(address / N)?.value(address % N)
    }

    /// Entries below `tail`.
    pub(super) fn len(&self, tail: usize) -> usize {
        tail.checked_sub(1).map_or(0, |last| self.rank(last) + 1)
    }

    /// Entries before an address below the tail.
    pub(super) fn rank(&self, address: usize) -> usize {
        self.placed(address / N).map_or(0, |placed| placed.before + address % N)
    }

    /// The address of the entry with `rank` entries before it; `rank` is below the number of entries.
    pub(super) fn select(&self, rank: usize, tail: usize) -> Option<usize> {
        let nodes = self.table.get(..tail.div_ceil(N))?;
        let after = nodes.partition_point(|place| place.get().is_some_and(|placed| placed.before <= rank));
        let index = after.checked_sub(1)?;
        Some(index * N + (rank - self.placed(index)?.before))
    }

    /// The address after `address`, which is below the tail. After the last entry it is the tail.
    #[inline]
    pub(super) fn next(&self, address: usize, tail: usize) -> usize {
        let next = address + 1;
        // an inner node need not be full; the last one may hold keys that this tail does not publish
        if next == tail || next.is_multiple_of(N) || self.key(next) != UNWRITTEN {
            next
        } else {
            next.next_multiple_of(N)
        }
    }

    /// The address of the greatest key at or below `target`, which is below the last published key; `None` if
    /// `target` is below the first key.
    ///
    /// Inlined into both readers: a call would cost as much as two halvings.
    #[inline]
    pub(super) fn floor(&self, target: i64, tail: usize) -> Option<usize> {
        let lane = self.lane1.first()?;
        if target < lane.key(0) {
            return None;
        }
        let nodes = tail.div_ceil(N);
        let index = if nodes == 1 {
            0
        } else if nodes <= N / 4 {
            lane.floor_in_first_quarter(target)
        } else if nodes <= N {
            lane.floor(target)
        } else {
            self.descend(target)?
        };
        Some(index * N + self.node(index)?.keys.floor(target))
    }

    /// The node for `target` if `lane1` has several rows.
    #[inline]
    fn descend(&self, target: i64) -> Option<usize> {
        // lane2 has a second row from N³ entries on, 262,144 for the 64 of a release build. This is rare, so
        // the rows' first keys are searched directly instead of through a third lane; the result is
        // correct at any size
        let top = if self.lane2.len() == 1 {
            0
        } else {
            self.lane2.partition_point(|row| row.key(0) <= target).checked_sub(1)?
        };
        let row = top * N + self.lane2.get(top)?.floor(target);
        Some(row * N + self.lane1.get(row)?.floor(target))
    }
}

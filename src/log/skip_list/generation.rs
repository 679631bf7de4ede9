//! A generation: nodes in order, the lanes above them, and the tail that says how much of all this is published.

use super::node::Node;
use super::row::{Row, UNWRITTEN};
use crate::loom_shim::{Arc, AtomicUsize, OnceLock, Ordering, PUBLISH};

/// A table of nodes that only grows at its end.
///
/// An *address* is node × `N` + index in the node. The *tail* is one past the address of the last entry, 0 if there is none:
/// the number of nodes and the number of keys in the last one, in one word. Everything below a tail that was loaded
/// with Acquire is complete and never changes.
pub(super) struct Generation<V, const N: usize> {
    tail: AtomicUsize,
    /// The first key of each node, in rows.
    lane1: Box<[Row<N>]>,
    /// The first key of each row of `lane1`, in rows; none where `lane1` is a single row.
    lane2: Box<[Row<N>]>,
    table: Box<[OnceLock<Placed<V, N>>]>,
}

/// A node in its place.
struct Placed<V, const N: usize> {
    /// Entries in the nodes before it: final, for only the last node of a table grows.
    before: usize,
    node: Arc<Node<V, N>>,
}

impl<V, const N: usize> Generation<V, N> {
    /// An empty one with room for `room` nodes.
    pub(super) fn with_room(room: usize) -> Self {
        let rows = |keys: usize| (0..keys.div_ceil(N)).map(|_| Row::new()).collect::<Box<[_]>>();
        let lane1 = rows(room);
        let lane2 = if lane1.len() > 1 { rows(lane1.len()) } else { Box::default() };
        Self { tail: AtomicUsize::new(0), lane1, lane2, table: (0..room).map(|_| OnceLock::new()).collect() }
    }

    /// One of these nodes, none of them empty, with room for `room`.
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

    /// Nodes that fit into the table.
    pub(super) fn room(&self) -> usize {
        self.table.len()
    }

    /// Puts a node that has its first entry at the end of the table. It is not published by this.
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

    /// Shows readers everything below `tail`. The one store that orders all others: what it publishes must be written.
    #[inline]
    pub(super) fn publish(&self, tail: usize) {
        self.tail.store(tail, PUBLISH);
    }

    /// What is published. Pairs with [`Generation::publish`].
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

    /// The address behind `address`, which is below the tail: the tail itself behind the last entry.
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

    /// The address of the greatest key at or below `target`, which lies below the last published key; `None` if
    /// `target` lies below the first.
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

    /// The node for `target` where one row of `lane1` does not hold them all.
    #[inline]
    fn descend(&self, target: i64) -> Option<usize> {
        // a second row of lane2 begins at N³ entries, 262,144 for the 64 of a build that ships: rare enough for
        // a plain search over the rows' first keys instead of a third lane, and right at any size
        let top = if self.lane2.len() == 1 {
            0
        } else {
            self.lane2.partition_point(|row| row.key(0) <= target).checked_sub(1)?
        };
        let row = top * N + self.lane2.get(top)?.floor(target);
        Some(row * N + self.lane1.get(row)?.floor(target))
    }
}

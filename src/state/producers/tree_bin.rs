//! A bin of a `java.util.HashMap<Long, …>` with many keys: a red-black tree whose nodes are also a list.
//!
//! The map iterates over the list. A new key is put into the list after its parent in the tree, and then the
//! root is moved to the front of the list, so the order depends on the shape of the tree, and the tree has to
//! be balanced exactly as Java does.

use super::producer_map::hash;

/// No node, and no slot.
const NONE: usize = usize::MAX;
const LEFT: usize = 0;
const RIGHT: usize = 1;

/// Stands for [`NONE`]: black, and linked to nothing.
static NO_NODE: Node =
    Node { key: 0, slot: NONE, parent: NONE, children: [NONE; 2], previous: NONE, next: NONE, is_red: false };

#[derive(Debug, Clone)]
struct Node {
    key: i64,
    /// What the map has at the key.
    slot: usize,
    parent: usize,
    children: [usize; 2],
    /// In the list.
    previous: usize,
    next: usize,
    is_red: bool,
}

/// The keys of a bin.
///
/// *Source*: `java.util.HashMap.TreeNode`.
#[derive(Debug, Clone)]
pub(super) struct TreeBin {
    /// Nodes refer to each other by their index. Removed ones stay, without a link to them, until the bin is
    /// split.
    nodes: Vec<Node>,
    len: usize,
    root: usize,
    /// The start of the list.
    first: usize,
}

impl TreeBin {
    /// Makes a tree of a bin's keys, with their slots, which are in the order of its list.
    pub(super) fn new(keys: &[(i64, usize)]) -> Self {
        let mut tree = Self { nodes: Vec::with_capacity(keys.len()), len: keys.len(), root: NONE, first: 0 };
        for (at, (key, slot)) in keys.iter().copied().enumerate() {
            let next = if at + 1 < keys.len() { at + 1 } else { NONE };
            // NONE before the first, which is the largest number
            let previous = at.wrapping_sub(1);
            tree.nodes.push(Node { key, slot, previous, next, ..NO_NODE.clone() });
        }
        for at in 0..keys.len() {
            tree.attach(at);
            tree.balance_after_insertion(at);
        }
        tree.move_root_to_front();
        tree
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The slots in the order of the list.
    pub(super) fn slots(&self) -> impl Iterator<Item = usize> {
        let mut at = self.first;
        std::iter::from_fn(move || {
            let node = self.nodes.get(at)?;
            at = node.next;
            Some(node.slot)
        })
    }

    /// Adds a key that the bin does not contain.
    pub(super) fn insert(&mut self, key: i64, slot: usize) {
        let at = self.nodes.len();
        self.nodes.push(Node { key, slot, ..NO_NODE.clone() });
        self.len += 1;
        let parent = self.attach(at);
        let next = self.node(parent).next;
        self.link(at, next);
        self.link(parent, at);
        self.balance_after_insertion(at);
        self.move_root_to_front();
    }

    /// The slot of a key.
    pub(super) fn find(&self, key: i64) -> Option<usize> {
        let mut at = self.root;
        while at != NONE {
            let node = self.node(at);
            if node.key == key {
                return Some(node.slot);
            }
            at = self.child(at, side_of(key, node.key));
        }
        None
    }

    /// Gives each key a new slot, and removes those without one, first to last. Neither does this move the
    /// root to the front, nor does a small tree become a list before the bins double.
    pub(super) fn retain(&mut self, new_slot: impl Fn(usize) -> usize) {
        let mut at = self.first;
        while at != NONE {
            let Node { slot, next, .. } = *self.node(at);
            let slot = new_slot(slot);
            if slot == NONE {
                self.remove(at);
            } else {
                self.change(at, |node| node.slot = slot);
            }
            at = next;
        }
    }

    fn node(&self, at: usize) -> &Node {
        self.nodes.get(at).unwrap_or(&NO_NODE)
    }

    /// Changes a node; nothing is changed for [`NONE`].
    fn change(&mut self, at: usize, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.nodes.get_mut(at) {
            change(node);
        }
    }

    fn child(&self, at: usize, side: usize) -> usize {
        self.node(at).children.get(side).copied().unwrap_or(NONE)
    }

    fn is_red(&self, at: usize) -> bool {
        self.node(at).is_red
    }

    fn set_red(&mut self, at: usize, is_red: bool) {
        self.change(at, |node| node.is_red = is_red);
    }

    /// The side on which a node is under its parent.
    fn side(&self, at: usize) -> usize {
        if self.child(self.node(at).parent, LEFT) == at { LEFT } else { RIGHT }
    }

    /// Makes `at` (or nothing) the child of `parent`.
    fn set_child(&mut self, parent: usize, side: usize, at: usize) {
        self.change(parent, |node| node.children.get_mut(side).into_iter().for_each(|child| *child = at));
        self.change(at, |node| node.parent = parent);
    }

    /// Puts `other` (or nothing) in the place of `at` under its parent.
    fn replace_child(&mut self, at: usize, other: usize) {
        let parent = self.node(at).parent;
        if parent == NONE {
            self.root = other;
            self.change(other, |node| node.parent = NONE);
        } else {
            self.set_child(parent, self.side(at), other);
        }
    }

    /// Makes `next` (or nothing) follow `at` (or nothing) in the list.
    fn link(&mut self, at: usize, next: usize) {
        self.change(at, |node| node.next = next);
        self.change(next, |node| node.previous = at);
    }

    /// Puts a node at the bottom of the tree, and returns its parent.
    fn attach(&mut self, at: usize) -> usize {
        let key = self.node(at).key;
        let (mut parent, mut side) = (NONE, LEFT);
        let mut below = self.root;
        while below != NONE {
            parent = below;
            let other = self.node(below).key;
            side = side_of(key, other);
            below = self.child(below, side);
        }
        if parent == NONE {
            self.root = at;
        } else {
            self.set_child(parent, side, at);
        }
        parent
    }

    fn move_root_to_front(&mut self) {
        let root = self.root;
        if root != self.first {
            let Node { previous, next, .. } = *self.node(root);
            self.link(previous, next);
            self.link(root, self.first);
            self.change(root, |node| node.previous = NONE);
            self.first = root;
        }
    }

    /// Moves the child on the other side of `side` up, and `at` down to `side`.
    fn rotate(&mut self, at: usize, side: usize) {
        let up = self.child(at, 1 - side);
        if up == NONE {
            return;
        }
        let inner = self.child(up, side);
        self.set_child(at, 1 - side, inner);
        self.replace_child(at, up);
        self.set_child(up, side, at);
    }

    fn balance_after_insertion(&mut self, mut at: usize) {
        self.set_red(at, true);
        loop {
            let parent = self.node(at).parent;
            if parent == NONE {
                self.set_red(at, false);
                return;
            }
            let grandparent = self.node(parent).parent;
            if !self.is_red(parent) || grandparent == NONE {
                return;
            }
            let side = self.side(parent);
            let uncle = self.child(grandparent, 1 - side);
            if self.is_red(uncle) {
                self.set_red(uncle, false);
                self.set_red(parent, false);
                self.set_red(grandparent, true);
                at = grandparent;
                continue;
            }
            if self.side(at) != side {
                at = parent;
                self.rotate(at, side);
            }
            self.set_red(self.node(at).parent, false);
            self.set_red(grandparent, true);
            self.rotate(grandparent, 1 - side);
        }
    }

    fn remove(&mut self, at: usize) {
        let Node { previous, next, .. } = *self.node(at);
        self.link(previous, next);
        if self.first == at {
            self.first = next;
        }
        self.len -= 1;
        if self.child(at, LEFT) != NONE && self.child(at, RIGHT) != NONE {
            self.swap_with_successor(at);
        }
        let child = if self.child(at, LEFT) == NONE { self.child(at, RIGHT) } else { self.child(at, LEFT) };
        let is_red = self.is_red(at);
        if child != NONE {
            self.replace_child(at, child);
            if self.root == child {
                self.set_red(child, false);
            }
        }
        if !is_red {
            self.balance_after_removal(if child == NONE { at } else { child });
        }
        if child == NONE {
            self.replace_child(at, NONE);
        }
    }

    /// Exchanges the places and colors of a node with two children and of the next larger one.
    fn swap_with_successor(&mut self, at: usize) {
        let [left, right] = self.node(at).children;
        let mut successor = right;
        while self.child(successor, LEFT) != NONE {
            successor = self.child(successor, LEFT);
        }
        let (is_red, is_red_below) = (self.is_red(at), self.is_red(successor));
        self.set_red(at, is_red_below);
        self.set_red(successor, is_red);
        let below = self.child(successor, RIGHT);
        let parent = self.node(successor).parent;
        self.replace_child(at, successor);
        if parent == at {
            self.set_child(successor, RIGHT, at);
        } else {
            self.set_child(parent, LEFT, at);
            self.set_child(successor, RIGHT, right);
        }
        self.set_child(successor, LEFT, left);
        self.set_child(at, LEFT, NONE);
        self.set_child(at, RIGHT, below);
    }

    /// Balances the tree, in which one black node too few is above `at`.
    fn balance_after_removal(&mut self, mut at: usize) {
        while at != NONE && at != self.root {
            if self.is_red(at) {
                self.set_red(at, false);
                return;
            }
            let side = self.side(at);
            let other = 1 - side;
            let parent = self.node(at).parent;
            let mut sibling = self.child(parent, other);
            if self.is_red(sibling) {
                self.set_red(sibling, false);
                self.set_red(parent, true);
                self.rotate(parent, side);
                sibling = self.child(parent, other);
            }
            let (near, far) = (self.child(sibling, side), self.child(sibling, other));
            if !self.is_red(near) && !self.is_red(far) {
                self.set_red(sibling, true);
                at = parent;
                continue;
            }
            if !self.is_red(far) {
                self.set_red(near, false);
                self.set_red(sibling, true);
                self.rotate(sibling, other);
                sibling = near;
            }
            self.set_red(sibling, self.is_red(parent));
            self.set_red(self.child(sibling, other), false);
            self.set_red(parent, false);
            self.rotate(parent, side);
            return;
        }
    }
}

/// The side of another key on which a key is: keys are ordered by their hashes, then by themselves.
fn side_of(key: i64, other: i64) -> usize {
    if (hash(key).cast_signed(), key) < (hash(other).cast_signed(), other) { LEFT } else { RIGHT }
}

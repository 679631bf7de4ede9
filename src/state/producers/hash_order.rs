//! The order in which a `java.util.HashMap<Long, …>` iterates over its keys: the order of the entries in Kafka's snapshots.
//!
//! The keys of the bins in turn. A key's bin is its hash modulo the number of bins, which doubles when three quarters as many
//! keys are in the map, and never shrinks. A bin has its keys in the order of insertion, also after the number of bins has
//! doubled. From nine keys on it is a tree (`tree_bin`), which orders them differently; but a map with fewer than 64 bins doubles
//! them instead. A key that `computeIfAbsent` adds is the first of its bin, which is a tree from eight keys on.

use smallvec::SmallVec;

use super::tree_bin::TreeBin;

/// The number of bins with the first key.
const INITIAL_BINS: usize = 16;
/// Bins of fewer maps are not made trees.
const MIN_BINS_WITH_TREES: usize = 64;
/// The largest number of keys in a bin that is not a tree.
const MAX_LIST: usize = 8;
/// The largest part of a tree bin that becomes a list when the bin is split.
const MAX_LIST_AFTER_SPLIT: usize = 6;
/// The largest number of bins.
const MAX_BINS: usize = 1 << 30;

/// The keys of a map, in the order of `HashMap.entrySet()`.
///
/// *Source*: `ProducerStateManager.producers`; `java.util.HashMap` of JDK 17 to 25.
#[derive(Debug, Clone, Default)]
pub(super) struct HashOrder {
    /// A power of two of them; none before the first key.
    bins: Vec<Bin>,
    len: usize,
}

type Keys = SmallVec<[i64; 1]>;

#[derive(Debug, Clone)]
enum Bin {
    /// Most bins have at most one key, which takes no memory of its own.
    List(Keys),
    Tree(Box<TreeBin>),
}

impl Bin {
    const EMPTY: Self = Self::List(SmallVec::new_const());

    fn keys(&self) -> impl Iterator<Item = i64> + '_ {
        let (list, tree) = match self {
            Self::List(keys) => (keys.as_slice(), None),
            Self::Tree(tree) => (&[][..], Some(tree)),
        };
        list.iter().copied().chain(tree.into_iter().flat_map(|tree| tree.keys()))
    }
}

/// The hash of a `Long`, as the map spreads it.
pub(super) fn hash(key: i64) -> i32 {
    let [high, low] = [key >> 32, key].map(|half| u32::try_from(half & 0xffff_ffff).unwrap_or(0));
    let hash = high ^ low;
    (hash ^ (hash >> 16)).cast_signed()
}

impl HashOrder {
    /// Adds a key that the map does not contain.
    pub(super) fn insert(&mut self, key: i64) {
        if self.bins.is_empty() {
            self.bins.resize(INITIAL_BINS, Bin::EMPTY);
        }
        self.add(key, MAX_LIST, Keys::push);
        if self.len > self.bins.len() / 4 * 3 {
            self.double();
        }
    }

    /// Adds a key if the map does not contain it, as `HashMap.computeIfAbsent`: at the start of its bin. The number of bins doubles with
    /// the next call, whatever its key.
    pub(super) fn compute(&mut self, key: i64, is_present: bool) {
        if self.bins.is_empty() {
            self.bins.resize(INITIAL_BINS, Bin::EMPTY);
        } else if self.len > self.bins.len() / 4 * 3 {
            self.double();
        }
        if !is_present {
            self.add(key, MAX_LIST - 1, |keys, key| keys.insert(0, key));
        }
    }

    /// `max_list`: the largest number of keys in the bin that does not make it a tree.
    fn add(&mut self, key: i64, max_list: usize, add: fn(&mut Keys, i64)) {
        let number = self.bin_of(key);
        let has_trees = self.bins.len() >= MIN_BINS_WITH_TREES;
        let mut is_long = false;
        match self.bins.get_mut(number) {
            Some(Bin::Tree(tree)) => tree.insert(key),
            Some(bin @ Bin::List(_)) => {
                let Bin::List(keys) = bin else { return };
                add(keys, key);
                is_long = keys.len() > max_list;
                if is_long && has_trees {
                    *bin = Bin::Tree(Box::new(TreeBin::new(keys)));
                }
            }
            None => {}
        }
        if is_long && !has_trees {
            self.double();
        }
        self.len += 1;
    }

    /// Removes keys, as the iterator of the map's entries removes them.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(i64) -> bool) {
        let mut len = 0;
        for bin in &mut self.bins {
            match bin {
                Bin::List(keys) => {
                    keys.retain(|key| keep(*key));
                    len += keys.len();
                }
                Bin::Tree(tree) => {
                    tree.retain(&mut keep);
                    len += tree.len();
                    if tree.len() == 0 {
                        *bin = Bin::EMPTY;
                    }
                }
            }
        }
        self.len = len;
    }

    /// The keys in the map's order.
    pub(super) fn iter(&self) -> impl Iterator<Item = i64> {
        self.bins.iter().flat_map(Bin::keys)
    }

    fn bin_of(&self, key: i64) -> usize {
        let mask = u32::try_from(self.bins.len() - 1).unwrap_or(u32::MAX);
        usize::try_from(hash(key).cast_unsigned() & mask).unwrap_or(0)
    }

    /// Doubles the number of bins. The keys of a bin stay in their order.
    fn double(&mut self) {
        let count = self.bins.len();
        if count >= MAX_BINS {
            return;
        }
        let bit = i32::try_from(count).unwrap_or(0);
        let mut upper = Vec::with_capacity(count);
        for bin in &mut self.bins {
            let is_low = |key: &i64| hash(*key) & bit == 0;
            let moved = match bin {
                Bin::List(keys) => {
                    let high = keys.iter().copied().filter(|key| !is_low(key)).collect();
                    keys.retain(|key| is_low(key));
                    Bin::List(high)
                }
                Bin::Tree(tree) => {
                    let (low, high): (Vec<_>, Vec<_>) = tree.keys().partition(is_low);
                    if high.is_empty() {
                        // a tree whose keys stay together stays as it is
                        Bin::EMPTY
                    } else if low.is_empty() {
                        std::mem::replace(bin, Bin::EMPTY)
                    } else {
                        *bin = part_of_tree(low);
                        part_of_tree(high)
                    }
                }
            };
            upper.push(moved);
        }
        self.bins.append(&mut upper);
    }
}

/// One half of a tree bin that was split.
fn part_of_tree(keys: Vec<i64>) -> Bin {
    if keys.len() <= MAX_LIST_AFTER_SPLIT {
        Bin::List(keys.into())
    } else {
        Bin::Tree(Box::new(TreeBin::new(&keys)))
    }
}

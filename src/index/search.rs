//! The search of sorted slots. It has no side effects: a slot's key comes from a closure, and a caller can wrap the
//! closure to see which slots are read.

use crate::error::Result;

/// Bytes of the warm section; see the module `index`.
const WARM_BYTES: u64 = 8192;

/// How an index is searched. The result is the same; the methods differ in the pages that they read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Method {
    /// Binary search over all entries.
    Binary,
    /// Kafka's search: the last 8,192 bytes first, the rest only for targets below them.
    #[default]
    Warm,
}

/// The sorted slots of one index, and how to search them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Search {
    /// The number of slots.
    pub entries: u64,
    /// Bytes of a slot.
    pub entry_size: u64,
    /// The search method.
    pub method: Method,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    Lower,
    Upper,
}

impl Search {
    /// The largest slot whose key is at or below `target`; `None` if there is none.
    ///
    /// Errors: those of `key`, which is called only for slots below `entries`. If the keys are not sorted, the result is an
    /// arbitrary slot, as in Kafka. Source: `AbstractIndex.largestLowerBoundSlotFor`.
    pub(super) fn lower_bound(self, target: i64, key: impl FnMut(u64) -> Result<i64>) -> Result<Option<u64>> {
        self.bound(Bound::Lower, target, key)
    }

    /// The smallest slot whose key is at or above `target`, except that for a target equal to the first key it is the slot
    /// after the first; `None` if there is none.
    ///
    /// The exception is Kafka's: its bisection tests every slot for equality but the first.
    /// Source: `AbstractIndex.smallestUpperBoundSlotFor`.
    pub(super) fn upper_bound(self, target: i64, key: impl FnMut(u64) -> Result<i64>) -> Result<Option<u64>> {
        self.bound(Bound::Upper, target, key)
    }

    /// Both bounds, −1 for none.
    pub(super) fn slot_range(
        self,
        target: i64,
        mut key: impl FnMut(u64) -> Result<i64>,
    ) -> Result<(i64, i64)> {
        // a slot is below the file's size, which is an i64 to the system
        let number = |slot: Option<u64>| slot.and_then(|slot| i64::try_from(slot).ok()).unwrap_or(-1);
        Ok((number(self.lower_bound(target, &mut key)?), number(self.upper_bound(target, &mut key)?)))
    }

    /// ```text
    /// slot  0 ........................ hot ............... last
    ///       '------- cold: [0, hot] ---''-- warm: hot < target --'
    /// ```
    ///
    /// Reads the same slots in the same order as Kafka: a target *equal* to the key of `hot` is searched on the cold side,
    /// which includes `hot`. With `Binary`, all slots are cold. Source: `AbstractIndex.indexSlotRangeFor`.
    fn bound(
        self,
        bound: Bound,
        target: i64,
        mut key: impl FnMut(u64) -> Result<i64>,
    ) -> Result<Option<u64>> {
        let Some(last) = self.entries.checked_sub(1) else { return Ok(None) };
        let cold_last = match self.method {
            Method::Binary => last,
            Method::Warm => {
                let hot = last.saturating_sub(WARM_BYTES / self.entry_size);
                if key(hot)? < target {
                    return bisect(bound, hot, last, last, target, key);
                }
                hot
            }
        };
        if key(0)? > target {
            return Ok(if bound == Bound::Lower { None } else { Some(0) });
        }
        bisect(bound, 0, cold_last, last, target, key)
    }
}

/// Bisects `[low, high]`, both inclusive; `key(low) <= target` is known. Source: `AbstractIndex.binarySearch`.
fn bisect(
    bound: Bound,
    mut low: u64,
    mut high: u64,
    last: u64,
    target: i64,
    mut key: impl FnMut(u64) -> Result<i64>,
) -> Result<Option<u64>> {
    while low < high {
        // rounded up, or low = mid would not terminate; so mid is never 0
        let mid = low + (high - low).div_ceil(2);
        match key(mid)?.cmp(&target) {
            std::cmp::Ordering::Greater => high = mid - 1,
            std::cmp::Ordering::Less => low = mid,
            std::cmp::Ordering::Equal => return Ok(Some(mid)),
        }
    }
    Ok(match bound {
        Bound::Lower => Some(low),
        Bound::Upper if low == last => None,
        Bound::Upper => Some(low + 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    const METHODS: [Method; 2] = [Method::Binary, Method::Warm];

    fn signed(number: impl TryInto<i64, Error: std::fmt::Debug>) -> i64 {
        number.try_into().unwrap()
    }

    fn range(keys: &[i64], entry_size: u64, method: Method, target: i64) -> (i64, i64) {
        let search = Search { entries: keys.len() as u64, entry_size, method };
        search.slot_range(target, |slot| Ok(keys[usize::try_from(slot).unwrap()])).unwrap()
    }

    /// Compares every key.
    fn naive_range(keys: &[i64], target: i64) -> (i64, i64) {
        let at_or_below = signed(keys.iter().filter(|key| **key <= target).count());
        let below = signed(keys.iter().filter(|key| **key < target).count());
        let upper = if keys.first() == Some(&target) { 1 } else { below };
        (at_or_below - 1, if upper < signed(keys.len()) { upper } else { -1 })
    }

    #[test]
    fn both_methods_agree_with_a_linear_search_around_every_critical_size() {
        let mut compared = 0;
        for entry_size in [8, 12] {
            let warm = 8192 / entry_size;
            let sizes = [0, 1, 2, 3, 63, 64, 65, warm - 1, warm, warm + 1, warm + 2, warm + 3, 2 * warm + 5];
            for entries in sizes {
                // between any two keys there is a value that is not a key
                let keys: Vec<i64> = (0..signed(entries)).map(|slot| 3 * slot + 1).collect();
                for target in -1..=3 * signed(entries) + 2 {
                    let expected = naive_range(&keys, target);
                    for method in METHODS {
                        let found = range(&keys, entry_size, method, target);
                        assert_eq!(found, expected, "{method:?} {entries} {target}");
                        compared += 1;
                    }
                }
            }
        }
        assert!(compared > 40_000);
    }

    #[test]
    fn slot_ranges_at_the_first_and_the_last_key() {
        for method in METHODS {
            for size in [8, 12] {
                assert_eq!(range(&[], size, method, 5), (-1, -1));
                assert_eq!(range(&[10, 20, 30], size, method, 9), (-1, 0));
                assert_eq!(range(&[10, 20, 30], size, method, 30), (2, 2));
                assert_eq!(range(&[10, 20, 30], size, method, 31), (2, -1));
                assert_eq!(range(&[10, 20, 30], size, method, 15), (0, 1));
                assert_eq!(range(&[10, 20, 30], size, method, 20), (1, 1));
                assert_eq!(range(&[10, 20, 30], size, method, i64::MIN), (-1, 0));
                assert_eq!(range(&[10, 20, 30], size, method, i64::MAX), (2, -1));
                // the first key is never tested for equality
                assert_eq!(range(&[10, 20, 30], size, method, 10), (0, 1));
                assert_eq!(range(&[10], size, method, 10), (0, -1));
                assert_eq!(range(&[10], size, method, 9), (-1, 0));
            }
        }
    }

    #[test]
    fn the_key_of_the_first_warm_slot_is_searched_on_the_cold_side() {
        for (entry_size, warm) in [(8, 1024), (12, 682)] {
            let search = Search { entries: 5000, entry_size, method: Method::Warm };
            let hot = 4999 - warm;
            for (target, expected) in [(hot, [hot, 0]), (hot + 1, [hot, hot + 1 + (4999 - hot) / 2 - 1])] {
                let mut probes = Vec::new();
                let slot = search.lower_bound(signed(target), |slot| {
                    probes.push(slot);
                    Ok(signed(slot))
                });
                assert_eq!(slot.unwrap(), Some(target));
                assert_eq!(probes[..2], expected, "{entry_size}");
            }
        }
    }

    #[test]
    fn a_search_of_unsorted_keys_ends_and_reads_only_existing_slots() {
        for entries in [1_u64, 2, 3, 700, 1026, 5000] {
            for target in [i64::MIN, -1, 0, 1_000_003, i64::MAX] {
                for method in METHODS {
                    let search = Search { entries, entry_size: 8, method };
                    let range = search.slot_range(target, |slot| {
                        assert!(slot < entries);
                        Ok(signed(slot).wrapping_mul(0x5DEE_CE66_D123_4567))
                    });
                    let (lower, upper) = range.unwrap();
                    assert!((-1..signed(entries)).contains(&lower) && (-1..signed(entries)).contains(&upper));
                }
            }
        }
    }

    #[test]
    fn a_key_that_cannot_be_read_ends_the_search() {
        for method in METHODS {
            let search = Search { entries: 3000, entry_size: 8, method };
            let found = search.lower_bound(7, |slot| {
                if slot == 0 { Err(Error::config("a", "b", "c")) } else { Ok(signed(slot)) }
            });
            assert!(matches!(found, Err(Error::Config { .. })));
        }
    }
}

//! Kafka's searches of sorted slots. They have no side effects: a slot's key comes from a closure, and a
//! caller can wrap the closure to see which slots are read. The keys of a mapped file cannot fail: their
//! error type is [`Infallible`](std::convert::Infallible), and nothing is checked for it.

/// Bytes of the warm section; see the module `index`.
pub(super) const WARM_BYTES: u64 = 8192;

/// How an index is searched. The result is the same if the keys increase; the methods differ in the pages
/// that they read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Method {
    /// Binary search over all entries.
    Binary,
    /// Kafka's search: the last 8,192 bytes first, the rest only for targets below them.
    Warm,
    /// Has every eighth key in memory, and reads one page; two if entries cross the end of a page, as in a
    /// time index. An index that is being written is searched with [`Method::Warm`], and so is one whose
    /// keys were found not to increase: one of the first look-ups reads all keys. The look-ups before it
    /// return any entry of such an index.
    #[default]
    Learned,
}

/// The sorted slots of one index, and how to bisect them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search {
    /// The number of slots.
    pub entries: u64,
    /// The number of slots before the last one that are searched first; `None`: all slots are searched at
    /// once.
    pub warm_slots: Option<u64>,
}

impl Search {
    /// The largest slot whose key is at or below `target`; `None` if there is none.
    ///
    /// ```text
    /// slot  0 ........................ hot ............... last
    ///       '------- cold: [0, hot] ---''-- warm: hot < target --'
    /// ```
    ///
    /// Reads the same slots in the same order as Kafka: a target *equal* to the key of `hot` is searched on
    /// the cold side, which includes `hot`. Without a warm section, all slots are cold.
    ///
    /// Errors: from `key`, which is called only for slots below `entries`. If the keys are not sorted, the
    /// result is an arbitrary slot, as in Kafka. Source: `AbstractIndex.indexSlotRangeFor`,
    /// `largestLowerBoundSlotFor`.
    #[inline]
    pub(crate) fn lower_bound<E>(
        self,
        target: i64,
        key: impl Fn(u64) -> Result<i64, E>,
    ) -> Result<Option<u64>, E> {
        let Some(last) = self.entries.checked_sub(1) else { return Ok(None) };
        let mut cold_last = last;
        if let Some(warm_slots) = self.warm_slots {
            let hot = last.saturating_sub(warm_slots);
            if key(hot)? < target {
                return bisect(hot, last, target, key).map(Some);
            }
            cold_last = hot;
        }
        if key(0)? > target {
            return Ok(None);
        }
        bisect(0, cold_last, target, key).map(Some)
    }
}

/// Bisects `[low, high]`, both inclusive; `key(low) <= target` is known. Source:
/// `AbstractIndex.binarySearch`.
#[inline]
fn bisect<E>(
    mut low: u64,
    mut high: u64,
    target: i64,
    key: impl Fn(u64) -> Result<i64, E>,
) -> Result<u64, E> {
    while low < high {
        // rounded up, or low = mid would not terminate; so mid is never 0
        let mid = low + (high - low).div_ceil(2);
        match key(mid)?.cmp(&target) {
            std::cmp::Ordering::Greater => high = mid - 1,
            std::cmp::Ordering::Less => low = mid,
            std::cmp::Ordering::Equal => return Ok(mid),
        }
    }
    Ok(low)
}

/// The smallest slot whose key is at or above `target`, from the largest one whose key is at or below it;
/// `None` if there is none. For a target equal to the first key it is the slot after the first.
///
/// The exception is Kafka's: its bisection tests every slot for equality but the first. Source:
/// `AbstractIndex.smallestUpperBoundSlotFor`.
pub(super) fn upper_bound<E>(
    entries: u64,
    lower: Option<u64>,
    target: i64,
    key: impl Fn(u64) -> Result<i64, E>,
) -> Result<Option<u64>, E> {
    let upper = match lower {
        None => 0,
        Some(slot @ 1..) if key(slot)? == target => slot,
        Some(slot) => slot + 1,
    };
    Ok((upper < entries).then_some(upper))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::convert::Infallible;

    use super::*;

    fn signed(number: impl TryInto<i64, Error: std::fmt::Debug>) -> i64 {
        number.try_into().unwrap()
    }

    /// Both bounds by plain bisection and with a warm section; −1 for none.
    fn ranges(keys: &[i64], entry_size: u64, target: i64) -> [(i64, i64); 2] {
        let entries = keys.len() as u64;
        let key = |slot: u64| Ok::<_, Infallible>(keys[usize::try_from(slot).unwrap()]);
        let number = |slot: Option<u64>| slot.map_or(-1, signed);
        [None, Some(WARM_BYTES / entry_size)].map(|warm_slots| {
            let Ok(lower) = Search { entries, warm_slots }.lower_bound(target, key);
            let Ok(upper) = upper_bound(entries, lower, target, key);
            (number(lower), number(upper))
        })
    }

    /// Compares every key.
    fn naive_range(keys: &[i64], target: i64) -> (i64, i64) {
        let at_or_below = signed(keys.iter().filter(|key| **key <= target).count());
        let below = signed(keys.iter().filter(|key| **key < target).count());
        let upper = if keys.first() == Some(&target) { 1 } else { below };
        (at_or_below - 1, if upper < signed(keys.len()) { upper } else { -1 })
    }

    #[test]
    fn both_searches_agree_with_a_linear_search_around_every_critical_size() {
        let mut compared = 0;
        for entry_size in [8, 12] {
            let warm = 8192 / entry_size;
            let sizes = [0, 1, 2, 3, 63, 64, 65, warm - 1, warm, warm + 1, warm + 2, warm + 3, 2 * warm + 5];
            for entries in sizes {
                // between any two keys there is a value that is not a key
                let keys: Vec<i64> = (0..signed(entries)).map(|slot| 3 * slot + 1).collect();
                for target in -1..=3 * signed(entries) + 2 {
                    let expected = naive_range(&keys, target);
                    assert_eq!(ranges(&keys, entry_size, target), [expected; 2], "{entries} {target}");
                    compared += 2;
                }
            }
        }
        assert!(compared > 40_000);
    }

    #[test]
    fn slot_ranges_at_the_first_and_the_last_key() {
        for size in [8, 12] {
            assert_eq!(ranges(&[], size, 5), [(-1, -1); 2]);
            assert_eq!(ranges(&[10, 20, 30], size, 9), [(-1, 0); 2]);
            assert_eq!(ranges(&[10, 20, 30], size, 30), [(2, 2); 2]);
            assert_eq!(ranges(&[10, 20, 30], size, 31), [(2, -1); 2]);
            assert_eq!(ranges(&[10, 20, 30], size, 15), [(0, 1); 2]);
            assert_eq!(ranges(&[10, 20, 30], size, 20), [(1, 1); 2]);
            assert_eq!(ranges(&[10, 20, 30], size, i64::MIN), [(-1, 0); 2]);
            assert_eq!(ranges(&[10, 20, 30], size, i64::MAX), [(2, -1); 2]);
            // the first key is never tested for equality
            assert_eq!(ranges(&[10, 20, 30], size, 10), [(0, 1); 2]);
            assert_eq!(ranges(&[10], size, 10), [(0, -1); 2]);
            assert_eq!(ranges(&[10], size, 9), [(-1, 0); 2]);
        }
    }

    #[test]
    fn the_key_of_the_first_warm_slot_is_searched_on_the_cold_side() {
        for warm in [1024, 682] {
            let search = Search { entries: 5000, warm_slots: Some(warm) };
            let hot = 4999 - warm;
            for (target, expected) in [(hot, [hot, 0]), (hot + 1, [hot, hot + 1 + (4999 - hot) / 2 - 1])] {
                let probes = RefCell::new(Vec::new());
                let slot = search.lower_bound(signed(target), |slot| {
                    probes.borrow_mut().push(slot);
                    Ok::<_, Infallible>(signed(slot))
                });
                assert_eq!(slot, Ok(Some(target)));
                assert_eq!(probes.borrow()[..2], expected, "{warm}");
            }
        }
    }

    #[test]
    fn a_search_of_unsorted_keys_ends_and_reads_only_existing_slots() {
        for entries in [1_u64, 2, 3, 700, 1026, 5000] {
            for target in [i64::MIN, -1, 0, 1_000_003, i64::MAX] {
                for warm_slots in [None, Some(1024)] {
                    let slot = Search { entries, warm_slots }.lower_bound(target, |slot| {
                        assert!(slot < entries);
                        Ok::<_, Infallible>(signed(slot).wrapping_mul(0x5DEE_CE66_D123_4567))
                    });
                    assert!(slot.is_ok_and(|slot| slot.is_none_or(|slot| slot < entries)));
                }
            }
        }
    }

    #[test]
    fn a_key_that_cannot_be_read_ends_the_search() {
        for warm_slots in [None, Some(1024)] {
            let search = Search { entries: 3000, warm_slots };
            let found =
                search.lower_bound(7, |slot| if slot == 0 { Err("unreadable") } else { Ok(signed(slot)) });
            assert_eq!(found, Err("unreadable"));
        }
    }
}

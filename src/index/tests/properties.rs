//! Random sorted entries: all methods, mapped and unmapped, before and after there is a model, find what a
//! linear search finds.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Sizes around those at which a search takes another path: the warm section (1,024 and 682 entries), a page,
/// one register.
fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        0_usize..70,
        prop::sample::select(vec![63, 64, 65, 512, 681, 682, 683, 684, 685, 1023, 1024, 1025, 1026, 1027]),
        1028_usize..2500,
    ]
}

/// Keys that increase strictly from `first`, mostly by small steps.
fn increasing(first: i64) -> impl Strategy<Value = Vec<i64>> {
    let step = prop_oneof![8 => 1_i64..4, 1 => 1_i64..500_000];
    size().prop_flat_map(move |size| vec(step.clone(), size)).prop_map(move |steps| {
        let sum = |key: &mut i64, step: i64| {
            *key += step;
            Some(*key)
        };
        steps.into_iter().scan(first, sum).collect()
    })
}

/// Targets at, below and above a sample of the keys, and far from them.
fn targets(keys: &[i64], base: i64) -> BTreeSet<i64> {
    let sample = keys.iter().step_by(1 + keys.len() / 60).chain(keys.iter().rev().take(3));
    let near = sample.flat_map(|key| [key - 1, *key, key + 1]);
    let far = [i64::MIN, -1, base - 1, base, base + i64::from(i32::MAX), base + (1 << 32), i64::MAX];
    near.chain(far).collect()
}

fn naive_slots(keys: &[i64], target: i64) -> (i64, i64) {
    let at_or_below = keys.iter().rposition(|key| *key <= target);
    let at_or_above = match keys.first() {
        Some(first) if *first == target => (keys.len() > 1).then_some(1),
        _ => keys.iter().position(|key| *key >= target),
    };
    let number = |slot: Option<usize>| slot.map_or(-1, |slot| i64::try_from(slot).unwrap());
    (number(at_or_below), number(at_or_above))
}

/// The slot of the result. It is read from the file, unless it is the last one, whose entry is in memory.
fn read_slot(lower: i64, entries: u64) -> Option<u64> {
    u64::try_from(lower).ok().filter(|slot| slot + 1 < entries)
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn offset_lookups_agree_with_a_linear_search(
        keys in increasing(1_000_000_000_000), zeros in 0_usize..3000, fragment in 0_usize..8,
    ) {
        let base = 1_000_000_000_000;
        let entries: Vec<_> = (1..).map(|n| 16 * n).zip(&keys).map(|(position, key)| (*key, position)).collect();
        let bytes = [offset_bytes(base, &entries), vec![0; 8 * zeros + fragment]].concat();
        let sample = Sample::new("i", &bytes);
        let indexes = sample.offset_indexes(base);
        for index in &indexes {
            prop_assert_eq!(index.entries(), keys.len() as u64);
            prop_assert_eq!(index.max_entries(), (keys.len() + zeros) as u64);
            let offsets: Vec<_> = index.iter().map(|entry| entry.unwrap().offset).collect();
            prop_assert_eq!(offsets, &*keys);
            prop_assert_eq!(index.sanity_check().is_ok(), fragment == 0);
        }
        for target in targets(&keys, base) {
            let (lower, upper) = naive_slots(&keys, target);
            let expected = usize::try_from(lower).map_or(at(base, 0), |slot| at(keys[slot], entries[slot].1));
            for index in &indexes {
                for method in METHODS {
                    prop_assert_eq!(index.lookup(target, method).unwrap(), expected);
                    prop_assert_eq!(index.slot_range(target, method).unwrap(), (lower, upper));
                    let pages = index.trace(target, method).unwrap();
                    prop_assert!(pages.iter().all(|page| *page <= bytes.len() as u64 / 4096));
                    prop_assert_eq!(pages.iter().collect::<BTreeSet<_>>().len(), pages.len());
                    if let Some(slot) = read_slot(lower, index.entries()) {
                        prop_assert!(pages.contains(&(slot / 512)));
                    }
                }
                let fetch_size = i32::try_from(target % 40_000).unwrap();
                let positions: Vec<_> = entries.iter().map(|entry| i64::from(entry.1)).collect();
                let (_, upper) = naive_slots(&positions, i64::from(17 + fetch_size));
                let expected = usize::try_from(upper).ok().map(|slot| at(keys[slot], entries[slot].1));
                prop_assert_eq!(index.fetch_upper_bound(17, fetch_size).unwrap(), expected);
            }
        }
    }

    #[test]
    fn time_lookups_agree_with_a_linear_search(
        keys in increasing(1_700_000_000_000), zeros in 0_usize..3000, fragment in 0_usize..12,
    ) {
        let base = 77;
        // offsets may stay equal while timestamps increase
        let entries: Vec<_> = keys.iter().zip(0_i64..).map(|(key, n)| (*key, base + n / 2)).collect();
        let bytes = [time_bytes(base, &entries), vec![0; 12 * zeros + fragment]].concat();
        let sample = Sample::new("t", &bytes);
        let indexes = sample.time_indexes(base);
        for index in &indexes {
            prop_assert_eq!(index.entries(), keys.len() as u64);
            let timestamps: Vec<_> = index.iter().map(|entry| entry.unwrap().timestamp).collect();
            prop_assert_eq!(timestamps, &*keys);
            prop_assert_eq!(index.sanity_check().is_ok(), fragment == 0);
        }
        for target in targets(&keys, base) {
            let (lower, upper) = naive_slots(&keys, target);
            let entry = |slot: usize| when(keys[slot], entries[slot].1);
            let expected = usize::try_from(lower).map_or(when(-1, base), entry);
            for index in &indexes {
                for method in METHODS {
                    prop_assert_eq!(index.lookup(target, method).unwrap(), expected);
                    prop_assert_eq!(index.slot_range(target, method).unwrap(), (lower, upper));
                    let pages = index.trace(target, method).unwrap();
                    if let Some(slot) = read_slot(lower, index.entries()) {
                        let both = [slot * 12 / 4096, (slot * 12 + 11) / 4096];
                        prop_assert!(both.iter().all(|page| pages.contains(page)));
                    }
                }
            }
        }
    }
}

#[test]
fn many_threads_share_one_index_that_is_not_mapped() {
    let entries: Vec<_> = (1..=40_000).map(|n| (1_000 * n, n)).collect();
    let sample = Sample::new("t", &time_bytes(0, &entries));
    let index = Arc::new(TimeIndex::open(&sample.path, Some(0), false).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let index = Arc::clone(&index);
            scope.spawn(move || {
                for n in (1 + thread..=40_000).step_by(7) {
                    assert_eq!(index.lookup(1_000 * n + 999, Method::Binary).unwrap(), when(1_000 * n, n));
                }
            });
        }
    });
}

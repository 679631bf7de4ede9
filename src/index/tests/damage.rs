//! Files that are cut, padded or not an index.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::error::Error;
use crate::fs::{FileBytes, SystemFile};
use crate::index::AbortedTransaction;

#[test]
fn a_zero_tail_of_any_length_changes_no_result() {
    let offsets: Vec<_> = (1..=20).map(|n| (100 + 10 * n, i32::try_from(5000 * n).unwrap())).collect();
    let times: Vec<_> = (1..=20).map(|n| (1000 * n, 100 + 10 * n)).collect();
    for kept in [0, 1, 2, 19, 20] {
        for zeros in 0..200 {
            let bytes = [offset_bytes(100, &offsets[..kept]), vec![0; zeros]].concat();
            for index in Sample::new("i", &bytes).offset_indexes(100) {
                let last = offsets[..kept].last().map_or(at(100, 0), |last| at(last.0, last.1));
                assert_eq!((index.entries(), index.last_entry()), (kept as u64, last));
                assert_eq!(index.max_entries(), bytes.len() as u64 / 8);
                assert_eq!(index.lookup(i64::MAX, Method::Warm).unwrap(), last);
                assert_eq!(index.is_full(), zeros < 8);
            }
            let bytes = [time_bytes(100, &times[..kept]), vec![0; zeros]].concat();
            for index in Sample::new("t", &bytes).time_indexes(100) {
                let last = times[..kept].last().map_or(when(-1, 100), |last| when(last.0, last.1));
                assert_eq!((index.entries(), index.last_entry()), (kept as u64, last));
                assert_eq!(index.lookup(i64::MAX, Method::Binary).unwrap(), last);
            }
        }
    }
}

#[test]
fn a_first_slot_of_zeros_is_an_entry_only_if_another_follows() {
    let alone = Sample::new("i", &offset_bytes(45, &[(45, 0)]));
    assert_eq!(alone.offset_indexes(45).map(|index| index.entries()), [0; 2]);
    assert_eq!(alone.offset_indexes(45)[0].lookup(50, Method::Warm).unwrap(), at(45, 0));
    for zeros in [0, 1, 2, 1500] {
        let bytes = [offset_bytes(45, &[(45, 0), (46, 10)]), vec![0; 8 * zeros]].concat();
        assert_eq!(Sample::new("i", &bytes).offset_indexes(45).map(|index| index.entries()), [2; 2]);
        let bytes = [time_bytes(45, &[(0, 45), (7, 46)]), vec![0; 12 * zeros]].concat();
        assert_eq!(Sample::new("t", &bytes).time_indexes(45).map(|index| index.entries()), [2; 2]);
    }
}

#[test]
fn a_mapped_file_that_is_overwritten_after_its_keys_were_read_returns_one_of_the_new_entries() {
    let old: Vec<_> = (1..=3000).map(|n| (1000 + 7 * i64::from(n), 100 * n)).collect();
    let sample = Sample::new("i", &offset_bytes(1000, &old));
    let [index, _] = sample.offset_indexes(1000);
    for (offset, position) in &old {
        assert_eq!(index.lookup(*offset, Method::Learned).unwrap(), at(*offset, *position));
    }
    let new: Vec<_> = old.iter().rev().map(|(offset, position)| (*offset, position + 1)).collect();
    // the same file, of the same length: the mapping has the new bytes
    std::fs::write(&sample.path, offset_bytes(1000, &new)).unwrap();
    for target in 1000..1000 + 7 * 3001 {
        let found = index.lookup(target, Method::Learned).unwrap();
        let is_last_or_before = found == at(1000, 0) || found == index.last_entry();
        assert!(is_last_or_before || new.contains(&(found.offset, found.position)), "{target}: {found:?}");
    }
}

#[test]
fn a_file_cut_at_any_length_has_its_whole_entries() {
    let offsets: Vec<_> = (1..=9).map(|n| (45 + i64::from(n), 100 * n)).collect();
    let bytes = offset_bytes(45, &offsets);
    for length in 0..=bytes.len() {
        for index in Sample::new("i", &bytes[..length]).offset_indexes(45) {
            let found: Vec<_> = index.iter().map(Result::unwrap).collect();
            let kept: Vec<_> = offsets[..length / 8].iter().map(|entry| at(entry.0, entry.1)).collect();
            assert_eq!(found, kept);
            assert_corrupt_at(&index.sanity_check(), length, 8);
        }
    }
    let times: Vec<_> = (1..=9).map(|n| (1000 * n, 45 + n)).collect();
    let bytes = time_bytes(45, &times);
    for length in 0..=bytes.len() {
        for index in Sample::new("t", &bytes[..length]).time_indexes(45) {
            let found: Vec<_> = index.iter().map(Result::unwrap).collect();
            let kept: Vec<_> = times[..length / 12].iter().map(|entry| when(entry.0, entry.1)).collect();
            assert_eq!(found, kept);
            assert_corrupt_at(&index.sanity_check(), length, 12);
        }
    }
    let aborted = [[1, 2, 3, 4], [5, 6, 7, 8]];
    let bytes = transaction_bytes(&aborted);
    for length in 0..=bytes.len() {
        for index in Sample::new("x", &bytes[..length]).transaction_indexes(0) {
            assert_eq!(index.entries(), length as u64 / 34);
            assert_eq!(
                index.iter().map(Result::unwrap).map(|entry| entry.producer_id).max().unwrap_or(0),
                match length {
                    0..34 => 0,
                    34..68 => 1,
                    _ => 5,
                }
            );
            index.sanity_check().unwrap();
        }
    }
}

/// A whole number of slots passes; otherwise the error has the position of the fragment.
fn assert_corrupt_at(check: &crate::Result<()>, length: usize, slot: usize) {
    match check {
        Ok(()) => assert_eq!(length % slot, 0),
        Err(error) => {
            assert_eq!((error.code(), error.position()), ("corrupt", Some((length / slot * slot) as u64)));
            assert_eq!(error.found(), Some(format!("{length} bytes")));
            assert_eq!(error.expected(), Some(format!("a file length that is a multiple of {slot} bytes")));
        }
    }
}

#[test]
fn the_sanity_check_finds_a_last_entry_that_decreased() {
    let mut bytes = offset_bytes(45, &[(46, 1), (47, 2)]);
    bytes[8..12].copy_from_slice(&(-1_i32).to_be_bytes());
    for index in Sample::new("i", &bytes).offset_indexes(45) {
        let error = index.sanity_check().unwrap_err();
        assert_eq!((error.code(), error.position(), error.offset()), ("corrupt", Some(8), Some(44)));
    }
    for (field, expected, found) in [
        (time_bytes(45, &[(9, 47)]), "a last timestamp at or above the first, 10", "timestamp 9"),
        (
            [&20_i64.to_be_bytes()[..], &[255; 4]].concat(),
            "a last offset at or above the base offset 45",
            "offset 44",
        ),
    ] {
        let bytes = [time_bytes(45, &[(10, 46)]), field].concat();
        for index in Sample::new("t", &bytes).time_indexes(45) {
            let error = index.sanity_check().unwrap_err();
            assert_eq!((error.code(), error.position()), ("corrupt", Some(12)));
            assert_eq!(
                (error.expected().as_deref(), error.found().as_deref()),
                (Some(expected), Some(found))
            );
        }
    }
}

#[test]
fn a_transaction_entry_of_another_version_is_refused() {
    let good = transaction_bytes(&[[1, 2, 3, 4]]);
    for (version, code) in [(1_i16, "unsupported_format"), (256, "unsupported_format"), (-1, "corrupt")] {
        let mut bytes = [good.clone(), good.clone()].concat();
        bytes[34..36].copy_from_slice(&version.to_be_bytes());
        for index in Sample::new("x", &bytes).transaction_indexes(0) {
            let first =
                AbortedTransaction { producer_id: 1, first_offset: 2, last_offset: 3, last_stable_offset: 4 };
            assert_eq!(index.entry(0).unwrap(), first);
            let errors = [
                index.entry(1).unwrap_err(),
                index.last_entry().unwrap_err(),
                index.sanity_check().unwrap_err(),
                index.collect_aborted(0, 100).unwrap_err(),
            ];
            for error in errors {
                assert_eq!((error.code(), error.position()), (code, Some(34)));
                assert_eq!(error.file(), Some(index.path()));
            }
            // the bound is reached before the entry that cannot be read
            assert_eq!(index.collect_aborted(0, 4).unwrap(), (vec![first], true));
        }
    }
}

#[test]
fn a_file_that_is_cut_while_it_is_open_is_a_changed_log() {
    let entries: Vec<_> = (1..=5000).map(|n| (n, 8)).collect();
    let sample = Sample::new("i", &offset_bytes(0, &entries));
    let index = OffsetIndex::open(&sample.path, Some(0), false).unwrap();
    std::fs::File::options().write(true).open(&sample.path).unwrap().set_len(8).unwrap();
    assert!(matches!(index.lookup(1, Method::Warm), Err(Error::LogChanged { .. })));
    assert!(matches!(index.trace(1, Method::Binary), Err(Error::LogChanged { .. })));
    assert!(matches!(index.entry(1), Err(Error::LogChanged { .. })));
    assert!(matches!(index.visit(|_| Ok(true)), Err(Error::LogChanged { .. })));
    assert_eq!(index.entry(0).unwrap(), at(1, 8));
    // a page that was read before is still cached
    assert_eq!(index.entry(4999).unwrap(), at(5000, 8));
}

#[test]
fn the_zeros_of_a_preallocated_file_may_be_cut_while_it_is_open() {
    let entries: Vec<_> = (1..=700).map(|n| (n, 8)).collect();
    let sample = Sample::new("i", &offset_bytes(0, &entries));
    let file = std::fs::File::options().write(true).open(&sample.path).unwrap();
    for size in [5608, 6000, 8192, 1 << 20, (64 << 20) + 8] {
        file.set_len(size).unwrap();
        let bytes = FileBytes::new(SystemFile::open(&sample.path).unwrap(), None, false).unwrap();
        file.set_len(5600).unwrap();
        let index = OffsetIndex::from_bytes(bytes, 0).unwrap();
        assert_eq!((index.entries(), index.last_entry()), (700, at(700, 8)));
        assert_eq!(index.lookup(600, Method::Warm).unwrap(), at(600, 8));
    }
}

#[test]
fn a_file_too_large_to_cache_is_still_read() {
    let entries: Vec<_> = (1..=1000).map(|n| (1_000 * n, n)).collect();
    let sample = Sample::new("t", &time_bytes(0, &entries));
    std::fs::File::options().write(true).open(&sample.path).unwrap().set_len((64 << 20) + 1).unwrap();
    for index in sample.time_indexes(0) {
        assert_eq!((index.entries(), index.last_entry()), (1000, when(1_000_000, 1000)));
        assert_eq!(index.entry(341).unwrap(), when(342_000, 342));
        assert_eq!(index.lookup(342_001, Method::Warm).unwrap(), when(342_000, 342));
        for _ in 0..20 {
            assert_eq!(index.lookup(342_001, Method::Learned).unwrap(), when(342_000, 342));
        }
        assert_eq!(index.trace(342_001, Method::Learned).unwrap(), [0, 1]);
    }
}

#[test]
fn a_visit_of_all_entries_caches_nothing() {
    let entries: Vec<_> = (1..=40_000).map(|n| (1_000 * n, n)).collect();
    let sample = Sample::new("t", &time_bytes(0, &entries));
    for index in sample.time_indexes(0) {
        let mut visited = Vec::new();
        let visit = |limit: usize, visited: &mut Vec<_>| {
            visited.clear();
            index.visit(|entry| {
                visited.push((entry.timestamp, entry.offset));
                Ok(visited.len() < limit)
            })
        };
        visit(usize::MAX, &mut visited).unwrap();
        assert_eq!(visited, entries);
        visit(7, &mut visited).unwrap();
        assert_eq!(visited, entries[..7]);
    }
    let [_, index] = sample.time_indexes(0);
    index.visit(|_| Ok(true)).unwrap();
    for _ in 0..1000 {
        index.lookup(1, Method::Learned).unwrap();
    }
    std::fs::File::options().write(true).open(&sample.path).unwrap().set_len(8192).unwrap();
    // only the pages of the look-ups and of the last entry were cached
    assert_eq!(index.entry(0).unwrap(), when(1_000, 1));
    assert!(matches!(index.entry(20_000), Err(Error::LogChanged { .. })));
}

/// Keys in no order; the last one is the largest.
fn unsorted() -> Vec<(i64, i32)> {
    (0..2000).map(|n| (if n == 1999 { 5000 } else { 1 + i64::from(n) * 7919 % 2003 }, n)).collect()
}

#[test]
fn keys_that_do_not_increase_are_searched_as_kafka_does_once_all_are_read() {
    let sample = Sample::new("i", &offset_bytes(0, &unsorted()));
    for index in sample.offset_indexes(0) {
        let entries: Vec<_> = index.iter().map(Result::unwrap).collect();
        for target in [5, 700, 1500, 4999, 5, 5, 5, 5] {
            let found = index.lookup(target, Method::Learned).unwrap();
            assert!(found == at(0, 0) || entries.contains(&found));
        }
        for target in -1..2100 {
            let right = index.lookup(target, Method::Warm).unwrap();
            assert_eq!(index.lookup(target, Method::Learned).unwrap(), right, "{target}");
        }
    }
}

#[test]
fn look_ups_of_the_last_entry_do_not_make_an_index_read_all_keys() {
    let sample = Sample::new("i", &offset_bytes(0, &unsorted()));
    let mut different = 0;
    for target in (0..2000).step_by(50) {
        let [first, later] = sample.offset_indexes(0);
        for _ in 0..100 {
            assert_eq!(later.lookup(i64::MAX, Method::Learned).unwrap(), at(5000, 1999));
        }
        let found = later.lookup(target, Method::Learned).unwrap();
        assert_eq!(found, first.lookup(target, Method::Learned).unwrap());
        different += u32::from(found != later.lookup(target, Method::Warm).unwrap());
    }
    // a search of all keys would have found another entry
    assert!(different > 5, "{different}");
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn garbage_gives_the_same_results_mapped_and_unmapped(
        words in vec(prop_oneof![Just([0_u8; 4]), any::<[u8; 4]>()], 0..3500),
        cut in 0_usize..4,
        base in 0..=i64::MAX,
    ) {
        let bytes = words.concat();
        let sample = Sample::new("i", &bytes[..bytes.len().saturating_sub(cut)]);
        let offsets = sample.offset_indexes(base);
        let times = sample.time_indexes(base);
        let aborted = sample.transaction_indexes(base);
        assert_same(&offsets, |index| (index.entries(), index.last_entry(), index.sanity_check().is_ok()))?;
        assert_same(&times, |index| (index.entries(), index.last_entry(), index.sanity_check().is_ok()))?;
        assert_same(&aborted, |index| index.iter().map(Result::ok).collect::<Vec<_>>())?;
        assert_same(&aborted, |index| (index.sanity_check().is_ok(), index.collect_aborted(0, base).ok()))?;
        for target in [i64::MIN, -1, 0, base, base.saturating_add(1_000_000), i64::MAX] {
            for method in METHODS {
                assert_same(&offsets, |index| index.lookup(target, method).unwrap())?;
                assert_same(&offsets, |index| index.slot_range(target, method).unwrap())?;
                assert_same(&offsets, |index| index.trace(target, method).unwrap())?;
                assert_same(&times, |index| index.lookup(target, method).unwrap())?;
                assert_same(&times, |index| index.slot_range(target, method).unwrap())?;
                assert_same(&times, |index| index.trace(target, method).unwrap())?;
            }
        }
        for fetch_size in [i32::MIN, -8, 0, 1_000_000_000, i32::MAX] {
            assert_same(&offsets, |index| index.fetch_upper_bound(7, fetch_size).unwrap())?;
        }
        for index in &times {
            prop_assert_eq!(index.iter().filter_map(Result::ok).count() as u64, index.entries());
        }
    }
}

/// Compares the results from the mapped and the unmapped file.
fn assert_same<I, A: PartialEq + std::fmt::Debug>(
    indexes: &[I; 2],
    query: impl Fn(&I) -> A,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(query(&indexes[0]), query(&indexes[1]));
    Ok(())
}

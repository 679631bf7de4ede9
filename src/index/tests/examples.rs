//! Worked examples, and the assertions of Kafka's own tests about reading.

use super::*;
use crate::error::Error;
use crate::index::AbortedTransaction;

const FIVE: [(i64, i32); 5] = [(6, 156), (14, 459), (22, 656), (26, 838), (31, 1050)];

#[test]
fn lookup_is_the_last_entry_at_or_below_the_target() {
    let sample = Sample::new("i", &offset_bytes(0, &FIVE));
    for index in sample.offset_indexes(0) {
        for method in METHODS {
            assert_eq!(index.lookup(23, method).unwrap(), at(22, 656));
            assert_eq!(index.lookup(22, method).unwrap(), at(22, 656));
            assert_eq!(index.lookup(21, method).unwrap(), at(14, 459));
            assert_eq!(index.lookup(i64::MAX, method).unwrap(), at(31, 1050));
            assert_eq!(index.slot_range(23, method).unwrap(), (2, 3));
            assert_eq!(index.slot_range(22, method).unwrap(), (2, 2));
            assert_eq!(index.slot_range(6, method).unwrap(), (0, 1));
            assert_eq!(index.slot_range(5, method).unwrap(), (-1, 0));
            assert_eq!(index.slot_range(32, method).unwrap(), (4, -1));
        }
    }
    let sample = Sample::new("i", &offset_bytes(90, &[(100, 4000), (110, 8200), (120, 13000), (130, 18000)]));
    for index in sample.offset_indexes(90) {
        assert_eq!(index.lookup(115, Method::Warm).unwrap(), at(110, 8200));
    }
}

#[test]
fn lookup_below_the_first_entry_is_the_base_offset() {
    let sample = Sample::new("i", &offset_bytes(0, &FIVE));
    for index in sample.offset_indexes(0) {
        for target in [5, 0, -1, i64::MIN] {
            assert_eq!(index.lookup(target, Method::Warm).unwrap(), at(0, 0));
        }
    }
}

#[test]
fn a_slot_holds_the_offset_relative_to_the_base() {
    let bytes = offset_bytes(32, &[(35, 700)]);
    assert_eq!(bytes, [0, 0, 0, 3, 0, 0, 2, 188]);
    for index in Sample::new("00000000000000000032.index", &bytes).offset_indexes(32) {
        assert_eq!(index.entry(0).unwrap(), at(35, 700));
    }
}

#[test]
fn a_time_is_found_through_both_indexes() {
    let times = time_bytes(0, &[(1_526_384_718_270, 14), (1_526_384_718_283, 28), (1_526_384_718_290, 31)]);
    let (times, offsets) = (Sample::new("t", &times), Sample::new("i", &offset_bytes(0, &FIVE)));
    for (times, offsets) in times.time_indexes(0).iter().zip(&offsets.offset_indexes(0)) {
        let found = times.lookup(1_526_384_718_288, Method::Warm).unwrap();
        assert_eq!(found, when(1_526_384_718_283, 28));
        assert_eq!(offsets.lookup(found.offset, Method::Warm).unwrap(), at(26, 838));
    }
}

#[test]
fn documented_bytes_decode() {
    for index in Sample::new("i", &hex("00000006000000000000000700001000")).offset_indexes(45) {
        let entries: Vec<_> = index.iter().map(Result::unwrap).collect();
        assert_eq!(entries, [at(51, 0), at(52, 4096)]);
        assert_eq!(index.last_entry(), at(52, 4096));
        assert_eq!((index.entries(), index.max_entries(), index.entry_size()), (2, 2, 8));
        assert!(index.is_full());
        index.sanity_check().unwrap();
    }
    for index in Sample::new("t", &hex("00000000000003e800000006")).time_indexes(45) {
        assert_eq!(index.iter().map(Result::unwrap).collect::<Vec<_>>(), [when(1000, 51)]);
        assert_eq!(index.last_entry(), when(1000, 51));
        assert_eq!((index.entries(), index.max_entries(), index.entry_size()), (1, 1, 12));
        index.sanity_check().unwrap();
    }
    let entry = "000000000000000000010000000000000000000000000000001d0000000000000008";
    for index in Sample::new("x", &hex(entry)).transaction_indexes(0) {
        let expected =
            AbortedTransaction { producer_id: 1, first_offset: 0, last_offset: 29, last_stable_offset: 8 };
        assert_eq!(index.iter().map(Result::unwrap).collect::<Vec<_>>(), [expected]);
        assert_eq!(index.last_entry().unwrap(), Some(expected));
        assert_eq!((index.entries(), index.entry_size()), (1, 34));
    }
}

#[test]
fn a_lookup_in_an_empty_index_is_the_base_offset() {
    let sample = Sample::new("i", &[]);
    for index in sample.offset_indexes(45) {
        assert_eq!(index.lookup(92, Method::Warm).unwrap(), at(45, 0));
        assert_eq!(index.lookup(45, Method::Binary).unwrap(), at(45, 0));
        assert_eq!(index.last_entry(), at(45, 0));
        assert_eq!(index.slot_range(45, Method::Warm).unwrap(), (-1, -1));
        assert_eq!(index.fetch_upper_bound(0, 5).unwrap(), None);
        assert!(index.trace(45, Method::Warm).unwrap().is_empty());
        assert_eq!((index.entries(), index.max_index_size()), (0, 0));
        assert!(index.is_full());
        assert!(matches!(index.entry(0), Err(Error::Config { .. })));
        index.sanity_check().unwrap();
    }
    for index in sample.time_indexes(45) {
        assert_eq!(index.lookup(100, Method::Warm).unwrap(), when(-1, 45));
        assert_eq!(index.last_entry(), when(-1, 45));
        assert_eq!(index.slot_range(45, Method::Binary).unwrap(), (-1, -1));
        assert!(index.trace(45, Method::Binary).unwrap().is_empty());
        assert!(index.is_full());
        assert!(matches!(index.entry(0), Err(Error::Config { .. })));
        index.sanity_check().unwrap();
    }
    for index in sample.transaction_indexes(45) {
        assert_eq!(index.last_entry().unwrap(), None);
        assert_eq!(index.collect_aborted(0, 100).unwrap(), (vec![], false));
        assert!(matches!(index.entry(0), Err(Error::Config { .. })));
        index.sanity_check().unwrap();
    }
}

#[test]
fn lookup_at_the_extremes_of_thirty_entries() {
    let entries: Vec<_> = (0..30).map(|i| (46 + i64::from(i), i)).collect();
    for index in Sample::new("i", &offset_bytes(45, &entries)).offset_indexes(45) {
        for method in METHODS {
            assert_eq!(index.lookup(45, method).unwrap(), at(45, 0));
            assert_eq!(index.lookup(75, method).unwrap(), at(75, 29));
        }
        assert!(matches!(index.entry(30), Err(Error::Config { .. })));
        assert!(matches!(index.entry(u64::MAX), Err(Error::Config { .. })));
    }
}

#[test]
fn the_first_entry_may_be_the_base_offset() {
    let entries: Vec<_> = (0..20).map(|i| (45 + i64::from(i), i)).collect();
    for index in Sample::new("i", &offset_bytes(45, &entries)).offset_indexes(45) {
        assert_eq!(index.entries(), 20);
        assert_eq!(index.entry(0).unwrap(), at(45, 0));
        assert_eq!(index.entry(19).unwrap(), at(64, 19));
    }
    for index in Sample::new("i", &offset_bytes(20, &[(20, 0)])).offset_indexes(20) {
        index.sanity_check().unwrap();
        assert_eq!(index.last_entry(), at(20, 0));
    }
}

#[test]
fn the_upper_bound_of_a_fetch_is_found_by_position() {
    let entries = [(45, 0), (46, 10), (47, 23), (48, 37)];
    for index in Sample::new("i", &offset_bytes(45, &entries)).offset_indexes(45) {
        let bound =
            |position, size| index.fetch_upper_bound(position, size).unwrap().map(|entry| entry.offset);
        assert_eq!([bound(0, 5), bound(0, 10), bound(0, 22), bound(0, 23)], [46, 46, 47, 47].map(Some));
        assert_eq!(bound(10, 24), Some(48));
        assert_eq!([bound(37, 1), bound(0, 200), bound(10, 200)], [None; 3]);
        // 32 bits: the sum is negative, so below every position
        assert_eq!(bound(10, i32::MAX), Some(45));
        // the first position is never tested for equality
        assert_eq!(bound(0, 0), Some(46));
    }
}

#[test]
fn time_lookup_takes_the_last_timestamp_at_or_below_the_target() {
    let entries: Vec<_> = (1..30).map(|i| (10 * i, 45 + 10 * i)).collect();
    for index in Sample::new("t", &time_bytes(45, &entries)).time_indexes(45) {
        for method in METHODS {
            assert_eq!(index.lookup(9, method).unwrap(), when(-1, 45));
            assert_eq!(index.lookup(25, method).unwrap(), when(20, 65));
            assert_eq!(index.lookup(30, method).unwrap(), when(30, 75));
            assert_eq!(index.lookup(i64::MIN, method).unwrap(), when(-1, 45));
            assert_eq!(index.lookup(i64::MAX, method).unwrap(), when(290, 335));
        }
        let first: Vec<_> = (0..4).map(|n| index.entry(n).unwrap()).collect();
        assert_eq!(first, [when(10, 55), when(20, 65), when(30, 75), when(40, 85)]);
        assert_eq!(index.last_entry(), when(290, 335));
        index.sanity_check().unwrap();
    }
}

#[test]
fn a_time_index_is_full_one_entry_early() {
    let mut bytes = time_bytes(45, &(1..30).map(|i| (10 * i, 45 + 10 * i)).collect::<Vec<_>>());
    bytes.extend([0; 12]);
    let [mapped, positional] = Sample::new("t", &bytes).time_indexes(45);
    assert!(mapped.is_full() && positional.is_full());
    bytes.extend([0; 12]);
    let [mapped, positional] = Sample::new("t", &bytes).time_indexes(45);
    assert!(!mapped.is_full() && !positional.is_full());
    assert_eq!((mapped.entries(), mapped.max_entries()), (29, 31));
}

#[test]
fn an_offset_index_is_full_when_no_slot_is_left() {
    let bytes = offset_bytes(0, &FIVE);
    assert!(Sample::new("i", &bytes).offset_indexes(0)[0].is_full());
    let [mapped, positional] = Sample::new("i", &[bytes, vec![0; 8]].concat()).offset_indexes(0);
    assert!(!mapped.is_full() && !positional.is_full());
}

#[test]
fn aborted_transactions_are_collected_up_to_the_stable_offset() {
    let fields = [[0, 0, 10, 11], [1, 5, 15, 13], [2, 18, 35, 25], [3, 32, 50, 40]];
    let entries = fields.map(|[producer_id, first_offset, last_offset, last_stable_offset]| {
        AbortedTransaction { producer_id, first_offset, last_offset, last_stable_offset }
    });
    let sample = Sample::new("x", &transaction_bytes(&fields));
    for index in sample.transaction_indexes(0) {
        let collect = |from, to| index.collect_aborted(from, to).unwrap();
        assert_eq!(collect(0, 100), (entries.to_vec(), false));
        assert_eq!(collect(0, 32), (entries[..3].to_vec(), true));
        assert_eq!(collect(0, 35), (entries.to_vec(), true));
        assert_eq!(collect(10, 35), (entries.to_vec(), true));
        assert_eq!(collect(11, 35), (entries[1..].to_vec(), true));
        assert_eq!(collect(20, 41), (entries[2..].to_vec(), false));
        index.sanity_check().unwrap();
    }
    for index in sample.transaction_indexes(100) {
        let error = index.sanity_check().unwrap_err();
        assert_eq!((error.code(), error.position(), error.offset()), ("corrupt", Some(0), Some(10)));
    }
    let fields = [983_493, 137, 299, 200];
    let entry = Sample::new("x", &transaction_bytes(&[fields])).transaction_indexes(0)[1].entry(0).unwrap();
    let found = [entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset];
    assert_eq!(found, fields);
}

#[test]
fn the_base_offset_is_in_the_name_or_given() {
    let bytes = offset_bytes(400, &[(422, 2904)]);
    for name in ["00000000000000000400.index", "00000000000000000400.index.deleted", "400", "400-copy"] {
        let sample = Sample::new(name, &bytes);
        let index = OffsetIndex::open(&sample.path, None, true).unwrap();
        assert_eq!((index.base_offset(), index.last_entry()), (400, at(422, 2904)));
        assert_eq!(index.path(), sample.path);
        assert_eq!(OffsetIndex::open(&sample.path, Some(7), true).unwrap().last_entry(), at(29, 2904));
    }
    for name in ["copy.index", ".index", "-5.index", "99999999999999999999.index"] {
        let sample = Sample::new(name, &bytes);
        let error = OffsetIndex::open(&sample.path, None, true).unwrap_err();
        assert!(error.to_string().starts_with("base_offset: expected an offset"), "{error}");
    }
    for name in ["copy", "-5", "99999999999999999999"] {
        let sample = Sample::new(name, &bytes);
        for error in [
            OffsetIndex::open(&sample.path, None, true).unwrap_err(),
            TimeIndex::open(&sample.path, None, true).unwrap_err(),
            TransactionIndex::open(&sample.path, None, true).unwrap_err(),
            OffsetIndex::open(&sample.path, Some(-1), true).unwrap_err(),
        ] {
            assert!(error.to_string().starts_with("base_offset: expected an offset"), "{error}");
        }
    }
    let sample = Sample::new("0.index", &bytes);
    assert!(matches!(OffsetIndex::open(&sample.path.join("x"), Some(0), true), Err(Error::Io { .. })));
}

#[test]
fn sizes_count_whole_entries() {
    let sample = Sample::new("0", &[1; 67]);
    assert_eq!(sample.offset_indexes(0).map(|index| index.max_index_size()), [64; 2]);
    assert_eq!(sample.time_indexes(0).map(|index| index.max_index_size()), [60; 2]);
    let file = std::fs::File::options().write(true).open(&sample.path).unwrap();
    file.set_len(1_234_567).unwrap();
    assert_eq!(sample.offset_indexes(0).map(|index| index.max_index_size()), [1_234_560; 2]);
}

#[test]
fn a_warm_search_does_not_read_old_pages() {
    // (full pages, binary, warm) for the newest entry
    let examples =
        [(13, vec![0, 6, 9, 11, 12], vec![10, 11, 12]), (14, vec![0, 7, 10, 12, 13], vec![11, 12, 13])];
    for (pages, binary, warm) in examples {
        let entries: Vec<_> = (1..=pages * 512).map(|n| (n, 4096)).collect();
        for index in Sample::new("i", &offset_bytes(0, &entries)).offset_indexes(0) {
            let newest = index.last_entry().offset;
            assert_eq!(index.trace(newest, Method::Binary).unwrap(), binary);
            assert_eq!(index.trace(newest, Method::Warm).unwrap(), warm);
            // the oldest entry: the section's first page, then the plain search's
            assert_eq!(index.trace(1, Method::Warm).unwrap()[..2], [warm[0], 0]);
            assert_eq!(index.trace(0, Method::Binary).unwrap(), [0]);
        }
    }
}

#[test]
fn a_learned_search_reads_the_page_of_the_entry_and_none_for_the_last_entry() {
    let entries: Vec<_> = (1..=13 * 512).map(|n| (n, 4096)).collect();
    for index in Sample::new("i", &offset_bytes(0, &entries)).offset_indexes(0) {
        assert_eq!(
            index.trace(3000, Method::Learned).unwrap(),
            [5],
            "evenly spaced, before there is a model"
        );
        for target in 0..=6656 / 256 {
            index.lookup(target, Method::Learned).unwrap();
        }
        for (slot, (offset, _)) in (0..).zip(&entries[..6655]) {
            assert_eq!(index.trace(*offset, Method::Learned).unwrap(), [slot / 512]);
        }
        for target in [6656, i64::MAX] {
            assert!(index.trace(target, Method::Learned).unwrap().is_empty());
        }
        assert!(index.trace(0, Method::Learned).unwrap().is_empty());
    }
}

#[test]
fn a_learned_search_of_a_time_index_reads_at_most_two_pages() {
    // ever larger distances, and now and then a jump
    let time = |n: i64| 1_700_000_000_000 + n * n + (n / 700) * 1_000_000_000;
    let entries: Vec<_> = (1..=20_000).map(|n| (time(n), n)).collect();
    for index in Sample::new("t", &time_bytes(0, &entries)).time_indexes(0) {
        for target in 0..=20_000 / 256 {
            index.lookup(target, Method::Learned).unwrap();
        }
        let mut most = 0;
        for (timestamp, offset) in &entries[..19_999] {
            for target in [*timestamp, timestamp + 1] {
                assert_eq!(index.lookup(target, Method::Learned).unwrap(), when(*timestamp, *offset));
                most = most.max(index.trace(target, Method::Learned).unwrap().len());
            }
        }
        assert_eq!(most, 2);
    }
}

#[test]
fn a_time_entry_across_two_pages_is_traced_and_read_as_both() {
    let entries: Vec<_> = (1..=1000).map(|n| (1_700_000_000_000 + n, n)).collect();
    for index in Sample::new("t", &time_bytes(0, &entries)).time_indexes(0) {
        // slot 341: bytes 4,092 to 4,104
        assert_eq!(index.entry(341).unwrap(), when(1_700_000_000_342, 342));
        assert_eq!(index.lookup(1_700_000_000_342, Method::Warm).unwrap(), when(1_700_000_000_342, 342));
        assert_eq!(index.trace(1_700_000_000_342, Method::Warm).unwrap(), [0, 1]);
    }
}

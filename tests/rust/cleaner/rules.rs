//! The behaviours of Kafka's `LogCleanerTest`, `LogCleanerManagerTest` and of `MemoryRecordsTest` on
//! `filterTo`, by their names there.

use cordwood::cleaner::{CleaningBound, CompactionOptions, CompactionState, plan_compaction};
use cordwood::config::LogConfig;
use cordwood::record::BatchHeader;
use cordwood::types::IsolationLevel;
use cordwood::writer::LogWriter;

use super::case::{Case, NOW, RETENTION_MS};
use crate::support::batches::{ABORT, BatchV2, COMMIT, Codec, MessageSet, Rec};

#[test]
fn cleaning_keeps_the_last_record_of_each_key_and_the_active_segment() {
    let mut case = Case::new(|_| ());
    for key in [1, 2, 3, 1, 2, 1] {
        case.keys(&[key]);
    }
    case.roll();
    case.keys(&[3]);
    let compaction = case.compact();
    assert_eq!((compaction.end_offset, compaction.is_complete(), compaction.keys), (6, true, 3));
    assert_eq!(compaction.segments.iter().map(|segment| segment.records_after).sum::<u64>(), 3);
    // the active segment is not cleaned, and its keys are not known
    assert_eq!(
        case.read(IsolationLevel::ReadUncommitted).iter().map(|(offset, _)| *offset).collect::<Vec<_>>(),
        [2, 4, 5, 6]
    );
    assert_eq!(case.plan().state, CompactionState::Clean);
}

#[test]
fn a_pass_with_two_slots_ends_where_the_map_is_full() {
    // Kafka's test has a load factor of 0.75: (2, 3, 4) with two slots
    let mut case = Case::new(|_| ());
    for key in [0, 1, 0, 1, 0] {
        case.keys(&[key]);
    }
    case.roll();
    let ends: Vec<_> = (0..5).map(|_| case.compact_at(NOW, 48).end_offset).collect();
    assert_eq!(ends, [1, 2, 3, 4, 5]);
    assert_eq!(case.keys_left(), [1, 0]);
}

#[test]
fn records_without_a_key_are_removed_and_counted() {
    let mut case = Case::new(|_| ());
    case.put(&case.batch().records([Rec::at(NOW).value("a"), Rec::at(NOW).key("1").value("b")]));
    case.put(&case.batch().record(Rec::at(NOW).value("c")));
    case.roll();
    let [segment] = case.compact().segments[..] else { panic!() };
    assert_eq!((segment.records_before, segment.records_after), (3, 1));
    // the last batch of the range remains, empty
    let counts: Vec<_> = case.headers().iter().map(|header| header.count).collect();
    assert_eq!(counts, [Some(1), Some(0)]);
}

#[test]
fn a_tombstone_remains_until_its_delete_horizon() {
    let mut case = Case::new(|_| ());
    case.keys(&[1, 2]);
    case.tombstone(1);
    case.roll();
    case.compact();
    let horizons: Vec<_> = case.headers().iter().map(BatchHeader::delete_horizon).collect();
    assert_eq!(horizons, [None, Some(NOW + RETENTION_MS)]);
    assert_eq!(case.keys_left(), [2, 1]);
    case.compact_again(NOW + RETENTION_MS - 1);
    assert_eq!(case.keys_left(), [2, 1]);
    case.compact_again(NOW + RETENTION_MS);
    assert_eq!(case.keys_left(), [2]);
}

#[test]
fn aborted_records_are_removed_and_their_marker_after_the_horizon() {
    let mut case = Case::new(|_| ());
    case.keys(&[1, 2]);
    case.in_transaction(7, 0, &[1]);
    case.in_transaction(7, 1, &[2]);
    case.end(ABORT, 7);
    case.keys(&[3]);
    case.roll();
    case.compact();
    assert_eq!(case.keys_left(), [1, 2, 3]);
    // the last batch of the producer remains, empty, and the marker with its entry
    assert_eq!((case.markers(), case.aborted()), (vec![4], vec![(7, 2, 4)]));
    let empty: Vec<_> = case
        .headers()
        .iter()
        .filter(|header| header.count == Some(0))
        .map(|header| header.last_offset)
        .collect();
    assert_eq!(empty, [3]);
    for now in [NOW, NOW + RETENTION_MS + 1, NOW + 3 * RETENTION_MS] {
        case.compact_again(now);
        // while a batch of the transaction is there
        assert_eq!((case.markers(), case.aborted()), (vec![4], vec![(7, 2, 4)]));
    }
    // the producer's next batch is its last: the empty one goes, and then the marker
    case.in_transaction(7, 2, &[5]);
    case.end(COMMIT, 7);
    case.compact_again(NOW + 4 * RETENTION_MS);
    assert_eq!((case.markers().contains(&4), case.aborted()), (true, vec![(7, 2, 4)]));
    case.compact_again(NOW + 5 * RETENTION_MS);
    assert_eq!((case.markers().contains(&4), case.aborted()), (true, vec![]));
    case.compact_again(NOW + 6 * RETENTION_MS);
    assert!(!case.markers().contains(&4));
}

#[test]
fn a_commit_marker_is_removed_after_the_records_of_its_transaction_and_the_horizon() {
    let mut case = Case::new(|config| config.delete_retention_ms = RETENTION_MS);
    case.in_transaction(7, 0, &[1, 2]);
    case.end(COMMIT, 7);
    case.in_transaction(7, 2, &[2]);
    case.end(COMMIT, 7);
    case.roll();
    case.compact();
    assert_eq!((case.keys_left(), case.markers()), (vec![1, 2], vec![2, 4]));
    case.keys(&[1]);
    case.roll();
    // removes the first record of the transaction; its marker gets a horizon in the pass after that
    for (now, markers) in [
        (NOW, vec![2, 4]),
        (NOW + 1, vec![2, 4]),
        (NOW + RETENTION_MS, vec![2, 4]),
        (NOW + RETENTION_MS + 1, vec![4]),
    ] {
        case.compact_again(now);
        assert_eq!(case.markers(), markers, "{}", now - NOW);
        assert_eq!(case.keys_left(), [2, 1]);
    }
}

#[test]
fn records_of_an_open_transaction_are_not_cleaned() {
    let mut case = Case::new(|_| ());
    case.keys(&[1, 1]);
    case.roll();
    case.in_transaction(7, 0, &[1]);
    case.roll();
    case.keys(&[2, 2]);
    case.roll();
    let compaction = case.compact();
    assert_eq!((compaction.first_uncleanable_offset, compaction.bound), (2, CleaningBound::OpenTransaction));
    case.end(ABORT, 7);
    let compaction = case.compact_again(NOW);
    assert_eq!((compaction.first_dirty_offset, compaction.bound), (2, CleaningBound::ActiveSegment));
    assert_eq!(case.keys_left(), [1, 2]);
}

#[test]
fn young_records_are_not_cleaned() {
    let mut case = Case::new(|config| config.min_compaction_lag_ms = 3_600_000);
    for age in [7_200_000, 3_600_001, 3_600_000, 3_599_999] {
        case.put(&case.batch().record(Rec::at(NOW - age).key("1").value("v")));
        case.roll();
    }
    let plan = case.plan();
    // strictly younger
    assert_eq!((plan.first_uncleanable_offset, plan.bound), (3, CleaningBound::YoungRecords));
}

#[test]
fn a_log_is_compacted_above_the_ratio_or_after_the_largest_lag() {
    let mut case = Case::new(|config| {
        config.min_cleanable_dirty_ratio = 0.5;
        config.max_compaction_lag_ms = 5000;
    });
    case.keys(&[1, 2]);
    case.roll();
    assert_eq!(case.compact().state, CompactionState::Dirty);
    case.keys(&[1, 2]);
    case.roll();
    let plan = case.plan();
    // exactly a half is not above it
    assert_eq!(
        (plan.clean_bytes, plan.dirty_ratio(), plan.state),
        (plan.cleanable_bytes, 0.5, CompactionState::BelowRatio)
    );
    for (later, state) in [(5000, CompactionState::BelowRatio), (5001, CompactionState::Overdue)] {
        let options = CompactionOptions { now: Some(NOW + later), ..CompactionOptions::default() };
        let plan = plan_compaction(&case.log(), &case.options.config, &options).unwrap();
        assert_eq!(plan.state, state, "{later}");
    }
    let before = case.keys_left();
    assert!(case.compact().segments.is_empty());
    assert_eq!(case.keys_left(), before);
}

#[test]
fn an_impossible_checkpoint_is_replaced_by_the_log_start() {
    let mut case = Case::new(|_| ());
    for _ in 0..3 {
        case.keys(&[1, 2, 3]);
        case.roll();
    }
    assert_eq!(case.compact().end_offset, 9);
    // records below the log start are no longer there
    case.writer.delete_before(9).unwrap();
    case.keys(&[1]);
    case.roll();
    case.writer.delete_before(10).unwrap();
    assert_eq!(case.plan().first_dirty_offset, 10);
    assert_eq!(case.compact().first_dirty_offset, 10);
}

#[test]
fn segments_are_grouped_by_their_sizes_and_offsets() {
    let sizes = |change: fn(&mut LogConfig)| {
        let mut case = Case::new(change);
        for number in 0..6 {
            case.keys(&[number]);
            case.roll();
        }
        let bases: Vec<_> = case.compact().segments.iter().map(|segment| segment.new_base_offset).collect();
        assert_eq!(case.keys_left(), [0, 1, 2, 3, 4, 5]);
        bases
    };
    assert_eq!(sizes(|_| ()), [0; 6]);
    // three batches of 78 bytes
    assert_eq!(sizes(|config| config.segment_bytes = 3 * 80), [0, 0, 0, 3, 3, 3]);
    // one entry of a time index in each
    assert_eq!(sizes(|config| config.segment_index_bytes = 25), [0, 0, 2, 2, 4, 4]);
    let mut case = Case::new(|_| ());
    case.keys(&[1]);
    case.put(&BatchV2::new(1 << 32).leader_epoch(0).record(Rec::at(NOW).key("2").value("v")));
    case.roll();
    let bases: Vec<_> = case.compact().segments.iter().map(|segment| segment.new_base_offset).collect();
    assert_eq!(bases.len(), 2, "{bases:?}");
    assert_eq!(case.keys_left(), [1, 2]);
}

#[test]
fn a_batch_that_loses_records_keeps_its_offsets_sequences_and_producer() {
    for codec in Codec::ALL {
        let mut case = Case::new(|_| ());
        let records =
            (0..4).map(|key| Rec::at(NOW + key).key(key.to_string()).value("v").header("h", Some(b"x")));
        case.put(&case.batch().codec(codec).producer(9, 2, 5).records(records.collect::<Vec<_>>()));
        case.keys(&[0, 3]);
        case.roll();
        let before = case.headers()[0];
        case.compact();
        let after = case.headers()[0];
        assert_eq!(
            BatchHeader { size: 0, crc: 0, count: None, base_timestamp: None, max_timestamp: 0, ..after },
            BatchHeader { size: 0, crc: 0, count: None, base_timestamp: None, max_timestamp: 0, ..before },
        );
        assert_eq!(
            (after.count, after.base_timestamp, after.max_timestamp),
            (Some(2), Some(NOW + 1), NOW + 2)
        );
        assert_eq!(
            case.read(IsolationLevel::ReadUncommitted)[..2],
            [(1, "1".to_owned()), (2, "2".to_owned())]
        );
    }
}

#[test]
fn the_time_of_the_log_is_kept() {
    let mut case = Case::new(|_| ());
    let records = [1, 2].map(|key| Rec::at(5).key(key.to_string()).value("v"));
    case.put(&case.batch().log_append_time(NOW).records(records));
    case.keys(&[1]);
    case.roll();
    let before = case.headers()[0];
    case.compact();
    let after = case.headers()[0];
    assert_eq!((after.timestamp_type(), after.max_timestamp), (before.timestamp_type(), NOW));
    assert_eq!(after.base_timestamp, Some(NOW));
}

#[test]
fn batches_of_old_formats_become_batches_of_magic_2() {
    let mut case = Case::new(|_| ());
    case.writer.close().unwrap();
    let records = || (0..3).map(|key| Rec::at(NOW).key(key.to_string()).value("v"));
    let wrapper: Vec<u8> = MessageSet::v1(0)
        .codec(Codec::Gzip)
        .records(records())
        .build()
        .into_iter()
        .flat_map(|built| built.bytes)
        .collect();
    let plain: Vec<u8> =
        MessageSet::v0(3).records(records()).build().into_iter().flat_map(|built| built.bytes).collect();
    std::fs::write(case.path().join("00000000000000000000.log"), [wrapper, plain].concat()).unwrap();
    for kind in ["index", "timeindex"] {
        std::fs::remove_file(case.path().join(format!("00000000000000000000.{kind}"))).unwrap();
    }
    std::fs::remove_file(case.path().join(".cordwood.clean")).unwrap();
    case.writer = LogWriter::open(case.path(), &case.options).unwrap();
    assert_eq!(case.writer.log_end_offset(), 6);
    case.roll();
    case.compact();
    let found: Vec<_> = case
        .headers()
        .iter()
        .map(|header| (header.magic, header.base_offset, header.max_timestamp))
        .collect();
    assert_eq!(found, [(2, 3, -1), (2, 4, -1), (2, 5, -1)]);
    assert_eq!(case.keys_left(), [0, 1, 2]);
}

#[test]
fn a_damaged_batch_is_an_error_and_nothing_changes() {
    let mut case = Case::new(|_| ());
    case.keys(&[1, 1]);
    case.roll();
    case.keys(&[1, 1]);
    case.roll();
    let damaged = case.path().join("00000000000000000002.log");
    let mut bytes = std::fs::read(&damaged).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    let before = case.path().join("00000000000000000000.log");
    let contents = std::fs::read(&before).unwrap();
    let options = CompactionOptions { now: Some(NOW), ..CompactionOptions::default() };
    assert!(matches!(case.writer.compact(&options), Err(cordwood::Error::Corrupt { .. })));
    assert_eq!(std::fs::read(&before).unwrap(), contents);
    let names: Vec<_> =
        std::fs::read_dir(case.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        !names
            .iter()
            .any(|name| name.to_str().unwrap().ends_with(".cleaned")
                && !name.to_str().unwrap().starts_with('.'))
    );
    // the writer continues
    case.keys(&[2]);
}

#[test]
fn an_aborted_transaction_below_the_log_start_does_not_become_an_open_one() {
    let mut case = Case::new(|_| ());
    case.in_transaction(7, 0, &[1]);
    case.end(ABORT, 7);
    case.in_transaction(7, 1, &[1]);
    case.end(COMMIT, 7);
    case.keys(&[2]);
    case.writer.delete_before(3).unwrap();
    case.roll();
    for round in 0..5 {
        case.compact_again(NOW + round * (RETENTION_MS + 1));
        assert_eq!(case.log().last_stable_offset().unwrap(), case.writer.log_end_offset());
        assert_eq!(case.keys_left(), [2]);
    }
    assert_eq!(case.markers(), [3]);
}

/// `testCleanTombstone`.
#[test]
fn the_timestamp_of_a_tombstone_does_not_shorten_its_retention() {
    let mut case = Case::new(|_| ());
    let at = |timestamp| Rec::at(timestamp).key("0");
    case.put(&case.batch().record(at(NOW + RETENTION_MS + 10_000).value("0")));
    case.roll();
    case.compact();
    case.put(&case.batch().record(at(NOW - RETENTION_MS - 10_000)));
    case.roll();
    case.compact();
    assert_eq!(case.headers()[0].last_offset, 1);
    case.keys(&[1]);
    case.roll();
    case.compact();
    assert_eq!(case.headers()[0].last_offset, 1);
}

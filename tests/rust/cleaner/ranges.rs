//! What is cleaned, up to where, and what is stored of it: the behaviours of Kafka's `LogCleanerManagerTest`,
//! and of `LogCleanerTest` on offset maps and groups, by their names there.

use cordwood::cleaner::{CleaningBound, CompactionState};
use cordwood::config::LogConfig;

use super::case::{ALL, Case, NOW, memory_for};
use crate::support::batches::{ABORT, BatchV2, Built, Rec};

const LAG_MS: i64 = 3_600_000;
const FAR: i64 = i32::MAX as i64;

/// Twenty records in segments of one, five, five, five and four, and an active segment.
fn filthy(change: impl FnOnce(&mut LogConfig)) -> Case {
    let mut case = Case::in_data_directory(change);
    for number in 0..20 {
        case.keys(&[number]);
        if number % 5 == 0 {
            case.roll();
        }
    }
    case.roll();
    assert_eq!(case.segments(), [0, 1, 6, 11, 16, 20]);
    case
}

fn at(case: &mut Case, key: i64, timestamp: i64) {
    case.put(&case.batch().record(Rec::at(timestamp).key(key.to_string()).value("v")));
}

fn one(offset: i64) -> Built {
    BatchV2::new(offset).record(Rec::at(NOW).key("1").value("v")).build()
}

/// The size of each segment.
fn sizes(case: &Case) -> Vec<u64> {
    case.log().segments().iter().map(|segment| segment.size().unwrap()).collect()
}

/// `testDirtyOffsetResetIfLargerThanEndOffset`, `testDirtyOffsetResetIfSmallerThanStartOffset`.
#[test]
fn a_checkpoint_outside_the_log_counts_as_the_log_start() {
    let case = filthy(|_| ());
    case.set_checkpoint(200);
    assert_eq!(case.plan().first_dirty_offset, 0);
    let mut case = filthy(|_| ());
    case.writer.delete_before(10).unwrap();
    case.set_checkpoint(0);
    assert_eq!(case.plan().first_dirty_offset, 10);
}

/// `testLogStartOffsetLargerThanActiveSegmentBaseOffset`, `testDirtyOffsetLargerThanActiveSegmentBaseOffset`.
#[test]
fn nothing_in_the_active_segment_is_dirty() {
    let of_three = |batches: usize| {
        let mut case = Case::in_data_directory(|_| ());
        (0..batches).for_each(|_| case.keys(&[1, 2, 3]));
        case
    };
    let mut case = of_three(3);
    case.writer.delete_before(2).unwrap();
    case.set_checkpoint(0);
    assert_eq!((case.plan().state, case.plan().first_dirty_offset), (CompactionState::Clean, 2));
    let mut case = of_three(2);
    case.set_checkpoint(3);
    let compaction = case.compact();
    assert_eq!((compaction.state, compaction.first_dirty_offset), (CompactionState::Clean, 3));
    assert_eq!(compaction.first_uncleanable_offset, 0);
    assert_eq!(case.keys_in_log(), [1, 2, 3, 1, 2, 3]);
}

/// `testCleanableOffsetsNeedsCheckpointReset`, `testCheckpointUpdatedForInvalidOffsetNoCleaning`,
/// `testCheckpointUpdatedForInvalidOffsetNotSelected`.
#[test]
fn an_impossible_checkpoint_is_replaced_also_if_nothing_is_cleaned() {
    let line = |offset: i64| format!("0\n1\norders 0 {offset}\n");
    let mut case = filthy(|config| config.min_cleanable_dirty_ratio = 1.0);
    case.writer.delete_before(10).unwrap();
    case.set_checkpoint(15);
    assert_eq!(case.compact().state, CompactionState::BelowRatio);
    assert_eq!(case.checkpoint(), line(15));
    // below the log start, and too clean
    case.set_checkpoint(9);
    case.writer.delete_before(15).unwrap();
    assert_eq!(case.compact().state, CompactionState::BelowRatio);
    assert_eq!(case.checkpoint(), line(15));
    // below the log start, and nothing to clean
    case.writer.delete_before(20).unwrap();
    assert_eq!(case.compact().state, CompactionState::Clean);
    assert_eq!(case.checkpoint(), line(20));
    // above the log end
    case.set_checkpoint(25);
    assert_eq!(case.compact().first_dirty_offset, 20);
    assert_eq!(case.checkpoint(), line(20));
}

/// `testMaybeTruncateCheckpointShouldTruncateData`, `testUpdateCheckpointsShouldAddOffsetToPartition`.
#[test]
fn a_truncation_lowers_a_higher_checkpoint_to_the_active_segment() {
    let line = |offset: i64| format!("0\n1\norders 0 {offset}\n");
    let mut case = filthy(|_| ());
    case.set_checkpoint(11);
    for (end, active, checkpoint) in [(18, 16, 11), (14, 11, 11), (9, 6, 6), (9, 6, 6), (1, 1, 1)] {
        case.writer.truncate_to(end).unwrap();
        assert_eq!((*case.segments().last().unwrap(), case.checkpoint()), (active, line(checkpoint)));
    }
    let mut case = filthy(|_| ());
    assert_eq!(case.compact().end_offset, 20);
    assert_eq!(case.checkpoint(), line(20));
}

/// `testCleanableOffsetsForTime`, `testCleanableOffsetsForShortTime`, `testCleanableOffsetsActiveSegment`.
#[test]
fn segments_with_a_record_younger_than_the_lag_are_not_cleaned() {
    let mut case = Case::in_data_directory(|config| config.min_compaction_lag_ms = LAG_MS);
    let later = NOW + LAG_MS + 1;
    for number in 0..16 {
        at(&mut case, number, if number < 7 { NOW } else { later });
        if number % 2 == 1 {
            case.roll();
        }
    }
    case.set_checkpoint(0);
    let plan = case.plan_at(later);
    assert_eq!(
        (plan.first_dirty_offset, plan.first_uncleanable_offset, plan.bound),
        (0, 6, CleaningBound::YoungRecords)
    );
    // all are old enough: the active segment is not cleaned whatever its age
    let plan = case.plan_at(later + LAG_MS + 1);
    assert_eq!((plan.first_uncleanable_offset, plan.bound), (16, CleaningBound::ActiveSegment));
}

/// `testUndecidedTransactionalDataNotCleanable`.
#[test]
fn an_open_transaction_is_not_cleaned_although_it_is_old_enough() {
    let mut case = Case::in_data_directory(|config| config.min_compaction_lag_ms = LAG_MS);
    case.send(15, &[1, 2]);
    case.send(15, &[3]);
    case.roll();
    let ended = NOW + LAG_MS + 1;
    let plan = case.plan_at(ended);
    assert_eq!(
        (plan.first_dirty_offset, plan.first_uncleanable_offset, plan.bound),
        (0, 0, CleaningBound::OpenTransaction)
    );
    assert_eq!(plan.state, CompactionState::Clean);
    case.put(&BatchV2::marker(3, ABORT, 15, 0, ended));
    case.roll();
    assert_eq!(case.plan_at(ended).first_uncleanable_offset, 3);
    // the segment of the marker, when it is old enough
    assert_eq!(case.plan_at(ended + LAG_MS + 1).first_uncleanable_offset, 4);
}

/// `testLogToClean`, `testLogToCleanWithUncleanableSection`.
#[test]
fn clean_and_cleanable_bytes_are_those_of_whole_segments() {
    let mut case = Case::in_data_directory(|config| config.min_compaction_lag_ms = LAG_MS);
    for number in 0..6 {
        if number > 0 {
            case.roll();
        }
        at(&mut case, 1, if number < 4 { NOW - LAG_MS - 1 } else { NOW });
    }
    let sizes = sizes(&case);
    assert_eq!((sizes.len(), case.segments()), (6, (0..6).collect()));
    case.set_checkpoint(2);
    let plan = case.plan();
    assert_eq!((plan.first_uncleanable_offset, plan.bound), (4, CleaningBound::YoungRecords));
    assert_eq!((plan.clean_bytes, plan.cleanable_bytes), (sizes[0] + sizes[1], sizes[2] + sizes[3]));
    // of segments with one size
    assert!((plan.dirty_ratio() - 0.5).abs() < 1e-6 && sizes[..4] == [sizes[0]; 4]);
    // all is clean
    case.set_checkpoint(5);
    let plan = case.plan_at(NOW + LAG_MS + 1);
    assert_eq!((plan.clean_bytes, plan.cleanable_bytes), (sizes[..5].iter().sum(), 0));
    assert!(plan.dirty_ratio().abs() < f64::EPSILON);
}

/// `testCleaningWithUncleanableSection`.
#[test]
fn segments_above_the_bound_are_not_changed() {
    let mut case = Case::in_data_directory(|config| config.min_compaction_lag_ms = LAG_MS);
    for segment in 0..6 {
        for number in 0..15 {
            at(&mut case, number % 10, if segment < 2 { NOW - LAG_MS - 1 } else { NOW });
        }
        case.roll();
    }
    let of = |case: &Case, base: i64| std::fs::read(case.path().join(format!("{base:020}.log"))).unwrap();
    let before: Vec<_> = case.segments().into_iter().skip(2).map(|base| (base, of(&case, base))).collect();
    assert_eq!(case.compact().end_offset, 30);
    assert_eq!(case.keys_in_log()[..10], [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]);
    assert_eq!(case.keys_in_log().len(), 10 + 4 * 15);
    for (base, bytes) in before {
        assert!(of(&case, base) == bytes, "{base}");
    }
}

/// `testPartialSegmentClean`.
#[test]
fn passes_with_memory_for_one_key_make_progress() {
    let mut case = Case::in_data_directory(|_| ());
    for key in [0, 1, 0, 1, 0] {
        case.keys(&[key]);
    }
    case.roll();
    for (first_dirty, keys, offsets) in [
        (2, vec![1, 0, 1, 0], vec![1, 2, 3, 4]),
        (3, vec![0, 1, 0], vec![2, 3, 4]),
        (4, vec![1, 0], vec![3, 4]),
    ] {
        case.compact_from(first_dirty, NOW, memory_for(1));
        assert_eq!((case.keys_in_log(), case.offsets_in_log()), (keys, offsets), "{first_dirty}");
    }
}

/// `testLogCleanerStats`, `testCleanSegments`.
#[test]
fn records_and_bytes_are_counted_before_and_after() {
    let mut case = Case::in_data_directory(|_| ());
    for key in [0, 1, 0, 1, 0] {
        case.keys(&[key]);
    }
    case.roll();
    let size = case.log().size().unwrap();
    let compaction = case.compact_from(2, NOW, memory_for(3));
    assert_eq!((compaction.end_offset, compaction.keys), (5, 2));
    let [segment] = compaction.segments[..] else { panic!() };
    assert_eq!((segment.records_before, segment.records_after), (5, 2));
    assert_eq!((segment.bytes_before, segment.bytes_after), (size, case.log().size().unwrap()));
}

/// `testBuildOffsetMap`, `testBuildOffsetMapFakeLarge`, `testBuildPartialOffsetMap`.
#[test]
fn a_pass_knows_the_keys_from_the_first_dirty_offset_to_its_end() {
    let mut case = Case::in_data_directory(|_| ());
    for key in 0..50 {
        case.keys(&(key * 10..key * 10 + 10).collect::<Vec<_>>());
        if key % 10 == 9 {
            case.roll();
        }
    }
    for (first_dirty, keys) in [(0, 500), (100, 400), (300, 200)] {
        let compaction = case.compact_from(first_dirty, NOW, ALL);
        assert_eq!((compaction.keys, compaction.end_offset), (keys, 500));
    }
    let mut case = Case::in_data_directory(|_| ());
    case.keys(&[0]);
    case.put(&BatchV2::new(7_206_178).record(Rec::at(NOW).key("1").value("v")));
    case.roll();
    let compaction = case.compact();
    assert_eq!((compaction.keys, compaction.end_offset), (2, 7_206_179));
    let mut case = Case::in_data_directory(|_| ());
    for key in 0..5 {
        case.keys(&[key]);
    }
    case.roll();
    let compaction = case.compact_from(2, NOW, memory_for(2));
    assert_eq!((compaction.keys, compaction.end_offset), (2, 4));
}

/// `testCleaningBeyondMissingOffsets`.
#[test]
fn a_pass_ends_at_the_active_segment_although_offsets_before_it_are_missing() {
    let keyed = |offsets: std::ops::Range<i64>| -> Vec<Built> {
        let record = |offset: i64| Rec::at(NOW).key(offset.to_string()).value("v");
        offsets.map(|offset| BatchV2::new(offset).record(record(offset)).build()).collect()
    };
    for segments in [
        vec![(0, keyed(0..10)), (11, keyed(11..12))],
        vec![(0, keyed(0..10)), (15, keyed(15..25)), (30, keyed(30..31))],
    ] {
        let active = segments.last().unwrap().0;
        let mut case = Case::with_segments(&segments);
        let compaction = case.compact();
        assert_eq!((compaction.end_offset, compaction.is_complete()), (active, true));
        assert_eq!(case.plan().state, CompactionState::Clean);
    }
}

/// `testSegmentGroupingWithSparseOffsetsAndEmptySegments`.
#[test]
fn segments_that_have_become_empty_join_the_group_before_them() {
    let last = |number: i64| (number + 1) * (FAR + 1) - 1;
    let segments: Vec<_> =
        (0..3).map(|number| (number * (FAR + 1), vec![one(number * (FAR + 1)), one(last(number))])).collect();
    let segments = [segments, vec![(3 * (FAR + 1), vec![one(3 * (FAR + 1))])]].concat();
    let bases: Vec<_> = segments.iter().map(|(base, _)| *base).collect();
    let mut case = Case::with_segments(&segments);
    let new = |case: &mut Case| -> Vec<i64> {
        let compaction = case.compact_from(0, NOW, ALL);
        compaction.segments.iter().map(|segment| segment.new_base_offset).collect()
    };
    // all records have one key; the last one of the range and that in the active segment remain
    assert_eq!(new(&mut case), bases[..3]);
    assert_eq!((case.segments(), sizes(&case)[..2].to_vec()), (bases.clone(), vec![0, 0]));
    assert_eq!(new(&mut case), [0, 0, bases[2]]);
    assert_eq!(case.segments(), [0, bases[2], bases[3]]);
    assert_eq!(case.offsets_in_log(), [last(2), bases[3]]);
    case.reopen();
    assert_eq!(case.offsets_in_log(), [last(2), bases[3]]);
}

/// `testSegmentGroupingWithSparseOffsets`, `testSegmentGroupingFollowingLoadOfZeroIndex`.
#[test]
fn a_group_spans_at_most_the_offsets_that_its_indexes_can_refer_to() {
    let groups = |segments: &[(i64, Vec<Built>)]| -> Vec<i64> {
        let mut case = Case::with_segments(segments);
        case.compact().segments.iter().map(|segment| segment.new_base_offset).collect()
    };
    let keyed =
        |offset: i64| BatchV2::new(offset).record(Rec::at(NOW).key(offset.to_string()).value("v")).build();
    let active = |offset: i64| (offset, vec![keyed(offset)]);
    let first = (0, vec![keyed(0), keyed(1)]);
    let near = (5, vec![keyed(FAR - 1), keyed(FAR)]);
    assert_eq!(groups(&[first.clone(), near, active(FAR + 1)]), [0, 0]);
    let far = (5, vec![keyed(FAR - 1), keyed(FAR), keyed(FAR + 1)]);
    assert_eq!(groups(&[first.clone(), far.clone(), active(FAR + 2)]), [0, 5]);
    // those after it are grouped again
    let more = (FAR + 2, vec![keyed(FAR + 2)]);
    assert_eq!(groups(&[first.clone(), far, more, active(FAR + 3)]), [0, 5, 5]);
    let half = FAR / 2;
    let beyond = (half, vec![keyed(half), keyed(FAR + 1)]);
    assert_eq!(groups(&[first, beyond, active(FAR + 2)]), [0, half]);
}

/// `testLogsWithSegmentsToDeleteShouldConsiderCleanupPolicyCompactLogs`,
/// `testLogsWithSegmentsToDeleteShouldConsiderCleanupPolicyCompactDeleteLogs`.
#[test]
fn retention_of_a_compacted_log_deletes_what_is_below_the_log_start_and_the_rest_only_with_delete() {
    for delete in [false, true] {
        let mut case = filthy(|config| {
            config.cleanup_policy.delete = delete;
            config.retention_ms = 1;
        });
        let before = case.writer.apply_retention(Some(NOW + 1)).unwrap();
        assert_eq!((before.segments.len(), before.log_start_offset), (0, 0));
        let expired = case.writer.apply_retention(Some(NOW + 2)).unwrap();
        let expected = if delete { vec![0, 1, 6, 11, 16] } else { vec![] };
        assert_eq!((expired.segments, case.keys_in_log().is_empty()), (expected, delete));
        if !delete {
            case.writer.delete_before(6).unwrap();
            assert_eq!(case.segments(), [6, 11, 16, 20]);
        }
    }
}

//! Tasks cover each range exactly once, however it is cut, and have the rows of one task.

use std::path::Path;
use std::sync::Arc;

use cordwood::plan::LogCache;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use crate::support::generated::{self, ALL, steps};
use crate::support::golden;
use crate::support::planning::{Answer, COLUMNS, Cell, asked, cache, offsets, run_json};
use crate::support::reading::{copy, folder};
use crate::support::{fixed_seed, step};

/// The options that cut: bytes, tasks and records.
type Cuts = (Option<u64>, Option<u64>, Option<u64>);

fn cuts() -> impl Strategy<Value = Cuts> {
    let number = |most: u64| proptest::option::of(prop_oneof![1u64..10, 1..most, Just(i64::MAX as u64)]);
    (number(20_000), number(100), number(300))
}

fn with_cuts(mut asked: Value, (bytes, tasks, records): Cuts) -> Value {
    let given = [("maxPartitionBytes", bytes), ("minPartitions", tasks), ("maxRecordsPerPartition", records)];
    for (name, number) in given {
        if let Some(number) = number {
            asked["options"][name] = number.to_string().into();
        }
    }
    asked
}

/// The pieces of each directory are in order and next to each other, up to the ends of the range.
fn check_cover(answer: &Answer) {
    for bounds in &answer.bounds {
        let pieces = answer.tasks.iter().flat_map(|task| &task.pieces);
        let mut ranges: Vec<(i64, i64)> = pieces
            .filter(|piece| piece.directory == bounds.directory)
            .map(|piece| (piece.split.start_offset, piece.split.end_offset))
            .collect();
        ranges.sort_unstable();
        assert!(ranges.iter().all(|(start, end)| start < end), "{ranges:?}");
        let (start, end) = (bounds.start_offset, bounds.end_offset);
        if start == end {
            assert_eq!(ranges, []);
            continue;
        }
        assert_eq!(ranges.first().map(|(start, _)| *start), Some(start), "{ranges:?}");
        assert_eq!(ranges.last().map(|(_, end)| *end), Some(end), "{ranges:?}");
        assert!(ranges.windows(2).all(|pair| pair[0].1 == pair[1].0), "{ranges:?}");
    }
}

/// Compares a plan that is cut with one that is not.
fn compare(logs: &Arc<LogCache>, asked: &Value, cuts: Cuts) -> Answer {
    let whole = run_json(logs, asked).whole();
    let cut_query = with_cuts(asked.clone(), cuts);
    let cut = run_json(logs, &cut_query).whole();
    assert_eq!(cut.sorted(), whole.sorted(), "{cut_query}");
    for task in &cut.tasks {
        // in a task, offsets increase
        let ranges: Vec<_> =
            task.pieces.iter().map(|piece| (&piece.directory, piece.split.start_offset)).collect();
        assert!(ranges.is_sorted(), "{ranges:?}");
    }
    assert!(!cut.tasks.is_empty(), "engines do not accept an empty plan");
    assert!(cut.tasks.is_sorted_by_key(|task| std::cmp::Reverse(task.size())), "the largest first");
    cut
}

fn check_records(cut: &Answer, (_, _, records): Cuts) {
    let most = cut.read.iter().map(|task| task.rows.len()).max().unwrap_or(0);
    assert!(records.is_none_or(|records| most as u64 <= records), "{most} rows in a task");
}

fn query_of(path: &Path, level: &str) -> Value {
    let options = [("columns", COLUMNS), ("isolationLevel", level), ("cleanupPolicy", "compact")];
    asked(path, &options)
}

proptest! {
    #![proptest_config(fixed_seed(40))]

    #[test]
    fn golden_partitions_are_cut_into_tasks_with_the_same_rows(
        picked in any::<Index>(),
        range in any::<(Index, Index)>(),
        cuts in cuts(),
    ) {
        let logs = cache();
        let partitions = golden::intact();
        let partitions: Vec<_> = partitions.iter().filter(|partition| partition.records < 1000).collect();
        let dir = &picked.get(&partitions).dir;
        let mut asked = query_of(dir, "read_uncommitted");
        let whole = &run_json(&logs, &asked).bounds[0];
        if partitions.len() > 1 && whole.end_offset - whole.start_offset < 100_000 {
            let all: Vec<i64> = (whole.start_offset..=whole.end_offset).collect();
            let (one, other) = (*range.0.get(&all), *range.1.get(&all));
            asked["options"]["startingOffsets"] = offsets(dir, one.min(other)).into();
            asked["options"]["endingOffsets"] = offsets(dir, one.max(other)).into();
        }
        let cut = compare(&logs, &asked, cuts);
        check_cover(&cut);
        // a batch with few records and many offsets is not cut
        if !dir.to_str().unwrap().contains("/12-compacted") {
            check_records(&cut, cuts);
        }
    }

    #[test]
    fn generated_partitions_are_cut_into_tasks_with_the_same_rows(
        partitions in proptest::collection::vec(steps(&ALL, 30), 1..4),
        cuts in cuts(),
        level in proptest::sample::select(&["read_uncommitted", "read_committed"][..]),
    ) {
        let (logs, folder) = (cache(), folder());
        for (steps, name) in partitions.iter().zip(["a-0", "ab-1", "a-2"]) {
            generated::write(folder.path(), name, steps, 600);
        }
        let cut = compare(&logs, &query_of(folder.path(), level), cuts);
        check_records(&cut, cuts);
        if level == "read_uncommitted" {
            // a committed plan ends at the last stable offset
            check_cover(&cut);
        }
    }

    #[test]
    fn damage_is_reported_once_however_the_log_is_cut(
        picked in any::<Index>(),
        cuts in cuts(),
        mode in proptest::sample::select(&["DROPMALFORMED", "PERMISSIVE"][..]),
    ) {
        let (logs, cases) = (cache(), golden::damaged());
        let mut asked = query_of(&picked.get(&cases).dir, "read_uncommitted");
        asked["options"]["mode"] = mode.into();
        compare(&logs, &asked, cuts);
    }
}

/// The base offsets of the rows of `table=batches`, sorted.
fn base_offsets(answer: &Answer) -> Vec<i64> {
    const BASE_OFFSET: usize = 5;
    let mut found: Vec<i64> = answer.rows().iter().map(|row| row[BASE_OFFSET].int()).collect();
    found.sort_unstable();
    found
}

#[test]
fn every_batch_is_a_row_once_however_it_is_cut() {
    let logs = cache();
    let mut cut_ones = 0;
    for (number, partition) in golden::intact().into_iter().enumerate() {
        let whole = run_json(&logs, &asked(&partition.dir, &[("table", "batches")])).whole();
        let start = whole.bounds[0].start_offset;
        let expected = golden::expected_batches(&partition.expected);
        let expected = expected.iter().filter(|batch| batch.last_offset >= start);
        let expected: Vec<i64> = expected.map(|batch| batch.base_offset).collect();
        let [records, tasks] = ["maxRecordsPerPartition", "minPartitions"];
        let cuts = [(records, "1"), (tasks, "50"), (records, "2"), (tasks, "1000"), (records, "7")];
        for cut in cuts.into_iter().skip(number % step(2)).step_by(step(2)) {
            let asked = asked(&partition.dir, &[("table", "batches"), cut]);
            let answer = run_json(&logs, &asked).whole();
            assert_eq!(base_offsets(&answer), expected, "{asked}");
            cut_ones += usize::from(answer.tasks.len() > whole.tasks.len());
        }
    }
    assert!(cut_ones > 30, "{cut_ones}");
}

/// The partition of a case.
fn partition_of(case: &str) -> golden::Partition {
    golden::intact().into_iter().find(|partition| partition.case == case).unwrap()
}

#[test]
fn there_are_as_many_tasks_as_min_partitions_if_there_are_enough_records() {
    let logs = cache();
    for (case, most) in [
        ("07-edge-values", 97),
        ("02-gzip", 97),
        // its batches have about four records each, and are not cut further
        ("12-compacted", 51),
        ("17-v1-lz4", 97),
        ("01-plain", 97),
        ("04-lz4", 97),
    ] {
        let partition = partition_of(case);
        let batches = golden::expected_batches(&partition.expected);
        let expected: Vec<Cell> =
            batches.iter().flat_map(|batch| &batch.records).map(|record| record.offset.into()).collect();
        for least in [1, 2, 49, 50, 51, 97].into_iter().filter(|least| *least <= most) {
            assert!(expected.len() > least, "{case} has {} records", expected.len());
            let least = least.to_string();
            let options = [("columns", "offset"), ("minPartitions", &least)];
            let answer = run_json(&logs, &asked(&partition.dir, &options)).whole();
            let found: Vec<Cell> = answer.sorted().into_iter().flatten().collect();
            assert_eq!(found, expected, "{case}: {least}");
            let tasks = answer.tasks.len();
            assert!(tasks >= least.parse().unwrap(), "{case}: {tasks} tasks and not {least}");
        }
    }
}

/// Parts of more than one partition together reach the number.
#[test]
fn partitions_share_the_tasks_of_min_partitions() {
    let (logs, folder) = (cache(), folder());
    for case in ["02-gzip", "07-edge-values", "17-v1-lz4"] {
        let partition = partition_of(case);
        copy(&partition.dir, folder.path(), &partition.name);
    }
    let whole = run_json(&logs, &asked(folder.path(), &[("columns", "topic,offset")])).whole();
    for least in [4, 50, 200, 1000] {
        let text = least.to_string();
        let cut = asked(folder.path(), &[("columns", "topic,offset"), ("minPartitions", &text)]);
        let cut = run_json(&logs, &cut).whole();
        assert_eq!(cut.sorted(), whole.sorted(), "{least}");
        assert!(cut.tasks.len() >= least, "{} tasks and not {least}", cut.tasks.len());
    }
}

//! Tasks cover each range exactly once, however it is cut, and have the rows of one task.

use std::path::Path;
use std::sync::Arc;

use cordwood::plan::LogCache;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use crate::support::fixed_seed;
use crate::support::generated::{self, ALL, steps};
use crate::support::golden;
use crate::support::planning::{Answer, COLUMNS, asked, cache, offsets, run_json};
use crate::support::reading::folder;

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
    #![proptest_config(fixed_seed(80))]

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

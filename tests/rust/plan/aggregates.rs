//! Aggregates that tasks compute, from headers where these are exact, are those of the rows.

use std::path::Path;
use std::sync::Arc;

use cordwood::plan::LogCache;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use crate::support::aggregates::{aggregated, all, combined, naive};
use crate::support::batches::{BatchV2, Rec};
use crate::support::filters::{drafts, filters, holds};
use crate::support::generated::{self, ALL, steps};
use crate::support::golden;
use crate::support::naive as oracle;
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::planning::{
    COLUMNS, OFFSET, Row, asked, cache, exact_filters, naive_row, name_of, offsets, query, run_json,
};
use crate::support::reading::folder;
use crate::support::{fixed_seed, step};

const LEVELS: [&str; 2] = ["read_uncommitted", "read_committed"];
const MODES: [&str; 2] = ["FAILFAST", "DROPMALFORMED"];
const BYTES: [&str; 3] = ["1", "3000", "134217728"];

fn naive_rows(dir: &Path, level: &str) -> Vec<Row> {
    let (topic, partition) = name_of(dir);
    let log = oracle::read(dir).unwrap();
    let row = |record: &oracle::Record| naive_row(&topic, partition.into(), record);
    if level == "read_committed" {
        log.scan_committed(0..i64::MAX, None, false).map(row).collect()
    } else {
        log.scan(0..i64::MAX, None, false).map(row).collect()
    }
}

/// A query of the rows in a range of offsets; ends that are `None` are those of the log.
fn query_of(dir: &Path, mode: &str, level: &str, bytes: &str, start: i64, end: i64) -> Value {
    let (start, end) = (offsets(dir, start), offsets(dir, end));
    let options = [
        ("columns", COLUMNS),
        ("mode", mode),
        ("isolationLevel", level),
        ("maxPartitionBytes", bytes),
        ("cleanupPolicy", "compact"),
        ("startingOffsets", &start),
        ("endingOffsets", &end),
    ];
    asked(dir, &options)
}

/// Compares the aggregates of a range with those of these rows of the whole log.
fn compare(logs: &Arc<LogCache>, asked: &Value, rows: &[Row], start: i64, end: i64) {
    let is_inside = |row: &&Row| (start..end).contains(&row[OFFSET].int());
    let rows: Vec<Row> = rows.iter().filter(is_inside).cloned().collect();
    let answer = aggregated(logs, asked).whole();
    assert_eq!(combined(&answer), naive(&rows), "{asked}");
}

/// The offsets of a log, and random ones in it in order.
fn ranges(logs: &Arc<LogCache>, dir: &Path, picked: &[(Index, Index)]) -> Vec<(i64, i64)> {
    let whole = &run_json(logs, &asked(dir, &[])).bounds[0];
    let offsets: Vec<i64> = (whole.start_offset..=whole.end_offset).collect();
    let range = |(one, other): &(Index, Index)| {
        let (one, other) = (*one.get(&offsets), *other.get(&offsets));
        (one.min(other), one.max(other))
    };
    let whole = (whole.start_offset, whole.end_offset);
    std::iter::once(whole).chain(picked.iter().map(range)).collect()
}

#[test]
fn aggregates_of_every_golden_partition_are_those_of_a_naive_reader() {
    let logs = cache();
    for (number, partition) in golden::intact().into_iter().enumerate() {
        let start = run_json(&logs, &asked(&partition.dir, &[])).bounds[0].start_offset;
        let end = run_json(&logs, &asked(&partition.dir, &[])).bounds[0].end_offset;
        for level in LEVELS {
            let rows = naive_rows(&partition.dir, level);
            for (other, mode) in MODES.into_iter().enumerate() {
                for bytes in BYTES[1..].iter().skip((number + other) % step(2)).step_by(step(2)) {
                    let asked = query_of(&partition.dir, mode, level, bytes, start, end);
                    compare(&logs, &asked, &rows, start, end);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(fixed_seed(25))]

    #[test]
    fn aggregates_of_ranges_of_golden_partitions_are_those_of_a_naive_reader(
        picked in any::<Index>(),
        picks in proptest::collection::vec(any::<(Index, Index)>(), 10..11),
        mode in proptest::sample::select(&MODES[..]),
        level in proptest::sample::select(&LEVELS[..]),
        bytes in proptest::sample::select(&BYTES[..]),
    ) {
        let logs = cache();
        let partitions = golden::intact();
        // its ends are far apart
        let partitions: Vec<_> = partitions.iter().filter(|partition| partition.case != "18-leaps").collect();
        let dir = &picked.get(&partitions).dir;
        let rows = naive_rows(dir, level);
        for (start, end) in ranges(&logs, dir, &picks) {
            let asked = query_of(dir, mode, level, bytes, start, end);
            compare(&logs, &asked, &rows, start, end);
        }
    }

    #[test]
    fn aggregates_of_ranges_of_generated_partitions_are_those_of_a_naive_reader(
        steps in steps(&ALL, 40),
        picks in proptest::collection::vec(any::<(Index, Index)>(), 10..11),
        mode in proptest::sample::select(&MODES[..]),
        level in proptest::sample::select(&LEVELS[..]),
        bytes in proptest::sample::select(&["1", "300", "134217728"][..]),
        keeps_data in any::<bool>(),
    ) {
        let (logs, folder) = (cache(), folder());
        let dir = generated::write(folder.path(), "orders-3", &steps, 600);
        let rows = naive_rows(&dir, level);
        for (start, end) in ranges(&logs, &dir, &picks) {
            let mut asked = query_of(&dir, mode, level, bytes, start, end);
            asked["options"]["failOnDataLoss"] = keeps_data.to_string().into();
            compare(&logs, &asked, &rows, start, end);
        }
    }

    /// Any subset and order of the aggregates: what is exact in a header depends on the others.
    #[test]
    fn a_choice_of_aggregates_has_the_same_values(
        steps in steps(&ALL, 30),
        choice in proptest::collection::vec(0usize..5, 1..6),
        level in proptest::sample::select(&LEVELS[..]),
    ) {
        let (logs, folder) = (cache(), folder());
        let dir = generated::write(folder.path(), "orders-3", &steps, 600);
        let wanted = naive(&naive_rows(&dir, level));
        let options = [("isolationLevel", level), ("cleanupPolicy", "compact")];
        let mut asked = asked(&dir, &options);
        asked["aggregates"] = choice.iter().map(|number| all()[number].clone()).collect();
        let found = run_json(&logs, &asked).whole().rows();
        let wanted: Row = choice.iter().map(|number| wanted[*number].clone()).collect();
        assert_eq!(found, [wanted], "{asked}");
    }

    #[test]
    fn aggregates_of_exactly_filtered_rows_are_those_of_a_naive_reader(
        partitions in proptest::collection::vec(steps(&ALL, 20), 1..4),
        drafts in proptest::collection::vec(drafts(), 30..31),
        mode in proptest::sample::select(&MODES[..]),
        level in proptest::sample::select(&LEVELS[..]),
        bytes in proptest::sample::select(&["1", "300", "134217728"][..]),
    ) {
        let (logs, folder) = (cache(), folder());
        let mut rows = Vec::new();
        for (steps, name) in partitions.iter().zip(["a-0", "ab-1", "a-2"]) {
            rows.extend(naive_rows(&generated::write(folder.path(), name, steps, 600), level));
        }
        let options = [
            ("mode", mode), ("isolationLevel", level), ("maxPartitionBytes", bytes), ("cleanupPolicy", "compact"),
        ];
        let mut asked = asked(folder.path(), &options);
        let mut exact_ones = 0;
        for drafts in drafts {
            let filters = filters(&drafts, &rows);
            asked["filters"] = filters.clone().into();
            if exact_filters(&asked).contains(&false) {
                continue;
            }
            exact_ones += 1;
            let kept: Vec<Row> =
                rows.iter().filter(|row| filters.iter().all(|filter| holds(filter, row))).cloned().collect();
            assert_eq!(combined(&aggregated(&logs, &asked).whole()), naive(&kept), "{asked}");
        }
        assert!(exact_ones > 3, "{exact_ones}");
    }
}

#[test]
fn a_limit_is_of_the_rows_of_aggregates() {
    let logs = cache();
    let partition =
        golden::intact().into_iter().find(|partition| partition.case == "11-transactions").unwrap();
    let mut asked = asked(&partition.dir, &[("isolationLevel", "read_committed")]);
    let whole = aggregated(&logs, &asked).whole();
    asked["limit"] = 1.into();
    assert_eq!(aggregated(&logs, &asked).whole().rows(), whole.rows());
}

#[test]
fn only_records_without_rows_for_damage_are_aggregated() {
    let dir = golden::intact()[0].dir.clone();
    for (name, text) in [("table", "batches"), ("table", "segments"), ("mode", "PERMISSIVE")] {
        let mut asked = asked(&dir, &[(name, text)]);
        asked["aggregates"] = all();
        assert!(!query(&asked).can_aggregate(), "{asked}");
    }
    assert!(!query(&asked(&dir, &[])).can_aggregate(), "no aggregates");
}

/// A consumer leaves out records whose offsets are not above the one before, and returns those above the last
/// offset of their batch.
#[test]
fn aggregates_of_batches_with_records_out_of_place_are_those_of_the_rows() {
    let usual =
        |base: i64| BatchV2::new(base).records((0..3).map(|n| Rec::at(1000 + n).value("usual"))).build();
    let cases =
        [([0, 0, 0], 2), ([0, 2, 1], 2), ([0, 9, 18], 2), ([0, 1, 2], 0), ([0, 1, 2], 1), ([5, 0, 9], 2)];
    for (number, (deltas, last)) in cases.into_iter().enumerate() {
        let odd = deltas.into_iter().map(|delta| Rec::at(2000).value("odd").delta(delta));
        let odd = BatchV2::new(3).records(odd).last_offset_delta(last).build();
        let parent = folder();
        let dir = PartitionBuilder::new(Indexing::default())
            .segment(0, vec![usual(0), odd, usual(if number == 2 { 6 } else { 30 })])
            .write(parent.path(), "t-0");
        let logs = cache();
        for mode in MODES {
            // the test leaves a gap before the last batch
            let options = [("columns", COLUMNS), ("mode", mode), ("cleanupPolicy", "compact")];
            let asked = asked(&dir, &options);
            let rows = run_json(&logs, &asked).rows();
            assert_eq!(
                combined(&aggregated(&logs, &asked).whole()),
                naive(&rows),
                "{deltas:?} {last} {mode}"
            );
        }
    }
}

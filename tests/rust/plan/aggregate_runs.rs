//! Batches whose headers are exact between those whose are not, in turn: few scans, and the aggregates of the
//! rows.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::aggregates::{aggregated, combined, naive};
use crate::support::batches::{ABORT, BatchV2, Built, COMMIT, Rec};
use crate::support::naive as oracle;
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::planning::{COLUMNS, Row, asked, cache, naive_row, name_of, offsets, run_json};
use crate::support::reading::folder;

fn record(offset: i64) -> Rec {
    // times are not in order
    Rec::at(1000 + offset * 7919 % 500).value(offset.to_string())
}

/// Four offsets, of which compaction removed the last two.
fn sparse(base: i64) -> Built {
    BatchV2::new(base).record(record(base)).record(record(base + 1)).last_offset_delta(3).build()
}

fn dense(base: i64) -> Built {
    BatchV2::new(base).records((base..base + 4).map(record)).build()
}

fn transactional(base: i64, producer: i64) -> Built {
    BatchV2::new(base).transaction(producer, 0, 0).records((base..base + 4).map(record)).build()
}

fn write(parent: &Path, name: &str, batches: Vec<Built>) -> PathBuf {
    PartitionBuilder::new(Indexing::every(200)).segment(0, batches).write(parent, name)
}

/// `runs` runs of sparse batches with dense ones between them.
fn compacted(parent: &Path, runs: i64) -> PathBuf {
    let pairs = (0..runs).flat_map(|number| [sparse(8 * number), dense(8 * number + 4)]);
    write(parent, "orders-0", pairs.collect())
}

/// The same of transactions, of which every third is aborted.
fn committed(parent: &Path, runs: i64) -> PathBuf {
    let run = |number: i64| {
        let (base, producer) = (9 * number, number % 5);
        let kind = if number % 3 == 0 { ABORT } else { COMMIT };
        [
            transactional(base, producer),
            dense(base + 4),
            BatchV2::marker(base + 8, kind, producer, 0, 2000).build(),
        ]
    };
    write(parent, "orders-1", (0..runs).flat_map(run).collect())
}

fn rows(dir: &Path, is_committed: bool, range: std::ops::Range<i64>) -> Vec<Row> {
    let (topic, partition) = name_of(dir);
    let log = oracle::read(dir).unwrap();
    let row = |record: &oracle::Record| naive_row(&topic, partition.into(), record);
    if is_committed {
        log.scan_committed(range, None, false).map(row).collect()
    } else {
        log.scan(range, None, false).map(row).collect()
    }
}

fn query_of(dir: &Path, is_committed: bool, range: &std::ops::Range<i64>) -> Value {
    let level = if is_committed { "read_committed" } else { "read_uncommitted" };
    let (start, end) = (offsets(dir, range.start), offsets(dir, range.end));
    let options = [
        ("columns", COLUMNS),
        ("isolationLevel", level),
        ("cleanupPolicy", "compact"),
        ("startingOffsets", &start),
        ("endingOffsets", &end),
    ];
    asked(dir, &options)
}

/// Compares each aggregate alone and all of them with those of the rows.
fn compare(dir: &Path, is_committed: bool, range: std::ops::Range<i64>) {
    let logs = cache();
    let rows = rows(dir, is_committed, range.clone());
    let mut asked = query_of(dir, is_committed, &range);
    let wanted = naive(&rows);
    assert_eq!(combined(&aggregated(&logs, &asked).whole()), wanted, "{asked}");
    let all = crate::support::aggregates::all();
    for (aggregate, wanted) in all.as_array().unwrap().iter().zip(wanted) {
        asked["aggregates"] = json!([aggregate]);
        assert_eq!(run_json(&logs, &asked).whole().rows(), [[wanted]], "{asked}");
    }
}

#[test]
fn aggregates_of_any_number_of_runs_are_those_of_the_rows() {
    for runs in [1, 2, 15, 16, 17, 18, 40, 100] {
        let folder = folder();
        let dir = compacted(folder.path(), runs);
        // whole, and with a cut batch at both ends
        compare(&dir, false, 0..8 * runs);
        compare(&dir, false, 1..8 * runs - 1);
        let dir = committed(folder.path(), runs);
        compare(&dir, true, 0..9 * runs);
        compare(&dir, true, 1..9 * runs - 2);
    }
}

/// An aborted transaction and an empty run at the end leave nothing.
#[test]
fn aggregates_of_many_runs_without_a_committed_row_are_null() {
    let folder = folder();
    let aborted = (0..40).flat_map(|number| {
        let marker = BatchV2::marker(5 * number + 4, ABORT, number, 0, 2000).build();
        [transactional(5 * number, number), marker]
    });
    let dir = write(folder.path(), "orders-2", aborted.collect());
    assert_eq!(rows(&dir, true, 0..200), [[]; 0]);
    compare(&dir, true, 0..200);
}

/// One scan of the headers and one of the records, rather than one for each run.
#[test]
fn many_runs_are_read_together() {
    let folder = folder();
    let least = json!([{ "function": "min", "column": "offset" }]);
    let count = json!([{ "function": "count" }]);
    for (dir, is_committed, end, aggregates) in [
        (compacted(folder.path(), 100), false, 800, least),
        (committed(folder.path(), 100), true, 900, count),
    ] {
        let mut asked = query_of(&dir, is_committed, &(0..end));
        asked["aggregates"] = aggregates;
        let stats = run_json(&cache(), &asked).whole().stats();
        assert_eq!(stats.segments_opened, 2, "{asked}");
        assert_eq!(stats.records, rows(&dir, is_committed, 0..end).len() as u64, "{asked}");
    }
}

//! How much is read for aggregates: headers, and the records of those batches whose headers are not exact.

use std::path::Path;

use cordwood::log::ScanStats;
use serde_json::{Value, json};

use crate::support::aggregates::{aggregated, combined, naive};
use crate::support::batches::{ABORT, BatchV2, Built, COMMIT, Rec};
use crate::support::golden;
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::planning::{COLUMNS, asked, cache, offsets, run_json};
use crate::support::reading::folder;

/// The statistics of a query with one aggregate, and its value.
fn work(asked: &Value, function: &Value) -> (i64, ScanStats) {
    let mut asked = asked.clone();
    asked["aggregates"] = json!([function]);
    let answer = run_json(&cache(), &asked).whole();
    (answer.rows()[0][0].int(), answer.stats())
}

fn count(asked: &Value) -> (i64, ScanStats) {
    work(asked, &json!({ "function": "count" }))
}

fn plain() -> golden::Partition {
    golden::intact().into_iter().find(|partition| partition.case == "01-plain").unwrap()
}

#[test]
fn whole_plain_batches_are_counted_without_a_record() {
    let plain = plain();
    for function in [
        json!({ "function": "count" }),
        json!({ "function": "min", "column": "offset" }),
        json!({ "function": "max", "column": "offset" }),
        json!({ "function": "max", "column": "timestamp" }),
    ] {
        let (_, stats) = work(&asked(&plain.dir, &[]), &function);
        assert_eq!((stats.records, stats.batches), (0, plain.batches), "{function}");
    }
    assert_eq!(count(&asked(&plain.dir, &[])).0, plain.records as i64);
}

#[test]
fn the_smallest_time_needs_records() {
    let plain = plain();
    let smallest = json!({ "function": "min", "column": "timestamp" });
    let (_, stats) = work(&asked(&plain.dir, &[]), &smallest);
    assert_eq!(stats.records, plain.records);
}

#[test]
fn with_append_times_the_smallest_time_is_in_the_header() {
    let appended = golden::intact().into_iter().find(|partition| partition.case == "09-append-time").unwrap();
    let answer = aggregated(&cache(), &asked(&appended.dir, &[])).whole();
    assert_eq!(answer.stats().records, 0);
}

#[test]
fn only_batches_that_the_range_cuts_are_read() {
    let plain = plain();
    let batches = golden::expected_batches(&plain.expected);
    let (first, last) = (&batches[10], &batches[90]);
    assert!(first.last_offset > first.base_offset + 1 && last.last_offset > last.base_offset + 1);
    let ranges = [
        // whole batches
        (first.base_offset, last.last_offset + 1, 0),
        // the first one without its first record
        (first.base_offset + 1, last.last_offset + 1, first.records.len() - 1),
        // the last one without its last record
        (first.base_offset, last.last_offset, last.records.len() - 1),
        (first.base_offset + 1, last.last_offset, first.records.len() + last.records.len() - 2),
        // inside one batch
        (first.base_offset + 1, first.last_offset, first.records.len() - 2),
    ];
    for (start, end, read) in ranges {
        let texts = [offsets(&plain.dir, start), offsets(&plain.dir, end)];
        let asked = asked(&plain.dir, &[("startingOffsets", &texts[0]), ("endingOffsets", &texts[1])]);
        let (found, stats) = count(&asked);
        assert_eq!((found, stats.records), (end - start, read as u64), "{start} to {end}");
    }
}

/// A range cut into tasks is cut at batches.
#[test]
fn tasks_read_no_record_to_count() {
    let plain = plain();
    let answer = aggregated(&cache(), &asked(&plain.dir, &[("maxPartitionBytes", "5000")])).whole();
    assert!(answer.tasks.len() > 20, "{}", answer.tasks.len());
    let count = json!([{ "function": "count" }]);
    let mut asked = asked(&plain.dir, &[("maxPartitionBytes", "5000")]);
    asked["aggregates"] = count;
    assert_eq!(run_json(&cache(), &asked).whole().stats().records, 0);
}

fn record(offset: i64) -> Rec {
    Rec::at(1000 + offset).value("value")
}

fn write(parent: &Path, batches: Vec<Built>) -> std::path::PathBuf {
    PartitionBuilder::new(Indexing::every(200)).segment(0, batches).write(parent, "orders-0")
}

/// A batch of two records of a transaction.
fn transactional(base: i64, producer: i64) -> Built {
    BatchV2::new(base).transaction(producer, 0, 0).record(record(base)).record(record(base + 1)).build()
}

fn committed(dir: &Path) -> Value {
    asked(dir, &[("columns", COLUMNS), ("isolationLevel", "read_committed")])
}

#[test]
fn adjacent_batches_of_a_transaction_are_read_together() {
    let folder = folder();
    let mut batches: Vec<Built> = (0..50).map(|number| transactional(2 * number, 7)).collect();
    batches.push(BatchV2::marker(100, COMMIT, 7, 0, 2000).build());
    let dir = write(folder.path(), batches);
    let (found, stats) = count(&committed(&dir));
    // the headers and the records are in one segment
    assert_eq!((found, stats.records, stats.segments_opened), (100, 100, 2));
}

#[test]
fn transactions_with_only_their_markers_between_them_are_read_together() {
    let folder = folder();
    let mut batches = Vec::new();
    for number in 0..50 {
        batches.push(transactional(3 * number, 7));
        let kind = if number % 5 == 0 { ABORT } else { COMMIT };
        batches.push(BatchV2::marker(3 * number + 2, kind, 7, 0, 2000).build());
    }
    let dir = write(folder.path(), batches);
    let (found, stats) = count(&committed(&dir));
    assert_eq!((found, stats.records, stats.segments_opened), (80, 80, 2));
    let cache = cache();
    let rows = run_json(&cache, &committed(&dir)).whole().rows();
    assert_eq!(combined(&aggregated(&cache, &committed(&dir)).whole()), naive(&rows));
}

#[test]
fn batches_outside_transactions_are_counted_between_those_inside() {
    let folder = folder();
    let mut batches = Vec::new();
    for number in 0..10 {
        let base = 4 * number;
        batches.push(transactional(base, 7));
        batches.push(BatchV2::new(base + 2).record(record(base + 2)).record(record(base + 3)).build());
    }
    batches.push(BatchV2::marker(40, ABORT, 7, 0, 2000).build());
    let dir = write(folder.path(), batches);
    let (found, stats) = count(&committed(&dir));
    assert_eq!((found, stats.records), (20, 0));
    // without isolation all headers count
    let (found, stats) = count(&asked(&dir, &[]));
    assert_eq!((found, stats.records), (40, 0));
}

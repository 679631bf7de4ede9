//! Filters of logs with records above the last offsets of their batches, as old clients wrote them: the rows
//! and the aggregates are those of the records, wherever the batches with them are.

use std::ops::Range;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::aggregates::{aggregated, combined, naive};
use crate::support::batches::{BatchV2, Built, Codec, Rec};
use crate::support::filters::{compare_filters, holds};
use crate::support::fixed_seed;
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::planning::{COLUMNS, OFFSET, Row, asked, cache, exact_filters, run_json};
use crate::support::reading::folder;

const OPERATORS: [&str; 5] = ["=", "<", "<=", ">", ">="];
const KINDS: usize = 9;
/// More than what a plan reads before the offset of a filter.
const FAR: usize = 200 << 10;

/// Offset deltas of records, and that of the header.
fn deltas(kind: usize, count: i32) -> (Vec<i32>, i32) {
    let in_order: Vec<i32> = (0..count).collect();
    match kind {
        0 => (in_order, count - 1),
        1 => (in_order, count + 2),
        // the kind of a known client
        2 | 3 => (in_order, 0),
        4 => (in_order, count / 2),
        5 => (in_order.iter().map(|n| 9 * n).collect(), count - 1),
        6 => (in_order.iter().map(|n| 2 * n).collect(), 2 * count),
        7 => (in_order.iter().rev().copied().collect(), count - 1),
        _ => (vec![0; count as usize], count - 1),
    }
}

fn batch(base: i64, kind: usize, count: i32, value: &[u8]) -> Built {
    let (deltas, last) = deltas(kind, count);
    let records = deltas.iter().map(|delta| Rec::at(i64::from(*delta) * 1000).value(value).delta(*delta));
    let batch = BatchV2::new(base).records(records).last_offset_delta(last);
    // a broker does not store a compressed batch with records out of place
    let codec = if matches!(kind, 0 | 2) { Codec::Gzip } else { Codec::None };
    batch.codec(codec).build()
}

/// Batches of these kinds and counts, some at the base offsets that brokers gave to batches with too few
/// offsets, and a new segment after each third.
fn write(parent: &Path, batches: &[(usize, i32, bool)], value: &[u8]) -> PathBuf {
    let mut partition = PartitionBuilder::new(Indexing::every(100));
    let (mut next, mut segment, mut built) = (0, 0, Vec::new());
    for (number, (kind, count, is_shifted)) in batches.iter().enumerate() {
        if number % 3 == 0 && !built.is_empty() {
            partition = partition.segment(segment, std::mem::take(&mut built));
            segment = next;
        }
        let base = next + if *is_shifted { i64::from(*count) - 1 } else { 0 };
        let batch = batch(base, *kind, *count, value);
        next = batch.next_offset();
        built.push(batch);
    }
    partition.segment(segment, built).write(parent, "orders-0")
}

fn asked_of(dir: &Path, bytes: &str) -> Value {
    // shifted batches leave gaps
    asked(dir, &[("columns", COLUMNS), ("maxPartitionBytes", bytes), ("cleanupPolicy", "compact")])
}

/// The rows and the aggregates with each filter of an offset.
fn compare(asked: &Value, offsets: &Range<i64>) {
    let logs = cache();
    let rows = run_json(&logs, asked).whole().rows();
    let of = |operator: &str, value: i64| json!({ "column": "offset", "op": operator, "value": value });
    let single = offsets.clone().flat_map(|value| OPERATORS.map(|operator| vec![of(operator, value)]));
    let between =
        offsets.clone().flat_map(|low| [1, 2, 7].map(|length| vec![of(">=", low), of("<", low + length)]));
    for filters in single.chain(between) {
        compare_filters(&logs, asked, &filters, &rows);
        let kept: Vec<Row> =
            rows.iter().filter(|row| filters.iter().all(|filter| holds(filter, row))).cloned().collect();
        let mut asked = asked.clone();
        asked["filters"] = filters.into();
        assert!(!exact_filters(&asked).contains(&false));
        assert_eq!(combined(&aggregated(&logs, &asked).whole()), naive(&kept), "{asked}");
    }
}

/// Two batches of three records with one offset each, as brokers stored them: the records have the offsets 2
/// to 7, the log ends at 6.
#[test]
fn a_filter_finds_records_above_the_last_offset_of_their_batch() {
    let folder = folder();
    let dir = write(folder.path(), &[(3, 3, true), (3, 3, true)], b"value");
    let asked = asked_of(&dir, "134217728");
    let rows = run_json(&cache(), &asked).whole().rows();
    let offsets: Vec<i64> = rows.iter().map(|row| row[OFFSET].int()).collect();
    assert_eq!(offsets, [2, 3, 4, 5, 6, 7]);
    for offset in offsets {
        let mut asked = asked.clone();
        asked["filters"] = json!([{ "column": "offset", "op": "=", "value": offset }]);
        let found = run_json(&cache(), &asked).whole().rows();
        assert_eq!(found.iter().map(|row| row[OFFSET].int()).collect::<Vec<_>>(), [offset]);
    }
    compare(&asked, &(-1..10));
}

/// A plan reads at least 64 KiB before the offset of a filter.
#[test]
fn a_filter_finds_records_in_the_batch_before_however_large_it_is() {
    let folder = folder();
    let large = vec![b'v'; FAR];
    let dir = write(folder.path(), &[(3, 3, true), (3, 3, true), (0, 1, false), (3, 2, true)], &large);
    compare(&asked_of(&dir, "134217728"), &(1..13));
}

/// Of 800 batches with this kind of record the last ones are read, not all.
#[test]
fn a_filter_reads_little_before_its_offset() {
    let folder = folder();
    let dir = write(folder.path(), &[(3, 2, true); 800], &[b'v'; 1000]);
    let mut asked = asked_of(&dir, "134217728");
    let whole = run_json(&cache(), &asked).whole();
    asked["filters"] = json!([{ "column": "offset", "op": ">=", "value": 1590 }]);
    let found = run_json(&cache(), &asked).whole();
    let wanted: Vec<Row> = whole.rows().into_iter().filter(|row| row[OFFSET].int() >= 1590).collect();
    assert_eq!(found.rows(), wanted);
    assert!(found.bounds[0].start_offset >= 1588, "{:?}", found.bounds);
}

proptest! {
    #![proptest_config(fixed_seed(12))]

    #[test]
    fn filtered_rows_and_aggregates_are_those_of_the_records(
        batches in proptest::collection::vec((0..KINDS, 1..7, any::<bool>()), 1..9),
        bytes in proptest::sample::select(&["1", "300", "134217728"][..]),
    ) {
        let folder = folder();
        let dir = write(folder.path(), &batches, b"value");
        let last: i64 = batches.iter().map(|(_, count, _)| i64::from(*count) * 10 + 3).sum();
        compare(&asked_of(&dir, bytes), &(-1..last.min(40)));
    }
}

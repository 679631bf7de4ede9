//! A missing segment beside segments that are too old for a filter of times: its records may have been in the
//! range.

use std::path::{Path, PathBuf};

use cordwood::plan::Code;
use serde_json::{Value, json};

use crate::support::aggregates::aggregated;
use crate::support::golden;
use crate::support::planning::{Answer, Cell, asked, cache, offsets, run_json};
use crate::support::reading::{copy, folder};
use crate::support::step;

const MISSING: i64 = 5;

fn many_segments() -> golden::Partition {
    golden::intact().into_iter().find(|partition| partition.case == "20-many-segments").unwrap()
}

/// The partition without the segment with base offset 5, which has one record, and the offsets and times of
/// all records.
fn without_a_segment(parent: &Path) -> (PathBuf, Vec<(i64, i64)>) {
    let partition = many_segments();
    let dir = copy(&partition.dir, parent, &partition.name);
    for extension in ["log", "index", "timeindex", "snapshot"] {
        std::fs::remove_file(dir.join(format!("{MISSING:020}.{extension}"))).unwrap();
    }
    let batches = golden::expected_batches(&partition.expected);
    let records = batches.iter().flat_map(|batch| &batch.records);
    (dir, records.map(|record| (record.offset, record.timestamp)).collect())
}

/// The offsets of the records at or after a time.
fn since(dir: &Path, time: i64, options: &[(&str, &str)]) -> Value {
    let mut asked = asked(dir, options);
    asked["columns"] = json!(["offset"]);
    // microseconds
    asked["filters"] = json!([{ "column": "timestamp", "op": ">=", "value": time * 1000 }]);
    asked
}

/// Times for which the segments before the missing one are too old and the one after it is not.
fn times(records: &[(i64, i64)]) -> [i64; 4] {
    let time_of = |offset: i64| records[offset as usize].1;
    assert_eq!(records[MISSING as usize].0, MISSING, "a record for each offset");
    [time_of(MISSING - 1) + 1, time_of(MISSING), time_of(MISSING) + 1, time_of(MISSING + 1)]
}

fn check_gone(answer: &Answer, context: &str) {
    let error = answer.error.as_ref().unwrap_or_else(|| panic!("no error for {context}"));
    assert_eq!(error.code, Code::SegmentGone, "{context}: {error}");
    assert!(error.reason.contains("1 offset, 5 to 5, missing"), "{context}: {error}");
}

#[test]
fn a_missing_segment_after_skipped_ones_is_an_error() {
    let (logs, folder) = (cache(), folder());
    let (dir, records) = without_a_segment(folder.path());
    for (number, time) in times(&records).into_iter().enumerate() {
        let cuts = [("minPartitions", "50"), ("maxPartitionBytes", "134217728"), ("maxPartitionBytes", "1")];
        for cut in cuts.into_iter().skip(number % step(3)).step_by(step(3)) {
            let asked = since(&dir, time, &[("failOnDataLoss", "true"), cut]);
            check_gone(&run_json(&logs, &asked), &asked.to_string());
        }
        check_gone(&aggregated(&logs, &since(&dir, time, &[])), &time.to_string());
    }
}

#[test]
fn the_rest_is_read_with_a_warning_if_loss_is_allowed() {
    let (logs, folder) = (cache(), folder());
    let (dir, records) = without_a_segment(folder.path());
    for (number, time) in times(&records).into_iter().enumerate() {
        let cuts = [("maxPartitionBytes", "134217728"), ("maxPartitionBytes", "1")];
        for cut in cuts.into_iter().skip(number % step(2)).step_by(step(2)) {
            let asked = since(&dir, time, &[("failOnDataLoss", "false"), cut]);
            let answer = run_json(&logs, &asked).whole();
            let kept = records.iter().filter(|(offset, at)| *at >= time && *offset != MISSING);
            let kept: Vec<Vec<Cell>> = kept.map(|(offset, _)| vec![Cell::Int(*offset)]).collect();
            assert_eq!(answer.sorted(), kept, "{asked}");
            let [warning] = &answer.warnings[..] else { panic!("{asked}: {:?}", answer.warnings) };
            assert!(warning.text.contains("CORDWOOD_SEGMENT_GONE"), "{}", warning.text);
        }
    }
}

#[test]
fn a_range_that_begins_after_the_gap_has_no_gap() {
    let (logs, folder) = (cache(), folder());
    let (dir, records) = without_a_segment(folder.path());
    let time = times(&records)[0];
    let of_start = |start: i64| {
        let start = offsets(&dir, start);
        run_json(&logs, &since(&dir, time, &[("startingOffsets", &start)]))
    };
    check_gone(&of_start(MISSING - 1), "a start in a skipped segment");
    check_gone(&of_start(MISSING), "a start in the gap");
    assert_eq!(of_start(MISSING + 1).whole().rows().len(), records.len() - 6);
}

#[test]
fn a_log_without_a_gap_is_read_without_a_warning() {
    let logs = cache();
    let partition = many_segments();
    let batches = golden::expected_batches(&partition.expected);
    let records: Vec<_> = batches.iter().flat_map(|batch| &batch.records).collect();
    for first in [&records[3], &records[5], &records[100], &records[records.len() - 1]] {
        for fails in ["true", "false"] {
            let asked = since(&partition.dir, first.timestamp, &[("failOnDataLoss", fails)]);
            let answer = run_json(&logs, &asked).whole();
            let kept = records.iter().filter(|record| record.timestamp >= first.timestamp).count();
            assert_eq!((answer.rows().len(), answer.warnings.len()), (kept, 0), "{asked}");
        }
    }
}

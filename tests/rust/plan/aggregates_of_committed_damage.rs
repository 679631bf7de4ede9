//! Aggregates of committed records without a check of checksums: an error where the rows have one, else those
//! of the rows.

use std::path::Path;
use std::sync::Arc;

use cordwood::plan::{Context, LogCache, Piece, Query, Task};
use serde_json::Value;

use crate::support::aggregates::{all, naive};
use crate::support::golden;
use crate::support::planning::{COLUMNS, Row, asked, cache, query, read_task, run};
use crate::support::reading::{copy, folder};
use crate::support::step;

fn aggregating(asked: &Value) -> Query {
    let mut asked = asked.clone();
    asked["aggregates"] = all();
    query(&asked)
}

/// The rows of pieces, or the code of the error.
fn rows(logs: &Arc<LogCache>, query: &Query, pieces: &[Piece]) -> Result<Vec<Row>, &'static str> {
    let (found, _, error) = read_task(logs, query, &Task { pieces: pieces.to_vec() });
    error.map_or(Ok(found.rows), |error| Err(error.code.name()))
}

/// Compares the aggregates of pieces with those of their rows. Whether there was an error.
fn compare(logs: &Arc<LogCache>, asked: &Value, pieces: &[Piece], context: &str) -> bool {
    let expected = rows(logs, &query(asked), pieces).map(|rows| vec![naive(&rows)]);
    let found = rows(logs, &aggregating(asked), pieces);
    assert_eq!(found, expected, "{context}: {asked}");
    expected.is_err()
}

#[test]
fn aggregates_of_damaged_partitions_without_checksums_are_those_of_the_rows() {
    let logs = cache();
    let (mut errors, mut same) = (0, 0);
    for damaged in golden::damaged() {
        for check_crc in ["false", "true"] {
            let options = [
                ("columns", COLUMNS),
                ("isolationLevel", "read_committed"),
                ("checkCrc", check_crc),
                ("maxPartitionBytes", "3000"),
            ];
            let asked = asked(&damaged.dir, &options);
            let planned = Context::new(Arc::clone(&logs)).plan(&query(&asked));
            let Ok((_, tasks)) = planned else {
                assert!(run(&logs, &aggregating(&asked)).error.is_some(), "{}", damaged.case);
                continue;
            };
            for task in tasks {
                let is_error = compare(&logs, &asked, &task.pieces, &damaged.case);
                *(if is_error { &mut errors } else { &mut same }) += 1;
            }
        }
    }
    assert!(errors > 20 && same > 100, "{errors} {same}");
}

/// Where markers of the last segment of `11-transactions` are, their offsets, and the last stable offset.
const MARKERS: [(u64, i64); 4] = [(13827, 893), (14707, 902), (16269, 918), (16771, 923)];
const LAST_STABLE_OFFSET: i64 = 903;
const LAST_SEGMENT: &str = "00000000000000000751";

/// Bytes of a marker's batch: length, CRC, attributes, producer, key.
const DAMAGED_BYTES: [u64; 6] = [11, 18, 22, 50, 61, 70];

fn flip(path: &Path, position: u64) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[position as usize] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

/// Ranges around the markers and the last stable offset, as pieces that were not planned from the log.
fn check_ranges(logs: &Arc<LogCache>, dir: &Path, context: &str) -> usize {
    check_each(1, 0, logs, dir, context)
}

/// [`check_ranges`] with one of so many ranges, `number` tells which.
fn check_each(step: usize, number: usize, logs: &Arc<LogCache>, dir: &Path, context: &str) -> usize {
    let (mut errors, mut ranges) = (0, number);
    for check_crc in ["false", "true"] {
        let options = [("columns", COLUMNS), ("isolationLevel", "read_committed"), ("checkCrc", check_crc)];
        let asked = asked(dir, &options);
        let directory = cordwood::plan::PartitionDirectory::of_url(dir.to_str().unwrap()).unwrap();
        for start in [0, 751, 880, 893, 898, 902, 903, 907, 914, 918, 920, 924] {
            for end in [894, 900, 903, 908, 914, 918, 919, 923, 930, 954] {
                ranges += 1;
                if start >= end || !ranges.is_multiple_of(step) {
                    continue;
                }
                let bounds = cordwood::plan::Bounds {
                    directory: directory.clone(),
                    start_offset: start,
                    end_offset: end,
                    continues: false,
                };
                let piece = Piece::of_range(bounds);
                let context = format!("{context}, {start} to {end}");
                errors += usize::from(compare(logs, &asked, &[piece], &context));
            }
        }
    }
    errors
}

fn transactions() -> golden::Partition {
    golden::intact().into_iter().find(|partition| partition.case == "11-transactions").unwrap()
}

#[test]
fn aggregates_above_the_last_stable_offset_are_those_of_the_rows() {
    let logs = cache();
    let partition = transactions();
    assert_eq!(check_ranges(&logs, &partition.dir, "intact"), 0);
    let batches = golden::expected_batches(&partition.expected);
    let first_above = batches.iter().find(|batch| batch.base_offset == LAST_STABLE_OFFSET).unwrap();
    assert!(first_above.transactional, "it is open");
    for (_, marker) in MARKERS {
        assert!(batches.iter().any(|batch| batch.control && batch.base_offset == marker), "{marker}");
    }
}

#[test]
fn aggregates_beside_a_damaged_marker_are_those_of_the_rows() {
    let logs = cache();
    let partition = transactions();
    let (mut errors, mut number) = (0, 0);
    for has_index in [true, false] {
        for (position, marker) in MARKERS {
            for byte in DAMAGED_BYTES {
                let folder = folder();
                let dir = copy(&partition.dir, folder.path(), &partition.name);
                flip(&dir.join(format!("{LAST_SEGMENT}.log")), position + byte);
                if !has_index {
                    std::fs::remove_file(dir.join(format!("{LAST_SEGMENT}.txnindex"))).unwrap();
                }
                let context = format!("marker {marker}, byte {byte}, transaction index {has_index}");
                // every range with a fifth of the bytes, and with each marker
                errors += check_each(step(5), number, &logs, &dir, &context);
                number += 1;
            }
        }
    }
    assert!(errors > 100, "{errors}");
}

#[test]
fn aggregates_without_transaction_indexes_are_those_of_the_rows() {
    let logs = cache();
    let (partition, folder) = (transactions(), folder());
    let dir = copy(&partition.dir, folder.path(), &partition.name);
    for base in [12, 389, 751] {
        std::fs::remove_file(dir.join(format!("{base:020}.txnindex"))).unwrap();
        assert_eq!(check_ranges(&logs, &dir, "without transaction indexes"), 0);
    }
}

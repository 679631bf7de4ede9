//! Pieces without planned segments, as [`Piece::of_range`] makes them from ranges: their rows are those of
//! the range.

use std::path::Path;
use std::sync::Arc;

use cordwood::plan::{Context, LogCache, Piece, Task};
use serde_json::Value;

use crate::support::golden;
use crate::support::naive;
use crate::support::planning::{
    COLUMNS, OFFSET, Row, asked, cache, naive_row, name_of, offsets, query, read_task,
};

/// The rows of a range in one task, and the number of its warnings.
fn read(logs: &Arc<LogCache>, asked: &Value) -> (Vec<Row>, usize) {
    let query = query(asked);
    let ranges = Context::new(Arc::clone(logs)).ranges(&query).unwrap();
    let task = Task { pieces: ranges.into_iter().map(Piece::of_range).collect() };
    assert!(task.pieces.iter().all(|piece| piece.split.segments.is_empty()));
    let (found, warnings, error) = read_task(logs, &query, &task);
    assert!(error.is_none(), "{asked}: {error:?}");
    (found.rows, warnings.len())
}

fn expected(dir: &Path, level: &str) -> Vec<Row> {
    let (topic, partition) = name_of(dir);
    let log = naive::read(dir).unwrap();
    let row = |record: &naive::Record| naive_row(&topic, partition.into(), record);
    match level {
        "read_committed" => log.scan_committed(0..i64::MAX, None, false).map(row).collect(),
        _ => log.scan(0..i64::MAX, None, false).map(row).collect(),
    }
}

#[test]
fn a_whole_range_without_planned_segments_is_read() {
    let logs = cache();
    for partition in golden::intact() {
        for level in ["read_uncommitted", "read_committed"] {
            let rows = expected(&partition.dir, level);
            for fails in ["false", "true"] {
                let options = [
                    ("columns", COLUMNS),
                    ("isolationLevel", level),
                    ("failOnDataLoss", fails),
                    ("cleanupPolicy", "compact"),
                ];
                let asked = asked(&partition.dir, &options);
                let start = Context::new(Arc::clone(&logs)).ranges(&query(&asked)).unwrap()[0].start_offset;
                let rows: Vec<Row> = rows.iter().filter(|row| row[OFFSET].int() >= start).cloned().collect();
                assert_eq!(read(&logs, &asked), (rows, 0), "{asked}");
            }
        }
    }
}

#[test]
fn a_part_of_a_range_without_planned_segments_is_read() {
    let logs = cache();
    let partition =
        golden::intact().into_iter().find(|partition| partition.case == "20-many-segments").unwrap();
    let rows = expected(&partition.dir, "read_uncommitted");
    for (start, end) in [(0, 1), (1, 5), (4, 7), (100, 300), (412, 413), (7, 7)] {
        let texts = [offsets(&partition.dir, start), offsets(&partition.dir, end)];
        let options = [
            ("columns", COLUMNS),
            ("failOnDataLoss", "false"),
            ("startingOffsets", &texts[0]),
            ("endingOffsets", &texts[1]),
        ];
        let kept = rows.iter().filter(|row| (start..end).contains(&row[OFFSET].int()));
        assert_eq!(
            read(&logs, &asked(&partition.dir, &options)),
            (kept.cloned().collect(), 0),
            "{start} to {end}"
        );
    }
}

#[test]
fn a_count_of_a_range_without_planned_segments_is_that_of_its_rows() {
    let logs = cache();
    for partition in golden::intact() {
        let options = [("columns", COLUMNS), ("failOnDataLoss", "false"), ("cleanupPolicy", "compact")];
        let asked = asked(&partition.dir, &options);
        let query = query(&asked).counting();
        let ranges = Context::new(Arc::clone(&logs)).ranges(&query).unwrap();
        let start = ranges[0].start_offset;
        let rows = expected(&partition.dir, "read_uncommitted");
        let rows = rows.iter().filter(|row| row[OFFSET].int() >= start).count();
        let task = Task { pieces: ranges.into_iter().map(Piece::of_range).collect() };
        let (counted, _, error) = read_task(&logs, &query, &task);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(counted.rows, [[(rows as i64).into()]], "{}", partition.case);
    }
}

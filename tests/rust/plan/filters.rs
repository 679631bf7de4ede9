//! The rows of a query with filters, filtered once more by those that are not exact, are those of an
//! unfiltered read filtered by all of them.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use crate::support::filters::{compare, drafts};
use crate::support::fixed_seed;
use crate::support::generated::{self, ALL, steps};
use crate::support::golden;
use crate::support::naive;
use crate::support::planning::{COLUMNS, Cell, Row, asked, cache, naive_row, name_of, run_json};
use crate::support::reading::folder;

const MODES: [&str; 3] = ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"];
const LEVELS: [&str; 2] = ["read_uncommitted", "read_committed"];

/// The rows of a naive reader from an offset on.
fn naive_rows(dir: &Path, start: i64, level: &str, mode: &str) -> Vec<Row> {
    let (topic, partition) = name_of(dir);
    let log = naive::read(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let row = |record: &naive::Record| {
        let mut row = naive_row(&topic, partition.into(), record);
        if mode == "PERMISSIVE" {
            // no damage
            row.push(Cell::Null);
        }
        row
    };
    if level == "read_committed" {
        log.scan_committed(start..i64::MAX, None, false).map(row).collect()
    } else {
        log.scan(start..i64::MAX, None, false).map(row).collect()
    }
}

fn query_of(path: &Path, mode: &str, level: &str, bytes: &str) -> Value {
    let options = [
        ("columns", COLUMNS),
        ("mode", mode),
        ("isolationLevel", level),
        ("maxPartitionBytes", bytes),
        // generated logs have gaps
        ("cleanupPolicy", "compact"),
    ];
    asked(path, &options)
}

proptest! {
    #![proptest_config(fixed_seed(25))]

    #[test]
    fn filtered_rows_of_golden_partitions_are_those_of_a_naive_reader(
        picked in any::<Index>(),
        drafts in proptest::collection::vec(drafts(), 8..9),
        mode in proptest::sample::select(&MODES[..]),
        level in proptest::sample::select(&LEVELS[..]),
        bytes in proptest::sample::select(&["1", "3000", "134217728"][..]),
    ) {
        let logs = cache();
        let partitions = golden::intact();
        let partitions: Vec<_> = partitions.iter().filter(|partition| partition.records < 1000).collect();
        let dir = &picked.get(&partitions).dir;
        let asked = query_of(dir, mode, level, bytes);
        let start = run_json(&logs, &asked).bounds[0].start_offset;
        let rows = naive_rows(dir, start, level, mode);
        for drafts in drafts {
            compare(&logs, &asked, &drafts, &rows);
        }
    }

    #[test]
    fn filtered_rows_of_generated_partitions_are_those_of_a_naive_reader(
        partitions in proptest::collection::vec(steps(&ALL, 30), 1..4),
        drafts in proptest::collection::vec(drafts(), 8..9),
        mode in proptest::sample::select(&MODES[..]),
        level in proptest::sample::select(&LEVELS[..]),
        bytes in proptest::sample::select(&["1", "300", "134217728"][..]),
    ) {
        let (logs, folder) = (cache(), folder());
        let mut rows = Vec::new();
        for (steps, name) in partitions.iter().zip(["a-0", "ab-1", "a-2"]) {
            let dir = generated::write(folder.path(), name, steps, 600);
            rows.extend(naive_rows(&dir, 0, level, mode));
        }
        let asked = query_of(folder.path(), mode, level, bytes);
        for drafts in drafts {
            compare(&logs, &asked, &drafts, &rows);
        }
    }
}

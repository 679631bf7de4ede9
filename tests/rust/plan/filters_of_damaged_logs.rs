//! Filters of damaged logs, in every mode. Rows that report damage are rows too: the engine evaluates the
//! filters for them.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::support::filters::{compare, compare_filters, drafts, filters};
use crate::support::fixed_seed;
use crate::support::golden;
use crate::support::planning::{COLUMNS, Cell, OFFSET, Row, asked, cache, naive_row, name_of, run_json};
use crate::support::reading::{open, scan};
use cordwood::log::{OnDamage, ScanOptions};
use cordwood::types::{Io, IsolationLevel};

const LEVELS: [&str; 2] = ["read_uncommitted", "read_committed"];

fn query_of(damaged: &golden::Damaged, mode: &str, level: &str, bytes: &str) -> Value {
    let options = [
        ("columns", COLUMNS),
        ("mode", mode),
        ("isolationLevel", level),
        ("maxPartitionBytes", bytes),
        // a removed segment is a gap
        ("cleanupPolicy", "compact"),
    ];
    asked(&damaged.dir, &options)
}

/// The rows of a scan that leaves damage out.
fn intact_rows(damaged: &golden::Damaged, level: &str) -> Vec<Row> {
    let isolation_level = if level == "read_committed" {
        IsolationLevel::ReadCommitted
    } else {
        IsolationLevel::ReadUncommitted
    };
    let options = ScanOptions { isolation_level, on_damage: OnDamage::Skip, ..ScanOptions::default() };
    let read = scan(&open(&damaged.dir, Io::Pread), options).whole();
    let (topic, partition) = name_of(&damaged.dir);
    read.records().map(|record| naive_row(&topic, partition.into(), record)).collect()
}

proptest! {
    #![proptest_config(fixed_seed(25))]

    #[test]
    fn dropped_damage_leaves_the_rows_of_a_scan_that_skips_it(
        picked in any::<Index>(),
        drafts in proptest::collection::vec(drafts(), 8..9),
        level in proptest::sample::select(&LEVELS[..]),
        bytes in proptest::sample::select(&["1", "3000", "134217728"][..]),
    ) {
        let (logs, cases) = (cache(), golden::damaged());
        let damaged = picked.get(&cases);
        let asked = query_of(damaged, "DROPMALFORMED", level, bytes);
        let rows = intact_rows(damaged, level);
        for drafts in drafts {
            compare(&logs, &asked, &drafts, &rows);
        }
    }

    #[test]
    fn rows_for_damage_are_filtered_as_other_rows(
        picked in any::<Index>(),
        drafts in proptest::collection::vec(drafts(), 8..9),
        level in proptest::sample::select(&LEVELS[..]),
        bytes in proptest::sample::select(&["1", "3000", "134217728"][..]),
    ) {
        let (logs, cases) = (cache(), golden::damaged());
        let damaged = picked.get(&cases);
        let asked = query_of(damaged, "PERMISSIVE", level, bytes);
        let rows = run_json(&logs, &asked).whole().rows();
        for drafts in drafts {
            compare(&logs, &asked, &drafts, &rows);
        }
    }

    #[test]
    fn a_filtered_read_without_an_error_returns_all_rows(
        picked in any::<Index>(),
        drafts in proptest::collection::vec(drafts(), 8..9),
        level in proptest::sample::select(&LEVELS[..]),
        bytes in proptest::sample::select(&["1", "3000", "134217728"][..]),
    ) {
        let (logs, cases) = (cache(), golden::damaged());
        let damaged = picked.get(&cases);
        let asked = query_of(damaged, "FAILFAST", level, bytes);
        let rows = intact_rows(damaged, level);
        for drafts in drafts {
            let filters = filters(&drafts, &rows);
            let mut asked = asked.clone();
            asked["filters"] = filters.clone().into();
            let answer = run_json(&logs, &asked);
            if answer.error.is_none() {
                compare(&logs, &asked, &drafts, &rows);
            }
        }
    }
}

#[test]
fn a_filter_at_the_offset_of_a_row_for_damage_keeps_it() {
    let logs = cache();
    let mut damaged_rows = 0;
    for damaged in golden::damaged() {
        let asked = query_of(&damaged, "PERMISSIVE", LEVELS[0], "134217728");
        let rows = run_json(&logs, &asked).whole().rows();
        let has_damage = |row: &&Row| *row.last().unwrap() != Cell::Null;
        for row in rows.iter().filter(has_damage) {
            damaged_rows += 1;
            let offset = row[OFFSET].int();
            for (operator, value) in [
                ("=", json!(offset)),
                (">=", json!(offset)),
                (">", json!(offset - 1)),
                ("<=", json!(offset)),
                ("<", json!(offset)),
                (">", json!(offset)),
                ("in", json!([offset])),
            ] {
                let filters = vec![json!({ "column": "offset", "op": operator, "value": value })];
                compare_filters(&logs, &asked, &filters, &rows);
            }
        }
    }
    assert!(damaged_rows > 20, "{damaged_rows}");
}

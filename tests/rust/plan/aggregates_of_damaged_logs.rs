//! Aggregates of damaged logs: those of the rows, or an error where the rows have one.

use serde_json::Value;

use crate::support::aggregates::{aggregated, combined, naive};
use crate::support::golden;
use crate::support::planning::{Answer, COLUMNS, Cell, Row, asked, cache, query, run, run_json};
use crate::support::step;

fn query_of(damaged: &golden::Damaged, mode: &str, level: &str, bytes: &str) -> Value {
    let options =
        [("columns", COLUMNS), ("mode", mode), ("isolationLevel", level), ("maxPartitionBytes", bytes)];
    asked(&damaged.dir, &options)
}

fn for_all(mut check: impl FnMut(&golden::Damaged, &str, &str)) {
    for (number, damaged) in golden::damaged().into_iter().enumerate() {
        for (other, level) in ["read_uncommitted", "read_committed"].into_iter().enumerate() {
            for bytes in ["3000", "134217728"].into_iter().skip((number + other) % step(2)).step_by(step(2)) {
                check(&damaged, level, bytes);
            }
        }
    }
}

#[test]
fn aggregates_of_damaged_partitions_are_those_of_the_rows() {
    let logs = cache();
    let (mut errors, mut same) = (0, 0);
    for mode in ["FAILFAST", "DROPMALFORMED"] {
        for_all(|damaged, level, bytes| {
            let asked = query_of(damaged, mode, level, bytes);
            let rows = run_json(&logs, &asked);
            let found = aggregated(&logs, &asked);
            match (&rows.error, &found.error) {
                (None, None) => {
                    same += 1;
                    assert_eq!(combined(&found), naive(&rows.rows()), "{} {asked}", damaged.case);
                }
                (Some(error), Some(found)) => {
                    errors += 1;
                    assert_eq!((found.code, found.segment), (error.code, error.segment), "{}", damaged.case);
                }
                (error, found) => panic!("{} {asked}: {found:?} instead of {error:?}", damaged.case),
            }
        });
    }
    assert!(errors > 20 && same > 100, "{errors} {same}");
}

#[test]
fn aggregates_warn_of_dropped_damage_as_a_read_does() {
    let logs = cache();
    let mut warned = 0;
    for_all(|damaged, level, bytes| {
        let asked = query_of(damaged, "DROPMALFORMED", level, bytes);
        let texts = |answer: &Answer| {
            let mut texts: Vec<_> = answer.warnings.iter().map(|warning| warning.text.clone()).collect();
            texts.sort();
            texts
        };
        let (rows, found) = (run_json(&logs, &asked), aggregated(&logs, &asked));
        warned += rows.warnings.len();
        assert_eq!(texts(&found), texts(&rows), "{}", damaged.case);
    });
    assert!(warned > 20, "{warned}");
}

/// `Query::counting` is for all modes; rows for damage are not counted.
#[test]
fn a_count_in_every_mode_is_the_number_of_records() {
    let logs = cache();
    for_all(|damaged, level, bytes| {
        let mut asked = query_of(damaged, "PERMISSIVE", level, bytes);
        // a removed segment is a gap
        asked["options"]["cleanupPolicy"] = "compact".into();
        let rows = run_json(&logs, &asked).whole().rows();
        let is_record = |row: &&Row| *row.last().unwrap() == Cell::Null;
        let counted = run(&logs, &query(&asked).counting()).whole();
        let count: i64 = counted.rows().iter().map(|row| row[0].int()).sum();
        assert_eq!(count, rows.iter().filter(is_record).count() as i64, "{}", damaged.case);
    });
}

//! Aggregates of times at the edges: those of the rows, or the same error.

use std::path::Path;

use cordwood::plan::Code;
use serde_json::{Value, json};

use crate::support::aggregates::{aggregated, combined, naive};
use crate::support::batches::{BatchV2, Rec};
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::planning::{COLUMNS, Cell, asked, cache, offsets, run_json};
use crate::support::reading::folder;

/// A log with a batch for each list of times.
fn write(parent: &Path, batches: &[&[i64]]) -> std::path::PathBuf {
    let mut base = 0;
    let built = batches.iter().map(|times| {
        let batch =
            BatchV2::new(base).records(times.iter().map(|time| Rec::at(*time).value("value"))).build();
        base = batch.next_offset();
        batch
    });
    PartitionBuilder::new(Indexing::every(200)).segment(0, built).write(parent, "orders-0")
}

fn one(asked: &Value, function: &str, column: Option<&str>) -> Value {
    let mut asked = asked.clone();
    asked["aggregates"] = json!([{ "function": function, "column": column }]);
    asked
}

#[test]
fn times_below_zero_are_those_of_the_rows() {
    for times in [&[-5][..], &[-5, -1], &[-1], &[-1, -7], &[-62_135_596_800_000], &[-5, 0], &[0]] {
        let folder = folder();
        let dir = write(folder.path(), &[times]);
        let asked = asked(&dir, &[("columns", COLUMNS)]);
        let rows = run_json(&cache(), &asked).whole().rows();
        assert_eq!(combined(&aggregated(&cache(), &asked).whole()), naive(&rows), "{times:?}");
        let largest = run_json(&cache(), &one(&asked, "max", Some("timestamp"))).whole().rows();
        assert_eq!(largest[0][0], naive(&rows)[4], "{times:?}");
    }
}

/// Spark's microseconds end at 9,223,372,036,854,775 ms.
#[test]
fn a_time_that_microseconds_cannot_hold_is_an_error_as_in_the_rows() {
    const LARGEST: i64 = i64::MAX / 1000;
    for (time, fits) in [(LARGEST, true), (LARGEST + 1, false), (i64::MAX, false)] {
        let folder = folder();
        let dir = write(folder.path(), &[&[1000], &[time, 5]]);
        let query = asked(&dir, &[("columns", COLUMNS)]);
        let rows = run_json(&cache(), &query);
        assert_eq!(rows.error.as_ref().map(|error| error.code), (!fits).then_some(Code::Unsupported));
        for (function, column) in [("max", "timestamp"), ("min", "timestamp")] {
            let found = run_json(&cache(), &one(&query, function, Some(column)));
            assert_eq!(
                found.error.map(|error| error.code),
                rows.error.as_ref().map(|error| error.code),
                "{time}"
            );
        }
        if fits {
            let found = combined(&aggregated(&cache(), &query).whole());
            assert_eq!(found, naive(&rows.whole().rows()));
        }
    }
}

#[test]
fn such_a_time_does_not_matter_where_no_time_is_needed() {
    let folder = folder();
    let dir = write(folder.path(), &[&[1000], &[i64::MAX, 5, 6], &[7]]);
    let (start, end) = (offsets(&dir, 2), offsets(&dir, 4));
    for (options, count, first, last) in [
        (vec![], 5, 0, 4),
        (vec![("startingOffsets", start.as_str())], 3, 2, 4),
        (vec![("startingOffsets", start.as_str()), ("endingOffsets", end.as_str())], 2, 2, 3),
        (vec![("mode", "DROPMALFORMED")], 5, 0, 4),
        (vec![("failOnDataLoss", "false")], 5, 0, 4),
    ] {
        let asked = asked(&dir, &options);
        for (function, column, wanted) in
            [("count", None, count), ("min", Some("offset"), first), ("max", Some("offset"), last)]
        {
            let found = run_json(&cache(), &one(&asked, function, column)).whole().rows();
            assert_eq!(found, [[Cell::Int(wanted)]], "{options:?} {function}");
        }
    }
}

//! Limits and choices of columns: the first rows of each task, in the columns that are asked for.

use std::sync::Arc;

use cordwood::plan::{Context, Query, TaskReader};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::generated::{self, ALL, steps};
use crate::support::golden;
use crate::support::planning::{Cell, Row, asked, cache, query, run_json};
use crate::support::reading::folder;
use crate::support::{fixed_seed, step};

fn compare_limited(asked: &Value, limits: &[u64]) {
    let logs = cache();
    let whole = run_json(&logs, asked).whole();
    for limit in limits {
        let mut limited = asked.clone();
        limited["limit"] = (*limit).into();
        let found = run_json(&logs, &limited).whole();
        assert_eq!(found.tasks, whole.tasks, "a limit is of a task");
        for (found, whole) in found.read.iter().zip(&whole.read) {
            let most = usize::try_from(*limit).unwrap_or(usize::MAX).min(whole.rows.len());
            assert_eq!(found.rows, whole.rows[..most], "{limited}");
        }
    }
}

proptest! {
    #![proptest_config(fixed_seed(60))]

    #[test]
    fn a_limit_leaves_the_first_rows_of_each_task(
        partitions in proptest::collection::vec(steps(&ALL, 30), 1..3),
        limits in proptest::collection::vec(prop_oneof![0u64..5, 0u64..100, Just(u64::MAX)], 4..5),
        (bytes, batch_rows) in (1u64..2000, 1u64..20),
        table in proptest::sample::select(&["records", "batches", "segments"][..]),
        level in proptest::sample::select(&["read_uncommitted", "read_committed"][..]),
    ) {
        let folder = folder();
        for (steps, name) in partitions.iter().zip(["a-0", "ab-1"]) {
            generated::write(folder.path(), name, steps, 600);
        }
        let (bytes, batch_rows) = (bytes.to_string(), batch_rows.to_string());
        let options = [
            ("table", table), ("isolationLevel", level), ("maxPartitionBytes", &bytes), ("maxBatchRows", &batch_rows),
            ("cleanupPolicy", "compact"),
        ];
        compare_limited(&asked(folder.path(), &options), &limits);
    }

    #[test]
    fn columns_in_any_order_have_the_same_values(
        steps in steps(&ALL, 20),
        order in Just((0..21usize).collect::<Vec<_>>()).prop_shuffle(),
        count in 0usize..22,
        mode in proptest::sample::select(&["FAILFAST", "PERMISSIVE"][..]),
        table in proptest::sample::select(&["records", "batches", "segments"][..]),
    ) {
        let (logs, folder) = (cache(), folder());
        let dir = generated::write(folder.path(), "orders-3", &steps, 600);
        let mut whole_query = asked(&dir, &[("mode", mode), ("table", table), ("cleanupPolicy", "compact")]);
        let whole_schema = query(&whole_query).arrow_schema();
        let mut names: Vec<&str> = whole_schema.fields().iter().map(|field| field.name().as_str()).collect();
        if table == "records" {
            names = ALL_COLUMNS.to_vec();
            whole_query["columns"] = json!(names);
        }
        let chosen: Vec<usize> = order.into_iter().filter(|at| *at < names.len()).take(count).collect();
        let mut asked = whole_query.clone();
        asked["columns"] = chosen.iter().map(|at| names[*at]).collect();
        let (whole, found) = (run_json(&logs, &whole_query).whole(), run_json(&logs, &asked).whole());
        let wanted: Vec<Row> = whole.rows().iter().map(|row| chosen.iter().map(|at| row[*at].clone()).collect()).collect();
        assert_eq!(found.rows(), wanted, "{asked}");
        let schema = query(&asked).arrow_schema();
        let found: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(found, chosen.iter().map(|at| names[*at]).collect::<Vec<_>>());
    }
}

/// A row for damage that another task reports takes no part of the limit.
#[test]
fn a_limit_leaves_the_first_rows_of_damaged_logs() {
    for (number, damaged) in golden::damaged().into_iter().enumerate() {
        let cuts = [("maxPartitionBytes", "3000"), ("maxRecordsPerPartition", "30")];
        for cut in cuts.into_iter().skip(number % step(2)).step_by(step(2)) {
            let options =
                [cut, ("mode", "PERMISSIVE"), ("cleanupPolicy", "compact"), ("columns", "offset,value")];
            compare_limited(&asked(&damaged.dir, &options), &[1, 7]);
        }
    }
}

/// The range of a filter begins in or after the damage, which is found on the way to it and is no row.
#[test]
fn damage_before_the_range_of_a_filter_takes_no_part_of_the_limit() {
    let mut compared = 0;
    for damaged in golden::damaged() {
        let options = [("mode", "PERMISSIVE"), ("cleanupPolicy", "compact"), ("columns", "offset,value")];
        let mut asked = asked(&damaged.dir, &options);
        let rows = run_json(&cache(), &asked).whole().rows();
        let is_damage = |row: &Row| *row.last().unwrap() != Cell::Null;
        for pair in rows.windows(2).filter(|pair| is_damage(&pair[0]) && !is_damage(&pair[1])) {
            for distance in -2..6 {
                let filter = json!({ "column": "offset", "op": ">", "value": pair[0][0].int() + distance });
                asked["filters"] = json!([filter]);
                compare_limited(&asked, &[1]);
                compared += 1;
            }
        }
    }
    assert!(compared > 60, "{compared}");
}

const ALL_COLUMNS: [&str; 21] = [
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
    "leaderEpoch",
    "producerId",
    "producerEpoch",
    "sequence",
    "isTransactional",
    "isControl",
    "codec",
    "magic",
    "batchBaseOffset",
    "position",
    "segmentBaseOffset",
    "keySize",
    "valueSize",
];

/// Every batch has the arrays of its schema, also without a column.
#[test]
fn without_columns_rows_are_counted() {
    for partition in golden::intact().iter().filter(|partition| partition.records < 1000) {
        for table in ["records", "batches", "segments"] {
            let logs = cache();
            let mut asked = asked(&partition.dir, &[("table", table), ("maxBatchRows", "100")]);
            let whole = run_json(&logs, &asked).whole().rows().len();
            asked["columns"] = json!([]);
            let query = query(&asked);
            let (_, tasks) = Context::new(Arc::clone(&logs)).plan(&query).unwrap();
            let mut rows = 0;
            for task in tasks {
                let mut reader = TaskReader::new(Context::new(Arc::clone(&logs)), query.clone(), task);
                while let Some(batch) = reader.next_batch().unwrap() {
                    assert!(batch.rows <= 100);
                    let batch = batch.into_record_batch(&query).unwrap();
                    assert_eq!(batch.num_columns(), 0);
                    rows += batch.num_rows();
                }
            }
            assert_eq!(rows, whole, "{} {table}", partition.case);
        }
    }
}

#[test]
fn a_column_twice_or_an_unknown_one_is_refused() {
    let dir = golden::intact()[0].dir.clone();
    for columns in
        [json!(["offset", "offset"]), json!(["offsets"]), json!([3]), json!("offset"), json!(["_error"])]
    {
        let mut asked = asked(&dir, &[]);
        asked["columns"] = columns;
        let error = Query::from_json(&asked.to_string(), &mut Vec::new()).unwrap_err();
        assert_eq!(error.code, cordwood::plan::Code::BadOption, "{asked}");
    }
}

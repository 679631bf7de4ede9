//! Filters of batches and segments: only their columns topic and partition are those of a filter. Partitions
//! whose directory has another name have neither.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::filters::{Draft, compare_filters, drafts, filters};
use crate::support::fixed_seed;
use crate::support::generated::{self, ALL, steps};
use crate::support::naive;
use crate::support::planning::{
    Cell, OFFSET, PARTITION, Row, TIMESTAMP, TOPIC, cache, exact_filters, run_json,
};
use crate::support::reading::folder;

fn query_of(folder: &std::path::Path, table: &str, mode: &str) -> Value {
    // neither topic nor partition is in the last name
    let paths: Vec<_> = ["a-0", "ab-1", "a-2", "copy"]
        .iter()
        .map(|name| folder.join(name).to_str().unwrap().to_owned())
        .collect();
    let options = json!({
        "paths": Value::from(paths).to_string(),
        "table": table,
        "mode": mode,
        "cleanupPolicy": "compact",
        "maxPartitionBytes": "300",
    });
    json!({ "options": options })
}

fn has_column(draft: &Draft, columns: [usize; 2]) -> bool {
    columns.contains(&draft.0)
}

proptest! {
    #![proptest_config(fixed_seed(30))]

    #[test]
    fn rows_of_other_tables_are_filtered_by_topic_and_partition(
        partitions in proptest::collection::vec(steps(&ALL, 12), 4..5),
        drafts in proptest::collection::vec(drafts(), 8..9),
        table in proptest::sample::select(&["batches", "segments", "records"][..]),
        mode in proptest::sample::select(&["FAILFAST", "DROPMALFORMED"][..]),
    ) {
        let (logs, folder) = (cache(), folder());
        for (steps, name) in partitions.iter().zip(["a-0", "ab-1", "a-2", "copy"]) {
            generated::write(folder.path(), name, steps, 600);
        }
        let mut asked = query_of(folder.path(), table, mode);
        if table == "records" {
            asked["columns"] = json!(["topic", "partition", "offset", "timestamp", "value"]);
        }
        let rows = run_json(&logs, &asked).whole().rows();
        let is_unnamed = |row: &Row| row[TOPIC] == Cell::Null && row[PARTITION] == Cell::Null;
        assert!(table == "records" || rows.iter().any(is_unnamed));
        for drafts in drafts {
            let kept: Vec<Draft> =
                drafts.into_iter().filter(|draft| has_column(draft, [TOPIC, PARTITION])).collect();
            compare_filters(&logs, &asked, &filters(&kept, &rows), &rows);
        }
    }

    /// The engine never has such filters. They leave all rows, and are not said to be exact.
    #[test]
    fn filters_of_columns_of_records_leave_other_tables_alone(
        steps in steps(&ALL, 12),
        drafts in proptest::collection::vec(drafts(), 10..11),
        table in proptest::sample::select(&["batches", "segments"][..]),
    ) {
        let (logs, folder) = (cache(), folder());
        for name in ["a-0", "ab-1", "a-2", "copy"] {
            generated::write(folder.path(), name, &steps, 600);
        }
        let mut asked = query_of(folder.path(), table, "FAILFAST");
        let rows = run_json(&logs, &asked).whole().sorted();
        for drafts in drafts {
            let kept: Vec<Draft> =
                drafts.into_iter().filter(|draft| has_column(draft, [OFFSET, TIMESTAMP])).collect();
            asked["filters"] = filters(&kept, &rows).into();
            assert_eq!(exact_filters(&asked), vec![false; kept.len()]);
            assert_eq!(run_json(&logs, &asked).whole().sorted(), rows, "{asked}");
        }
    }

    #[test]
    fn batches_are_those_of_a_naive_reader(steps in steps(&ALL, 30), bytes in 1u64..2000) {
        let (logs, folder) = (cache(), folder());
        let dir = generated::write(folder.path(), "orders-3", &steps, 600);
        let options = json!({
            "path": dir.to_str().unwrap(),
            "table": "batches",
            "cleanupPolicy": "compact",
            "maxPartitionBytes": bytes.to_string(),
        });
        let asked = json!({ "options": options, "columns": [
            "topic", "partition", "segmentBaseOffset", "position", "size", "baseOffset", "lastOffset", "count",
            "codec", "timestampType", "leaderEpoch", "producerId", "isTransactional", "isControl", "crc", "magic",
        ] });
        let mut wanted: Vec<Row> = naive::read(&dir).unwrap().batches.iter().map(|batch| vec![
            "orders".into(),
            3.into(),
            batch.segment.into(),
            (batch.position as i64).into(),
            (batch.size as i64).into(),
            batch.base_offset.into(),
            batch.last_offset.into(),
            batch.count.map(i64::from).into(),
            batch.codec.name().into(),
            (batch.timestamp_type as i64).into(),
            i64::from(batch.leader_epoch).into(),
            batch.producer_id.into(),
            i64::from(batch.transactional).into(),
            i64::from(batch.control).into(),
            i64::from(batch.crc).into(),
            i64::from(batch.magic).into(),
        ]).collect();
        wanted.sort();
        assert_eq!(run_json(&logs, &asked).whole().sorted(), wanted);
    }
}

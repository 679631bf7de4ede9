//! Aggregates of a query over its rows, computed naively.

use std::sync::Arc;

use cordwood::plan::LogCache;
use serde_json::{Value, json};

use super::planning::{Answer, Cell, OFFSET, Row, TIMESTAMP, query, run};

/// All aggregates, in the order of [`naive`].
pub fn all() -> Value {
    json!([
        { "function": "count" },
        { "function": "min", "column": "offset" },
        { "function": "max", "column": "offset" },
        { "function": "min", "column": "timestamp" },
        { "function": "max", "column": "timestamp" },
    ])
}

/// The same over rows of [`COLUMNS`](super::planning::COLUMNS).
pub fn naive(rows: &[Row]) -> Row {
    let of = |column: usize| rows.iter().map(move |row| row[column].int());
    vec![
        Cell::Int(rows.len() as i64),
        of(OFFSET).min().into(),
        of(OFFSET).max().into(),
        of(TIMESTAMP).min().into(),
        of(TIMESTAMP).max().into(),
    ]
}

/// The rows of all tasks combined, as the engine does it.
pub fn combined(answer: &Answer) -> Row {
    let rows = answer.rows();
    assert_eq!(rows.len(), answer.tasks.len(), "a row a task");
    assert!(rows.iter().all(|row| row[0] != Cell::Null), "a count is never null");
    let of = |column: usize| {
        let known = move |row: &Row| if row[column] == Cell::Null { None } else { Some(row[column].int()) };
        rows.iter().filter_map(known)
    };
    vec![
        Cell::Int(of(0).sum()),
        of(1).min().into(),
        of(2).max().into(),
        of(3).min().into(),
        of(4).max().into(),
    ]
}

/// The aggregates of a query by its JSON, which tasks can compute.
pub fn aggregated(logs: &Arc<LogCache>, asked: &Value) -> Answer {
    let mut asked = asked.clone();
    asked["aggregates"] = all();
    let query = query(&asked);
    assert!(query.can_aggregate(), "{asked}");
    run(logs, &query)
}

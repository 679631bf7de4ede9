//! Random filters of a query of [`COLUMNS`](super::planning::COLUMNS), and what they mean in SQL.

use std::sync::Arc;

use cordwood::plan::LogCache;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::planning::{COLUMNS, Cell, OFFSET, PARTITION, Row, TIMESTAMP, TOPIC, exact_filters, run_json};

const OPERATORS: [&str; 9] = ["=", "<=>", "<", "<=", ">", ">=", "in", "startsWith", "isNotNull"];

/// A filter before its values are taken from a log: column, operator, and values with distances from them.
pub type Draft = (usize, usize, Vec<(Index, i64)>);

/// Up to four filters.
pub fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    let distance = prop_oneof![
        4 => Just(0i64),
        2 => -2i64..3,
        2 => -2000i64..2001,
        1 => Just(999),
        1 => Just(-999)
    ];
    let values = proptest::collection::vec((any::<Index>(), distance), 1..4);
    // offset and timestamp more often than topic and partition
    let column = prop_oneof![1 => Just(TOPIC), 1 => Just(PARTITION), 3 => Just(OFFSET), 4 => Just(TIMESTAMP)];
    proptest::collection::vec((column, 0..OPERATORS.len(), values), 1..5)
}

/// The filters as the engine passes them: values of the type of the column, and no operator of strings for
/// numbers.
pub fn filters(drafts: &[Draft], rows: &[Row]) -> Vec<Value> {
    let names: Vec<&str> = COLUMNS.split(',').collect();
    let one = |(column, operator, picks): &Draft| {
        let value = |(pick, distance): &(Index, i64)| value(*column, *pick, *distance, rows);
        let operator = match (OPERATORS[*operator], *column) {
            ("startsWith", PARTITION | OFFSET | TIMESTAMP) => ">=",
            (operator, _) => operator,
        };
        let value = match operator {
            "in" => picks.iter().map(value).collect(),
            "isNotNull" => Value::Null,
            _ => value(&picks[0]),
        };
        json!({ "column": names[*column], "op": operator, "value": value })
    };
    drafts.iter().map(one).collect()
}

/// A value of the rows, or near one, or at an edge of its type.
fn value(column: usize, pick: Index, distance: i64, rows: &[Row]) -> Value {
    const NUMBERS: [i64; 8] = [i64::MIN, i64::MIN + 999, -1001, -1000, -1, 0, i64::MAX - 999, i64::MAX];
    const TOPICS: [&str; 6] = ["", "a", "ab", "b", "orders", "\u{10ffff}"];
    let place = pick.index(rows.len() + NUMBERS.len());
    match (column, rows.get(place).map(|row| &row[column])) {
        (TOPIC, Some(Cell::Text(topic))) => {
            let length = topic.len().min(distance.unsigned_abs() as usize);
            if distance < 0 { topic[..length].into() } else { topic.as_str().into() }
        }
        (TOPIC, _) => TOPICS[place % TOPICS.len()].into(),
        (_, Some(Cell::Int(number))) => number.saturating_add(distance).into(),
        (PARTITION, _) => (NUMBERS[place % NUMBERS.len()] as i32).into(),
        _ => NUMBERS[place % NUMBERS.len()].into(),
    }
}

/// SQL: a comparison with null does not hold.
pub fn holds(filter: &Value, row: &Row) -> bool {
    let column = COLUMNS.split(',').position(|name| filter["column"] == name).unwrap();
    let cell = &row[column];
    let same_type = |value: &Value| match (cell, value) {
        (Cell::Int(_), Value::Number(number)) => number.as_i64().map(Cell::Int),
        (Cell::Text(_), Value::String(text)) => Some(Cell::Text(text.clone())),
        _ => None,
    };
    let is_equal = |value: &Value| same_type(value).is_some_and(|value| value == *cell);
    let value = same_type(&filter["value"]);
    match (filter["op"].as_str().unwrap(), value) {
        ("isNotNull", _) => *cell != Cell::Null,
        ("in", _) => filter["value"].as_array().unwrap().iter().any(is_equal),
        (_, None) => false,
        ("startsWith", Some(Cell::Text(start))) => {
            matches!(cell, Cell::Text(text) if text.starts_with(&start))
        }
        ("=" | "<=>", Some(value)) => *cell == value,
        ("<", Some(value)) => *cell < value,
        ("<=", Some(value)) => *cell <= value,
        (">", Some(value)) => *cell > value,
        (">=", Some(value)) => *cell >= value,
        (other, _) => panic!("operator {other}"),
    }
}

/// Compares the rows of a filtered query with these rows of an unfiltered one. What is said to be exact needs
/// no other filter.
pub fn compare(logs: &Arc<LogCache>, asked: &Value, drafts: &[Draft], rows: &[Row]) {
    compare_filters(logs, asked, &filters(drafts, rows), rows);
}

/// [`compare`] with given filters.
pub fn compare_filters(logs: &Arc<LogCache>, asked: &Value, filters: &[Value], rows: &[Row]) {
    let mut asked = asked.clone();
    asked["filters"] = filters.into();
    let exact = exact_filters(&asked);
    assert_eq!(exact.len(), filters.len());
    let found = run_json(logs, &asked).whole().sorted();
    let rest: Vec<&Value> =
        filters.iter().zip(&exact).filter(|(_, exact)| !**exact).map(|(filter, _)| filter).collect();
    let found: Vec<&Row> = found.iter().filter(|row| rest.iter().all(|filter| holds(filter, row))).collect();
    let mut wanted: Vec<&Row> =
        rows.iter().filter(|row| filters.iter().all(|filter| holds(filter, row))).collect();
    wanted.sort();
    assert_eq!(found, wanted, "{asked} exact {exact:?}");
}

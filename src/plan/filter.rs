//! Filters of an engine: conditions on a column, all of which must hold.

use std::fmt;

use serde_json::Value;

use super::directory::PartitionDirectory;
use super::error::{Code, PlanError, Result};
use super::options::{Mode, SourceOptions, Table};
use super::restriction::Restriction;

/// A column that filters restrict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilterColumn {
    Topic,
    Partition,
    Offset,
    /// Microseconds since the epoch, −1 ms for a record without a time.
    Timestamp,
    /// One that only the engine filters.
    Other,
}

/// A comparison with the value of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    StartsWith,
    IsNotNull,
}

/// A condition: column, operator and value.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    column: FilterColumn,
    operator: Operator,
    value: Value,
    /// As the engine wrote it.
    text: String,
}

const COLUMNS: [(&str, FilterColumn); 4] = [
    ("topic", FilterColumn::Topic),
    ("partition", FilterColumn::Partition),
    ("offset", FilterColumn::Offset),
    ("timestamp", FilterColumn::Timestamp),
];

const OPERATORS: [(&str, Operator); 9] = [
    ("=", Operator::Equal),
    // equal for values that are not null, and no other value is passed
    ("<=>", Operator::Equal),
    ("<", Operator::Less),
    ("<=", Operator::LessOrEqual),
    (">", Operator::Greater),
    (">=", Operator::GreaterOrEqual),
    ("in", Operator::In),
    ("startsWith", Operator::StartsWith),
    ("isNotNull", Operator::IsNotNull),
];

impl fmt::Display for Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Filter {
    /// Reads filters from JSON: a list of objects with `column`, `op` and `value`.
    ///
    /// # Errors
    /// [`Code::BadOption`].
    pub(crate) fn read_all(filters: &Value) -> Result<Vec<Self>> {
        let wrong = || {
            let reason = format!("filters: expected columns, operators and values, found {filters}");
            PlanError::new(Code::BadOption, reason)
        };
        let read = |filter: &Value| {
            let name = |part: &str| filter.get(part).and_then(Value::as_str);
            let (column, operator) = (name("column")?, name("op")?);
            let (kind, value) = (COLUMNS.iter().find(|(known, _)| *known == column), filter.get("value"));
            let written = value.map(|value| format!(" {value}")).unwrap_or_default();
            Some(Self {
                column: kind.map_or(FilterColumn::Other, |(_, column)| *column),
                operator: OPERATORS.iter().find(|(known, _)| *known == operator)?.1,
                value: value.cloned().unwrap_or(Value::Null),
                text: format!("{column} {operator}{written}"),
            })
        };
        filters.as_array().ok_or_else(wrong)?.iter().map(|filter| read(filter).ok_or_else(wrong)).collect()
    }

    /// What these filters leave of the ranges of a query. It may be more than the rows for which all of them
    /// hold: see [`Filter::are_exact`].
    pub(crate) fn restriction(filters: &[Self], options: &SourceOptions) -> Restriction {
        let mut restriction = Restriction::default();
        let (mut start_time, mut end_time) = (None, None);
        for filter in filters {
            match filter.column {
                FilterColumn::Topic | FilterColumn::Partition => {
                    restriction.of_directories.push(filter.clone());
                }
                FilterColumn::Other => {}
                // the other tables have no such columns
                _ if options.table != Table::Records => {}
                FilterColumn::Offset => {
                    let (low, high) = filter.range(1);
                    // a range does not report damage that may begin before it, and a row for damage has the
                    // offset where it begins
                    let before = i64::from(options.mode == Mode::Permissive);
                    let low = low.map(|low| low.saturating_sub(before));
                    restriction.start_offset = restriction.start_offset.max(low);
                    restriction.end_offset = earlier(restriction.end_offset, high);
                }
                FilterColumn::Timestamp => {
                    let (low, high) = filter.range(1000);
                    start_time = start_time.max(low);
                    end_time = earlier(end_time, high);
                }
            }
        }
        // A range of times has no record without a time, which is at -1 ms for the engine. And a range
        // without a start prunes nothing.
        if let Some(start) = start_time.filter(|start| *start >= 0) {
            restriction.start_time = Some(start);
            restriction.end_time = end_time.map(|end| end.max(start));
        }
        restriction
    }

    /// For each filter, whether the rows of a query are those for which it holds, so that the engine need not
    /// evaluate it again.
    pub(crate) fn are_exact(filters: &[Self], options: &SourceOptions) -> Vec<bool> {
        let has_times = Self::restriction(filters, options).start_time.is_some();
        let is_exact = |filter: &Self| match filter.column {
            // rows for damage are not filtered
            _ if options.mode == Mode::Permissive => false,
            FilterColumn::Other => false,
            FilterColumn::Topic | FilterColumn::Partition => true,
            _ if options.table != Table::Records => false,
            _ if filter.operator == Operator::IsNotNull => true,
            _ if matches!(filter.operator, Operator::In | Operator::StartsWith) => false,
            FilterColumn::Offset => filter.value.is_i64(),
            FilterColumn::Timestamp => filter.value.is_i64() && has_times,
        };
        filters.iter().map(is_exact).collect()
    }

    /// Whether the filter holds for the topic or the partition of a directory; true for other columns.
    pub(crate) fn includes(&self, directory: &PartitionDirectory) -> bool {
        let found = match self.column {
            FilterColumn::Topic => directory.topic.clone().map(Value::from),
            FilterColumn::Partition => directory.partition.map(Value::from),
            FilterColumn::Offset | FilterColumn::Timestamp | FilterColumn::Other => return true,
        };
        // a comparison with null is not true
        let Some(found) = found else { return false };
        let order = match (&found, &self.value) {
            (Value::String(found), Value::String(value)) => Some(found.cmp(value)),
            (Value::Number(found), Value::Number(value)) => {
                found.as_i64().zip(value.as_i64()).map(|(a, b)| a.cmp(&b))
            }
            _ => None,
        };
        match self.operator {
            Operator::IsNotNull => true,
            Operator::In => self.value.as_array().is_some_and(|values| values.contains(&found)),
            Operator::StartsWith => {
                found.as_str().zip(self.value.as_str()).is_some_and(|(found, start)| found.starts_with(start))
            }
            Operator::Equal => order.is_some_and(std::cmp::Ordering::is_eq),
            Operator::Less => order.is_some_and(std::cmp::Ordering::is_lt),
            Operator::LessOrEqual => order.is_some_and(std::cmp::Ordering::is_le),
            Operator::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
            Operator::GreaterOrEqual => order.is_some_and(std::cmp::Ordering::is_ge),
        }
    }

    /// The half-open range of numbers that can fulfil the filter, each of which the engine has `unit` times
    /// as large; `None`: no limit.
    fn range(&self, unit: i64) -> (Option<i64>, Option<i64>) {
        // the smallest number whose multiple is at or above, or above, a value
        let at_or_above = |value: i64| value.div_euclid(unit) + i64::from(value.rem_euclid(unit) > 0);
        let above = |value: i64| value.div_euclid(unit).saturating_add(1);
        let value = self.value.as_i64();
        match (self.operator, value) {
            (Operator::Equal, Some(value)) => (Some(at_or_above(value)), Some(above(value))),
            (Operator::Less, Some(value)) => (None, Some(at_or_above(value))),
            (Operator::LessOrEqual, Some(value)) => (None, Some(above(value))),
            (Operator::Greater, Some(value)) => (Some(above(value)), None),
            (Operator::GreaterOrEqual, Some(value)) => (Some(at_or_above(value)), None),
            (Operator::In, _) => {
                let values = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
                let numbers: Option<Vec<i64>> = values.iter().map(Value::as_i64).collect();
                let numbers = numbers.unwrap_or_default();
                (numbers.iter().min().copied().map(at_or_above), numbers.iter().max().copied().map(above))
            }
            _ => (None, None),
        }
    }
}

fn earlier(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

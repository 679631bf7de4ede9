//! Runs queries of `cordwood::plan`, and converts their rows to values that are compared easily.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
};
use arrow_schema::{DataType, TimeUnit};
use cordwood::LogOptions;
use cordwood::log::ScanStats;
use cordwood::plan::{
    Bounds, Context, LogCache, PlanError, Query, Task, TaskBatch, TaskColumn, TaskReader, Warning,
};
use serde_json::{Value, json};

use super::naive;

/// A value of a row. Times are in the unit of their column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cell {
    Null,
    Int(i64),
    Bytes(Vec<u8>),
    /// A string, or a value of any other type as text.
    Text(String),
}

pub type Row = Vec<Cell>;

impl Cell {
    pub fn int(&self) -> i64 {
        if let Self::Int(number) = self { *number } else { panic!("{self:?} is not a number") }
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<T> From<Option<T>> for Cell
where
    Cell: From<T>,
{
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Self::from)
    }
}

/// The JSON of a query of a path with options; more may be added to it.
pub fn asked(path: &Path, options: &[(&str, &str)]) -> Value {
    let mut texts = json!({ "path": path.to_str().unwrap() });
    for (name, text) in options {
        texts[*name] = Value::from(*text);
    }
    json!({ "options": texts })
}

pub fn query(asked: &Value) -> Query {
    Query::from_json(&asked.to_string(), &mut Vec::new()).unwrap_or_else(|error| panic!("{asked}: {error}"))
}

pub fn cache() -> Arc<LogCache> {
    Arc::new(LogCache::new(LogOptions::default()))
}

/// The rows of a task.
#[derive(Debug, Default)]
pub struct TaskRows {
    pub rows: Vec<Row>,
    /// The number of rows of each batch.
    pub batches: Vec<usize>,
    pub stats: ScanStats,
}

/// The results of a query, without those of tasks after an error.
#[derive(Debug, Default)]
pub struct Answer {
    pub bounds: Vec<Bounds>,
    pub tasks: Vec<Task>,
    pub read: Vec<TaskRows>,
    pub warnings: Vec<Warning>,
    pub error: Option<PlanError>,
}

impl Answer {
    /// The rows of all tasks, in their order.
    pub fn rows(&self) -> Vec<Row> {
        self.read.iter().flat_map(|task| task.rows.iter().cloned()).collect()
    }

    /// The same in the order of their values.
    pub fn sorted(&self) -> Vec<Row> {
        let mut rows = self.rows();
        rows.sort();
        rows
    }

    /// The answer of a query that must not have failed.
    pub fn whole(self) -> Self {
        if let Some(error) = &self.error {
            panic!("{error}");
        }
        self
    }

    pub fn stats(&self) -> ScanStats {
        let mut sum = ScanStats::default();
        self.read.iter().for_each(|task| sum += task.stats);
        sum
    }
}

/// Plans and reads a query, as a driver and its executors do: each task goes through its bytes.
pub fn run(logs: &Arc<LogCache>, query: &Query) -> Answer {
    let mut context = Context::new(Arc::clone(logs));
    let planned = context.plan(query);
    let mut answer = Answer { warnings: context.warnings, ..Answer::default() };
    match planned {
        Ok((bounds, tasks)) => (answer.bounds, answer.tasks) = (bounds, tasks),
        Err(error) => return Answer { error: Some(error), ..answer },
    }
    for task in answer.tasks.clone() {
        let (read, warnings, error) = read_task(logs, query, &task);
        answer.read.push(read);
        answer.warnings.extend(warnings);
        answer.error = error;
        if answer.error.is_some() {
            break;
        }
    }
    answer
}

/// For each filter of a query, whether the source applies it exactly.
pub fn exact_filters(asked: &Value) -> Vec<bool> {
    Query::from_json(&asked.to_string(), &mut Vec::new()).unwrap().exact_filters()
}

/// Plans and reads a query by its JSON.
pub fn run_json(logs: &Arc<LogCache>, asked: &Value) -> Answer {
    run(logs, &query(asked))
}

/// Reads a task up to its end or its error.
pub fn read_task(
    logs: &Arc<LogCache>,
    query: &Query,
    task: &Task,
) -> (TaskRows, Vec<Warning>, Option<PlanError>) {
    let task = Task::from_bytes(&task.to_bytes()).unwrap();
    let mut reader = TaskReader::new(Context::new(Arc::clone(logs)), query.clone(), task);
    let mut found = TaskRows::default();
    let mut error = None;
    loop {
        match reader.next_batch() {
            Ok(None) => break,
            Ok(Some(batch)) => {
                assert!(batch.rows > 0, "a batch has rows");
                found.batches.push(batch.rows);
                found.rows.extend(rows_of(&batch));
            }
            Err(failed) => {
                error = Some(failed);
                break;
            }
        }
    }
    assert!(matches!(reader.next_batch(), Ok(None)), "the end or an error ends a task");
    found.stats = reader.stats();
    (found, reader.take_warnings(), error)
}

/// The rows of a batch, whose columns may be aggregates instead of those of the query.
fn rows_of(batch: &TaskBatch) -> Vec<Row> {
    let value = |column: &TaskColumn, row: usize| match column {
        TaskColumn::Values(array) => cell(array.as_ref(), row),
        TaskColumn::Topic => batch.topic.as_deref().into(),
        TaskColumn::Partition => batch.partition.map(i64::from).into(),
    };
    let row = |row: usize| batch.columns.iter().map(|column| value(column, row)).collect();
    (0..batch.rows).map(row).collect()
}

fn cell(array: &dyn Array, row: usize) -> Cell {
    if array.is_null(row) {
        return Cell::Null;
    }
    match array.data_type() {
        DataType::Int8 => Cell::Int(array.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => Cell::Int(array.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => Cell::Int(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Cell::Int(array.as_primitive::<Int64Type>().value(row)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Cell::Int(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            Cell::Int(array.as_primitive::<TimestampMillisecondType>().value(row))
        }
        DataType::Boolean => Cell::Int(array.as_boolean().value(row).into()),
        DataType::Utf8 => Cell::Text(array.as_string::<i32>().value(row).to_owned()),
        DataType::Binary => Cell::Bytes(array.as_binary::<i32>().value(row).to_vec()),
        _ => Cell::Text(format!("{:?}", array.slice(row, 1))),
    }
}

/// The columns of [`naive_row`].
pub const COLUMNS: &str = "topic,partition,offset,timestamp,value";
pub const TOPIC: usize = 0;
pub const PARTITION: usize = 1;
pub const OFFSET: usize = 2;
pub const TIMESTAMP: usize = 3;

/// A record as the row that a query of [`COLUMNS`] returns: a record without a time has −1 ms.
pub fn naive_row(topic: &str, partition: i64, record: &naive::Record) -> Row {
    let time = record.timestamp.saturating_mul(1000);
    let value = record.value.clone().map_or(Cell::Null, Cell::Bytes);
    vec![topic.into(), partition.into(), record.offset.into(), time.into(), value]
}

/// Topic and partition in the name of a directory.
pub fn name_of(dir: &Path) -> (String, i32) {
    let (topic, partition) = dir.file_name().unwrap().to_str().unwrap().rsplit_once('-').unwrap();
    (topic.to_owned(), partition.parse().unwrap())
}

/// `{"orders":{"0":…}}`
pub fn offsets(dir: &Path, offset: i64) -> String {
    let (topic, partition) = name_of(dir);
    json!({ topic: { partition.to_string(): offset } }).to_string()
}

/// The number of times that each value occurs.
pub fn counted<T: Ord>(values: impl IntoIterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts
}

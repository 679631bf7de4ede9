//! A table in memory.

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};

use super::super::message::{Message, Value};
use super::super::schema::Struct;
use super::arrays;
use crate::log::DamagedRange;

/// The bytes of values in a batch of a table, about.
const BATCH_BYTES: usize = 16 << 20;
const BATCH_ROWS: usize = 65_536;

/// A table of an internal topic, in memory. Columns are nullable.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub(super) columns: &'static Struct,
    pub(super) rows: Vec<Message<'static>>,
    pub(super) damaged_ranges: Vec<DamagedRange>,
}

/// A row under construction: its values in the order of the columns.
pub(super) type Row = Vec<Value<'static>>;

impl Table {
    pub(super) fn new(columns: &'static Struct) -> Self {
        Self { columns, rows: Vec::new(), damaged_ranges: Vec::new() }
    }

    /// A table of messages of a schema.
    pub(super) fn of_messages(columns: &'static Struct, rows: Vec<Message<'static>>) -> Self {
        Self { columns, rows, damaged_ranges: Vec::new() }
    }

    pub(super) fn push(&mut self, row: Row) {
        debug_assert_eq!(row.len(), self.columns.fields.len(), "a value for each column");
        self.rows.push(Message { schema: self.columns, values: row });
    }

    pub(super) fn extend(&mut self, rows: impl IntoIterator<Item = Row>) {
        for row in rows {
            self.push(row);
        }
    }

    /// Adds the rows and the damage of a table with the same columns.
    pub(super) fn append(&mut self, mut other: Self) {
        self.rows.append(&mut other.rows);
        self.damaged_ranges.append(&mut other.damaged_ranges);
    }

    pub(super) fn add_damage(&mut self, ranges: Vec<DamagedRange>) {
        self.damaged_ranges.extend(ranges);
    }

    pub(super) fn messages(&self) -> &[Message<'static>] {
        &self.rows
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The damaged ranges that were left out, of all logs.
    pub fn damaged_ranges(&self) -> &[DamagedRange] {
        &self.damaged_ranges
    }

    /// The names and types of the columns.
    pub fn schema(&self) -> SchemaRef {
        arrays::schema(self.columns)
    }

    /// The names of the columns.
    pub fn column_names(&self) -> Vec<String> {
        self.columns.fields.iter().map(|field| arrays::column_name(field.name)).collect()
    }

    /// The rows as record batches, of at most 65,536 rows and about 16 MiB.
    ///
    /// # Errors
    /// As Arrow's.
    pub fn batches(&self) -> Result<Vec<RecordBatch>, ArrowError> {
        let mut batches = Vec::new();
        let mut rest = self.rows.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |row: &&Message<'_>| {
                bytes += arrays::weight(row);
                bytes <= BATCH_BYTES
            };
            let rows = rest.iter().take(BATCH_ROWS).take_while(fits).count().max(1);
            let (batch, others) = rest.split_at_checked(rows).unwrap_or((rest, &[]));
            batches.push(arrays::batch(self.columns, batch)?);
            rest = others;
        }
        Ok(batches)
    }

    /// Calls a function for each row, with the names and values of its columns.
    pub fn rows(&self) -> impl Iterator<Item = Vec<(String, Cell<'_>)>> {
        self.rows.iter().map(Cell::fields)
    }
}

/// A value of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// A boolean.
    Bool(bool),
    /// A whole number, or a time in ms since the epoch.
    Number(i64),
    /// A number.
    Float(f64),
    /// A text, or a UUID in Kafka's notation.
    Text(std::borrow::Cow<'a, str>),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A list.
    List(Vec<Cell<'a>>),
    /// A structure: names and values.
    Struct(Vec<(String, Cell<'a>)>),
}

impl<'a> Cell<'a> {
    fn of(value: &'a Value<'a>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(*number),
            Value::Float(number) => Self::Float(*number),
            Value::Uuid(uuid) => Self::Text(super::super::json::uuid_text(*uuid).into()),
            Value::Text(text) => Self::Text(text.as_ref().into()),
            Value::Bytes(bytes) => Self::Bytes(bytes),
            Value::Array(elements) => Self::List(elements.iter().map(Self::of).collect()),
            Value::Struct(message) => Self::Struct(Self::fields(message)),
        }
    }

    fn fields(message: &'a Message<'a>) -> Vec<(String, Self)> {
        let names = message.schema.fields.iter().map(|field| arrays::column_name(field.name));
        names.zip(message.values.iter().map(Self::of)).collect()
    }
}

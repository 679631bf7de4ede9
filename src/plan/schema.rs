//! The columns of each table: their names and types in Spark, and where the core has them.
//!
//! Every column is nullable, as in Spark's Kafka source.

use serde_json::{Value, json};

use super::error::{Code, PlanError, Result};
use super::options::{Mode, SourceOptions, Table};
use crate::config::nearest;

/// The column that `mode=PERMISSIVE` adds: the damaged range of a row, null for records.
pub(crate) const ERROR: &str = "_error";

/// The type of a column, in Spark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ColumnType {
    Boolean,
    Byte,
    Short,
    Int,
    Long,
    Double,
    /// Microseconds since the epoch.
    Timestamp,
    String,
    Binary,
    Strings,
    /// A list of names and values.
    Headers,
    /// The fields of [`DamagedRange`](crate::log::DamagedRange).
    Damage,
}

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableColumn {
    /// Its name in Spark.
    pub(crate) name: &'static str,
    /// Its name in the core's columns of records and batches.
    pub(crate) core_name: &'static str,
    pub(crate) column_type: ColumnType,
}

const fn column(name: &'static str, core_name: &'static str, column_type: ColumnType) -> TableColumn {
    TableColumn { name, core_name, column_type }
}

const TOPIC: TableColumn = column("topic", "topic", ColumnType::String);
const PARTITION: TableColumn = column("partition", "partition", ColumnType::Int);
const DAMAGE: TableColumn = column(ERROR, "error", ColumnType::Damage);

/// The first seven are those of Spark's Kafka source.
const RECORDS: [TableColumn; 21] = [
    column("key", "key", ColumnType::Binary),
    column("value", "value", ColumnType::Binary),
    TOPIC,
    PARTITION,
    column("offset", "offset", ColumnType::Long),
    column("timestamp", "timestamp", ColumnType::Timestamp),
    column("timestampType", "timestamp_type", ColumnType::Int),
    column("headers", "headers", ColumnType::Headers),
    column("leaderEpoch", "leader_epoch", ColumnType::Int),
    column("producerId", "producer_id", ColumnType::Long),
    column("producerEpoch", "producer_epoch", ColumnType::Short),
    column("sequence", "sequence", ColumnType::Int),
    column("isTransactional", "is_transactional", ColumnType::Boolean),
    column("isControl", "is_control", ColumnType::Boolean),
    column("codec", "codec", ColumnType::String),
    column("magic", "magic", ColumnType::Byte),
    column("batchBaseOffset", "batch_base_offset", ColumnType::Long),
    column("position", "position", ColumnType::Long),
    column("segmentBaseOffset", "segment_base_offset", ColumnType::Long),
    column("keySize", "key_size", ColumnType::Int),
    column("valueSize", "value_size", ColumnType::Int),
];
const KAFKA_COLUMNS: usize = 7;

const BATCHES: [TableColumn; 22] = [
    TOPIC,
    PARTITION,
    column("segmentBaseOffset", "segment_base_offset", ColumnType::Long),
    column("position", "position", ColumnType::Long),
    column("size", "size", ColumnType::Int),
    column("baseOffset", "base_offset", ColumnType::Long),
    column("lastOffset", "last_offset", ColumnType::Long),
    column("count", "count", ColumnType::Int),
    column("codec", "codec", ColumnType::String),
    column("timestampType", "timestamp_type", ColumnType::Int),
    column("baseTimestamp", "base_timestamp", ColumnType::Timestamp),
    column("maxTimestamp", "max_timestamp", ColumnType::Timestamp),
    column("leaderEpoch", "leader_epoch", ColumnType::Int),
    column("producerId", "producer_id", ColumnType::Long),
    column("producerEpoch", "producer_epoch", ColumnType::Short),
    column("baseSequence", "base_sequence", ColumnType::Int),
    column("lastSequence", "last_sequence", ColumnType::Int),
    column("isTransactional", "is_transactional", ColumnType::Boolean),
    column("isControl", "is_control", ColumnType::Boolean),
    column("deleteHorizon", "delete_horizon", ColumnType::Timestamp),
    column("crc", "crc", ColumnType::Long),
    column("magic", "magic", ColumnType::Byte),
];

const SEGMENTS: [TableColumn; 16] = [
    TOPIC,
    PARTITION,
    column("segmentBaseOffset", "segment_base_offset", ColumnType::Long),
    column("endOffset", "end_offset", ColumnType::Long),
    column("offsetGap", "offset_gap", ColumnType::Long),
    column("bytes", "bytes", ColumnType::Long),
    column("batches", "batches", ColumnType::Long),
    column("records", "records", ColumnType::Long),
    column("firstTimestamp", "first_timestamp", ColumnType::Timestamp),
    column("largestTimestamp", "largest_timestamp", ColumnType::Timestamp),
    column("codecs", "codecs", ColumnType::Strings),
    column("indexEntries", "index_entries", ColumnType::Long),
    column("timeIndexEntries", "time_index_entries", ColumnType::Long),
    column("bytesPerIndexEntry", "bytes_per_index_entry", ColumnType::Double),
    column("indexState", "index_state", ColumnType::String),
    column("damagedBytes", "damaged_bytes", ColumnType::Long),
];

impl Table {
    fn columns(self) -> &'static [TableColumn] {
        match self {
            Self::Records => &RECORDS,
            Self::Batches => &BATCHES,
            Self::Segments => &SEGMENTS,
        }
    }
}

impl SourceOptions {
    /// The columns that the options select: `columns`, or by default those of Spark's Kafka source.
    ///
    /// # Errors
    /// [`Code::BadOption`] for a column that is not known (with the nearest name) or that is selected twice.
    pub(crate) fn selected_columns(&self) -> Result<Vec<TableColumn>> {
        let all = self.table.columns().iter().map(|column| column.name);
        let mut names: Vec<&str> = match (&self.columns, self.table) {
            (_, Table::Batches | Table::Segments) => all.collect(),
            (Some(columns), Table::Records) => columns.iter().map(String::as_str).collect(),
            (None, Table::Records) => all.take(KAFKA_COLUMNS).collect(),
        };
        if self.table == Table::Records {
            let added = [("headers", self.include_headers), (ERROR, self.mode == Mode::Permissive)];
            for (name, _) in added.into_iter().filter(|(_, is_added)| *is_added) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        self.columns_named(names)
    }

    /// Columns by their names in Spark.
    ///
    /// # Errors
    /// As [`SourceOptions::selected_columns`].
    pub(crate) fn columns_named<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<TableColumn>> {
        let mut found: Vec<TableColumn> = Vec::new();
        for name in names {
            if found.iter().any(|column| column.name == name) {
                return Err(PlanError::option("columns", "each column once", format!("{name:?}")));
            }
            found.push(self.column(name)?);
        }
        Ok(found)
    }

    fn column(&self, name: &str) -> Result<TableColumn> {
        if name == ERROR && self.table == Table::Records && self.mode == Mode::Permissive {
            return Ok(DAMAGE);
        }
        let known = self.table.columns();
        known.iter().find(|column| column.name == name).copied().ok_or_else(|| {
            let names = || known.iter().map(|column| column.name);
            let hint =
                nearest(name, names()).map(|meant| format!(" (did you mean {meant}?)")).unwrap_or_default();
            let expected = format!("one of {}{hint}", names().collect::<Vec<_>>().join(", "));
            PlanError::option("columns", expected, format!("{name:?}"))
        })
    }

    /// Checks a user's schema, as Spark's JSON, and returns its columns: every one is known, has the type of
    /// the table, and is nullable.
    ///
    /// The columns may be a subset of the table's, in any order, as in the option `columns`. If both are
    /// given, they must be equal.
    ///
    /// # Errors
    /// [`Code::BadOption`].
    pub(crate) fn columns_of_schema(&self, schema: &str) -> Result<Vec<TableColumn>> {
        let wrong = || {
            PlanError::new(
                Code::BadOption,
                "schema: expected the JSON of a StructType of Spark, found other text",
            )
        };
        let schema: Value = serde_json::from_str(schema).map_err(|_| wrong())?;
        let fields = schema.get("fields").and_then(Value::as_array).ok_or_else(wrong)?;
        let name_of = |field: &Value| field.get("name").and_then(Value::as_str).map(str::to_owned);
        let names: Vec<String> = fields.iter().map(name_of).collect::<Option<_>>().ok_or_else(wrong)?;
        let columns = self.columns_named(names.iter().map(String::as_str))?;
        for (column, field) in columns.iter().zip(fields) {
            let found = field.get("type").unwrap_or(&Value::Null);
            let is_nullable = field.get("nullable").and_then(Value::as_bool).unwrap_or(true);
            let wanted = column.column_type.to_json();
            if without_metadata(found) != wanted || !is_nullable {
                let expected = format!("{} {}, nullable", column.name, in_words(&wanted));
                let found = in_words(found) + if is_nullable { "" } else { " not null" };
                return Err(PlanError::option("schema", expected, found));
            }
        }
        if self.columns.is_some() {
            let chosen = self.selected_columns()?;
            let chosen: Vec<_> = chosen.iter().map(|column| column.name).collect();
            // the column that reports damage is optional
            let without_error = chosen.iter().filter(|name| **name != ERROR).copied();
            if names != chosen && !without_error.eq(names.iter().map(String::as_str)) {
                let chosen = chosen.join(",");
                let expected =
                    format!("the columns of the option columns, {chosen} (set only one of the two)");
                return Err(PlanError::option("schema", expected, format!("{:?}", names.join(","))));
            }
        }
        Ok(columns)
    }
}

/// Columns as the JSON of Spark's `StructType`.
pub(crate) fn to_json(columns: &[TableColumn]) -> Value {
    let fields = columns.iter().map(|column| field(column.name, &column.column_type.to_json()));
    json!({"type": "struct", "fields": fields.collect::<Vec<_>>()})
}

impl ColumnType {
    fn to_json(self) -> Value {
        match self {
            Self::Boolean => "boolean".into(),
            Self::Byte => "byte".into(),
            Self::Short => "short".into(),
            Self::Int => "integer".into(),
            Self::Long => "long".into(),
            Self::Double => "double".into(),
            Self::Timestamp => "timestamp".into(),
            Self::String => "string".into(),
            Self::Binary => "binary".into(),
            Self::Strings => array(&"string".into()),
            Self::Headers => array(&json!({
                "type": "struct",
                "fields": [field("key", &"string".into()), field("value", &"binary".into())],
            })),
            Self::Damage => {
                let fields: Vec<_> =
                    DAMAGE_FIELDS.iter().map(|(name, kind)| field(name, &kind.to_json())).collect();
                json!({"type": "struct", "fields": fields})
            }
        }
    }
}

/// The fields of `_error`, in the order of the core's column `error`.
pub(crate) const DAMAGE_FIELDS: [(&str, ColumnType); 6] = [
    ("file", ColumnType::String),
    ("startPosition", ColumnType::Long),
    ("endPosition", ColumnType::Long),
    ("startOffset", ColumnType::Long),
    ("endOffset", ColumnType::Long),
    ("reason", ColumnType::String),
];

fn field(name: &str, kind: &Value) -> Value {
    json!({"name": name, "type": kind, "nullable": true, "metadata": {}})
}

fn array(element: &Value) -> Value {
    json!({"type": "array", "elementType": element, "containsNull": true})
}

/// A type whose fields have no metadata, such as comments. Spark's SQL adds the default collation to the type
/// of strings.
fn without_metadata(found: &Value) -> Value {
    match found {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| {
                let value = if name == "metadata" { json!({}) } else { without_metadata(value) };
                (name.clone(), value)
            })
            .collect(),
        Value::Array(items) => items.iter().map(without_metadata).collect(),
        Value::String(name) if name == "string collate UTF8_BINARY" => json!("string"),
        other => other.clone(),
    }
}

/// The name of a type in SQL, such as `bigint`. Spark: `DataType.simpleString`.
fn in_words(found: &Value) -> String {
    let part = |name| found.get(name).unwrap_or(&Value::Null);
    match found {
        Value::String(name) => match name.as_str() {
            "byte" => "tinyint",
            "short" => "smallint",
            "integer" => "int",
            "long" => "bigint",
            other => other,
        }
        .to_owned(),
        _ if part("type") == "array" => format!("array<{}>", in_words(part("elementType"))),
        _ if part("type") == "map" => {
            format!("map<{},{}>", in_words(part("keyType")), in_words(part("valueType")))
        }
        _ if part("type") == "struct" => {
            let field = |field: &Value| {
                let name = field.get("name").and_then(Value::as_str).unwrap_or_default();
                format!("{name}:{}", in_words(field.get("type").unwrap_or(&Value::Null)))
            };
            let fields = part("fields").as_array().map(Vec::as_slice).unwrap_or_default();
            format!("struct<{}>", fields.iter().map(field).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

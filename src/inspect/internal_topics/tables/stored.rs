//! Tables as JSON, for pickles: the name of the columns, and for each row an array of its values, in the
//! order of the columns.
//!
//! ```text
//! number, boolean, text   themselves          float          its bits as a whole number
//! bytes, UUID             an array of bytes   array, struct  an array of its values
//! ```

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

use super::super::message::{Message, Value};
use super::super::schema::{Kind, Struct};
use super::table::Table;
use super::{cluster, consumer_groups, consumer_offsets, open_transactions, transactions};
use crate::log::DamagedRange;

/// The columns of the tables that are not of a cluster's metadata.
static COLUMNS: [&Struct; 4] = [
    &consumer_groups::COLUMNS,
    &consumer_offsets::COLUMNS,
    &open_transactions::COLUMNS,
    &transactions::COLUMNS,
];

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows: Vec<_> = self.rows.iter().map(of_message).collect();
        (self.columns.name, rows, &self.damaged_ranges).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (name, rows, damaged_ranges): (String, Vec<Json>, Vec<DamagedRange>) =
            Deserialize::deserialize(deserializer)?;
        let mut known = COLUMNS.into_iter().chain(cluster::COLUMNS);
        let columns = known.find(|columns| columns.name == name);
        let columns = columns.ok_or_else(|| D::Error::custom(format_args!("no table is named {name:?}")))?;
        let rows: Option<_> = rows.into_iter().map(|row| message(columns, row)).collect();
        let rows = rows.ok_or_else(|| D::Error::custom("a row does not have the values of its columns"))?;
        Ok(Self { columns, rows, damaged_ranges })
    }
}

fn of_message(message: &Message<'_>) -> Json {
    message.values.iter().map(of_value).collect()
}

fn of_value(value: &Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => (*number).into(),
        Value::Float(number) => number.to_bits().into(),
        Value::Uuid(bytes) => bytes.as_slice().into(),
        Value::Text(text) => text.as_ref().into(),
        Value::Bytes(bytes) => bytes.as_ref().into(),
        Value::Array(elements) => elements.iter().map(of_value).collect(),
        Value::Struct(message) => of_message(message),
    }
}

fn message(schema: &'static Struct, json: Json) -> Option<Message<'static>> {
    let Json::Array(values) = json else { return None };
    if values.len() != schema.fields.len() {
        return None;
    }
    let values = schema.fields.iter().zip(values).map(|(field, json)| value(field.kind, json));
    Some(Message { schema, values: values.collect::<Option<_>>()? })
}

fn value(kind: Kind, json: Json) -> Option<Value<'static>> {
    if json.is_null() {
        return Some(Value::Null);
    }
    Some(match kind {
        Kind::Bool => Value::Bool(json.as_bool()?),
        Kind::Int8 | Kind::Int16 | Kind::UInt16 | Kind::Int32 | Kind::Int64 | Kind::Time => {
            Value::Number(json.as_i64()?)
        }
        Kind::Float64 => Value::Float(f64::from_bits(json.as_u64()?)),
        Kind::Uuid => Value::Uuid(serde_json::from_value(json).ok()?),
        Kind::Text => Value::Text(Cow::Owned(serde_json::from_value(json).ok()?)),
        Kind::Bytes => Value::Bytes(Cow::Owned(serde_json::from_value(json).ok()?)),
        Kind::Struct(schema) => Value::Struct(message(schema, json)?),
        Kind::Array(element) => {
            let Json::Array(elements) = json else { return None };
            let elements = elements.into_iter().map(|json| value(*element, json));
            Value::Array(elements.collect::<Option<_>>()?)
        }
    })
}

//! Values as Arrow columns.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
    ListArray, RecordBatch, RecordBatchOptions, StringArray, StructArray, TimestampMillisecondArray,
    UInt16Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use super::super::json::uuid_text;
use super::super::message::{Message, Value};
use super::super::schema::{Kind, Struct};

/// The name of a column: Kafka's name of a field in snake case.
pub(super) fn column_name(name: &str) -> String {
    let mut column = String::with_capacity(name.len() + 4);
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            column.push('_');
        }
        column.push(character.to_ascii_lowercase());
    }
    column
}

pub(super) fn schema(columns: &Struct) -> SchemaRef {
    Arc::new(Schema::new(fields(columns)))
}

fn fields(columns: &Struct) -> Fields {
    columns
        .fields
        .iter()
        .map(|field| Field::new(column_name(field.name), data_type(field.kind), true))
        .collect()
}

fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Bool => DataType::Boolean,
        Kind::Int8 => DataType::Int8,
        Kind::Int16 => DataType::Int16,
        Kind::UInt16 => DataType::UInt16,
        Kind::Int32 => DataType::Int32,
        Kind::Int64 => DataType::Int64,
        Kind::Time => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
        Kind::Float64 => DataType::Float64,
        Kind::Uuid | Kind::Text => DataType::Utf8,
        Kind::Bytes => DataType::Binary,
        Kind::Struct(columns) => DataType::Struct(fields(columns)),
        Kind::Array(element) => DataType::List(element_field(*element)),
    }
}

fn element_field(element: Kind) -> Arc<Field> {
    Arc::new(Field::new("item", data_type(element), true))
}

/// A batch of rows.
pub(super) fn batch(columns: &Struct, rows: &[Message<'_>]) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<_> = rows.iter().map(Some).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(schema(columns), children(columns, &rows)?, &options)
}

fn children(columns: &Struct, rows: &[Option<&Message<'_>>]) -> Result<Vec<ArrayRef>, ArrowError> {
    let column = |(at, field): (usize, &super::super::schema::Field)| {
        let values: Vec<_> = rows
            .iter()
            .map(|row| row.and_then(|row| row.values.get(at)).filter(|value| **value != Value::Null))
            .collect();
        array(field.kind, &values)
    };
    columns.fields.iter().enumerate().map(column).collect()
}

fn array(kind: Kind, values: &[Option<&Value<'_>>]) -> Result<ArrayRef, ArrowError> {
    Ok(match kind {
        Kind::Bool => collect::<BooleanArray, _>(values, |value| match value {
            Value::Bool(value) => Some(*value),
            _ => None,
        }),
        Kind::Int8 => collect::<Int8Array, _>(values, number::<i8>),
        Kind::Int16 => collect::<Int16Array, _>(values, number::<i16>),
        Kind::UInt16 => collect::<UInt16Array, _>(values, number::<u16>),
        Kind::Int32 => collect::<Int32Array, _>(values, number::<i32>),
        Kind::Int64 => collect::<Int64Array, _>(values, number::<i64>),
        Kind::Time => {
            let times = values.iter().map(|value| value.and_then(number::<i64>));
            Arc::new(times.collect::<TimestampMillisecondArray>().with_timezone("UTC"))
        }
        Kind::Float64 => collect::<Float64Array, _>(values, |value| match value {
            Value::Float(number) => Some(*number),
            _ => None,
        }),
        Kind::Uuid => collect::<StringArray, _>(values, |value| match value {
            Value::Uuid(uuid) => Some(uuid_text(*uuid)),
            _ => None,
        }),
        Kind::Text => collect::<StringArray, _>(values, |value| match value {
            Value::Text(text) => Some(text.as_ref()),
            _ => None,
        }),
        Kind::Bytes => collect::<BinaryArray, _>(values, |value| match value {
            Value::Bytes(bytes) => Some(bytes.as_ref()),
            _ => None,
        }),
        Kind::Struct(columns) => Arc::new(struct_array(columns, values)?),
        Kind::Array(element) => Arc::new(list_array(*element, values)?),
    })
}

/// The values that are of the expected kind; null for the others.
fn collect<'v, A: Array + FromIterator<Option<T>> + 'static, T>(
    values: &[Option<&'v Value<'v>>],
    of: impl Fn(&'v Value<'v>) -> Option<T>,
) -> ArrayRef {
    Arc::new(values.iter().map(|value| value.and_then(&of)).collect::<A>())
}

fn number<N: TryFrom<i64>>(value: &Value<'_>) -> Option<N> {
    match value {
        Value::Number(number) => N::try_from(*number).ok(),
        _ => None,
    }
}

fn struct_array(columns: &Struct, values: &[Option<&Value<'_>>]) -> Result<StructArray, ArrowError> {
    let rows: Vec<_> = values
        .iter()
        .map(|value| match value {
            Some(Value::Struct(message)) => Some(message),
            _ => None,
        })
        .collect();
    let nulls: NullBuffer = rows.iter().map(Option::is_some).collect();
    StructArray::try_new_with_length(fields(columns), children(columns, &rows)?, Some(nulls), rows.len())
}

fn list_array(element: Kind, values: &[Option<&Value<'_>>]) -> Result<ListArray, ArrowError> {
    let lists: Vec<_> = values
        .iter()
        .map(|value| match value {
            Some(Value::Array(elements)) => Some(elements.as_slice()),
            _ => None,
        })
        .collect();
    let lengths = lists.iter().map(|list| list.map_or(0, <[_]>::len));
    let elements: Vec<_> = lists.iter().flat_map(|list| list.unwrap_or_default()).map(Some).collect();
    let nulls: NullBuffer = lists.iter().map(Option::is_some).collect();
    let offsets = OffsetBuffer::from_lengths(lengths);
    ListArray::try_new(element_field(element), offsets, array(element, &elements)?, Some(nulls))
}

/// About the bytes of a row.
pub(super) fn weight(row: &Message<'_>) -> usize {
    row.values.iter().map(value_weight).sum()
}

fn value_weight(value: &Value<'_>) -> usize {
    match value {
        Value::Text(text) => text.len() + 8,
        Value::Bytes(bytes) => bytes.len() + 8,
        Value::Array(elements) => elements.iter().map(value_weight).sum::<usize>() + 8,
        Value::Struct(message) => weight(message),
        Value::Uuid(_) => 22,
        _ => 8,
    }
}

//! Record batches of the core in the names and types of a table's columns. Buffers are shared where the types
//! allow it.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType, UInt32Type,
};
use arrow_array::{
    Array, ArrayRef, Int32Array, ListArray, PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray,
    StructArray, TimestampMicrosecondArray, new_null_array,
};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use super::error::{Code, PlanError, Result};
use super::query::Query;
use super::schema::{ColumnType, DAMAGE_FIELDS, TableColumn};

/// The timestamp of a record that has none, as in Spark's Kafka source: −1 ms.
const NO_TIMESTAMP: i64 = -1000;

/// A column of a [`TaskBatch`].
#[derive(Debug, Clone)]
pub enum TaskColumn {
    /// A value for each row.
    Values(ArrayRef),
    /// The topic of all rows.
    Topic,
    /// The partition of all rows.
    Partition,
}

/// Rows of one partition, in the columns of a query.
#[derive(Debug, Clone)]
pub struct TaskBatch {
    /// The number of rows, 1 or more.
    pub rows: usize,
    /// The columns, in the order of the query.
    pub columns: Vec<TaskColumn>,
    /// The topic of all rows; `None` if the directory is not named `topic-partition`.
    pub topic: Option<Arc<str>>,
    /// The partition of all rows; `None` if the directory is not named `topic-partition`.
    pub partition: Option<i32>,
}

impl TaskBatch {
    /// As a record batch in the schema of the query, in which every row has the topic and the partition.
    ///
    /// # Errors
    /// [`Code::Internal`] if it is of another query.
    pub fn into_record_batch(self, query: &Query) -> Result<RecordBatch> {
        let Self { rows, columns, topic, partition } = self;
        let array = |column: TaskColumn| -> ArrayRef {
            match column {
                TaskColumn::Values(array) => array,
                TaskColumn::Topic => match &topic {
                    Some(topic) => {
                        Arc::new(StringArray::from_iter_values(std::iter::repeat_n(topic.as_ref(), rows)))
                    }
                    None => new_null_array(&DataType::Utf8, rows),
                },
                TaskColumn::Partition => match partition {
                    Some(partition) => Arc::new(Int32Array::from(vec![partition; rows])),
                    None => new_null_array(&DataType::Int32, rows),
                },
            }
        };
        let arrays = columns.into_iter().map(array).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(query.arrow_schema(), arrays, &options).map_err(internal)
    }
}

/// A defect.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn internal(error: ArrowError) -> PlanError {
    PlanError::new(Code::Internal, error.to_string())
}

/// The Arrow schema of columns, as Spark requires it.
pub(crate) fn arrow_schema(columns: &[TableColumn]) -> SchemaRef {
    let field = |column: &TableColumn| Field::new(column.name, column.column_type.to_arrow(), true);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

impl ColumnType {
    fn to_arrow(self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Byte => DataType::Int8,
            Self::Short => DataType::Int16,
            Self::Int => DataType::Int32,
            Self::Long => DataType::Int64,
            Self::Double => DataType::Float64,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::String => DataType::Utf8,
            Self::Binary => DataType::Binary,
            Self::Strings => DataType::List(element(DataType::Utf8)),
            Self::Headers => DataType::List(element(DataType::Struct(header_fields()))),
            Self::Damage => DataType::Struct(damage_fields()),
        }
    }
}

/// The field of the items of a list of strings.
pub(super) fn string_element() -> Arc<Field> {
    element(DataType::Utf8)
}

fn element(item: DataType) -> Arc<Field> {
    Arc::new(Field::new("element", item, true))
}

fn header_fields() -> Fields {
    Fields::from(vec![Field::new("key", DataType::Utf8, true), Field::new("value", DataType::Binary, true)])
}

fn damage_fields() -> Fields {
    DAMAGE_FIELDS.iter().map(|(name, kind)| Field::new(*name, kind.to_arrow(), true)).collect()
}

/// The columns of a record batch of the core.
///
/// # Errors
/// [`Code::Unsupported`] for a time that microseconds cannot hold.
pub(crate) fn shaped(batch: &RecordBatch, columns: &[TableColumn]) -> Result<Vec<TaskColumn>> {
    let shape = |column: &TableColumn| {
        let array = match column.core_name {
            "topic" => return Ok(TaskColumn::Topic),
            "partition" => return Ok(TaskColumn::Partition),
            name => batch.column_by_name(name),
        };
        let array =
            array.ok_or_else(|| PlanError::new(Code::Internal, format!("no column {}", column.name)))?;
        let values: ArrayRef = match column.column_type {
            ColumnType::Timestamp => {
                let times = microseconds(array)?;
                let is_record_time = column.core_name == "timestamp";
                if is_record_time && times.null_count() > 0 { with_no_time(&times, batch) } else { times }
            }
            ColumnType::Int => match array.as_primitive_opt::<Int8Type>() {
                Some(bytes) => Arc::new(bytes.unary::<_, Int32Type>(i32::from)),
                None => Arc::clone(array),
            },
            ColumnType::Long => match array.as_primitive_opt::<UInt32Type>() {
                Some(numbers) => Arc::new(numbers.unary::<_, Int64Type>(i64::from)),
                None => Arc::clone(array),
            },
            ColumnType::Headers => Arc::new(headers(array.as_list()).map_err(internal)?),
            ColumnType::Damage => Arc::new(renamed(array.as_struct(), damage_fields()).map_err(internal)?),
            _ => Arc::clone(array),
        };
        Ok(TaskColumn::Values(values))
    };
    columns.iter().map(shape).collect()
}

/// Times in microseconds.
fn microseconds(array: &ArrayRef) -> Result<ArrayRef> {
    let Some(times) = array.as_primitive_opt::<TimestampMillisecondType>() else {
        return Ok(Arc::clone(array));
    };
    let checked = |ms: i64| {
        ms.checked_mul(1000).ok_or_else(|| {
            let reason = format!("expected times that Spark's microseconds can hold, found {ms} ms");
            PlanError::new(Code::Unsupported, reason)
        })
    };
    let micros: PrimitiveArray<TimestampMicrosecondType> = times.try_unary(checked)?;
    Ok(Arc::new(micros.with_timezone("UTC")))
}

/// Record times in which a missing one is −1 ms; it stays null in a row that reports damage.
fn with_no_time(times: &ArrayRef, batch: &RecordBatch) -> ArrayRef {
    let times = times.as_primitive::<TimestampMicrosecondType>();
    let values: ScalarBuffer<i64> =
        times.iter().map(|time| time.unwrap_or(NO_TIMESTAMP)).collect::<Vec<_>>().into();
    // a row has damage where its struct is valid, and then no time
    let nulls = batch.column_by_name("error").map(|damage| match damage.nulls() {
        Some(has_damage) => NullBuffer::new(!has_damage.inner()),
        None => NullBuffer::new_null(damage.len()),
    });
    Arc::new(TimestampMicrosecondArray::new(values, nulls).with_timezone("UTC"))
}

fn headers(lists: &ListArray) -> Result<ListArray, ArrowError> {
    let structs = renamed(lists.values().as_struct(), header_fields())?;
    let element = element(structs.data_type().clone());
    ListArray::try_new(element, lists.offsets().clone(), Arc::new(structs), lists.nulls().cloned())
}

/// A struct with other names of its fields, which are nullable.
fn renamed(structs: &StructArray, fields: Fields) -> Result<StructArray, ArrowError> {
    StructArray::try_new(fields, structs.columns().to_vec(), structs.nulls().cloned())
}

//! The targets of many look-ups, from a column of any library: offsets, or times in ms.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatchReader, new_empty_array};
use arrow_schema::{DataType, TimeUnit};

/// A target that has no result: a null, a number outside 64 bits, or a time that is outside 64 bits in ms.
pub const NO_TARGET: i64 = -1;

/// Why a column has no targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTargets {
    /// Its timestamps have no time zone.
    NoTimeZone,
    /// It is a struct.
    Struct,
    /// It has another type.
    UnsupportedType,
}

/// The targets in the first column of a stream. `with_times`: timestamps are targets too.
///
/// # Errors
/// [`NoTargets`].
pub fn read_targets(stream: impl RecordBatchReader, with_times: bool) -> Result<Vec<i64>, NoTargets> {
    let schema = stream.schema();
    let field = schema.fields().first().ok_or(NoTargets::UnsupportedType)?;
    // an extension type gives its integers another meaning
    if field.extension_type_name().is_some() {
        return Err(NoTargets::UnsupportedType);
    }
    // a stream without a batch has a type too
    let mut all = targets(&new_empty_array(field.data_type()), with_times)?;
    for batch in stream {
        let batch = batch.map_err(|_| NoTargets::UnsupportedType)?;
        all.append(&mut targets(batch.column(0), with_times)?);
    }
    Ok(all)
}

fn targets(column: &dyn Array, with_times: bool) -> Result<Vec<i64>, NoTargets> {
    if let Some(dictionary) = column.as_any_dictionary_opt() {
        let values = targets(dictionary.values(), with_times)?;
        let keys = if values.is_empty() { vec![0; column.len()] } else { dictionary.normalized_keys() };
        let target = |(row, key): (usize, &usize)| {
            values.get(*key).copied().filter(|_| column.is_valid(row)).unwrap_or(NO_TARGET)
        };
        return Ok(keys.iter().enumerate().map(target).collect());
    }
    Ok(match column.data_type() {
        DataType::Null => vec![NO_TARGET; column.len()],
        DataType::Int8 => integers::<Int8Type>(column),
        DataType::Int16 => integers::<Int16Type>(column),
        DataType::Int32 => integers::<Int32Type>(column),
        DataType::Int64 => integers::<Int64Type>(column),
        DataType::UInt8 => integers::<UInt8Type>(column),
        DataType::UInt16 => integers::<UInt16Type>(column),
        DataType::UInt32 => integers::<UInt32Type>(column),
        DataType::UInt64 => integers::<UInt64Type>(column),
        DataType::Timestamp(unit, Some(_)) if with_times => match unit {
            TimeUnit::Second => converted::<TimestampSecondType>(column, |time| time.checked_mul(1000)),
            TimeUnit::Millisecond => converted::<TimestampMillisecondType>(column, Some),
            TimeUnit::Microsecond => converted::<TimestampMicrosecondType>(column, |time| ceil(time, 1000)),
            TimeUnit::Nanosecond => {
                converted::<TimestampNanosecondType>(column, |time| ceil(time, 1_000_000))
            }
        },
        DataType::Timestamp(_, None) if with_times => return Err(NoTargets::NoTimeZone),
        DataType::Struct(_) => return Err(NoTargets::Struct),
        _ => return Err(NoTargets::UnsupportedType),
    })
}

fn integers<T: ArrowPrimitiveType<Native: TryInto<i64>>>(column: &dyn Array) -> Vec<i64> {
    converted::<T>(column, |number| number.try_into().ok())
}

fn converted<T: ArrowPrimitiveType>(
    column: &dyn Array,
    convert: impl Fn(T::Native) -> Option<i64>,
) -> Vec<i64> {
    let target = |value: Option<T::Native>| value.and_then(&convert).unwrap_or(NO_TARGET);
    column.as_primitive::<T>().iter().map(target).collect()
}

/// A time in ms. A fraction of a millisecond is rounded up: no record is between, so the same record is
/// found.
#[expect(clippy::unnecessary_wraps, reason = "a conversion for `converted`")]
fn ceil(time: i64, units: i64) -> Option<i64> {
    Some(time.div_euclid(units) + i64::from(time.rem_euclid(units) > 0))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, DictionaryArray, Int8Array, Int64Array, NullArray, RecordBatch, RecordBatchIterator,
        StringArray, StructArray, TimestampMicrosecondArray, TimestampSecondArray, UInt64Array,
    };
    use arrow_schema::{Field, Schema};

    use super::*;

    fn read(column: impl Array + 'static, with_times: bool) -> Result<Vec<i64>, NoTargets> {
        let batch = RecordBatch::try_from_iter([("targets", Arc::new(column) as ArrayRef)]).unwrap();
        let schema = batch.schema();
        read_targets(RecordBatchIterator::new([Ok(batch.clone()), Ok(batch)], schema), with_times).map(
            |mut twice| {
                let again = twice.split_off(twice.len() / 2);
                assert_eq!(twice, again);
                twice
            },
        )
    }

    #[test]
    fn what_has_no_result_is_no_target() {
        let numbers = UInt64Array::from(vec![Some(5), None, Some(1 << 63), Some(u64::MAX)]);
        assert_eq!(read(numbers, false), Ok(vec![5, -1, -1, -1]));
        assert_eq!(read(NullArray::new(2), false), Ok(vec![-1, -1]));
        let seconds = TimestampSecondArray::from(vec![2, i64::MAX]).with_timezone("UTC");
        assert_eq!(read(seconds, true), Ok(vec![2000, -1]));
    }

    #[test]
    fn a_fraction_of_a_millisecond_is_rounded_up() {
        let times = TimestampMicrosecondArray::from(vec![0, 1, 1000, 1001, -1, -1000, -1001]);
        let times = times.with_timezone("UTC");
        assert_eq!(read(times.clone(), true), Ok(vec![0, 1, 1, 2, 0, -1, -1]));
        assert_eq!(read(times, false), Err(NoTargets::UnsupportedType));
    }

    #[test]
    fn a_dictionary_has_the_targets_of_its_values() {
        let dictionary =
            |keys: Vec<Option<i8>>, values: ArrayRef| DictionaryArray::new(Int8Array::from(keys), values);
        let values = Arc::new(Int64Array::from(vec![Some(7), None]));
        let keys = vec![Some(0), None, Some(1), Some(0)];
        assert_eq!(read(dictionary(keys, values), false), Ok(vec![7, -1, -1, 7]));
        let empty = Arc::new(Int64Array::new_null(0));
        assert_eq!(read(dictionary(vec![None], empty), false), Ok(vec![-1]));
        let texts = Arc::new(StringArray::from(vec!["7"]));
        assert_eq!(read(dictionary(vec![Some(0)], texts), false), Err(NoTargets::UnsupportedType));
    }

    #[test]
    fn other_columns_are_refused_by_their_type() {
        let naive = TimestampSecondArray::from(vec![5]);
        assert_eq!(read(naive.clone(), true), Err(NoTargets::NoTimeZone));
        assert_eq!(read(naive, false), Err(NoTargets::UnsupportedType));
        let fields = StructArray::new_empty_fields(1, None);
        assert_eq!(read(fields, false), Err(NoTargets::Struct));
        let schema = |field| Arc::new(Schema::new(vec![field]));
        let empty = |field| read_targets(RecordBatchIterator::new([], schema(field)), false);
        assert_eq!(empty(Field::new("targets", DataType::Int64, true)), Ok(vec![]));
        assert_eq!(empty(Field::new("targets", DataType::Utf8, true)), Err(NoTargets::UnsupportedType));
        let period = ("ARROW:extension:name".to_owned(), "pandas.period".to_owned());
        let extension = Field::new("targets", DataType::Int64, true).with_metadata(HashMap::from([period]));
        assert_eq!(empty(extension), Err(NoTargets::UnsupportedType));
    }
}

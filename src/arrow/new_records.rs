//! The rows of an Arrow record batch as records to append.
//!
//! | column | types | |
//! |---|---|---|
//! | `value` | binary or string, of any kind | required |
//! | `key` | the same | null if there is no such column |
//! | `timestamp` | a timestamp with a time zone, of any unit; or int64 ms, with [`OtherUnit::check`] | the present time if there is no such column; null and −1 ms mean none, and a fraction of a ms before the epoch is an error |
//! | `headers` | a list, or a map, of (key, value), as from a scan | null means none |
//! | `offset`, `timestamp_type` | any | ignored, so that the result of a scan can be appended |
//!
//! Keys, values and headers are borrowed; only timestamps are converted.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, Int64Array, LargeBinaryArray, LargeStringArray,
    RecordBatch, StringArray, StringViewArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Schema, TimeUnit};

use crate::error::{Error, Result};
use crate::record::NewRecord;
use crate::types::OtherUnit;

const VALUE: &str = "value";
const KEY: &str = "key";
const TIMESTAMP: &str = "timestamp";
const HEADERS: &str = "headers";
const IGNORED: [&str; 2] = ["offset", "timestamp_type"];

/// A header as [`NewRecord`] takes it: its name and its value.
pub type HeaderPair<'a> = (&'a [u8], Option<&'a [u8]>);

/// The rows of a record batch, as records to append.
#[derive(Debug)]
pub struct NewRecords {
    rows: usize,
    values: Bytes,
    keys: Option<Bytes>,
    times: Option<Times>,
    headers: Option<HeaderLists>,
}

impl NewRecords {
    /// Checks that a schema has the columns above, each at most once, and no others.
    ///
    /// # Errors
    /// [`Error::Config`], which names the columns.
    pub fn check(schema: &Schema) -> Result<()> {
        let known = |name: &str| [VALUE, KEY, TIMESTAMP, HEADERS].contains(&name) || IGNORED.contains(&name);
        let names = || schema.fields().iter().map(|field| field.name().as_str());
        let mut wrong: Vec<_> = names().filter(|name| !known(name)).collect();
        wrong.extend(
            names()
                .enumerate()
                .filter(|(at, name)| names().take(*at).any(|other| other == *name))
                .map(|(_, name)| name),
        );
        let expected = "a column value, and optionally key, timestamp and headers, each once (offset and timestamp_type \
                        are ignored)";
        if !wrong.is_empty() {
            return Err(Error::config("columns", expected, wrong.join(", ")));
        }
        if names().all(|name| name != VALUE) {
            let found = names().collect::<Vec<_>>().join(", ");
            return Err(Error::config(
                "columns",
                expected,
                if found.is_empty() { "none".to_owned() } else { found },
            ));
        }
        Ok(())
    }

    /// The records of a batch.
    ///
    /// # Errors
    /// [`Error::Config`] for a column of an unsupported type, or with invalid buffers; and as
    /// [`NewRecords::check`].
    pub fn of(batch: &RecordBatch) -> Result<Self> {
        Self::check(&batch.schema())?;
        let column = |name: &str| batch.column_by_name(name);
        let values = column(VALUE).map(|array| Bytes::of(array, VALUE)).transpose()?.unwrap_or(Bytes::Null);
        Ok(Self {
            rows: batch.num_rows(),
            values,
            keys: column(KEY).map(|array| Bytes::of(array, KEY)).transpose()?,
            times: column(TIMESTAMP).map(Times::of).transpose()?,
            headers: column(HEADERS).map(HeaderLists::of).transpose()?.flatten(),
        })
    }

    /// The headers of all rows, concatenated, for [`NewRecords::records`].
    ///
    /// # Errors
    /// [`Error::Config`] for a header without a name.
    pub fn headers(&self) -> Result<Vec<HeaderPair<'_>>> {
        let mut pairs = Vec::new();
        let Some(headers) = &self.headers else { return Ok(pairs) };
        for row in 0..self.rows {
            for at in headers.range(row) {
                let name = headers.names.get(at).filter(|_| headers.is_valid_pair(at));
                let name = name.ok_or_else(|| {
                    Error::config(HEADERS, "a name for each header", format!("null in row {row}"))
                })?;
                pairs.push((name, headers.values.get(at)));
            }
        }
        Ok(pairs)
    }

    /// The rows as records. `headers`: from [`NewRecords::headers`]. `now`: the timestamp if there is no
    /// timestamp column, ms.
    pub fn records<'a>(&'a self, headers: &'a [HeaderPair<'a>], now: i64) -> Vec<NewRecord<'a>> {
        let mut rest = headers;
        let record = |row| {
            let count = self.headers.as_ref().map_or(0, |headers| headers.range(row).len());
            let (own, others) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            rest = others;
            NewRecord {
                timestamp: self.times.as_ref().map_or(now, |times| times.get(row).unwrap_or(-1)),
                key: self.keys.as_ref().and_then(|keys| keys.get(row)),
                value: self.values.get(row),
                headers: own,
            }
        };
        (0..self.rows).map(record).collect()
    }
}

/// A column of bytes or strings of any kind.
#[derive(Debug)]
enum Bytes {
    Null,
    Binary(BinaryArray),
    LargeBinary(LargeBinaryArray),
    BinaryView(BinaryViewArray),
    Utf8(StringArray),
    LargeUtf8(LargeStringArray),
    Utf8View(StringViewArray),
}

impl Bytes {
    fn of(array: &ArrayRef, column: &str) -> Result<Self> {
        check_buffers(array, column)?;
        Ok(match array.data_type() {
            DataType::Null => Self::Null,
            DataType::Binary => Self::Binary(array.as_binary().clone()),
            DataType::LargeBinary => Self::LargeBinary(array.as_binary().clone()),
            DataType::BinaryView => Self::BinaryView(array.as_binary_view().clone()),
            DataType::Utf8 => Self::Utf8(array.as_string().clone()),
            DataType::LargeUtf8 => Self::LargeUtf8(array.as_string().clone()),
            DataType::Utf8View => Self::Utf8View(array.as_string_view().clone()),
            other => return Err(Error::config(column, "binary or string", other.to_string())),
        })
    }

    fn get(&self, row: usize) -> Option<&[u8]> {
        match self {
            Self::Null => None,
            Self::Binary(array) => array.is_valid(row).then(|| array.value(row)),
            Self::LargeBinary(array) => array.is_valid(row).then(|| array.value(row)),
            Self::BinaryView(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Utf8(array) => array.is_valid(row).then(|| array.value(row).as_bytes()),
            Self::LargeUtf8(array) => array.is_valid(row).then(|| array.value(row).as_bytes()),
            Self::Utf8View(array) => array.is_valid(row).then(|| array.value(row).as_bytes()),
        }
    }
}

/// A column of times.
#[derive(Debug)]
struct Times {
    values: Int64Array,
    /// The number of milliseconds in one unit, and the number of units in one millisecond.
    factor: i64,
    divisor: i64,
}

impl Times {
    fn of(array: &ArrayRef) -> Result<Self> {
        check_buffers(array, TIMESTAMP)?;
        let (values, factor, divisor) = match array.data_type() {
            DataType::Null => (Int64Array::new_null(array.len()), 1, 1),
            DataType::Int64 => {
                let numbers = array.as_primitive::<Int64Type>().clone();
                for (row, number) in numbers.iter().enumerate() {
                    OtherUnit::check(format_args!("{TIMESTAMP}[{row}]"), number.unwrap_or(-1))?;
                }
                (numbers, 1, 1)
            }
            DataType::Timestamp(TimeUnit::Second, Some(_)) => {
                (array.as_primitive::<TimestampSecondType>().reinterpret_cast(), 1000, 1)
            }
            DataType::Timestamp(TimeUnit::Millisecond, Some(_)) => {
                (array.as_primitive::<TimestampMillisecondType>().reinterpret_cast(), 1, 1)
            }
            DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => {
                (array.as_primitive::<TimestampMicrosecondType>().reinterpret_cast(), 1, 1000)
            }
            DataType::Timestamp(TimeUnit::Nanosecond, Some(_)) => {
                (array.as_primitive::<TimestampNanosecondType>().reinterpret_cast(), 1, 1_000_000)
            }
            other => {
                let expected = "a timestamp with a time zone, or int64 milliseconds";
                return Err(Error::config(TIMESTAMP, expected, other.to_string()));
            }
        };
        // rounded down they would be -1 ms, which means none
        let is_just_before = |value: &i64| (1 - divisor..0).contains(value);
        if values.values().iter().any(is_just_before)
            && let Some(row) = values.iter().position(|value| value.as_ref().is_some_and(is_just_before))
        {
            let (unit, value) = (if divisor == 1000 { "µs" } else { "ns" }, values.value(row));
            let expected = "a time from 1970-01-01, or -1 ms for none";
            return Err(Error::config(TIMESTAMP, expected, format!("{value} {unit} in row {row}")));
        }
        Ok(Self { values, factor, divisor })
    }

    /// A value in milliseconds. A fraction of a millisecond is left out, also before the epoch, so that no
    /// record moves to a later second or day.
    fn get(&self, row: usize) -> Option<i64> {
        let is_valid = self.values.is_valid(row);
        is_valid.then(|| self.values.value(row).saturating_mul(self.factor).div_euclid(self.divisor))
    }
}

/// A column of lists of headers.
#[derive(Debug)]
struct HeaderLists {
    offsets: Offsets,
    nulls: Option<NullBuffer>,
    names: Bytes,
    values: Bytes,
    pair_nulls: Option<NullBuffer>,
}

#[derive(Debug)]
enum Offsets {
    Small(OffsetBuffer<i32>),
    Large(OffsetBuffer<i64>),
}

impl HeaderLists {
    fn of(array: &ArrayRef) -> Result<Option<Self>> {
        check_buffers(array, HEADERS)?;
        let (offsets, pairs): (_, Option<&StructArray>) = match array.data_type() {
            DataType::Null => return Ok(None),
            DataType::List(_) => {
                let lists = array.as_list::<i32>();
                (Offsets::Small(lists.offsets().clone()), lists.values().as_struct_opt())
            }
            DataType::LargeList(_) => {
                let lists = array.as_list::<i64>();
                (Offsets::Large(lists.offsets().clone()), lists.values().as_struct_opt())
            }
            DataType::Map(..) => {
                let maps = array.as_map();
                (Offsets::Small(maps.offsets().clone()), Some(maps.entries()))
            }
            _ => (Offsets::Small(OffsetBuffer::new_empty()), None),
        };
        let pair = pairs.and_then(|pairs| match pairs.columns() {
            [names, values] => Some((names, values, pairs)),
            _ => None,
        });
        let Some((names, values, pairs)) = pair else {
            let expected = "a list of structs of key and value, or a map";
            return Err(Error::config(HEADERS, expected, array.data_type().to_string()));
        };
        Ok(Some(Self {
            offsets,
            nulls: array.nulls().cloned(),
            names: Bytes::of(names, "headers.key")?,
            values: Bytes::of(values, "headers.value")?,
            pair_nulls: pairs.nulls().cloned(),
        }))
    }

    /// The range of the headers of a row.
    fn range(&self, row: usize) -> std::ops::Range<usize> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return 0..0;
        }
        let at = |row: usize| match &self.offsets {
            Offsets::Small(offsets) => offsets.get(row).and_then(|at| usize::try_from(*at).ok()),
            Offsets::Large(offsets) => offsets.get(row).and_then(|at| usize::try_from(*at).ok()),
        };
        at(row).unwrap_or(0)..at(row + 1).unwrap_or(0)
    }

    fn is_valid_pair(&self, at: usize) -> bool {
        self.pair_nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at))
    }
}

/// Validates buffers that come from another library.
fn check_buffers(array: &ArrayRef, column: &str) -> Result<()> {
    array
        .to_data()
        .validate_full()
        .map_err(|error| Error::config(column, "a valid Arrow array", error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int32Array, TimestampMicrosecondArray, TimestampNanosecondArray};

    use super::*;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
            .unwrap()
    }

    #[test]
    fn rows_become_records() {
        let values: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a"), None]));
        let keys: ArrayRef = Arc::new(LargeBinaryArray::from(vec![None, Some(&b"k"[..])]));
        let times = TimestampMicrosecondArray::from(vec![Some(1_000_999), None]).with_timezone("UTC");
        let records = NewRecords::of(&batch(vec![
            ("offset", Arc::new(Int32Array::from(vec![7, 8]))),
            ("value", values),
            ("key", keys),
            ("timestamp", Arc::new(times)),
        ]))
        .unwrap();
        let headers = records.headers().unwrap();
        let records = records.records(&headers, 42);
        let seen: Vec<_> =
            records.iter().map(|record| (record.timestamp, record.key, record.value)).collect();
        assert_eq!(seen, [(1000, None, Some(&b"a"[..])), (-1, Some(&b"k"[..]), None)]);
    }

    #[test]
    fn a_fraction_of_a_millisecond_is_left_out() {
        /// The last multiple of the unit at or before the value, by counting down to it.
        fn naive(value: i64, unit: i64) -> i64 {
            let multiple = (0..unit).map(|back| value - back).find(|value| value % unit == 0).unwrap();
            multiple / unit
        }
        let values = (-2_100..2_100).chain([1_714_607_999_999_400, -1_714_607_999_999_400]);
        for value in values {
            let micros: ArrayRef =
                Arc::new(TimestampMicrosecondArray::from(vec![value]).with_timezone("UTC"));
            let nanos: ArrayRef =
                Arc::new(TimestampNanosecondArray::from(vec![value * 1000 + 999]).with_timezone("UTC"));
            // less than a ms before the epoch, and not -1 ms, which means none
            let is_refused = [(-999..0).contains(&value), (-1000..0).contains(&value)];
            for (times, is_refused) in [micros, nanos].iter().zip(is_refused) {
                let found = Times::of(times).ok().map(|times| times.get(0));
                let expected = (!is_refused).then(|| Some(naive(value, 1000)));
                assert_eq!(found, expected, "{value} µs");
            }
        }
    }

    #[test]
    fn numbers_without_a_unit_are_milliseconds_if_they_can_be() {
        let columns = |number: i64| -> Vec<(&str, ArrayRef)> {
            let times = Int64Array::from(vec![None, Some(-1), Some(12_345), Some(number)]);
            vec![("value", Arc::new(BinaryArray::new_null(4))), ("timestamp", Arc::new(times))]
        };
        let stored = NewRecords::of(&batch(columns(1_700_000_000_123))).unwrap();
        let times: Vec<_> = stored.records(&[], 42).iter().map(|record| record.timestamp).collect();
        assert_eq!(times, [-1, -1, 12_345, 1_700_000_000_123]);
        let error = NewRecords::of(&batch(columns(1_700_000_000))).unwrap_err().to_string();
        assert!(error.contains("timestamp[3]") && error.contains("in seconds"), "{error}");
    }

    #[test]
    fn other_columns_are_named() {
        let column = || -> ArrayRef { Arc::new(Int32Array::from(vec![1])) };
        for (names, named) in [
            (vec!["value", "colour", "size"], "colour, size"),
            (vec!["key"], "found key"),
            (vec!["value"], "found Int32"),
        ] {
            let columns = names.iter().map(|name| (*name, column())).collect();
            let error = NewRecords::of(&batch(columns)).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}

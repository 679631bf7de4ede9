//! The targets of many look-ups: offsets or times, from a list, an array or a column of any library.
//!
//! `pyarrow` converts almost everything. What it refuses is converted item by item, so that an integer
//! outside 64 bits is a target without a result, and the error for an item of another type has its place.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDateTime, PyDict, PyFrozenSet, PyInt, PyList, PySet, PyString};

use super::arguments::{self, class_name, is_whole};
use super::enter::enter;
use super::{arrow_import, error};
use crate::arrow::{NO_TARGET, NoTargets, read_targets};
use crate::error::Error;
use crate::types::OtherUnit;

/// An argument that has the targets.
struct Targets {
    argument: &'static str,
    wanted: &'static str,
    /// What to do about a single target.
    single: &'static str,
    /// What to do about items of another type.
    convert: &'static str,
    with_times: bool,
}

const LIST: &str = "give a list, a NumPy array, or a column of Arrow, pandas or Polars";
const CONVERT: &str = "convert them to int64, for example with .astype(\"int64\") or .cast(\"int64\")";
const CONVERT_TIMES: &str =
    "convert them to datetimes with a time zone, or to milliseconds since the epoch as int64";

/// The offsets of `locate_many`.
pub(super) fn offsets(given: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let single = "for a single offset there is locate()";
    Targets { argument: "offsets", wanted: "integers", single, convert: CONVERT, with_times: false }
        .read(given)
}

/// The times of `offsets_for_times`, ms: integers, or datetimes with a time zone.
pub(super) fn times(given: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let wanted = "integers (ms since the epoch) or datetimes with a time zone";
    let single = "for a single time there is offset_for_time()";
    Targets { argument: "timestamps", wanted, single, convert: CONVERT_TIMES, with_times: true }.read(given)
}

impl Targets {
    fn read(&self, given: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
        let py = given.py();
        let is_column = given.hasattr("__len__")? || is_arrow(given)?;
        if is_text_or_unordered(given) || !is_column && !given.hasattr("__iter__")? {
            let advice = if given.is_instance_of::<PyInt>() { self.single } else { LIST };
            return Err(self.refused(&class_name(given), advice));
        }
        let arrow = error::import(py, "pyarrow", "arrow")?;
        let given = if is_column {
            in_native_byte_order(given)?
        } else {
            // an iterator can be read only once
            py.get_type::<PyList>().call1((given,))?
        };
        match column(&arrow, &given) {
            // pyarrow converts integers and naive datetimes beside a datetime to its type, with another
            // meaning
            Ok(column) if has_objects(&given)? && is_timestamp(&arrow, &column)? => {
                self.of_items(&given, None)
            }
            Ok(column) => self.of_column(&arrow, &column),
            Err(refused) if is_refusal(&refused, &arrow)? => self.of_items(&given, Some(refused)),
            Err(other) => Err(other),
        }
    }

    fn of_column(&self, arrow: &Bound<'_, PyModule>, column: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
        let py = column.py();
        let table = arrow.getattr("Table")?.call_method1("from_arrays", ([column], ["targets"]))?;
        let targets = match arrow_import::stream(&table) {
            Ok(stream) => enter(py, || Ok(read_targets(stream, self.with_times)))?,
            // arrow-rs lacks some types of pyarrow
            Err(_) => Err(NoTargets::UnsupportedType),
        };
        let kind = column.getattr("type")?;
        // a dictionary has the type of its values
        let values = kind.getattr_opt("value_type")?.unwrap_or_else(|| kind.clone());
        if let Ok(targets) = &targets
            && self.with_times
            && !arrow.getattr("types")?.call_method1("is_timestamp", (&values,))?.is_truthy()?
        {
            for (place, target) in targets.iter().enumerate() {
                self.in_milliseconds(place, *target, py)?;
            }
        }
        targets.map_err(|wrong| match wrong {
            NoTargets::NoTimeZone => {
                let kind = &values;
                let expected = "datetimes with a time zone (or integers: ms since the epoch)";
                error::to_python(
                    py,
                    Error::config(self.argument, expected, format!("{kind}, which has none")),
                )
            }
            NoTargets::Struct => self.refused(&kind.to_string(), "give one of its columns"),
            NoTargets::UnsupportedType => self.refused(&kind.to_string(), self.convert),
        })
    }

    /// Converts item by item. `reason`: why pyarrow refused it.
    fn of_items(&self, given: &Bound<'_, PyAny>, reason: Option<PyErr>) -> PyResult<Vec<i64>> {
        let items = given.try_iter().map_err(|_| {
            let refused = self.refused(&class_name(given), self.convert);
            refused.set_cause(given.py(), reason);
            refused
        })?;
        items.enumerate().map(|(place, item)| self.of_item(place, &item?)).collect()
    }

    fn of_item(&self, place: usize, item: &Bound<'_, PyAny>) -> PyResult<i64> {
        if item.is_none() || is_missing_in_pandas(item)? {
            return Ok(NO_TARGET);
        }
        if self.with_times && item.is_instance_of::<PyDateTime>() {
            return arguments::time(format_args!("{}[{place}]", self.argument), item);
        }
        if is_whole(item)? {
            match item.extract() {
                Ok(number) if self.with_times => return self.in_milliseconds(place, number, item.py()),
                Ok(number) => return Ok(number),
                Err(wrong) if wrong.is_instance_of::<PyOverflowError>(item.py()) => return Ok(NO_TARGET),
                Err(_) => {}
            }
        }
        // a scalar of NumPy has no dimension
        let is_array =
            item.getattr_opt("ndim")?.is_some_and(|dimensions| dimensions.is_truthy().unwrap_or(false));
        let advice = if is_array { "give an array of one dimension" } else { self.convert };
        Err(self.refused(&format!("{} at place {place}", class_name(item)), advice))
    }

    /// An integer that is a time. One that is only plausible in another unit is an error.
    fn in_milliseconds(&self, place: usize, number: i64, py: Python<'_>) -> PyResult<i64> {
        OtherUnit::check(format_args!("{}[{place}]", self.argument), number)
            .map_err(|wrong| error::to_python(py, wrong))
    }

    fn refused(&self, found: &str, advice: &str) -> PyErr {
        let Self { argument, wanted, .. } = self;
        PyTypeError::new_err(format!("{argument}: expected {wanted}, found {found}; {advice}"))
    }
}

/// Whether the items are letters, bytes or keys, or have no defined order.
fn is_text_or_unordered(given: &Bound<'_, PyAny>) -> bool {
    given.is_instance_of::<PyString>()
        || given.is_instance_of::<PyBytes>()
        || given.is_instance_of::<PyByteArray>()
        || given.is_instance_of::<PyDict>()
        || given.is_instance_of::<PySet>()
        || given.is_instance_of::<PyFrozenSet>()
}

fn is_arrow(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(given.hasattr("__arrow_c_stream__")? || given.hasattr("__arrow_c_array__")?)
}

/// Arrow has only the machine's byte order; `NumPy` converts arrays of the other.
fn in_native_byte_order<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let Ok(dtype) = given.getattr("dtype") else { return Ok(given.clone()) };
    // a dtype of pandas has `isnative` and no `newbyteorder`
    if !dtype.hasattr("newbyteorder")? || dtype.getattr("isnative")?.is_truthy()? {
        return Ok(given.clone());
    }
    given.call_method1("astype", (dtype.call_method1("newbyteorder", ("=",))?,))
}

fn column<'py>(arrow: &Bound<'py, PyModule>, given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // these need no conversion, and pyarrow.array() would import pandas, which takes a third of a second
    if given.is_instance(&arrow.getattr("Array")?)? || given.is_instance(&arrow.getattr("ChunkedArray")?)? {
        return Ok(given.clone());
    }
    let make = if given.hasattr("__arrow_c_stream__")? { "chunked_array" } else { "array" };
    arrow.call_method1(make, (given,))
}

/// Whether the items are Python objects, whose type pyarrow infers.
fn has_objects(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    match given.getattr_opt("dtype")? {
        // a dtype of NumPy or pandas; those of Polars have no kind
        Some(dtype) => match dtype.getattr_opt("kind")? {
            Some(kind) => kind.eq("O"),
            None => Ok(false),
        },
        None => Ok(!is_arrow(given)?),
    }
}

fn is_timestamp(arrow: &Bound<'_, PyModule>, column: &Bound<'_, PyAny>) -> PyResult<bool> {
    arrow.getattr("types")?.call_method1("is_timestamp", (column.getattr("type")?,))?.is_truthy()
}

/// Whether pyarrow cannot convert something; any other exception is raised unchanged.
fn is_refusal(raised: &PyErr, arrow: &Bound<'_, PyModule>) -> PyResult<bool> {
    let py = arrow.py();
    Ok(raised.is_instance_of::<PyTypeError>(py)
        || raised.is_instance_of::<PyValueError>(py)
        || raised.is_instance_of::<PyOverflowError>(py)
        || raised.is_instance(py, &arrow.getattr("lib")?.getattr("ArrowException")?))
}

/// Whether an item is `pandas.NA` or `pandas.NaT`. No program has one without the import of pandas.
fn is_missing_in_pandas(item: &Bound<'_, PyAny>) -> PyResult<bool> {
    let modules = item.py().import("sys")?.getattr("modules")?;
    let Ok(pandas) = modules.get_item("pandas") else { return Ok(false) };
    let is = |name| pandas.getattr_opt(name).map(|value| value.is_some_and(|value| item.is(&value)));
    Ok(is("NA")? || is("NaT")?)
}

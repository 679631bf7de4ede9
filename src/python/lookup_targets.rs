//! What many look-ups at once ask for: offsets or times, from a list, an array or a column, whoever made it.
//!
//! `pyarrow` converts what it can, which is everything that a program usually has. What it refuses is taken item by item, so
//! that a number beyond 64 bits is one that nothing answers to, and what is no number is named with its place.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFrozenSet, PyInt, PySet, PySlice, PyString};

use super::arguments::{self, class_name};
use super::error;
use crate::error::Error;

/// A target that nothing answers to.
const NOTHING: i64 = -1;

/// Offsets.
pub(super) fn offsets(given: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    Kind::Offsets.read(given)
}

/// Times, ms: integers or datetimes with a zone.
pub(super) fn times(given: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    Kind::Timestamps.read(given)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Offsets,
    Timestamps,
}

impl Kind {
    fn argument(self) -> &'static str {
        match self {
            Self::Offsets => "offsets",
            Self::Timestamps => "timestamps",
        }
    }

    fn wanted(self) -> &'static str {
        match self {
            Self::Offsets => "integers",
            Self::Timestamps => "integers (ms since the epoch) or datetimes with a time zone",
        }
    }

    fn read(self, given: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
        let py = given.py();
        if is_no_column(given) {
            return Err(self.refused(&class_name(given), self.advice_for(given)));
        }
        let arrow = error::import(py, "pyarrow", "arrow")?;
        let given = native(given)?;
        // an iterator can be gone through only once
        let is_column = given.hasattr("__len__")? || is_arrow(&given)?;
        let given = if is_column { given } else { self.listed(&given)? };
        match column(&arrow, &given) {
            Ok(column) => self.of_column(&arrow, column),
            Err(refused) if is_of_pyarrow(&refused, &arrow)? => self.one_by_one(&given, refused),
            Err(other) => Err(other),
        }
    }

    fn of_column<'py>(
        self,
        arrow: &Bound<'py, PyModule>,
        mut array: Bound<'py, PyAny>,
    ) -> PyResult<Vec<i64>> {
        let types = arrow.getattr("types")?;
        let mut kind = array.getattr("type")?;
        let is = |name: &str, kind: &Bound<'py, PyAny>| types.call_method1(name, (kind,))?.is_truthy();
        let is_time =
            |kind: &Bound<'py, PyAny>| PyResult::Ok(self == Self::Timestamps && is("is_timestamp", kind)?);
        if is("is_dictionary", &kind)? {
            // each value once, and which of them each row has: a categorical column
            let value = kind.getattr("value_type")?;
            if is("is_integer", &value)? || is_time(&value)? {
                array = array.call_method1("cast", (&value,))?;
                kind = value;
            }
        }
        if is_time(&kind)? {
            array = self.milliseconds(arrow, array, &kind)?;
        } else if !is("is_integer", &kind)? && !is("is_null", &kind)? {
            let advice = if is("is_struct", &kind)? { "give one of its columns" } else { ADVICE };
            return Err(self.refused(&kind.to_string(), advice));
        }
        // what is 2^63 or above wraps below zero, where nothing answers either
        array = array.call_method1("cast", ("int64", false))?;
        if array.getattr("null_count")?.is_truthy()? {
            array = array.call_method1("fill_null", (NOTHING,))?;
        }
        if array.hasattr("combine_chunks")? {
            array = array.call_method0("combine_chunks")?;
            // one chunk or none, by release of pyarrow
            if array.hasattr("chunks")? {
                array = arrow.call_method1("concat_arrays", (array.getattr("chunks")?,))?;
            }
        }
        numbers(&array)
    }

    /// A column of datetimes as one of ms; a part of one counts as a whole one.
    fn milliseconds<'py>(
        self,
        arrow: &Bound<'py, PyModule>,
        mut array: Bound<'py, PyAny>,
        kind: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = array.py();
        if kind.getattr("tz")?.is_none() {
            let expected = "datetimes with a time zone (or integers: ms since the epoch)";
            let wrong = Error::config(self.argument(), expected, format!("{kind}, which has none"));
            return Err(error::to_python(py, wrong));
        }
        let compute = py.import("pyarrow.compute")?;
        if kind.getattr("unit")?.eq("s")? {
            // what overflows in ms has no answer: it is later than every record, or below zero
            array = array.call_method1("cast", ("int64",))?;
            for (beyond, bound) in [("greater", i64::MAX / 1000), ("less", 0)] {
                let is_beyond = compute.call_method1(beyond, (&array, bound))?;
                array = compute.call_method1("if_else", (is_beyond, NOTHING, array))?;
            }
            return compute.call_method1("multiply", (array, 1000));
        }
        let unit = arrow.call_method1("timestamp", ("ms", kind.getattr("tz")?))?;
        array = compute.call_method1("ceil_temporal", (array, 1, "millisecond"))?;
        array.call_method1("cast", (unit, false))
    }

    /// What pyarrow does not convert, for the reason given.
    fn one_by_one(self, given: &Bound<'_, PyAny>, refused: PyErr) -> PyResult<Vec<i64>> {
        let py = given.py();
        let mut targets = Vec::new();
        let items = given.try_iter().map_err(|_| {
            let wrong = self.refused(&class_name(given), ADVICE);
            wrong.set_cause(py, Some(refused));
            wrong
        })?;
        for (place, item) in items.enumerate() {
            targets.push(self.one(place, &item?)?);
        }
        Ok(targets)
    }

    fn one(self, place: usize, item: &Bound<'_, PyAny>) -> PyResult<i64> {
        let py = item.py();
        let class = class_name(item);
        if item.is_none() || matches!(class.as_str(), "NAType" | "NaTType") {
            return Ok(NOTHING);
        }
        let is_number = !item.is_instance_of::<PyBool>() && item.hasattr("__index__")?;
        if is_number {
            return match item.extract::<i64>() {
                Err(beyond) if beyond.is_instance_of::<PyOverflowError>(py) => Ok(NOTHING),
                Err(_) => Err(self.refused(&format!("{class} at place {place}"), ADVICE)),
                number => number,
            };
        }
        let datetime = py.import("datetime")?.getattr("datetime")?;
        if self == Self::Timestamps && item.is_instance(&datetime)? {
            return arguments::time(format_args!("{}[{place}]", self.argument()), item);
        }
        Err(self.refused(&format!("{class} at place {place}"), ADVICE))
    }

    fn listed<'py>(self, given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if !given.hasattr("__iter__")? {
            return Err(self.refused(&class_name(given), self.advice_for(given)));
        }
        given.py().import("builtins")?.call_method1("list", (given,))
    }

    fn advice_for(self, given: &Bound<'_, PyAny>) -> &'static str {
        match self {
            Self::Offsets if given.is_instance_of::<PyInt>() => "for a single offset there is locate()",
            Self::Timestamps if given.is_instance_of::<PyInt>() => {
                "for a single time there is offset_for_time()"
            }
            _ => "give a list, a NumPy array, or a column of Arrow, pandas or Polars",
        }
    }

    fn refused(self, found: &str, advice: &str) -> PyErr {
        let (argument, wanted) = (self.argument(), self.wanted());
        PyTypeError::new_err(format!("{argument}: expected {wanted}, found {found}; {advice}"))
    }
}

const ADVICE: &str = "convert them to int64, for example with .astype(\"int64\") or .cast(\"int64\")";

/// Bytes and text, whose items are not what they are meant for, and what has no order that answers could have.
fn is_no_column(given: &Bound<'_, PyAny>) -> bool {
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

/// Arrow knows the machine's own order of bytes only: arrays of the other are `NumPy`'s to convert.
fn native<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let Ok(dtype) = given.getattr("dtype") else { return Ok(given.clone()) };
    // those of pandas say `isnative`, too
    if !dtype.hasattr("newbyteorder")? || dtype.getattr("isnative")?.is_truthy()? {
        return Ok(given.clone());
    }
    given.call_method1("astype", (dtype.call_method1("newbyteorder", ("=",))?,))
}

fn column<'py>(arrow: &Bound<'py, PyModule>, given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // both calls that are left out where they have nothing to do would import pandas, for a third of a second
    if given.is_instance(&arrow.getattr("Array")?)? || given.is_instance(&arrow.getattr("ChunkedArray")?)? {
        return Ok(given.clone());
    }
    let make = if given.hasattr("__arrow_c_stream__")? { "chunked_array" } else { "array" };
    arrow.call_method1(make, (given,))
}

/// Whether pyarrow says that it cannot convert something; what else is raised is the caller's own.
fn is_of_pyarrow(raised: &PyErr, arrow: &Bound<'_, PyModule>) -> PyResult<bool> {
    let py = arrow.py();
    let arrows = arrow.getattr("lib")?.getattr("ArrowException")?;
    Ok(raised.is_instance(py, &arrows)
        || raised.is_instance_of::<PyTypeError>(py)
        || raised.is_instance_of::<PyValueError>(py)
        || raised.is_instance_of::<PyOverflowError>(py))
}

/// The numbers of an int64 array without nulls.
fn numbers(array: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    const SIZE: usize = size_of::<i64>();
    let py = array.py();
    let (start, length): (usize, usize) = (array.getattr("offset")?.extract()?, array.len()?);
    let bytes = array.call_method0("buffers")?.get_item(1)?;
    if length == 0 || bytes.is_none() {
        return Ok(vec![NOTHING; length]);
    }
    let bytes = py.import("builtins")?.call_method1("memoryview", (bytes,))?;
    let bytes =
        bytes.get_item(PySlice::new(py, as_place(start * SIZE), as_place((start + length) * SIZE), 1))?;
    if let Ok(numbers) = PyBuffer::<i64>::get(&bytes.call_method1("cast", ("q",))?) {
        return numbers.to_vec(py);
    }
    // a column that was made of a NumPy array lies where that lies, which may be at any address
    let bytes = PyBuffer::<u8>::get(&bytes.call_method1("cast", ("B",))?)?.to_vec(py)?;
    Ok(bytes.as_chunks().0.iter().copied().map(i64::from_ne_bytes).collect())
}

fn as_place(at: usize) -> isize {
    isize::try_from(at).unwrap_or(isize::MAX)
}

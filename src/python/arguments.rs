//! Arguments from Python: times, names of modes, many numbers at once.

use arrow_schema::TimeUnit;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use super::error;
use crate::arrow::{Column, HeaderKeys};
use crate::error::Error;
use crate::fs::names::PartitionState;
use crate::index::Method;
use crate::log::{OnDamage, Ranges};
use crate::types::{Io, IsolationLevel};

/// One of a few words.
fn one_of<T: Copy>(py: Python<'_>, argument: &str, given: &str, allowed: &[(&str, T)]) -> PyResult<T> {
    allowed.iter().find(|(word, _)| *word == given).map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<_> = allowed.iter().map(|(word, _)| format!("{word:?}")).collect();
        error::to_python(py, Error::config(argument, words.join(" or "), format!("{given:?}")))
    })
}

pub(super) fn io(py: Python<'_>, given: &str) -> PyResult<Io> {
    one_of(py, "io", given, &[("auto", Io::Auto), ("mmap", Io::Mmap), ("pread", Io::Pread)])
}

pub(super) fn io_name(io: Io) -> &'static str {
    match io {
        Io::Auto => "auto",
        Io::Mmap => "mmap",
        Io::Pread => "pread",
    }
}

pub(super) fn isolation_level(py: Python<'_>, given: &str) -> PyResult<IsolationLevel> {
    let levels = [
        ("read_uncommitted", IsolationLevel::ReadUncommitted),
        ("read_committed", IsolationLevel::ReadCommitted),
    ];
    one_of(py, "isolation_level", given, &levels)
}

pub(super) fn on_damage(py: Python<'_>, given: &str) -> PyResult<OnDamage> {
    let modes = [("raise", OnDamage::Raise), ("skip", OnDamage::Skip), ("report", OnDamage::Report)];
    one_of(py, "on_damage", given, &modes)
}

pub(super) fn header_keys(py: Python<'_>, given: &str) -> PyResult<HeaderKeys> {
    one_of(py, "header_keys", given, &[("utf8", HeaderKeys::Utf8), ("binary", HeaderKeys::Binary)])
}

pub(super) fn timestamp_unit(py: Python<'_>, given: &str) -> PyResult<TimeUnit> {
    one_of(py, "timestamp_unit", given, &[("ms", TimeUnit::Millisecond), ("us", TimeUnit::Microsecond)])
}

/// `None` takes the best.
pub(super) fn method(py: Python<'_>, given: Option<&str>) -> PyResult<Method> {
    let methods = [("binary", Method::Binary), ("warm", Method::Warm)];
    given.map_or(Ok(Method::default()), |given| one_of(py, "method", given, &methods))
}

pub(super) fn partition_state(py: Python<'_>, given: &str) -> PyResult<PartitionState> {
    let states = [
        ("delete", PartitionState::Delete),
        ("future", PartitionState::Future),
        ("stray", PartitionState::Stray),
    ];
    one_of(py, "include", given, &states)
}

pub(super) fn columns(py: Python<'_>, given: &[String]) -> PyResult<Vec<Column>> {
    let mut columns = Vec::with_capacity(given.len());
    for name in given {
        let column = Column::parse(name).map_err(|wrong| error::to_python(py, wrong))?;
        if columns.contains(&column) {
            let wrong = Error::config("columns", "each column once", format!("{name:?} twice"));
            return Err(error::to_python(py, wrong));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// A count that must be at least one.
pub(super) fn positive(py: Python<'_>, argument: &str, given: i64) -> PyResult<usize> {
    usize::try_from(given)
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| error::to_python(py, Error::config(argument, "1 or more", given.to_string())))
}

/// Milliseconds since the epoch: an int, or an aware datetime (a part of a millisecond counts as a whole one, so that a
/// range holds what it says).
#[derive(Debug, Clone, Copy)]
pub(super) struct Time(pub(super) i64);

impl<'py> FromPyObject<'_, 'py> for Time {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = given.py();
        if given.is_instance_of::<PyBool>() {
            return Err(PyTypeError::new_err("a time is int milliseconds or an aware datetime, not bool"));
        }
        let datetime = py.import("datetime")?;
        if !given.is_instance(&datetime.getattr("datetime")?)? {
            return given.extract::<i64>().map(Self).map_err(|wrong| {
                if wrong.is_instance_of::<PyTypeError>(py) {
                    let class = class_name(&given);
                    return PyTypeError::new_err(format!(
                        "a time is int milliseconds or an aware datetime, not {class}"
                    ));
                }
                if wrong.is_instance_of::<PyOverflowError>(py) {
                    let wrong = Error::config("time", "milliseconds within 64 bits", given.to_string());
                    return error::to_python(py, wrong);
                }
                wrong
            });
        }
        if given.call_method0("utcoffset")?.is_none() {
            let found = given.repr()?.to_string();
            let wrong = Error::config("datetime", "one with a time zone, such as tzinfo=datetime.UTC", found);
            return Err(error::to_python(py, wrong));
        }
        let since = given.sub(
            datetime.getattr("datetime")?.call_method1("fromtimestamp", (0, datetime.getattr("UTC")?))?,
        )?;
        // timedelta(days, seconds, microseconds)
        let unit = datetime.getattr("timedelta")?.call1((0, 0, 1000))?;
        since.neg()?.floor_div(unit)?.neg()?.extract().map(Self)
    }
}

/// The name of a value's class.
pub(super) fn class_name(given: &Bound<'_, PyAny>) -> String {
    given.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string())
}

/// Text; the error for anything else names the argument, as PyO3's own would not.
pub(super) fn text(argument: &str, wanted: &str, given: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = given.cast::<PyString>().map_err(|_| no_instance(argument, wanted, given))?;
    text.extract()
}

/// A whole number; `wanted` says which. One that does not fit is refused as one that is not allowed.
pub(super) fn whole<T: TryFrom<i64>>(argument: &str, wanted: &str, given: &Bound<'_, PyAny>) -> PyResult<T> {
    let py = given.py();
    if given.is_instance_of::<PyBool>() || !given.hasattr("__index__")? {
        return Err(no_instance(argument, wanted, given));
    }
    let number = match given.extract::<i64>() {
        Err(wrong) if !wrong.is_instance_of::<PyOverflowError>(py) => return Err(wrong),
        number => number.ok(),
    };
    number
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| error::to_python(py, Error::config(argument, wanted, given.to_string())))
}

fn no_instance(argument: &str, wanted: &str, given: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("{argument}: expected {wanted}, found {}", class_name(given)))
}

pub(super) fn ranges(
    start_offset: Option<i64>,
    end_offset: Option<i64>,
    start_time: Option<Time>,
    end_time: Option<Time>,
) -> Ranges {
    let ms = |time: Option<Time>| time.map(|Time(ms)| ms);
    Ranges { start_offset, end_offset, start_time: ms(start_time), end_time: ms(end_time) }
}

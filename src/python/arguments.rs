//! Arguments from Python. Each is taken as it was given and converted here under its name, so that an error names the
//! argument, what is wanted and what was found: a `TypeError` for a wrong type, a `ConfigError` for a value that is not
//! allowed. `PyO3`'s own conversions say neither.

use std::convert::Infallible;
use std::fmt::Display;
use std::path::PathBuf;

use arrow_schema::TimeUnit;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PySequence, PyString};

use super::error;
use crate::arrow::{Column, HeaderKeys};
use crate::error::Error;
use crate::fs::names::PartitionState;
use crate::index::Method;
use crate::log::OnDamage;
use crate::types::{Io, IsolationLevel};

/// What an offset may be.
pub(super) const OFFSET: &str = "an offset from 0 to 2^63 - 1";
/// What a leader epoch may be.
pub(super) const EPOCH: &str = "an epoch from 0 to 2^31 - 1";

/// What a time in whole numbers may be.
const MILLISECONDS: &str = "milliseconds within 64 bits";
/// The types of a time.
const TIME: &str = "int milliseconds, an aware datetime or a text such as \"2024-05-01T10:00Z\" or \"-2h\"";

/// An argument with a default. `None` of Python is a value that was given.
#[derive(Clone, Copy)]
pub(super) struct Defaulted<'a, 'py>(Option<Borrowed<'a, 'py, PyAny>>);

/// The argument was left out.
pub(super) const LEFT_OUT: Defaulted<'static, 'static> = Defaulted(None);

impl<'a, 'py> FromPyObject<'a, 'py> for Defaulted<'a, 'py> {
    type Error = Infallible;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> Result<Self, Infallible> {
        Ok(Self(Some(given)))
    }
}

impl<'py> Defaulted<'_, 'py> {
    /// The argument, or its default where it was left out.
    pub(super) fn or<T>(
        self,
        default: T,
        convert: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> PyResult<T> {
        self.0.map_or(Ok(default), |given| convert(&given))
    }

    /// A truth value; false where it was left out.
    pub(super) fn flag(self, argument: &str) -> PyResult<bool> {
        // NumPy's, too
        self.or(false, |given| given.extract().map_err(|_| wrong_type(argument, "a bool", given)))
    }

    /// A count that must be at least one.
    pub(super) fn positive(self, argument: &str, default: usize) -> PyResult<usize> {
        self.or(default, |given| positive(argument, given))
    }
}

/// The error for an argument of another type.
pub(super) fn wrong_type(argument: impl Display + Copy, wanted: &str, given: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("{argument}: expected {wanted}, found {}", class_name(given)))
}

/// The error for an argument whose value is not allowed.
pub(super) fn not_allowed(argument: impl Display + Copy, wanted: &str, given: &Bound<'_, PyAny>) -> PyErr {
    error::to_python(given.py(), Error::config(argument.to_string(), wanted, shown(given)))
}

/// A value as it is written; its class where Python cannot write it, as a number of too many digits.
pub(super) fn shown(given: &Bound<'_, PyAny>) -> String {
    if let Ok(text) = given.cast::<PyString>() {
        return format!("{:?}", text.to_string_lossy());
    }
    // a number of NumPy's is written with its class by repr()
    let is_number = given.hasattr("__index__").unwrap_or_default();
    let written = if is_number { given.str() } else { given.repr() };
    written.map_or_else(|_| class_name(given), |text| text.to_string_lossy().into_owned())
}

/// The name of a value's class.
pub(super) fn class_name(given: &Bound<'_, PyAny>) -> String {
    given.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string())
}

/// Text that is UTF-8.
pub(super) fn text(
    argument: impl Display + Copy,
    wanted: &str,
    given: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let text = given.cast::<PyString>().map_err(|_| wrong_type(argument, wanted, given))?;
    text.extract().map_err(|wrong: PyErr| {
        if wrong.is_instance_of::<PyUnicodeEncodeError>(given.py()) {
            not_allowed(argument, &format!("{wanted}, in Unicode without lone surrogates"), given)
        } else {
            wrong
        }
    })
}

/// A whole number; `wanted` says which.
pub(super) fn whole<T: TryFrom<i64>>(
    argument: impl Display + Copy,
    wanted: &str,
    given: &Bound<'_, PyAny>,
) -> PyResult<T> {
    // an int itself is the usual case, and needs no other question
    let is_number = given.is_exact_instance_of::<PyInt>()
        || !given.is_instance_of::<PyBool>() && given.hasattr("__index__")?;
    if !is_number {
        return Err(wrong_type(argument, wanted, given));
    }
    let number = match given.extract::<i64>() {
        // an array of NumPy's has the method, too, and raises this
        Err(wrong) if wrong.is_instance_of::<PyTypeError>(given.py()) => {
            return Err(wrong_type(argument, wanted, given));
        }
        Err(wrong) if !wrong.is_instance_of::<PyOverflowError>(given.py()) => return Err(wrong),
        number => number.ok(),
    };
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| not_allowed(argument, wanted, given))
}

/// An offset.
pub(super) fn offset(argument: impl Display + Copy, given: &Bound<'_, PyAny>) -> PyResult<i64> {
    whole(argument, OFFSET, given)
}

/// A count that must be at least one.
pub(super) fn positive(argument: &str, given: &Bound<'_, PyAny>) -> PyResult<usize> {
    let wanted = "a whole number, 1 or more";
    let count = whole::<usize>(argument, wanted, given)?;
    if count == 0 { Err(not_allowed(argument, wanted, given)) } else { Ok(count) }
}

/// Milliseconds since the epoch, from an int, an aware datetime or a text. A fraction of a millisecond is rounded up: no
/// record is between, so a bound selects the same records.
pub(super) fn time(argument: impl Display + Copy, given: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = given.py();
    if given.is_exact_instance_of::<PyInt>() {
        return whole(argument, MILLISECONDS, given);
    }
    if given.is_instance_of::<PyString>() {
        return time_in_words(argument, given);
    }
    let datetime = py.import("datetime")?;
    if !given.is_instance(&datetime.getattr("datetime")?)? {
        if given.is_instance_of::<PyBool>() || !given.hasattr("__index__")? {
            return Err(wrong_type(argument, TIME, given));
        }
        return whole(argument, MILLISECONDS, given);
    }
    if given.call_method0("utcoffset")?.is_none() {
        return Err(not_allowed(argument, "a datetime with a time zone, such as tzinfo=datetime.UTC", given));
    }
    let since = given
        .sub(datetime.getattr("datetime")?.call_method1("fromtimestamp", (0, datetime.getattr("UTC")?))?)?;
    // timedelta(days, seconds, microseconds)
    let unit = datetime.getattr("timedelta")?.call1((0, 0, 1000))?;
    since.neg()?.floor_div(unit)?.neg()?.extract()
}

/// A time as a text; `cordwood.times` has the one parser.
fn time_in_words(argument: impl Display + Copy, given: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = given.py();
    let times = py.import("cordwood.times")?;
    let parsed = times.call_method1("parse", (given,));
    parsed
        .map_err(|wrong| match wrong.value(py).getattr("expected") {
            Ok(expected) => not_allowed(argument, &expected.to_string(), given),
            Err(_) => wrong,
        })?
        .extract()
}

/// A path.
pub(super) fn path(given: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let py = given.py();
    let path: PathBuf = given.extract().map_err(|wrong: PyErr| match wrong {
        wrong if wrong.is_instance_of::<PyTypeError>(py) => {
            wrong_type("path", "a str or an os.PathLike of one", given)
        }
        wrong if wrong.is_instance_of::<PyUnicodeEncodeError>(py) => {
            not_allowed("path", "a path that the file system's encoding can write", given)
        }
        wrong => wrong,
    })?;
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.is_empty() || bytes.contains(&0) {
        return Err(not_allowed("path", "a path, which is not empty and has no NUL character", given));
    }
    Ok(path)
}

/// Names in a list; text alone would be a list of its letters.
pub(super) fn names(argument: &str, wanted: &str, given: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let is_one = given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>();
    let list = given.cast::<PySequence>().ok().filter(|_| !is_one);
    let list = list.ok_or_else(|| wrong_type(argument, wanted, given))?;
    let items = list.try_iter()?.enumerate();
    items.map(|(place, name)| text(format_args!("{argument}[{place}]"), "a str", &name?)).collect()
}

/// One of a few words.
pub(super) fn one_of<T: Copy>(
    argument: &str,
    given: &Bound<'_, PyAny>,
    allowed: &[(&str, T)],
) -> PyResult<T> {
    let words: Vec<_> = allowed.iter().map(|(word, _)| format!("{word:?}")).collect();
    let wanted = words.join(" or ");
    let word = text(argument, &wanted, given)?;
    let found = allowed.iter().find(|(allowed, _)| *allowed == word);
    found.map(|(_, value)| *value).ok_or_else(|| not_allowed(argument, &wanted, given))
}

/// The word for a value of a table.
pub(super) fn word_of<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
}

pub(super) const IO: [(&str, Io); 3] = [("auto", Io::Auto), ("mmap", Io::Mmap), ("pread", Io::Pread)];
pub(super) const ISOLATION_LEVELS: [(&str, IsolationLevel); 2] = [
    ("read_uncommitted", IsolationLevel::ReadUncommitted),
    ("read_committed", IsolationLevel::ReadCommitted),
];
pub(super) const ON_DAMAGE: [(&str, OnDamage); 3] =
    [("raise", OnDamage::Raise), ("skip", OnDamage::Skip), ("report", OnDamage::Report)];
pub(super) const HEADER_KEYS: [(&str, HeaderKeys); 2] =
    [("utf8", HeaderKeys::Utf8), ("binary", HeaderKeys::Binary)];
pub(super) const TIMESTAMP_UNITS: [(&str, TimeUnit); 2] =
    [("ms", TimeUnit::Millisecond), ("us", TimeUnit::Microsecond)];

pub(super) fn io(given: Defaulted<'_, '_>) -> PyResult<Io> {
    given.or(Io::Auto, |given| one_of("io", given, &IO))
}

/// `None` takes the best.
pub(super) fn method(given: Option<&Bound<'_, PyAny>>) -> PyResult<Method> {
    let methods = [("binary", Method::Binary), ("warm", Method::Warm)];
    given.map_or(Ok(Method::default()), |given| one_of("method", given, &methods))
}

/// The states of partitions that are on their way in or out, and their names.
pub(super) const PARTITION_STATES: [(&str, PartitionState); 3] = [
    ("delete", PartitionState::Delete),
    ("future", PartitionState::Future),
    ("stray", PartitionState::Stray),
];

pub(super) fn partition_states(given: &Bound<'_, PyAny>) -> PyResult<Vec<PartitionState>> {
    let wanted = "a list of \"delete\", \"future\" or \"stray\"";
    let names = names("include", wanted, given)?;
    names
        .iter()
        .map(|name| {
            let known = PARTITION_STATES.iter().find(|(known, _)| known == name);
            known.map(|(_, state)| *state).ok_or_else(|| not_allowed("include", wanted, given))
        })
        .collect()
}

pub(super) fn columns(given: &Bound<'_, PyAny>) -> PyResult<Vec<Column>> {
    let names = names("columns", "a list of column names, such as [\"offset\", \"key\"]", given)?;
    let refused = |wrong| error::to_python(given.py(), wrong);
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let column = Column::parse(&name).map_err(refused)?;
        if columns.contains(&column) {
            return Err(refused(Error::config("columns", "each column once", format!("{name:?} twice"))));
        }
        columns.push(column);
    }
    Ok(columns)
}

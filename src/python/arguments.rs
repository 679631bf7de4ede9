//! Arguments from Python. The functions here convert them, rather than `PyO3`, so that an error has the
//! argument's name, what is wanted and what was found: a `TypeError` for a wrong type, a `ConfigError` for a
//! value that is not allowed.

use std::convert::Infallible;
use std::fmt::Display;
use std::path::PathBuf;

use arrow_schema::TimeUnit;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyDateTime, PyDelta, PyFloat, PyInt, PyList, PySequence, PyString, PyTuple, PyTzInfo,
};

use super::error;
use super::record::now;
use super::times::{self, TimeRule};
use crate::arrow::{ByteType, Column, HeaderKeys, InvalidText};
use crate::error::Error;
use crate::fs::names::PartitionState;
use crate::index::Method;
use crate::log::OnDamage;
use crate::text::Format;
use crate::types::{Io, IsolationLevel, OtherUnit};

const OFFSET: &str = "an offset from 0 to 2^63 - 1";
const MILLISECONDS: &str = "milliseconds within 64 bits";
const TIME: &str = "int milliseconds, an aware datetime or a text such as \"2024-05-01T10:00Z\" or \"-2h\"";

/// An argument with a default other than `None`.
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
    /// The converted argument, or its default if it was left out.
    pub(super) fn or<T>(
        self,
        argument: &'static str,
        default: T,
        convert: impl FnOnce(&'static str, &Bound<'py, PyAny>) -> PyResult<T>,
    ) -> PyResult<T> {
        self.0.map_or(Ok(default), |given| convert(argument, &given))
    }
}

/// The converted argument, or `None` for Python's `None`, which is its default.
pub(super) fn optional<'py, T>(
    argument: &'static str,
    given: Option<&Bound<'py, PyAny>>,
    convert: impl FnOnce(&'static str, &Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Option<T>> {
    given.map(|given| convert(argument, given)).transpose()
}

/// The error for an argument of another type.
pub(super) fn wrong_type(argument: impl Display + Copy, wanted: &str, given: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("{argument}: expected {wanted}, found {}", class_name(given)))
}

/// The error for an argument whose value is not allowed.
pub(super) fn not_allowed(argument: impl Display + Copy, wanted: &str, given: &Bound<'_, PyAny>) -> PyErr {
    error::to_python(given.py(), Error::config(argument.to_string(), wanted, shown(given)))
}

/// A value as an error shows it: its text, or its class if Python refuses to write it (an int with too many
/// digits).
pub(super) fn shown(given: &Bound<'_, PyAny>) -> String {
    if let Ok(text) = given.cast::<PyString>() {
        return format!("{:?}", text.to_string_lossy());
    }
    // repr() of a NumPy integer includes its class
    let is_integer = given.hasattr("__index__").unwrap_or_default();
    let text = if is_integer { given.str() } else { given.repr() };
    text.map_or_else(|_| class_name(given), |text| text.to_string_lossy().into_owned())
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

/// Whether a value is an integer of any class; `bool` does not count. An array of `NumPy` has `__index__`
/// too, and raises a `TypeError`.
pub(super) fn is_whole(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    // the first test is for speed
    Ok(given.is_exact_instance_of::<PyInt>()
        || !given.is_instance_of::<PyBool>() && given.hasattr("__index__")?)
}

/// An integer; `wanted` describes the allowed values.
pub(super) fn whole<T: TryFrom<i64>>(
    argument: impl Display + Copy,
    wanted: &str,
    given: &Bound<'_, PyAny>,
) -> PyResult<T> {
    if !is_whole(given)? {
        return Err(wrong_type(argument, wanted, given));
    }
    let number = match given.extract::<i64>() {
        Ok(number) => T::try_from(number).ok(),
        Err(wrong) if wrong.is_instance_of::<PyOverflowError>(given.py()) => None,
        Err(wrong) if wrong.is_instance_of::<PyTypeError>(given.py()) => {
            return Err(wrong_type(argument, wanted, given));
        }
        Err(wrong) => return Err(wrong),
    };
    number.ok_or_else(|| not_allowed(argument, wanted, given))
}

/// A bool, also of `NumPy`.
pub(super) fn flag(argument: &str, given: &Bound<'_, PyAny>) -> PyResult<bool> {
    given.extract().map_err(|_| wrong_type(argument, "a bool", given))
}

/// An offset.
pub(super) fn offset(argument: impl Display + Copy, given: &Bound<'_, PyAny>) -> PyResult<i64> {
    whole(argument, OFFSET, given)
}

/// A leader epoch.
pub(super) fn epoch(argument: &str, given: &Bound<'_, PyAny>) -> PyResult<i32> {
    whole(argument, "an epoch from 0 to 2^31 - 1", given)
}

/// A count that must be at least one.
pub(super) fn positive(argument: &str, given: &Bound<'_, PyAny>) -> PyResult<usize> {
    let wanted = "a whole number, 1 or more";
    let count = whole::<usize>(argument, wanted, given)?;
    if count == 0 { Err(not_allowed(argument, wanted, given)) } else { Ok(count) }
}

/// A number of seconds, which may have a fraction.
pub(super) fn seconds(argument: &str, given: &Bound<'_, PyAny>) -> PyResult<f64> {
    const WANTED: &str = "a number of seconds, 0 or more";
    let is_number = given.is_instance_of::<PyInt>() || given.is_instance_of::<PyFloat>();
    if !is_number || given.is_instance_of::<PyBool>() {
        return Err(wrong_type(argument, WANTED, given));
    }
    match given.extract::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(seconds),
        _ => Err(not_allowed(argument, WANTED, given)),
    }
}

/// Milliseconds since the epoch, from an int, an aware datetime or a text. A fraction of a millisecond is
/// rounded up: records have whole milliseconds, so a bound selects the same records. An int that is only
/// plausible in another unit is an error that names it.
pub(super) fn time(argument: impl Display + Copy, given: &Bound<'_, PyAny>) -> PyResult<i64> {
    time_in_zone(argument, given, None)
}

/// The same; `zone`: of a text without one, a `datetime.tzinfo`.
pub(super) fn time_in_zone(
    argument: impl Display + Copy,
    given: &Bound<'_, PyAny>,
    zone: Option<&Bound<'_, PyAny>>,
) -> PyResult<i64> {
    if is_whole(given)? {
        let number = whole(argument, MILLISECONDS, given)?;
        return OtherUnit::check(argument, number).map_err(|wrong| error::to_python(given.py(), wrong));
    }
    if given.is_instance_of::<PyString>() {
        return time_of_text(argument, given, &TimeRule { zone, rounds_up: true });
    }
    time_of_datetime(argument, given)
}

/// [`time_in_zone`] of an argument that may be `None`, in the zone of the argument `tz`.
pub(super) fn optional_time<'py>(
    argument: &'static str,
    given: Option<&Bound<'py, PyAny>>,
    tz: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<i64>> {
    let zone = optional("tz", tz, zone)?;
    optional(argument, given, |argument, given| time_in_zone(argument, given, zone.as_ref()))
}

/// A time that a file or the data of the library has, such as that of an index entry or of a split: any
/// number of ms is one.
pub(super) fn milliseconds(argument: &str, given: &Bound<'_, PyAny>) -> PyResult<i64> {
    if is_whole(given)? { whole(argument, MILLISECONDS, given) } else { time(argument, given) }
}

/// A time zone for texts: its name, or a `datetime.tzinfo`.
pub(super) fn zone<'py>(argument: &'static str, given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    const WANTED: &str = "the name of a time zone, such as \"Europe/Berlin\", or a tzinfo";
    if given.is_instance_of::<PyTzInfo>() {
        return Ok(given.clone());
    }
    let name = text(argument, WANTED, given)?;
    let zones = given.py().import("zoneinfo")?;
    zones.call_method1("ZoneInfo", (name,)).map_err(|_| not_allowed(argument, WANTED, given))
}

fn time_of_datetime(argument: impl Display + Copy, given: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = given.py();
    if !given.is_instance_of::<PyDateTime>() {
        return Err(wrong_type(argument, TIME, given));
    }
    // NaT of pandas is a datetime without a value; nothing else differs from itself
    if given.ne(given)? {
        return Err(not_allowed(argument, TIME, given));
    }
    if given.call_method0("utcoffset")?.is_none() {
        return Err(not_allowed(argument, "a datetime with a time zone, such as tzinfo=datetime.UTC", given));
    }
    let epoch = PyDateTime::from_timestamp(py, 0.0, Some(&*PyTzInfo::utc(py)?))?;
    let millisecond = PyDelta::new(py, 0, 0, 1000, false)?;
    // the floor of the negative, so that it is rounded up
    given.sub(epoch)?.neg()?.floor_div(millisecond)?.neg()?.extract()
}

/// A time as a text.
fn time_of_text(
    argument: impl Display + Copy,
    given: &Bound<'_, PyAny>,
    rule: &TimeRule<'_, '_>,
) -> PyResult<i64> {
    let found = times::parsed(given.py(), &text(argument, TIME, given)?, now(), rule)?;
    found.map_err(|wrong| not_allowed(argument, &wrong.expected, given))
}

/// The path of the argument `path`.
pub(super) fn path(given: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    path_of("path", given)
}

/// One path or a list of them, of the argument `path`.
pub(super) fn paths(given: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
    let is_list = given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>();
    if !is_list {
        return Ok(vec![path(given)?]);
    }
    let items = given.try_iter()?.enumerate();
    let paths: Vec<_> =
        items.map(|(place, item)| path_of(&format!("path[{place}]"), &item?)).collect::<PyResult<_>>()?;
    if paths.is_empty() { Err(not_allowed("path", "one path or more", given)) } else { Ok(paths) }
}

/// A path.
pub(super) fn path_of(argument: &str, given: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let py = given.py();
    let path: PathBuf = given.extract().map_err(|wrong: PyErr| match wrong {
        wrong if wrong.is_instance_of::<PyTypeError>(py) => {
            wrong_type(argument, "a str or an os.PathLike of one", given)
        }
        wrong if wrong.is_instance_of::<PyUnicodeEncodeError>(py) => {
            not_allowed(argument, "a path that the file system's encoding can write", given)
        }
        wrong => wrong,
    })?;
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.is_empty() || bytes.contains(&0) {
        return Err(not_allowed(argument, "a path, which is not empty and has no NUL character", given));
    }
    Ok(path)
}

/// Names in a list. A text is not treated as a list of its letters.
pub(super) fn names(argument: &str, wanted: &str, given: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let is_one = given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>();
    let list = given.cast::<PySequence>().ok().filter(|_| !is_one);
    let list = list.ok_or_else(|| wrong_type(argument, wanted, given))?;
    let items = list.try_iter()?.enumerate();
    items.map(|(place, name)| text(format_args!("{argument}[{place}]"), "a str", &name?)).collect()
}

/// The numbers of partitions.
pub(super) fn partition_numbers(argument: &'static str, given: &Bound<'_, PyAny>) -> PyResult<Vec<i32>> {
    const WANTED: &str = "a list of partition numbers, such as [0, 3]";
    let is_one = given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>();
    let list = given.cast::<PySequence>().ok().filter(|_| !is_one);
    let items = list.ok_or_else(|| wrong_type(argument, WANTED, given))?.try_iter()?.enumerate();
    let wanted = "the number of a partition, from 0 to 2^31 - 1";
    items
        .map(|(place, item)| {
            let (name, item) = (format!("{argument}[{place}]"), item?);
            let number = whole::<i32>(name.as_str(), wanted, &item)?;
            if number < 0 { Err(not_allowed(name.as_str(), wanted, &item)) } else { Ok(number) }
        })
        .collect()
}

/// The time of a record: as [`time`], but a fraction of a millisecond is left out, also before the epoch, so
/// that no record moves to a later second or day.
pub(super) fn time_of_record(argument: &str, given: &Bound<'_, PyAny>) -> PyResult<i64> {
    let py = given.py();
    let rounded_up = time(argument, given)?;
    if given.is_instance_of::<PyString>() {
        return time_of_text(argument, given, &TimeRule { zone: None, rounds_up: false });
    }
    if !given.is_instance_of::<PyDateTime>() {
        return Ok(rounded_up);
    }
    let epoch = PyDateTime::from_timestamp(py, 0.0, Some(&*PyTzInfo::utc(py)?))?;
    let found = given.sub(epoch)?.floor_div(PyDelta::new(py, 0, 0, 1000, false)?)?.extract()?;
    if found == -1 {
        let expected = "a time outside the last millisecond before 1970, which would be -1: no time";
        return Err(not_allowed(argument, expected, given));
    }
    Ok(found)
}

/// A conversion to the value that a table has for a word.
pub(super) fn one_of<T: Copy>(
    allowed: &[(&'static str, T)],
) -> impl Fn(&'static str, &Bound<'_, PyAny>) -> PyResult<T> {
    move |argument, given| {
        let words: Vec<_> = allowed.iter().map(|(word, _)| format!("{word:?}")).collect();
        let wanted = words.join(" or ");
        let word = text(argument, &wanted, given)?;
        let found = allowed.iter().find(|(allowed, _)| *allowed == word);
        found.map(|(_, value)| *value).ok_or_else(|| not_allowed(argument, &wanted, given))
    }
}

/// The word that a table has for a value.
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
pub(super) const BYTE_TYPES: [(&str, ByteType); 4] = [
    ("binary", ByteType::Binary),
    ("binary_view", ByteType::BinaryView),
    ("string", ByteType::String),
    ("string_view", ByteType::StringView),
];
pub(super) const ON_INVALID_UTF8: [(&str, InvalidText); 3] =
    [("raise", InvalidText::Raise), ("null", InvalidText::Null), ("replace", InvalidText::Replace)];
pub(super) const HEADER_KEYS: [(&str, HeaderKeys); 2] =
    [("utf8", HeaderKeys::Utf8), ("binary", HeaderKeys::Binary)];
pub(super) const TIMESTAMP_UNITS: [(&str, TimeUnit); 2] =
    [("ms", TimeUnit::Millisecond), ("us", TimeUnit::Microsecond)];
pub(super) const TEXT_FORMATS: [(&str, Format); 5] = [
    ("jsonl", Format::JsonLines),
    ("csv", Format::Csv),
    ("terminal_csv", Format::TerminalCsv),
    ("raw", Format::Raw),
    ("terminal_raw", Format::TerminalRaw),
];

/// `None` is the default method.
pub(super) fn method(given: Option<&Bound<'_, PyAny>>) -> PyResult<Method> {
    let methods = [("binary", Method::Binary), ("warm", Method::Warm), ("learned", Method::Learned)];
    Ok(optional("method", given, one_of(&methods))?.unwrap_or_default())
}

/// The states of partition directories that are not live.
pub(super) const PARTITION_STATES: [(&str, PartitionState); 3] = [
    ("delete", PartitionState::Delete),
    ("future", PartitionState::Future),
    ("stray", PartitionState::Stray),
];

pub(super) fn partition_states(given: &Bound<'_, PyAny>) -> PyResult<Vec<PartitionState>> {
    let wanted = "a list of \"delete\", \"future\" or \"stray\"";
    let names = names("include", wanted, given)?;
    let state = |name: &String| PARTITION_STATES.iter().find(|(known, _)| known == name);
    let states = names.iter().map(|name| state(name).map(|(_, state)| *state));
    states.collect::<Option<_>>().ok_or_else(|| not_allowed("include", wanted, given))
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

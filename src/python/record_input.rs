//! Records to append, from Python: bytes of several kinds, headers, records.

use std::fmt::Display;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyList, PyMapping, PyMemoryView, PyString, PyTuple};

use super::arguments::{self, Defaulted, class_name, not_allowed, optional, wrong_type};
use super::error;
use super::record::PyRecord;
use crate::arrow::HeaderPair;
use crate::error::Error;
use crate::record::NewRecord;
use crate::types::OtherUnit;

/// Bytes, or text as UTF-8. Those of an immutable object are borrowed, others copied.
pub(super) enum Blob {
    Bytes(PyBackedBytes),
    Text(PyBackedStr),
}

impl Blob {
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Text(text) => text.as_bytes(),
        }
    }

    pub(super) fn of(
        argument: impl Display + Copy,
        wanted: &str,
        given: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        if let Ok(bytes) = given.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.to_owned().into()));
        }
        if given.is_instance_of::<PyString>() {
            return given.extract().map(Self::Text).map_err(|_| {
                not_allowed(argument, "text in Unicode without lone surrogates, or bytes", given)
            });
        }
        let view = PyMemoryView::from(given).map_err(|_| wrong_type(argument, wanted, given))?;
        // a NumPy scalar has a buffer too, but no dimension. The view of a NumPy date has one, so the date is
        // checked as well.
        let format: String = view.getattr("format")?.extract()?;
        let item = format.trim_start_matches(['@', '=', '<', '>', '!']);
        if !matches!(item, "B" | "b" | "c") || has_no_dimension(&view)? || has_no_dimension(given)? {
            let found = class_name(given);
            return Err(PyTypeError::new_err(format!(
                "{argument}: expected {wanted}, found {found} (its tobytes() are bytes)"
            )));
        }
        let bytes = view.call_method0("tobytes")?;
        Ok(Self::Bytes(bytes.cast::<PyBytes>()?.clone().into()))
    }

    /// Raw batches.
    pub(super) fn raw(argument: impl Display + Copy, given: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::of(argument, "bytes", given)
    }

    /// A record's value or key; `None` is null.
    pub(super) fn nullable(
        argument: impl Display + Copy,
        given: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Self>> {
        given.map(|given| Self::of(argument, "bytes, str or None", given)).transpose()
    }
}

/// Whether it is a scalar of `NumPy`.
fn has_no_dimension(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    given.getattr_opt("ndim")?.map_or(Ok(false), |dimensions| dimensions.eq(0))
}

/// Headers: a sequence of pairs, or a mapping.
#[derive(Default)]
pub(super) struct GivenHeaders(pub(super) Vec<(Blob, Option<Blob>)>);

impl GivenHeaders {
    /// Python's `None` means no headers.
    pub(super) fn of(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        if given.is_none() {
            return Ok(Self::default());
        }
        let pairs = match given.cast::<PyMapping>() {
            Ok(mapping) => mapping.items()?.into_any(),
            Err(_) => given.clone(),
        };
        let mut headers = Vec::new();
        let wanted = "pairs of a name and a value, or a mapping";
        for (place, pair) in pairs.try_iter().map_err(|_| wrong_type("headers", wanted, given))?.enumerate() {
            let pair = pair?;
            let is_pair = pair.is_instance_of::<PyTuple>() || pair.is_instance_of::<PyList>();
            if !is_pair || pair.len()? != 2 {
                return Err(wrong_type(
                    format_args!("headers[{place}]"),
                    "a pair of a name and a value",
                    &pair,
                ));
            }
            let (name, value) = (pair.get_item(0)?, pair.get_item(1)?);
            let name = Blob::of(format_args!("headers[{place}][0]"), "a name, bytes or str", &name)?;
            let value = Some(&value).filter(|value| !value.is_none());
            headers.push((name, Blob::nullable(format_args!("headers[{place}][1]"), value)?));
        }
        Ok(Self(headers))
    }

    fn pairs(&self) -> Vec<HeaderPair<'_>> {
        self.0.iter().map(|(name, value)| (name.as_slice(), value.as_ref().map(Blob::as_slice))).collect()
    }
}

/// A record to append. It owns or borrows bytes that the core reads while it is detached from the
/// interpreter.
pub(super) struct GivenRecord {
    pub(super) value: Option<Blob>,
    pub(super) key: Option<Blob>,
    pub(super) headers: GivenHeaders,
    /// `None`: now.
    pub(super) timestamp: Option<i64>,
}

impl GivenRecord {
    /// Builds a record from its fields.
    pub(super) fn of_fields(
        value: Option<&Bound<'_, PyAny>>,
        key: Option<&Bound<'_, PyAny>>,
        headers: Defaulted<'_, '_>,
        timestamp: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Ok(Self {
            value: Blob::nullable("value", value)?,
            key: Blob::nullable("key", key)?,
            headers: headers.or("headers", GivenHeaders::default(), |_, given| GivenHeaders::of(given))?,
            timestamp: optional("timestamp", timestamp, arguments::time_of_record)?,
        })
    }

    fn of(argument: impl Display + Copy, given: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(record) = given.cast::<PyRecord>() {
            return record.get().given(given.py());
        }
        let value = Blob::of(argument, "a Record, or the bytes of a value", given)?;
        Ok(Self { value: Some(value), key: None, headers: GivenHeaders::default(), timestamp: None })
    }
}

#[doc = stub_doc!(_other_unit)]
#[pyfunction]
#[pyo3(name = "_other_unit", signature = (number, /))]
pub(super) fn other_unit(number: i64) -> Option<(&'static str, i64)> {
    OtherUnit::of(number).map(|unit| (unit.name, unit.milliseconds))
}

/// Records to append.
pub(super) struct GivenRecords(Vec<GivenRecord>);

impl GivenRecords {
    pub(super) fn one(record: GivenRecord) -> Self {
        Self(vec![record])
    }

    /// Calls `work` with the records. `now`: the timestamp of a record without one.
    pub(super) fn with<T>(&self, now: i64, work: impl FnOnce(&[NewRecord<'_>]) -> T) -> T {
        let headers: Vec<_> = self.0.iter().map(|given| given.headers.pairs()).collect();
        let records = self.0.iter().zip(&headers).map(|(given, headers)| NewRecord {
            timestamp: given.timestamp.unwrap_or(now),
            key: given.key.as_ref().map(Blob::as_slice),
            value: given.value.as_ref().map(Blob::as_slice),
            headers,
        });
        work(&records.collect::<Vec<_>>())
    }
}

/// The argument of `append_many`. An error names the place of the wrong item.
pub(super) fn records(given: &Bound<'_, PyAny>) -> PyResult<GivenRecords> {
    let wanted = "an iterable of Record or bytes";
    // the items of a text are letters, and those of bytes are numbers
    if given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err(format!(
            "records: expected {wanted}, found one {}; append takes a single value",
            class_name(given)
        )));
    }
    if given.cast::<PyMapping>().is_ok() {
        // the items are the keys
        return Err(wrong_type("records", wanted, given));
    }
    let items = given.try_iter().map_err(|wrong| {
        if wrong.is_instance_of::<PyTypeError>(given.py()) {
            wrong_type("records", wanted, given)
        } else {
            wrong
        }
    })?;
    let mut records = Vec::new();
    for (place, record) in items.enumerate() {
        records.push(GivenRecord::of(format_args!("records[{place}]"), &record?)?);
    }
    Ok(GivenRecords(records))
}

/// The name of a header, which has to be UTF-8.
pub(super) fn name_text(py: Python<'_>, name: &Blob) -> PyResult<String> {
    std::str::from_utf8(name.as_slice())
        .map(str::to_owned)
        .map_err(|wrong| error::to_python(py, Error::config("headers", "names in UTF-8", wrong.to_string())))
}

//! What a program gives to be appended: bytes of several kinds, headers, records.

use std::fmt::Display;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyList, PyMapping, PyMemoryView, PyString, PyTuple};

use super::arguments::{self, Defaulted, class_name, not_allowed, wrong_type};
use super::error;
use super::record::PyRecord;
use crate::error::Error;
use crate::record::NewRecord;

/// Bytes, or text as UTF-8; held where they are where Python's object cannot change, else copied.
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
}

impl Blob {
    /// `wanted` says what it may be.
    fn of(argument: impl Display + Copy, wanted: &str, given: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = given.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.to_owned().into()));
        }
        if given.is_instance_of::<PyString>() {
            return given.extract().map(Self::Text).map_err(|_| {
                not_allowed(argument, "text in Unicode without lone surrogates, or bytes", given)
            });
        }
        let view = PyMemoryView::from(given).map_err(|_| wrong_type(argument, wanted, given))?;
        // a NumPy number has bytes, too, and an array of them as many as its item size says. The view of a NumPy date has
        // one dimension; the date itself, as every scalar of NumPy, has none
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

/// Whether it is a scalar, as NumPy has them.
fn has_no_dimension(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    given.getattr_opt("ndim")?.map_or(Ok(false), |dimensions| dimensions.eq(0))
}

/// Headers: a sequence of pairs, or a mapping.
#[derive(Default)]
pub(super) struct GivenHeaders(pub(super) Vec<(Blob, Option<Blob>)>);

impl GivenHeaders {
    /// `None` is none.
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
}

/// A record to append, held by this side while the core, detached from the interpreter, reads it.
pub(super) struct GivenRecord {
    pub(super) value: Option<Blob>,
    pub(super) key: Option<Blob>,
    pub(super) headers: GivenHeaders,
    /// `None`: now.
    pub(super) timestamp: Option<i64>,
}

impl GivenRecord {
    /// Of the arguments that a record is made of.
    pub(super) fn of_fields(
        value: Option<&Bound<'_, PyAny>>,
        key: Option<&Bound<'_, PyAny>>,
        headers: Defaulted<'_, '_>,
        timestamp: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Ok(Self {
            value: Blob::nullable("value", value)?,
            key: Blob::nullable("key", key)?,
            headers: headers.or(GivenHeaders::default(), GivenHeaders::of)?,
            timestamp: timestamp.map(|given| arguments::time("timestamp", given)).transpose()?,
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

/// Records to append.
pub(super) struct GivenRecords(Vec<GivenRecord>);

impl GivenRecords {
    pub(super) fn one(record: GivenRecord) -> Self {
        Self(vec![record])
    }

    /// Does something with the records as the core wants them. `now`: what a record gets that has no time.
    pub(super) fn with<T>(&self, now: i64, work: impl FnOnce(&[NewRecord<'_>]) -> T) -> T {
        let pairs: Vec<_> = self
            .0
            .iter()
            .flat_map(|record| &record.headers.0)
            .map(|(name, value)| (name.as_slice(), value.as_ref().map(Blob::as_slice)))
            .collect();
        let mut rest = pairs.as_slice();
        let record = |given: &'_ GivenRecord| {
            let (headers, others) = rest.split_at_checked(given.headers.0.len()).unwrap_or((rest, &[]));
            rest = others;
            (given.timestamp.unwrap_or(now), headers)
        };
        let heads: Vec<_> = self.0.iter().map(record).collect();
        let records: Vec<_> = self
            .0
            .iter()
            .zip(heads)
            .map(|(given, (timestamp, headers))| NewRecord {
                timestamp,
                key: given.key.as_ref().map(Blob::as_slice),
                value: given.value.as_ref().map(Blob::as_slice),
                headers,
            })
            .collect();
        work(&records)
    }
}

/// What `append_many` takes; the wrong one of them is named by its place.
pub(super) fn records(given: &Bound<'_, PyAny>) -> PyResult<GivenRecords> {
    let wanted = "an iterable of Record or bytes";
    // their items are letters and numbers
    if given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err(format!(
            "records: expected {wanted}, found one {}; append takes a single value",
            class_name(given)
        )));
    }
    if given.cast::<PyMapping>().is_ok() {
        // its keys alone would be appended
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

/// Text that has to be UTF-8: a header's name.
pub(super) fn name_text(py: Python<'_>, name: &Blob) -> PyResult<String> {
    std::str::from_utf8(name.as_slice())
        .map(str::to_owned)
        .map_err(|wrong| error::to_python(py, Error::config("headers", "names in UTF-8", wrong.to_string())))
}

//! What a program gives to be appended: bytes of several kinds, headers, records.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyList, PyMapping, PyMemoryView, PyString, PyTuple};

use super::arguments::class_name;
use super::record::PyRecord;
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

impl<'py> FromPyObject<'_, 'py> for Blob {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = given.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.to_owned().into()));
        }
        if given.is_instance_of::<PyString>() {
            return given.extract::<PyBackedStr>().map(Self::Text);
        }
        let refused = |more| {
            let found = class_name(&given);
            PyTypeError::new_err(format!("expected bytes, str or None, found {found}{more}"))
        };
        let view = PyMemoryView::from(&given).map_err(|_| refused(""))?;
        // a number of NumPy's has bytes too, and an array of them as many as the machine makes of it
        let format: String = view.getattr("format")?.extract()?;
        let item = format.trim_start_matches(['@', '=', '<', '>', '!']);
        if !matches!(item, "B" | "b" | "c") || view.getattr("ndim")?.extract::<i32>()? < 1 {
            return Err(refused(" (its tobytes() are bytes)"));
        }
        let bytes = view.call_method0("tobytes")?;
        Ok(Self::Bytes(bytes.cast::<PyBytes>()?.clone().into()))
    }
}

/// Headers: a sequence of pairs, or a mapping.
#[derive(Default)]
pub(super) struct GivenHeaders(pub(super) Vec<(Blob, Option<Blob>)>);

impl<'py> FromPyObject<'_, 'py> for GivenHeaders {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if given.is_none() {
            return Ok(Self::default());
        }
        let pairs = match given.cast::<PyMapping>() {
            Ok(mapping) => mapping.items()?.into_any(),
            Err(_) => given.to_owned(),
        };
        let mut headers = Vec::new();
        for pair in pairs.try_iter().map_err(|_| no_headers(&given))? {
            let pair = pair?;
            if !pair.is_instance_of::<PyTuple>() && !pair.is_instance_of::<PyList>() || pair.len()? != 2 {
                return Err(no_headers(&pair));
            }
            let name = pair.get_item(0)?;
            if name.is_none() {
                return Err(no_headers(&pair));
            }
            headers.push((name.extract()?, pair.get_item(1)?.extract()?));
        }
        Ok(Self(headers))
    }
}

fn no_headers(found: &Bound<'_, PyAny>) -> PyErr {
    let found = found.repr().map_or_else(|_| "?".to_owned(), |words| words.to_string());
    PyTypeError::new_err(format!("headers are pairs of a name and a value, or a mapping; found {found}"))
}

/// A record to append, held by this side while the core, detached from the interpreter, reads it.
pub(super) struct GivenRecord {
    pub(super) value: Option<Blob>,
    pub(super) key: Option<Blob>,
    pub(super) headers: GivenHeaders,
    /// `None`: now.
    pub(super) timestamp: Option<i64>,
}

impl<'py> FromPyObject<'_, 'py> for GivenRecord {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(record) = given.cast::<PyRecord>() {
            return record.get().given(given.py());
        }
        let value = given.extract::<Blob>().map_err(|error| {
            if error.is_instance_of::<PyTypeError>(given.py()) {
                let found = class_name(&given);
                PyTypeError::new_err(format!("expected a Record, or the bytes of a value, found {found}"))
            } else {
                error
            }
        })?;
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

impl<'py> FromPyObject<'_, 'py> for GivenRecords {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // their items are letters and numbers
        if given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>() {
            return Err(PyTypeError::new_err(format!(
                "expected an iterable of Record or bytes, found one {}; append takes a single value",
                class_name(&given)
            )));
        }
        let no_records = || {
            let found = class_name(&given);
            PyTypeError::new_err(format!("expected an iterable of Record or bytes, found {found}"))
        };
        if given.cast::<PyMapping>().is_ok() {
            // its keys alone would be appended
            return Err(no_records());
        }
        let mut records = Vec::new();
        for (place, record) in given.try_iter().map_err(|_| no_records())?.enumerate() {
            let record = record?;
            records.push(record.extract().map_err(|wrong: PyErr| at_place(given.py(), place, wrong))?);
        }
        Ok(Self(records))
    }
}

/// Of many records the one that is wrong is named.
fn at_place(py: Python<'_>, place: usize, wrong: PyErr) -> PyErr {
    if wrong.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(format!("record {place}: {}", wrong.value(py)))
    } else {
        wrong
    }
}

/// Text that has to be UTF-8: a header's name.
pub(super) fn name_text(name: &Blob) -> PyResult<String> {
    std::str::from_utf8(name.as_slice())
        .map(str::to_owned)
        .map_err(|error| PyValueError::new_err(format!("a header's name is UTF-8: {error}")))
}

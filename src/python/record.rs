//! `Record`: from a scan, or made by a program to be appended.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use super::arguments::{Defaulted, LEFT_OUT};
use super::record_input::{Blob, GivenHeaders, GivenRecord, name_text};
use crate::types::TimestampType;

/// A record of a scan, before it is converted.
pub(super) struct OwnedRecord {
    pub(super) offset: i64,
    pub(super) timestamp: i64,
    pub(super) timestamp_type: TimestampType,
    pub(super) key: Option<Vec<u8>>,
    pub(super) value: Option<Vec<u8>>,
    pub(super) headers: Vec<(String, Option<Vec<u8>>)>,
}

#[doc = stub_doc!(Record)]
#[pyclass(frozen, get_all, module = "cordwood", name = "Record")]
pub(super) struct PyRecord {
    #[doc = stub_doc!(Record.offset)]
    offset: i64,
    #[doc = stub_doc!(Record.timestamp)]
    timestamp: i64,
    #[doc = stub_doc!(Record.timestamp_type)]
    timestamp_type: Py<PyAny>,
    #[doc = stub_doc!(Record.key)]
    key: Option<Py<PyBytes>>,
    #[doc = stub_doc!(Record.value)]
    value: Option<Py<PyBytes>>,
    #[doc = stub_doc!(Record.headers)]
    headers: Py<PyList>,
}

impl PyRecord {
    pub(super) fn new(py: Python<'_>, record: OwnedRecord) -> PyResult<Self> {
        let bytes = |bytes: Option<Vec<u8>>| bytes.map(|bytes| PyBytes::new(py, &bytes).unbind());
        let headers = record.headers.into_iter().map(|(key, value)| (key, bytes(value)));
        Ok(Self {
            offset: record.offset,
            timestamp: record.timestamp,
            timestamp_type: timestamp_type(py, record.timestamp_type)?.unbind(),
            key: bytes(record.key),
            value: bytes(record.value),
            headers: PyList::new(py, headers.collect::<Vec<_>>())?.unbind(),
        })
    }

    /// All fields: two records with the same ones are equal.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let (kind, key, value) = (self.timestamp_type.bind(py), &self.key, &self.value);
        (self.offset, self.timestamp, kind, key, value, self.headers.bind(py).to_tuple()).into_pyobject(py)
    }

    /// The fields that a writer appends.
    pub(super) fn given(&self, py: Python<'_>) -> PyResult<GivenRecord> {
        let blob = |bytes: &Option<Py<PyBytes>>| {
            bytes.as_ref().map(|bytes| Blob::Bytes(bytes.bind(py).clone().into()))
        };
        let headers = self.headers.bind(py);
        let headers = if headers.is_empty() { GivenHeaders::default() } else { GivenHeaders::of(headers)? };
        Ok(GivenRecord {
            value: blob(&self.value),
            key: blob(&self.key),
            headers,
            timestamp: Some(self.timestamp),
        })
    }
}

#[doc = stub_doc!(_record)]
#[pyfunction]
#[pyo3(name = "_record", signature = (offset, timestamp, timestamp_type, key, value, headers, /))]
pub(super) fn record(
    offset: i64,
    timestamp: i64,
    timestamp_type: Py<PyAny>,
    key: Option<Py<PyBytes>>,
    value: Option<Py<PyBytes>>,
    headers: Py<PyList>,
) -> PyRecord {
    PyRecord { offset, timestamp, timestamp_type, key, value, headers }
}

/// The enum `TimestampType` of Python.
pub(super) fn timestamp_types(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import("cordwood.types")?.getattr("TimestampType")
}

pub(super) fn timestamp_type(py: Python<'_>, kind: TimestampType) -> PyResult<Bound<'_, PyAny>> {
    timestamp_types(py)?.call1((kind.id(),))
}

/// The system's clock, ms since the epoch.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[pymethods]
impl PyRecord {
    #[new]
    #[pyo3(signature = (value, key=None, headers=LEFT_OUT, timestamp=None),
        text_signature = "(value, key=None, headers=(), timestamp=None)")]
    fn made(
        py: Python<'_>,
        value: Option<&Bound<'_, PyAny>>,
        key: Option<&Bound<'_, PyAny>>,
        headers: Defaulted<'_, '_>,
        timestamp: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let GivenRecord { value, key, headers, timestamp } =
            GivenRecord::of_fields(value, key, headers, timestamp)?;
        let bytes =
            |blob: &Option<Blob>| blob.as_ref().map(|blob| PyBytes::new(py, blob.as_slice()).unbind());
        let headers = headers.0.iter().map(|(name, value)| Ok((name_text(py, name)?, bytes(value))));
        Ok(Self {
            offset: -1,
            timestamp: timestamp.unwrap_or_else(now),
            timestamp_type: timestamp_type(py, TimestampType::CreateTime)?.unbind(),
            key: bytes(&key),
            value: bytes(&value),
            headers: PyList::new(py, headers.collect::<PyResult<Vec<_>>>()?)?.unbind(),
        })
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<bool> {
        self.fields(py)?.eq(other.get().fields(py)?)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.fields(py)?.hash()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (kind, key, value) = (self.timestamp_type.bind(py), &self.key, &self.value);
        let fields = (self.offset, self.timestamp, kind, key, value, self.headers.bind(py));
        (py.import("cordwood._core")?.getattr("_record")?, fields).into_bound_py_any(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shown = PyDict::new(py);
        shown.set_item("key", &self.key)?;
        shown.set_item("value", &self.value)?;
        shown.set_item("headers", &self.headers)?;
        let shown = shown.repr()?;
        Ok(format!("<Record offset={} timestamp={} {shown}>", self.offset, self.timestamp))
    }
}

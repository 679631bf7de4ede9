//! `Segments` and `Segment`.

use std::ffi::OsString;
use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PySlice};

use super::arguments::{self, shown, wrong_type};
use super::enter::enter;
use super::error;
use super::handle::{LogHandle, recipe};
use super::index::{PyOffsetIndex, PyTimeIndex, PyTransactionIndex};
use crate::error::{Error, Result};
use crate::log::Segments;
use crate::segment::Segment;

#[doc = stub_doc!(Segments)]
#[pyclass(frozen, module = "cordwood", name = "Segments")]
pub(super) struct PySegments {
    handle: Arc<LogHandle>,
}

impl PySegments {
    pub(super) fn of(handle: &Arc<LogHandle>) -> Self {
        Self { handle: Arc::clone(handle) }
    }

    /// Reads from the segments of the log of this process, detached from the interpreter.
    fn read<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&Segments) -> T + Send) -> PyResult<T> {
        enter(py, || Ok(read(self.handle.log()?.segments())))
    }

    fn segment(&self, base_offset: i64) -> PySegment {
        PySegment { handle: Arc::clone(&self.handle), base_offset }
    }

    fn base_offsets(&self, py: Python<'_>) -> PyResult<Vec<i64>> {
        self.read(py, |segments| segments.iter().map(|segment| segment.base_offset()).collect())
    }

    fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.base_offsets(py)?.into_iter().map(|base_offset| self.segment(base_offset)))
    }

    /// The place of a segment; `None` for anything else.
    fn place(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let Ok(segment) = value.cast::<PySegment>() else { return Ok(None) };
        let PySegment { handle, base_offset } = segment.get();
        if handle.path() != self.handle.path() {
            return Ok(None);
        }
        Ok(self.base_offsets(py)?.iter().position(|other| other == base_offset))
    }
}

#[pymethods]
impl PySegments {
    #[doc = stub_doc!(Segments.floor)]
    fn floor(&self, py: Python<'_>, offset: &Bound<'_, PyAny>) -> PyResult<Option<PySegment>> {
        let offset = arguments::offset("offset", offset)?;
        let found = self.read(py, |segments| segments.floor(offset).map(|segment| segment.base_offset()))?;
        Ok(found.map(|base_offset| self.segment(base_offset)))
    }

    #[doc = stub_doc!(Segments.higher)]
    fn higher(&self, py: Python<'_>, offset: &Bound<'_, PyAny>) -> PyResult<Option<PySegment>> {
        let offset = arguments::offset("offset", offset)?;
        let found = self.read(py, |segments| segments.higher(offset).map(|segment| segment.base_offset()))?;
        Ok(found.map(|base_offset| self.segment(base_offset)))
    }

    #[doc = stub_doc!(Segments.between)]
    fn between(
        &self,
        py: Python<'_>,
        start: &Bound<'_, PyAny>,
        end: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<PySegment>> {
        let (start, end) = (arguments::offset("start", start)?, arguments::offset("end", end)?);
        if end < start {
            let wrong = Error::config("end", format!("{start} or more"), end.to_string());
            return Err(error::to_python(py, wrong));
        }
        let found: Vec<i64> = self.read(py, |segments| {
            segments.between(start, end).map(|segment| segment.base_offset()).collect()
        })?;
        Ok(found.into_iter().map(|base_offset| self.segment(base_offset)).collect())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.read(py, Segments::len)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if key.is_instance_of::<PySlice>() {
            return self.list(py)?.as_any().get_item(key);
        }
        let wrong_key = || wrong_type("key", "a segment's place, an int, or a slice", key);
        if !key.hasattr("__index__")? {
            return Err(wrong_key());
        }
        let length = self.__len__(py)?;
        let outside = || PyIndexError::new_err(format!("segment {} of {length}", shown(key)));
        let index: isize = key.extract().map_err(|wrong: PyErr| match wrong {
            wrong if wrong.is_instance_of::<PyOverflowError>(py) => outside(),
            wrong if wrong.is_instance_of::<PyTypeError>(py) => wrong_key(),
            wrong => wrong,
        })?;
        let place = if index < 0 { length.checked_add_signed(index) } else { Some(index.unsigned_abs()) };
        let found = self.read(py, |segments| {
            place.and_then(|place| segments.get(place)).map(|segment| segment.base_offset())
        })?;
        self.segment(found.ok_or_else(outside)?).into_bound_py_any(py)
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.place(py, key)?.is_some())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.list(py)?.try_iter()
    }

    fn __reversed__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let list = self.list(py)?;
        list.reverse()?;
        list.try_iter()
    }

    #[doc = stub_doc!(Segments.index)]
    fn index(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.place(py, value)?.ok_or_else(|| PyValueError::new_err("not a segment of this log"))
    }

    #[doc = stub_doc!(Segments.count)]
    fn count(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        Ok(usize::from(self.place(py, value)?.is_some()))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<Segments {:?}>", self.base_offsets(py)?))
    }
}

#[doc = stub_doc!(Segment)]
#[pyclass(frozen, eq, hash, module = "cordwood", name = "Segment")]
pub(super) struct PySegment {
    handle: Arc<LogHandle>,
    base_offset: i64,
}

impl PartialEq for PySegment {
    fn eq(&self, other: &Self) -> bool {
        (self.handle.path(), self.base_offset) == (other.handle.path(), other.base_offset)
    }
}

impl std::hash::Hash for PySegment {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.handle.path(), self.base_offset).hash(state);
    }
}

impl PySegment {
    /// Reads from the segment in the log of this process, detached from the interpreter.
    fn read<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&Segment) -> Result<T> + Send) -> PyResult<T> {
        enter(py, || {
            let log = self.handle.log()?;
            let floor = log.segments().floor(self.base_offset);
            // a forked child opens the log again, perhaps without the segment
            let found = floor.filter(|segment| segment.base_offset() == self.base_offset);
            read(found.ok_or_else(|| Error::LogChanged {
                file: log.path().to_owned(),
                expected: format!("a segment with base offset {}", self.base_offset),
                found: "none".to_owned(),
            })?)
        })
    }
}

#[pymethods]
impl PySegment {
    #[doc = stub_doc!(Segment.base_offset)]
    #[getter]
    fn base_offset(&self) -> i64 {
        self.base_offset
    }

    #[doc = stub_doc!(Segment.end_offset)]
    #[getter]
    fn end_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.read(py, Segment::end_offset)
    }

    #[doc = stub_doc!(Segment.size)]
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, Segment::size)
    }

    #[doc = stub_doc!(Segment.largest_timestamp)]
    #[getter]
    fn largest_timestamp(&self, py: Python<'_>) -> PyResult<i64> {
        self.read(py, Segment::largest_timestamp)
    }

    #[doc = stub_doc!(Segment.largest_record_timestamp)]
    #[getter]
    fn largest_record_timestamp(&self, py: Python<'_>) -> PyResult<i64> {
        self.read(py, Segment::largest_record_timestamp)
    }

    #[doc = stub_doc!(Segment.path)]
    #[getter]
    fn path(&self, py: Python<'_>) -> PyResult<OsString> {
        self.read(py, |segment| Ok(segment.path().into()))
    }

    #[doc = stub_doc!(Segment.offset_index)]
    #[getter]
    fn offset_index(&self, py: Python<'_>) -> PyResult<Option<PyOffsetIndex>> {
        Ok(self.read(py, Segment::offset_index)?.map(PyOffsetIndex::of))
    }

    #[doc = stub_doc!(Segment.time_index)]
    #[getter]
    fn time_index(&self, py: Python<'_>) -> PyResult<Option<PyTimeIndex>> {
        Ok(self.read(py, Segment::time_index)?.map(PyTimeIndex::of))
    }

    #[doc = stub_doc!(Segment.transaction_index)]
    #[getter]
    fn transaction_index(&self, py: Python<'_>) -> PyResult<Option<PyTransactionIndex>> {
        Ok(self.read(py, Segment::transaction_index)?.map(PyTransactionIndex::of))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        recipe(py, "segment", (self.handle.recipe(py)?, self.base_offset))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<Segment {}>", self.path(py)?.to_string_lossy()))
    }
}

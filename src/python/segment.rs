//! `Segments` and `Segment`.

use std::ffi::OsString;
use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PySlice};

use super::arguments::{self, shown, wrong_type};
use super::enter::enter;
use super::handle::LogHandle;
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

    fn ask<T: Send>(&self, py: Python<'_>, question: impl FnOnce(&Segments) -> T + Send) -> PyResult<T> {
        enter(py, || Ok(question(self.handle.log()?.segments())))
    }

    fn wrap(&self, base_offset: i64) -> PySegment {
        PySegment { handle: Arc::clone(&self.handle), base_offset }
    }

    fn bases(&self, py: Python<'_>) -> PyResult<Vec<i64>> {
        self.ask(py, |segments| segments.iter().map(|segment| segment.base_offset()).collect())
    }
}

#[pymethods]
impl PySegments {
    #[doc = stub_doc!(Segments.floor)]
    fn floor(&self, py: Python<'_>, offset: &Bound<'_, PyAny>) -> PyResult<Option<PySegment>> {
        let offset = arguments::offset("offset", offset)?;
        let base = self.ask(py, |segments| segments.floor(offset).map(|segment| segment.base_offset()))?;
        Ok(base.map(|base| self.wrap(base)))
    }

    #[doc = stub_doc!(Segments.higher)]
    fn higher(&self, py: Python<'_>, offset: &Bound<'_, PyAny>) -> PyResult<Option<PySegment>> {
        let offset = arguments::offset("offset", offset)?;
        let base = self.ask(py, |segments| segments.higher(offset).map(|segment| segment.base_offset()))?;
        Ok(base.map(|base| self.wrap(base)))
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
            return Err(super::error::to_python(py, wrong));
        }
        let bases: Vec<i64> = self.ask(py, |segments| {
            segments.between(start, end).map(|segment| segment.base_offset()).collect()
        })?;
        Ok(bases.into_iter().map(|base| self.wrap(base)).collect())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.ask(py, Segments::len)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = key.cast::<PySlice>() {
            let all = self.bases(py)?.into_iter().map(|base| self.wrap(base));
            let all =
                PyList::new(py, all.map(|segment| Py::new(py, segment)).collect::<PyResult<Vec<_>>>()?)?;
            return all.as_any().get_item(slice);
        }
        let no_place = || wrong_type("key", "a segment's place, an int, or a slice", key);
        if !key.hasattr("__index__")? {
            return Err(no_place());
        }
        let length = self.__len__(py)?;
        let outside = || PyIndexError::new_err(format!("segment {} of {length}", shown(key)));
        let index: isize = key.extract().map_err(|wrong: PyErr| match wrong {
            wrong if wrong.is_instance_of::<PyOverflowError>(py) => outside(),
            wrong if wrong.is_instance_of::<PyTypeError>(py) => no_place(),
            wrong => wrong,
        })?;
        let place = if index < 0 { index.checked_add_unsigned(length) } else { Some(index) };
        let place = place.and_then(|place| usize::try_from(place).ok()).unwrap_or(length);
        let base = self.ask(py, |segments| segments.get(place).map(|segment| segment.base_offset()))?;
        let base = base.ok_or_else(outside)?;
        Ok(Bound::new(py, self.wrap(base))?.into_any())
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.place(py, key)?.is_some())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let segments = self.bases(py)?.into_iter().map(|base| Py::new(py, self.wrap(base)));
        PyList::new(py, segments.collect::<PyResult<Vec<_>>>()?)?.try_iter()
    }

    fn __reversed__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let segments = self.bases(py)?.into_iter().rev().map(|base| Py::new(py, self.wrap(base)));
        PyList::new(py, segments.collect::<PyResult<Vec<_>>>()?)?.try_iter()
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
        Ok(format!("<Segments {:?}>", self.bases(py)?))
    }
}

impl PySegments {
    fn place(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let Ok(segment) = value.cast::<PySegment>() else { return Ok(None) };
        if segment.get().handle.path() != self.handle.path() {
            return Ok(None);
        }
        let base = segment.get().base_offset;
        Ok(self.bases(py)?.iter().position(|other| *other == base))
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
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        question: impl FnOnce(&Segment) -> Result<T> + Send,
    ) -> PyResult<T> {
        enter(py, || {
            let log = self.handle.log()?;
            // a child that opened the log again may find that the segment has gone
            match log
                .segments()
                .floor(self.base_offset)
                .filter(|found| found.base_offset() == self.base_offset)
            {
                Some(segment) => question(segment),
                None => Err(Error::LogChanged {
                    file: log.path().to_owned(),
                    expected: format!("a segment with base offset {}", self.base_offset),
                    found: "none".to_owned(),
                }),
            }
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
        self.ask(py, Segment::end_offset)
    }

    #[doc = stub_doc!(Segment.size)]
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        self.ask(py, Segment::size)
    }

    #[doc = stub_doc!(Segment.largest_timestamp)]
    #[getter]
    fn largest_timestamp(&self, py: Python<'_>) -> PyResult<i64> {
        self.ask(py, Segment::largest_timestamp)
    }

    #[doc = stub_doc!(Segment.largest_record_timestamp)]
    #[getter]
    fn largest_record_timestamp(&self, py: Python<'_>) -> PyResult<i64> {
        self.ask(py, Segment::largest_record_timestamp)
    }

    #[doc = stub_doc!(Segment.path)]
    #[getter]
    fn path(&self, py: Python<'_>) -> PyResult<OsString> {
        self.ask(py, |segment| Ok(segment.path().into()))
    }

    #[doc = stub_doc!(Segment.offset_index)]
    #[getter]
    fn offset_index(&self, py: Python<'_>) -> PyResult<Option<PyOffsetIndex>> {
        Ok(self.ask(py, Segment::offset_index)?.map(PyOffsetIndex::of))
    }

    #[doc = stub_doc!(Segment.time_index)]
    #[getter]
    fn time_index(&self, py: Python<'_>) -> PyResult<Option<PyTimeIndex>> {
        Ok(self.ask(py, Segment::time_index)?.map(PyTimeIndex::of))
    }

    #[doc = stub_doc!(Segment.transaction_index)]
    #[getter]
    fn transaction_index(&self, py: Python<'_>) -> PyResult<Option<PyTransactionIndex>> {
        Ok(self.ask(py, Segment::transaction_index)?.map(PyTransactionIndex::of))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<Segment {}>", self.path(py)?.to_string_lossy()))
    }
}

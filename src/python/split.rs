//! `Split` and `PlannedSegment`: what `plan()` gives, and what crosses to the process that reads it.

use std::ffi::OsString;

use pyo3::prelude::*;
use pyo3::types::{PySequence, PyTuple};

use super::arguments::{self, Defaulted, LEFT_OUT, wrong_type};
use super::results::PRODUCER_ID;
use crate::log::{AbortedRange, PlannedSegment, Split};

#[doc = stub_doc!(Split)]
#[pyclass(frozen, eq, hash, get_all, module = "cordwood", name = "Split")]
#[derive(PartialEq, Eq, Hash, Clone)]
pub(super) struct PySplit {
    #[doc = stub_doc!(Split.path)]
    path: OsString,
    #[doc = stub_doc!(Split.start_offset)]
    start_offset: i64,
    #[doc = stub_doc!(Split.end_offset)]
    end_offset: i64,
    #[doc = stub_doc!(Split.start_time)]
    start_time: Option<i64>,
    #[doc = stub_doc!(Split.end_time)]
    end_time: Option<i64>,
    #[doc = stub_doc!(Split.size)]
    size: u64,
    #[doc = stub_doc!(Split.aborted)]
    aborted: Option<Vec<AbortedRange>>,
    #[doc = stub_doc!(Split.segments)]
    segments: Vec<PyPlannedSegment>,
}

impl From<Split> for PySplit {
    fn from(split: Split) -> Self {
        let Split { path, start_offset, end_offset, start_time, end_time, size, aborted, segments } = split;
        let segments = segments.into_iter().map(Into::into).collect();
        Self { path: path.into(), start_offset, end_offset, start_time, end_time, size, aborted, segments }
    }
}

impl From<PySplit> for Split {
    fn from(split: PySplit) -> Self {
        let PySplit { path, start_offset, end_offset, start_time, end_time, size, aborted, segments } = split;
        let segments = segments.into_iter().map(Into::into).collect();
        Self { path: path.into(), start_offset, end_offset, start_time, end_time, size, aborted, segments }
    }
}

#[pymethods]
impl PySplit {
    #[new]
    #[pyo3(signature = (path, start_offset, end_offset, start_time=None, end_time=None, size=LEFT_OUT, aborted=None,
        segments=None),
        text_signature = "(path, start_offset, end_offset, start_time=None, end_time=None, size=0, aborted=None, \
            segments=None)")]
    #[expect(clippy::too_many_arguments, reason = "they are Python's")]
    fn new(
        path: &Bound<'_, PyAny>,
        start_offset: &Bound<'_, PyAny>,
        end_offset: &Bound<'_, PyAny>,
        start_time: Option<&Bound<'_, PyAny>>,
        end_time: Option<&Bound<'_, PyAny>>,
        size: Defaulted<'_, '_>,
        aborted: Option<&Bound<'_, PyAny>>,
        segments: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Ok(Self {
            path: arguments::path(path)?.into_os_string(),
            start_offset: arguments::offset("start_offset", start_offset)?,
            end_offset: arguments::offset("end_offset", end_offset)?,
            start_time: start_time.map(|given| arguments::time("start_time", given)).transpose()?,
            end_time: end_time.map(|given| arguments::time("end_time", given)).transpose()?,
            size: size.or(0, |given| arguments::whole("size", BYTES, given))?,
            aborted: aborted.map(aborted_ranges).transpose()?,
            segments: segments.map_or_else(|| Ok(Vec::new()), planned_segments)?,
        })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Self { path, start_offset, end_offset, start_time, end_time, size, aborted, segments } =
            self.clone();
        let arguments = (path, start_offset, end_offset, start_time, end_time, size, aborted, segments);
        (py.get_type::<Self>(), arguments).into_pyobject(py).map(Bound::into_any)
    }

    fn __repr__(&self) -> String {
        let Self { start_offset, end_offset, size, .. } = self;
        let path = self.path.to_string_lossy();
        format!("Split(path={path:?}, start_offset={start_offset}, end_offset={end_offset}, size={size})")
    }
}

#[doc = stub_doc!(PlannedSegment)]
#[pyclass(frozen, eq, hash, get_all, module = "cordwood", name = "PlannedSegment")]
#[derive(PartialEq, Eq, Hash, Clone, Copy)]
pub(super) struct PyPlannedSegment {
    #[doc = stub_doc!(PlannedSegment.base_offset)]
    base_offset: i64,
    #[doc = stub_doc!(PlannedSegment.size)]
    size: u64,
    #[doc = stub_doc!(PlannedSegment.first_batch_crc)]
    first_batch_crc: Option<u32>,
    #[doc = stub_doc!(PlannedSegment.is_last)]
    is_last: bool,
}

impl From<PlannedSegment> for PyPlannedSegment {
    fn from(segment: PlannedSegment) -> Self {
        let PlannedSegment { base_offset, size, first_batch_crc, is_last } = segment;
        Self { base_offset, size, first_batch_crc, is_last }
    }
}

impl From<PyPlannedSegment> for PlannedSegment {
    fn from(segment: PyPlannedSegment) -> Self {
        let PyPlannedSegment { base_offset, size, first_batch_crc, is_last } = segment;
        Self { base_offset, size, first_batch_crc, is_last }
    }
}

#[pymethods]
impl PyPlannedSegment {
    #[new]
    #[pyo3(signature = (base_offset, size, first_batch_crc=None, is_last=LEFT_OUT),
        text_signature = "(base_offset, size, first_batch_crc=None, is_last=False)")]
    fn new(
        base_offset: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        first_batch_crc: Option<&Bound<'_, PyAny>>,
        is_last: Defaulted<'_, '_>,
    ) -> PyResult<Self> {
        let crc = |given| arguments::whole("first_batch_crc", "a checksum, 0 to 4294967295", given);
        Ok(Self {
            base_offset: arguments::offset("base_offset", base_offset)?,
            size: arguments::whole("size", BYTES, size)?,
            first_batch_crc: first_batch_crc.map(crc).transpose()?,
            is_last: is_last.flag("is_last")?,
        })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let arguments = (self.base_offset, self.size, self.first_batch_crc, self.is_last);
        (py.get_type::<Self>(), arguments).into_pyobject(py).map(Bound::into_any)
    }

    fn __repr__(&self) -> String {
        let Self { base_offset, size, first_batch_crc, is_last } = self;
        let crc = first_batch_crc.map_or_else(|| "None".to_owned(), |crc| crc.to_string());
        let is_last = if *is_last { "True" } else { "False" };
        format!(
            "PlannedSegment(base_offset={base_offset}, size={size}, first_batch_crc={crc}, is_last={is_last})"
        )
    }
}

const BYTES: &str = "a size in bytes, 0 or more";

fn aborted_ranges(given: &Bound<'_, PyAny>) -> PyResult<Vec<AbortedRange>> {
    let mut ranges = Vec::new();
    for (argument, item) in items("aborted", "a list of (producer id, first offset, last offset)", given)? {
        let parts = item.cast::<PyTuple>().ok().filter(|parts| parts.len() == 3);
        let parts = parts.ok_or_else(|| wrong_type(&argument, "a tuple of three whole numbers", &item))?;
        ranges.push((
            arguments::whole(&argument, PRODUCER_ID, &parts.get_item(0)?)?,
            arguments::offset(&argument, &parts.get_item(1)?)?,
            arguments::offset(&argument, &parts.get_item(2)?)?,
        ));
    }
    Ok(ranges)
}

fn planned_segments(given: &Bound<'_, PyAny>) -> PyResult<Vec<PyPlannedSegment>> {
    let mut segments = Vec::new();
    for (argument, item) in items("segments", "a list of PlannedSegment", given)? {
        let segment = item.cast::<PyPlannedSegment>();
        segments.push(*segment.map_err(|_| wrong_type(&argument, "a PlannedSegment", &item))?.get());
    }
    Ok(segments)
}

/// The items of a list, each with its name for errors, as `aborted[0]`.
fn items<'py>(
    argument: &str,
    wanted: &str,
    given: &Bound<'py, PyAny>,
) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let list = given.cast::<PySequence>().map_err(|_| wrong_type(argument, wanted, given))?;
    list.try_iter()?.enumerate().map(|(place, item)| Ok((format!("{argument}[{place}]"), item?))).collect()
}

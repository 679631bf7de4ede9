//! `Split` and `PlannedSegment`: the results of `plan()`, which other processes read.

use std::ffi::OsString;

use pyo3::prelude::*;
use pyo3::types::{PySequence, PyTuple};

use super::arguments::{self, Defaulted, LEFT_OUT, flag, optional, wrong_type};
use super::results::PRODUCER_ID;
use super::value_class::{value_class, wrapped};
use crate::log::{AbortedRange, PlannedSegment, Split};

value_class! {
    "Split", PySplit(Split),
    repr {
        path: OsString = |split| split.path.clone().into(),
        start_offset: i64,
        end_offset: i64,
        size: u64,
    }
    more {
        start_time: Option<i64>,
        end_time: Option<i64>,
        aborted: Option<Vec<AbortedRange>>,
        segments: Vec<PyPlannedSegment> = |split| wrapped(&split.segments),
    }
    methods {
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
            Ok(Self(Split {
                path: arguments::path(path)?,
                start_offset: arguments::offset("start_offset", start_offset)?,
                end_offset: arguments::offset("end_offset", end_offset)?,
                start_time: optional("start_time", start_time, arguments::milliseconds)?,
                end_time: optional("end_time", end_time, arguments::milliseconds)?,
                size: size.or("size", 0, bytes)?,
                aborted: aborted.map(aborted_ranges).transpose()?,
                segments: segments.map_or_else(|| Ok(Vec::new()), planned_segments)?,
            }))
        }
    }
}

value_class! {
    "PlannedSegment", PyPlannedSegment(PlannedSegment),
    repr { base_offset: i64, size: u64, first_batch_crc: Option<u32>, is_last: bool }
    methods {
        #[new]
        #[pyo3(signature = (base_offset, size, first_batch_crc=None, is_last=LEFT_OUT),
            text_signature = "(base_offset, size, first_batch_crc=None, is_last=False)")]
        fn new(
            base_offset: &Bound<'_, PyAny>,
            size: &Bound<'_, PyAny>,
            first_batch_crc: Option<&Bound<'_, PyAny>>,
            is_last: Defaulted<'_, '_>,
        ) -> PyResult<Self> {
            let crc = |name, given: &_| arguments::whole(name, "a checksum, 0 to 4294967295", given);
            Ok(Self(PlannedSegment {
                base_offset: arguments::offset("base_offset", base_offset)?,
                size: bytes("size", size)?,
                first_batch_crc: optional("first_batch_crc", first_batch_crc, crc)?,
                is_last: is_last.or("is_last", false, flag)?,
            }))
        }
    }
}

fn bytes(argument: &str, given: &Bound<'_, PyAny>) -> PyResult<u64> {
    arguments::whole(argument, "a size in bytes, 0 or more", given)
}

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

fn planned_segments(given: &Bound<'_, PyAny>) -> PyResult<Vec<PlannedSegment>> {
    let mut segments = Vec::new();
    for (argument, item) in items("segments", "a list of PlannedSegment", given)? {
        let segment = item.cast::<PyPlannedSegment>();
        segments.push(segment.map_err(|_| wrong_type(&argument, "a PlannedSegment", &item))?.get().0);
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

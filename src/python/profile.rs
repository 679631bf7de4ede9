//! The profile of a log, for `cordwood report`.

use std::ffi::OsString;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::enter::enter;
use super::log::PyLog;
use crate::inspect::profile::{Profile, Profiler, SegmentProfile};

/// `{"a": profile.a, …}`; with `=`, another value.
macro_rules! dict {
    ($py:expr, $of:expr, { $($field:ident $(= $value:expr)?),+ $(,)? }) => {{
        let dict = PyDict::new($py);
        $(dict.set_item(stringify!($field), dict!(@value $of, $field $(, $value)?))?;)+
        dict
    }};
    (@value $of:expr, $field:ident) => { $of.$field };
    (@value $of:expr, $field:ident, $value:expr) => { $value };
}

#[doc = stub_doc!(_Profiler)]
#[pyclass(frozen, module = "cordwood._core", name = "_Profiler")]
pub(super) struct PyProfiler(Mutex<Option<Profiler>>);

#[pymethods]
impl PyProfiler {
    #[new]
    fn new(py: Python<'_>, log: &PyLog) -> PyResult<Self> {
        log.read(py, |log| Profiler::new(&log)).map(|profiler| Self(Mutex::new(Some(profiler))))
    }

    #[doc = stub_doc!(_Profiler.advance)]
    fn advance(&self, py: Python<'_>, max_bytes: u64) -> PyResult<Option<u64>> {
        enter(py, || {
            let mut profiler = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            profiler.as_mut().map_or(Ok(None), |profiler| profiler.advance(max_bytes))
        })
    }

    #[doc = stub_doc!(_Profiler.finish)]
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let profile = enter(py, || {
            let profiler = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            profiler.map_or(Ok(Profile::default()), Profiler::finish)
        })?;
        profile_dict(py, &profile)
    }
}

fn profile_dict<'py>(py: Python<'py>, profile: &Profile) -> PyResult<Bound<'py, PyDict>> {
    let keys = profile.distinct_keys;
    let time_bins = profile.time_bins.bins();
    let offset_bins = &profile.offset_bins;
    let transactions = &profile.transactions;
    let gaps = profile.gaps.largest();
    let segments = profile.segments.iter().map(|segment| segment_dict(py, segment));
    let codecs = profile.codecs.iter().map(|codec| {
        Ok(dict!(py, codec, { codec = codec.codec.name(), batches, stored_bytes, uncompressed_bytes }))
    });
    let aborted = transactions
        .aborted_transactions
        .iter()
        .map(|aborted| Ok(dict!(py, aborted, { producer_id, first_offset, last_offset, records })));
    let open = transactions.open_transactions.iter().map(|open| {
        Ok(dict!(py, open, { producer_id, producer_epoch, first_offset, last_timestamp, records }))
    });
    let damaged = profile.damaged_ranges.iter().map(|damaged| {
        Ok(dict!(py, damaged, {
            file = OsString::from(&damaged.file), start_position, end_position, start_offset, end_offset,
            reason = &damaged.reason,
        }))
    });
    Ok(dict!(py, profile, {
        log_start_offset, log_end_offset, batches, bytes, records, tombstones, null_keys, key_bytes, value_bytes,
        time_range, late_records, max_lateness,
        distinct_keys = (keys.keys, keys.lower, keys.upper),
        segments = segments.collect::<PyResult<Vec<_>>>()?,
        time_bin_width = profile.time_bins.width(),
        time_bins = time_bins.iter().map(|bin| (bin.start, bin.records, bin.bytes)).collect::<Vec<_>>(),
        offset_bin_width = offset_bins.width,
        offset_bins = offset_bins.bins.iter()
            .map(|bin| (bin.records, bin.bytes, bin.time_range, bin.max_lateness)).collect::<Vec<_>>(),
        batch_sizes = profile.batch_sizes.counts(),
        batch_records = profile.batch_records.counts(),
        record_sizes = profile.record_sizes.counts(),
        codecs = codecs.collect::<PyResult<Vec<_>>>()?,
        gap_count = profile.gaps.count,
        gap_offsets = profile.gaps.offsets,
        gaps = gaps.iter().map(|gap| (gap.start_offset, gap.end_offset)).collect::<Vec<_>>(),
        committed = transactions.committed,
        aborted = transactions.aborted,
        committed_records = transactions.committed_records,
        aborted_records = transactions.aborted_records,
        aborted_transactions = aborted.collect::<PyResult<Vec<_>>>()?,
        open_transactions = open.collect::<PyResult<Vec<_>>>()?,
        damaged_ranges = damaged.collect::<PyResult<Vec<_>>>()?,
    }))
}

fn segment_dict<'py>(py: Python<'py>, segment: &SegmentProfile) -> PyResult<Bound<'py, PyDict>> {
    Ok(dict!(py, segment, {
        base_offset, end_offset, batches, records, bytes, time_range, offset_entries, time_entries,
    }))
}

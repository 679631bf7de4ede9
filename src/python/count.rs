//! Counts of records, for `cordwood count`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PySequence};

use super::arguments;
use super::cat::{Partition, Partitions};
use super::enter::enter;
use super::error;
use super::keywords::Keywords;
use super::results::PyDamagedRange;
use super::scan::Logs;
use super::zone::PyZone;
use crate::arrow::{Column, Reader, ReaderOptions};
use crate::error::Error;
use crate::inspect::count::{CountOptions, Counter, GroupCount, Period};
use crate::log::{OnDamage, Progress, ScanOptions};

/// The bytes of the log that are read in one step.
const STEP_BYTES: u64 = 16 << 20;

const GROUPS: &str = "a list of \"partition\", \"topic\", \"minute\", \"hour\", \"day\" or \"key\", with one period of time at most";

/// The number of records that a reading with these options returns. The headers of batches are enough where
/// nothing selects single records.
pub(super) fn records_of(
    py: Python<'_>,
    logs: Logs,
    options: &ReaderOptions,
    progress: Progress,
) -> PyResult<u64> {
    let ReaderOptions { scan, limit, last, filter, latest, .. } = options;
    // a limit ends the reading, and so hides damage after it
    if *latest || last.is_some() || limit.is_some() || scan.include_control || scan.batches_only {
        let on_damage = if scan.on_damage == OnDamage::Raise { OnDamage::Raise } else { OnDamage::Skip };
        let options = ReaderOptions {
            scan: ScanOptions { on_damage, ..*scan },
            columns: vec![Column::Offset],
            ..options.clone()
        };
        let mut reader = Reader::new(logs, options, progress);
        let mut count = 0;
        while let Some(batch) = enter(py, || reader.next_batch())? {
            count += batch.num_rows() as u64;
        }
        return Ok(count);
    }
    let options = CountOptions { scan: *scan, filter: filter.clone(), ..CountOptions::default() };
    let mut counter = Counter::with_progress(logs, options, progress);
    while enter(py, || counter.advance(STEP_BYTES))?.is_some() {}
    Ok(counter.finish().iter().map(|group| group.records).sum())
}

#[doc = stub_doc!(_Counter)]
#[pyclass(frozen, module = "cordwood._core", name = "_Counter")]
pub(super) struct PyCounter(Mutex<Option<Counter>>);

impl PyCounter {
    fn lock(&self) -> MutexGuard<'_, Option<Counter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyCounter {
    #[new]
    #[pyo3(signature = (logs, by, *, zone=None, **keywords))]
    fn new(
        logs: &Bound<'_, PySequence>,
        by: &Bound<'_, PyAny>,
        zone: Option<&Bound<'_, PyZone>>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let keywords = Keywords::new("_Counter", keywords);
        let mut options = CountOptions {
            scan: keywords.records()?,
            filter: keywords.contents()?.filter(),
            utc_offset: zone.map(|zone| zone.get().utc_offset()),
            ..CountOptions::default()
        };
        let max_batch_bytes = keywords.max_batch_bytes()?;
        keywords.finish()?;
        for name in arguments::names("by", GROUPS, by)? {
            let period = match name.as_str() {
                "partition" => {
                    options.by_partition = true;
                    None
                }
                "topic" => {
                    options.by_topic = true;
                    None
                }
                "key" => {
                    options.by_key = true;
                    None
                }
                "minute" => Some(Period::Minute),
                "hour" => Some(Period::Hour),
                "day" => Some(Period::Day),
                _ => return Err(arguments::not_allowed("by", GROUPS, by)),
            };
            if period.is_some() && options.by_time.is_some() {
                return Err(arguments::not_allowed("by", GROUPS, by));
            }
            options.by_time = options.by_time.or(period);
        }
        let partitions = Partition::all_of(logs, max_batch_bytes)?;
        options.goes_on = partitions.len() > 1;
        Ok(Self(Mutex::new(Some(Counter::new(Partitions::new(partitions), options)))))
    }

    #[doc = stub_doc!(_Counter.advance)]
    fn advance(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        enter(py, || self.lock().as_mut().map_or(Ok(None), |counter| counter.advance(STEP_BYTES)))
    }

    #[doc = stub_doc!(_Counter.damaged_ranges)]
    #[getter]
    fn damaged_ranges(&self) -> Vec<PyDamagedRange> {
        let ranges = self.lock().as_ref().map(|counter| counter.progress().damaged_ranges());
        ranges.unwrap_or_default().into_iter().map(Into::into).collect()
    }

    #[doc = stub_doc!(_Counter.take_failures)]
    fn take_failures(&self, py: Python<'_>) -> Vec<(usize, Py<PyBaseException>)> {
        let failures = self.lock().as_mut().map(Counter::take_failures).unwrap_or_default();
        let failures = failures.into_iter();
        failures.map(|(place, wrong)| (place, error::to_python(py, wrong).into_value(py))).collect()
    }

    #[doc = stub_doc!(_Counter.finish)]
    #[expect(clippy::type_complexity, reason = "a row of a private function")]
    fn finish<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Vec<(Option<String>, Option<usize>, Option<(i64, i32)>, Option<Bound<'py, PyBytes>>, u64)>>
    {
        let counter = self.lock().take().ok_or_else(|| {
            error::to_python(py, Error::config("counter", "one that is not finished", "a finished one"))
        })?;
        let row = |GroupCount { group, key, records }: GroupCount| {
            let time = group.time.map(|time| (time.local, time.utc_offset));
            let key = key.flatten().map(|key| PyBytes::new(py, &key));
            (group.topic, group.partition, time, key, records)
        };
        Ok(counter.finish().into_iter().map(row).collect())
    }
}

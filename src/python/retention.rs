//! `RetentionPlan`, and its computation without a writer.

use pyo3::prelude::*;

use super::arguments::{optional_time, wrong_type};
use super::config::TopicConfig;
use super::log::PyLog;
use super::record::now as system_time;
use super::value_class::value_class;
use crate::log::retention::{self, RetentionPlan};

value_class! {
    "RetentionPlan", PyRetentionPlan(RetentionPlan),
    repr { log_start_offset: i64, segments: Vec<i64>, bytes: u64, rolls: bool }
}

#[doc = stub_doc!(plan_retention)]
#[pyfunction]
#[pyo3(signature = (log, config=None, now=None, *, tz=None))]
pub(super) fn plan_retention(
    py: Python<'_>,
    log: &Bound<'_, PyAny>,
    config: Option<&Bound<'_, PyAny>>,
    now: Option<&Bound<'_, PyAny>>,
    tz: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyRetentionPlan> {
    let log = log.cast::<PyLog>().map_err(|_| wrong_type("log", "a Log", log))?;
    let config = TopicConfig::of(py, config, log.get().handle().path())?.for_retention()?;
    let now = optional_time("now", now, tz)?.unwrap_or_else(system_time);
    log.get().read(py, |log| retention::plan(&log, &config, now)).map(Into::into)
}

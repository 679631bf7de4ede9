//! What retention would delete, and what it deleted.

use pyo3::prelude::*;

use super::arguments::Time;
use super::config::config_of;
use super::log::PyLog;
use super::record::now as system_time;
use crate::log::retention::{self, RetentionPlan};

/// The segments that go.
#[pyclass(frozen, eq, hash, get_all, module = "cordwood", name = "RetentionPlan")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PyRetentionPlan {
    log_start_offset: i64,
    segments: Vec<i64>,
    bytes: u64,
    rolls: bool,
}

impl From<RetentionPlan> for PyRetentionPlan {
    fn from(plan: RetentionPlan) -> Self {
        let RetentionPlan { log_start_offset, segments, bytes, rolls } = plan;
        Self { log_start_offset, segments, bytes, rolls }
    }
}

#[pymethods]
impl PyRetentionPlan {
    fn __repr__(&self) -> String {
        let Self { log_start_offset, segments, bytes, rolls } = self;
        let rolls = if *rolls { "True" } else { "False" };
        format!(
            "RetentionPlan(log_start_offset={log_start_offset}, segments={segments:?}, bytes={bytes}, rolls={rolls})"
        )
    }
}

/// What `LogWriter.apply_retention` would delete; changes nothing.
#[pyfunction]
#[pyo3(signature = (log, config=None, now=None))]
pub(super) fn plan_retention(
    py: Python<'_>,
    log: &PyLog,
    config: Option<&Bound<'_, PyAny>>,
    now: Option<Time>,
) -> PyResult<PyRetentionPlan> {
    let config = config_of(config)?;
    let now = now.map_or_else(system_time, |Time(ms)| ms);
    log.ask(py, |log| retention::plan(&log, &config, now)).map(Into::into)
}

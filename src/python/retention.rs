//! What retention would delete, and what it deleted.

use pyo3::prelude::*;

use super::arguments::{self, wrong_type};
use super::config::config_of;
use super::log::PyLog;
use super::record::now as system_time;
use crate::log::retention::{self, RetentionPlan};

#[doc = stub_doc!(RetentionPlan)]
#[pyclass(frozen, eq, hash, get_all, module = "cordwood", name = "RetentionPlan")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PyRetentionPlan {
    #[doc = stub_doc!(RetentionPlan.log_start_offset)]
    log_start_offset: i64,
    #[doc = stub_doc!(RetentionPlan.segments)]
    segments: Vec<i64>,
    #[doc = stub_doc!(RetentionPlan.bytes)]
    bytes: u64,
    #[doc = stub_doc!(RetentionPlan.rolls)]
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

#[doc = stub_doc!(plan_retention)]
#[pyfunction]
#[pyo3(signature = (log, config=None, now=None))]
pub(super) fn plan_retention(
    py: Python<'_>,
    log: &Bound<'_, PyAny>,
    config: Option<&Bound<'_, PyAny>>,
    now: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyRetentionPlan> {
    let log = log.cast::<PyLog>().map_err(|_| wrong_type("log", "a Log", log))?;
    let config = config_of(config)?;
    let now = now.map_or_else(|| Ok(system_time()), |given| arguments::time("now", given))?;
    log.get().ask(py, |log| retention::plan(&log, &config, now)).map(Into::into)
}

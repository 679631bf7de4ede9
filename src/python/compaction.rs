//! `Compaction`, and its computation without a writer.

use pyo3::prelude::*;

use super::arguments::{Defaulted, LEFT_OUT, optional, optional_time, positive, wrong_type};
use super::config::TopicConfig;
use super::log::PyLog;
use super::value_class::{value_class, wrapped};
use crate::cleaner::{CompactedSegment, Compaction, CompactionOptions, plan_compaction as plan};

value_class! {
    "Compaction", PyCompaction(Compaction),
    repr {
        state: &'static str = |compaction| compaction.state.code(),
        first_dirty_offset: i64,
        first_uncleanable_offset: i64,
        bound: &'static str = |compaction| compaction.bound.code(),
        clean_bytes: u64,
        cleanable_bytes: u64,
        end_offset: i64,
        keys: u64,
    }
    more {
        dirty_ratio: f64 = Compaction::dirty_ratio,
        is_due: bool = Compaction::is_due,
        is_complete: bool = Compaction::is_complete,
        segments: Vec<PyCompactedSegment> = |compaction| wrapped(&compaction.segments),
    }
}

value_class! {
    "CompactedSegment", PyCompactedSegment(CompactedSegment),
    repr {
        base_offset: i64,
        new_base_offset: i64,
        bytes_before: u64,
        bytes_after: u64,
        records_before: u64,
        records_after: u64,
    }
}

/// The options of a call.
pub(super) fn options_of<'py>(
    now: Option<&Bound<'py, PyAny>>,
    tz: Option<&Bound<'py, PyAny>>,
    dedupe_buffer_bytes: Option<&Bound<'py, PyAny>>,
    threads: Defaulted<'_, 'py>,
) -> PyResult<CompactionOptions> {
    let default = CompactionOptions::default();
    let bytes = optional("dedupe_buffer_bytes", dedupe_buffer_bytes, positive)?;
    Ok(CompactionOptions {
        now: optional_time("now", now, tz)?,
        dedupe_buffer_bytes: bytes.unwrap_or(default.dedupe_buffer_bytes),
        threads: threads.or("threads", default.threads, positive)?,
    })
}

#[doc = stub_doc!(plan_compaction)]
#[pyfunction]
#[pyo3(
    signature = (log, config=None, now=None, dedupe_buffer_bytes=None, threads=LEFT_OUT, *, tz=None),
    text_signature = "(log, config=None, now=None, dedupe_buffer_bytes=None, threads=1, *, tz=None)"
)]
#[expect(clippy::too_many_arguments, reason = "they are Python's arguments")]
pub(super) fn plan_compaction(
    py: Python<'_>,
    log: &Bound<'_, PyAny>,
    config: Option<&Bound<'_, PyAny>>,
    now: Option<&Bound<'_, PyAny>>,
    dedupe_buffer_bytes: Option<&Bound<'_, PyAny>>,
    threads: Defaulted<'_, '_>,
    tz: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyCompaction> {
    let log = log.cast::<PyLog>().map_err(|_| wrong_type("log", "a Log", log))?;
    let config = TopicConfig::of(py, config, log.get().handle().path())?.config;
    let options = options_of(now, tz, dedupe_buffer_bytes, threads)?;
    log.get().read(py, |log| plan(&log, &config, &options)).map(Into::into)
}

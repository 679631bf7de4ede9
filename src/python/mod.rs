//! The extension module `cordwood._core`: frozen classes whose methods convert, [`enter`](enter::enter), convert.

#![allow(
    clippy::doc_markdown,
    clippy::doc_link_with_quotes,
    reason = "the docstrings are Python's: *word* is an argument there, and [\"word\"] a list"
)]

// the docstrings of `_core.pyi`, for the modules below: `stub_doc!(Log.scan)`
include!(concat!(env!("OUT_DIR"), "/stub_doc.rs"));

mod arguments;
mod config;
mod dir;
mod enter;
mod error;
mod exchange;
mod given;
mod handle;
mod import;
mod index;
mod index_handle;
mod log;
mod lookups;
mod record;
mod results;
mod retention;
mod scan;
mod segment;
mod targets;
mod writer;

use pyo3::prelude::*;

#[doc = stub_doc!(module)]
#[pymodule]
#[pyo3(name = "_core", gil_used = true)]
mod core_module {
    #[pymodule_export]
    use super::config::{log_config_of, log_config_properties, log_config_settings};
    #[pymodule_export]
    use super::dir::PyLogDir;
    #[pymodule_export]
    use super::index::{PyOffsetIndex, PyTimeIndex, PyTransactionIndex};
    #[pymodule_export]
    use super::log::PyLog;
    #[pymodule_export]
    use super::record::PyRecord;
    #[pymodule_export]
    use super::results::{
        PyAbortedTransaction, PyGap, PyLocation, PyOffsetGap, PyOffsetPosition, PyScanStats, PySplit,
        PyTimestampOffset,
    };
    #[pymodule_export]
    use super::retention::{PyRetentionPlan, plan_retention};
    #[pymodule_export]
    use super::scan::{PyRecords, PyScan};
    #[pymodule_export]
    use super::segment::{PySegment, PySegments};
    #[pymodule_export]
    use super::writer::{PyAppended, PyLogWriter};
}

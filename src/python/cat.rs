//! The scan of several logs with filters, for `cordwood cat`.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PySequence};
use regex::bytes::Regex;

use super::arguments;
use super::enter::{SIGNALS, WARNINGS};
use super::handle::LogHandle;
use super::keywords::Keywords;
use super::log::PyLog;
use super::scan::{PyScan, Source};
use crate::error::Result;
use crate::log::{Column, Log, LogOptions, RecordFilter};

/// A log, or the directory of one that is opened when it is read.
#[derive(Clone)]
pub(super) enum Partition {
    Log(Arc<LogHandle>),
    Path(PathBuf),
}

impl Partition {
    /// A `Log`, or a path.
    fn of(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        match given.cast::<PyLog>() {
            Ok(log) => Ok(Self::Log(log.get().handle())),
            Err(_) => arguments::path(given).map(Self::Path),
        }
    }

    /// Each item of a sequence.
    pub(super) fn all_of(given: &Bound<'_, PySequence>) -> PyResult<Vec<Self>> {
        given.try_iter()?.map(|item| Self::of(&item?)).collect()
    }

    /// The log of this process.
    fn open(&self) -> Result<Log> {
        match self {
            Self::Log(handle) => handle.log(),
            Self::Path(path) => {
                let options =
                    LogOptions { interrupt: SIGNALS, on_warning: WARNINGS, ..LogOptions::default() };
                Log::open(path, options)
            }
        }
    }
}

/// Opens partitions one after another. After a log that it has opened itself was read, reports its warnings.
pub(super) struct Partitions {
    rest: std::vec::IntoIter<Partition>,
    last: Option<Log>,
}

impl Partitions {
    pub(super) fn new(partitions: Vec<Partition>) -> Self {
        Self { rest: partitions.into_iter(), last: None }
    }
}

impl Iterator for Partitions {
    type Item = Result<Log>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(log) = self.last.take() {
            log.warnings().iter().for_each(|warning| (WARNINGS.0)(warning));
        }
        let partition = self.rest.next()?;
        let opened = partition.open();
        if let (Partition::Path(_), Ok(log)) = (&partition, &opened) {
            self.last = Some(log.clone());
        }
        Some(opened)
    }
}

/// What is wanted of keys and values; `None`: all.
pub(super) struct Contents {
    key: Option<Vec<u8>>,
    key_prefix: Option<Vec<u8>>,
    value: Option<Regex>,
}

impl Contents {
    /// From the arguments with these names.
    pub(super) fn new(
        key: Option<&Bound<'_, PyBytes>>,
        key_prefix: Option<&Bound<'_, PyBytes>>,
        value_pattern: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let owned = |bytes: &Bound<'_, PyBytes>| bytes.as_bytes().to_vec();
        Ok(Self {
            key: key.map(owned),
            key_prefix: key_prefix.map(owned),
            value: arguments::optional("value_pattern", value_pattern, pattern)?,
        })
    }

    /// `None` if all records are wanted.
    pub(super) fn filter(self) -> Option<RecordFilter> {
        let Self { key, key_prefix, value } = self;
        (key.is_some() || key_prefix.is_some() || value.is_some()).then(|| {
            RecordFilter::new(move |found_key, found_value| {
                key.as_ref().is_none_or(|key| found_key == Some(key))
                    && key_prefix
                        .as_ref()
                        .is_none_or(|prefix| found_key.is_some_and(|found| found.starts_with(prefix)))
                    && value
                        .as_ref()
                        .is_none_or(|value| found_value.is_some_and(|found| value.is_match(found)))
            })
        })
    }
}

#[doc = stub_doc!(_scan_logs)]
#[pyfunction(name = "_scan_logs")]
#[pyo3(signature = (logs, *, key=None, key_prefix=None, value_pattern=None, last=None, **keywords))]
#[expect(clippy::too_many_arguments, reason = "they are Python's arguments")]
pub(super) fn scan_logs(
    py: Python<'_>,
    logs: &Bound<'_, PySequence>,
    key: Option<&Bound<'_, PyBytes>>,
    key_prefix: Option<&Bound<'_, PyBytes>>,
    value_pattern: Option<&Bound<'_, PyAny>>,
    last: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyScan> {
    let contents = Contents::new(key, key_prefix, value_pattern)?;
    let number = |name, given: &Bound<'_, PyAny>| {
        arguments::whole::<usize>(name, "a number of records, 0 or more", given)
    };
    let last = arguments::optional("last", last, number)?;
    let keywords = Keywords::new("_scan_logs", keywords);
    let mut options = keywords.columns(&Column::DEFAULT)?;
    keywords.finish()?;
    (options.last, options.filter) = (last, contents.filter());
    for given in logs.try_iter()? {
        // others are checked when they are reached
        if let Ok(log) = given?.cast::<PyLog>() {
            log.get().read(py, |log| log.check(&options.scan.ranges))?;
        }
    }
    Ok(PyScan::new(Source::Partitions(Partition::all_of(logs)?), options))
}

/// A regular expression over bytes. A class such as `\w` matches characters of UTF-8; `(?-u)` turns that off.
fn pattern(argument: &'static str, given: &Bound<'_, PyAny>) -> PyResult<Regex> {
    let wanted = "a regular expression, as of the Rust crate regex";
    let text = arguments::text(argument, wanted, given)?;
    Regex::new(&text).map_err(|wrong| {
        let reason = wrong.to_string();
        // the last line has the reason, and those before it a drawing of the place
        let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        wrong_pattern(argument, wanted, given, &reason)
    })
}

fn wrong_pattern(argument: &str, wanted: &str, given: &Bound<'_, PyAny>, reason: &str) -> PyErr {
    let found = format!("{}: {reason}", arguments::shown(given));
    super::error::to_python(given.py(), crate::error::Error::config(argument, wanted, found))
}

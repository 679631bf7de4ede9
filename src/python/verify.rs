//! `verify` and its results.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PySequence, PyString};

use super::arguments::{self, Defaulted, IO, LEFT_OUT, flag, one_of, optional, positive, wrong_type};
use super::enter::{SIGNALS, enter};
use super::value_class::{value_class, wrapped};
use crate::error::Error;
use crate::inspect::verify::{
    Finding, Unprotected, Verification, VerifyOptions, verify as verify_paths, writer_files,
};
use crate::record::MAX_BATCH_BYTES;
use crate::types::Io;

value_class! {
    "Verification", PyVerification(Verification),
    attributes {
        findings: Vec<PyFinding> = |found| wrapped(&found.findings),
        is_intact: bool = Verification::is_intact,
        partitions: u64,
        segments_checked: u64,
        segments_skipped: u64,
        bytes_checked: u64,
        batches_checked: u64,
        unprotected: PyUnprotected = |found| found.unprotected.into(),
        deep: bool = |found| found.is_deep,
    }
    methods {
        fn __repr__(&self) -> String {
            let Verification { findings, partitions, segments_checked, bytes_checked, .. } = &self.0;
            let is_intact = if self.0.is_intact() { "True" } else { "False" };
            format!(
                "Verification(is_intact={is_intact}, findings={}, partitions={partitions}, \
                 segments_checked={segments_checked}, bytes_checked={bytes_checked})",
                findings.len()
            )
        }
    }
}

value_class! {
    "Finding", PyFinding(Finding),
    repr {
        severity: &'static str = |finding| finding.severity.code(),
        code: &'static str = |finding| finding.rule.code(),
        file: OsString = |finding| finding.file.clone().into(),
        position: Option<u64>,
        start_offset: Option<i64>,
    }
    more {
        end_position: Option<u64>,
        end_offset: Option<i64>,
        expected: String,
        found: String,
        evidence: Vec<String>,
        stops_broker: bool,
        takes_directory_offline: bool,
        kafka: &'static str = Finding::kafka,
        advice: String = Finding::advice,
    }
    methods {
        fn __str__(&self) -> String {
            self.0.to_string()
        }
    }
}

value_class! {
    "Unprotected", PyUnprotected(Unprotected),
    repr { leader_epochs: u64, base_offsets: u64 }
}

#[doc = stub_doc!(_wrong_writer_files)]
#[pyfunction]
#[pyo3(name = "_wrong_writer_files")]
pub(super) fn wrong_writer_files(path: &Bound<'_, PyAny>) -> PyResult<Vec<OsString>> {
    let (py, path) = (path.py(), arguments::path(path)?);
    let found = enter(py, || writer_files(&path))?;
    Ok(found.into_iter().map(|found| found.file.into()).collect())
}

#[doc = stub_doc!(verify)]
#[pyfunction]
#[pyo3(
    signature = (paths, *, deep=LEFT_OUT, threads=LEFT_OUT, io=LEFT_OUT, resume=None, progress=None, max_batch_bytes=LEFT_OUT),
    text_signature = "(paths, *, deep=False, threads=1, io='auto', resume=None, progress=None, max_batch_bytes=134217728)"
)]
#[expect(clippy::too_many_arguments, reason = "the arguments of Python's function")]
pub(super) fn verify<'py>(
    py: Python<'py>,
    paths: &Bound<'py, PyAny>,
    deep: Defaulted<'_, 'py>,
    threads: Defaulted<'_, 'py>,
    io: Defaulted<'_, 'py>,
    resume: Option<&Bound<'py, PyAny>>,
    progress: Option<&Bound<'py, PyAny>>,
    max_batch_bytes: Defaulted<'_, 'py>,
) -> PyResult<PyVerification> {
    let paths = path_list(paths)?;
    let options = VerifyOptions {
        threads: threads.or("threads", 1, positive)?,
        is_deep: deep.or("deep", false, flag)?,
        io: io.or("io", Io::Auto, one_of(&IO))?,
        max_batch_bytes: max_batch_bytes.or("max_batch_bytes", MAX_BATCH_BYTES, positive)?,
        journal: optional("resume", resume, arguments::path_of)?,
        now: None,
        interrupt: SIGNALS,
    };
    if let Some(given) = progress.filter(|given| !given.is_callable()) {
        return Err(wrong_type("progress", "a function of two numbers: bytes and total bytes", given));
    }
    let progress = progress.map(|progress| progress.clone().unbind());
    let found = enter(py, || {
        verify_paths(&paths, &options, |now| {
            let Some(progress) = &progress else { return Ok(()) };
            let called = Python::attach(|py| progress.call1(py, (now.bytes, now.total_bytes)).map(drop));
            called.map_err(|error| Error::Interrupted(error.into()))
        })
    });
    found.map(Into::into)
}

/// A path, or a sequence of them.
fn path_list(given: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
    let is_one = given.is_instance_of::<PyString>() || given.hasattr("__fspath__")?;
    match given.cast::<PySequence>() {
        Ok(list) if !is_one => list.try_iter()?.map(|path| arguments::path_of("paths", &path?)).collect(),
        _ => Ok(vec![arguments::path_of("paths", given)?]),
    }
}

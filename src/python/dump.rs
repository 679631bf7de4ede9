//! `Dump`: the text of `kafka-dump-log`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_schema::SchemaRef;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::arguments::{
    self, Defaulted, LEFT_OUT, flag, not_allowed, optional, optional_time, text, whole, wrong_type,
};
use super::arrow_export;
use super::enter::{SIGNALS, enter};
use crate::error::Result;
use crate::inspect::internal_topics::MessageParser;
use crate::inspect::{Decoder, Dump, DumpOptions, DumpRanges, DumpRows, OutputStream, dumped_files};

/// The decoder options of internal topics, in the order in which they count if several are given.
const PARSERS: [(&str, MessageParser); 5] = [
    ("offsets_decoder", MessageParser::Offsets),
    ("transaction_log_decoder", MessageParser::TransactionLog),
    ("cluster_metadata_decoder", MessageParser::ClusterMetadata),
    ("remote_log_metadata_decoder", MessageParser::RemoteLogMetadata),
    ("share_group_state_decoder", MessageParser::ShareGroupState),
];

#[doc = stub_doc!(Dump)]
#[pyclass(frozen, module = "cordwood", name = "Dump")]
pub(super) struct PyDump {
    files: Vec<PathBuf>,
    options: DumpOptions,
    reading: Mutex<Reading>,
}

struct Reading {
    dump: Dump,
    /// What was written for standard error so far.
    messages: String,
}

impl Reading {
    /// The next text for standard output; `None` at the end.
    fn next_text(&mut self) -> Result<Option<String>> {
        while let Some(block) = self.dump.next_block()? {
            // the text is valid, so that this does not copy it
            let text = String::from_utf8(block.text)
                .unwrap_or_else(|wrong| String::from_utf8_lossy(wrong.as_bytes()).into_owned());
            match block.stream {
                OutputStream::Stdout => return Ok(Some(text)),
                OutputStream::Stderr => self.messages.push_str(&text),
            }
        }
        Ok(None)
    }
}

impl PyDump {
    /// Only in [`enter`]: a thread that reads holds the lock while it attaches to the interpreter, to check
    /// for signals.
    fn lock(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyDump {
    #[doc = stub_doc!(Dump.files)]
    #[getter]
    fn files(&self) -> Vec<OsString> {
        self.files.iter().cloned().map(Into::into).collect()
    }

    #[doc = stub_doc!(Dump.messages)]
    #[getter]
    fn messages(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        enter(py, || Ok(self.lock().messages.lines().map(str::to_owned).collect()))
    }

    #[doc = stub_doc!(Dump.text)]
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        enter(py, || {
            let mut reading = self.lock();
            let mut whole = String::new();
            while let Some(text) = reading.next_text()? {
                whole.push_str(&text);
            }
            Ok(whole)
        })
    }

    #[doc = stub_doc!(Dump.rows)]
    #[pyo3(signature = (start_offset=None, end_offset=None, start_time=None, end_time=None, *, tz=None))]
    fn rows(
        &self,
        start_offset: Option<&Bound<'_, PyAny>>,
        end_offset: Option<&Bound<'_, PyAny>>,
        start_time: Option<&Bound<'_, PyAny>>,
        end_time: Option<&Bound<'_, PyAny>>,
        tz: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyDumpRows> {
        let ranges = DumpRanges {
            start_offset: optional("start_offset", start_offset, arguments::offset)?,
            end_offset: optional("end_offset", end_offset, arguments::offset)?,
            start_time: optional_time("start_time", start_time, tz)?,
            end_time: optional_time("end_time", end_time, tz)?,
        };
        Ok(DumpRows::new(&self.files, ranges, self.options.clone()).into())
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<String>> {
        enter(py, || self.lock().next_text())
    }

    #[doc = stub_doc!(Dump._next_block)]
    fn _next_block<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyBytes>, bool)>> {
        let block = enter(py, || self.lock().dump.next_block())?;
        Ok(block.map(|block| (PyBytes::new(py, &block.text), block.stream == OutputStream::Stderr)))
    }

    fn __repr__(&self) -> String {
        match &*self.files {
            [file] => format!("<Dump of {}>", file.display()),
            files => format!("<Dump of {} files>", files.len()),
        }
    }
}

#[doc = stub_doc!(DumpRows)]
#[pyclass(frozen, module = "cordwood", name = "DumpRows")]
pub(super) struct PyDumpRows {
    schema: SchemaRef,
    rows: Mutex<DumpRows>,
}

impl From<DumpRows> for PyDumpRows {
    fn from(rows: DumpRows) -> Self {
        Self { schema: rows.schema(), rows: Mutex::new(rows) }
    }
}

#[pymethods]
impl PyDumpRows {
    fn __repr__(&self) -> String {
        format!("DumpRows({} columns)", self.schema.fields().len())
    }

    #[doc = stub_doc!(DumpRows.schema)]
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        arrow_export::schema(py, Arc::clone(&self.schema))
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let batch = enter(py, || self.rows.lock().unwrap_or_else(PoisonError::into_inner).next_batch())?;
        batch.map(|batch| arrow_export::record_batch(py, batch)).transpose()
    }
}

#[doc = stub_doc!(dump)]
#[pyfunction]
#[pyo3(signature = (
    files, *, deep_iteration=LEFT_OUT, print_data_log=LEFT_OUT, index_sanity_check=LEFT_OUT, verify_index_only=LEFT_OUT,
    max_message_size=LEFT_OUT, max_bytes=LEFT_OUT, skip_record_metadata=LEFT_OUT, key_decoder_class=None, value_decoder_class=None,
    offsets_decoder=LEFT_OUT, transaction_log_decoder=LEFT_OUT, cluster_metadata_decoder=LEFT_OUT,
    remote_log_metadata_decoder=LEFT_OUT, share_group_state_decoder=LEFT_OUT, max_batch_bytes=LEFT_OUT
), text_signature = "(files, *, deep_iteration=False, print_data_log=False, index_sanity_check=False, verify_index_only=False, \
    max_message_size=5242880, max_bytes=2147483647, skip_record_metadata=False, key_decoder_class=None, value_decoder_class=None, \
    offsets_decoder=False, transaction_log_decoder=False, cluster_metadata_decoder=False, \
    remote_log_metadata_decoder=False, share_group_state_decoder=False, \
    max_batch_bytes=134217728)")]
#[expect(clippy::too_many_arguments, reason = "the options of a command")]
pub(super) fn dump(
    py: Python<'_>,
    files: &Bound<'_, PyAny>,
    deep_iteration: Defaulted<'_, '_>,
    print_data_log: Defaulted<'_, '_>,
    index_sanity_check: Defaulted<'_, '_>,
    verify_index_only: Defaulted<'_, '_>,
    max_message_size: Defaulted<'_, '_>,
    max_bytes: Defaulted<'_, '_>,
    skip_record_metadata: Defaulted<'_, '_>,
    key_decoder_class: Option<&Bound<'_, PyAny>>,
    value_decoder_class: Option<&Bound<'_, PyAny>>,
    offsets_decoder: Defaulted<'_, '_>,
    transaction_log_decoder: Defaulted<'_, '_>,
    cluster_metadata_decoder: Defaulted<'_, '_>,
    remote_log_metadata_decoder: Defaulted<'_, '_>,
    share_group_state_decoder: Defaulted<'_, '_>,
    max_batch_bytes: Defaulted<'_, '_>,
) -> PyResult<PyDump> {
    let paths = paths(files)?;
    let defaults = DumpOptions::default();
    let given = [
        offsets_decoder,
        transaction_log_decoder,
        cluster_metadata_decoder,
        remote_log_metadata_decoder,
        share_group_state_decoder,
    ];
    let mut message_parser = None;
    for ((name, parser), given) in PARSERS.into_iter().zip(given) {
        if given.or(name, false, flag)? {
            message_parser = message_parser.or(Some(parser));
        }
    }
    let options = DumpOptions {
        deep_iteration: deep_iteration.or("deep_iteration", false, flag)?,
        print_data_log: print_data_log.or("print_data_log", false, flag)?,
        index_sanity_check: index_sanity_check.or("index_sanity_check", false, flag)?,
        verify_index_only: verify_index_only.or("verify_index_only", false, flag)?,
        max_message_size: max_message_size.or("max_message_size", defaults.max_message_size, bytes)?,
        max_bytes: max_bytes.or("max_bytes", defaults.max_bytes, bytes)?,
        max_batch_bytes: max_batch_bytes.or(
            "max_batch_bytes",
            defaults.max_batch_bytes,
            arguments::positive,
        )?,
        skip_record_metadata: skip_record_metadata.or("skip_record_metadata", false, flag)?,
        key_decoder: optional("key_decoder_class", key_decoder_class, decoder)?,
        value_decoder: optional("value_decoder_class", value_decoder_class, decoder)?,
        message_parser,
        interrupt: SIGNALS,
    };
    let files = enter(py, || {
        let mut files = Vec::new();
        for path in &paths {
            files.extend(dumped_files(path)?);
        }
        Ok(files)
    })?;
    let reading = Reading { dump: Dump::new(&files, options.clone()), messages: String::new() };
    Ok(PyDump { files, options, reading: Mutex::new(reading) })
}

/// One path, or several.
fn paths(files: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
    let wanted = "a path, or an iterable of paths";
    if files.is_instance_of::<PyString>() || files.hasattr("__fspath__")? {
        return Ok(vec![arguments::path_of("files", files)?]);
    }
    let py = files.py();
    let items = files.try_iter().map_err(|wrong| {
        if wrong.is_instance_of::<PyTypeError>(py) { wrong_type("files", wanted, files) } else { wrong }
    })?;
    let paths = items.map(|path| arguments::path_of("files", &path?)).collect::<PyResult<Vec<_>>>()?;
    if paths.is_empty() { Err(not_allowed("files", wanted, files)) } else { Ok(paths) }
}

/// A number of bytes that Kafka's tool accepts.
fn bytes(argument: &'static str, given: &Bound<'_, PyAny>) -> PyResult<u32> {
    let wanted = "a number of bytes from 0 to 2^31 - 1";
    let bytes = whole::<u32>(argument, wanted, given)?;
    if bytes > DumpOptions::MAX_BYTES { Err(not_allowed(argument, wanted, given)) } else { Ok(bytes) }
}

fn decoder(argument: &'static str, given: &Bound<'_, PyAny>) -> PyResult<Decoder> {
    let wanted = "String, Integer, Long, Double or Bytes, or the class of one in org.apache.kafka.tools.api";
    let name = text(argument, wanted, given)?;
    Decoder::of_name(&name).ok_or_else(|| not_allowed(argument, wanted, given))
}

//! The methods of `LogWriter`, and `Appended`.

use std::ffi::OsString;
use std::sync::Arc;

use arc_swap::ArcSwap;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::arguments::{self, Defaulted, LEFT_OUT, flag, optional};
use super::call_lock::{Call, CallLock};
use super::compaction::{self, PyCompaction};
use super::copy::PyCopyReport;
use super::enter::{SIGNALS, enter, enter_change, unless_exception};
use super::log::PyLog;
use super::producer::{PyProducer, PyProducerState};
use super::record::now;
use super::record_input::{self, Blob, GivenRecord, GivenRecords};
use super::recovery::{self, PyRecoveryPlan};
use super::retention::PyRetentionPlan;
use super::transaction::{self, PyTransaction};
use super::turns::{Runner, Turns};
use super::value_class::{value_class, wrapped};
use super::writer_class::{PyLogWriter, open_or_create};
use super::writer_handle::{Handle, Open, State, interrupts};
use super::writer_options::{Given, OpenTransaction, OpeningOptions, open_transaction, planning_options};
use super::{arrow_import, copy};
use crate::arrow::append_stream;
use crate::error::Error;
use crate::writer::{Appended, Appender, LogWriter, TransactionVersion, WriterMetrics, WriterOptions};

value_class! {
    "Appended", PyAppended(Appended),
    repr { first_offset: i64, last_offset: i64, max_timestamp: i64, durable: bool }
    more { is_duplicate: bool }
}

value_class! {
    "WriterMetrics", PyWriterMetrics(WriterMetrics),
    repr {
        appends: u64,
        records: u64,
        bytes: u64,
        append_ns: u64,
        max_append_ns: u64,
        flushes: u64,
        flush_ns: u64,
        max_flush_ns: u64,
        rolls: u64,
        segments: u64,
    }
}

#[pymethods]
impl PyLogWriter {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "they are Python's arguments")]
    #[pyo3(signature = (path, *, config=None, flush=LEFT_OUT, topic_id=None, leader_epoch=None,
            producer_id_expiration_ms=LEFT_OUT, max_batch_bytes=LEFT_OUT),
        text_signature = "(path, *, config=None, flush='always', topic_id=None, leader_epoch=None, \
            producer_id_expiration_ms=86400000, max_batch_bytes=134217728)")]
    fn new(
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        config: Option<Bound<'_, PyAny>>,
        flush: Defaulted<'_, '_>,
        topic_id: Option<&Bound<'_, PyAny>>,
        leader_epoch: Option<&Bound<'_, PyAny>>,
        producer_id_expiration_ms: Defaulted<'_, '_>,
        max_batch_bytes: Defaulted<'_, '_>,
    ) -> PyResult<Self> {
        let path = arguments::path(path)?;
        let given =
            Given { config, flush, topic_id, leader_epoch, producer_id_expiration_ms, max_batch_bytes };
        let OpeningOptions { options, config, found, retention_error } = given.options(py, &path)?;
        let (flush_mode, max_batch_bytes) = (options.flush, options.max_batch_bytes);
        let writer = enter_change(py, || open_or_create(&path, &options))?;
        let path = writer.path().to_owned();
        let mut recovery = writer.recovery().cloned();
        if let Some(plan) = &mut recovery {
            found.name_source(plan);
            unless_exception(py, recovery::log(py, plan))?;
        }
        let open = Open {
            appender: writer.appender(),
            writer: CallLock::new(writer),
            removals: CallLock::default(),
        };
        let state = ArcSwap::from_pointee(State::Open(Arc::new(open)));
        let handle = Handle { state, turns: Arc::new(Turns::new()), process: std::process::id() };
        let (handle, config) = (Arc::new(handle), config.unbind());
        Ok(Self { handle, path, config, retention_error, flush_mode, max_batch_bytes, recovery })
    }

    #[doc = stub_doc!(LogWriter.plan_recovery)]
    #[staticmethod]
    #[pyo3(signature = (path, *, config=None, max_batch_bytes=LEFT_OUT),
        text_signature = "(path, *, config=None, max_batch_bytes=134217728)")]
    fn plan_recovery(
        path: &Bound<'_, PyAny>,
        config: Option<&Bound<'_, PyAny>>,
        max_batch_bytes: Defaulted<'_, '_>,
    ) -> PyResult<PyRecoveryPlan> {
        let (py, path) = (path.py(), arguments::path(path)?);
        let (options, found) = planning_options(py, &path, config, max_batch_bytes)?;
        let mut plan = enter_change(py, || LogWriter::plan_recovery(path, &options))?;
        found.name_source(&mut plan);
        Ok(plan.into())
    }

    #[doc = stub_doc!(LogWriter._open_transactions)]
    #[staticmethod]
    fn _open_transactions(
        path: &Bound<'_, PyAny>,
        max_batch_bytes: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<OpenTransaction>> {
        let (py, path) = (path.py(), arguments::path(path)?);
        let max_batch_bytes = arguments::positive("max_batch_bytes", max_batch_bytes)?;
        let options = WriterOptions { max_batch_bytes, interrupt: SIGNALS, ..WriterOptions::default() };
        let (_, open) = enter_change(py, || LogWriter::plan_opening(path, &options))?;
        Ok(open.iter().map(open_transaction).collect())
    }

    #[doc = stub_doc!(LogWriter.recovery)]
    #[getter]
    fn recovery(&self) -> Option<PyRecoveryPlan> {
        self.recovery.clone().map(Into::into)
    }

    #[doc = stub_doc!(LogWriter.path)]
    #[getter]
    fn path(&self) -> OsString {
        self.path.as_os_str().to_owned()
    }

    #[doc = stub_doc!(LogWriter.config)]
    #[getter]
    fn config<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.config.bind(py).clone()
    }

    #[doc = stub_doc!(LogWriter.flush_mode)]
    #[getter]
    fn flush_mode(&self) -> String {
        self.flush_mode.to_string()
    }

    #[doc = stub_doc!(LogWriter.closed)]
    #[getter]
    fn closed(&self) -> bool {
        !matches!(**self.handle.state.load(), State::Open(_))
    }

    #[doc = stub_doc!(LogWriter.log_start_offset)]
    #[getter]
    fn log_start_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.with_writer(py, "log_start_offset", |writer| Ok(writer.log_start_offset()))
    }

    #[doc = stub_doc!(LogWriter.log_end_offset)]
    #[getter]
    fn log_end_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.append_with(py, |appender| Ok(appender.log_end_offset()))
    }

    #[doc = stub_doc!(LogWriter.last_stable_offset)]
    #[getter]
    fn last_stable_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.append_with(py, |appender| Ok(appender.last_stable_offset()))
    }

    #[doc = stub_doc!(LogWriter.durable_offset)]
    #[getter]
    fn durable_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.append_with(py, |appender| Ok(appender.durable_offset()))
    }

    #[doc = stub_doc!(LogWriter.metrics)]
    fn metrics(&self, py: Python<'_>) -> PyResult<PyWriterMetrics> {
        self.append_with(py, |appender| Ok(appender.metrics())).map(Into::into)
    }

    #[doc = stub_doc!(LogWriter.producers)]
    #[getter]
    fn producers(&self, py: Python<'_>) -> PyResult<Vec<PyProducerState>> {
        Ok(wrapped(&self.append_with(py, |appender| Ok(appender.producers()))?))
    }

    #[doc = stub_doc!(LogWriter.leader_epochs)]
    #[getter]
    fn leader_epochs(&self, py: Python<'_>) -> PyResult<Vec<(i32, i64)>> {
        self.with_writer(py, "leader_epochs", |writer| Ok(writer.leader_epochs().entries().to_vec()))
    }

    #[doc = stub_doc!(LogWriter.end_offset_for)]
    fn end_offset_for(&self, py: Python<'_>, epoch: &Bound<'_, PyAny>) -> PyResult<Option<(i32, i64)>> {
        let epoch = arguments::epoch("epoch", epoch)?;
        self.with_writer(py, "end_offset_for", |writer| {
            Ok(writer.leader_epochs().end_offset_for(epoch, writer.log_end_offset()))
        })
    }

    #[doc = stub_doc!(LogWriter.append)]
    #[pyo3(signature = (value, key=None, headers=LEFT_OUT, timestamp=None),
        text_signature = "($self, value, key=None, headers=(), timestamp=None)")]
    fn append(
        &self,
        py: Python<'_>,
        value: Option<&Bound<'_, PyAny>>,
        key: Option<&Bound<'_, PyAny>>,
        headers: Defaulted<'_, '_>,
        timestamp: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyAppended> {
        let record = GivenRecords::one(GivenRecord::of_fields(value, key, headers, timestamp)?);
        self.append_with(py, |appender| record.with(now(), |records| appender.append_many(records)))
            .map(Into::into)
    }

    #[doc = stub_doc!(LogWriter.append_many)]
    fn append_many(&self, py: Python<'_>, records: &Bound<'_, PyAny>) -> PyResult<PyAppended> {
        let records = record_input::records(records)?;
        self.append_with(py, |appender| records.with(now(), |records| appender.append_many(records)))
            .map(Into::into)
    }

    #[doc = stub_doc!(LogWriter.append_async)]
    #[pyo3(signature = (value, key=None, headers=LEFT_OUT, timestamp=None),
        text_signature = "($self, value, key=None, headers=(), timestamp=None)")]
    fn append_async<'py>(
        &self,
        py: Python<'py>,
        value: Option<&Bound<'_, PyAny>>,
        key: Option<&Bound<'_, PyAny>>,
        headers: Defaulted<'_, '_>,
        timestamp: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let record = GivenRecord::of_fields(value, key, headers, timestamp).map(GivenRecords::one);
        self.append_given_async(py, record)
    }

    #[doc = stub_doc!(LogWriter.append_many_async)]
    fn append_many_async<'py>(
        &self,
        py: Python<'py>,
        records: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.append_given_async(py, record_input::records(records))
    }

    #[doc = stub_doc!(LogWriter.append_arrow)]
    fn append_arrow(&self, py: Python<'_>, table: &Bound<'_, PyAny>) -> PyResult<PyAppended> {
        // before the stream is taken out of its capsule
        self.open(py)?;
        let mut stream = arrow_import::stream(table)?;
        let appended = self.append_with(py, |appender| append_stream(appender, &mut stream, now, SIGNALS));
        // a signal may be the cause of the stream's error
        py.check_signals()?;
        appended.map(Into::into)
    }

    #[doc = stub_doc!(LogWriter.append_batches)]
    #[pyo3(signature = (raw, keep_offsets=LEFT_OUT), text_signature = "($self, raw, keep_offsets=False)")]
    fn append_batches(
        &self,
        py: Python<'_>,
        raw: &Bound<'_, PyAny>,
        keep_offsets: Defaulted<'_, '_>,
    ) -> PyResult<PyAppended> {
        let (raw, keep_offsets) = (Blob::raw("raw", raw)?, keep_offsets.or("keep_offsets", false, flag)?);
        self.append_with(py, |appender| appender.append_batches(raw.as_slice(), keep_offsets)).map(Into::into)
    }

    #[doc = stub_doc!(LogWriter.producer)]
    #[pyo3(signature = (name=None))]
    fn producer(&self, py: Python<'_>, name: Option<&Bound<'_, PyAny>>) -> PyResult<PyProducer> {
        let name = optional("name", name, |argument, given| arguments::text(argument, "a str", given))?;
        let producer = self.append_with(py, |appender| appender.producer(name.as_deref()))?;
        Ok(PyProducer::new(Arc::clone(&self.handle), self.path.clone(), producer))
    }

    #[doc = stub_doc!(LogWriter.transaction)]
    #[pyo3(signature = (transactional_id, *, version=LEFT_OUT),
        text_signature = "($self, transactional_id, *, version=2)")]
    fn transaction(
        &self,
        py: Python<'_>,
        transactional_id: &Bound<'_, PyAny>,
        version: Defaulted<'_, '_>,
    ) -> PyResult<PyTransaction> {
        let id = arguments::text("transactional_id", "a str", transactional_id)?;
        let version = version.or("version", TransactionVersion::default(), transaction::version)?;
        self.open(py)?;
        let turn = self.handle.turns.wait(py, &id)?;
        let transaction = self.append_with(py, |appender| appender.transaction(&id, version))?;
        drop(turn);
        Ok(PyTransaction::new(Arc::clone(&self.handle), self.path.clone(), transaction, None))
    }

    #[doc = stub_doc!(LogWriter.transaction_async)]
    #[pyo3(signature = (transactional_id, *, version=LEFT_OUT),
        text_signature = "($self, transactional_id, *, version=2)")]
    fn transaction_async<'py>(
        this: PyRef<'py, Self>,
        transactional_id: &Bound<'py, PyAny>,
        version: Defaulted<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        arguments::text("transactional_id", "a str", transactional_id)?;
        let version = version.or("version", TransactionVersion::default(), transaction::version)?;
        let number = if version == TransactionVersion::V1 { 1 } else { 2 };
        let block = py.import("cordwood.async_transactions")?.getattr("TransactionBlock")?;
        block.call1((this.into_pyobject(py)?, transactional_id, number))
    }

    #[doc = stub_doc!(LogWriter._begin_in_task)]
    #[pyo3(name = "_begin_in_task")]
    fn begin_in_task(
        &self,
        py: Python<'_>,
        transactional_id: &str,
        version: &Bound<'_, PyAny>,
        task: usize,
    ) -> PyResult<Option<PyTransaction>> {
        let version = transaction::version("version", version)?;
        self.open(py)?;
        let turn = enter(py, || self.handle.turns.take(transactional_id, Runner::new(Some(task))))?;
        let Some(turn) = turn else { return Ok(None) };
        let transaction = self.append_with(py, |appender| appender.transaction(transactional_id, version))?;
        let (handle, path) = (Arc::clone(&self.handle), self.path.clone());
        Ok(Some(PyTransaction::new(handle, path, transaction, Some(turn))))
    }

    #[doc = stub_doc!(LogWriter.abort_transaction)]
    fn abort_transaction(&self, py: Python<'_>, producer_id: &Bound<'_, PyAny>) -> PyResult<PyAppended> {
        let producer_id = arguments::whole("producer_id", "a producer id from 0 to 2^63 - 1", producer_id)?;
        self.append_with(py, |appender| appender.abort_transaction(producer_id)).map(Into::into)
    }

    #[doc = stub_doc!(LogWriter.flush)]
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.append_with(py, Appender::flush)
    }

    #[doc = stub_doc!(LogWriter.wait_durable)]
    fn wait_durable(&self, py: Python<'_>, offset: &Bound<'_, PyAny>) -> PyResult<()> {
        let offset = arguments::offset("offset", offset)?;
        self.append_with(py, |appender| appender.wait_durable(offset))
    }

    #[doc = stub_doc!(LogWriter.roll)]
    fn roll(&self, py: Python<'_>) -> PyResult<()> {
        self.with_writer(py, "roll", LogWriter::roll)
    }

    #[doc = stub_doc!(LogWriter.truncate_to)]
    fn truncate_to(&self, py: Python<'_>, offset: &Bound<'_, PyAny>) -> PyResult<bool> {
        let offset = arguments::offset("offset", offset)?;
        self.remove_with(py, Call::new("truncate_to"), |writer| writer.truncate_to(offset))
    }

    #[doc = stub_doc!(LogWriter.truncate_fully_and_start_at)]
    fn truncate_fully_and_start_at(&self, py: Python<'_>, offset: &Bound<'_, PyAny>) -> PyResult<()> {
        let offset = arguments::offset("offset", offset)?;
        self.remove_with(py, Call::new("truncate_fully_and_start_at"), |writer| {
            writer.truncate_fully_and_start_at(offset)
        })
    }

    #[doc = stub_doc!(LogWriter.delete_before)]
    fn delete_before(&self, py: Python<'_>, offset: &Bound<'_, PyAny>) -> PyResult<bool> {
        let offset = arguments::offset("offset", offset)?;
        self.remove_with(py, Call::new("delete_before"), |writer| writer.delete_before(offset))
    }

    #[doc = stub_doc!(LogWriter.apply_retention)]
    #[pyo3(signature = (now=None, *, tz=None))]
    fn apply_retention(
        &self,
        py: Python<'_>,
        now: Option<&Bound<'_, PyAny>>,
        tz: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyRetentionPlan> {
        let now = arguments::optional_time("now", now, tz)?;
        self.open(py)?;
        if let Some(error) = &self.retention_error {
            // the same exception each time: without this, its traceback grows
            error.value(py).setattr("__traceback__", py.None())?;
            return Err(error.clone_ref(py));
        }
        Ok(self
            .remove_with(py, Call::without_appends("apply_retention"), |writer| writer.apply_retention(now))?
            .into())
    }

    #[doc = stub_doc!(LogWriter.backup)]
    fn backup(&self, py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<PyCopyReport> {
        let destination = arguments::path(path)?;
        let open = self.open(py)?;
        if let Some(interrupted) = open.interrupted_call() {
            return Err(interrupts(interrupted));
        }
        let call = Call::new("backup");
        enter(py, || {
            let _removals = open.removals.lock(call);
            // writes the index entries that are in memory
            open.writer.lock(call).reader()?;
            copy::backup(&self.path, &destination, self.max_batch_bytes)
        })
        .map(Into::into)
    }

    #[doc = stub_doc!(LogWriter.compact)]
    #[pyo3(
        signature = (now=None, dedupe_buffer_bytes=None, threads=LEFT_OUT, *, tz=None),
        text_signature = "($self, now=None, dedupe_buffer_bytes=None, threads=1, *, tz=None)"
    )]
    fn compact(
        &self,
        py: Python<'_>,
        now: Option<&Bound<'_, PyAny>>,
        dedupe_buffer_bytes: Option<&Bound<'_, PyAny>>,
        threads: Defaulted<'_, '_>,
        tz: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyCompaction> {
        let options = compaction::options_of(now, tz, dedupe_buffer_bytes, threads)?;
        Ok(self.remove_with(py, Call::without_appends("compact"), |writer| writer.compact(&options))?.into())
    }

    #[doc = stub_doc!(LogWriter.reader)]
    fn reader(&self, py: Python<'_>) -> PyResult<PyLog> {
        self.with_writer(py, "reader", LogWriter::reader).map(PyLog::of)
    }

    #[doc = stub_doc!(LogWriter._has_interrupted_call)]
    fn _has_interrupted_call(&self) -> bool {
        match &**self.handle.state.load() {
            State::Open(open) => open.interrupted_call().is_some(),
            State::Closed | State::Failed(_) => false,
        }
    }

    #[doc = stub_doc!(LogWriter.close)]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(open) = self.handle.open(py)? else { return Ok(()) };
        if let Some(interrupted) = open.writer.call_of_this_thread() {
            return Err(interrupts(interrupted));
        }
        enter(py, || {
            let closed = open.writer.lock(Call::new("close")).close();
            self.handle.state.store(Arc::new(match &closed {
                Ok(()) => State::Closed,
                Err(Error::Poisoned { reason }) => State::Failed(reason.clone()),
                Err(error) => State::Failed(error.to_string()),
            }));
            // closes the files, unless a call of another thread still uses them
            drop(open);
            closed
        })
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        this.open(this.py())?;
        Ok(this)
    }

    #[pyo3(signature = (exc_type, exc_value, traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: Option<&Bound<'_, PyAny>>,
        exc_value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (exc_value, traceback);
        match self.close(py) {
            // the exception that ended the block is not replaced by the error of the close
            Err(_) if exc_type.is_some() => Ok(()),
            closed => closed,
        }
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(format!(
            "the LogWriter of {} is its one writer and cannot be pickled; open it where it is used",
            self.path.display()
        )))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let path = self.path.display();
        if self.handle.is_of_another_process() {
            return Ok(format!("<LogWriter {path} of another process>"));
        }
        if self.closed() {
            return Ok(format!("<LogWriter {path} closed>"));
        }
        let end = self.append_with(py, |appender| Ok(appender.log_end_offset()))?;
        Ok(format!("<LogWriter {path} next offset {end}, flush {}>", self.flush_mode))
    }
}

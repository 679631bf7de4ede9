//! `Transaction`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI16, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use super::arguments::{self, Defaulted, LEFT_OUT};
use super::async_append;
use super::enter::enter;
use super::producer::not_pickled;
use super::record::now;
use super::record_input::{self, GivenRecord, GivenRecords};
use super::turns::Turn;
use super::writer::PyAppended;
use super::writer_handle::Handle;
use crate::error::Result;
use crate::record::control::ControlType;
use crate::writer::{Transaction, TransactionVersion};

#[doc = stub_doc!(Transaction)]
#[pyclass(frozen, module = "cordwood", name = "Transaction")]
pub(super) struct PyTransaction {
    handle: Arc<Handle>,
    path: PathBuf,
    transactional_id: String,
    producer_id: AtomicI64,
    producer_epoch: AtomicI16,
    transaction: Mutex<Transaction>,
    /// While a block of it runs.
    turn: Mutex<Option<Turn>>,
}

impl PyTransaction {
    pub(super) fn new(
        handle: Arc<Handle>,
        path: PathBuf,
        transaction: Transaction,
        turn: Option<Turn>,
    ) -> Self {
        Self {
            handle,
            path,
            transactional_id: transaction.transactional_id().to_owned(),
            producer_id: transaction.producer_id().into(),
            producer_epoch: transaction.producer_epoch().into(),
            transaction: Mutex::new(transaction),
            turn: Mutex::new(turn),
        }
    }

    /// Replaces the turn. A block that has ended has none.
    fn set_turn(&self, turn: Option<Turn>) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = turn;
    }

    fn lock(&self) -> MutexGuard<'_, Transaction> {
        self.transaction.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Transaction) -> Result<T> + Send,
    ) -> PyResult<T> {
        // the writer is not closed meanwhile; in a forked child, the thread that holds the lock may not exist
        let _open = self.handle.writer(py)?;
        enter(py, || call(&mut self.lock()))
    }

    /// Ends the transaction, without its lock while it waits for the disk: the handler of a signal may use
    /// the transaction.
    fn end(&self, py: Python<'_>, control_type: ControlType) -> PyResult<PyAppended> {
        let _open = self.handle.writer(py)?;
        enter(py, || {
            let ended = self.lock().write_end(control_type)?;
            self.set_turn(None);
            ended.acknowledge()
        })
        .map(Into::into)
    }

    fn end_async<'py>(&self, py: Python<'py>, control_type: ControlType) -> PyResult<Bound<'py, PyAny>> {
        let ended = self.call(py, |transaction| Ok(transaction.write_end(control_type)?.unflushed()));
        if ended.is_ok() {
            self.set_turn(None);
        }
        async_append::awaitable(py, ended)
    }

    fn append_given_async<'py>(
        &self,
        py: Python<'py>,
        records: PyResult<GivenRecords>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let append = records.and_then(|records| {
            self.call(py, |transaction| {
                records.with(now(), |records| transaction.append_many_unflushed(records))
            })
        });
        async_append::awaitable(py, append)
    }

    fn append_given(&self, py: Python<'_>, records: &GivenRecords) -> PyResult<PyAppended> {
        self.call(py, |transaction| records.with(now(), |records| transaction.append_many(records)))
            .map(Into::into)
    }
}

/// The protocol of a transaction.
pub(super) fn version(argument: &'static str, given: &Bound<'_, PyAny>) -> PyResult<TransactionVersion> {
    const WANTED: &str = "1 or 2";
    match arguments::whole::<i64>(argument, WANTED, given)? {
        1 => Ok(TransactionVersion::V1),
        2 => Ok(TransactionVersion::V2),
        _ => Err(arguments::not_allowed(argument, WANTED, given)),
    }
}

#[pymethods]
impl PyTransaction {
    #[doc = stub_doc!(Transaction.transactional_id)]
    #[getter]
    fn transactional_id(&self) -> &str {
        &self.transactional_id
    }

    #[doc = stub_doc!(Transaction.producer_id)]
    #[getter]
    fn producer_id(&self) -> i64 {
        self.producer_id.load(Ordering::Relaxed)
    }

    #[doc = stub_doc!(Transaction.producer_epoch)]
    #[getter]
    fn producer_epoch(&self) -> i16 {
        self.producer_epoch.load(Ordering::Relaxed)
    }

    #[doc = stub_doc!(Transaction.first_offset)]
    #[getter]
    fn first_offset(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        self.call(py, |transaction| Ok(transaction.first_offset()))
    }

    #[doc = stub_doc!(Transaction.is_open)]
    #[getter]
    fn is_open(&self, py: Python<'_>) -> PyResult<bool> {
        self.call(py, |transaction| Ok(transaction.is_open()))
    }

    #[doc = stub_doc!(Transaction.append)]
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
        self.append_given(py, &record)
    }

    #[doc = stub_doc!(Transaction.append_many)]
    fn append_many(&self, py: Python<'_>, records: &Bound<'_, PyAny>) -> PyResult<PyAppended> {
        self.append_given(py, &record_input::records(records)?)
    }

    #[doc = stub_doc!(Transaction.commit)]
    fn commit(&self, py: Python<'_>) -> PyResult<PyAppended> {
        self.end(py, ControlType::Commit)
    }

    #[doc = stub_doc!(Transaction.abort)]
    fn abort(&self, py: Python<'_>) -> PyResult<PyAppended> {
        self.end(py, ControlType::Abort)
    }

    #[doc = stub_doc!(Transaction.append_async)]
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

    #[doc = stub_doc!(Transaction.append_many_async)]
    fn append_many_async<'py>(
        &self,
        py: Python<'py>,
        records: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.append_given_async(py, record_input::records(records))
    }

    #[doc = stub_doc!(Transaction.commit_async)]
    fn commit_async<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.end_async(py, ControlType::Commit)
    }

    #[doc = stub_doc!(Transaction.abort_async)]
    fn abort_async<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.end_async(py, ControlType::Abort)
    }

    #[doc = stub_doc!(Transaction._end_turn)]
    #[pyo3(name = "_end_turn")]
    fn end_turn(&self) {
        self.set_turn(None);
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        let py = this.py();
        this.handle.writer(py)?;
        let turn = this.handle.turns.wait(py, &this.transactional_id)?;
        // another thread may have had its turn since this transaction began
        let (producer_id, producer_epoch) = this.call(py, |transaction| {
            if transaction.is_open() {
                transaction.renew()?;
            }
            Ok((transaction.producer_id(), transaction.producer_epoch()))
        })?;
        this.producer_id.store(producer_id, Ordering::Relaxed);
        this.producer_epoch.store(producer_epoch, Ordering::Relaxed);
        this.set_turn(Some(turn));
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
        let is_failed = exc_type.is_some();
        let ended = match self.is_open(py) {
            Ok(true) => {
                self.end(py, if is_failed { ControlType::Abort } else { ControlType::Commit }).map(drop)
            }
            // it was ended in the block
            Ok(false) => Ok(()),
            Err(closed) => Err(closed),
        };
        self.set_turn(None);
        // the exception that ended the block is not replaced by the error of the abort
        if is_failed { Ok(()) } else { ended }
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("Transaction", &self.path))
    }

    fn __repr__(&self) -> String {
        let (id, producer_id) = (&self.transactional_id, self.producer_id());
        format!("<Transaction {id:?} ({producer_id}) of {}>", self.path.display())
    }
}

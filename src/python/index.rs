//! `OffsetIndex`, `TimeIndex` and `TransactionIndex`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;

use super::enter::enter;
use super::results::{PyAbortedTransaction, PyOffsetPosition, PyTimestampOffset};
use super::{arguments, error};
use crate::error::{Error, Result};
use crate::index::{OffsetIndex, TimeIndex, TransactionIndex};

/// An index that can be closed.
struct Closable<I>(Mutex<Option<Arc<I>>>);

impl<I> Closable<I> {
    fn of(index: Arc<I>) -> Self {
        Self(Mutex::new(Some(index)))
    }

    fn get(&self, py: Python<'_>) -> PyResult<Arc<I>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .ok_or_else(|| error::closed(py, "index"))
    }

    fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

fn no_entry(n: i64) -> Error {
    Error::config("n", "0 or more", n.to_string())
}

/// Makes the n-th entry.
type EntryOf = dyn Fn(Python<'_>, u64) -> PyResult<Py<PyAny>> + Send + Sync;

/// Entries, one at a time.
#[pyclass(frozen, module = "cordwood")]
struct EntryIterator {
    next: AtomicU64,
    entries: u64,
    entry: Box<EntryOf>,
}

#[pymethods]
impl EntryIterator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        if n < self.entries { (self.entry)(py, n).map(Some) } else { Ok(None) }
    }
}

/// What the three classes have in common. PyO3 takes one block of methods a class, so the block is written once here.
macro_rules! index_class {
    ($class:ident, $name:literal, $index:ident, $entry:ident, $open:expr, { $($methods:tt)* }) => {
        #[doc = concat!("A file of kind `", $name, "`, opened for reading.")]
        #[pyclass(frozen, module = "cordwood", name = $name)]
        pub(super) struct $class(Closable<$index>);

        impl $class {
            pub(super) fn of(index: Arc<$index>) -> Self {
                Self(Closable::of(index))
            }

            fn ask<T: Send>(&self, py: Python<'_>, question: impl FnOnce(&$index) -> Result<T> + Send) -> PyResult<T> {
                let index = self.0.get(py)?;
                enter(py, || question(&index))
            }
        }

        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(signature = (path, base_offset=None))]
            fn new(py: Python<'_>, path: PathBuf, base_offset: Option<i64>) -> PyResult<Self> {
                let open: fn(&std::path::Path, Option<i64>) -> Result<$index> = $open;
                enter(py, || open(&path, base_offset)).map(|index| Self::of(Arc::new(index)))
            }

            #[getter]
            fn path(&self, py: Python<'_>) -> PyResult<OsString> {
                Ok(self.0.get(py)?.path().as_os_str().to_owned())
            }

            #[getter]
            fn base_offset(&self, py: Python<'_>) -> PyResult<i64> {
                Ok(self.0.get(py)?.base_offset())
            }

            #[getter]
            fn entry_size(&self, py: Python<'_>) -> PyResult<u64> {
                Ok(self.0.get(py)?.entry_size())
            }

            #[getter]
            fn entries(&self, py: Python<'_>) -> PyResult<u64> {
                Ok(self.0.get(py)?.entries())
            }

            fn entry(&self, py: Python<'_>, n: i64) -> PyResult<$entry> {
                self.ask(py, |index| index.entry(u64::try_from(n).map_err(|_| no_entry(n))?)).map(Into::into)
            }

            fn sanity_check(&self, py: Python<'_>) -> PyResult<()> {
                self.ask(py, $index::sanity_check)
            }

            fn close(&self) {
                self.0.close();
            }

            fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
                Ok(usize::try_from(self.entries(py)?)?)
            }

            fn __iter__(&self, py: Python<'_>) -> PyResult<EntryIterator> {
                let index = self.0.get(py)?;
                let entries = index.entries();
                let entry = move |py: Python<'_>, n| {
                    let entry = enter(py, || index.entry(n))?;
                    Ok(Py::new(py, $entry::from(entry))?.into_any())
                };
                Ok(EntryIterator { next: AtomicU64::new(0), entries, entry: Box::new(entry) })
            }

            fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
                this
            }

            #[pyo3(signature = (exc_type, exc_value, traceback))]
            fn __exit__(
                &self,
                exc_type: &Bound<'_, PyAny>,
                exc_value: &Bound<'_, PyAny>,
                traceback: &Bound<'_, PyAny>,
            ) {
                let _ = (exc_type, exc_value, traceback);
                self.0.close();
            }

            fn __repr__(&self, py: Python<'_>) -> String {
                match self.0.get(py) {
                    Ok(index) => format!("<{} {} with {} entries>", $name, index.path().display(), index.entries()),
                    Err(_) => format!("<{}, closed>", $name),
                }
            }

            $($methods)*
        }
    };
}

// a file that is opened by its path may be one that a broker writes, so it is not mapped
index_class!(
    PyOffsetIndex,
    "OffsetIndex",
    OffsetIndex,
    PyOffsetPosition,
    |path, base| OffsetIndex::open(path, base, false),
    {
        #[getter]
        fn max_entries(&self, py: Python<'_>) -> PyResult<u64> {
            Ok(self.0.get(py)?.max_entries())
        }

        #[getter]
        fn max_index_size(&self, py: Python<'_>) -> PyResult<u64> {
            Ok(self.0.get(py)?.max_index_size())
        }

        #[getter]
        fn is_full(&self, py: Python<'_>) -> PyResult<bool> {
            Ok(self.0.get(py)?.is_full())
        }

        #[getter]
        fn last_entry(&self, py: Python<'_>) -> PyResult<PyOffsetPosition> {
            Ok(self.0.get(py)?.last_entry().into())
        }

        #[pyo3(signature = (target, method=None))]
        fn lookup(&self, py: Python<'_>, target: i64, method: Option<&str>) -> PyResult<PyOffsetPosition> {
            let method = arguments::method(py, method)?;
            self.ask(py, |index| index.lookup(target, method)).map(Into::into)
        }

        #[pyo3(signature = (target, method=None))]
        fn slot_range(&self, py: Python<'_>, target: i64, method: Option<&str>) -> PyResult<(i64, i64)> {
            let method = arguments::method(py, method)?;
            self.ask(py, |index| index.slot_range(target, method))
        }

        #[pyo3(signature = (target, method=None))]
        fn trace(&self, py: Python<'_>, target: i64, method: Option<&str>) -> PyResult<Vec<u64>> {
            let method = arguments::method(py, method)?;
            self.ask(py, |index| index.trace(target, method))
        }

        fn upper_bound(
            &self,
            py: Python<'_>,
            position: i32,
            fetch_size: i32,
        ) -> PyResult<Option<PyOffsetPosition>> {
            Ok(self.ask(py, |index| index.upper_bound(position, fetch_size))?.map(Into::into))
        }
    }
);

index_class!(
    PyTimeIndex,
    "TimeIndex",
    TimeIndex,
    PyTimestampOffset,
    |path, base| TimeIndex::open(path, base, false),
    {
        #[getter]
        fn max_entries(&self, py: Python<'_>) -> PyResult<u64> {
            Ok(self.0.get(py)?.max_entries())
        }

        #[getter]
        fn max_index_size(&self, py: Python<'_>) -> PyResult<u64> {
            Ok(self.0.get(py)?.max_index_size())
        }

        #[getter]
        fn is_full(&self, py: Python<'_>) -> PyResult<bool> {
            Ok(self.0.get(py)?.is_full())
        }

        #[getter]
        fn last_entry(&self, py: Python<'_>) -> PyResult<PyTimestampOffset> {
            Ok(self.0.get(py)?.last_entry().into())
        }

        #[pyo3(signature = (target, method=None))]
        fn lookup(
            &self,
            py: Python<'_>,
            target: arguments::Time,
            method: Option<&str>,
        ) -> PyResult<PyTimestampOffset> {
            let method = arguments::method(py, method)?;
            self.ask(py, |index| index.lookup(target.0, method)).map(Into::into)
        }

        #[pyo3(signature = (target, method=None))]
        fn slot_range(
            &self,
            py: Python<'_>,
            target: arguments::Time,
            method: Option<&str>,
        ) -> PyResult<(i64, i64)> {
            let method = arguments::method(py, method)?;
            self.ask(py, |index| index.slot_range(target.0, method))
        }

        #[pyo3(signature = (target, method=None))]
        fn trace(&self, py: Python<'_>, target: arguments::Time, method: Option<&str>) -> PyResult<Vec<u64>> {
            let method = arguments::method(py, method)?;
            self.ask(py, |index| index.trace(target.0, method))
        }
    }
);

index_class!(
    PyTransactionIndex,
    "TransactionIndex",
    TransactionIndex,
    PyAbortedTransaction,
    |path, base| TransactionIndex::open(path, base, false),
    {
        #[getter]
        fn last_entry(&self, py: Python<'_>) -> PyResult<Option<PyAbortedTransaction>> {
            Ok(self.ask(py, TransactionIndex::last_entry)?.map(Into::into))
        }

        fn collect_aborted(
            &self,
            py: Python<'_>,
            fetch_offset: i64,
            upper_bound: i64,
        ) -> PyResult<(Vec<PyAbortedTransaction>, bool)> {
            let (aborted, complete) =
                self.ask(py, |index| index.collect_aborted(fetch_offset, upper_bound))?;
            Ok((aborted.into_iter().map(Into::into).collect(), complete))
        }
    }
);

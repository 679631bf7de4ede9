//! `OffsetIndex`, `TimeIndex` and `TransactionIndex`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::arguments;
use super::enter::enter;
use super::error::to_python;
use super::index_handle::IndexHandle;
use super::results::{PyAbortedTransaction, PyOffsetPosition, PyTimestampOffset};
use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::index::{
    AbortedTransaction, OffsetIndex, OffsetIndexWriter, TimeIndex, TimeIndexWriter, TransactionIndex,
    TransactionIndexWriter, base_offset_of,
};

/// Kafka's default for `segment.index.bytes`.
const MAX_INDEX_SIZE: i64 = 10 << 20;

/// The size for an index that is written, or `None` for one that is read.
fn size(writable: bool, max_index_size: Option<i64>) -> Result<Option<u64>> {
    match (writable, max_index_size) {
        (false, None) => Ok(None),
        (false, Some(_)) => Err(Error::config("max_index_size", "writable=True with it", "writable=False")),
        (true, size) => bytes(size.unwrap_or(MAX_INDEX_SIZE)).map(Some),
    }
}

fn bytes(size: i64) -> Result<u64> {
    u64::try_from(size).map_err(|_| Error::config("max_index_size", "0 or more bytes", size.to_string()))
}

/// The given base offset, else the digits that the file's name begins with.
fn base(name: &str, base_offset: Option<i64>) -> Result<i64> {
    base_offset.map_or_else(|| base_offset_of(Path::new(name)), Ok)
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
    ($class:ident, $name:literal, $index:ident, $writer:ident, $entry:ident, $close:expr, { $($methods:tt)* }) => {
        #[doc = concat!("A file of kind `", $name, "`, opened for reading or for writing.")]
        #[pyclass(frozen, module = "cordwood", name = $name)]
        pub(super) struct $class(IndexHandle<$index, $writer>);

        impl $class {
            pub(super) fn of(index: Arc<$index>) -> Self {
                Self(IndexHandle::reading(index))
            }

            /// A file that is opened by its path may be one that a broker writes, so it is not mapped.
            fn read(py: Python<'_>, path: PathBuf, base_offset: Option<i64>) -> PyResult<Self> {
                enter(py, || $index::open(&path, base_offset, false)).map(|index| Self::of(Arc::new(index)))
            }
        }

        #[pymethods]
        impl $class {
            #[getter]
            fn path(&self, py: Python<'_>) -> PyResult<OsString> {
                self.0.ask(py, |index| Ok(index.path().as_os_str().to_owned()))
            }

            #[getter]
            fn base_offset(&self, py: Python<'_>) -> PyResult<i64> {
                self.0.ask(py, |index| Ok(index.base_offset()))
            }

            #[getter]
            fn entry_size(&self, py: Python<'_>) -> PyResult<u64> {
                self.0.ask(py, |index| Ok(index.entry_size()))
            }

            #[getter]
            fn entries(&self, py: Python<'_>) -> PyResult<u64> {
                self.0.ask(py, |index| Ok(index.entries()))
            }

            fn entry(&self, py: Python<'_>, n: i64) -> PyResult<$entry> {
                self.0.ask(py, |index| index.entry(u64::try_from(n).map_err(|_| no_entry(n))?)).map(Into::into)
            }

            fn sanity_check(&self, py: Python<'_>) -> PyResult<()> {
                self.0.ask(py, $index::sanity_check)
            }

            fn truncate_to(&self, py: Python<'_>, offset: i64) -> PyResult<()> {
                self.0.change(py, |index| index.truncate_to(offset))
            }

            fn reset(&self, py: Python<'_>) -> PyResult<()> {
                self.0.change(py, $writer::reset)
            }

            fn flush(&self, py: Python<'_>) -> PyResult<()> {
                self.0.change(py, $writer::flush)
            }

            fn close(&self, py: Python<'_>) -> PyResult<()> {
                self.0.close(py, $close)
            }

            fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
                Ok(usize::try_from(self.entries(py)?)?)
            }

            fn __iter__(&self, py: Python<'_>) -> PyResult<EntryIterator> {
                let index = self.0.get(py)?;
                let entries = index.ask(py, |index| Ok(index.entries()))?;
                let entry = move |py: Python<'_>, n| {
                    let entry = index.ask(py, |index| index.entry(n))?;
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
                py: Python<'_>,
                exc_type: &Bound<'_, PyAny>,
                exc_value: &Bound<'_, PyAny>,
                traceback: &Bound<'_, PyAny>,
            ) -> PyResult<()> {
                let _ = (exc_type, exc_value, traceback);
                self.0.close(py, $close)
            }

            fn __repr__(&self, py: Python<'_>) -> String {
                let words = |index: &$index| {
                    Ok(format!("<{} {} with {} entries>", $name, index.path().display(), index.entries()))
                };
                match self.0.get(py).map(|index| index.ask(py, words)) {
                    Ok(Ok(words)) => words,
                    Ok(Err(_)) => format!("<{} of the parent process>", $name),
                    Err(_) => format!("<{}, closed>", $name),
                }
            }

            $($methods)*
        }
    };
}

/// What an offset and a time index have in common beyond that: a file of full size.
macro_rules! preallocated_class {
    ($class:ident, $name:literal, $index:ident, $writer:ident, $entry:ident, { $($methods:tt)* }) => {
        index_class!($class, $name, $index, $writer, $entry, $writer::close, {
            #[new]
            #[pyo3(signature = (path, base_offset=None, *, writable=false, max_index_size=None))]
            fn new(
                py: Python<'_>,
                path: PathBuf,
                base_offset: Option<i64>,
                writable: bool,
                max_index_size: Option<i64>,
            ) -> PyResult<Self> {
                let size = size(writable, max_index_size).map_err(|wrong| to_python(py, wrong))?;
                let Some(size) = size else { return Self::read(py, path, base_offset) };
                let open = |directory: &Directory, name: &str| {
                    $writer::open(directory, name, base(name, base_offset)?, size)
                };
                IndexHandle::writing(py, $name, path, open).map(Self)
            }

            #[getter]
            fn max_entries(&self, py: Python<'_>) -> PyResult<u64> {
                self.0.ask(py, |index| Ok(index.max_entries()))
            }

            #[getter]
            fn max_index_size(&self, py: Python<'_>) -> PyResult<u64> {
                self.0.ask(py, |index| Ok(index.max_index_size()))
            }

            #[getter]
            fn is_full(&self, py: Python<'_>) -> PyResult<bool> {
                self.0.ask(py, |index| Ok(index.is_full()))
            }

            #[getter]
            fn last_entry(&self, py: Python<'_>) -> PyResult<$entry> {
                self.0.ask(py, |index| Ok(index.last_entry())).map(Into::into)
            }

            fn resize(&self, py: Python<'_>, max_index_size: i64) -> PyResult<bool> {
                self.0.change(py, |index| index.resize(bytes(max_index_size)?))
            }

            fn trim(&self, py: Python<'_>) -> PyResult<bool> {
                self.0.change(py, $writer::trim)
            }

            $($methods)*
        });
    };
}

preallocated_class!(PyOffsetIndex, "OffsetIndex", OffsetIndex, OffsetIndexWriter, PyOffsetPosition, {
    #[pyo3(signature = (target, method=None))]
    fn lookup(&self, py: Python<'_>, target: i64, method: Option<&str>) -> PyResult<PyOffsetPosition> {
        let method = arguments::method(py, method)?;
        self.0.ask(py, |index| index.lookup(target, method)).map(Into::into)
    }

    #[pyo3(signature = (target, method=None))]
    fn slot_range(&self, py: Python<'_>, target: i64, method: Option<&str>) -> PyResult<(i64, i64)> {
        let method = arguments::method(py, method)?;
        self.0.ask(py, |index| index.slot_range(target, method))
    }

    #[pyo3(signature = (target, method=None))]
    fn trace(&self, py: Python<'_>, target: i64, method: Option<&str>) -> PyResult<Vec<u64>> {
        let method = arguments::method(py, method)?;
        self.0.ask(py, |index| index.trace(target, method))
    }

    fn upper_bound(
        &self,
        py: Python<'_>,
        position: i32,
        fetch_size: i32,
    ) -> PyResult<Option<PyOffsetPosition>> {
        Ok(self.0.ask(py, |index| index.upper_bound(position, fetch_size))?.map(Into::into))
    }

    fn append(&self, py: Python<'_>, offset: i64, position: i32) -> PyResult<()> {
        self.0.change(py, |index| index.append(offset, position))
    }
});

preallocated_class!(PyTimeIndex, "TimeIndex", TimeIndex, TimeIndexWriter, PyTimestampOffset, {
    #[pyo3(signature = (target, method=None))]
    fn lookup(
        &self,
        py: Python<'_>,
        target: arguments::Time,
        method: Option<&str>,
    ) -> PyResult<PyTimestampOffset> {
        let method = arguments::method(py, method)?;
        self.0.ask(py, |index| index.lookup(target.0, method)).map(Into::into)
    }

    #[pyo3(signature = (target, method=None))]
    fn slot_range(
        &self,
        py: Python<'_>,
        target: arguments::Time,
        method: Option<&str>,
    ) -> PyResult<(i64, i64)> {
        let method = arguments::method(py, method)?;
        self.0.ask(py, |index| index.slot_range(target.0, method))
    }

    #[pyo3(signature = (target, method=None))]
    fn trace(&self, py: Python<'_>, target: arguments::Time, method: Option<&str>) -> PyResult<Vec<u64>> {
        let method = arguments::method(py, method)?;
        self.0.ask(py, |index| index.trace(target.0, method))
    }

    #[pyo3(signature = (timestamp, offset, skip_full_check=false))]
    fn maybe_append(
        &self,
        py: Python<'_>,
        timestamp: arguments::Time,
        offset: i64,
        skip_full_check: bool,
    ) -> PyResult<bool> {
        self.0.change(py, |index| index.maybe_append(timestamp.0, offset, skip_full_check))
    }
});

index_class!(
    PyTransactionIndex,
    "TransactionIndex",
    TransactionIndex,
    TransactionIndexWriter,
    PyAbortedTransaction,
    |writer: TransactionIndexWriter| {
        drop(writer);
        Ok(())
    },
    {
        #[new]
        #[pyo3(signature = (path, base_offset=None, *, writable=false))]
        fn new(py: Python<'_>, path: PathBuf, base_offset: Option<i64>, writable: bool) -> PyResult<Self> {
            if !writable {
                return Self::read(py, path, base_offset);
            }
            let open = |directory: &Directory, name: &str| {
                TransactionIndexWriter::open(directory, name, base(name, base_offset)?)
            };
            IndexHandle::writing(py, "TransactionIndex", path, open).map(Self)
        }

        #[pyo3(signature = (aborted=None, /, *, producer_id=None, first_offset=None, last_offset=None, last_stable_offset=None))]
        fn append(
            &self,
            py: Python<'_>,
            aborted: Option<&Bound<'_, PyAbortedTransaction>>,
            producer_id: Option<i64>,
            first_offset: Option<i64>,
            last_offset: Option<i64>,
            last_stable_offset: Option<i64>,
        ) -> PyResult<()> {
            let entry = match (aborted, producer_id, first_offset, last_offset, last_stable_offset) {
                (Some(aborted), None, None, None, None) => aborted.get().into(),
                (
                    None,
                    Some(producer_id),
                    Some(first_offset),
                    Some(last_offset),
                    Some(last_stable_offset),
                ) => AbortedTransaction { producer_id, first_offset, last_offset, last_stable_offset },
                _ => {
                    return Err(PyTypeError::new_err(
                        "append takes an AbortedTransaction, or producer_id=, first_offset=, last_offset= and \
                         last_stable_offset=",
                    ));
                }
            };
            self.0.change(py, |index| index.append(entry))
        }

        #[getter]
        fn last_entry(&self, py: Python<'_>) -> PyResult<Option<PyAbortedTransaction>> {
            Ok(self.0.ask(py, TransactionIndex::last_entry)?.map(Into::into))
        }

        fn collect_aborted(
            &self,
            py: Python<'_>,
            fetch_offset: i64,
            upper_bound: i64,
        ) -> PyResult<(Vec<PyAbortedTransaction>, bool)> {
            let (aborted, complete) =
                self.0.ask(py, |index| index.collect_aborted(fetch_offset, upper_bound))?;
            Ok((aborted.into_iter().map(Into::into).collect(), complete))
        }
    }
);

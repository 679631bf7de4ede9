//! `OffsetIndex`, `TimeIndex` and `TransactionIndex`. The module `index_writers` has the classes that write.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

use super::arguments;
use super::enter::enter;
use super::index_handle::{IndexHandle, WriterHandle};
use super::results::{PyAbortedTransaction, PyOffsetPosition, PyTimestampOffset};
use crate::index::{
    OffsetIndex, OffsetIndexWriter, TimeIndex, TimeIndexWriter, TransactionIndex, TransactionIndexWriter,
};

pub(super) fn optional_base_offset(base_offset: Option<&Bound<'_, PyAny>>) -> PyResult<Option<i64>> {
    arguments::optional("base_offset", base_offset, arguments::offset)
}

/// Returns the n-th entry.
type EntryOf = dyn Fn(Python<'_>, u64) -> PyResult<Py<PyAny>> + Send + Sync;

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

/// Defines an index class with the methods that all three have: `PyO3` allows one block of methods for a
/// class. `$close` closes a writer.
macro_rules! index_class {
    ($class:ident, $name:literal, $index:ident, $writer:ident, $entry:ident, $close:expr, { $($methods:tt)* }) => {
        #[doc = stub_doc!($index)]
        #[pyclass(frozen, subclass, module = "cordwood", name = $name)]
        pub(super) struct $class(IndexHandle<$index, $writer>);

        impl $class {
            pub(super) fn of(index: Arc<$index>) -> Self {
                Self(IndexHandle::reading($name, index))
            }

            pub(super) fn of_writer(writer: &Arc<WriterHandle<$writer>>) -> Self {
                Self(IndexHandle::writing(writer))
            }
        }

        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(signature = (path, base_offset=None))]
            fn new(
                py: Python<'_>,
                path: &Bound<'_, PyAny>,
                base_offset: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Self> {
                let (path, base_offset) = (arguments::path(path)?, optional_base_offset(base_offset)?);
                // not mapped: another process may shorten the file
                enter(py, || $index::open(&path, base_offset, false)).map(|index| Self::of(Arc::new(index)))
            }

            #[doc = stub_doc!($index.path)]
            #[getter]
            fn path(&self, py: Python<'_>) -> PyResult<OsString> {
                self.0.read(py, |index| Ok(index.path().as_os_str().to_owned()))
            }

            #[doc = stub_doc!($index.base_offset)]
            #[getter]
            fn base_offset(&self, py: Python<'_>) -> PyResult<i64> {
                self.0.read(py, |index| Ok(index.base_offset()))
            }

            #[doc = stub_doc!($index.entry_size)]
            #[getter]
            fn entry_size(&self, py: Python<'_>) -> PyResult<u64> {
                self.0.read(py, |index| Ok(index.entry_size()))
            }

            #[doc = stub_doc!($index.entries)]
            #[getter]
            fn entries(&self, py: Python<'_>) -> PyResult<u64> {
                self.0.read(py, |index| Ok(index.entries()))
            }

            #[doc = stub_doc!($index.entry)]
            fn entry(&self, py: Python<'_>, n: &Bound<'_, PyAny>) -> PyResult<$entry> {
                let n = arguments::whole("n", "an entry's number, 0 or more", n)?;
                self.0.read(py, |index| index.entry(n)).map(Into::into)
            }

            #[doc = stub_doc!($index.sanity_check)]
            fn sanity_check(&self, py: Python<'_>) -> PyResult<()> {
                self.0.read(py, $index::sanity_check)
            }

            #[doc = stub_doc!($index.close)]
            fn close(&self, py: Python<'_>) -> PyResult<()> {
                self.0.close(py, $close)
            }

            fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
                Ok(usize::try_from(self.entries(py)?)?)
            }

            fn __iter__(&self, py: Python<'_>) -> PyResult<EntryIterator> {
                let index = self.0.get(py)?;
                let entries = index.read(py, |index| Ok(index.entries()))?;
                let entry = move |py: Python<'_>, n| {
                    let entry = index.read(py, |index| index.entry(n))?;
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
                let class = self.0.class();
                let shown = |index: &$index| {
                    Ok(format!("<{class} {} with {} entries>", index.path().display(), index.entries()))
                };
                match self.0.get(py).map(|index| index.read(py, shown)) {
                    Ok(Ok(shown)) => shown,
                    Ok(Err(_)) => format!("<{class} of the parent process>"),
                    Err(_) => format!("<{class}, closed>"),
                }
            }

            $($methods)*
        }
    };
}

/// The methods that an offset and a time index share too: they have a preallocated file and a search.
/// `$target` converts the target of a search.
macro_rules! searched_class {
    ($class:ident, $name:literal, $index:ident, $writer:ident, $entry:ident, $target:path, { $($methods:tt)* }) => {
        index_class!($class, $name, $index, $writer, $entry, $writer::close, {
            #[doc = stub_doc!($index.max_entries)]
            #[getter]
            fn max_entries(&self, py: Python<'_>) -> PyResult<u64> {
                self.0.read(py, |index| Ok(index.max_entries()))
            }

            #[doc = stub_doc!($index.max_index_size)]
            #[getter]
            fn max_index_size(&self, py: Python<'_>) -> PyResult<u64> {
                self.0.read(py, |index| Ok(index.max_index_size()))
            }

            #[doc = stub_doc!($index.is_full)]
            #[getter]
            fn is_full(&self, py: Python<'_>) -> PyResult<bool> {
                self.0.read(py, |index| Ok(index.is_full()))
            }

            #[doc = stub_doc!($index.last_entry)]
            #[getter]
            fn last_entry(&self, py: Python<'_>) -> PyResult<$entry> {
                self.0.read(py, |index| Ok(index.last_entry())).map(Into::into)
            }

            #[doc = stub_doc!($index.lookup)]
            #[pyo3(signature = (target, method=None))]
            fn lookup(
                &self,
                py: Python<'_>,
                target: &Bound<'_, PyAny>,
                method: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<$entry> {
                let (target, method) = ($target("target", target)?, arguments::method(method)?);
                self.0.read(py, |index| index.lookup(target, method)).map(Into::into)
            }

            #[doc = stub_doc!($index.slot_range)]
            #[pyo3(signature = (target, method=None))]
            fn slot_range(
                &self,
                py: Python<'_>,
                target: &Bound<'_, PyAny>,
                method: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<(i64, i64)> {
                let (target, method) = ($target("target", target)?, arguments::method(method)?);
                self.0.read(py, |index| index.slot_range(target, method))
            }

            #[doc = stub_doc!($index.trace)]
            #[pyo3(signature = (target, method=None))]
            fn trace(
                &self,
                py: Python<'_>,
                target: &Bound<'_, PyAny>,
                method: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Vec<u64>> {
                let (target, method) = ($target("target", target)?, arguments::method(method)?);
                self.0.read(py, |index| index.trace(target, method))
            }

            $($methods)*
        });
    };
}

/// A position or a size: Kafka has 32 bits for it.
pub(super) fn position(argument: &str, given: &Bound<'_, PyAny>) -> PyResult<i32> {
    arguments::whole(argument, "a whole number of bytes within 32 bits", given)
}

/// The target of a search of an offset index, which may be negative.
fn any_offset(argument: &str, given: &Bound<'_, PyAny>) -> PyResult<i64> {
    arguments::whole(argument, "a whole number within 64 bits", given)
}

searched_class!(
    PyOffsetIndex,
    "OffsetIndex",
    OffsetIndex,
    OffsetIndexWriter,
    PyOffsetPosition,
    any_offset,
    {
        #[doc = stub_doc!(OffsetIndex.fetch_upper_bound)]
        fn fetch_upper_bound(
            &self,
            py: Python<'_>,
            position: &Bound<'_, PyAny>,
            fetch_size: &Bound<'_, PyAny>,
        ) -> PyResult<Option<PyOffsetPosition>> {
            let (position, fetch_size) =
                (self::position("position", position)?, self::position("fetch_size", fetch_size)?);
            Ok(self.0.read(py, |index| index.fetch_upper_bound(position, fetch_size))?.map(Into::into))
        }
    }
);

searched_class!(
    PyTimeIndex,
    "TimeIndex",
    TimeIndex,
    TimeIndexWriter,
    PyTimestampOffset,
    arguments::milliseconds,
    {}
);

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
        #[doc = stub_doc!(TransactionIndex.last_entry)]
        #[getter]
        fn last_entry(&self, py: Python<'_>) -> PyResult<Option<PyAbortedTransaction>> {
            Ok(self.0.read(py, TransactionIndex::last_entry)?.map(Into::into))
        }

        #[doc = stub_doc!(TransactionIndex.collect_aborted)]
        fn collect_aborted(
            &self,
            py: Python<'_>,
            fetch_offset: &Bound<'_, PyAny>,
            upper_bound: &Bound<'_, PyAny>,
        ) -> PyResult<(Vec<PyAbortedTransaction>, bool)> {
            let fetch_offset = arguments::offset("fetch_offset", fetch_offset)?;
            let upper_bound = arguments::offset("upper_bound", upper_bound)?;
            let (aborted, complete) =
                self.0.read(py, |index| index.collect_aborted(fetch_offset, upper_bound))?;
            Ok((aborted.into_iter().map(Into::into).collect(), complete))
        }
    }
);

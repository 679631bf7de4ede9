//! `OffsetIndex`, `TimeIndex` and `TransactionIndex`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::arguments::{self, Defaulted, LEFT_OUT, wrong_type};
use super::enter::enter;
use super::error::to_python;
use super::index_handle::IndexHandle;
use super::results::{PyAbortedTransaction, PyOffsetPosition, PyTimestampOffset, aborted_transaction};
use crate::error::{Error, Result};
use crate::fs::Directory;
use crate::index::{
    OffsetIndex, OffsetIndexWriter, TimeIndex, TimeIndexWriter, TransactionIndex, TransactionIndexWriter,
    base_offset_of,
};

/// Kafka's default for `segment.index.bytes`.
const MAX_INDEX_SIZE: u64 = 10 << 20;

/// The size for an index that is written, or `None` for one that is read.
fn size(
    py: Python<'_>,
    is_writable: bool,
    max_index_size: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<u64>> {
    match (is_writable, max_index_size) {
        (false, None) => Ok(None),
        (false, Some(_)) => {
            let wrong = Error::config("max_index_size", "writable=True with it", "writable=False");
            Err(to_python(py, wrong))
        }
        (true, None) => Ok(Some(MAX_INDEX_SIZE)),
        (true, Some(size)) => bytes(size).map(Some),
    }
}

fn bytes(size: &Bound<'_, PyAny>) -> PyResult<u64> {
    arguments::whole("max_index_size", "0 or more bytes", size)
}

fn given_base(base_offset: Option<&Bound<'_, PyAny>>) -> PyResult<Option<i64>> {
    base_offset.map(|given| arguments::offset("base_offset", given)).transpose()
}

/// The given base offset, else the digits that the file's name begins with.
fn base(name: &str, base_offset: Option<i64>) -> Result<i64> {
    base_offset.map_or_else(|| base_offset_of(Path::new(name)), Ok)
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
        #[doc = stub_doc!($index)]
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
            #[doc = stub_doc!($index.path)]
            #[getter]
            fn path(&self, py: Python<'_>) -> PyResult<OsString> {
                self.0.ask(py, |index| Ok(index.path().as_os_str().to_owned()))
            }

            #[doc = stub_doc!($index.base_offset)]
            #[getter]
            fn base_offset(&self, py: Python<'_>) -> PyResult<i64> {
                self.0.ask(py, |index| Ok(index.base_offset()))
            }

            #[doc = stub_doc!($index.entry_size)]
            #[getter]
            fn entry_size(&self, py: Python<'_>) -> PyResult<u64> {
                self.0.ask(py, |index| Ok(index.entry_size()))
            }

            #[doc = stub_doc!($index.entries)]
            #[getter]
            fn entries(&self, py: Python<'_>) -> PyResult<u64> {
                self.0.ask(py, |index| Ok(index.entries()))
            }

            #[doc = stub_doc!($index.entry)]
            fn entry(&self, py: Python<'_>, n: &Bound<'_, PyAny>) -> PyResult<$entry> {
                let n = arguments::whole("n", "an entry's number, 0 or more", n)?;
                self.0.ask(py, |index| index.entry(n)).map(Into::into)
            }

            #[doc = stub_doc!($index.sanity_check)]
            fn sanity_check(&self, py: Python<'_>) -> PyResult<()> {
                self.0.ask(py, $index::sanity_check)
            }

            #[doc = stub_doc!($index.truncate_to)]
            fn truncate_to(&self, py: Python<'_>, offset: &Bound<'_, PyAny>) -> PyResult<()> {
                let offset = arguments::offset("offset", offset)?;
                self.0.change(py, |index| index.truncate_to(offset))
            }

            #[doc = stub_doc!($index.reset)]
            fn reset(&self, py: Python<'_>) -> PyResult<()> {
                self.0.change(py, $writer::reset)
            }

            #[doc = stub_doc!($index.flush)]
            fn flush(&self, py: Python<'_>) -> PyResult<()> {
                self.0.change(py, $writer::flush)
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
            #[pyo3(signature = (path, base_offset=None, *, writable=LEFT_OUT, max_index_size=None),
                text_signature = "(path, base_offset=None, *, writable=False, max_index_size=None)")]
            fn new(
                py: Python<'_>,
                path: &Bound<'_, PyAny>,
                base_offset: Option<&Bound<'_, PyAny>>,
                writable: Defaulted<'_, '_>,
                max_index_size: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<Self> {
                let (path, base_offset) = (arguments::path(path)?, given_base(base_offset)?);
                let size = size(py, writable.flag("writable")?, max_index_size)?;
                let Some(size) = size else { return Self::read(py, path, base_offset) };
                let open = |directory: &Directory, name: &str| {
                    $writer::open(directory, name, base(name, base_offset)?, size)
                };
                IndexHandle::writing(py, $name, path, open).map(Self)
            }

            #[doc = stub_doc!($index.max_entries)]
            #[getter]
            fn max_entries(&self, py: Python<'_>) -> PyResult<u64> {
                self.0.ask(py, |index| Ok(index.max_entries()))
            }

            #[doc = stub_doc!($index.max_index_size)]
            #[getter]
            fn max_index_size(&self, py: Python<'_>) -> PyResult<u64> {
                self.0.ask(py, |index| Ok(index.max_index_size()))
            }

            #[doc = stub_doc!($index.is_full)]
            #[getter]
            fn is_full(&self, py: Python<'_>) -> PyResult<bool> {
                self.0.ask(py, |index| Ok(index.is_full()))
            }

            #[doc = stub_doc!($index.last_entry)]
            #[getter]
            fn last_entry(&self, py: Python<'_>) -> PyResult<$entry> {
                self.0.ask(py, |index| Ok(index.last_entry())).map(Into::into)
            }

            #[doc = stub_doc!($index.resize)]
            fn resize(&self, py: Python<'_>, max_index_size: &Bound<'_, PyAny>) -> PyResult<bool> {
                let size = bytes(max_index_size)?;
                self.0.change(py, |index| index.resize(size))
            }

            #[doc = stub_doc!($index.trim)]
            fn trim(&self, py: Python<'_>) -> PyResult<bool> {
                self.0.change(py, $writer::trim)
            }

            $($methods)*
        });
    };
}

/// Kafka's positions and sizes are of this width.
const POSITION: &str = "a whole number of bytes within 32 bits";

/// Any key may be searched for.
fn offset_key(target: &Bound<'_, PyAny>) -> PyResult<i64> {
    arguments::whole("target", "a whole number within 64 bits", target)
}

preallocated_class!(PyOffsetIndex, "OffsetIndex", OffsetIndex, OffsetIndexWriter, PyOffsetPosition, {
    #[doc = stub_doc!(OffsetIndex.lookup)]
    #[pyo3(signature = (target, method=None))]
    fn lookup(
        &self,
        py: Python<'_>,
        target: &Bound<'_, PyAny>,
        method: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyOffsetPosition> {
        let (target, method) = (offset_key(target)?, arguments::method(method)?);
        self.0.ask(py, |index| index.lookup(target, method)).map(Into::into)
    }

    #[doc = stub_doc!(OffsetIndex.slot_range)]
    #[pyo3(signature = (target, method=None))]
    fn slot_range(
        &self,
        py: Python<'_>,
        target: &Bound<'_, PyAny>,
        method: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(i64, i64)> {
        let (target, method) = (offset_key(target)?, arguments::method(method)?);
        self.0.ask(py, |index| index.slot_range(target, method))
    }

    #[doc = stub_doc!(OffsetIndex.trace)]
    #[pyo3(signature = (target, method=None))]
    fn trace(
        &self,
        py: Python<'_>,
        target: &Bound<'_, PyAny>,
        method: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<u64>> {
        let (target, method) = (offset_key(target)?, arguments::method(method)?);
        self.0.ask(py, |index| index.trace(target, method))
    }

    #[doc = stub_doc!(OffsetIndex.fetch_upper_bound)]
    fn fetch_upper_bound(
        &self,
        py: Python<'_>,
        position: &Bound<'_, PyAny>,
        fetch_size: &Bound<'_, PyAny>,
    ) -> PyResult<Option<PyOffsetPosition>> {
        let position = arguments::whole("position", POSITION, position)?;
        let fetch_size = arguments::whole("fetch_size", POSITION, fetch_size)?;
        Ok(self.0.ask(py, |index| index.fetch_upper_bound(position, fetch_size))?.map(Into::into))
    }

    #[doc = stub_doc!(OffsetIndex.append)]
    fn append(&self, py: Python<'_>, offset: &Bound<'_, PyAny>, position: &Bound<'_, PyAny>) -> PyResult<()> {
        let offset = arguments::offset("offset", offset)?;
        let position = arguments::whole("position", POSITION, position)?;
        self.0.change(py, |index| index.append(offset, position))
    }
});

preallocated_class!(PyTimeIndex, "TimeIndex", TimeIndex, TimeIndexWriter, PyTimestampOffset, {
    #[doc = stub_doc!(TimeIndex.lookup)]
    #[pyo3(signature = (target, method=None))]
    fn lookup(
        &self,
        py: Python<'_>,
        target: &Bound<'_, PyAny>,
        method: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTimestampOffset> {
        let (target, method) = (arguments::time("target", target)?, arguments::method(method)?);
        self.0.ask(py, |index| index.lookup(target, method)).map(Into::into)
    }

    #[doc = stub_doc!(TimeIndex.slot_range)]
    #[pyo3(signature = (target, method=None))]
    fn slot_range(
        &self,
        py: Python<'_>,
        target: &Bound<'_, PyAny>,
        method: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(i64, i64)> {
        let (target, method) = (arguments::time("target", target)?, arguments::method(method)?);
        self.0.ask(py, |index| index.slot_range(target, method))
    }

    #[doc = stub_doc!(TimeIndex.trace)]
    #[pyo3(signature = (target, method=None))]
    fn trace(
        &self,
        py: Python<'_>,
        target: &Bound<'_, PyAny>,
        method: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<u64>> {
        let (target, method) = (arguments::time("target", target)?, arguments::method(method)?);
        self.0.ask(py, |index| index.trace(target, method))
    }

    #[doc = stub_doc!(TimeIndex.maybe_append)]
    #[pyo3(signature = (timestamp, offset, skip_full_check=LEFT_OUT),
        text_signature = "($self, timestamp, offset, skip_full_check=False)")]
    fn maybe_append(
        &self,
        py: Python<'_>,
        timestamp: &Bound<'_, PyAny>,
        offset: &Bound<'_, PyAny>,
        skip_full_check: Defaulted<'_, '_>,
    ) -> PyResult<bool> {
        let timestamp = arguments::time("timestamp", timestamp)?;
        let offset = arguments::offset("offset", offset)?;
        let skip_full_check = skip_full_check.flag("skip_full_check")?;
        self.0.change(py, |index| index.maybe_append(timestamp, offset, skip_full_check))
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
        #[pyo3(signature = (path, base_offset=None, *, writable=LEFT_OUT),
            text_signature = "(path, base_offset=None, *, writable=False)")]
        fn new(
            py: Python<'_>,
            path: &Bound<'_, PyAny>,
            base_offset: Option<&Bound<'_, PyAny>>,
            writable: Defaulted<'_, '_>,
        ) -> PyResult<Self> {
            let (path, base_offset) = (arguments::path(path)?, given_base(base_offset)?);
            if !writable.flag("writable")? {
                return Self::read(py, path, base_offset);
            }
            let open = |directory: &Directory, name: &str| {
                TransactionIndexWriter::open(directory, name, base(name, base_offset)?)
            };
            IndexHandle::writing(py, "TransactionIndex", path, open).map(Self)
        }

        #[doc = stub_doc!(TransactionIndex.append)]
        #[pyo3(signature = (aborted=None, /, *, producer_id=None, first_offset=None, last_offset=None, last_stable_offset=None))]
        fn append(
            &self,
            py: Python<'_>,
            aborted: Option<&Bound<'_, PyAny>>,
            producer_id: Option<&Bound<'_, PyAny>>,
            first_offset: Option<&Bound<'_, PyAny>>,
            last_offset: Option<&Bound<'_, PyAny>>,
            last_stable_offset: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<()> {
            let numbers = [
                ("producer_id", producer_id),
                ("first_offset", first_offset),
                ("last_offset", last_offset),
                ("last_stable_offset", last_stable_offset),
            ];
            let refused = |argument: &str, found: &str| {
                PyTypeError::new_err(format!(
                    "{argument}: expected an AbortedTransaction, or producer_id=, first_offset=, last_offset= and \
                     last_stable_offset=, found {found}"
                ))
            };
            let entry = match (aborted, numbers.map(|(_, number)| number)) {
                (Some(aborted), [None, None, None, None]) => {
                    let entry = aborted.cast::<PyAbortedTransaction>();
                    entry.map_err(|_| wrong_type("aborted", "an AbortedTransaction", aborted))?.get().into()
                }
                (None, [Some(producer), Some(first), Some(last), Some(stable)]) => {
                    aborted_transaction(producer, first, last, stable)?
                }
                (Some(_), _) => return Err(refused("aborted", "both")),
                (None, [None, None, None, None]) => return Err(refused("aborted", "neither")),
                (None, _) => {
                    let missing = numbers.iter().find(|(_, number)| number.is_none());
                    return Err(refused(missing.map_or("aborted", |(name, _)| name), "some of them only"));
                }
            };
            self.0.change(py, |index| index.append(entry))
        }

        #[doc = stub_doc!(TransactionIndex.last_entry)]
        #[getter]
        fn last_entry(&self, py: Python<'_>) -> PyResult<Option<PyAbortedTransaction>> {
            Ok(self.0.ask(py, TransactionIndex::last_entry)?.map(Into::into))
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
                self.0.ask(py, |index| index.collect_aborted(fetch_offset, upper_bound))?;
            Ok((aborted.into_iter().map(Into::into).collect(), complete))
        }
    }
);

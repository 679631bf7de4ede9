//! `OffsetIndexWriter`, `TimeIndexWriter` and `TransactionIndexWriter`, each a subclass of its index.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::arguments::{self, Defaulted, LEFT_OUT, flag, wrong_type};
use super::index::{PyOffsetIndex, PyTimeIndex, PyTransactionIndex, optional_base_offset, position};
use super::index_handle::WriterHandle;
use super::results::{PyAbortedTransaction, aborted_transaction};
use crate::config::LogConfig;
use crate::fs::names::FileKind;
use crate::index::{OffsetIndexWriter, TimeIndexWriter, TransactionIndexWriter};

fn index_size(argument: &str, given: &Bound<'_, PyAny>) -> PyResult<u64> {
    arguments::whole(argument, "0 or more bytes", given)
}

/// Defines a writer with the methods that all three have.
macro_rules! writer_class {
    ($class:ident, $name:literal, $writer:ident, $index:ident, { $($methods:tt)* }) => {
        #[doc = stub_doc!($writer)]
        #[pyclass(frozen, extends = $index, module = "cordwood", name = $name)]
        pub(super) struct $class(Arc<WriterHandle<$writer>>);

        #[pymethods]
        impl $class {
            #[doc = stub_doc!($writer.truncate_to)]
            fn truncate_to(&self, py: Python<'_>, offset: &Bound<'_, PyAny>) -> PyResult<()> {
                let offset = arguments::offset("offset", offset)?;
                self.0.write(py, |index| index.truncate_to(offset))
            }

            #[doc = stub_doc!($writer.reset)]
            fn reset(&self, py: Python<'_>) -> PyResult<()> {
                self.0.write(py, $writer::reset)
            }

            #[doc = stub_doc!($writer.flush)]
            fn flush(&self, py: Python<'_>) -> PyResult<()> {
                self.0.write(py, $writer::flush)
            }

            $($methods)*
        }
    };
}

/// The methods that the writers of an offset and a time index share too.
macro_rules! preallocated_class {
    ($class:ident, $name:literal, $writer:ident, $index:ident, $kind:ident, { $($methods:tt)* }) => {
        writer_class!($class, $name, $writer, $index, {
            #[new]
            #[pyo3(signature = (path, *, base_offset=None, max_index_size=LEFT_OUT),
                text_signature = "(path, *, base_offset=None, max_index_size=10485760)")]
            fn new(
                py: Python<'_>,
                path: &Bound<'_, PyAny>,
                base_offset: Option<&Bound<'_, PyAny>>,
                max_index_size: Defaulted<'_, '_>,
            ) -> PyResult<PyClassInitializer<Self>> {
                let file = (arguments::path(path)?, optional_base_offset(base_offset)?);
                let default = LogConfig::default().segment_index_bytes;
                let size = max_index_size.or("max_index_size", default.into(), index_size)?;
                let writer = WriterHandle::open(py, $name, FileKind::$kind, file, |directory, name, base_offset| {
                    $writer::open(directory, name, base_offset, size)
                })?;
                Ok(PyClassInitializer::from($index::of_writer(&writer)).add_subclass(Self(writer)))
            }

            #[doc = stub_doc!($writer.resize)]
            fn resize(&self, py: Python<'_>, max_index_size: &Bound<'_, PyAny>) -> PyResult<bool> {
                let size = index_size("max_index_size", max_index_size)?;
                self.0.write(py, |index| index.resize(size))
            }

            #[doc = stub_doc!($writer.trim)]
            fn trim(&self, py: Python<'_>) -> PyResult<bool> {
                self.0.write(py, $writer::trim)
            }

            $($methods)*
        });
    };
}

preallocated_class!(
    PyOffsetIndexWriter,
    "OffsetIndexWriter",
    OffsetIndexWriter,
    PyOffsetIndex,
    OffsetIndex,
    {
        #[doc = stub_doc!(OffsetIndexWriter.append)]
        fn append(
            &self,
            py: Python<'_>,
            offset: &Bound<'_, PyAny>,
            position: &Bound<'_, PyAny>,
        ) -> PyResult<()> {
            let offset = arguments::offset("offset", offset)?;
            let position = self::position("position", position)?;
            self.0.write(py, |index| index.append(offset, position))
        }
    }
);

preallocated_class!(PyTimeIndexWriter, "TimeIndexWriter", TimeIndexWriter, PyTimeIndex, TimeIndex, {
    #[doc = stub_doc!(TimeIndexWriter.maybe_append)]
    #[pyo3(signature = (timestamp, offset, skip_full_check=LEFT_OUT),
        text_signature = "($self, timestamp, offset, skip_full_check=False)")]
    fn maybe_append(
        &self,
        py: Python<'_>,
        timestamp: &Bound<'_, PyAny>,
        offset: &Bound<'_, PyAny>,
        skip_full_check: Defaulted<'_, '_>,
    ) -> PyResult<bool> {
        let timestamp = arguments::milliseconds("timestamp", timestamp)?;
        let offset = arguments::offset("offset", offset)?;
        let skip_full_check = skip_full_check.or("skip_full_check", false, flag)?;
        self.0.write(py, |index| index.maybe_append(timestamp, offset, skip_full_check))
    }
});

writer_class!(
    PyTransactionIndexWriter,
    "TransactionIndexWriter",
    TransactionIndexWriter,
    PyTransactionIndex,
    {
        #[new]
        #[pyo3(signature = (path, *, base_offset=None))]
        fn new(
            py: Python<'_>,
            path: &Bound<'_, PyAny>,
            base_offset: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<PyClassInitializer<Self>> {
            let file = (arguments::path(path)?, optional_base_offset(base_offset)?);
            let writer = WriterHandle::open(
                py,
                "TransactionIndexWriter",
                FileKind::TransactionIndex,
                file,
                TransactionIndexWriter::open,
            )?;
            Ok(PyClassInitializer::from(PyTransactionIndex::of_writer(&writer)).add_subclass(Self(writer)))
        }

        #[doc = stub_doc!(TransactionIndexWriter.append)]
        #[pyo3(signature = (aborted=None, /, *, producer_id=None, first_offset=None, last_offset=None, last_stable_offset=None))]
        #[expect(clippy::too_many_arguments, reason = "they are Python's arguments")]
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
                    entry.map_err(|_| wrong_type("aborted", "an AbortedTransaction", aborted))?.get().0
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
            self.0.write(py, |index| index.append(entry))
        }
    }
);

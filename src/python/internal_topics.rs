//! The tables of internal topics.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};

use super::arguments::{self, Defaulted, LEFT_OUT, ON_DAMAGE, one_of, optional};
use super::arrow_export::{self, ArrowBatches};
use super::enter::enter;
use super::error;
use super::handle::log_options;
use super::results::PyDamagedRange;
use super::value_class::{pickled, unpickled};
use crate::error::Result;
use crate::inspect::internal_topics::{self, Cell, TableOptions};
use crate::log::OnDamage;

#[doc = stub_doc!(Table)]
#[pyclass(frozen, eq, module = "cordwood", name = "Table")]
#[derive(PartialEq)]
pub(super) struct PyTable(Arc<internal_topics::Table>);

impl PyTable {
    fn batches(&self, py: Python<'_>) -> PyResult<ArrowBatches> {
        let batches = py.detach(|| self.0.batches());
        let batches = batches.map_err(|wrong| pyo3::exceptions::PyValueError::new_err(wrong.to_string()))?;
        Ok(ArrowBatches { schema: self.0.schema(), batches })
    }
}

impl From<internal_topics::Table> for PyTable {
    fn from(table: internal_topics::Table) -> Self {
        Self(Arc::new(table))
    }
}

#[pymethods]
impl PyTable {
    #[doc = stub_doc!(Table.schema)]
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        arrow_export::schema(py, self.0.schema())
    }

    #[doc = stub_doc!(Table.column_names)]
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.column_names()
    }

    #[doc = stub_doc!(Table.damaged_ranges)]
    #[getter]
    fn damaged_ranges(&self) -> Vec<PyDamagedRange> {
        self.0.damaged_ranges().iter().cloned().map(Into::into).collect()
    }

    #[doc = stub_doc!(Table.to_arrow)]
    fn to_arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let ArrowBatches { schema, batches } = self.batches(py)?;
        arrow_export::table(py, schema, batches)
    }

    #[doc = stub_doc!(Table.to_pandas)]
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        error::import(py, "pandas", "pandas")?;
        self.to_arrow(py)?.call_method0("to_pandas")
    }

    #[doc = stub_doc!(Table.to_polars)]
    fn to_polars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let polars = error::import(py, "polars", "polars")?;
        polars.call_method1("DataFrame", (self.batches(py)?,))
    }

    #[doc = stub_doc!(Table.to_dicts)]
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        for row in self.0.rows() {
            rows.append(dict(py, row)?)?;
        }
        Ok(rows)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.batches(py)?.__arrow_c_stream__(py, requested_schema)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        pickled::<Self>(py, &*self.0)
    }

    #[staticmethod]
    fn _unpickled(py: Python<'_>, state: &str) -> PyResult<Self> {
        unpickled::<internal_topics::Table>(py, "Table", state).map(Into::into)
    }

    fn __repr__(&self) -> String {
        format!("<Table {} rows columns {}>", self.0.len(), self.0.column_names().join(" "))
    }
}

fn dict<'py>(py: Python<'py>, fields: Vec<(String, Cell<'_>)>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, cell) in fields {
        dict.set_item(name, object(py, cell)?)?;
    }
    Ok(dict)
}

fn object<'py>(py: Python<'py>, cell: Cell<'_>) -> PyResult<Bound<'py, PyAny>> {
    match cell {
        Cell::Null => Ok(py.None().into_bound(py)),
        Cell::Bool(value) => value.into_bound_py_any(py),
        Cell::Number(number) => number.into_bound_py_any(py),
        Cell::Float(number) => number.into_bound_py_any(py),
        Cell::Text(text) => text.into_bound_py_any(py),
        Cell::Bytes(bytes) => Ok(PyBytes::new(py, bytes).into_any()),
        Cell::List(cells) => {
            let list = PyList::empty(py);
            for cell in cells {
                list.append(object(py, cell)?)?;
            }
            Ok(list.into_any())
        }
        Cell::Struct(fields) => Ok(dict(py, fields)?.into_any()),
    }
}

/// The arguments that the functions share.
struct Arguments<'a, 'py> {
    groups: (&'static str, Option<&'a Bound<'py, PyAny>>),
    topics: Option<&'a Bound<'py, PyAny>>,
    on_damage: Defaulted<'a, 'py>,
    io: Defaulted<'a, 'py>,
    max_batch_bytes: Defaulted<'a, 'py>,
}

impl Arguments<'_, '_> {
    fn options(self) -> PyResult<TableOptions> {
        let (groups_name, groups) = self.groups;
        let list = |argument: &'static str, given: &Bound<'_, PyAny>| {
            arguments::names(argument, "a list of names, such as [\"orders\"]", given)
        };
        Ok(TableOptions {
            log: log_options(self.io, LEFT_OUT, self.max_batch_bytes)?,
            on_damage: self.on_damage.or("on_damage", OnDamage::Raise, one_of(&ON_DAMAGE))?,
            groups: optional(groups_name, groups, list)?,
            topics: optional("topics", self.topics, list)?,
        })
    }

    fn read(
        self,
        path: &Bound<'_, PyAny>,
        read: fn(&[PathBuf], &TableOptions) -> Result<internal_topics::Table>,
    ) -> PyResult<PyTable> {
        let paths = arguments::paths(path)?;
        let options = self.options()?;
        enter(path.py(), || read(&paths, &options)).map(Into::into)
    }
}

#[doc = stub_doc!(consumer_offsets)]
#[pyfunction]
#[pyo3(signature = (path, *, groups=None, topics=None, on_damage=LEFT_OUT, io=LEFT_OUT, max_batch_bytes=LEFT_OUT),
    text_signature = "(path, *, groups=None, topics=None, on_damage='raise', io='auto', max_batch_bytes=134217728)")]
pub(super) fn consumer_offsets(
    path: &Bound<'_, PyAny>,
    groups: Option<&Bound<'_, PyAny>>,
    topics: Option<&Bound<'_, PyAny>>,
    on_damage: Defaulted<'_, '_>,
    io: Defaulted<'_, '_>,
    max_batch_bytes: Defaulted<'_, '_>,
) -> PyResult<PyTable> {
    Arguments { groups: ("groups", groups), topics, on_damage, io, max_batch_bytes }
        .read(path, internal_topics::consumer_offsets)
}

#[doc = stub_doc!(consumer_groups)]
#[pyfunction]
#[pyo3(signature = (path, *, groups=None, on_damage=LEFT_OUT, io=LEFT_OUT, max_batch_bytes=LEFT_OUT),
    text_signature = "(path, *, groups=None, on_damage='raise', io='auto', max_batch_bytes=134217728)")]
pub(super) fn consumer_groups(
    path: &Bound<'_, PyAny>,
    groups: Option<&Bound<'_, PyAny>>,
    on_damage: Defaulted<'_, '_>,
    io: Defaulted<'_, '_>,
    max_batch_bytes: Defaulted<'_, '_>,
) -> PyResult<PyTable> {
    Arguments { groups: ("groups", groups), topics: None, on_damage, io, max_batch_bytes }
        .read(path, internal_topics::consumer_groups)
}

#[doc = stub_doc!(transactions)]
#[pyfunction]
#[pyo3(signature = (path, *, transactional_ids=None, on_damage=LEFT_OUT, io=LEFT_OUT, max_batch_bytes=LEFT_OUT),
    text_signature = "(path, *, transactional_ids=None, on_damage='raise', io='auto', max_batch_bytes=134217728)")]
pub(super) fn transactions(
    path: &Bound<'_, PyAny>,
    transactional_ids: Option<&Bound<'_, PyAny>>,
    on_damage: Defaulted<'_, '_>,
    io: Defaulted<'_, '_>,
    max_batch_bytes: Defaulted<'_, '_>,
) -> PyResult<PyTable> {
    Arguments {
        groups: ("transactional_ids", transactional_ids),
        topics: None,
        on_damage,
        io,
        max_batch_bytes,
    }
    .read(path, internal_topics::transactions)
}

#[doc = stub_doc!(open_transactions)]
#[pyfunction]
#[pyo3(signature = (path, *, topics=None, on_damage=LEFT_OUT, io=LEFT_OUT, max_batch_bytes=LEFT_OUT),
    text_signature = "(path, *, topics=None, on_damage='raise', io='auto', max_batch_bytes=134217728)")]
pub(super) fn open_transactions(
    path: &Bound<'_, PyAny>,
    topics: Option<&Bound<'_, PyAny>>,
    on_damage: Defaulted<'_, '_>,
    io: Defaulted<'_, '_>,
    max_batch_bytes: Defaulted<'_, '_>,
) -> PyResult<PyTable> {
    Arguments { groups: ("groups", None), topics, on_damage, io, max_batch_bytes }
        .read(path, internal_topics::open_transactions)
}

#[doc = stub_doc!(ClusterMetadata)]
#[pyclass(frozen, eq, module = "cordwood", name = "ClusterMetadata")]
#[derive(PartialEq)]
pub(super) struct PyClusterMetadata(internal_topics::ClusterMetadata);

/// The getters of the tables.
macro_rules! tables {
    ($($table:ident),+ $(,)?) => {
        #[pymethods]
        impl PyClusterMetadata {
            $(
                #[doc = stub_doc!(ClusterMetadata.$table)]
                #[getter]
                fn $table(&self) -> PyTable {
                    self.0.$table.clone().into()
                }
            )+

            #[doc = stub_doc!(ClusterMetadata.offset)]
            #[getter]
            fn offset(&self) -> i64 {
                self.0.offset
            }

            #[doc = stub_doc!(ClusterMetadata.snapshot)]
            #[getter]
            fn snapshot(&self) -> Option<OsString> {
                self.0.snapshot.clone().map(Into::into)
            }

            fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                pickled::<Self>(py, &self.0)
            }

            #[staticmethod]
            fn _unpickled(py: Python<'_>, state: &str) -> PyResult<Self> {
                unpickled(py, "ClusterMetadata", state).map(Self)
            }

            fn __repr__(&self) -> String {
                let counts = [$((stringify!($table), self.0.$table.len())),+];
                let counts: Vec<_> = counts.iter().map(|(name, rows)| format!("{name} {rows}")).collect();
                format!("<ClusterMetadata offset {}: {}>", self.0.offset, counts.join(", "))
            }
        }
    };
}

tables!(
    topics,
    partitions,
    brokers,
    controllers,
    configs,
    features,
    acls,
    client_quotas,
    scram_credentials,
    delegation_tokens,
    producer_ids,
    errors,
);

#[doc = stub_doc!(metadata)]
#[pyfunction]
#[pyo3(signature = (path, *, topics=None, on_damage=LEFT_OUT, io=LEFT_OUT, max_batch_bytes=LEFT_OUT), text_signature = "(path, *, topics=None, on_damage='raise', io='auto', max_batch_bytes=134217728)")]
pub(super) fn metadata(
    path: &Bound<'_, PyAny>,
    topics: Option<&Bound<'_, PyAny>>,
    on_damage: Defaulted<'_, '_>,
    io: Defaulted<'_, '_>,
    max_batch_bytes: Defaulted<'_, '_>,
) -> PyResult<PyClusterMetadata> {
    let paths = arguments::paths(path)?;
    let options = Arguments { groups: ("groups", None), topics, on_damage, io, max_batch_bytes }.options()?;
    enter(path.py(), || internal_topics::metadata(&paths, &options)).map(PyClusterMetadata)
}

#[doc = stub_doc!(metadata_records)]
#[pyfunction]
#[pyo3(signature = (path, *, on_damage=LEFT_OUT, io=LEFT_OUT, max_batch_bytes=LEFT_OUT), text_signature = "(path, *, on_damage='raise', io='auto', max_batch_bytes=134217728)")]
pub(super) fn metadata_records(
    path: &Bound<'_, PyAny>,
    on_damage: Defaulted<'_, '_>,
    io: Defaulted<'_, '_>,
    max_batch_bytes: Defaulted<'_, '_>,
) -> PyResult<PyTable> {
    Arguments { groups: ("groups", None), topics: None, on_damage, io, max_batch_bytes }
        .read(path, internal_topics::metadata_records)
}

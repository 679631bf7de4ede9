//! `diff`, the comparison of two replicas, and its results.

use std::ffi::OsString;

use pyo3::prelude::*;

use super::arguments::{self, Defaulted, LEFT_OUT, optional};
use super::enter::{SIGNALS, enter};
use super::results::PyDamagedRange;
use super::value_class::value_class;
use crate::inspect::diff::{DiffOptions, Difference, FirstDifference, OtherForm, RecordPlace, Replica};
use crate::record::MAX_BATCH_BYTES;

#[doc = stub_doc!(diff)]
#[pyfunction]
#[pyo3(signature = (a, b, *, start_offset=None, end_offset=None, max_batch_bytes=LEFT_OUT),
    text_signature = "(a, b, *, start_offset=None, end_offset=None, max_batch_bytes=134217728)")]
pub(super) fn diff(
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    start_offset: Option<&Bound<'_, PyAny>>,
    end_offset: Option<&Bound<'_, PyAny>>,
    max_batch_bytes: Defaulted<'_, '_>,
) -> PyResult<PyDifference> {
    let (py, a, b) = (a.py(), arguments::path_of("a", a)?, arguments::path_of("b", b)?);
    let options = DiffOptions {
        start_offset: optional("start_offset", start_offset, arguments::offset)?,
        end_offset: optional("end_offset", end_offset, arguments::offset)?,
        max_batch_bytes: max_batch_bytes.or("max_batch_bytes", MAX_BATCH_BYTES, arguments::positive)?,
        interrupt: SIGNALS,
    };
    enter(py, || Difference::between(&a, &b, &options)).map(Into::into)
}

/// What two replicas have, as a tuple of Python.
fn both<T: Clone, C: From<T>>([a, b]: &[T; 2]) -> (C, C) {
    (a.clone().into(), b.clone().into())
}

/// What two replicas may have.
fn both_optional<T: Clone, C: From<T>>([a, b]: &[Option<T>; 2]) -> (Option<C>, Option<C>) {
    (a.clone().map(Into::into), b.clone().map(Into::into))
}

value_class! {
    "Difference", PyDifference(Difference),
    attributes {
        is_same: bool = Difference::is_same,
        replicas: (PyReplica, PyReplica) = |found| both(&found.replicas),
        start_offset: i64,
        end_offset: i64,
        same_batches: u64,
        same_records: u64,
        other_form: Option<PyOtherForm> = |found| found.other_form.map(Into::into),
        first: Option<PyFirstDifference> = |found| found.first.clone().map(Into::into),
    }
    methods {
        fn __repr__(&self) -> String {
            let Difference { start_offset, end_offset, first, .. } = &self.0;
            let is_same = if self.0.is_same() { "True" } else { "False" };
            let field = first.as_ref().map_or("None".to_owned(), |first| format!("'{}'", first.field.code()));
            format!(
                "Difference(is_same={is_same}, start_offset={start_offset}, end_offset={end_offset}, field={field})"
            )
        }
    }
}

value_class! {
    "Replica", PyReplica(Replica),
    repr {
        path: OsString = |replica| replica.path.clone().into(),
        log_start_offset: i64,
        log_end_offset: i64,
        truncated_to: Option<i64>,
    }
    more {
        leader_epochs: Vec<(i32, i64)>,
        warnings: Vec<String>,
    }
}

value_class! {
    "OtherForm", PyOtherForm(OtherForm),
    repr {
        offset: i64,
        batches: bool,
        codec: bool,
        leader_epoch: bool,
        producer: bool,
        header: bool,
        bytes: bool,
    }
}

value_class! {
    "FirstDifference", PyFirstDifference(FirstDifference),
    repr {
        offset: i64,
        field: &'static str = |first| first.field.code(),
        cause: &'static str = |first| first.cause.code(),
    }
    more {
        places: (Option<PyRecordPlace>, Option<PyRecordPlace>) = |first| both_optional(&first.places),
        different_byte: Option<(u64, u64)> = |first| first.different_byte.map(Into::into),
        damage: (Option<PyDamagedRange>, Option<PyDamagedRange>) = |first| both_optional(&first.damage),
    }
}

value_class! {
    "RecordPlace", PyRecordPlace(RecordPlace),
    repr {
        file: OsString = |place| place.file.clone().into(),
        position: u64,
        batch_base_offset: i64,
        leader_epoch: Option<i32>,
        timestamp: Option<i64> = |place| Some(place.timestamp).filter(|timestamp| *timestamp != -1),
    }
    more {
        key: Option<Vec<u8>>,
        value: Option<Vec<u8>>,
    }
}

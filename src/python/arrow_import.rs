//! Columns from Python through the Arrow `PyCapsule` interface.

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use super::arguments::wrong_type;
use super::error;
use crate::arrow::unreadable;

/// The stream that an object exports: a `pyarrow` table or reader, a dataframe, a scan.
pub(super) fn stream(given: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    if !given.hasattr("__arrow_c_stream__")? {
        let wanted = "something with __arrow_c_stream__ (a pyarrow Table or RecordBatchReader, a Polars DataFrame, a scan)";
        return Err(wrong_type("table", wanted, given));
    }
    let capsule = given.call_method0("__arrow_c_stream__")?;
    let no_stream =
        || wrong_type("table", "an ArrowArrayStream in the capsule of __arrow_c_stream__", &capsule);
    let held = capsule.cast::<PyCapsule>().map_err(|_| no_stream())?;
    let pointer = held.pointer_checked(Some(c"arrow_array_stream")).map_err(|_| no_stream())?;
    let pointer = pointer.cast::<FFI_ArrowArrayStream>();
    if !pointer.is_aligned() {
        return Err(no_stream());
    }
    #[expect(unsafe_code, reason = "moving a C stream out of its capsule; S5 of SAFETY.md")]
    // SAFETY: S5: a capsule of this name holds an initialised `ArrowArrayStream`, or a released one, by the
    // Arrow PyCapsule interface; it is alive, and no Python code runs while the stream is moved out,
    // which leaves a released stream in it.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
    RecordBatchStreamReader::try_new(stream).map_err(|wrong| error::to_python(given.py(), unreadable(&wrong)))
}

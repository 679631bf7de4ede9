//! `FlushMode`.

use pyo3::prelude::*;

use super::arguments::{Defaulted, LEFT_OUT, optional, positive, text, whole};
use super::error;
use crate::writer::FlushMode;

#[doc = stub_doc!(FlushMode)]
#[pyclass(frozen, eq, hash, module = "cordwood", name = "FlushMode")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PyFlushMode(FlushMode);

#[pymethods]
impl PyFlushMode {
    #[doc = stub_doc!(FlushMode.group)]
    #[staticmethod]
    #[pyo3(signature = (ms=LEFT_OUT, bytes=LEFT_OUT), text_signature = "(ms=2, bytes=1048576)")]
    fn group(ms: Defaulted<'_, '_>, bytes: Defaulted<'_, '_>) -> PyResult<Self> {
        let number = |name, given: &Bound<'_, PyAny>| whole(name, "a whole number, 0 or more", given);
        Ok(Self(FlushMode::Group {
            ms: ms.or("ms", FlushMode::GROUP_MS, number)?,
            bytes: bytes.or("bytes", FlushMode::GROUP_BYTES, number)?,
        }))
    }

    #[doc = stub_doc!(FlushMode.interval)]
    #[staticmethod]
    #[pyo3(signature = (messages=None, ms=None))]
    fn interval(messages: Option<&Bound<'_, PyAny>>, ms: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let number = |name, given: &_| positive(name, given).map(|number| number as u64);
        Ok(Self(FlushMode::Interval {
            messages: optional("messages", messages, number)?,
            ms: optional("ms", ms, number)?,
        }))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let class = py.get_type::<Self>();
        let recipe = match self.0 {
            FlushMode::Group { ms, bytes } => (class.getattr("group")?, (ms, bytes)).into_pyobject(py)?,
            FlushMode::Interval { messages, ms } => {
                (class.getattr("interval")?, (messages, ms)).into_pyobject(py)?
            }
            // the class has no constructor for these
            FlushMode::Always | FlushMode::None => return Ok(py.None().into_bound(py)),
        };
        Ok(recipe.into_any())
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("FlushMode.{}", self.0)
    }
}

/// A `FlushMode`, or a text such as `"always"`.
pub(super) fn flush(argument: &'static str, given: &Bound<'_, PyAny>) -> PyResult<FlushMode> {
    if let Ok(mode) = given.cast::<PyFlushMode>() {
        return Ok(mode.get().0);
    }
    let wanted = "\"always\", \"none\", FlushMode.group(...) or FlushMode.interval(...)";
    text(argument, wanted, given)?.parse().map_err(|wrong| error::to_python(given.py(), wrong))
}

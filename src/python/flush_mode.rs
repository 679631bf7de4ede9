//! `FlushMode`.

use pyo3::prelude::*;
use pyo3::types::PyString;

use super::arguments::{self, Defaulted, LEFT_OUT, whole, wrong_type};
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
        let number = |name, given: &Bound<'_, PyAny>| whole::<u64>(name, "a whole number, 0 or more", given);
        Ok(Self(FlushMode::Group {
            ms: ms.or(2, |given| number("ms", given))?,
            bytes: bytes.or(1 << 20, |given| number("bytes", given))?,
        }))
    }

    #[doc = stub_doc!(FlushMode.interval)]
    #[staticmethod]
    #[pyo3(signature = (messages=None, ms=None))]
    fn interval(messages: Option<&Bound<'_, PyAny>>, ms: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let number = |name, given| arguments::positive(name, given).map(|number| number as u64);
        Ok(Self(FlushMode::Interval {
            messages: messages.map(|given| number("messages", given)).transpose()?,
            ms: ms.map(|given| number("ms", given)).transpose()?,
        }))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let class = py.get_type::<Self>();
        let recipe = match self.0 {
            FlushMode::Group { ms, bytes } => (class.getattr("group")?, (ms, bytes)).into_pyobject(py)?,
            FlushMode::Interval { messages, ms } => {
                (class.getattr("interval")?, (messages, ms)).into_pyobject(py)?
            }
            // the class makes no other
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

/// The argument `flush`: a `FlushMode`, or a text such as `"always"`.
pub(super) fn flush(given: &Bound<'_, PyAny>) -> PyResult<FlushMode> {
    if let Ok(mode) = given.cast::<PyFlushMode>() {
        return Ok(mode.get().0);
    }
    if !given.is_instance_of::<PyString>() {
        let wanted = "\"always\", \"none\", FlushMode.group(...) or FlushMode.interval(...)";
        return Err(wrong_type("flush", wanted, given));
    }
    let text = arguments::text("flush", "a str", given)?;
    text.parse().map_err(|wrong| error::to_python(given.py(), wrong))
}

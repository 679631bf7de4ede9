//! Errors of the core as the exceptions of `cordwood.errors`.

use std::any::Any;
use std::ffi::OsString;

use pyo3::exceptions::{PyImportError, PyModuleNotFoundError, PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Error, NotFound};

/// The exception for an error.
pub(super) fn to_python(py: Python<'_>, error: Error) -> PyErr {
    let class = match &error {
        Error::Corrupt { .. } => "CorruptLogError",
        Error::UnsupportedFormat { .. } => "UnsupportedFormatError",
        Error::OffsetOutOfRange { .. } => "OffsetOutOfRangeError",
        Error::LogChanged { .. } => "LogChangedError",
        Error::LogNotFound { .. } => "LogNotFoundError",
        Error::Config { .. } => "ConfigError",
        Error::Locked { .. } => "LockedError",
        Error::Poisoned { .. } => "PoisonedError",
        Error::Forked { .. } => "ForkedHandleError",
        Error::Io { file, source, .. } => {
            // Python makes the right child of OSError (PermissionError, …) of the number
            let file: OsString = file.clone().into();
            return match source.raw_os_error() {
                Some(number) => {
                    let words = rustix::io::Errno::from_raw_os_error(number).to_string();
                    PyOSError::new_err((number, strip_number(&words), file))
                }
                None => PyOSError::new_err(error.to_string()),
            };
        }
        Error::Interrupted(_) => {
            let Error::Interrupted(source) = error else { return PyRuntimeError::new_err("interrupted") };
            // what the signal's handler raised: KeyboardInterrupt, mostly
            return match source.downcast::<PyErr>() {
                Ok(raised) => *raised,
                Err(other) => PyRuntimeError::new_err(other.to_string()),
            };
        }
    };
    make(py, class, &error.to_string(), Some(&error)).unwrap_or_else(|failed| failed)
}

/// The exception for a panic: a defect of cordwood.
pub(super) fn internal(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    let words = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no words");
    let message = format!("a defect of cordwood, please report it: {words}");
    make(py, "InternalError", &message, None).unwrap_or_else(|failed| failed)
}

/// The exception for a use of something closed.
pub(super) fn closed(py: Python<'_>, what: &str) -> PyErr {
    to_python(py, Error::config(what, "an open handle", "a closed one"))
}

/// A module of an extra.
///
/// # Errors
/// `ImportError` that names the extra where the module is not installed; any other exception of the import as it is.
pub(super) fn import<'py>(py: Python<'py>, module: &str, extra: &str) -> PyResult<Bound<'py, PyModule>> {
    py.import(module).map_err(|error| {
        if !is_missing(py, &error, module) {
            return error;
        }
        let message =
            format!("this needs {module}, which is not installed: pip install \"cordwood[{extra}]\"");
        let missing = PyImportError::new_err(message);
        missing.set_cause(py, Some(error));
        missing
    })
}

/// Whether an import failed because there is no module of this name, and not one that it imports.
fn is_missing(py: Python<'_>, error: &PyErr, module: &str) -> bool {
    let name = || error.value(py).getattr("name")?.extract::<String>();
    error.is_instance_of::<PyModuleNotFoundError>(py) && name().is_ok_and(|name| name == module)
}

fn make(py: Python<'_>, class: &str, message: &str, error: Option<&Error>) -> PyResult<PyErr> {
    let attributes = PyDict::new(py);
    attributes.set_item("code", error.map_or("internal", Error::code))?;
    if let Some(error) = error {
        attributes.set_item("file", error.file().map(|file| file.as_os_str().to_owned()))?;
        attributes.set_item("position", error.position())?;
        attributes.set_item("offset", error.offset())?;
        attributes.set_item("expected", error.expected())?;
        attributes.set_item("found", error.found())?;
        attributes.set_item("argument", error.argument())?;
        attributes.set_item("advice", advice(error))?;
    }
    let class = py.import("cordwood.errors")?.getattr(class)?;
    Ok(PyErr::from_value(class.call((message,), Some(&attributes))?))
}

/// What to do next, in the words of the Python interface.
fn advice(error: &Error) -> Option<&'static str> {
    match error {
        // only of a segment something can be read after the damage
        Error::Corrupt { place, .. }
            if place.file.extension().is_some_and(|extension| extension == "log") =>
        {
            Some("read what is left with on_damage=\"skip\"")
        }
        Error::LogChanged { .. } => Some("open the log again or call refresh()"),
        Error::LogNotFound { found: NotFound::NoSegment, .. } => {
            Some("for a broker's data directory use LogDir")
        }
        Error::Poisoned { .. } => Some("open it again, which recovers what was acknowledged"),
        _ => None,
    }
}

/// "Permission denied (os error 13)" without the number, which Python adds itself.
fn strip_number(words: &str) -> String {
    words.split(" (os error").next().unwrap_or(words).to_owned()
}

//! Errors of the core as the exceptions of `cordwood.errors`.

use std::any::Any;
use std::ffi::OsString;

use pyo3::exceptions::{PyImportError, PyModuleNotFoundError, PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Error, NotFound, SizeLimit};

/// The exception for an error.
pub(super) fn to_python(py: Python<'_>, error: Error) -> PyErr {
    let class = match &error {
        Error::Corrupt { .. } => "CorruptLogError",
        Error::UnsupportedFormat { .. } => "UnsupportedFormatError",
        Error::BatchTooLarge { .. } => "BatchTooLargeError",
        Error::InvalidRecord { .. } => "InvalidRecordError",
        Error::RecordTooLarge { .. } => "RecordTooLargeError",
        Error::OutOfOrderSequence { .. } => "OutOfOrderSequenceError",
        Error::InvalidProducerEpoch { .. } => "InvalidProducerEpochError",
        Error::OffsetOutOfRange { .. } => "OffsetOutOfRangeError",
        Error::LogChanged { .. } => "LogChangedError",
        Error::LogNotFound { .. } => "LogNotFoundError",
        Error::Config { .. } => "ConfigError",
        Error::Locked { .. } => "LockedError",
        Error::Poisoned { .. } => "PoisonedError",
        Error::Closed { .. } => "ClosedError",
        Error::Forked { .. } => "ForkedHandleError",
        Error::Io { file, source, .. } => {
            // Python selects the subclass of OSError (PermissionError, …) by the number
            let file: OsString = file.clone().into();
            let Some(number) = source.raw_os_error() else { return PyOSError::new_err(error.to_string()) };
            return match strerror(py, number) {
                Ok(text) => PyOSError::new_err((number, text, file)),
                Err(failed) => failed,
            };
        }
        Error::Interrupted(_) => {
            let Error::Interrupted(source) = error else { return PyRuntimeError::new_err("interrupted") };
            // the exception that the signal's handler raised, such as KeyboardInterrupt
            return match source.downcast::<PyErr>() {
                Ok(raised) => *raised,
                Err(other) => PyRuntimeError::new_err(other.to_string()),
            };
        }
        // a variant without a class of its own; the compiler does not list them outside their crate
        _ => "CordwoodError",
    };
    make(py, class, &error.to_string(), Some(&error)).unwrap_or_else(|failed| failed)
}

/// The exception for an error of a call that changes a log: it cannot skip damage.
pub(super) fn of_change(py: Python<'_>, error: Error) -> PyErr {
    let is_damage = is_damage_of_log(&error);
    let exception = to_python(py, error);
    if !is_damage {
        return exception;
    }
    exception.value(py).setattr("advice", FIND_DAMAGE).err().unwrap_or(exception)
}

/// Whether a `.log` is damaged, and not another file.
fn is_damage_of_log(error: &Error) -> bool {
    matches!(error, Error::Corrupt { place, .. } if place.file.extension().is_some_and(|extension| extension == "log"))
}

const SKIP_DAMAGE: &str = "read what is left with on_damage=\"skip\"";
const FIND_DAMAGE: &str = "cordwood verify --explain shows what is damaged and what to do, and cordwood repair what can be saved (or use \
     verify() and repair())";

/// The exception for a panic: a defect of cordwood.
pub(super) fn internal(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message");
    let message = format!("a defect of cordwood, please report it: {text}");
    make(py, "InternalError", &message, None).unwrap_or_else(|failed| failed)
}

/// The exception for the use of a closed handle.
pub(super) fn closed(py: Python<'_>, handle: &'static str) -> PyErr {
    to_python(py, Error::Closed { handle })
}

/// Imports a module of an extra.
///
/// # Errors
/// `ImportError` that names the extra if the module is not installed; any other exception of the import
/// unchanged.
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

/// Whether an import failed because this module, and not one that it imports, is not installed.
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
        let log_offsets = error.log_offsets();
        attributes.set_item("log_start_offset", log_offsets.as_ref().map(|offsets| offsets.start))?;
        attributes.set_item("log_end_offset", log_offsets.as_ref().map(|offsets| offsets.end))?;
        attributes.set_item("expected", error.expected())?;
        attributes.set_item("found", error.found())?;
        let producer = error.producer();
        attributes.set_item("producer_id", producer.map(|(producer_id, _)| producer_id))?;
        attributes.set_item("producer_epoch", producer.map(|(_, producer_epoch)| producer_epoch))?;
        attributes.set_item("argument", error.argument())?;
        attributes.set_item("advice", advice(error))?;
    }
    let class = py.import("cordwood.errors")?.getattr(class)?;
    Ok(PyErr::from_value(class.call((message,), Some(&attributes))?))
}

/// What to do about an error, in terms of the Python interface.
fn advice(error: &Error) -> Option<&'static str> {
    match error {
        // a scan skips damage only in a `.log`
        error if is_damage_of_log(error) => Some(SKIP_DAMAGE),
        Error::BatchTooLarge { .. } => Some("raise max_batch_bytes, if the memory is there"),
        Error::LogChanged { .. } => Some("open the log again or call refresh(), and plan splits again"),
        Error::LogNotFound { found: NotFound::NoSegment, .. } => {
            Some("for a broker's data directory use LogDir")
        }
        Error::Poisoned { .. } => Some("open it again, which recovers what was acknowledged"),
        Error::Closed { handle: "Transaction" } => {
            Some("it has ended: begin another one, with transaction() of the LogWriter")
        }
        Error::Closed { .. } => Some("open it again"),
        Error::InvalidProducerEpoch { position: None, .. } => Some(
            "its transaction was aborted, or a newer producer or transaction has its name or id: use that, or get another one \
             (threads take turns with a transactional id in `with` blocks)",
        ),
        Error::RecordTooLarge { limit: SizeLimit::MaxMessageBytes, .. } => {
            Some("raise max_message_bytes of the LogConfig, or make the record smaller")
        }
        Error::RecordTooLarge { limit: SizeLimit::SegmentBytes, .. } => {
            Some("raise segment_bytes of the LogConfig, or append less in one call")
        }
        Error::RecordTooLarge { limit: SizeLimit::Readable, .. } => {
            Some("divide it: no setting raises this limit of a batch, also of a compressed one")
        }
        _ => None,
    }
}

/// The text of an error number, the same as in Python's exceptions.
fn strerror(py: Python<'_>, number: i32) -> PyResult<String> {
    py.import("os")?.call_method1("strerror", (number,))?.extract()
}

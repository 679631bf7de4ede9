//! Time zones, for the command line.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use pyo3::prelude::*;

use super::error;
use crate::error::Error;
use crate::text::UtcOffset;

#[doc = stub_doc!(_Zone)]
#[pyclass(frozen, module = "cordwood._core", name = "_Zone")]
pub(super) struct PyZone(UtcOffset);

impl PyZone {
    pub(super) fn utc_offset(&self) -> UtcOffset {
        self.0.clone()
    }
}

#[pymethods]
impl PyZone {
    #[new]
    fn new(py: Python<'_>, name: &str, tzif: &[u8]) -> PyResult<Self> {
        let zone = TimeZone::tzif(name, tzif).map_err(|wrong| {
            let found = format!("{name:?}: {wrong}");
            error::to_python(py, Error::config("zone", "a time zone in the format TZif", found))
        })?;
        let zone = Arc::new(zone);
        Ok(Self(UtcOffset::new(move |timestamp| {
            let timestamp = Timestamp::from_millisecond(timestamp).ok()?;
            Some(zone.to_offset(timestamp).seconds())
        })))
    }
}

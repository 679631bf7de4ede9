//! `LogConfig` between the two languages: Python's class is Python's own, and comes here as properties.

use std::collections::BTreeMap;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::arguments::class_name;
use super::error;
use crate::config::{LogConfig, PropertySource, Setting, Synonym, settings};

/// The configuration of an object with `to_properties()`; the default one of `None`.
pub(super) fn config_of(given: Option<&Bound<'_, PyAny>>) -> PyResult<LogConfig> {
    let Some(given) = given else { return Ok(LogConfig::default()) };
    let refused = || {
        PyTypeError::new_err(format!(
            "config: expected a LogConfig, found {}; make one with LogConfig(segment_bytes=...), or of Kafka's own names \
             with LogConfig.from_properties({{\"segment.bytes\": ...}})",
            class_name(given)
        ))
    };
    if given.is_instance_of::<PyType>() || !given.hasattr("to_properties")? {
        return Err(refused());
    }
    let properties = given.call_method0("to_properties")?;
    let properties: BTreeMap<String, String> = properties.extract().map_err(|_| refused())?;
    LogConfig::from_properties(&properties, Some(PropertySource::Topic))
        .map_err(|wrong| error::to_python(given.py(), wrong))
}

type SynonymRow = (&'static str, i64, Option<String>);
type SettingRow = (&'static str, String, String, Vec<SynonymRow>);

// a test compares Python's table with it
#[doc = stub_doc!(_log_config_settings)]
#[pyfunction]
#[pyo3(name = "_log_config_settings")]
pub(super) fn log_config_settings() -> Vec<SettingRow> {
    fn synonym_row(synonym: &Synonym) -> SynonymRow {
        (synonym.name, synonym.factor, synonym.allowed.map(|allowed| allowed.to_string()))
    }
    fn row(setting: &Setting) -> SettingRow {
        let default = setting.text(&LogConfig::default());
        let synonyms = setting.synonyms.iter().map(synonym_row).collect();
        (setting.name, default, setting.allowed.to_string(), synonyms)
    }
    settings().map(row).collect()
}

#[doc = stub_doc!(_log_config_of)]
#[pyfunction]
#[pyo3(name = "_log_config_of", signature = (config))]
pub(super) fn log_config_of(config: Option<&Bound<'_, PyAny>>) -> PyResult<BTreeMap<String, String>> {
    config_of(config).map(|config| config.to_properties())
}

#[doc = stub_doc!(_log_config_properties)]
#[pyfunction]
#[pyo3(name = "_log_config_properties", signature = (properties, kind=None, overrides=None))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands it over")]
pub(super) fn log_config_properties(
    py: Python<'_>,
    properties: BTreeMap<String, String>,
    kind: Option<&str>,
    overrides: Option<BTreeMap<String, String>>,
) -> PyResult<BTreeMap<String, String>> {
    let source = match kind {
        Some("broker") => Some(PropertySource::Broker),
        Some(_) => Some(PropertySource::Topic),
        None => None,
    };
    LogConfig::from_properties(&properties, source)
        .and_then(|config| config.with_overrides(&overrides.unwrap_or_default()))
        .map(|config| config.to_properties())
        .map_err(|wrong| error::to_python(py, wrong))
}

//! Conversions of `LogConfig`: the class is in Python, the table of settings in the core.

use std::collections::BTreeMap;
use std::path::Path;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyType};

use super::arguments::{self, class_name, is_whole, one_of, optional};
use super::enter::{SIGNALS, WARNINGS, enter};
use super::error;
use super::record::{timestamp_type, timestamp_types};
use crate::config::{
    Allowed, CLEANUP_POLICY, LogConfig, PropertySource, Setting, TIMESTAMP_TYPES, Value, settings,
};
use crate::error::Error;
use crate::inspect::internal_topics::topic_settings;
use crate::log::LogOptions;

/// The settings of an object with `to_properties()`. For `None`, those of the topic in the metadata of the data directory that
/// contains the partition, or the defaults.
pub(super) fn config_or_topics(
    py: Python<'_>,
    given: Option<&Bound<'_, PyAny>>,
    partition: &Path,
) -> PyResult<LogConfig> {
    if let Some(given) = given {
        return config_of(given);
    }
    let none = BTreeMap::new();
    let known = enter(py, || {
        topic_settings(partition, None, &options())?.map(|found| found.config(&none, &none)).transpose()
    })?;
    Ok(known.unwrap_or_default())
}

/// The options with which the metadata is read.
fn options() -> LogOptions {
    LogOptions { interrupt: SIGNALS, on_warning: WARNINGS, ..LogOptions::default() }
}

/// A `LogConfig` of these settings.
pub(super) fn to_python<'py>(py: Python<'py>, config: &LogConfig) -> PyResult<Bound<'py, PyAny>> {
    let fields = fields_of(py, config)?;
    if !config.states_cleanup_policy {
        // the class has a default that says so
        fields.del_item("cleanup_policy")?;
    }
    py.import("cordwood.config")?.getattr("LogConfig")?.call((), Some(&fields))
}

#[doc = stub_doc!(_log_config_of_topic)]
#[pyfunction]
#[pyo3(name = "_log_config_of_topic")]
pub(super) fn of_topic<'py>(
    path: &Bound<'py, PyAny>,
    metadata: Option<&Bound<'py, PyAny>>,
    file: BTreeMap<String, String>,
    overrides: BTreeMap<String, String>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let (py, path) = (path.py(), arguments::path(path)?);
    let metadata = optional("metadata", metadata, arguments::path_of)?;
    let (broker_file, overrides) = match PropertySource::guess(file.keys().map(String::as_str)) {
        PropertySource::Broker => (file, overrides),
        PropertySource::Topic => (BTreeMap::new(), file.into_iter().chain(overrides).collect()),
    };
    let found = enter(py, || {
        let found = topic_settings(path, metadata.as_deref(), &options())?;
        found.map(|found| found.config(&broker_file, &overrides)).transpose()
    })?;
    found.map(|config| fields_of(py, &config)).transpose()
}

/// The settings of an object with `to_properties()`.
pub(super) fn config_of(given: &Bound<'_, PyAny>) -> PyResult<LogConfig> {
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
    let mut config = LogConfig::from_properties(&properties, Some(PropertySource::Topic))
        .map_err(|wrong| error::to_python(given.py(), wrong))?;
    if let Some(policy) = given.getattr_opt("cleanup_policy")? {
        config.states_cleanup_policy = !policy.is_instance(&default_policy(given.py())?)?;
    }
    Ok(config)
}

#[doc = stub_doc!(_log_config_from_properties)]
#[pyfunction]
#[pyo3(name = "_log_config_from_properties", signature = (properties, kind=None, overrides=None))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes a value")]
pub(super) fn from_properties<'py>(
    py: Python<'py>,
    properties: BTreeMap<String, String>,
    kind: Option<&Bound<'py, PyAny>>,
    overrides: Option<BTreeMap<String, String>>,
) -> PyResult<Bound<'py, PyDict>> {
    fields_of(py, &config_of_properties(py, &properties, kind, &overrides.unwrap_or_default())?)
}

#[doc = stub_doc!(_log_config_states_policy)]
#[pyfunction]
#[pyo3(name = "_log_config_states_policy")]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 passes a value")]
pub(super) fn states_policy(
    py: Python<'_>,
    properties: BTreeMap<String, String>,
    kind: Option<&Bound<'_, PyAny>>,
    overrides: BTreeMap<String, String>,
) -> PyResult<bool> {
    config_of_properties(py, &properties, kind, &overrides).map(|config| config.states_cleanup_policy)
}

fn config_of_properties(
    py: Python<'_>,
    properties: &BTreeMap<String, String>,
    kind: Option<&Bound<'_, PyAny>>,
    overrides: &BTreeMap<String, String>,
) -> PyResult<LogConfig> {
    let sources = [("broker", PropertySource::Broker), ("topic", PropertySource::Topic)];
    let source = optional("kind", kind, one_of(&sources))?;
    LogConfig::from_properties(properties, source)
        .and_then(|config| config.with_overrides(overrides))
        .map_err(|wrong| error::to_python(py, wrong))
}

#[doc = stub_doc!(_log_config_checked)]
#[pyfunction]
#[pyo3(name = "_log_config_checked")]
pub(super) fn checked<'py>(fields: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    fields_of(fields.py(), &config_of_fields(fields)?)
}

#[doc = stub_doc!(_log_config_to_properties)]
#[pyfunction]
#[pyo3(name = "_log_config_to_properties")]
pub(super) fn to_properties(fields: &Bound<'_, PyDict>) -> PyResult<BTreeMap<String, String>> {
    config_of_fields(fields).map(|config| config.to_properties())
}

fn config_of_fields(fields: &Bound<'_, PyDict>) -> PyResult<LogConfig> {
    let py = fields.py();
    let mut config = LogConfig::default();
    for setting in settings() {
        let Some(given) = fields.get_item(setting.field())? else { continue };
        if setting.name == CLEANUP_POLICY {
            config.states_cleanup_policy = !given.is_instance(&default_policy(py)?)?;
        }
        let value = value_of(setting, &given)?.filter(|value| setting.allowed.admits(value));
        if value.and_then(|value| setting.store(&mut config, &value)).is_none() {
            let found = given.repr().map_or_else(|_| class_name(&given), |text| text.to_string());
            let wrong = Error::config(setting.field(), setting.allowed.to_string(), found);
            return Err(error::to_python(py, wrong));
        }
    }
    config.validate().map_err(|wrong| error::to_python(py, wrong))?;
    Ok(config)
}

/// The value of a field; `None` if it has another type.
fn value_of(setting: &Setting, given: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    let is_bool = given.is_instance_of::<PyBool>();
    Ok(match setting.allowed {
        Allowed::Integer { .. } | Allowed::IntegerOr { .. } if is_whole(given)? => {
            given.extract().ok().map(Value::Integer)
        }
        Allowed::Ratio
            if !is_bool && (given.is_instance_of::<PyFloat>() || given.is_instance_of::<PyInt>()) =>
        {
            given.extract().ok().map(Value::Ratio)
        }
        Allowed::Flag if is_bool => given.extract().ok().map(Value::Flag),
        Allowed::OneOf(_) | Allowed::ListOf(_) if given.is_instance_of::<PyString>() => {
            given.extract().ok().and_then(|text: String| setting.allowed.parse(&text))
        }
        Allowed::OneOf(_) if given.is_instance(&timestamp_types(given.py())?)? => {
            let id: i8 = given.extract()?;
            TIMESTAMP_TYPES.into_iter().find(|kind| kind.id() == id).map(Value::TimestampType)
        }
        _ => None,
    })
}

/// The class of a policy that is only the default.
fn default_policy(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import("cordwood.types")?.getattr("DefaultPolicy")
}

fn fields_of<'py>(py: Python<'py>, config: &LogConfig) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    for setting in settings() {
        let field = setting.field();
        match setting.value(config) {
            Value::Integer(number) => fields.set_item(field, number)?,
            Value::Ratio(ratio) => fields.set_item(field, ratio)?,
            Value::Flag(flag) => fields.set_item(field, flag)?,
            Value::Word(word) => fields.set_item(field, word)?,
            Value::TimestampType(kind) => fields.set_item(field, timestamp_type(py, kind)?)?,
            words @ Value::Words(_) => fields.set_item(field, words.to_string())?,
        }
    }
    Ok(fields)
}

//! Conversions of `LogConfig`: the class is in Python, the table of settings in the core.

use std::collections::BTreeMap;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyType};

use super::arguments::{class_name, is_whole, one_of, optional};
use super::error;
use super::record::{timestamp_type, timestamp_types};
use crate::config::{Allowed, LogConfig, PropertySource, Setting, TIMESTAMP_TYPES, Value, settings};
use crate::error::Error;

/// The settings of an object with `to_properties()`; the defaults for `None`.
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
    let sources = [("broker", PropertySource::Broker), ("topic", PropertySource::Topic)];
    let source = optional("kind", kind, one_of(&sources))?;
    let config = LogConfig::from_properties(&properties, source)
        .and_then(|config| config.with_overrides(&overrides.unwrap_or_default()))
        .map_err(|wrong| error::to_python(py, wrong))?;
    fields_of(py, &config)
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

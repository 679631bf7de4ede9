//! Conversions of `LogConfig`: the class is in Python, the table of settings in the core.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyType};

use super::arguments::{self, class_name, is_whole, one_of, optional};
use super::enter::{SIGNALS, WARNINGS, enter};
use super::error;
use super::record::{timestamp_type, timestamp_types};
use crate::config::{
    Allowed, CLEANUP_POLICY, LogConfig, PropertySource, RETENTION_MS, Setting, StatedSettings,
    TIMESTAMP_TYPES, Value, settings,
};
use crate::error::Error;
use crate::inspect::internal_topics::{TopicSettings, known_settings, topic_settings};
use crate::inspect::rebuild::topics_index_settings;
use crate::log::{IntervalSource, LogOptions};
use crate::writer::RecoveryPlan;

/// The settings with which a log is opened.
pub(super) struct TopicConfig {
    pub(super) config: LogConfig,
    /// Whether some are the topic's.
    pub(super) has_topics: bool,
    /// Whether `index.interval.bytes` is.
    is_interval_topics: bool,
    /// Why the topic's settings are not known.
    damage: Option<PyErr>,
}

impl TopicConfig {
    /// The settings of an object with `to_properties()`; what it does not state, and everything for `None`,
    /// is taken from the topic's settings in the metadata of the data directory that contains the
    /// partition, or is Kafka's default.
    pub(super) fn of(py: Python<'_>, given: Option<&Bound<'_, PyAny>>, partition: &Path) -> PyResult<Self> {
        let given = given.map(config_of).transpose()?.unwrap_or_default();
        let (mut damage, mut is_interval_topics) = (None, false);
        let known = enter(py, || {
            if given.stated == StatedSettings::ALL {
                return Ok(None);
            }
            let known = known_settings(partition, &options())?;
            damage = known.damage;
            let (_, source) = topics_index_settings(&given, known.settings.as_ref())?;
            is_interval_topics = source == Some(IntervalSource::Topic);
            known.settings.map(|found| found.config(&BTreeMap::new(), &given.stated_properties())).transpose()
        })?;
        let damage = damage.map(|damage| error::to_python(py, damage));
        Ok(Self { has_topics: known.is_some(), is_interval_topics, config: known.unwrap_or(given), damage })
    }

    /// Says in a plan with these settings where its interval of index entries is from: to the writer, a
    /// setting of the topic is a given one.
    pub(super) fn name_source(&self, plan: &mut RecoveryPlan) {
        if self.is_interval_topics && plan.interval_source == IntervalSource::Given {
            plan.interval_source = IntervalSource::Topic;
        }
    }

    /// The settings of [`TopicConfig::of`] for retention.
    ///
    /// # Errors
    /// That of the metadata, if it is damaged.
    pub(super) fn for_retention(mut self) -> PyResult<LogConfig> {
        self.retention_error().map_or(Ok(self.config), Err)
    }

    /// The error of damaged metadata, unless the settings that decide on retention are stated.
    pub(super) fn retention_error(&mut self) -> Option<PyErr> {
        let Self { config, .. } = self;
        let is_decided =
            config.states(CLEANUP_POLICY) && (!config.cleanup_policy.delete || config.states(RETENTION_MS));
        self.damage.take().filter(|_| !is_decided)
    }
}

/// The options with which the metadata is read.
fn options() -> LogOptions {
    LogOptions { interrupt: SIGNALS, on_warning: WARNINGS, ..LogOptions::default() }
}

/// A `LogConfig` of these settings.
pub(super) fn to_python<'py>(py: Python<'py>, config: &LogConfig) -> PyResult<Bound<'py, PyAny>> {
    let fields = stated_fields(py, config)?;
    py.import("cordwood.config")?.getattr("LogConfig")?.call((), Some(&fields))
}

/// The stated fields of a `LogConfig`, and the source of each setting by its topic name.
type StatedFields<'py> = (Bound<'py, PyDict>, BTreeMap<String, &'static str>);

#[doc = stub_doc!(_log_config_of_topic)]
#[pyfunction]
#[pyo3(name = "_log_config_of_topic")]
pub(super) fn of_topic<'py>(
    path: &Bound<'py, PyAny>,
    metadata: Option<&Bound<'py, PyAny>>,
    file: BTreeMap<String, String>,
    overrides: BTreeMap<String, String>,
) -> PyResult<Option<StatedFields<'py>>> {
    let (py, path) = (path.py(), arguments::path(path)?);
    let metadata = optional("metadata", metadata, arguments::path_of)?;
    let (broker_file, overrides) = match PropertySource::guess(file.keys().map(String::as_str)) {
        PropertySource::Broker => (file, overrides),
        PropertySource::Topic => (BTreeMap::new(), file.into_iter().chain(overrides).collect()),
    };
    let found = enter(py, || {
        let found = topic_settings(path, metadata.as_deref(), &options())?;
        found.map(|found| Ok((found.config(&broker_file, &overrides)?, found))).transpose()
    })?;
    let source =
        |found: &TopicSettings, setting: &Setting| found.source_of(setting, &broker_file, &overrides);
    found
        .map(|(config, found)| {
            let sources = settings().map(|setting| (setting.name.to_owned(), source(&found, setting).code()));
            Ok((stated_fields(py, &config)?, sources.collect()))
        })
        .transpose()
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
    // all are among the properties, also those that were not given
    if let Some(stated) = given.getattr_opt("_stated")? {
        let fields: HashSet<String> = stated.extract().map_err(|_| refused())?;
        let is_stated = |setting: &&Setting| fields.contains(&setting.field());
        config.stated = StatedSettings::of(settings().filter(is_stated).map(|setting| setting.name));
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
    stated_fields(py, &config_of_properties(py, &properties, kind, &overrides.unwrap_or_default())?)
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

/// The fields of the stated settings.
fn stated_fields<'py>(py: Python<'py>, config: &LogConfig) -> PyResult<Bound<'py, PyDict>> {
    let fields = fields_of(py, config)?;
    for setting in settings().filter(|setting| !config.states(setting.name)) {
        fields.del_item(setting.field())?;
    }
    Ok(fields)
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

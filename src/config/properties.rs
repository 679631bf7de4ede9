//! Conversion between a log's settings and the properties of a broker or a topic.

use std::collections::BTreeMap;

use super::LogConfig;
use super::settings::{Setting, Synonym, settings};
use super::suggestions::nearest;
use super::value::{Allowed, Value};
use crate::error::{Error, Result};

/// The source of properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PropertySource {
    /// A broker's configuration file: broker names (`log.segment.bytes`); other names are ignored.
    Broker,
    /// A topic's overrides: `segment.bytes`; an unknown name is an error.
    Topic,
}

impl PropertySource {
    /// Guesses the source: a broker's file has a name that begins with `log.`, or one that every broker has.
    pub fn guess<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        const BROKER: [&str; 3] = ["broker.id", "node.id", "process.roles"];
        let is_brokers = |name: &str| name.starts_with("log.") || BROKER.contains(&name);
        if names.into_iter().any(is_brokers) { Self::Broker } else { Self::Topic }
    }
}

/// The name of [`LogConfig::cleanup_policy`].
pub const CLEANUP_POLICY: &str = "cleanup.policy";
/// The name of [`LogConfig::retention_ms`].
pub const RETENTION_MS: &str = "retention.ms";
/// The name of [`LogConfig::index_interval_bytes`].
pub(crate) const INDEX_INTERVAL: &str = "index.interval.bytes";
const SEGMENT_BYTES: &str = "segment.bytes";
/// The name of a segment size below [`MIN_SEGMENT_BYTES`], for topics only. It takes precedence over
/// `segment.bytes`.
const INTERNAL_SEGMENT_BYTES: &str = "internal.segment.bytes";
const MIN_SEGMENT_BYTES: i64 = 1 << 20;
/// Kafka's topic settings that do not affect a log's files.
const IGNORED: [&str; 6] = [
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
];
/// Must be false: otherwise the directory may not contain the whole log.
const REMOTE_STORAGE: &str = "remote.storage.enable";

impl LogConfig {
    /// The settings in a broker's file or a topic's overrides, with Kafka's precedence (`log.roll.ms` over
    /// `log.roll.hours`); other settings have their defaults. `None`: the source is guessed by
    /// [`PropertySource::guess`].
    ///
    /// # Errors
    /// [`Error::Config`] with the name, the value and the allowed values; for an unknown topic setting, with
    /// a similar name, if any.
    ///
    /// *Source*: `KafkaConfig.extractLogConfigMap`, `LogConfig.fromProps`.
    pub fn from_properties(
        properties: &BTreeMap<String, String>,
        source: Option<PropertySource>,
    ) -> Result<Self> {
        match source.unwrap_or_else(|| PropertySource::guess(properties.keys().map(String::as_str))) {
            PropertySource::Broker => Self::from_broker(properties),
            PropertySource::Topic => Self::default().with_overrides(properties),
        }
    }

    /// These settings with a topic's overrides.
    ///
    /// # Errors
    /// As [`LogConfig::from_properties`].
    pub fn with_overrides(mut self, overrides: &BTreeMap<String, String>) -> Result<Self> {
        for (name, text) in overrides {
            if name == INTERNAL_SEGMENT_BYTES || IGNORED.contains(&name.as_str()) {
                continue;
            }
            if name == REMOTE_STORAGE {
                if Allowed::Flag.parse(text) != Some(Value::Flag(false)) {
                    return Err(refused(name, "false: tiered storage is not supported", text));
                }
                continue;
            }
            let setting = settings()
                .find(|setting| setting.name == name)
                .ok_or_else(|| Error::config(name, known_setting(name), "an unknown name"))?;
            let value = read(name, text, segment_size_limit(setting))?;
            self.put(setting, name, text, &value)?;
        }
        // after `segment.bytes`: it takes precedence
        if let Some(text) = overrides.get(INTERNAL_SEGMENT_BYTES)
            && let Some(setting) = settings().find(|setting| setting.name == SEGMENT_BYTES)
        {
            let value = read(INTERNAL_SEGMENT_BYTES, text, setting.allowed)?;
            self.put(setting, INTERNAL_SEGMENT_BYTES, text, &value)?;
        }
        self.checked()
    }

    /// The settings of a topic from the metadata of its cluster: `broker` has the broker's settings, under a
    /// broker's names; `topic` has the topic's, without unknown ones, which belong to a later version;
    /// `overrides` take precedence.
    ///
    /// # Errors
    /// As [`LogConfig::from_properties`].
    pub fn of_topic(
        broker: &BTreeMap<String, String>,
        topic: &BTreeMap<String, String>,
        overrides: &BTreeMap<String, String>,
    ) -> Result<Self> {
        let is_small = |text: &str| text.trim().parse::<i64>().is_ok_and(|size| size < MIN_SEGMENT_BYTES);
        let known = topic.iter().filter(|(name, _)| {
            settings().any(|setting| setting.name == *name)
                || [INTERNAL_SEGMENT_BYTES, REMOTE_STORAGE].contains(&name.as_str())
        });
        // brokers before 4.1 accepted a small size under the usual name
        let stored = known.map(|(name, text)| match name.as_str() {
            SEGMENT_BYTES if is_small(text) => (INTERNAL_SEGMENT_BYTES.to_owned(), text.clone()),
            _ => (name.clone(), text.clone()),
        });
        Self::from_broker(broker)?.with_overrides(&stored.collect())?.with_overrides(overrides)
    }

    /// All settings under their topic names. [`LogConfig::from_properties`] returns the same settings for
    /// them.
    pub fn to_properties(&self) -> BTreeMap<String, String> {
        self.properties_of(|_| true)
    }

    /// The name of a setting in properties with its value.
    pub(super) fn property_name(&self, setting: &Setting) -> &'static str {
        let is_small = setting.name == SEGMENT_BYTES && i64::from(self.segment_bytes) < MIN_SEGMENT_BYTES;
        if is_small { INTERNAL_SEGMENT_BYTES } else { setting.name }
    }

    fn from_broker(properties: &BTreeMap<String, String>) -> Result<Self> {
        let mut config = Self::default();
        for setting in settings() {
            let mut is_set = false;
            // names without precedence are also parsed: a broker does not start if one of them is invalid
            for synonym in setting.synonyms {
                let Some(text) = properties.get(synonym.name) else { continue };
                let value = read(synonym.name, text, synonym.allowed.unwrap_or(segment_size_limit(setting)))?;
                if !is_set {
                    let value = in_units(setting, *synonym, text, value)?;
                    config.put(setting, synonym.name, text, &value)?;
                    is_set = true;
                }
            }
        }
        config.checked()
    }

    fn put(&mut self, setting: &Setting, name: &str, text: &str, value: &Value) -> Result<()> {
        if !setting.allowed.admits(value) || setting.store(self, value).is_none() {
            return Err(refused(name, setting.allowed.to_string(), text));
        }
        self.stated.add(setting.name);
        Ok(())
    }

    /// Checks the rules between settings, with property names in the error.
    fn checked(self) -> Result<Self> {
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms {
            return Err(Error::config(
                "min.compaction.lag.ms",
                format!("at most max.compaction.lag.ms, which is {}", self.max_compaction_lag_ms),
                self.min_compaction_lag_ms.to_string(),
            ));
        }
        Ok(self)
    }
}

#[cfg(feature = "inspect")]
impl Setting {
    /// Whether a topic's properties have it.
    pub(crate) fn is_in_topic(&self, properties: &BTreeMap<String, String>) -> bool {
        properties.keys().any(|name| self.is_of_topic(name))
    }

    /// Whether a name in a topic's properties is that of this setting.
    pub(crate) fn is_of_topic(&self, name: &str) -> bool {
        name == self.name || self.name == SEGMENT_BYTES && name == INTERNAL_SEGMENT_BYTES
    }

    /// Whether a name in a broker's properties is one of this setting.
    pub(crate) fn is_of_broker(&self, name: &str) -> bool {
        self.synonyms.iter().any(|synonym| synonym.name == name)
    }

    /// Whether it decides on the entries of index files, or on the sizes with which files are made.
    pub(crate) fn is_of_index_files(&self) -> bool {
        [INDEX_INTERVAL, "segment.index.bytes", "preallocate", SEGMENT_BYTES].contains(&self.name)
    }
}

/// The value in the setting's unit. A broker reads any negative retention time as −1, and refuses 0.
fn in_units(setting: &Setting, synonym: Synonym, text: &str, value: Value) -> Result<Value> {
    let Value::Integer(number) = value else { return Ok(value) };
    let number = number.saturating_mul(synonym.factor);
    match (setting.name, number) {
        (RETENTION_MS, 0) => Err(refused(synonym.name, "1 or more, or -1 for no limit", text)),
        (RETENTION_MS, ..0) => Ok(Value::Integer(-1)),
        _ => Ok(Value::Integer(number)),
    }
}

/// The allowed values in properties: for the segment size, the range is smaller than that of the field.
fn segment_size_limit(setting: &Setting) -> Allowed {
    match setting.allowed {
        Allowed::Integer { max, .. } if setting.name == SEGMENT_BYTES => {
            Allowed::Integer { min: MIN_SEGMENT_BYTES, max }
        }
        allowed => allowed,
    }
}

fn read(name: &str, text: &str, allowed: Allowed) -> Result<Value> {
    match allowed.parse(text).filter(|value| allowed.admits(value)) {
        Some(value) => Ok(value),
        None if name.ends_with(SEGMENT_BYTES) && name != INTERNAL_SEGMENT_BYTES => Err(refused(
            name,
            format!("{allowed}; for a smaller size, set {INTERNAL_SEGMENT_BYTES} of a topic"),
            text,
        )),
        None => Err(refused(name, allowed.to_string(), text)),
    }
}

fn refused(name: &str, expected: impl Into<String>, text: &str) -> Error {
    Error::config(name, expected, format!("\"{text}\""))
}

/// The expectation in the error for an unknown topic setting: the topic's name for a broker setting,
/// otherwise a similar name.
fn known_setting(name: &str) -> String {
    let of_broker = settings().find(|setting| setting.synonyms.iter().any(|synonym| synonym.name == name));
    if let Some(setting) = of_broker {
        return format!(
            "a topic setting: {name} is a broker setting, and the topic setting is {}",
            setting.name
        );
    }
    match nearest(name, settings().map(|setting| setting.name).chain([INTERNAL_SEGMENT_BYTES])) {
        Some(nearest) => format!("a topic setting; the nearest is {nearest}"),
        None => "a topic setting".to_owned(),
    }
}

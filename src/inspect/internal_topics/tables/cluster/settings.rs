//! The settings of a topic, from the metadata of its cluster. Kafka: `ConfigurationsImage`,
//! `DynamicBrokerConfig`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::CLUSTER_METADATA;
use super::known_configs::KnownConfigs;
use super::state::{BROKER_RESOURCE, TOPIC_RESOURCE};
use crate::config::{CLEANUP_POLICY, LogConfig, RETENTION_MS, Setting, settings};
use crate::error::{Error, Malformed, NotFound, Result};
use crate::fs::Directory;
use crate::fs::names::{CLUSTER_METADATA_DIRECTORY, PartitionName, PartitionState};
use crate::log::LogOptions;
use crate::state::meta_properties::MetaProperties;
use crate::state::partition_metadata::TopicId;

/// What the metadata of a cluster says about the settings of a topic. A broker's own file is not in the
/// metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSettings {
    /// The topic.
    pub topic: String,
    /// Where the metadata was read.
    pub source: PathBuf,
    /// The dynamic settings of the data directory's broker, which override the settings of all brokers,
    /// under a broker's names.
    pub broker: BTreeMap<String, String>,
    /// The topic's own settings.
    pub overrides: BTreeMap<String, String>,
}

impl TopicSettings {
    /// The settings with Kafka's precedence: `overrides`, the topic's, the broker's dynamic ones, the
    /// settings in `broker_file`, the defaults. Settings that one of the sources has are stated; with a
    /// file, also those that decide on retention: nothing else can have others than the defaults.
    ///
    /// # Errors
    /// As [`LogConfig::from_properties`].
    pub fn config(
        &self,
        broker_file: &BTreeMap<String, String>,
        overrides: &BTreeMap<String, String>,
    ) -> Result<LogConfig> {
        let mut broker = broker_file.clone();
        broker.extend(self.broker.clone());
        let mut config = LogConfig::of_topic(&broker, &self.overrides, overrides)?;
        if !broker_file.is_empty() {
            config.stated.add(CLEANUP_POLICY);
            config.stated.add(RETENTION_MS);
        }
        Ok(config)
    }

    /// Which of the sources of [`TopicSettings::config`] a setting is from.
    pub fn source_of(
        &self,
        setting: &Setting,
        broker_file: &BTreeMap<String, String>,
        overrides: &BTreeMap<String, String>,
    ) -> SettingSource {
        if setting.is_in_topic(overrides) {
            return SettingSource::Override;
        }
        if setting.is_in_topic(&self.overrides) {
            return SettingSource::Topic;
        }
        // the first name that one of them has takes precedence, not the first source
        let names = || setting.synonyms.iter().map(|synonym| synonym.name);
        match names().find(|name| self.broker.contains_key(*name) || broker_file.contains_key(*name)) {
            Some(name) if self.broker.contains_key(name) => SettingSource::Broker,
            Some(_) => SettingSource::File,
            None => SettingSource::Default,
        }
    }

    /// The sizes of index files and the interval of their entries, from `overrides`, and where it does not
    /// state them, from the metadata. The topic's other settings do not count, also not those that this
    /// library does not support.
    ///
    /// # Errors
    /// [`Error::Config`] for a wrong value.
    pub(crate) fn index_config(&self, overrides: &LogConfig) -> Result<LogConfig> {
        let of_indexes = |setting: &&Setting| setting.is_of_index_files();
        let only = |properties: &BTreeMap<String, String>, is_name: fn(&Setting, &str) -> bool| {
            let is_wanted = |name: &str| settings().filter(of_indexes).any(|setting| is_name(setting, name));
            properties
                .iter()
                .filter(|(name, _)| is_wanted(name))
                .map(|(name, text)| (name.clone(), text.clone()))
                .collect()
        };
        let (broker, topic) =
            (only(&self.broker, Setting::is_of_broker), only(&self.overrides, Setting::is_of_topic));
        LogConfig::of_topic(&broker, &topic, &overrides.stated_properties())
    }

    /// Whether the topic is compacted, alone or also deleted from. `None` if only the broker's own file can
    /// say so.
    fn is_compacted(&self) -> Option<bool> {
        let policy = self.overrides.get(CLEANUP_POLICY).or_else(|| self.broker.get("log.cleanup.policy"))?;
        Some(policy.split(',').any(|policy| policy.trim() == "compact"))
    }
}

/// Where a setting of a topic is from, by descending precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SettingSource {
    /// The caller.
    Override,
    /// The topic's settings in the metadata.
    Topic,
    /// The dynamic settings of the broker, or of all brokers, in the metadata.
    Broker,
    /// The broker's file.
    File,
    /// Kafka's default.
    Default,
}

impl SettingSource {
    /// A stable name for programs: `override`, `topic`, `broker`, `file`, `default`.
    pub fn code(self) -> &'static str {
        match self {
            Self::Override => "override",
            Self::Topic => "topic",
            Self::Broker => "broker",
            Self::File => "file",
            Self::Default => "default",
        }
    }
}

/// The settings of a partition's topic, from the metadata of a cluster: `metadata`, a path as for
/// [`metadata`](super::metadata()), or the `__cluster_metadata-0` of the data directory that contains the
/// partition. The partition directory need not exist.
///
/// `None` if the data directory has no metadata, or the metadata has no such topic (one of this name but with
/// another id than `partition.metadata` is another topic).
///
/// # Errors
/// [`Error::Corrupt`] if records of the metadata are missing or not decodable: the settings may be wrong;
/// [`Error::Config`] if `metadata` is given and has no such topic; [`Error::Io`].
pub fn topic_settings(
    partition: impl AsRef<Path>,
    metadata: Option<&Path>,
    options: &LogOptions,
) -> Result<Option<TopicSettings>> {
    let place = Place::of(partition.as_ref())?;
    place.map_or(Ok(None), |place| place.topic_settings(metadata, options))
}

/// What is known of the settings of a partition's topic.
#[derive(Debug, Default)]
pub struct KnownSettings {
    /// `None` as in [`topic_settings`], and if the metadata cannot be read.
    pub settings: Option<TopicSettings>,
    /// Why the metadata cannot be read.
    pub damage: Option<Error>,
}

/// [`topic_settings`] by the metadata of the data directory. Metadata that cannot be read is a warning and no
/// error, because it must not prevent what deletes nothing.
///
/// # Errors
/// [`Error::Io`] of the partition; [`Error::Interrupted`].
pub fn known_settings(partition: &Path, options: &LogOptions) -> Result<KnownSettings> {
    let Some(place) = Place::of(partition)? else { return Ok(KnownSettings::default()) };
    match place.topic_settings(None, options) {
        Ok(settings) => Ok(KnownSettings { settings, damage: None }),
        Err(error @ Error::Interrupted(_)) => Err(error),
        Err(error) => {
            let warning = format!("the settings of the topic {} are not known: {error}", place.topic);
            (options.on_warning.0)(&warning);
            Ok(KnownSettings { settings: None, damage: Some(error) })
        }
    }
}

/// Whether the topic of a partition directory is compacted, by the metadata of its data directory. `None` if
/// that is not known. For [`LogOptions::is_topic_compacted`].
pub fn is_topic_compacted(partition: &Path) -> Option<bool> {
    topic_settings(partition, None, &LogOptions::default()).ok()??.is_compacted()
}

/// The place of a partition in its data directory.
struct Place {
    folder: Directory,
    topic: String,
    /// From `partition.metadata`.
    topic_id: Option<String>,
}

impl Place {
    /// `None` if the path is not named as a partition, or has no parent.
    fn of(path: &Path) -> Result<Option<Self>> {
        const ADVICE: &str = "give the path of a partition directory, such as data/orders-0";
        // a link to it may have any name, and be anywhere
        let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let (folder, path, topic_id) = match Directory::open(path, ADVICE) {
            Ok(directory) => {
                // a damaged id is another finding; the name is what is left
                let topic_id = TopicId::read(&directory).ok().flatten().map(|id| id.to_string());
                (directory.parent()?, directory.path().to_owned(), topic_id)
            }
            Err(Error::LogNotFound { found: NotFound::NoDirectory, .. }) => {
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                let parent = Directory::open(parent.unwrap_or(Path::new(".")), ADVICE);
                (parent.ok(), path.to_owned(), None)
            }
            Err(error) => return Err(error),
        };
        let name = path.file_name().and_then(|name| PartitionName::parse(name.to_str()?));
        let has_settings = |state| matches!(state, PartitionState::Live | PartitionState::Future);
        let name = name.filter(|name| has_settings(name.state) && name.topic != CLUSTER_METADATA);
        Ok(name.zip(folder).map(|(name, folder)| Self { folder, topic: name.topic, topic_id }))
    }

    /// [`topic_settings`] of the partition.
    fn topic_settings(&self, metadata: Option<&Path>, options: &LogOptions) -> Result<Option<TopicSettings>> {
        let source = match metadata {
            Some(path) => path.to_owned(),
            None if self.has_metadata()? => self.folder.path_of(CLUSTER_METADATA_DIRECTORY),
            None => return Ok(None),
        };
        let configs = KnownConfigs::read(&source, options)?;
        if let Some(wrong) = configs.as_ref().and_then(|configs| configs.error.as_ref()) {
            let expected = "metadata without errors, because a setting of the topic may be missing (repair it, or state the settings: \
                            what deletes records needs cleanup.policy, and retention also retention.ms)";
            return Err(Malformed::new(expected, wrong.text.clone()).at(source, 0, wrong.offset));
        }
        let settings = configs.map(|configs| self.settings(&configs, source.clone())).transpose()?.flatten();
        if let (None, Some(_)) = (&settings, metadata) {
            let expected = format!("metadata with the topic {:?} of this partition", self.topic);
            return Err(Error::config("metadata", expected, source.display().to_string()));
        }
        Ok(settings)
    }

    fn has_metadata(&self) -> Result<bool> {
        Ok(self.folder.existing_folder(CLUSTER_METADATA_DIRECTORY)?.is_some())
    }

    /// The settings of the topic in the metadata; `None` if it has no such topic.
    fn settings(&self, configs: &KnownConfigs, source: PathBuf) -> Result<Option<TopicSettings>> {
        let Some(id) = configs.topic_id(&self.topic) else { return Ok(None) };
        if self.topic_id.as_ref().is_some_and(|known| known != id) {
            return Ok(None);
        }
        let mut broker = configs.of_resource(BROKER_RESOURCE, "");
        let properties = MetaProperties::read(&self.folder)?.unwrap_or_default();
        if let Some(node) = properties.node_id() {
            broker.extend(configs.of_resource(BROKER_RESOURCE, &node.to_string()));
        }
        let overrides = configs.of_resource(TOPIC_RESOURCE, &self.topic);
        Ok(Some(TopicSettings { topic: self.topic.clone(), source, broker, overrides }))
    }
}

//! The replay of metadata records. Kafka: `MetadataDelta.replay`, and the deltas of the images.

use std::collections::{BTreeMap, HashMap};

use super::super::super::control::raft_message;
use super::super::super::json::uuid_text;
use super::super::super::message::{Message, Value};
use super::super::super::readable::DecodeError;
use super::super::super::record_types::CLUSTER_METADATA;
use super::super::super::records::MetadataRecord;
use super::super::errors::LogErrors;
use crate::record::RecordRef;
use crate::record::control::ControlType;

type Uuid = [u8; 16];
/// The types and names of a quota's entity, sorted; without a name it is the default entity of the type.
type Entity = Vec<(String, Option<String>)>;
type Record = Message<'static>;

/// `PartitionChangeRecord`: no change of the leader, or of its recovery state.
const NO_LEADER_CHANGE: i64 = -2;
const NO_RECOVERY_CHANGE: i64 = -1;
/// `ConfigResource.Type.TOPIC`
pub(super) const TOPIC_RESOURCE: i64 = 2;
/// `ConfigResource.Type.BROKER`. The resource named "" is all brokers.
pub(super) const BROKER_RESOURCE: i64 = 4;

/// A metadata transaction that has not ended.
#[derive(Debug)]
struct Transaction {
    /// The offset of the record that begins it.
    offset: i64,
    records: Vec<(i64, Record)>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Names by id.
    pub(super) topics: BTreeMap<Uuid, String>,
    ids: HashMap<String, Uuid>,
    /// `PartitionRecord`s with all changes.
    pub(super) partitions: BTreeMap<(Uuid, i64), Record>,
    pub(super) brokers: BTreeMap<i64, Record>,
    pub(super) controllers: BTreeMap<i64, Record>,
    /// By the type and name of the resource and the name of the setting.
    pub(super) configs: BTreeMap<(i64, String, String), String>,
    pub(super) features: BTreeMap<String, i64>,
    pub(super) acls: BTreeMap<Uuid, Record>,
    /// By the entity and the key.
    pub(super) quotas: BTreeMap<(Entity, String), Record>,
    pub(super) scram: BTreeMap<(String, i64), Record>,
    pub(super) tokens: BTreeMap<String, Record>,
    /// The first id of the next block.
    pub(super) next_producer_id: Option<i64>,
    pub(super) errors: LogErrors,
    /// How many of the errors are records of a type that is not known.
    pub(super) unknown_types: u64,
    transaction: Option<Transaction>,
}

impl State {
    /// Applies a record of the log or of a snapshot.
    pub(super) fn take(&mut self, is_control: bool, record: &RecordRef<'_>) {
        if is_control {
            self.take_control(record);
            return;
        }
        let message = match MetadataRecord::read(CLUSTER_METADATA, record.value) {
            Ok(record) => record.message.into_owned(),
            Err(wrong) => {
                self.unknown_types += u64::from(matches!(wrong, DecodeError::UnknownType(_)));
                return self.errors.add(record.offset, wrong.to_string());
            }
        };
        let name = message.schema.name;
        match (name, &mut self.transaction) {
            ("BeginTransactionRecord", None) => {
                self.transaction = Some(Transaction { offset: record.offset, records: Vec::new() });
            }
            ("BeginTransactionRecord", Some(Transaction { offset, .. })) => {
                let text = format!("a transaction begins within the one that began at offset {offset}");
                self.errors.add(record.offset, text);
            }
            ("EndTransactionRecord" | "AbortTransactionRecord", None) => {
                self.errors.add(record.offset, "a transaction ends that has not begun");
            }
            ("AbortTransactionRecord", Some(_)) => self.transaction = None,
            ("EndTransactionRecord", transaction) => {
                for (offset, message) in transaction.take().into_iter().flat_map(|ended| ended.records) {
                    self.apply(offset, message);
                }
            }
            (_, Some(transaction)) => transaction.records.push((record.offset, message)),
            (_, None) => self.apply(record.offset, message),
        }
    }

    /// The ids of the topics by name, as Kafka prints them.
    pub(super) fn topic_ids(&self) -> HashMap<String, String> {
        self.ids.iter().map(|(name, id)| (name.clone(), uuid_text(*id))).collect()
    }

    /// At the end of the log. A transaction that is open there is normal, but among errors its end may be
    /// what is missing.
    pub(super) fn finish(&mut self) {
        if let Some(Transaction { offset, records }) = self.transaction.take()
            && !self.errors.is_empty()
            && !records.is_empty()
        {
            let text = format!(
                "the transaction that began here has no end: its {} records are left out",
                records.len()
            );
            self.errors.add(offset, text);
        }
    }

    /// Removes the errors so far. Returns the first one, and whether all are records of a type that is not
    /// known.
    pub(super) fn take_fault(&mut self) -> Option<(String, bool)> {
        let (errors, unknown) = (std::mem::take(&mut self.errors), std::mem::take(&mut self.unknown_types));
        let is_later_version = errors.count() == unknown;
        errors.into_iter().next().map(|wrong| (wrong.text, is_later_version))
    }

    /// The version of the quorum's protocol is a feature, but not a record of the metadata.
    ///
    /// *Source*: `RecordsIterator.decodeControlRecord`.
    fn take_control(&mut self, record: &RecordRef<'_>) {
        match raft_message(record.key, record.value) {
            Some(Ok(("KRAFT_VERSION", message))) => {
                self.features.insert("kraft.version".to_owned(), message.number("kRaftVersion"));
            }
            Some(Ok(_)) => {}
            Some(Err(wrong)) => self.errors.add(record.offset, wrong.to_string()),
            None => {
                let wrong = match ControlType::parse(record.key) {
                    Ok(ControlType::Other(id)) => {
                        self.unknown_types += 1;
                        format!("Unknown control record type {id}")
                    }
                    Ok(_) => "the marker of a producer's transaction".to_owned(),
                    Err(wrong) => format!("expected {}, found {}", wrong.expected, wrong.found),
                };
                self.errors.add(record.offset, wrong);
            }
        }
    }

    fn apply(&mut self, offset: i64, record: Record) {
        let applied = match record.schema.name {
            "TopicRecord" => {
                let (name, id) = (record.text("name").to_owned(), record.uuid("topicId"));
                self.ids.insert(name.clone(), id);
                self.topics.insert(id, name);
                Ok(())
            }
            "RemoveTopicRecord" => self.remove_topic(record.uuid("topicId")),
            "PartitionRecord" => {
                let mut record = record;
                fill_directories(&mut record);
                self.partitions.insert((record.uuid("topicId"), record.number("partitionId")), record);
                Ok(())
            }
            "PartitionChangeRecord" => self.change_partition(&record),
            "ClearElrRecord" => self.clear_elr(record.text("topicName")),
            "ConfigRecord" => {
                let of = |name| record.text(name).to_owned();
                let key = (record.number("resourceType"), of("resourceName"), of("name"));
                match record.get("value") {
                    Some(Value::Text(value)) => drop(self.configs.insert(key, value.as_ref().to_owned())),
                    _ => drop(self.configs.remove(&key)),
                }
                Ok(())
            }
            "FeatureLevelRecord" => {
                let (name, level) = (record.text("name").to_owned(), record.number("featureLevel"));
                if level == 0 {
                    self.features.remove(&name);
                } else {
                    self.features.insert(name, level);
                }
                Ok(())
            }
            "ProducerIdsRecord" => {
                self.next_producer_id = Some(record.number("nextProducerId"));
                Ok(())
            }
            _ => self.apply_node(record),
        };
        if let Err(wrong) = applied {
            self.errors.add(offset, wrong);
        }
    }

    /// Records on brokers and controllers.
    fn apply_node(&mut self, record: Record) -> Result<(), String> {
        match record.schema.name {
            "RegisterBrokerRecord" => drop(self.brokers.insert(record.number("brokerId"), by_name(record))),
            "UnregisterBrokerRecord" => drop(self.brokers.remove(&record.number("brokerId"))),
            "RegisterControllerRecord" => {
                self.controllers.insert(record.number("controllerId"), by_name(record));
            }
            "FenceBrokerRecord" | "UnfenceBrokerRecord" => {
                let is_fenced = record.schema.name == "FenceBrokerRecord";
                let broker = self.broker(record.number("id"), record.number("epoch"))?;
                broker.set("fenced", Value::Bool(is_fenced));
            }
            "BrokerRegistrationChangeRecord" => {
                let broker = self.broker(record.number("brokerId"), record.number("brokerEpoch"))?;
                match record.number("fenced") {
                    1 => broker.set("fenced", Value::Bool(true)),
                    -1 => broker.set("fenced", Value::Bool(false)),
                    _ => {}
                }
                if record.number("inControlledShutdown") == 1 {
                    broker.set("inControlledShutdown", Value::Bool(true));
                }
                if let Some(Value::Array(directories)) = record.get("logDirs")
                    && !directories.is_empty()
                {
                    broker.set("logDirs", record.value("logDirs"));
                }
                if record.get("cordonedLogDirs") != Some(&Value::Null) {
                    broker.set("cordonedLogDirs", record.value("cordonedLogDirs"));
                }
            }
            _ => self.apply_security(record),
        }
        Ok(())
    }

    /// Records on users and their rights.
    fn apply_security(&mut self, record: Record) {
        match record.schema.name {
            "AccessControlEntryRecord" => drop(self.acls.insert(record.uuid("id"), record)),
            "RemoveAccessControlEntryRecord" => drop(self.acls.remove(&record.uuid("id"))),
            "ClientQuotaRecord" => {
                let key = (entity(&record), record.text("key").to_owned());
                if record.is_true("remove") {
                    self.quotas.remove(&key);
                } else {
                    self.quotas.insert(key, record);
                }
            }
            "UserScramCredentialRecord" => {
                self.scram.insert((record.text("name").to_owned(), record.number("mechanism")), record);
            }
            "RemoveUserScramCredentialRecord" => {
                self.scram.remove(&(record.text("name").to_owned(), record.number("mechanism")));
            }
            "DelegationTokenRecord" => {
                self.tokens.insert(record.text("tokenId").to_owned(), record);
            }
            "RemoveDelegationTokenRecord" => drop(self.tokens.remove(record.text("tokenId"))),
            // no state: NoOpRecord, ZkMigrationStateRecord
            _ => {}
        }
    }

    fn remove_topic(&mut self, id: Uuid) -> Result<(), String> {
        let name = self.topics.remove(&id).ok_or("a topic is removed that does not exist")?;
        self.ids.remove(&name);
        self.partitions.retain(|(topic, _), _| *topic != id);
        self.configs.retain(|(kind, resource, _), _| *kind != TOPIC_RESOURCE || *resource != name);
        Ok(())
    }

    /// *Source*: `PartitionRegistration.merge`.
    fn change_partition(&mut self, change: &Record) -> Result<(), String> {
        let key = (change.uuid("topicId"), change.number("partitionId"));
        let partition = self.partitions.get_mut(&key).ok_or("a partition changes that does not exist")?;
        let lists = [
            "replicas",
            "isr",
            "removingReplicas",
            "addingReplicas",
            "directories",
            "eligibleLeaderReplicas",
            "lastKnownElr",
        ];
        for name in lists {
            if change.get(name) != Some(&Value::Null) {
                partition.set(name, change.value(name));
            }
        }
        fill_directories(partition);
        if change.number("leader") != NO_LEADER_CHANGE {
            partition.set("leader", change.value("leader"));
            increment(partition, "leaderEpoch");
        }
        if change.number("leaderRecoveryState") != NO_RECOVERY_CHANGE {
            partition.set("leaderRecoveryState", change.value("leaderRecoveryState"));
        }
        increment(partition, "partitionEpoch");
        Ok(())
    }

    /// *Source*: `TopicDelta.maybeClearElr`.
    fn clear_elr(&mut self, topic: &str) -> Result<(), String> {
        let id = match topic {
            "" => None,
            topic => Some(*self.ids.get(topic).ok_or_else(|| format!("there is no topic {topic:?}"))?),
        };
        let is_empty = |value: Value<'_>| value == Value::Null || value == Value::Array(Vec::new());
        for ((topic, _), partition) in &mut self.partitions {
            let names = ["eligibleLeaderReplicas", "lastKnownElr"];
            let is_cleared = names.iter().all(|name| is_empty(partition.value(name)));
            if id.is_none_or(|id| id == *topic) && !is_cleared {
                for name in names {
                    partition.set(name, Value::Array(Vec::new()));
                }
                increment(partition, "partitionEpoch");
            }
        }
        Ok(())
    }

    fn broker(&mut self, id: i64, epoch: i64) -> Result<&mut Record, String> {
        let broker =
            self.brokers.get_mut(&id).ok_or_else(|| format!("broker {id} changes, but is not registered"))?;
        let registered = broker.number("brokerEpoch");
        if registered != epoch {
            return Err(format!("broker {id} changes in epoch {epoch}, but is registered in {registered}"));
        }
        Ok(broker)
    }
}

/// A registration with its features and endpoints in the order of their names. Kafka keeps them in maps, and
/// writes them in any order.
fn by_name(mut registration: Record) -> Record {
    for field in ["features", "endPoints"] {
        let mut named: Vec<_> = registration.structs(field).cloned().collect();
        named.sort_by(|a, b| a.text("name").cmp(b.text("name")));
        registration.set(field, Value::Array(named.into_iter().map(Value::Struct).collect()));
    }
    registration
}

fn increment(record: &mut Record, name: &str) {
    let number = record.number(name);
    record.set(name, Value::Number(number.saturating_add(1)));
}

/// Partitions of versions without directories have a zero id for each replica. *Source*:
/// `PartitionRegistration.defaultToMigrating`.
fn fill_directories(partition: &mut Record) {
    if matches!(partition.get("directories"), Some(Value::Array(directories)) if !directories.is_empty()) {
        return;
    }
    if let Some(Value::Array(replicas)) = partition.get("replicas") {
        let directories = vec![Value::Uuid([0; 16]); replicas.len()];
        partition.set("directories", Value::Array(directories));
    }
}

fn entity(quota: &Record) -> Entity {
    let name = |part: &Message<'_>| match part.get("entityName") {
        Some(Value::Text(name)) => Some(name.as_ref().to_owned()),
        _ => None,
    };
    let parts = quota.structs("entity").map(|part| (part.text("entityType").to_owned(), name(part)));
    let mut entity: Vec<_> = parts.collect();
    entity.sort_unstable();
    entity
}

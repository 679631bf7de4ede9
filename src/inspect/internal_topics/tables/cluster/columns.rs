//! The tables of a replayed state.

use std::collections::BTreeMap;

use super::super::super::message::Message;
use super::super::super::message::Value;
use super::super::super::schema::Kind::{Array, Float64, Int8, Int16, Int32, Int64, Text, Time, Uuid};
use super::super::super::schema::{Struct, field};
use super::super::super::schemas::cluster_nodes::{REGISTER_BROKER_RECORD, REGISTER_CONTROLLER_RECORD};
use super::super::table::Table;
use super::super::topic_logs::TableOptions;
use super::names::{
    ACL_OPERATIONS, ACL_PATTERNS, ACL_PERMISSIONS, ACL_RESOURCES, CONFIG_RESOURCES, SCRAM_MECHANISMS, name_of,
};
use super::snapshot::Snapshot;
use super::state::{State, TOPIC_RESOURCE};
use super::{ClusterMetadata, ERRORS, text};

static TOPICS: Struct = Struct::shared(
    "topics",
    &[field("topic", Text), field("topic_id", Uuid), field("partitions", Int32), field("replicas", Int32)],
);
static PARTITIONS: Struct = Struct::shared(
    "partitions",
    &[
        field("topic", Text),
        field("partition", Int32),
        field("leader", Int32),
        field("leader_epoch", Int32),
        field("partition_epoch", Int32),
        field("replicas", Array(&Int32)),
        field("isr", Array(&Int32)),
        field("adding_replicas", Array(&Int32)),
        field("removing_replicas", Array(&Int32)),
        field("eligible_leader_replicas", Array(&Int32)),
        field("last_known_elr", Array(&Int32)),
        field("leader_recovery_state", Int8),
        field("directories", Array(&Uuid)),
        field("topic_id", Uuid),
    ],
);
static CONFIGS: Struct = Struct::shared(
    "configs",
    &[field("resource_type", Text), field("resource", Text), field("name", Text), field("value", Text)],
);
static FEATURES: Struct = Struct::shared("features", &[field("feature", Text), field("level", Int16)]);
static ACLS: Struct = Struct::shared(
    "acls",
    &[
        field("resource_type", Text),
        field("resource", Text),
        field("pattern_type", Text),
        field("principal", Text),
        field("host", Text),
        field("operation", Text),
        field("permission", Text),
        field("id", Uuid),
    ],
);
static PRODUCER_IDS: Struct = Struct::shared("producer_ids", &[field("next_producer_id", Int64)]);
static CLIENT_QUOTAS: Struct = Struct::shared(
    "client_quotas",
    &[
        field("user", Text),
        field("client_id", Text),
        field("ip", Text),
        field("key", Text),
        field("value", Float64),
    ],
);
static SCRAM_CREDENTIALS: Struct = Struct::shared(
    "scram_credentials",
    &[field("user", Text), field("mechanism", Text), field("iterations", Int32)],
);
static DELEGATION_TOKENS: Struct = Struct::shared(
    "delegation_tokens",
    &[
        field("token_id", Text),
        field("owner", Text),
        field("requester", Text),
        field("renewers", Array(&Text)),
        field("issue_time", Time),
        field("max_time", Time),
        field("expiry_time", Time),
    ],
);

/// The columns of all tables of this module.
#[cfg(feature = "binding")]
pub(in super::super) static COLUMNS: [&Struct; 13] = [
    &TOPICS,
    &PARTITIONS,
    &REGISTER_BROKER_RECORD,
    &REGISTER_CONTROLLER_RECORD,
    &CONFIGS,
    &FEATURES,
    &ACLS,
    &CLIENT_QUOTAS,
    &SCRAM_CREDENTIALS,
    &DELEGATION_TOKENS,
    &PRODUCER_IDS,
    &ERRORS,
    &super::records::COLUMNS,
];

/// The name of the default entity of a quota.
const DEFAULT_ENTITY: &str = "<default>";

impl State {
    /// The tables of the state.
    pub(super) fn tables(
        mut self,
        offset: i64,
        snapshot: Option<&Snapshot>,
        options: &TableOptions,
    ) -> ClusterMetadata {
        self.finish();
        let number = Value::Number;
        let features = self.features.iter().map(|(name, level)| vec![text(name), number(*level)]);
        let is_selected = |kind: i64, resource: &str| {
            options.topics.is_none() || kind == TOPIC_RESOURCE && options.has_topic(resource)
        };
        let configs = self.configs.iter().filter(|((kind, resource, _), _)| is_selected(*kind, resource));
        let configs = configs.map(|((kind, resource, name), value)| {
            vec![text(&name_of(CONFIG_RESOURCES, *kind)), text(resource), text(name), text(value)]
        });
        let scram = self.scram.iter().map(|((name, mechanism), record)| {
            vec![text(name), text(&name_of(SCRAM_MECHANISMS, *mechanism)), record.value("iterations")]
        });
        let errors = std::mem::take(&mut self.errors).into_iter();
        let errors = errors.map(|error| vec![error.offset.map_or(Value::Null, number), text(&error.text)]);
        ClusterMetadata {
            offset,
            snapshot: snapshot.map(Into::into),
            topics: self.topics_table(options),
            partitions: self.partitions_table(options),
            configs: table(&CONFIGS, configs),
            features: table(&FEATURES, features),
            acls: table(&ACLS, self.acls.values().map(acl_row)),
            client_quotas: self.quotas_table(),
            scram_credentials: table(&SCRAM_CREDENTIALS, scram),
            delegation_tokens: table(&DELEGATION_TOKENS, self.tokens.values().map(token_row)),
            errors: table(&ERRORS, errors),
            producer_ids: table(&PRODUCER_IDS, self.next_producer_id.into_iter().map(|id| vec![number(id)])),
            brokers: Table::of_messages(&REGISTER_BROKER_RECORD, self.brokers.into_values().collect()),
            controllers: Table::of_messages(
                &REGISTER_CONTROLLER_RECORD,
                self.controllers.into_values().collect(),
            ),
        }
    }

    /// Topics by name.
    fn topics_table(&self, options: &TableOptions) -> Table {
        let mut counts: BTreeMap<[u8; 16], (i64, usize)> = BTreeMap::new();
        for ((topic, _), partition) in &self.partitions {
            let (partitions, replicas) = counts.entry(*topic).or_default();
            *partitions += 1;
            if let Some(Value::Array(of_partition)) = partition.get("replicas") {
                *replicas = of_partition.len().max(*replicas);
            }
        }
        let topics = self.topics.iter().filter(|(_, name)| options.has_topic(name));
        let mut topics: Vec<_> = topics.map(|(id, name)| (name, id)).collect();
        topics.sort_unstable();
        let rows = topics.into_iter().map(|(name, id)| {
            let (partitions, replicas) = counts.get(id).copied().unwrap_or_default();
            let replicas = i64::try_from(replicas).unwrap_or(i64::MAX);
            vec![text(name), Value::Uuid(*id), Value::Number(partitions), Value::Number(replicas)]
        });
        table(&TOPICS, rows)
    }

    /// Partitions by topic and number.
    fn partitions_table(&self, options: &TableOptions) -> Table {
        let name = |id: &[u8; 16]| self.topics.get(id).map_or("", String::as_str);
        let selected = self.partitions.iter().filter(|((id, _), _)| options.has_topic(name(id)));
        let mut partitions: Vec<_> = selected.collect();
        partitions.sort_by_key(|((id, partition), _)| (name(id), *id, *partition));
        let rows = partitions.into_iter().map(|((id, partition), record)| {
            vec![
                self.topics.get(id).map_or(Value::Null, |name| text(name)),
                Value::Number(*partition),
                record.value("leader"),
                record.value("leaderEpoch"),
                record.value("partitionEpoch"),
                record.value("replicas"),
                record.value("isr"),
                record.value("addingReplicas"),
                record.value("removingReplicas"),
                record.value("eligibleLeaderReplicas"),
                record.value("lastKnownElr"),
                record.value("leaderRecoveryState"),
                record.value("directories"),
                Value::Uuid(*id),
            ]
        });
        table(&PARTITIONS, rows)
    }

    fn quotas_table(&self) -> Table {
        let rows = self.quotas.iter().map(|((entity, key), record)| {
            let of = |kind: &str| {
                let name = entity.iter().find(|(known, _)| known == kind).map(|(_, name)| name);
                name.map_or(Value::Null, |name| text(name.as_deref().unwrap_or(DEFAULT_ENTITY)))
            };
            vec![of("user"), of("client-id"), of("ip"), text(key), record.value("value")]
        });
        table(&CLIENT_QUOTAS, rows)
    }
}

fn acl_row(record: &Message<'static>) -> Vec<Value<'static>> {
    let named = |names, field| text(&name_of(names, record.number(field)));
    vec![
        named(ACL_RESOURCES, "resourceType"),
        record.value("resourceName"),
        named(ACL_PATTERNS, "patternType"),
        record.value("principal"),
        record.value("host"),
        named(ACL_OPERATIONS, "operation"),
        named(ACL_PERMISSIONS, "permissionType"),
        record.value("id"),
    ]
}

fn token_row(record: &Message<'static>) -> Vec<Value<'static>> {
    ["tokenId", "owner", "requester", "renewers", "issueTimestamp", "maxTimestamp", "expirationTimestamp"]
        .map(|field| record.value(field))
        .into()
}

fn table(columns: &'static Struct, rows: impl Iterator<Item = Vec<Value<'static>>>) -> Table {
    let mut table = Table::new(columns);
    table.extend(rows);
    table
}

//! The records of `__cluster_metadata` on topics, configurations and the log itself.

use super::super::schema::Kind::{Array, Int8, Int16, Int32, Int64, Text, Uuid};
use super::super::schema::{Struct, field};

pub(in super::super) static TOPIC_RECORD: Struct =
    Struct::message("TopicRecord", 0, 0, &[field("name", Text), field("topicId", Uuid)]).flexible(0);

pub(in super::super) static PARTITION_RECORD: Struct = Struct::message(
    "PartitionRecord",
    0,
    2,
    &[
        field("partitionId", Int32).default(-1),
        field("topicId", Uuid),
        field("replicas", Array(&Int32)),
        field("isr", Array(&Int32)),
        field("removingReplicas", Array(&Int32)),
        field("addingReplicas", Array(&Int32)),
        field("leader", Int32).default(-1),
        field("leaderRecoveryState", Int8).tag(0),
        field("leaderEpoch", Int32).default(-1),
        field("partitionEpoch", Int32).default(-1),
        field("directories", Array(&Uuid)).since(1),
        field("eligibleLeaderReplicas", Array(&Int32)).since(2).nullable().tag(1).default_null(),
        field("lastKnownElr", Array(&Int32)).since(2).nullable().tag(2).default_null(),
    ],
)
.flexible(0);

pub(in super::super) static CONFIG_RECORD: Struct = Struct::message(
    "ConfigRecord",
    0,
    0,
    &[
        field("resourceType", Int8),
        field("resourceName", Text),
        field("name", Text),
        field("value", Text).nullable(),
    ],
)
.flexible(0);

pub(in super::super) static PARTITION_CHANGE_RECORD: Struct = Struct::message(
    "PartitionChangeRecord",
    0,
    2,
    &[
        field("partitionId", Int32).default(-1),
        field("topicId", Uuid),
        field("isr", Array(&Int32)).nullable().tag(0).default_null(),
        field("leader", Int32).tag(1).default(-2),
        field("replicas", Array(&Int32)).nullable().tag(2).default_null(),
        field("removingReplicas", Array(&Int32)).nullable().tag(3).default_null(),
        field("addingReplicas", Array(&Int32)).nullable().tag(4).default_null(),
        field("leaderRecoveryState", Int8).tag(5).default(-1),
        field("directories", Array(&Uuid)).since(1).nullable().tag(8).default_null(),
        field("eligibleLeaderReplicas", Array(&Int32)).since(2).nullable().tag(6).default_null(),
        field("lastKnownElr", Array(&Int32)).since(2).nullable().tag(7).default_null(),
    ],
)
.flexible(0);

pub(in super::super) static REMOVE_TOPIC_RECORD: Struct =
    Struct::message("RemoveTopicRecord", 0, 0, &[field("topicId", Uuid)]).flexible(0);

pub(in super::super) static FEATURE_LEVEL_RECORD: Struct =
    Struct::message("FeatureLevelRecord", 0, 0, &[field("name", Text), field("featureLevel", Int16)])
        .flexible(0);

pub(in super::super) static PRODUCER_IDS_RECORD: Struct = Struct::message(
    "ProducerIdsRecord",
    0,
    0,
    &[field("brokerId", Int32), field("brokerEpoch", Int64).default(-1), field("nextProducerId", Int64)],
)
.flexible(0);

pub(in super::super) static NO_OP_RECORD: Struct = Struct::message("NoOpRecord", 0, 0, &[]).flexible(0);

pub(in super::super) static ZK_MIGRATION_STATE_RECORD: Struct =
    Struct::message("ZkMigrationStateRecord", 0, 0, &[field("zkMigrationState", Int8)]).flexible(0);

pub(in super::super) static BEGIN_TRANSACTION_RECORD: Struct =
    Struct::message("BeginTransactionRecord", 0, 0, &[field("name", Text).nullable().tag(0).default_null()])
        .flexible(0);

pub(in super::super) static END_TRANSACTION_RECORD: Struct =
    Struct::message("EndTransactionRecord", 0, 0, &[]).flexible(0);

pub(in super::super) static ABORT_TRANSACTION_RECORD: Struct = Struct::message(
    "AbortTransactionRecord",
    0,
    0,
    &[field("reason", Text).nullable().tag(0).default_null()],
)
.flexible(0);

pub(in super::super) static CLEAR_ELR_RECORD: Struct =
    Struct::message("ClearElrRecord", 0, 0, &[field("topicName", Text)]).flexible(0);

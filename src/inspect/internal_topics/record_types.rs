//! The types of the records of internal topics, by the number with which a record begins.

use super::schema::Struct;
use super::schemas::{
    classic_groups, cluster_nodes, cluster_security, cluster_topics, consumer_groups, remote_log,
    share_groups, share_state, streams_groups, transactions,
};

/// A type of records with a key. *Source*: the generated `CoordinatorRecordType`.
#[derive(Debug)]
pub(super) struct CoordinatorType {
    pub(super) id: i16,
    pub(super) key: &'static Struct,
    pub(super) value: &'static Struct,
}

/// A type of records without a key. *Source*: the generated `MetadataRecordType`.
#[derive(Debug)]
pub(super) struct MetadataType {
    pub(super) id: i16,
    pub(super) name: &'static str,
    pub(super) value: &'static Struct,
}

const fn coordinator(id: i16, key: &'static Struct, value: &'static Struct) -> CoordinatorType {
    CoordinatorType { id, key, value }
}

const fn metadata(id: i16, name: &'static str, value: &'static Struct) -> MetadataType {
    MetadataType { id, name, value }
}

/// The records of `__consumer_offsets`.
pub(super) static GROUP_COORDINATOR: &[CoordinatorType] = &[
    coordinator(0, &classic_groups::LEGACY_OFFSET_COMMIT_KEY, &classic_groups::LEGACY_OFFSET_COMMIT_VALUE),
    coordinator(1, &classic_groups::OFFSET_COMMIT_KEY, &classic_groups::OFFSET_COMMIT_VALUE),
    coordinator(2, &classic_groups::GROUP_METADATA_KEY, &classic_groups::GROUP_METADATA_VALUE),
    coordinator(
        3,
        &consumer_groups::CONSUMER_GROUP_METADATA_KEY,
        &consumer_groups::CONSUMER_GROUP_METADATA_VALUE,
    ),
    coordinator(
        4,
        &consumer_groups::CONSUMER_GROUP_PARTITION_METADATA_KEY,
        &consumer_groups::CONSUMER_GROUP_PARTITION_METADATA_VALUE,
    ),
    coordinator(
        5,
        &consumer_groups::CONSUMER_GROUP_MEMBER_METADATA_KEY,
        &consumer_groups::CONSUMER_GROUP_MEMBER_METADATA_VALUE,
    ),
    coordinator(
        6,
        &consumer_groups::CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY,
        &consumer_groups::CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE,
    ),
    coordinator(
        7,
        &consumer_groups::CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY,
        &consumer_groups::CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,
    ),
    coordinator(
        8,
        &consumer_groups::CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY,
        &consumer_groups::CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,
    ),
    coordinator(
        10,
        &share_groups::SHARE_GROUP_MEMBER_METADATA_KEY,
        &share_groups::SHARE_GROUP_MEMBER_METADATA_VALUE,
    ),
    coordinator(11, &share_groups::SHARE_GROUP_METADATA_KEY, &share_groups::SHARE_GROUP_METADATA_VALUE),
    coordinator(
        12,
        &share_groups::SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY,
        &share_groups::SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE,
    ),
    coordinator(
        13,
        &share_groups::SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY,
        &share_groups::SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,
    ),
    coordinator(
        14,
        &share_groups::SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY,
        &share_groups::SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,
    ),
    coordinator(
        15,
        &share_groups::SHARE_GROUP_STATE_PARTITION_METADATA_KEY,
        &share_groups::SHARE_GROUP_STATE_PARTITION_METADATA_VALUE,
    ),
    coordinator(
        16,
        &consumer_groups::CONSUMER_GROUP_REGULAR_EXPRESSION_KEY,
        &consumer_groups::CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE,
    ),
    coordinator(
        17,
        &streams_groups::STREAMS_GROUP_METADATA_KEY,
        &streams_groups::STREAMS_GROUP_METADATA_VALUE,
    ),
    coordinator(
        19,
        &streams_groups::STREAMS_GROUP_MEMBER_METADATA_KEY,
        &streams_groups::STREAMS_GROUP_MEMBER_METADATA_VALUE,
    ),
    coordinator(
        20,
        &streams_groups::STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_KEY,
        &streams_groups::STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE,
    ),
    coordinator(
        21,
        &streams_groups::STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY,
        &streams_groups::STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,
    ),
    coordinator(
        22,
        &streams_groups::STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY,
        &streams_groups::STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,
    ),
    coordinator(
        23,
        &streams_groups::STREAMS_GROUP_TOPOLOGY_KEY,
        &streams_groups::STREAMS_GROUP_TOPOLOGY_VALUE,
    ),
];

/// The records of `__transaction_state`.
pub(super) static TRANSACTION_COORDINATOR: &[CoordinatorType] =
    &[coordinator(0, &transactions::TRANSACTION_LOG_KEY, &transactions::TRANSACTION_LOG_VALUE)];

/// The records of `__share_group_state`.
pub(super) static SHARE_COORDINATOR: &[CoordinatorType] = &[
    coordinator(0, &share_state::SHARE_SNAPSHOT_KEY, &share_state::SHARE_SNAPSHOT_VALUE),
    coordinator(1, &share_state::SHARE_UPDATE_KEY, &share_state::SHARE_UPDATE_VALUE),
];

/// The records of `__cluster_metadata`.
pub(super) static CLUSTER_METADATA: &[MetadataType] = &[
    metadata(0, "REGISTER_BROKER_RECORD", &cluster_nodes::REGISTER_BROKER_RECORD),
    metadata(1, "UNREGISTER_BROKER_RECORD", &cluster_nodes::UNREGISTER_BROKER_RECORD),
    metadata(2, "TOPIC_RECORD", &cluster_topics::TOPIC_RECORD),
    metadata(3, "PARTITION_RECORD", &cluster_topics::PARTITION_RECORD),
    metadata(4, "CONFIG_RECORD", &cluster_topics::CONFIG_RECORD),
    metadata(5, "PARTITION_CHANGE_RECORD", &cluster_topics::PARTITION_CHANGE_RECORD),
    metadata(7, "FENCE_BROKER_RECORD", &cluster_nodes::FENCE_BROKER_RECORD),
    metadata(8, "UNFENCE_BROKER_RECORD", &cluster_nodes::UNFENCE_BROKER_RECORD),
    metadata(9, "REMOVE_TOPIC_RECORD", &cluster_topics::REMOVE_TOPIC_RECORD),
    metadata(10, "DELEGATION_TOKEN_RECORD", &cluster_security::DELEGATION_TOKEN_RECORD),
    metadata(11, "USER_SCRAM_CREDENTIAL_RECORD", &cluster_security::USER_SCRAM_CREDENTIAL_RECORD),
    metadata(12, "FEATURE_LEVEL_RECORD", &cluster_topics::FEATURE_LEVEL_RECORD),
    metadata(14, "CLIENT_QUOTA_RECORD", &cluster_security::CLIENT_QUOTA_RECORD),
    metadata(15, "PRODUCER_IDS_RECORD", &cluster_topics::PRODUCER_IDS_RECORD),
    metadata(17, "BROKER_REGISTRATION_CHANGE_RECORD", &cluster_nodes::BROKER_REGISTRATION_CHANGE_RECORD),
    metadata(18, "ACCESS_CONTROL_ENTRY_RECORD", &cluster_security::ACCESS_CONTROL_ENTRY_RECORD),
    metadata(19, "REMOVE_ACCESS_CONTROL_ENTRY_RECORD", &cluster_security::REMOVE_ACCESS_CONTROL_ENTRY_RECORD),
    metadata(20, "NO_OP_RECORD", &cluster_topics::NO_OP_RECORD),
    metadata(21, "ZK_MIGRATION_STATE_RECORD", &cluster_topics::ZK_MIGRATION_STATE_RECORD),
    metadata(
        22,
        "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
        &cluster_security::REMOVE_USER_SCRAM_CREDENTIAL_RECORD,
    ),
    metadata(23, "BEGIN_TRANSACTION_RECORD", &cluster_topics::BEGIN_TRANSACTION_RECORD),
    metadata(24, "END_TRANSACTION_RECORD", &cluster_topics::END_TRANSACTION_RECORD),
    metadata(25, "ABORT_TRANSACTION_RECORD", &cluster_topics::ABORT_TRANSACTION_RECORD),
    metadata(26, "REMOVE_DELEGATION_TOKEN_RECORD", &cluster_security::REMOVE_DELEGATION_TOKEN_RECORD),
    metadata(27, "REGISTER_CONTROLLER_RECORD", &cluster_nodes::REGISTER_CONTROLLER_RECORD),
    metadata(28, "CLEAR_ELR_RECORD", &cluster_topics::CLEAR_ELR_RECORD),
];

/// The records of `__remote_log_metadata`.
pub(super) static REMOTE_LOG_METADATA: &[MetadataType] = &[
    metadata(0, "REMOTE_LOG_SEGMENT_METADATA_RECORD", &remote_log::REMOTE_LOG_SEGMENT_METADATA_RECORD),
    metadata(
        1,
        "REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD",
        &remote_log::REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD,
    ),
    metadata(
        2,
        "REMOTE_PARTITION_DELETE_METADATA_RECORD",
        &remote_log::REMOTE_PARTITION_DELETE_METADATA_RECORD,
    ),
    metadata(
        3,
        "REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD",
        &remote_log::REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD,
    ),
];

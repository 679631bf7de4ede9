//! Share groups in `__consumer_offsets`.

use super::super::schema::Kind::{Array, Int8, Int32, Int64, Struct as StructOf, Text, Uuid};
use super::super::schema::{Struct, field};

pub(in super::super) static SHARE_GROUP_MEMBER_METADATA_KEY: Struct =
    Struct::message("ShareGroupMemberMetadataKey", 0, 0, &[field("groupId", Text), field("memberId", Text)]);

pub(in super::super) static SHARE_GROUP_MEMBER_METADATA_VALUE: Struct = Struct::message(
    "ShareGroupMemberMetadataValue",
    0,
    0,
    &[
        field("rackId", Text).nullable(),
        field("clientId", Text),
        field("clientHost", Text),
        field("subscribedTopicNames", Array(&Text)),
    ],
)
.flexible(0);

pub(in super::super) static SHARE_GROUP_METADATA_KEY: Struct =
    Struct::message("ShareGroupMetadataKey", 0, 0, &[field("groupId", Text)]);

pub(in super::super) static SHARE_GROUP_METADATA_VALUE: Struct =
    Struct::message("ShareGroupMetadataValue", 0, 0, &[field("epoch", Int32), field("metadataHash", Int64)])
        .flexible(0);

pub(in super::super) static SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY: Struct =
    Struct::message("ShareGroupTargetAssignmentMetadataKey", 0, 0, &[field("groupId", Text)]);

pub(in super::super) static SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE: Struct = Struct::message(
    "ShareGroupTargetAssignmentMetadataValue",
    0,
    0,
    &[field("assignmentEpoch", Int32), field("assignmentTimestamp", Int64).tag(0)],
)
.flexible(0);

pub(in super::super) static SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY: Struct = Struct::message(
    "ShareGroupTargetAssignmentMemberKey",
    0,
    0,
    &[field("groupId", Text), field("memberId", Text)],
);

static SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TOPIC_PARTITION: Struct =
    Struct::nested("TopicPartition", &[field("topicId", Uuid), field("partitions", Array(&Int32))]);

pub(in super::super) static SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE: Struct = Struct::message(
    "ShareGroupTargetAssignmentMemberValue",
    0,
    0,
    &[field(
        "topicPartitions",
        Array(&StructOf(&SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TOPIC_PARTITION)),
    )],
)
.flexible(0);

pub(in super::super) static SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY: Struct = Struct::message(
    "ShareGroupCurrentMemberAssignmentKey",
    0,
    0,
    &[field("groupId", Text), field("memberId", Text)],
);

static SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TOPIC_PARTITIONS: Struct =
    Struct::shared("TopicPartitions", &[field("topicId", Uuid), field("partitions", Array(&Int32))]);

pub(in super::super) static SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE: Struct = Struct::message(
    "ShareGroupCurrentMemberAssignmentValue",
    0,
    0,
    &[
        field("memberEpoch", Int32),
        field("previousMemberEpoch", Int32),
        field("state", Int8),
        field(
            "assignedPartitions",
            Array(&StructOf(&SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TOPIC_PARTITIONS)),
        ),
    ],
)
.flexible(0);

pub(in super::super) static SHARE_GROUP_STATE_PARTITION_METADATA_KEY: Struct =
    Struct::message("ShareGroupStatePartitionMetadataKey", 0, 0, &[field("groupId", Text)]);

static SHARE_GROUP_STATE_PARTITION_METADATA_VALUE_TOPIC_INFO: Struct =
    Struct::shared("TopicInfo", &[field("topicId", Uuid), field("topicName", Text)]);

static SHARE_GROUP_STATE_PARTITION_METADATA_VALUE_TOPIC_PARTITIONS_INFO: Struct = Struct::shared(
    "TopicPartitionsInfo",
    &[field("topicId", Uuid), field("topicName", Text), field("partitions", Array(&Int32))],
);

pub(in super::super) static SHARE_GROUP_STATE_PARTITION_METADATA_VALUE: Struct = Struct::message(
    "ShareGroupStatePartitionMetadataValue",
    0,
    0,
    &[
        field(
            "initializingTopics",
            Array(&StructOf(&SHARE_GROUP_STATE_PARTITION_METADATA_VALUE_TOPIC_PARTITIONS_INFO)),
        ),
        field(
            "initializedTopics",
            Array(&StructOf(&SHARE_GROUP_STATE_PARTITION_METADATA_VALUE_TOPIC_PARTITIONS_INFO)),
        ),
        field("deletingTopics", Array(&StructOf(&SHARE_GROUP_STATE_PARTITION_METADATA_VALUE_TOPIC_INFO))),
    ],
)
.flexible(0);

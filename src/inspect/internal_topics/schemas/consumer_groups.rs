//! Consumer groups in `__consumer_offsets`.

use super::super::schema::Kind::{Array, Bytes, Int8, Int32, Int64, Struct as StructOf, Text, Uuid};
use super::super::schema::{Struct, field};

pub(in super::super) static CONSUMER_GROUP_METADATA_KEY: Struct =
    Struct::message("ConsumerGroupMetadataKey", 0, 0, &[field("groupId", Text)]);

pub(in super::super) static CONSUMER_GROUP_METADATA_VALUE: Struct = Struct::message(
    "ConsumerGroupMetadataValue",
    0,
    0,
    &[field("epoch", Int32), field("metadataHash", Int64).tag(0)],
)
.flexible(0);

pub(in super::super) static CONSUMER_GROUP_PARTITION_METADATA_KEY: Struct =
    Struct::message("ConsumerGroupPartitionMetadataKey", 0, 0, &[field("groupId", Text)]);

static CONSUMER_GROUP_PARTITION_METADATA_VALUE_PARTITION_METADATA: Struct =
    Struct::nested("PartitionMetadata", &[field("partition", Int32), field("racks", Array(&Text))]);

static CONSUMER_GROUP_PARTITION_METADATA_VALUE_TOPIC_METADATA: Struct = Struct::nested(
    "TopicMetadata",
    &[
        field("topicId", Uuid),
        field("topicName", Text),
        field("numPartitions", Int32),
        field(
            "partitionMetadata",
            Array(&StructOf(&CONSUMER_GROUP_PARTITION_METADATA_VALUE_PARTITION_METADATA)),
        ),
    ],
);

pub(in super::super) static CONSUMER_GROUP_PARTITION_METADATA_VALUE: Struct = Struct::message(
    "ConsumerGroupPartitionMetadataValue",
    0,
    0,
    &[field("topics", Array(&StructOf(&CONSUMER_GROUP_PARTITION_METADATA_VALUE_TOPIC_METADATA)))],
)
.flexible(0);

pub(in super::super) static CONSUMER_GROUP_MEMBER_METADATA_KEY: Struct = Struct::message(
    "ConsumerGroupMemberMetadataKey",
    0,
    0,
    &[field("groupId", Text), field("memberId", Text)],
);

static CONSUMER_GROUP_MEMBER_METADATA_VALUE_CLASSIC_PROTOCOL: Struct =
    Struct::nested("ClassicProtocol", &[field("name", Text), field("metadata", Bytes)]);

static CONSUMER_GROUP_MEMBER_METADATA_VALUE_CLASSIC_MEMBER_METADATA: Struct = Struct::nested(
    "ClassicMemberMetadata",
    &[
        field("sessionTimeoutMs", Int32),
        field("supportedProtocols", Array(&StructOf(&CONSUMER_GROUP_MEMBER_METADATA_VALUE_CLASSIC_PROTOCOL))),
    ],
);

pub(in super::super) static CONSUMER_GROUP_MEMBER_METADATA_VALUE: Struct = Struct::message(
    "ConsumerGroupMemberMetadataValue",
    0,
    0,
    &[
        field("instanceId", Text).nullable(),
        field("rackId", Text).nullable(),
        field("clientId", Text),
        field("clientHost", Text),
        field("subscribedTopicNames", Array(&Text)),
        field("subscribedTopicRegex", Text).nullable(),
        field("rebalanceTimeoutMs", Int32).default(-1),
        field("serverAssignor", Text).nullable(),
        field(
            "classicMemberMetadata",
            StructOf(&CONSUMER_GROUP_MEMBER_METADATA_VALUE_CLASSIC_MEMBER_METADATA),
        )
        .nullable()
        .tag(0),
    ],
)
.flexible(0);

pub(in super::super) static CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY: Struct =
    Struct::message("ConsumerGroupTargetAssignmentMetadataKey", 0, 0, &[field("groupId", Text)]);

pub(in super::super) static CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE: Struct = Struct::message(
    "ConsumerGroupTargetAssignmentMetadataValue",
    0,
    0,
    &[field("assignmentEpoch", Int32), field("assignmentTimestamp", Int64).tag(0)],
)
.flexible(0);

pub(in super::super) static CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY: Struct = Struct::message(
    "ConsumerGroupTargetAssignmentMemberKey",
    0,
    0,
    &[field("groupId", Text), field("memberId", Text)],
);

static CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TOPIC_PARTITION: Struct =
    Struct::nested("TopicPartition", &[field("topicId", Uuid), field("partitions", Array(&Int32))]);

pub(in super::super) static CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE: Struct = Struct::message(
    "ConsumerGroupTargetAssignmentMemberValue",
    0,
    0,
    &[field(
        "topicPartitions",
        Array(&StructOf(&CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TOPIC_PARTITION)),
    )],
)
.flexible(0);

pub(in super::super) static CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY: Struct = Struct::message(
    "ConsumerGroupCurrentMemberAssignmentKey",
    0,
    0,
    &[field("groupId", Text), field("memberId", Text)],
);

static CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TOPIC_PARTITIONS: Struct = Struct::shared(
    "TopicPartitions",
    &[
        field("topicId", Uuid),
        field("partitions", Array(&Int32)),
        field("assignmentEpochs", Array(&Int32)).nullable().tag(0),
    ],
);

pub(in super::super) static CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE: Struct = Struct::message(
    "ConsumerGroupCurrentMemberAssignmentValue",
    0,
    0,
    &[
        field("memberEpoch", Int32),
        field("previousMemberEpoch", Int32),
        field("state", Int8),
        field(
            "assignedPartitions",
            Array(&StructOf(&CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TOPIC_PARTITIONS)),
        ),
        field(
            "partitionsPendingRevocation",
            Array(&StructOf(&CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TOPIC_PARTITIONS)),
        ),
    ],
)
.flexible(0);

pub(in super::super) static CONSUMER_GROUP_REGULAR_EXPRESSION_KEY: Struct = Struct::message(
    "ConsumerGroupRegularExpressionKey",
    0,
    0,
    &[field("groupId", Text), field("regularExpression", Text)],
);

pub(in super::super) static CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE: Struct = Struct::message(
    "ConsumerGroupRegularExpressionValue",
    0,
    0,
    &[field("topics", Array(&Text)), field("version", Int64), field("timestamp", Int64)],
)
.flexible(0);

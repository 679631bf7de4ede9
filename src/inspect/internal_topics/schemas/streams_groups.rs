//! Streams groups in `__consumer_offsets`.

use super::super::schema::Kind::{Array, Int8, Int16, Int32, Int64, Struct as StructOf, Text, UInt16};
use super::super::schema::{Struct, field};

pub(in super::super) static STREAMS_GROUP_METADATA_KEY: Struct =
    Struct::message("StreamsGroupMetadataKey", 0, 0, &[field("groupId", Text)]);

static STREAMS_GROUP_METADATA_VALUE_LAST_ASSIGNMENT_CONFIG: Struct =
    Struct::shared("LastAssignmentConfig", &[field("key", Text), field("value", Text)]);

pub(in super::super) static STREAMS_GROUP_METADATA_VALUE: Struct = Struct::message(
    "StreamsGroupMetadataValue",
    0,
    0,
    &[
        field("epoch", Int32),
        field("metadataHash", Int64),
        field("validatedTopologyEpoch", Int32).tag(0).default(-1),
        field(
            "lastAssignmentConfigs",
            Array(&StructOf(&STREAMS_GROUP_METADATA_VALUE_LAST_ASSIGNMENT_CONFIG)),
        )
        .nullable()
        .tag(1),
    ],
)
.flexible(0);

pub(in super::super) static STREAMS_GROUP_MEMBER_METADATA_KEY: Struct = Struct::message(
    "StreamsGroupMemberMetadataKey",
    0,
    0,
    &[field("groupId", Text), field("memberId", Text)],
);

static STREAMS_GROUP_MEMBER_METADATA_VALUE_KEY_VALUE: Struct =
    Struct::shared("KeyValue", &[field("key", Text), field("value", Text)]);

static STREAMS_GROUP_MEMBER_METADATA_VALUE_ENDPOINT: Struct =
    Struct::shared("Endpoint", &[field("host", Text), field("port", UInt16)]);

pub(in super::super) static STREAMS_GROUP_MEMBER_METADATA_VALUE: Struct = Struct::message(
    "StreamsGroupMemberMetadataValue",
    0,
    0,
    &[
        field("instanceId", Text).nullable(),
        field("rackId", Text).nullable(),
        field("clientId", Text),
        field("clientHost", Text),
        field("rebalanceTimeoutMs", Int32).default(-1),
        field("topologyEpoch", Int32),
        field("processId", Text),
        field("userEndpoint", StructOf(&STREAMS_GROUP_MEMBER_METADATA_VALUE_ENDPOINT))
            .nullable()
            .default_null(),
        field("clientTags", Array(&StructOf(&STREAMS_GROUP_MEMBER_METADATA_VALUE_KEY_VALUE))),
    ],
)
.flexible(0);

pub(in super::super) static STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_KEY: Struct =
    Struct::message("StreamsGroupTargetAssignmentMetadataKey", 0, 0, &[field("groupId", Text)]);

pub(in super::super) static STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE: Struct = Struct::message(
    "StreamsGroupTargetAssignmentMetadataValue",
    0,
    0,
    &[field("assignmentEpoch", Int32), field("assignmentTimestamp", Int64).tag(0)],
)
.flexible(0);

pub(in super::super) static STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY: Struct = Struct::message(
    "StreamsGroupTargetAssignmentMemberKey",
    0,
    0,
    &[field("groupId", Text), field("memberId", Text)],
);

static STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TASK_IDS: Struct =
    Struct::shared("TaskIds", &[field("subtopologyId", Text), field("partitions", Array(&Int32))]);

pub(in super::super) static STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE: Struct = Struct::message(
    "StreamsGroupTargetAssignmentMemberValue",
    0,
    0,
    &[
        field("activeTasks", Array(&StructOf(&STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TASK_IDS))),
        field("standbyTasks", Array(&StructOf(&STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TASK_IDS))),
        field("warmupTasks", Array(&StructOf(&STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE_TASK_IDS))),
    ],
)
.flexible(0);

pub(in super::super) static STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY: Struct = Struct::message(
    "StreamsGroupCurrentMemberAssignmentKey",
    0,
    0,
    &[field("groupId", Text), field("memberId", Text)],
);

static STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TASK_IDS: Struct = Struct::shared(
    "TaskIds",
    &[
        field("subtopologyId", Text),
        field("partitions", Array(&Int32)),
        field("assignmentEpochs", Array(&Int32)).nullable().tag(0),
    ],
);

pub(in super::super) static STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE: Struct = Struct::message(
    "StreamsGroupCurrentMemberAssignmentValue",
    0,
    0,
    &[
        field("memberEpoch", Int32),
        field("previousMemberEpoch", Int32),
        field("state", Int8),
        field("activeTasks", Array(&StructOf(&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TASK_IDS))),
        field("standbyTasks", Array(&StructOf(&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TASK_IDS))),
        field("warmupTasks", Array(&StructOf(&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TASK_IDS))),
        field(
            "activeTasksPendingRevocation",
            Array(&StructOf(&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TASK_IDS)),
        ),
        field(
            "standbyTasksPendingRevocation",
            Array(&StructOf(&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TASK_IDS)),
        ),
        field(
            "warmupTasksPendingRevocation",
            Array(&StructOf(&STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE_TASK_IDS)),
        ),
    ],
)
.flexible(0);

pub(in super::super) static STREAMS_GROUP_TOPOLOGY_KEY: Struct =
    Struct::message("StreamsGroupTopologyKey", 0, 0, &[field("groupId", Text)]);

static STREAMS_GROUP_TOPOLOGY_VALUE_TOPIC_INFO: Struct = Struct::shared(
    "TopicInfo",
    &[
        field("name", Text),
        field("partitions", Int32),
        field("replicationFactor", Int16),
        field("topicConfigs", Array(&StructOf(&STREAMS_GROUP_TOPOLOGY_VALUE_TOPIC_CONFIG))),
    ],
);

static STREAMS_GROUP_TOPOLOGY_VALUE_TOPIC_CONFIG: Struct =
    Struct::shared("TopicConfig", &[field("key", Text), field("value", Text)]);

static STREAMS_GROUP_TOPOLOGY_VALUE_COPARTITION_GROUP: Struct = Struct::nested(
    "CopartitionGroup",
    &[
        field("sourceTopics", Array(&Int16)),
        field("sourceTopicRegex", Array(&Int16)),
        field("repartitionSourceTopics", Array(&Int16)),
    ],
);

static STREAMS_GROUP_TOPOLOGY_VALUE_SUBTOPOLOGY: Struct = Struct::nested(
    "Subtopology",
    &[
        field("subtopologyId", Text),
        field("sourceTopics", Array(&Text)),
        field("sourceTopicRegex", Array(&Text)),
        field("stateChangelogTopics", Array(&StructOf(&STREAMS_GROUP_TOPOLOGY_VALUE_TOPIC_INFO))),
        field("repartitionSinkTopics", Array(&Text)),
        field("repartitionSourceTopics", Array(&StructOf(&STREAMS_GROUP_TOPOLOGY_VALUE_TOPIC_INFO))),
        field("copartitionGroups", Array(&StructOf(&STREAMS_GROUP_TOPOLOGY_VALUE_COPARTITION_GROUP))),
    ],
);

pub(in super::super) static STREAMS_GROUP_TOPOLOGY_VALUE: Struct = Struct::message(
    "StreamsGroupTopologyValue",
    0,
    0,
    &[
        field("epoch", Int32),
        field("subtopologies", Array(&StructOf(&STREAMS_GROUP_TOPOLOGY_VALUE_SUBTOPOLOGY))),
    ],
)
.flexible(0);

//! The records of `__remote_log_metadata`.

use super::super::schema::Kind::{Array, Bool, Bytes, Int8, Int32, Int64, Struct as StructOf, Text, Uuid};
use super::super::schema::{Struct, field};

static REMOTE_LOG_SEGMENT_METADATA_RECORD_TOPIC_ID_PARTITION_ENTRY: Struct = Struct::nested(
    "TopicIdPartitionEntry",
    &[field("name", Text), field("id", Uuid), field("partition", Int32)],
);

static REMOTE_LOG_SEGMENT_METADATA_RECORD_REMOTE_LOG_SEGMENT_ID_ENTRY: Struct = Struct::nested(
    "RemoteLogSegmentIdEntry",
    &[
        field("topicIdPartition", StructOf(&REMOTE_LOG_SEGMENT_METADATA_RECORD_TOPIC_ID_PARTITION_ENTRY)),
        field("id", Uuid),
    ],
);

static REMOTE_LOG_SEGMENT_METADATA_RECORD_SEGMENT_LEADER_EPOCH_ENTRY: Struct =
    Struct::nested("SegmentLeaderEpochEntry", &[field("leaderEpoch", Int32), field("offset", Int64)]);

pub(in super::super) static REMOTE_LOG_SEGMENT_METADATA_RECORD: Struct = Struct::message(
    "RemoteLogSegmentMetadataRecord",
    0,
    0,
    &[
        field(
            "remoteLogSegmentId",
            StructOf(&REMOTE_LOG_SEGMENT_METADATA_RECORD_REMOTE_LOG_SEGMENT_ID_ENTRY),
        ),
        field("startOffset", Int64),
        field("endOffset", Int64),
        field("brokerId", Int32),
        field("maxTimestampMs", Int64),
        field("eventTimestampMs", Int64),
        field(
            "segmentLeaderEpochs",
            Array(&StructOf(&REMOTE_LOG_SEGMENT_METADATA_RECORD_SEGMENT_LEADER_EPOCH_ENTRY)),
        ),
        field("segmentSizeInBytes", Int32),
        field("customMetadata", Bytes).nullable().default_null(),
        field("remoteLogSegmentState", Int8),
        field("txnIndexEmpty", Bool).tag(0),
    ],
)
.flexible(0);

static REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD_TOPIC_ID_PARTITION_ENTRY: Struct = Struct::nested(
    "TopicIdPartitionEntry",
    &[field("name", Text), field("id", Uuid), field("partition", Int32)],
);

static REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD_REMOTE_LOG_SEGMENT_ID_ENTRY: Struct = Struct::nested(
    "RemoteLogSegmentIdEntry",
    &[
        field(
            "topicIdPartition",
            StructOf(&REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD_TOPIC_ID_PARTITION_ENTRY),
        ),
        field("id", Uuid),
    ],
);

pub(in super::super) static REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD: Struct = Struct::message(
    "RemoteLogSegmentMetadataUpdateRecord",
    0,
    0,
    &[
        field(
            "remoteLogSegmentId",
            StructOf(&REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD_REMOTE_LOG_SEGMENT_ID_ENTRY),
        ),
        field("brokerId", Int32),
        field("eventTimestampMs", Int64),
        field("customMetadata", Bytes).nullable().default_null(),
        field("remoteLogSegmentState", Int8),
    ],
)
.flexible(0);

static REMOTE_PARTITION_DELETE_METADATA_RECORD_TOPIC_ID_PARTITION_ENTRY: Struct = Struct::nested(
    "TopicIdPartitionEntry",
    &[field("name", Text), field("id", Uuid), field("partition", Int32)],
);

pub(in super::super) static REMOTE_PARTITION_DELETE_METADATA_RECORD: Struct = Struct::message(
    "RemotePartitionDeleteMetadataRecord",
    0,
    0,
    &[
        field(
            "topicIdPartition",
            StructOf(&REMOTE_PARTITION_DELETE_METADATA_RECORD_TOPIC_ID_PARTITION_ENTRY),
        ),
        field("brokerId", Int32),
        field("eventTimestampMs", Int64),
        field("remotePartitionDeleteState", Int8),
    ],
)
.flexible(0);

static REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD_SEGMENT_LEADER_EPOCH_ENTRY: Struct =
    Struct::nested("SegmentLeaderEpochEntry", &[field("leaderEpoch", Int32), field("offset", Int64)]);

pub(in super::super) static REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD: Struct = Struct::message(
    "RemoteLogSegmentMetadataSnapshotRecord",
    0,
    0,
    &[
        field("segmentId", Uuid),
        field("startOffset", Int64),
        field("endOffset", Int64),
        field("brokerId", Int32),
        field("maxTimestampMs", Int64),
        field("eventTimestampMs", Int64),
        field(
            "segmentLeaderEpochs",
            Array(&StructOf(&REMOTE_LOG_SEGMENT_METADATA_SNAPSHOT_RECORD_SEGMENT_LEADER_EPOCH_ENTRY)),
        ),
        field("segmentSizeInBytes", Int32),
        field("customMetadata", Bytes).nullable().default_null(),
        field("remoteLogSegmentState", Int8),
        field("txnIndexEmpty", Bool).tag(0),
    ],
)
.flexible(0);

//! Offset commits and classic groups in `__consumer_offsets`.

use super::super::schema::Kind::{Array, Bytes, Int32, Int64, Struct as StructOf, Text, Uuid};
use super::super::schema::{Struct, field};

pub(in super::super) static LEGACY_OFFSET_COMMIT_KEY: Struct = Struct::message(
    "LegacyOffsetCommitKey",
    0,
    0,
    &[field("group", Text), field("topic", Text), field("partition", Int32)],
);

pub(in super::super) static LEGACY_OFFSET_COMMIT_VALUE: Struct = Struct::message(
    "LegacyOffsetCommitValue",
    0,
    0,
    &[field("offset", Int64), field("metadata", Text), field("commitTimestamp", Int64)],
);

pub(in super::super) static OFFSET_COMMIT_KEY: Struct = Struct::message(
    "OffsetCommitKey",
    0,
    0,
    &[field("group", Text), field("topic", Text), field("partition", Int32)],
);

pub(in super::super) static OFFSET_COMMIT_VALUE: Struct = Struct::message(
    "OffsetCommitValue",
    0,
    4,
    &[
        field("offset", Int64),
        field("leaderEpoch", Int32).since(3).default(-1),
        field("metadata", Text),
        field("commitTimestamp", Int64),
        field("expireTimestamp", Int64).only(1, 1).default(-1),
        field("topicId", Uuid).since(4).tag(0),
    ],
)
.flexible(4);

pub(in super::super) static GROUP_METADATA_KEY: Struct =
    Struct::message("GroupMetadataKey", 0, 0, &[field("group", Text)]);

static GROUP_METADATA_VALUE_MEMBER_METADATA: Struct = Struct::shared(
    "MemberMetadata",
    &[
        field("memberId", Text),
        field("groupInstanceId", Text).since(3).nullable().default_null(),
        field("clientId", Text),
        field("clientHost", Text),
        field("rebalanceTimeout", Int32).since(1).default(-1),
        field("sessionTimeout", Int32),
        field("subscription", Bytes),
        field("assignment", Bytes),
    ],
);

pub(in super::super) static GROUP_METADATA_VALUE: Struct = Struct::message(
    "GroupMetadataValue",
    0,
    4,
    &[
        field("protocolType", Text),
        field("generation", Int32),
        field("protocol", Text).nullable(),
        field("leader", Text).nullable(),
        field("currentStateTimestamp", Int64).since(2).default(-1),
        field("members", Array(&StructOf(&GROUP_METADATA_VALUE_MEMBER_METADATA))),
    ],
)
.flexible(4);

//! The records of `__share_group_state`.

use super::super::schema::Kind::{Array, Int8, Int16, Int32, Int64, Struct as StructOf, Text, Uuid};
use super::super::schema::{Struct, field};

pub(in super::super) static SHARE_SNAPSHOT_KEY: Struct = Struct::message(
    "ShareSnapshotKey",
    0,
    0,
    &[field("groupId", Text), field("topicId", Uuid), field("partition", Int32)],
);

static SHARE_SNAPSHOT_VALUE_STATE_BATCH: Struct = Struct::nested(
    "StateBatch",
    &[
        field("firstOffset", Int64),
        field("lastOffset", Int64),
        field("deliveryState", Int8),
        field("deliveryCount", Int16),
    ],
);

pub(in super::super) static SHARE_SNAPSHOT_VALUE: Struct = Struct::message(
    "ShareSnapshotValue",
    0,
    0,
    &[
        field("snapshotEpoch", Int32),
        field("stateEpoch", Int32),
        field("leaderEpoch", Int32),
        field("startOffset", Int64),
        field("deliveryCompleteCount", Int32).tag(0).default(-1),
        field("createTimestamp", Int64),
        field("writeTimestamp", Int64),
        field("stateBatches", Array(&StructOf(&SHARE_SNAPSHOT_VALUE_STATE_BATCH))),
    ],
)
.flexible(0);

pub(in super::super) static SHARE_UPDATE_KEY: Struct = Struct::message(
    "ShareUpdateKey",
    0,
    0,
    &[field("groupId", Text), field("topicId", Uuid), field("partition", Int32)],
);

static SHARE_UPDATE_VALUE_STATE_BATCH: Struct = Struct::nested(
    "StateBatch",
    &[
        field("firstOffset", Int64),
        field("lastOffset", Int64),
        field("deliveryState", Int8),
        field("deliveryCount", Int16),
    ],
);

pub(in super::super) static SHARE_UPDATE_VALUE: Struct = Struct::message(
    "ShareUpdateValue",
    0,
    0,
    &[
        field("snapshotEpoch", Int32),
        field("leaderEpoch", Int32),
        field("startOffset", Int64),
        field("deliveryCompleteCount", Int32).tag(0).default(-1),
        field("stateBatches", Array(&StructOf(&SHARE_UPDATE_VALUE_STATE_BATCH))),
    ],
)
.flexible(0);

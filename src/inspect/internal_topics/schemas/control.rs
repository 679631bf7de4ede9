//! The control records of KRaft.

use super::super::schema::Kind::{Array, Int16, Int32, Int64, Struct as StructOf, Text, UInt16, Uuid};
use super::super::schema::{Struct, field};

static LEADER_CHANGE_MESSAGE_VOTER: Struct =
    Struct::shared("Voter", &[field("voterId", Int32), field("voterDirectoryId", Uuid).since(1)]);

pub(in super::super) static LEADER_CHANGE_MESSAGE: Struct = Struct::message(
    "LeaderChangeMessage",
    0,
    1,
    &[
        field("version", Int16),
        field("leaderId", Int32),
        field("voters", Array(&StructOf(&LEADER_CHANGE_MESSAGE_VOTER))),
        field("grantingVoters", Array(&StructOf(&LEADER_CHANGE_MESSAGE_VOTER))),
    ],
)
.flexible(0);

pub(in super::super) static SNAPSHOT_HEADER_RECORD: Struct = Struct::message(
    "SnapshotHeaderRecord",
    0,
    0,
    &[field("version", Int16), field("lastContainedLogTimestamp", Int64)],
)
.flexible(0);

pub(in super::super) static SNAPSHOT_FOOTER_RECORD: Struct =
    Struct::message("SnapshotFooterRecord", 0, 0, &[field("version", Int16)]).flexible(0);

pub(in super::super) static KRAFT_VERSION_RECORD: Struct =
    Struct::message("KRaftVersionRecord", 0, 0, &[field("version", Int16), field("kRaftVersion", Int16)])
        .flexible(0);

static VOTERS_RECORD_ENDPOINT: Struct =
    Struct::nested("Endpoint", &[field("name", Text), field("host", Text), field("port", UInt16)]);

static VOTERS_RECORD_KRAFT_VERSION_FEATURE: Struct = Struct::nested(
    "KRaftVersionFeature",
    &[field("minSupportedVersion", Int16), field("maxSupportedVersion", Int16)],
);

static VOTERS_RECORD_VOTER: Struct = Struct::nested(
    "Voter",
    &[
        field("voterId", Int32),
        field("voterDirectoryId", Uuid),
        field("endpoints", Array(&StructOf(&VOTERS_RECORD_ENDPOINT))),
        field("kRaftVersionFeature", StructOf(&VOTERS_RECORD_KRAFT_VERSION_FEATURE)),
    ],
);

pub(in super::super) static VOTERS_RECORD: Struct = Struct::message(
    "VotersRecord",
    0,
    0,
    &[field("version", Int16), field("voters", Array(&StructOf(&VOTERS_RECORD_VOTER)))],
)
.flexible(0);

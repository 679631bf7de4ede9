//! The records of `__cluster_metadata` on brokers and controllers.

use super::super::schema::Kind::{
    Array, Bool, Int8, Int16, Int32, Int64, Struct as StructOf, Text, UInt16, Uuid,
};
use super::super::schema::{Struct, field};

static REGISTER_BROKER_RECORD_BROKER_ENDPOINT: Struct = Struct::nested(
    "BrokerEndpoint",
    &[field("name", Text), field("host", Text), field("port", UInt16), field("securityProtocol", Int16)],
);

static REGISTER_BROKER_RECORD_BROKER_FEATURE: Struct = Struct::nested(
    "BrokerFeature",
    &[field("name", Text), field("minSupportedVersion", Int16), field("maxSupportedVersion", Int16)],
);

pub(in super::super) static REGISTER_BROKER_RECORD: Struct = Struct::message(
    "RegisterBrokerRecord",
    0,
    4,
    &[
        field("brokerId", Int32),
        field("isMigratingZkBroker", Bool).since(2),
        field("incarnationId", Uuid),
        field("brokerEpoch", Int64),
        field("endPoints", Array(&StructOf(&REGISTER_BROKER_RECORD_BROKER_ENDPOINT))),
        field("features", Array(&StructOf(&REGISTER_BROKER_RECORD_BROKER_FEATURE))),
        field("rack", Text).nullable(),
        field("fenced", Bool).default(1),
        field("inControlledShutdown", Bool).since(1),
        field("logDirs", Array(&Uuid)).since(3).tag(0),
        field("cordonedLogDirs", Array(&Uuid)).since(4).nullable().tag(1).default_null(),
    ],
)
.flexible(0);

pub(in super::super) static UNREGISTER_BROKER_RECORD: Struct =
    Struct::message("UnregisterBrokerRecord", 0, 0, &[field("brokerId", Int32), field("brokerEpoch", Int64)])
        .flexible(0);

pub(in super::super) static FENCE_BROKER_RECORD: Struct =
    Struct::message("FenceBrokerRecord", 0, 0, &[field("id", Int32), field("epoch", Int64)]).flexible(0);

pub(in super::super) static UNFENCE_BROKER_RECORD: Struct =
    Struct::message("UnfenceBrokerRecord", 0, 0, &[field("id", Int32), field("epoch", Int64)]).flexible(0);

pub(in super::super) static BROKER_REGISTRATION_CHANGE_RECORD: Struct = Struct::message(
    "BrokerRegistrationChangeRecord",
    0,
    3,
    &[
        field("brokerId", Int32),
        field("brokerEpoch", Int64),
        field("fenced", Int8).tag(0),
        field("inControlledShutdown", Int8).since(1).tag(1),
        field("logDirs", Array(&Uuid)).since(2).tag(2),
        field("cordonedLogDirs", Array(&Uuid)).since(3).nullable().tag(3).default_null(),
    ],
)
.flexible(0);

static REGISTER_CONTROLLER_RECORD_CONTROLLER_ENDPOINT: Struct = Struct::nested(
    "ControllerEndpoint",
    &[field("name", Text), field("host", Text), field("port", UInt16), field("securityProtocol", Int16)],
);

static REGISTER_CONTROLLER_RECORD_CONTROLLER_FEATURE: Struct = Struct::nested(
    "ControllerFeature",
    &[field("name", Text), field("minSupportedVersion", Int16), field("maxSupportedVersion", Int16)],
);

pub(in super::super) static REGISTER_CONTROLLER_RECORD: Struct = Struct::message(
    "RegisterControllerRecord",
    0,
    0,
    &[
        field("controllerId", Int32),
        field("incarnationId", Uuid),
        field("zkMigrationReady", Bool),
        field("endPoints", Array(&StructOf(&REGISTER_CONTROLLER_RECORD_CONTROLLER_ENDPOINT))),
        field("features", Array(&StructOf(&REGISTER_CONTROLLER_RECORD_CONTROLLER_FEATURE))),
    ],
)
.flexible(0);

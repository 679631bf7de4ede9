//! The records of `__cluster_metadata` on users: ACLs, quotas, credentials, tokens.

use super::super::schema::Kind::{
    Array, Bool, Bytes, Float64, Int8, Int32, Int64, Struct as StructOf, Text, Uuid,
};
use super::super::schema::{Struct, field};

pub(in super::super) static DELEGATION_TOKEN_RECORD: Struct = Struct::message(
    "DelegationTokenRecord",
    0,
    0,
    &[
        field("owner", Text),
        field("requester", Text),
        field("renewers", Array(&Text)),
        field("issueTimestamp", Int64),
        field("maxTimestamp", Int64),
        field("expirationTimestamp", Int64),
        field("tokenId", Text),
    ],
)
.flexible(0);

pub(in super::super) static USER_SCRAM_CREDENTIAL_RECORD: Struct = Struct::message(
    "UserScramCredentialRecord",
    0,
    0,
    &[
        field("name", Text),
        field("mechanism", Int8),
        field("salt", Bytes),
        field("storedKey", Bytes),
        field("serverKey", Bytes),
        field("iterations", Int32),
    ],
)
.flexible(0);

static CLIENT_QUOTA_RECORD_ENTITY_DATA: Struct =
    Struct::nested("EntityData", &[field("entityType", Text), field("entityName", Text).nullable()]);

pub(in super::super) static CLIENT_QUOTA_RECORD: Struct = Struct::message(
    "ClientQuotaRecord",
    0,
    0,
    &[
        field("entity", Array(&StructOf(&CLIENT_QUOTA_RECORD_ENTITY_DATA))),
        field("key", Text),
        field("value", Float64),
        field("remove", Bool),
    ],
)
.flexible(0);

pub(in super::super) static ACCESS_CONTROL_ENTRY_RECORD: Struct = Struct::message(
    "AccessControlEntryRecord",
    0,
    0,
    &[
        field("id", Uuid),
        field("resourceType", Int8),
        field("resourceName", Text),
        field("patternType", Int8),
        field("principal", Text),
        field("host", Text),
        field("operation", Int8),
        field("permissionType", Int8),
    ],
)
.flexible(0);

pub(in super::super) static REMOVE_ACCESS_CONTROL_ENTRY_RECORD: Struct =
    Struct::message("RemoveAccessControlEntryRecord", 0, 0, &[field("id", Uuid)]).flexible(0);

pub(in super::super) static REMOVE_USER_SCRAM_CREDENTIAL_RECORD: Struct = Struct::message(
    "RemoveUserScramCredentialRecord",
    0,
    0,
    &[field("name", Text), field("mechanism", Int8)],
)
.flexible(0);

pub(in super::super) static REMOVE_DELEGATION_TOKEN_RECORD: Struct =
    Struct::message("RemoveDelegationTokenRecord", 0, 0, &[field("tokenId", Text)]).flexible(0);

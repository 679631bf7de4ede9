//! Kafka's names of the numbers in metadata records.

/// The name of a number, or the number.
pub(super) fn name_of(names: &[(i64, &'static str)], number: i64) -> String {
    let known = names.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned())
}

/// *Source*: `ConfigResource.Type`.
pub(super) const CONFIG_RESOURCES: &[(i64, &str)] =
    &[(2, "topic"), (4, "broker"), (8, "broker_logger"), (16, "client_metrics"), (32, "group")];

/// *Source*: `ScramMechanism`.
pub(super) const SCRAM_MECHANISMS: &[(i64, &str)] = &[(1, "SCRAM-SHA-256"), (2, "SCRAM-SHA-512")];

/// *Source*: `ResourceType`.
pub(super) const ACL_RESOURCES: &[(i64, &str)] = &[
    (2, "TOPIC"),
    (3, "GROUP"),
    (4, "CLUSTER"),
    (5, "TRANSACTIONAL_ID"),
    (6, "DELEGATION_TOKEN"),
    (7, "USER"),
];

/// *Source*: `PatternType`.
pub(super) const ACL_PATTERNS: &[(i64, &str)] = &[(1, "ANY"), (2, "MATCH"), (3, "LITERAL"), (4, "PREFIXED")];

/// *Source*: `AclOperation`.
pub(super) const ACL_OPERATIONS: &[(i64, &str)] = &[
    (1, "ANY"),
    (2, "ALL"),
    (3, "READ"),
    (4, "WRITE"),
    (5, "CREATE"),
    (6, "DELETE"),
    (7, "ALTER"),
    (8, "DESCRIBE"),
    (9, "CLUSTER_ACTION"),
    (10, "DESCRIBE_CONFIGS"),
    (11, "ALTER_CONFIGS"),
    (12, "IDEMPOTENT_WRITE"),
    (13, "CREATE_TOKENS"),
    (14, "DESCRIBE_TOKENS"),
    (15, "TWO_PHASE_COMMIT"),
];

/// *Source*: `AclPermissionType`.
pub(super) const ACL_PERMISSIONS: &[(i64, &str)] = &[(2, "DENY"), (3, "ALLOW")];

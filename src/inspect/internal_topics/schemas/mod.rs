//! Kafka's message schemas of 4.3.1 for the records of internal topics.
//!
//! Names and numbers come from the JSON files in Kafka's jars. A structure that is defined in a message has
//! its name as a prefix.

pub(super) mod classic_groups;
pub(super) mod cluster_nodes;
pub(super) mod cluster_security;
pub(super) mod cluster_topics;
pub(super) mod consumer_groups;
pub(super) mod consumer_protocol;
pub(super) mod control;
pub(super) mod remote_log;
pub(super) mod share_groups;
pub(super) mod share_state;
pub(super) mod streams_groups;
pub(super) mod transactions;

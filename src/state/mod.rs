//! What is derived from a log and kept beside it.

pub mod leader_epochs;
pub mod partition_metadata;

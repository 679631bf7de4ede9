//! What is derived from a log and kept beside it.

pub(crate) mod checkpoint_file;
pub mod leader_epochs;
pub mod partition_metadata;

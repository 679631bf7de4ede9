//! What is derived from a log and kept beside it.

pub(crate) mod checkpoint;
pub(crate) mod checkpoint_file;
pub(crate) mod clean_marker;
pub(crate) mod data_directory;
pub mod leader_epochs;
pub(crate) mod offset_checkpoint;
pub mod partition_metadata;
mod sealed_text;

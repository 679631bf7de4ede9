//! The small files next to the segments: their names, formats and atomic replacement.
//!
//! | file | module |
//! |---|---|
//! | `leader-epoch-checkpoint` | [`leader_epochs`] |
//! | `partition.metadata` | [`partition_metadata`] |
//! | `<offset>.snapshot` | [`producers`] |
//! | `.cordwood.checkpoint`, `.cordwood.durable` | `checkpoint` |
//! | `.cordwood.clean` | `clean_marker` |
//! | `.cordwood.compacted` | `cleaner_checkpoint` |
//! | `.cordwood.copy` | `copy_journal` |
//! | `.cordwood.gaps` | `truncation_gaps` |
//! | `.cordwood.kept` | `kept_files` |
//! | `.cordwood.positions/<name>` | [`positions`] |
//! | `.cordwood.producers` | `producer_ids` |
//! | `.cordwood.truncations` | `truncation_count` |
//! | `../*-offset-checkpoint` | `offset_checkpoint`, in the format of `checkpoint_file` |
//! | `../meta.properties` | `meta_properties`, in the format of `java_text` |
//! | `../.kafka_cleanshutdown` | `data_directory` |

pub(crate) mod checkpoint;
pub(crate) mod checkpoint_file;
mod checksummed_text;
pub(crate) mod clean_marker;
pub(crate) mod cleaner_checkpoint;
#[cfg(feature = "inspect")]
pub(crate) mod copy_journal;
#[doc(hidden)]
pub mod data_directory;
pub(crate) mod java_text;
pub(crate) mod kept_files;
pub mod leader_epochs;
#[cfg(feature = "inspect")]
pub(crate) mod meta_properties;
pub(crate) mod offset_checkpoint;
pub mod partition_metadata;
pub mod positions;
pub(crate) mod producer_ids;
pub mod producers;
pub(crate) mod truncation_count;
pub(crate) mod truncation_gaps;
pub(crate) mod uuid;

/// The name of the file that the directory of a copy has until the copy is complete: it is no log before.
pub(crate) const COPY_JOURNAL: &str = ".cordwood.copy";

/// The name of the directory of the Spark sink's staged logs and commits. `python/cordwood/spark/write` has
/// its contents.
#[cfg(feature = "inspect")]
pub(crate) const SPARK_SINK: &str = ".cordwood.spark";

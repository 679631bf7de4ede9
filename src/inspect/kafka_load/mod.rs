//! What a broker does when it opens a partition directory, as a plan: Kafka creates, cuts, renames and
//! removes files then, and after an unclean shutdown it throws away everything after the first batch that is
//! not valid.
//!
//! The plan is made by doing the same steps on a copy of the directory in memory (`disk`); only what changes
//! is copied. So the sizes and the bytes of all files are known, and what a step of Kafka's does by accident
//! is in the plan, too.
//!
//! ```text
//!   loader ─▶ recovery ─▶ segment ─▶ batches, index_file      the passes; one segment; Kafka's view of its bytes
//!     │          └─ split                 └─ wrapper
//!     └─▶ snapshots, epochs                                   producers and leader epochs
//!   start, leaders: the directories of a data directory    new_partition: one that a writer creates
//!   run: the state that all of them share                     disk: the files
//! ```
//!
//! The reference is Kafka 4.3.1. Kafka: `UnifiedLog.create`, `LogLoader`, `LogManager.loadLogs`.

mod action;
mod batches;
mod data_directories;
mod disk;
mod epochs;
mod exception;
mod index_file;
mod leaders;
mod load;
mod loader;
mod lost;
mod new_partition;
mod recovery;
mod run;
mod segment;
mod snapshots;
mod split;
mod start;
mod topic_id;
mod warning;
mod wrapper;

pub use action::{ActionKind, ActionReason, LoadAction};
pub(in crate::inspect) use data_directories::NOT_FORMATTED;
pub use data_directories::other_directories;
pub use exception::{ExceptionKind, LoadFailure};
pub(super) use leaders::has_partitions;
pub use load::{KafkaLoad, LoadOptions, LoadedFile, LoadedLog};
pub use lost::LostOffsets;
pub use new_partition::unserved_partition;
pub use segment::LoadedSegment;
pub(in crate::inspect) use start::{Assigned, Broker, Difference};
pub use start::{Fate, PlannedDirectory, plan_start};
pub use warning::{LoadWarning, LoadWarningKind};

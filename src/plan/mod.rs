//! Plans of queries over many logs, for engines such as Spark: options as texts become a checked query, the
//! query becomes tasks, and a task, on any machine, becomes record batches. [`Stream`] does the same for
//! micro-batches.
//!
//! ```text
//! texts ─▶ SourceOptions ─▶ Query ─▶ Context::plan ─▶ Task ─▶ bytes ─▶ Task ─▶ TaskReader ─▶ TaskBatch
//!                             │        directories, bounds, cutting                 shape
//!                             └────▶ Stream: offsets as JSON, and a plan between two of them
//! ```
//!
//! An engine's adapter converts types and errors, and logs the [`Warning`]s. It has no rule of its own.
//!
//! ```
//! use std::sync::Arc;
//! use cordwood::LogOptions;
//! use cordwood::plan::{Context, LogCache, Query, SourceOptions, Task, TaskReader};
//!
//! # fn main() -> cordwood::plan::Result<()> {
//! let texts = [("path", "tests/golden/16-data-dir"), ("subscribe", "cities"), ("columns", "topic,offset")];
//! let query = Query::new(SourceOptions::from_texts(texts, &mut Vec::new())?, None)?;
//! let logs = Arc::new(LogCache::new(LogOptions::default()));
//! let mut rows = 0;
//! let (_, tasks) = Context::new(Arc::clone(&logs)).plan(&query)?;
//! for task in tasks {
//!     // an executor gets the bytes
//!     let task = Task::from_bytes(&task.to_bytes())?;
//!     let mut reader = TaskReader::new(Context::new(Arc::clone(&logs)), query.clone(), task);
//!     while let Some(batch) = reader.next_batch()? {
//!         rows += batch.rows;
//!     }
//! }
//! assert_eq!(rows, 384);
//! # Ok(())
//! # }
//! ```

mod aggregates;
mod bounds;
mod context;
mod cutting;
mod describe;
mod directory;
mod error;
mod filter;
mod gaps;
mod log_cache;
mod option_table;
mod options;
mod partition_offsets;
mod piece;
#[doc(hidden)]
pub mod position;
mod query;
mod reading;
mod restriction;
mod schema;
mod segment_row;
mod shape;
mod stream;
mod task_reader;
mod topic_pattern;
mod warning;

pub use bounds::Bounds;
pub use context::Context;
pub use directory::{PartitionDirectory, local_path};
pub use error::{Code, PlanError, Result};
pub use filter::Filter;
pub use log_cache::{LogAccess, LogCache};
pub use options::{End, Mode, SourceOptions, Start, Table};
pub use partition_offsets::{Offsets, PartitionKey};
pub use piece::{Piece, Task};
pub use query::{Estimate, Query};
pub use shape::{TaskBatch, TaskColumn};
pub use stream::Stream;
pub use task_reader::TaskReader;
pub use topic_pattern::TopicPattern;
pub use warning::Warning;

//! Mends a damaged partition: a plan first, and the changes only if the caller asks for them.
//!
//! ```text
//!   survey ──▶ decide ──▶ plan ──▶ apply
//!   runs of      what         report,       quarantine, staged files, renames
//!   batches,     remains of   stale
//!   damage       each .log    files
//! ```
//!
//! What is damage is decided by the walk that readers use ([`crate::segment`]): after a repair, a reader
//! finds none. Bytes that are taken out are kept in `quarantine/`, in the partition directory.
//!
//! Files derived from the `.log` follow it. The transaction indexes and producer snapshots that a change of
//! the log affects become those that [`rebuild`](crate::inspect::rebuild) derives from the repaired log.
//! Without a change, a snapshot is replaced only if it is damaged, and a transaction index only if it is
//! damaged or its entries contradict the ABORT markers.

mod apply;
mod checkpoints;
mod contents;
mod correction;
mod decide;
mod derived;
mod epochs;
mod index_check;
mod leftovers;
mod marker;
mod places;
mod plan;
mod producer_files;
mod repair_plan;
mod salvage;
mod survey;

use std::path::Path;

pub use repair_plan::{LostRange, RepairAction, RepairActionKind, RepairPlan, RepairPolicy};

use crate::config::LogConfig;
use crate::error::Result;
use crate::fs::{Directory, PartitionLocks};
use crate::record::MAX_BATCH_BYTES;
use crate::state::data_directory::DataDirectory;
use crate::types::Interrupt;

/// How a partition is repaired.
#[derive(Debug, Clone)]
pub struct RepairOptions {
    /// What is mended.
    pub policy: RepairPolicy,
    /// The settings of the topic, of which `index.interval.bytes` and `segment.index.bytes` determine the
    /// entries of rebuilt indexes. `None`: the interval that the existing offset indexes show, and
    /// Kafka's defaults.
    pub config: Option<LogConfig>,
    /// The largest batch, bytes, as stored and decompressed. See
    /// [`LogOptions::max_batch_bytes`](crate::log::LogOptions::max_batch_bytes).
    pub max_batch_bytes: usize,
    /// Called during long work.
    pub interrupt: Interrupt,
}

impl Default for RepairOptions {
    fn default() -> Self {
        Self {
            policy: RepairPolicy::default(),
            config: None,
            max_batch_bytes: MAX_BATCH_BYTES,
            interrupt: Interrupt::NEVER,
        }
    }
}

const ADVICE: &str = "give the path of a partition directory, such as data/orders-0";

/// What a repair of a partition directory would change. Changes nothing.
///
/// # Errors
/// [`Error::Corrupt`](crate::Error::Corrupt) for damage that the policy does not mend; the error names the
/// policies that do. [`Error::Locked`](crate::Error::Locked) if a broker or a writer has the partition open.
/// [`Error::UnsupportedFormat`](crate::Error::UnsupportedFormat) for batches that this version cannot read,
/// and [`Error::BatchTooLarge`](crate::Error::BatchTooLarge) for those above the limit that have to be
/// decompressed: they are not damage. [`Error::Io`](crate::Error::Io).
pub fn plan_repair(path: impl AsRef<Path>, options: &RepairOptions) -> Result<RepairPlan> {
    plan_repair_in(&Directory::open(path.as_ref(), ADVICE)?, options)
}

/// [`plan_repair`] of an open directory.
///
/// # Errors
/// As [`plan_repair`].
pub fn plan_repair_in(directory: &Directory, options: &RepairOptions) -> Result<RepairPlan> {
    DataDirectory::refuse_itself(directory)?;
    PartitionLocks::probe(directory)?;
    plan::plan(directory, options, false).map(|plan| plan.report)
}

/// Repairs a partition directory, under the locks of its writer, and returns what was changed. If there is
/// nothing to repair, nothing is changed.
///
/// After a crash at any point it can be called again, with the same result. Readers meanwhile find a valid
/// log, with or without the damage.
///
/// If batches are taken out, transaction indexes and producer snapshots are rebuilt from the remaining ones.
/// If their transactions contradict each other, so that a broker does not load the log, those snapshots are
/// removed and the transaction indexes from there on are left as they are.
///
/// # Errors
/// As [`plan_repair`].
pub fn repair(path: impl AsRef<Path>, options: &RepairOptions) -> Result<RepairPlan> {
    let directory = Directory::open(path.as_ref(), ADVICE)?;
    DataDirectory::refuse_itself(&directory)?;
    directory.check_writable()?;
    repair_in(&directory, options)
}

/// [`repair`] of an open directory.
///
/// # Errors
/// As [`plan_repair`].
pub fn repair_in(directory: &Directory, options: &RepairOptions) -> Result<RepairPlan> {
    let _locks = PartitionLocks::take(directory)?;
    let plan = plan::plan(directory, options, true)?;
    apply::apply(directory, plan, options)
}

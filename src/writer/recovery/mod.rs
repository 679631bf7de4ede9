//! Recovery of a log when it is opened for writing, in two steps: a plan is made and then applied.
//!
//! ```text
//!   plan    reads everything, changes nothing; a log that a writer must not open is an error (preconditions)
//!   apply   finishes a replacement of segments, cuts a torn write, splits, rebuilds indexes, each step durable
//! ```
//!
//! A damaged log is an error, and the directory is unchanged. Bytes that are cut are first kept in
//! `quarantine/`.
//!
//! Damage below the durable offset (`.cordwood.durable`) is an error: these bytes were once synced. Damage
//! above it is a torn write, which was never acknowledged, and is cut. If that file does not exist, as in a
//! directory written by Kafka, damage counts as a torn write only if no valid batch follows it.

mod apply;
mod clean_shutdown;
mod deleted_files;
mod description;
mod existing_log;
mod plan;
mod preconditions;
mod producers;
mod quarantine;
mod recovery_plan;
mod scan_segment;
mod segment_plan;
mod split;
mod stale_indexes;
mod torn_write;
mod undo;

use plan::{Plan, Work};

use super::WriterOptions;
use super::partition::Partition;
use super::poison::is_full;
use super::spare;
use crate::error::Result;
use crate::fs::Directory;
use crate::segment::remove_segment;
use crate::state::producers::ProducerEntry;

#[cfg(feature = "inspect")]
pub(crate) use apply::finish_replacement;
#[cfg(feature = "inspect")]
pub(crate) use deleted_files::{OnlyCopies, uncommitted_only_copies};
#[cfg(feature = "inspect")]
pub(crate) use existing_log::replaced;
#[cfg(feature = "inspect")]
pub(crate) use preconditions::{refuse_missing_start, refuse_only_copies, refuse_remote_start};
#[cfg(feature = "inspect")]
pub(crate) use quarantine::{QUARANTINE, Quarantined};
pub(super) use scan_segment::{closed_state, scan};
pub(super) use split::write_parts;
pub(super) use undo::remove_directory;

pub use recovery_plan::{
    FileChange, FileChangeReason, RebuildReason, RebuiltIndex, RecoveryCut, RecoveryPlan, SegmentSplit,
};

/// Opens the log in a directory, or creates one, and returns what was changed. The recovered log is durable.
pub(super) fn open(directory: &Directory, options: &WriterOptions) -> Result<(Partition, RecoveryPlan)> {
    options.check()?;
    let plan = plan::plan(directory, options)?;
    let report = plan.report.clone();
    let mut opened = apply(directory, plan, options);
    let mut is_released = false;
    if opened.as_ref().err().is_some_and(is_full) {
        is_released = spare::release(directory)?;
        if is_released {
            // some steps may be done: they are continued as after a crash
            opened = plan::plan(directory, options).and_then(|plan| apply(directory, plan, options));
        }
    }
    if opened.is_ok() || is_released {
        spare::fill(directory);
    }
    Ok((opened?, report))
}

fn apply(directory: &Directory, plan: Plan, options: &WriterOptions) -> Result<Partition> {
    let mut options = options.clone();
    // new entries have the interval of the existing ones
    let interval = u32::try_from(plan.report.index_interval_bytes).ok();
    options.config.index_interval_bytes = interval.unwrap_or(options.config.index_interval_bytes);
    if let Work::Create { .. } = plan.work {
        undo::on_failure(directory, || apply::apply(directory.clone(), plan, &options))
    } else {
        apply::apply(directory.clone(), plan, &options)
    }
}

/// What [`open`] would change, and the producers that it would find with an open transaction, by the first
/// offset of that; changes nothing. Fails if the contents of the directory would make [`open`] fail; whether
/// it may be written is not asked.
pub(super) fn plan(
    directory: &Directory,
    options: &WriterOptions,
) -> Result<(RecoveryPlan, Vec<ProducerEntry>)> {
    options.check()?;
    let plan = plan::plan(directory, options)?;
    let Work::Recover(recovery) = plan.work else { return Ok((plan.report, Vec::new())) };
    let producers = recovery.producers.entries();
    let mut open: Vec<_> = producers.filter(|entry| entry.open_transaction.is_some()).cloned().collect();
    open.sort_unstable_by_key(|entry| entry.open_transaction);
    Ok((plan.report, open))
}

/// Removes segments. Each removal is durable before the next: a crash leaves no gap between segments.
pub(super) fn remove_newest_first(
    directory: &Directory,
    newest_first: impl Iterator<Item = i64>,
) -> Result<()> {
    for base_offset in newest_first {
        remove_segment(directory, base_offset)?;
        directory.sync()?;
    }
    Ok(())
}

//! How a writer finds its log: what is left of it is read, a plan says what is to be done, and the plan is carried out.
//!
//! ```text
//!   plan    reads everything, changes nothing; what a writer cannot go on with is an error (preconditions)
//!   apply   finishes a replacement of segments, cuts a torn write, splits, rebuilds indexes, each step durable
//! ```
//!
//! Where the log is damaged, the error says so and the directory is as it was. What has to be cut is kept in `quarantine/`
//! first.
//!
//! A torn write or a damaged record? What lies below the offset up to which the log was synced (`.cordwood.durable`) was
//! whole once, so there it is damage: an error. Above it, nobody was told of it, and it is cut. Where that file does not
//! exist, as in a directory that Kafka wrote, a write counts as torn only if no whole batch follows it.

mod apply;
mod existing_log;
mod plan;
mod preconditions;
mod quarantine;
mod recovery_plan;
mod scan_segment;
mod split;
mod torn_write;
mod undo;

use plan::Work;

use super::WriterOptions;
use super::partition::Partition;
use crate::error::Result;
use crate::fs::Directory;
use crate::fs::names::{FileKind, segment_file};
use crate::fs::seeded_bugs::{self, SeededBug};
use crate::segment::remove_segment;

pub(super) use scan_segment::{held, scan};
pub(super) use undo::remove_directory;

pub use recovery_plan::{
    FileChange, FileChangeReason, RebuildReason, RebuiltIndex, RecoveryCut, RecoveryPlan, SegmentSplit,
};

/// Opens the log in a directory, or begins one, and returns what was changed. The recovered log is durable.
pub(super) fn open(directory: Directory, options: &WriterOptions) -> Result<(Partition, RecoveryPlan)> {
    options.check()?;
    let plan = plan::plan(&directory, options)?;
    let shown = plan.shown.clone();
    let partition = if let Work::Begin { .. } = plan.work {
        undo::where_it_fails(&directory, || apply::apply(directory.clone(), plan, options))?
    } else {
        apply::apply(directory, plan, options)?
    };
    Ok((partition, shown))
}

/// What [`open`] would change. Fails where [`open`] would fail because of what is in the directory; changes nothing.
pub(super) fn plan(directory: &Directory, options: &WriterOptions) -> Result<RecoveryPlan> {
    options.check()?;
    let plan = plan::plan(directory, options)?;
    if let Work::Recover(recovery) = plan.work
        && recovery.replacement.is_empty()
        && let Some(active) = recovery.segments.last()
    {
        directory.open_writable(&segment_file(active.base_offset, FileKind::Log))?;
    }
    Ok(plan.shown)
}

/// Removes segments, each durably before the next: whatever a crash leaves has no hole.
pub(super) fn remove_newest_first(
    directory: &Directory,
    newest_first: impl Iterator<Item = i64>,
) -> Result<()> {
    let mut bases: Vec<_> = newest_first.collect();
    if seeded_bugs::is(SeededBug::SwappedDeleteOrder) {
        bases.reverse();
    }
    for base_offset in bases {
        remove_segment(directory, base_offset)?;
        if !seeded_bugs::is(SeededBug::NoDirectorySyncOnDelete) {
            directory.sync()?;
        }
    }
    Ok(())
}

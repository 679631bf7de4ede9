//! Makes the planned changes.
//!
//! Each step is durable before the next, and leaves a log that can be read:
//!
//! ```text
//!   markers of a clean close removed, recovery points lowered     a broker, too, recovers the log after a crash
//!   every byte that is taken out copied to quarantine/
//!   new files written completely, under staged names              everything that needs disk space
//!   replacement finished
//!   transaction indexes and snapshots renamed or removed          before the damage is gone, from which the plan knows that they change
//!   segments removed (the newest first)
//!   staged files renamed, one by one                              the .log of a segment before its indexes, which are hints
//!   leftovers removed, checkpoints lowered
//! ```
//!
//! No journal is needed. The plan is a function of the files, and each step leads to files with the same
//! target: the plan after a crash has the steps that are left. If a broker has changed the log in between,
//! the plan is made for what it left.

use super::RepairOptions;
use super::derived::NewSegment;
use super::plan::{Mended, Plan, log_options};
use super::producer_files::ProducerFiles;
use super::repair_plan::RepairPlan;
use crate::error::Result;
use crate::fs::names::{FileKind, segment_file};
use crate::fs::{Directory, Staged};
use crate::index::due_entries::EntryRule;
use crate::log::Log;
use crate::segment::{SCAN_READ, remove_segment};
use crate::state::checkpoint::{Checkpoint, DurableOffsetFile};
use crate::state::clean_marker::CleanMarker;
use crate::writer::finish_replacement;

/// Makes the changes of a plan. The caller holds the partition's locks.
pub(super) fn apply(directory: &Directory, plan: Plan, options: &RepairOptions) -> Result<RepairPlan> {
    let report = RepairPlan { is_applied: true, ..plan.report.clone() };
    if report.is_clean() {
        return Ok(report);
    }
    prepare(directory, &plan)?;
    plan.quarantined.iter().try_for_each(|kept| kept.keep(directory))?;
    finish_replacement(directory, &plan.leftovers.replacement, plan.leftovers.replaced)?;
    let of_producers = stage_producer_files(directory, &plan.producer_files, options)?;
    let mut staged = stage(directory, &plan.mended, plan.rule, options)?;
    if let Some(epochs) = &plan.epochs {
        staged.push(epochs.stage(directory)?);
    }
    plan.producer_files.put(directory, of_producers)?;
    for base_offset in plan.removed_segments.iter().rev() {
        remove_segment(directory, *base_offset)?;
        directory.sync()?;
    }
    staged.into_iter().try_for_each(Staged::put)?;
    for (name, _) in &plan.leftovers.removed {
        directory.remove(name)?;
    }
    directory.sync()?;
    if let Some(durable) = plan.durable {
        DurableOffsetFile::open(directory)?.set(durable)?;
    }
    if let Some(data_directory) = &plan.data_directory {
        data_directory.lower(plan.log_start_offset, report.log_end_offset)?;
    }
    Ok(report)
}

/// Removes the markers of a clean close and old temporary files, lowers the recovery points, and notes which
/// `.deleted` files are kept.
fn prepare(directory: &Directory, plan: &Plan) -> Result<()> {
    let mended = plan.mended.iter().map(|mended| mended.base_offset);
    let first_changed = mended.chain(plan.removed_segments.iter().copied()).min();
    let recovered_to = first_changed.unwrap_or(i64::MAX).min(plan.report.log_end_offset);
    CleanMarker::remove(directory)?;
    if let Some(data_directory) = &plan.data_directory {
        data_directory.remove_clean_marker()?;
        if let Some(first) = first_changed
            && data_directory.recovery_point()?.is_some_and(|point| point > first)
        {
            data_directory.write_recovery_point(first)?;
        }
    }
    if let Some(checkpoint) = plan.checkpoint.filter(|checkpoint| checkpoint.recovery_point > recovered_to) {
        Checkpoint { recovery_point: recovered_to, ..checkpoint }.write(directory)?;
    }
    plan.leftovers.kept_files.store(directory)?;
    plan.leftovers.staged.iter().try_for_each(|name| directory.remove(name))
}

/// Writes the new transaction indexes and snapshots under staged names.
fn stage_producer_files(
    directory: &Directory,
    files: &ProducerFiles,
    options: &RepairOptions,
) -> Result<Vec<Staged>> {
    files.stage(directory, &Log::open_in(directory.clone(), log_options(options))?)
}

/// Writes the new files under staged names: the `.log` of a segment before its indexes.
fn stage(
    directory: &Directory,
    mended: &[Mended],
    rule: EntryRule,
    options: &RepairOptions,
) -> Result<Vec<Staged>> {
    let mut staged = Vec::new();
    if mended.is_empty() {
        return Ok(staged);
    }
    let log = Log::open_in(directory.clone(), log_options(options))?;
    for Mended { base_offset, contents, is_changed, stale } in mended {
        let Some(segment) = log.segments().floor(*base_offset) else { continue };
        if *is_changed {
            staged.push(contents.stage(directory, &segment_file(*base_offset, FileKind::Log))?);
        }
        if stale.is_empty() {
            continue;
        }
        let new =
            NewSegment { directory, base_offset: *base_offset, contents, rule, is_last: segment.is_last() };
        for (kind, bytes) in new.indexes(&mut segment.log_file(SCAN_READ)?)? {
            if stale.contains(&kind) {
                staged.push(directory.stage(&segment_file(*base_offset, kind), &bytes)?);
            }
        }
    }
    Ok(staged)
}

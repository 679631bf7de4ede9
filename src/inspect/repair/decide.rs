//! Decides by the policy what remains of each `.log`.

use super::contents::{Contents, Part};
use super::repair_plan::{RepairActionKind, RepairPolicy};
use super::salvage::salvage;
use super::survey::{Damaged, Piece, Survey};
use crate::error::{Error, Malformed, Result};
use crate::log::Log;

/// A segment and what remains of it.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) survey: Survey,
    pub(super) contents: Contents,
    pub(super) is_removed: bool,
    pub(super) taken: Vec<Taken>,
}

impl Target {
    pub(super) fn new(survey: Survey) -> Self {
        Self { survey, contents: Contents::default(), is_removed: false, taken: Vec::new() }
    }

    /// Whether the `.log` is replaced by another one.
    pub(super) fn is_changed(&self) -> bool {
        !self.is_removed && !self.contents.is_whole(self.survey.size)
    }
}

/// Bytes that are taken out of the `.log`, or replaced.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) kind: RepairActionKind,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) reason: String,
    /// The offsets that are lost: the first one, and the end if it is known. `None` if no record is.
    pub(super) lost: Option<(i64, Option<i64>)>,
}

/// What remains of each segment. `durable`: the offset up to which a `LogWriter` or a broker synced
/// the log.
///
/// # Errors
/// [`Error::Corrupt`] for damage that the policy does not mend.
pub(super) fn decide(
    log: &Log,
    surveys: Vec<Survey>,
    policy: RepairPolicy,
    durable: Option<i64>,
) -> Result<Vec<Target>> {
    refuse_misnamed(log, &surveys)?;
    let log_start_offset = log.log_start_offset();
    match policy {
        RepairPolicy::TornTail => {
            refuse_other_damage(&surveys, durable)?;
            refuse_missing_end(&surveys, durable)?;
            cut_at_first_damage(surveys, log_start_offset)
        }
        RepairPolicy::Kafka => cut_at_first_damage(surveys, log_start_offset),
        RepairPolicy::Salvage => {
            refuse_unsearched(&surveys)?;
            salvage(surveys)
        }
    }
}

/// Fails if the file of a segment has the name of another one: its records are whole.
fn refuse_misnamed(log: &Log, surveys: &[Survey]) -> Result<()> {
    let damaged = surveys.iter().filter(|survey| survey.is_damaged()).map(Survey::base_offset);
    let misnamed = log.misnamed(&damaged.collect::<Vec<_>>())?.into_iter().next();
    misnamed.map_or(Ok(()), |misnamed| Err(misnamed.error()))
}

/// Fails at the first damage that is not a torn write.
fn refuse_other_damage(surveys: &[Survey], durable: Option<i64>) -> Result<()> {
    for survey in surveys {
        for piece in &survey.pieces {
            let Piece::Damaged(damaged) = piece else { continue };
            let is_synced = durable.is_some_and(|durable| damaged.start_offset < durable);
            // nothing that was acknowledged as durable is after the synced offset, so no search is needed
            // there
            let is_known = damaged.is_searched || durable.is_some();
            let is_torn = survey.segment.is_last()
                && damaged.end_offset.is_none()
                && is_known
                && !is_synced
                && !damaged.is_intact;
            if !is_torn {
                return Err(not_torn(survey, damaged, is_synced));
            }
        }
    }
    Ok(())
}

/// The error for a log that ends below the offset up to which it was synced, without damage: acknowledged
/// records are missing.
fn refuse_missing_end(surveys: &[Survey], durable: Option<i64>) -> Result<()> {
    let Some(last) = surveys.last() else { return Ok(()) };
    let end = last.end_offset();
    let Some(durable) = durable.filter(|durable| *durable > end) else { return Ok(()) };
    let expected = format!(
        "a log that ends at offset {durable} or above, because it was synced up to there (the policies salvage and kafka continue \
         without the missing records)"
    );
    Err(Malformed::new(expected, format!("its end at offset {end}")).at(
        last.segment.path(),
        last.size,
        Some(end),
    ))
}

/// Fails at damage that was not searched for whole batches to its end: it may contain any number of them.
fn refuse_unsearched(surveys: &[Survey]) -> Result<()> {
    for survey in surveys {
        for piece in &survey.pieces {
            let Piece::Damaged(damaged) = piece else { continue };
            if !damaged.is_searched {
                let expected = format!(
                    "{} (too many bytes look like batches, so that the search for whole ones was given up: carve finds those of the \
                     file, the policy kafka cuts the log here)",
                    damaged.malformed.expected
                );
                return Err(Malformed::new(expected, damaged.malformed.found.clone()).at(
                    survey.segment.path(),
                    damaged.start,
                    Some(damaged.start_offset),
                ));
            }
        }
    }
    Ok(())
}

fn not_torn(survey: &Survey, damaged: &Damaged, is_synced: bool) -> Error {
    let Malformed { expected, found, .. } = &damaged.malformed;
    let why = match damaged.is_searched {
        _ if is_synced => "it was synced",
        true if damaged.end_offset.is_none() && damaged.is_intact => "a checksum in it is right",
        true => "whole batches follow it",
        false => "whole batches may follow it: the search for them was given up",
    };
    let expected = format!(
        "{expected} (this is not a torn write, because {why}: the policy salvage keeps every intact batch, the policy kafka cuts \
         the log here)"
    );
    Malformed::new(expected, found.clone()).at(
        survey.segment.path(),
        damaged.start,
        Some(damaged.start_offset),
    )
}

/// Cuts the first damage and everything after it. Damage below the log start offset is taken out only: no
/// reader sees its records.
///
/// # Errors
/// [`Error::Corrupt`] if the log would end below its start: every record would be lost, and deleted ones
/// would appear again.
fn cut_at_first_damage(surveys: Vec<Survey>, log_start_offset: i64) -> Result<Vec<Target>> {
    let end_offset = surveys.last().map_or(0, Survey::end_offset);
    let mut targets = Vec::with_capacity(surveys.len());
    let mut cut_at: Option<String> = None;
    for survey in surveys {
        let mut target = Target::new(survey);
        if let Some(cut_at) = &cut_at {
            target.is_removed = true;
            let lost = (target.survey.base_offset(), Some(target.survey.end_offset()));
            target.taken.push(Taken {
                kind: RepairActionKind::RemoveSegment,
                start: 0,
                end: target.survey.size,
                reason: format!("the log is cut in {cut_at}"),
                lost: (target.survey.size > 0).then_some(lost),
            });
            targets.push(target);
            continue;
        }
        let size = target.survey.size;
        for piece in &target.survey.pieces {
            match piece {
                Piece::Intact(run) => {
                    target.contents.push(Part { start: run.start, end: run.end, prefix: None });
                }
                Piece::Damaged(damaged) if target.survey.is_below(damaged, log_start_offset) => {
                    target.taken.push(Taken {
                        kind: RepairActionKind::TakeOut,
                        start: damaged.start,
                        end: damaged.end,
                        reason: format!("below the log start offset {log_start_offset}: {}", reason(damaged)),
                        lost: None,
                    });
                }
                // a log that a writer has emptied may start above its last batch
                Piece::Damaged(damaged)
                    if (damaged.start_offset + 1..=end_offset).contains(&log_start_offset) =>
                {
                    return Err(cut_below_start(&target.survey, damaged, log_start_offset));
                }
                Piece::Damaged(damaged) => {
                    target.taken.push(cut(damaged, size, &target.survey));
                    cut_at = Some(target.survey.name());
                    break;
                }
            }
        }
        targets.push(target);
    }
    Ok(targets)
}

fn cut_below_start(survey: &Survey, damaged: &Damaged, log_start_offset: i64) -> Error {
    let expected = format!(
        "a log that ends at offset {log_start_offset}, its log start offset, or above after the cut (the policy salvage keeps the \
         records after the damage)"
    );
    let found = format!("its end at offset {} ({})", damaged.start_offset, reason(damaged));
    Malformed::new(expected, found).at(survey.segment.path(), damaged.start, Some(damaged.start_offset))
}

fn cut(damaged: &Damaged, size: u64, survey: &Survey) -> Taken {
    let upper = Some(survey.segment.upper()).filter(|upper| *upper != i64::MAX);
    let end_offset = upper.or(damaged.end_offset.map(|_| survey.end_offset()));
    Taken {
        kind: RepairActionKind::Cut,
        start: damaged.start,
        end: size,
        reason: reason_of_cut(damaged),
        lost: is_lost(damaged, end_offset).then_some((damaged.start_offset, end_offset)),
    }
}

/// A broker compares the checksum and no offsets or epochs, so that its recovery usually does not cut here.
fn reason_of_cut(damaged: &Damaged) -> String {
    let reason = reason(damaged);
    if !damaged.is_intact {
        return reason;
    }
    format!(
        "{reason} (a checksum is right: a broker keeps that batch, and the policy salvage keeps every intact one)"
    )
}

/// Whether records may be lost with it: zeros at the end of the log are preallocated space.
pub(super) fn is_lost(damaged: &Damaged, end_offset: Option<i64>) -> bool {
    !damaged.is_zero || end_offset.is_some_and(|end| end > damaged.start_offset)
}

pub(super) fn reason(damaged: &Damaged) -> String {
    let Malformed { expected, found, .. } = &damaged.malformed;
    if damaged.is_zero { "zeros, no batch".to_owned() } else { format!("expected {expected}, found {found}") }
}

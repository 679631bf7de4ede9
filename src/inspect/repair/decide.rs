//! Decides by the policy what remains of each `.log`.

use std::collections::BTreeMap;

use super::contents::{Contents, Part};
use super::correction::{self, Correction, Neighbours};
use super::repair_plan::{RepairActionKind, RepairPolicy};
use super::survey::{Damaged, Piece, Survey};
use crate::error::{Error, Malformed, Result};
use crate::record::{BatchHeader, MAX_BATCH_BYTES};
use crate::segment::{LOOKUP_READ, SCAN_READ};

/// A segment and what remains of it.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) survey: Survey,
    pub(super) contents: Contents,
    pub(super) is_removed: bool,
    pub(super) taken: Vec<Taken>,
}

impl Target {
    fn new(survey: Survey) -> Self {
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

/// A whole batch in damaged bytes, which contradicts its neighbours.
#[derive(Debug, Clone, Copy)]
struct Displaced {
    start: u64,
    header: BatchHeader,
}

/// What remains of each segment. `durable`: the offset up to which a `LogWriter` synced the log.
///
/// # Errors
/// [`Error::Corrupt`] for damage that the policy does not mend.
pub(super) fn decide(
    surveys: Vec<Survey>,
    policy: RepairPolicy,
    durable: Option<i64>,
) -> Result<Vec<Target>> {
    match policy {
        RepairPolicy::TornTail => {
            refuse_other_damage(&surveys, durable)?;
            refuse_missing_end(&surveys, durable)?;
            Ok(cut_at_first_damage(surveys))
        }
        RepairPolicy::Kafka => Ok(cut_at_first_damage(surveys)),
        RepairPolicy::Salvage => salvage(surveys),
    }
}

/// Fails at the first damage that is not a torn write.
fn refuse_other_damage(surveys: &[Survey], durable: Option<i64>) -> Result<()> {
    for survey in surveys {
        for piece in &survey.pieces {
            let Piece::Damaged(damaged) = piece else { continue };
            let is_synced = durable.is_some_and(|durable| damaged.start_offset < durable);
            let is_torn = survey.segment.is_last() && damaged.end_offset.is_none() && !is_synced;
            if !is_torn {
                return Err(not_torn(survey, damaged, is_synced));
            }
        }
    }
    Ok(())
}

/// The error for a log that ends below the offset up to which it was synced, without damage: acknowledged records are missing.
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

fn not_torn(survey: &Survey, damaged: &Damaged, is_synced: bool) -> Error {
    let Malformed { expected, found, .. } = &damaged.malformed;
    let why = if is_synced { "it was synced" } else { "whole batches follow it" };
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

/// Cuts the first damage and everything after it.
fn cut_at_first_damage(surveys: Vec<Survey>) -> Vec<Target> {
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
                Piece::Damaged(damaged) => {
                    target.taken.push(cut(damaged, size, &target.survey));
                    cut_at = Some(target.survey.name());
                    break;
                }
            }
        }
        targets.push(target);
    }
    targets
}

fn cut(damaged: &Damaged, size: u64, survey: &Survey) -> Taken {
    let upper = Some(survey.segment.upper()).filter(|upper| *upper != i64::MAX);
    let end_offset = upper.or(damaged.end_offset.map(|_| survey.end_offset()));
    Taken {
        kind: RepairActionKind::Cut,
        start: damaged.start,
        end: size,
        reason: reason(damaged),
        lost: is_lost(damaged, end_offset).then_some((damaged.start_offset, end_offset)),
    }
}

/// Whether records may be lost with it: zeros at the end of the log are preallocated space.
fn is_lost(damaged: &Damaged, end_offset: Option<i64>) -> bool {
    !damaged.is_zero || end_offset.is_some_and(|end| end > damaged.start_offset)
}

fn reason(damaged: &Damaged) -> String {
    let Malformed { expected, found, .. } = &damaged.malformed;
    if damaged.is_zero { "zeros, no batch".to_owned() } else { format!("expected {expected}, found {found}") }
}

/// Takes the damage out and keeps everything else.
fn salvage(surveys: Vec<Survey>) -> Result<Vec<Target>> {
    let firsts: Vec<_> = surveys.iter().map(|survey| survey.first_batch().copied()).collect();
    let mut targets = Vec::with_capacity(surveys.len());
    for (number, survey) in surveys.into_iter().enumerate() {
        let after = firsts.get(number + 1..).unwrap_or_default().iter().flatten().next();
        targets.push(salvage_segment(survey, after)?);
    }
    Ok(targets)
}

/// `after`: the first whole batch of the later segments.
fn salvage_segment(survey: Survey, after: Option<&BatchHeader>) -> Result<Target> {
    let mut target = Target::new(survey);
    let mut displaced = Vec::new();
    let Target { survey, contents, taken, .. } = &mut target;
    for (number, piece) in survey.pieces.iter().enumerate() {
        match piece {
            Piece::Intact(run) => contents.push(Part { start: run.start, end: run.end, prefix: None }),
            Piece::Damaged(damaged) => {
                let next = match survey.pieces.get(number + 1) {
                    Some(Piece::Intact(run)) => Some(&run.first),
                    _ => after,
                };
                let neighbours = Neighbours::of(damaged, survey.segment.upper(), next);
                take_out(survey, damaged, &neighbours, contents, taken, &mut displaced)?;
            }
        }
    }
    if !displaced.is_empty() {
        put_in_place(&mut target, &displaced)?;
    }
    Ok(target)
}

/// Corrects damaged bytes, or takes them out.
fn take_out(
    survey: &Survey,
    damaged: &Damaged,
    neighbours: &Neighbours,
    contents: &mut Contents,
    taken: &mut Vec<Taken>,
    displaced: &mut Vec<Displaced>,
) -> Result<()> {
    let bytes = if damaged.is_zero { Vec::new() } else { read(survey, damaged)? };
    if let Some(correction) = correction::correct(&bytes, neighbours) {
        correct(damaged.start, damaged.end, &correction, contents, taken);
        return Ok(());
    }
    let batches = correction::batches_in(&bytes);
    if let Some(corrections) = all_corrected(&bytes, &batches, neighbours) {
        for ((at, header), correction) in batches.iter().zip(&corrections) {
            let start = damaged.start + *at as u64;
            let end = start + u64::from(header.size);
            match correction {
                Some(correction) => correct(start, end, correction, contents, taken),
                None => contents.push(Part { start, end, prefix: None }),
            }
        }
        return Ok(());
    }
    displaced.extend(
        batches.into_iter().map(|(at, header)| Displaced { start: damaged.start + at as u64, header }),
    );
    let is_at_end = damaged.end == survey.size;
    taken.push(Taken {
        kind: if is_at_end { RepairActionKind::Cut } else { RepairActionKind::TakeOut },
        start: damaged.start,
        end: damaged.end,
        reason: reason(damaged),
        lost: is_lost(damaged, neighbours.next_offset)
            .then_some((damaged.start_offset, neighbours.next_offset)),
    });
    Ok(())
}

fn correct(start: u64, end: u64, correction: &Correction, contents: &mut Contents, taken: &mut Vec<Taken>) {
    contents.push(Part { start, end, prefix: Some(correction.prefix) });
    taken.push(Taken {
        kind: RepairActionKind::CorrectHeader,
        start,
        end: start + correction.prefix.len() as u64,
        reason: correction.description.clone(),
        lost: None,
    });
}

/// Corrections for several batches, which together have exactly the missing offsets; `None` for a batch that is right.
fn all_corrected(
    bytes: &[u8],
    batches: &[(usize, BatchHeader)],
    neighbours: &Neighbours,
) -> Option<Vec<Option<Correction>>> {
    let span = |header: &BatchHeader| header.last_offset - header.base_offset + 1;
    let total: i64 = batches.iter().map(|(_, header)| span(header)).sum();
    if batches.len() < 2 || neighbours.expected.checked_add(total) != neighbours.next_offset {
        return None;
    }
    let (mut corrections, mut expected) = (Vec::with_capacity(batches.len()), neighbours.expected);
    for (at, header) in batches {
        let next = expected + span(header);
        let own = Neighbours { expected, next_offset: Some(next), ..*neighbours };
        let whole = bytes.get(*at..at + header.size as usize)?;
        let is_right = header.base_offset == expected && own.allows_epoch(header.leader_epoch);
        corrections.push(if is_right { None } else { Some(correction::correct(whole, &own)?) });
        expected = next;
    }
    Some(corrections)
}

/// The bytes of damage; none if they are too many for one batch.
fn read(survey: &Survey, damaged: &Damaged) -> Result<Vec<u8>> {
    let length = usize::try_from(damaged.end - damaged.start).unwrap_or(usize::MAX);
    if length > MAX_BATCH_BYTES {
        return Ok(Vec::new());
    }
    Ok(survey.segment.log_file(LOOKUP_READ)?.read(damaged.start, length)?.to_vec())
}

/// Moves displaced batches to the places where exactly their offsets are missing.
fn put_in_place(target: &mut Target, displaced: &[Displaced]) -> Result<()> {
    let by_offset: BTreeMap<i64, Displaced> =
        displaced.iter().map(|batch| (batch.header.base_offset, *batch)).collect();
    let mut log = target.survey.segment.log_file(SCAN_READ)?;
    let upper = target.survey.segment.upper();
    let mut moved = Vec::new();
    let (mut expected, mut epoch) = (target.survey.base_offset(), -1);
    let mut consider = |expected: i64, epoch: i32, next: i64, next_epoch: i32, before: Option<u64>| {
        let own = Neighbours { expected, epoch_before: epoch, next_offset: Some(next), next_epoch };
        let found = by_offset.get(&expected).filter(|batch| {
            batch.header.last_offset + 1 == next && own.allows_epoch(batch.header.leader_epoch)
        });
        moved.extend(found.map(|batch| (before, *batch)));
    };
    target.contents.for_each_batch(&mut log, |batch, position| {
        consider(expected, epoch, batch.header.base_offset, batch.header.leader_epoch, Some(position));
        (expected, epoch) = (batch.header.last_offset + 1, epoch.max(batch.header.leader_epoch));
        Ok(())
    })?;
    if upper != i64::MAX {
        consider(expected, epoch, upper, -1, None);
    }
    for (before, Displaced { start, header }) in moved {
        let end = start + u64::from(header.size);
        target.contents.insert_before(before, Part { start, end, prefix: None });
        divide_taken(&mut target.taken, start, end, &header);
    }
    Ok(())
}

/// Divides the taken range that contains a batch which is moved: the batch is not lost.
fn divide_taken(taken: &mut Vec<Taken>, start: u64, end: u64, header: &BatchHeader) {
    let Some(place) =
        taken.iter().position(|taken| taken.lost.is_some() && (taken.start..taken.end).contains(&start))
    else {
        return;
    };
    let whole = taken.remove(place);
    let part =
        |kind, start, end, reason: &str, lost| Taken { kind, start, end, reason: reason.to_owned(), lost };
    let (first, last) = (header.base_offset, header.last_offset);
    let reason = format!("exactly its offsets {first} to {last} are missing at another place of the segment");
    let parts = [
        part(whole.kind, whole.start, start, &whole.reason, whole.lost),
        part(RepairActionKind::MoveBatch, start, end, &reason, None),
        part(whole.kind, end, whole.end, &whole.reason, whole.lost),
    ];
    let parts = parts.into_iter().filter(|part| part.start < part.end);
    taken.splice(place..place, parts);
}

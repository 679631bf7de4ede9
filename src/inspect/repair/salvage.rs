//! Salvage: takes the damage out and keeps every intact batch, with its offsets.

use std::sync::Arc;

use super::contents::Part;
use super::correction::{self, Correction, Neighbours};
use super::decide::{Taken, Target, is_lost, reason};
use super::marker;
use super::places::{self, Displaced, Known, Place};
use super::repair_plan::RepairActionKind;
use super::survey::{Damaged, Piece, Survey};
use crate::error::{Malformed, Result};
use crate::record::{BatchHeader, MAX_BATCH_BYTES};
use crate::segment::LOOKUP_READ;
use crate::types::{is_or_are, offsets_in_words};

/// A damaged range that is not corrected as one batch.
#[derive(Debug)]
struct DamagedRange {
    place: Place,
    taken: Taken,
    /// The corrections with which its batches have exactly the missing offsets, `None` for a batch that is
    /// right; none if there are no such corrections.
    corrections: Vec<Option<Correction>>,
}

/// What remains of each segment.
pub(super) fn salvage(surveys: Vec<Survey>) -> Result<Vec<Target>> {
    let firsts: Vec<_> = surveys.iter().map(|survey| survey.first_batch().copied()).collect();
    let mut targets = Vec::with_capacity(surveys.len());
    let (mut ranges, mut displaced) = (Vec::new(), Vec::new());
    for (number, survey) in surveys.into_iter().enumerate() {
        let after = firsts.get(number + 1..).unwrap_or_default().iter().flatten().next();
        targets.push(keep_intact(number, survey, after, &mut ranges, &mut displaced)?);
    }
    let known = if displaced.is_empty() { Vec::new() } else { places::find(&targets, &displaced)? };
    let batches: Vec<_> = displaced.into_iter().zip(known).collect();
    let decided: Vec<_> =
        ranges.iter().enumerate().map(|(number, range)| decide(number, range, &batches)).collect();
    put(&mut targets, ranges, &batches, decided);
    Ok(targets)
}

/// Keeps the intact batches of a segment, and corrects damaged ranges that are one batch. `after`: the first
/// whole batch of the later segments.
fn keep_intact(
    number: usize,
    survey: Survey,
    after: Option<&BatchHeader>,
    ranges: &mut Vec<DamagedRange>,
    displaced: &mut Vec<Displaced>,
) -> Result<Target> {
    let mut target = Target::new(survey);
    let Target { survey, contents, taken, .. } = &mut target;
    for (place, piece) in survey.pieces.iter().enumerate() {
        let damaged = match piece {
            Piece::Intact(run) => {
                contents.push(Part { start: run.start, end: run.end, prefix: None });
                continue;
            }
            Piece::Damaged(damaged) => damaged,
        };
        let next = match survey.pieces.get(place + 1) {
            Some(Piece::Intact(run)) => Some((run.start, &run.first)),
            _ => None,
        };
        let neighbours =
            Neighbours::of(damaged, survey.segment.upper(), next.map_or(after, |next| Some(next.1)));
        let bytes = if damaged.is_zero { Vec::new() } else { read(survey, damaged)? };
        let max = survey.segment.open_files().max_batch_bytes;
        let too_large = |(at, malformed): (usize, Malformed)| {
            malformed.at(survey.segment.path(), damaged.start + at as u64, None)
        };
        let in_place = correction::in_place(&bytes, &neighbours, max);
        let in_place = in_place.map_err(|malformed| too_large((0, malformed)))?;
        if let Some(correction) = in_place.or_else(|| marker::with_one_bit(&bytes, &neighbours)) {
            let (part, correction) = corrected(damaged.start, damaged.end, &correction);
            contents.push(part);
            taken.push(correction);
            continue;
        }
        let found =
            correction::batches_in(&bytes, neighbours.next_offset.is_none(), max).map_err(too_large)?;
        displaced.extend(found.iter().map(|batch| Displaced {
            target: number,
            range: ranges.len(),
            start: damaged.start + batch.at as u64,
            end: damaged.start + (batch.at + batch.size) as u64,
            header: batch.header,
            may_belong: neighbours.may_have(batch),
            sequences: batch.sequences,
        }));
        let is_at_end = damaged.end == survey.size;
        ranges.push(DamagedRange {
            place: (number, next.map(|next| next.0)),
            taken: Taken {
                kind: if is_at_end { RepairActionKind::Cut } else { RepairActionKind::TakeOut },
                start: damaged.start,
                end: damaged.end,
                reason: reason(damaged),
                lost: is_lost(damaged, neighbours.next_offset)
                    .then_some((damaged.start_offset, neighbours.next_offset)),
            },
            corrections: all_corrected(&bytes, &found, &neighbours, max).unwrap_or_default(),
        });
    }
    Ok(target)
}

/// The bytes of damage; none if they are too many for one batch.
fn read(survey: &Survey, damaged: &Damaged) -> Result<Vec<u8>> {
    let length = usize::try_from(damaged.end - damaged.start).unwrap_or(usize::MAX);
    // also with a low limit, smaller batches in it are kept
    if length > survey.segment.open_files().max_batch_bytes.max(MAX_BATCH_BYTES) {
        return Ok(Vec::new());
    }
    Ok(survey.segment.log_file(LOOKUP_READ)?.read(damaged.start, length)?.to_vec())
}

/// Corrections for the batches of a range, which together have exactly the missing offsets; `None` for a
/// batch that is right.
fn all_corrected(
    bytes: &[u8],
    batches: &[correction::WholeBatch],
    neighbours: &Neighbours,
    max_batch_bytes: usize,
) -> Option<Vec<Option<Correction>>> {
    let total = batches.iter().try_fold(0_i64, |total, batch| total.checked_add(batch.span))?;
    let size: usize = batches.iter().map(|batch| batch.size).sum();
    let end = neighbours.expected.checked_add(total)?;
    if size != bytes.len() || Some(end) != neighbours.next_offset {
        return None;
    }
    let (mut corrections, mut expected) = (Vec::with_capacity(batches.len()), neighbours.expected);
    for batch in batches {
        let next = expected + batch.span;
        let own = Neighbours { expected, next_offset: Some(next), ..*neighbours };
        let whole = bytes.get(batch.at..batch.at + batch.size)?;
        let is_right = batch
            .header
            .is_some_and(|header| header.base_offset == expected && own.allows_epoch(header.leader_epoch));
        corrections.push(if is_right {
            None
        } else {
            Some(correction::renumbered(whole, &own, max_batch_bytes)?)
        });
        expected = next;
    }
    Some(corrections)
}

/// A batch with other first bytes, and the report of it.
fn corrected(start: u64, end: u64, correction: &Correction) -> (Part, Taken) {
    let taken = Taken {
        kind: correction.kind,
        start,
        end: start + correction.prefix.len() as u64,
        reason: correction.description.clone(),
        lost: None,
    };
    (Part { start, end, prefix: Some(Arc::clone(&correction.prefix)) }, taken)
}

/// What is done with the batches of a damaged range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    /// They are corrected where they are.
    Corrected,
    /// Those with a place in the same segment are put there.
    Placed,
    /// A batch may belong where it is, with a corrected offset, or elsewhere: it is taken out.
    Ambiguous,
}

/// `batches`: all displaced batches of the log.
fn decide(number: usize, range: &DamagedRange, batches: &[(Displaced, Known)]) -> Decision {
    let own: Vec<_> = batches.iter().filter(|(batch, _)| batch.range == number).collect();
    let is_copied = own.iter().any(|(_, known)| known.is_copy);
    if range.corrections.is_empty() || is_copied || !is_continued(&own) {
        return Decision::Placed;
    }
    let is_claimed =
        batches.iter().any(|(batch, known)| batch.range != number && known.place == Some(range.place));
    let has_other_place = own.iter().zip(&range.corrections).any(|((_, known), correction)| {
        correction.is_some() && known.place.is_some_and(|place| place != range.place)
    });
    match (is_claimed, has_other_place) {
        (true, _) => Decision::Placed,
        (false, true) => Decision::Ambiguous,
        (false, false) => Decision::Corrected,
    }
}

/// Whether the sequences of each producer continue through the batches of a range.
fn is_continued(batches: &[&(Displaced, Known)]) -> bool {
    let with_sequences = || batches.iter().filter(|(batch, _)| !batch.sequences.is_none());
    with_sequences().enumerate().all(|(number, (batch, known))| {
        let same =
            |other: &&&(Displaced, Known)| other.0.sequences.producer_id == batch.sequences.producer_id;
        let next = with_sequences().skip(number + 1).find(same);
        if let Some((next, _)) = next
            && !batch.sequences.is_continued_by(&next.sequences)
        {
            return false;
        }
        let is_first = !with_sequences().take(number).any(|other| same(&other));
        let last = with_sequences().rfind(same);
        !is_first
            || last.is_none_or(|(last, of_last)| {
                Known::continues((known, batch.sequences), (of_last, last.sequences))
            })
    })
}

/// Puts the batches in their places, and takes everything else of the ranges out.
fn put(
    targets: &mut [Target],
    ranges: Vec<DamagedRange>,
    batches: &[(Displaced, Known)],
    decisions: Vec<Decision>,
) {
    // by their offsets, as they are inserted before the same batch one after another
    let mut placed: Vec<(Place, i64, Part)> = Vec::new();
    for (number, (range, decision)) in ranges.into_iter().zip(decisions).enumerate() {
        let DamagedRange { place, taken, corrections } = range;
        let mut own_taken = Vec::new();
        let mut at = taken.start;
        let mut last_in_place = i64::MIN;
        let own = batches.iter().filter(|(batch, _)| batch.range == number);
        for (order, (batch, known)) in own.enumerate() {
            let mut kept = None;
            match decision {
                Decision::Corrected => {
                    let (part, correction) = match corrections.get(order) {
                        Some(Some(correction)) => {
                            let (part, taken) = corrected(batch.start, batch.end, correction);
                            (part, Some(taken))
                        }
                        _ => (Part { start: batch.start, end: batch.end, prefix: None }, None),
                    };
                    placed.push((place, i64::try_from(order).unwrap_or(i64::MAX), part));
                    kept = Some(correction);
                }
                Decision::Placed | Decision::Ambiguous => {
                    if let (Some(header), Some(own_place)) = (&batch.header, known.place)
                        && own_place.0 == batch.target
                        && (own_place == place || decision == Decision::Placed)
                    {
                        let part = Part { start: batch.start, end: batch.end, prefix: None };
                        placed.push((own_place, header.base_offset, part));
                        let is_in_place = own_place == place && header.base_offset > last_in_place;
                        if is_in_place {
                            last_in_place = header.base_offset;
                        }
                        kept = Some((!is_in_place).then(|| moved(batch, header)));
                    }
                }
            }
            if let Some(report) = kept {
                push_part(&mut own_taken, &taken, at, batch.start);
                own_taken.extend(report);
                at = batch.end;
            }
        }
        push_part(&mut own_taken, &taken, at, taken.end);
        if let Some(target) = targets.get_mut(place.0) {
            target.taken.extend(own_taken);
        }
    }
    placed.sort_by_key(|(place, order, _)| (*place, *order));
    for ((target, before), _, part) in placed {
        if let Some(target) = targets.get_mut(target) {
            target.contents.insert_before(before, part);
        }
    }
    for target in targets {
        target.taken.sort_by_key(|taken| taken.start);
    }
}

fn moved(batch: &Displaced, header: &BatchHeader) -> Taken {
    let (first, last) = (header.base_offset, header.last_offset);
    Taken {
        kind: RepairActionKind::MoveBatch,
        start: batch.start,
        end: batch.end,
        reason: format!(
            "its {} {} missing at another place of the segment",
            offsets_in_words(first, last.checked_add(1)),
            is_or_are(first, last.saturating_add(1))
        ),
        lost: None,
    }
}

/// Adds a part of a range that is taken out.
fn push_part(parts: &mut Vec<Taken>, whole: &Taken, start: u64, end: u64) {
    if start < end {
        let Taken { kind, reason, lost, .. } = whole;
        let kind = if end == whole.end { *kind } else { RepairActionKind::TakeOut };
        parts.push(Taken { kind, start, end, reason: reason.clone(), lost: *lost });
    }
}

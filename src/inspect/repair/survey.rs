//! What the `.log` of a segment consists of: runs of whole batches, and damage between them. The walk is that
//! of a scan.

use std::sync::Arc;

use crate::error::{Malformed, Result};
use crate::log::Log;
use crate::record::BatchHeader;
use crate::segment::{Batch, EpochsBefore, Preceding, SCAN_READ, Segment, Step, Walk};

/// The bytes of a segment's `.log`.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) segment: Arc<Segment>,
    /// The size of the file.
    pub(super) size: u64,
    /// They cover the file from its first byte to its last.
    pub(super) pieces: Vec<Piece>,
    /// Whether a whole batch is of a transaction, or its marker.
    pub(super) is_transactional: bool,
}

#[derive(Debug)]
pub(super) enum Piece {
    Intact(Run),
    Damaged(Damaged),
}

/// Whole batches without other bytes between them.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) batches: u64,
    pub(super) first: BatchHeader,
    pub(super) last: BatchHeader,
    /// The one before the last; `None` if there is one batch.
    before_last: Option<BatchHeader>,
}

/// Bytes that are no batch, or a batch that contradicts its neighbours.
#[derive(Debug)]
pub(super) struct Damaged {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The first offset that may be missing.
    pub(super) start_offset: i64,
    /// The offset of the batch after it; `None` if no whole batch follows in the segment.
    pub(super) end_offset: Option<i64>,
    /// Whether the search for whole batches in and after it was completed.
    pub(super) is_searched: bool,
    /// Whether a batch with a right checksum, which contradicts others, is at the start of it or at a place
    /// where the walk went on: no torn write, and a broker keeps that batch.
    pub(super) is_intact: bool,
    pub(super) malformed: Malformed,
    /// The state before it.
    pub(super) before: Option<Preceding>,
    /// Whether all bytes are zero: preallocated space, or blocks that were never written.
    pub(super) is_zero: bool,
}

impl Survey {
    /// The base offset of the segment.
    pub(super) fn base_offset(&self) -> i64 {
        self.segment.base_offset()
    }

    /// The present name of the `.log`: it ends in `.swap` if a committed replacement is not renamed yet.
    pub(super) fn name(&self) -> String {
        self.segment.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// The first whole batch.
    pub(super) fn first_batch(&self) -> Option<&BatchHeader> {
        self.runs().next().map(|run| &run.first)
    }

    /// The offset after the last whole batch; the base offset if there is none.
    pub(super) fn end_offset(&self) -> i64 {
        self.runs().last().map_or(self.base_offset(), |run| run.last.last_offset + 1)
    }

    /// Whether every offset that damage may have is below another one.
    pub(super) fn is_below(&self, damaged: &Damaged, offset: i64) -> bool {
        damaged.end_offset.unwrap_or(self.segment.upper()) <= offset
    }

    fn runs(&self) -> impl Iterator<Item = &Run> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Intact(run) => Some(run),
            Piece::Damaged(_) => None,
        })
    }

    fn add_batch(&mut self, batch: &Batch) {
        self.is_transactional |= batch.header.is_transactional();
        match self.pieces.last_mut() {
            Some(Piece::Intact(run)) => {
                run.end = batch.end();
                run.batches += 1;
                run.before_last = Some(std::mem::replace(&mut run.last, batch.header));
            }
            _ => self.pieces.push(Piece::Intact(Run {
                start: batch.position,
                end: batch.end(),
                batches: 1,
                first: batch.header,
                last: batch.header,
                before_last: None,
            })),
        }
    }

    pub(super) fn is_damaged(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Damaged(_)))
    }

    /// The leader epoch of the first batch; `None` if there is none.
    pub(super) fn first_leader_epoch(&self) -> Option<i32> {
        self.pieces.iter().find_map(|piece| match piece {
            Piece::Intact(run) => Some(run.first.leader_epoch),
            Piece::Damaged(_) => None,
        })
    }

    /// Takes the last batch for damaged if it has the last of these leader epochs, which the batches after
    /// the segment contradict.
    fn reject_last_epoch(&mut self, epochs: EpochsBefore) {
        let EpochsBefore { highest: leader_epoch, earlier } = epochs;
        let Some(Piece::Intact(run)) = self.pieces.last_mut().filter(|piece| {
            matches!(piece, Piece::Intact(run) if run.last.leader_epoch == leader_epoch && run.end == self.size)
        }) else {
            return;
        };
        let (end, last) = (run.end, run.last);
        run.end -= u64::from(last.size);
        let start = run.end;
        let preceding = run.before_last.take();
        match preceding {
            Some(preceding) => {
                run.batches -= 1;
                run.last = preceding;
            }
            None => drop(self.pieces.pop()),
        }
        let end_of_pieces = self.end_offset();
        let damaged = Damaged {
            start,
            end,
            start_offset: end_of_pieces,
            end_offset: None,
            is_searched: true,
            is_intact: true,
            malformed: Malformed::new(
                "a leader epoch as the batches around it have",
                format!("leader epoch {leader_epoch}"),
            ),
            before: Some(Preceding {
                last_offset: end_of_pieces - 1,
                leader_epoch: earlier,
                earlier_epoch: earlier,
            }),
            is_zero: false,
        };
        self.add_damage(damaged);
    }

    fn add_damage(&mut self, damaged: Damaged) {
        match self.pieces.last_mut() {
            // the batch at which the walk resumed turned out to be damaged, too
            Some(Piece::Damaged(last)) => {
                last.end = damaged.end;
                last.end_offset = damaged.end_offset;
                last.is_zero &= damaged.is_zero;
                last.is_searched &= damaged.is_searched;
                last.is_intact |= damaged.is_intact;
            }
            _ => self.pieces.push(Piece::Damaged(damaged)),
        }
    }
}

/// Reads every segment of a log. `from_disk`: drops the cached pages of each file first.
///
/// # Errors
/// [`Error::UnsupportedFormat`](crate::Error::UnsupportedFormat) for batches that this version cannot read:
/// they are not damage.
pub(super) fn survey(log: &Log, from_disk: bool) -> Result<Vec<Survey>> {
    let mut surveys: Vec<Survey> = Vec::with_capacity(log.segments().len());
    let mut epochs = EpochsBefore::UNKNOWN;
    for segment in log.segments().iter() {
        if from_disk {
            segment.forget_cached()?;
        }
        let mut walk = segment.walk(epochs, SCAN_READ)?;
        if epochs.is_last_wrong(walk.epoch_at(0)?)
            && let Some(previous) = surveys.last_mut()
        {
            previous.reject_last_epoch(epochs);
        }
        let survey = survey_segment(log, segment, &mut walk)?;
        epochs = EpochsBefore::after(walk.before);
        surveys.push(survey);
    }
    Ok(surveys)
}

fn survey_segment(log: &Log, segment: &Arc<Segment>, walk: &mut Walk) -> Result<Survey> {
    let size = segment.file_size()?;
    let mut survey =
        Survey { segment: Arc::clone(segment), size, pieces: Vec::new(), is_transactional: false };
    loop {
        log.options().interrupt.check()?;
        let before = walk.before;
        let damage = match walk.step_through()? {
            Step::End => break,
            Step::Batch(batch) => {
                survey.add_batch(&batch);
                continue;
            }
            Step::Damage(damage) => damage,
        };
        if !damage.malformed.is_damage() {
            return Err(segment.corrupt(&damage));
        }
        let span = segment.resume(walk, &damage)?;
        if let Some(newer) = span.unsupported() {
            return Err(segment.corrupt(&newer));
        }
        survey.add_damage(Damaged {
            start: span.start_position,
            end: span.end_position,
            start_offset: span.start_offset,
            end_offset: span.end_offset,
            is_searched: span.is_searched,
            is_intact: walk.is_intact_at(&damage)?,
            malformed: damage.malformed,
            before,
            is_zero: walk.log.is_zero(span.start_position, span.end_position)?,
        });
    }
    let (start, before) = (walk.bounds.end, walk.before);
    let tail = segment.tail()?;
    if start < size
        && let Some(cut) = &tail.cut
    {
        if !cut.malformed.is_damage() {
            return Err(segment.corrupt(cut));
        }
        survey.add_damage(Damaged {
            start,
            end: size,
            start_offset: cut.offset,
            end_offset: None,
            is_searched: tail.is_searched,
            is_intact: tail.is_intact,
            malformed: cut.malformed.clone(),
            before,
            is_zero: walk.log.is_zero(start, size)?,
        });
    }
    Ok(survey)
}

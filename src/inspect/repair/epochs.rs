//! The leader epochs of the batches, compared with `leader-epoch-checkpoint`.

use std::ops::Range;

use super::derived::Derived;
use crate::error::Result;
use crate::fs::Directory;
use crate::state::leader_epochs::LeaderEpochs;

/// Batches with the same leader epoch, which follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EpochRun {
    pub(super) epoch: i32,
    /// The base offset of the first one.
    pub(super) first: i64,
    /// The base offset of the last one.
    pub(super) last: i64,
}

impl EpochRun {
    /// Adds the batches of a run to the runs before it.
    pub(super) fn add_to(self, runs: &mut Vec<Self>) {
        match runs.last_mut().filter(|last| last.epoch == self.epoch) {
            Some(last) => last.last = self.last,
            None => runs.push(self),
        }
    }
}

/// The leader epochs that the batches have.
pub(super) fn epochs_of<'a>(segments: impl Iterator<Item = &'a Derived>) -> Vec<EpochRun> {
    let mut runs = Vec::new();
    segments.flat_map(|derived| &derived.epochs).for_each(|run| run.add_to(&mut runs));
    runs
}

/// The history that `leader-epoch-checkpoint` should have, of a log with these segments' offsets; `None` if
/// the present file agrees with the batches.
pub(super) fn new_epochs(
    directory: &Directory,
    of_batches: &[EpochRun],
    offsets: Range<i64>,
) -> Result<Option<(LeaderEpochs, String)>> {
    let text = LeaderEpochs::read_text(directory)?;
    let Some(text) = text.filter(|text| !(text.is_empty() && of_batches.is_empty())) else {
        let wanted = from_batches(of_batches);
        return Ok((!of_batches.is_empty()).then(|| (wanted, "the file is missing".to_owned())));
    };
    if text.is_empty() {
        return Ok(Some((from_batches(of_batches), "the file is empty".to_owned())));
    }
    let mut known = match LeaderEpochs::parse(&text) {
        Ok(known) => known,
        Err(wrong) => return Ok(Some((from_batches(of_batches), wrong))),
    };
    let words = std::str::from_utf8(&text).unwrap_or_default().split_whitespace();
    let is_other = known.to_text().split_whitespace().ne(words);
    // an epoch that begins at the end has no record yet
    let is_above = known.truncate_from_end(offsets.end.saturating_add(1));
    let is_below = known.entries().first().is_some_and(|(_, start)| *start < offsets.start)
        && known.truncate_from_start(offsets.start);
    let wanted = from_batches(of_batches);
    // where epochs fall, a broker that appends removes the higher ones, and one that recovers assigns no
    // lower one
    let has_fall = of_batches.array_windows().any(|[before, run]| run.epoch < before.epoch);
    let mut highest = -1;
    // epochs and offsets ascend on both sides: what the first and the last batch of a run agree with, those
    // between do, too
    for (epoch, offset) in of_batches.iter().flat_map(|run| [(run.epoch, run.first), (run.epoch, run.last)]) {
        highest = highest.max(epoch);
        // none below the log start offset
        let entry = known.epoch_at(offset);
        let is_of_fall = |known| has_fall && (Some(known) == wanted.epoch_at(offset) || known == highest);
        let is_wrong = entry.is_some_and(|known| known != epoch && !is_of_fall(known));
        if is_wrong || known.entries().is_empty() {
            let reason = format!("the batch at offset {offset} has leader epoch {epoch}");
            return Ok(Some((wanted, reason)));
        }
    }
    let reason = match (is_above, is_below) {
        (false, false) if is_other => {
            "a line that contradicts others, or is written in another way".to_owned()
        }
        (true, _) => format!("an epoch begins above offset {}, the end of the log", offsets.end),
        (false, true) => {
            format!("an epoch begins below offset {}, where the first segment begins", offsets.start)
        }
        (false, false) => return Ok(None),
    };
    Ok(Some((known, reason)))
}

fn from_batches(of_batches: &[EpochRun]) -> LeaderEpochs {
    LeaderEpochs::of_batches(of_batches.iter().map(|run| (run.epoch, run.first)))
}

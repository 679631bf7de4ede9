//! The leader epochs of the batches, compared with `leader-epoch-checkpoint`.

use super::derived::Derived;
use crate::error::Result;
use crate::fs::Directory;
use crate::state::leader_epochs::LeaderEpochs;

/// The leader epochs that the batches have: each with its first offset.
pub(super) fn epochs_of<'a>(segments: impl Iterator<Item = &'a Derived>) -> Vec<(i32, i64)> {
    let mut epochs: Vec<(i32, i64)> = Vec::new();
    for (epoch, offset) in segments.flat_map(|derived| &derived.epochs) {
        if epochs.last().is_none_or(|(last, _)| last != epoch) {
            epochs.push((*epoch, *offset));
        }
    }
    epochs
}

/// The history that `leader-epoch-checkpoint` should have; `None` if the present file agrees with the batches.
pub(super) fn new_epochs(
    directory: &Directory,
    of_batches: &[(i32, i64)],
    log_end_offset: i64,
) -> Result<Option<(LeaderEpochs, String)>> {
    let text = LeaderEpochs::read_text(directory)?;
    let Some(text) = text.filter(|text| !(text.is_empty() && of_batches.is_empty())) else {
        let wanted = from_batches(of_batches);
        return Ok((!of_batches.is_empty()).then(|| (wanted, "the file is missing".to_owned())));
    };
    if text.is_empty() {
        return Ok(Some((from_batches(of_batches), "the file is empty".to_owned())));
    }
    let known = match LeaderEpochs::parse(&text) {
        Ok(known) => known,
        Err(wrong) => return Ok(Some((from_batches(of_batches), wrong))),
    };
    for (epoch, offset) in of_batches {
        // none below the log start offset
        let entry = known.entries().iter().rev().find(|(_, start)| start <= offset);
        if entry.is_some_and(|(known, _)| known != epoch) || known.entries().is_empty() {
            let reason = format!("the batch at offset {offset} has leader epoch {epoch}");
            return Ok(Some((from_batches(of_batches), reason)));
        }
    }
    let mut cut = known;
    // an epoch that begins at the end has no record yet
    if cut.truncate_from_end(log_end_offset.saturating_add(1)) {
        let reason = format!("an epoch begins above offset {log_end_offset}, the end of the log");
        return Ok(Some((cut, reason)));
    }
    Ok(None)
}

fn from_batches(of_batches: &[(i32, i64)]) -> LeaderEpochs {
    let mut epochs = LeaderEpochs::default();
    for (epoch, offset) in of_batches {
        epochs.assign(*epoch, *offset);
    }
    epochs
}

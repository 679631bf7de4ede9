//! Leader epochs: those of the segments' batches, in their order, and `leader-epoch-checkpoint`.

use super::finding::Finding;
use super::rule::{Remedy, Rule};
use super::summary::{EpochRun, Summary};
use crate::error::Result;
use crate::fs::Directory;
use crate::log::Log;
use crate::segment::{WrongEpoch, wrong_epoch};
use crate::state::leader_epochs::{LEADER_EPOCH_CHECKPOINT, LeaderEpochs};

/// Where the epochs of batches fall: one of them is wrong, or another cluster continued the log. The walk
/// through a segment knows nothing of the batches of others, so that it leaves some wrong ones.
pub(super) fn falls(log: &Log, summaries: &[Summary]) -> Vec<Finding> {
    let mut findings = Vec::new();
    // the run with the highest epoch since the epochs last fell, and the highest epoch before that run
    let mut before: Option<(usize, EpochRun, i32)> = None;
    let runs = runs_with_epoch(summaries);
    for (place, (number, run)) in runs.iter().enumerate() {
        let Some((of_before, highest, earlier)) = before else {
            before = Some((*number, *run, -1));
            continue;
        };
        if run.epoch >= highest.epoch {
            before = Some((*number, *run, highest.epoch));
            continue;
        }
        let before_highest = if highest.batches > 1 { highest.epoch } else { earlier };
        let is_adjacent = |(of_next, next): &&(usize, EpochRun)| {
            if of_next == number { next.position == run.end_position } else { next.position == 0 }
        };
        let next = runs.get(place + 1).filter(is_adjacent).map_or(-1, |(_, next)| next.epoch);
        let third = if run.batches > 1 { run.epoch } else { next };
        let wrong = wrong_epoch(before_highest, highest.epoch, run.epoch, third);
        findings.push(match wrong {
            None => {
                let expected = format!("a leader epoch of {} or more, as before it", highest.epoch);
                of_run(Rule::LeaderEpochsFall, log, (*number, run), expected)
            }
            Some(WrongEpoch::First) => {
                let expected = format!("a leader epoch of at most {}", run.epoch);
                of_run(Rule::DamagedBatch, log, (of_before, &highest), expected)
            }
            Some(WrongEpoch::Second) => {
                let expected = format!("a leader epoch of {} or more", highest.epoch);
                of_run(Rule::DamagedBatch, log, (*number, run), expected)
            }
        });
        if wrong != Some(WrongEpoch::Second) {
            before = Some((*number, *run, -1));
        }
    }
    findings
}

fn of_run(rule: Rule, log: &Log, (number, run): (usize, &EpochRun), expected: String) -> Finding {
    let path = log.segments().get(number).map(|segment| segment.path()).unwrap_or_default();
    Finding::new(rule, log.path(), path, expected, format!("leader epoch {}", run.epoch))
        .at(run.position, run.end_position)
        .offsets(run.start_offset, Some(run.last_offset + 1))
        .because("within a cluster, epochs never decrease from one batch to the next")
}

/// Compares `leader-epoch-checkpoint` with the batches. Also returns the number of batches whose epoch
/// nothing was compared with.
pub(super) fn checkpoint(
    log: &Log,
    directory: &Directory,
    summaries: &[Summary],
) -> Result<(Vec<Finding>, u64)> {
    let runs = runs_with_epoch(summaries);
    let batches = runs.iter().map(|(_, run)| run.batches).sum();
    let path = directory.path_of(LEADER_EPOCH_CHECKPOINT);
    let new = |rule, expected: String, found: String| Finding::new(rule, log.path(), &path, expected, found);
    let text = LeaderEpochs::read_text(directory)?;
    let is_file = text.is_some();
    let text = text.unwrap_or_default();
    let epochs = match LeaderEpochs::parse(&text) {
        Ok(epochs) => epochs,
        Err(wrong) => {
            let expected = "a version, a count, and lines of an epoch and an offset".to_owned();
            return Ok((vec![new(Rule::LeaderEpochsUnreadable, expected, wrong)], batches));
        }
    };
    let mut findings = Vec::new();
    if epochs.entries().is_empty() {
        if let Some((_, run)) = runs.first() {
            let expected = "the start offset of each leader epoch of the batches".to_owned();
            let no_epoch = if is_file { "no epoch" } else { "no such file" };
            let found =
                format!("{no_epoch}, and batches with epoch {} from offset {}", run.epoch, run.start_offset);
            findings.push(new(Rule::LeaderEpochsMissing, expected, found).offsets(run.start_offset, None));
        }
        return Ok((findings, batches));
    }
    // lines that contradict others are dropped when the file is read
    if !text.is_empty() && epochs.to_text().split_whitespace().ne(as_words(&text)) {
        let expected =
            "epochs and offsets that increase, written as numbers without sign or leading zeros".to_owned();
        let found = format!("{:?}", String::from_utf8_lossy(&text));
        findings.push(new(Rule::LeaderEpochsWrong, expected, found));
    }
    let end = log.log_end_offset()?;
    for (epoch, start) in epochs.entries().iter().filter(|(_, start)| *start > end) {
        let expected = format!("start offsets up to the log end offset, {end}");
        let found = format!("epoch {epoch} from offset {start}");
        findings.push(new(Rule::LeaderEpochsWrong, expected, found).offsets(*start, None));
    }
    let (wrong, unprotected) = mismatches(log, &runs, &epochs, &path);
    findings.extend(wrong);
    Ok((findings, unprotected))
}

/// The runs that contradict the file, and the number of batches whose epoch nothing was compared with.
fn mismatches(
    log: &Log,
    runs: &[(usize, EpochRun)],
    epochs: &LeaderEpochs,
    path: &std::path::Path,
) -> (Vec<Finding>, u64) {
    let mut findings = Vec::new();
    let first_start = epochs.entries().first().map_or(0, |(_, start)| *start);
    let (of_others, runs) = runs.split_at(start_after_falls(runs));
    let mut unprotected = of_others.iter().map(|(_, run)| run.batches).sum();
    let all = of_others.iter().chain(runs);
    let assigned = LeaderEpochs::of_batches(all.map(|(_, run)| (run.epoch, run.start_offset)));
    for (number, run) in of_others {
        // the file of a log whose epochs fell begins at the fall, or at a higher epoch, or has the lower ones
        // before it
        let is_lower = |offset: &i64| {
            let known = epochs.epoch_at(*offset);
            known.is_some_and(|known| known < run.epoch) && known != assigned.epoch_at(*offset)
        };
        if run.probes().iter().any(is_lower) {
            findings.push(mismatch(log, *number, run, epochs, path));
        }
    }
    for (number, run) in runs.iter().copied() {
        let found = run.probes().map(|offset| epochs.epoch_at(offset));
        let is_same = |known: Option<i32>| known == Some(run.epoch);
        // batches before the first entry are below an earlier log start offset
        let is_before = run.start_offset < first_start
            && epochs.entries().first().is_some_and(|(first, _)| run.epoch <= *first);
        if is_before && found.iter().all(|known| known.is_none() || is_same(*known)) {
            unprotected += run.batches;
            continue;
        }
        if found.iter().all(|known| is_same(*known)) {
            continue;
        }
        // a recovery of a broker assigns only epochs above the latest, also where they fall
        let is_flip = |known: i32| run.batches == 1 && (known ^ run.epoch).cast_unsigned().is_power_of_two();
        let is_of_other = |known: i32| {
            known > run.epoch && !is_flip(known) && of_others.iter().any(|(_, other)| other.epoch == known)
        };
        if found.into_iter().all(|known| is_same(known) || known.is_some_and(is_of_other)) {
            unprotected += run.batches;
            continue;
        }
        findings.push(mismatch(log, number, &run, epochs, path));
    }
    (findings, unprotected)
}

/// The runs of batches with a leader epoch, each with the number of its segment, in the order of the log.
fn runs_with_epoch(summaries: &[Summary]) -> Vec<(usize, EpochRun)> {
    let of_all = summaries.iter().enumerate();
    let runs = of_all.flat_map(|(number, summary)| summary.epochs.iter().map(move |run| (number, *run)));
    runs.filter(|(_, run)| run.epoch >= 0).collect()
}

/// The number of the first run after the last fall of epochs. A broker drops the epochs of another cluster
/// that are above its own.
fn start_after_falls(runs: &[(usize, EpochRun)]) -> usize {
    let is_fall = |[(_, before), (_, run)]: &[(usize, EpochRun); 2]| run.epoch < before.epoch;
    runs.array_windows().rposition(is_fall).map_or(0, |before| before + 1)
}

/// The first batches of a segment that contradict the file.
pub(super) fn first_mismatch(log: &Log, summary: &Summary, epochs: &LeaderEpochs) -> Option<Finding> {
    let is_wrong = |run: &&EpochRun| {
        run.probes().iter().any(|offset| run.epoch >= 0 && epochs.epoch_at(*offset) != Some(run.epoch))
    };
    let file = log.path().join(LEADER_EPOCH_CHECKPOINT);
    let number = log.segments().iter().position(|segment| segment.base_offset() == summary.base_offset);
    summary.epochs.iter().find(is_wrong).map(|run| mismatch(log, number.unwrap_or(0), run, epochs, &file))
}

/// A single batch contradicts the file: the batch is wrong. Many do: the file is.
fn mismatch(
    log: &Log,
    number: usize,
    run: &EpochRun,
    epochs: &LeaderEpochs,
    file: &std::path::Path,
) -> Finding {
    let is_wrong = |offset: &i64| epochs.epoch_at(*offset) != Some(run.epoch);
    let offset = run.probes().into_iter().find(is_wrong).unwrap_or(run.start_offset);
    let known = epochs.epoch_at(offset);
    let of_file = known.map_or_else(|| "no epoch".to_owned(), |epoch| format!("epoch {epoch}"));
    if run.batches == 1
        && let Some(segment) = log.segments().get(number)
    {
        let expected = format!("{of_file}, as leader-epoch-checkpoint has for offset {offset}");
        let found = format!("epoch {} in the batch", run.epoch);
        // the epochs around the batch allow its own, so only another replica tells which of the two is wrong
        return Finding::new(Rule::LeaderEpochMismatch, log.path(), segment.path(), expected, found)
            .with_remedy(Remedy::manual(
                "compare the batch with another replica: it or leader-epoch-checkpoint is wrong, and a repair would believe the batch",
            ))
            .at(run.position, run.end_position)
            .offsets(run.start_offset, Some(run.last_offset + 1));
    }
    let expected =
        format!("epoch {}, as {} batches from offset {} on have", run.epoch, run.batches, run.start_offset);
    Finding::new(
        Rule::LeaderEpochMismatch,
        log.path(),
        file,
        expected,
        format!("{of_file} at offset {offset}"),
    )
    .offsets(run.start_offset, Some(run.last_offset + 1))
}

fn as_words(text: &[u8]) -> std::str::SplitWhitespace<'_> {
    std::str::from_utf8(text).unwrap_or_default().split_whitespace()
}

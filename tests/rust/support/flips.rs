//! Every one-bit flip and every truncation of a file: compares the crate's results with those before the
//! damage.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cordwood::error::Error;
use cordwood::log::{Log, OnDamage};
use cordwood::types::Io;

use super::naive::{Batch, Record};
use super::reading::{IOS, all, files, folder, locate, options, time, write};
use super::step;

type Located = Option<(i64, i64, u64, u64)>;
type Timed = Option<(i64, i64)>;

/// The results of all queries about a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answers {
    pub batches: Vec<Batch>,
    pub located: Vec<(i64, Located)>,
    pub timed: Vec<(i64, Timed)>,
    pub end: i64,
}

/// Queries an intact log: every offset, every timestamp and its neighbours.
pub fn answers(dir: &Path) -> Answers {
    let log = Log::open(dir, options(Io::Mmap)).unwrap();
    let batches = all(&log, OnDamage::Raise).whole().batches;
    let end = log.log_end_offset().unwrap();
    let located = (0..end).map(|offset| (offset, locate(&log, offset).unwrap())).collect();
    let mut targets: Vec<i64> = batches
        .iter()
        .flat_map(|batch| &batch.records)
        .flat_map(|record| [record.timestamp - 1, record.timestamp, record.timestamp + 1])
        .filter(|target| *target >= 0)
        .collect();
    targets.sort_unstable();
    targets.dedup();
    let timed = targets.into_iter().map(|target| (target, time(&log, target).unwrap())).collect();
    assert!(log.warnings().is_empty(), "{:?}", log.warnings());
    Answers { batches, located, timed, end }
}

/// The change of the results after the file was damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// All results are the same.
    Same,
    /// Each result is the same or an error, and at least one is an error.
    Error,
    /// The log is shorter, with a warning.
    Shorter,
    /// The last batch has offsets that no index can refer to, which is valid, with a warning.
    Far,
    /// A wrong result without an error or a warning.
    Undetected,
}

/// An `Outcome`, the batches that a scan that skips damage lost, and whether it returned false records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    pub outcome: Outcome,
    /// Base offsets of the batches that a scan with skipping lost.
    pub lost: Vec<i64>,
    pub invented: bool,
    /// The violation.
    pub what: String,
}

fn is_prefix(records: &[&Record], of: &[Batch]) -> bool {
    of.iter().flat_map(|batch| &batch.records).take(records.len()).eq(records.iter().copied())
}

/// `number` selects the fifth of the offsets and times that are looked up.
pub fn judge(dir: &Path, io: Io, intact: &Answers, number: usize) -> Judged {
    let mut judged =
        Judged { outcome: Outcome::Same, lost: Vec::new(), invented: false, what: String::new() };
    let log = match Log::open(dir, options(io)) {
        Ok(log) => log,
        Err(error) => {
            judged.outcome = Outcome::Error;
            judged.what = error.to_string();
            return judged;
        }
    };
    let is_shorter = log.log_end_offset().unwrap() < intact.end && !log.warnings().is_empty();
    let mut errors = 0;
    let mut wrong = Vec::new();
    let read = all(&log, OnDamage::Raise);
    let ours: Vec<&Record> = read.records().collect();
    match &read.error {
        Some(error) => {
            is_named(error, intact);
            errors += 1;
            if !is_prefix(&ours, &intact.batches) {
                wrong.push("records before the damage".to_owned());
            }
        }
        None if read.batches == intact.batches => {}
        None if is_shorter && intact.batches.starts_with(&read.batches) => {}
        None => wrong.push(format!("scan: {} batches", read.batches.len())),
    }
    if log.log_end_offset().unwrap() != intact.end && !is_shorter {
        wrong.push(format!("end {}", log.log_end_offset().unwrap()));
    }
    for (offset, expected) in intact.located.iter().skip(number % step(5)).step_by(step(5)) {
        match locate(&log, *offset) {
            Ok(found) if found == *expected => {}
            Ok(found) => wrong.push(format!("locate({offset}): {found:?}")),
            Err(Error::OffsetOutOfRange { .. }) if is_shorter && *offset >= log.log_end_offset().unwrap() => {
            }
            Err(error) => {
                is_named(&error, intact);
                errors += 1;
            }
        }
    }
    for (target, expected) in intact.timed.iter().skip(number % step(5)).step_by(step(5)) {
        match time(&log, *target) {
            Ok(found) if found == *expected => {}
            Ok(None)
                if is_shorter
                    && expected.is_some_and(|(_, offset)| offset >= log.log_end_offset().unwrap()) => {}
            Ok(found) => wrong.push(format!("time({target}): {found:?}")),
            Err(error) => {
                is_named(&error, intact);
                errors += 1;
            }
        }
    }
    let skipped = all(&log, OnDamage::Skip);
    if let Some(error) = &skipped.error {
        wrong.push(format!("skip: {error}"));
    }
    let got: BTreeMap<i64, &Batch> = skipped.batches.iter().map(|batch| (batch.base_offset, batch)).collect();
    judged.lost =
        intact.batches.iter().map(|batch| batch.base_offset).filter(|base| !got.contains_key(base)).collect();
    let known: BTreeMap<i64, &Batch> =
        intact.batches.iter().map(|batch| (batch.base_offset, batch)).collect();
    judged.invented =
        got.iter().any(|(base, batch)| known.get(base).is_none_or(|known| known.records != batch.records));
    if !judged.lost.is_empty() && skipped.gaps.is_empty() && !is_shorter {
        judged.what.push_str("lost without a gap; ");
    }
    judged.outcome = match (wrong.is_empty(), errors, is_shorter) {
        (false, ..) if log.warnings().iter().any(|warning| warning.contains("2^31 - 1 above")) => {
            Outcome::Far
        }
        (false, ..) => Outcome::Undetected,
        (true, _, true) => Outcome::Shorter,
        (true, 0, false) => Outcome::Same,
        (true, ..) => Outcome::Error,
    };
    judged.what.push_str(&wrong.join(", "));
    judged
}

fn is_named(error: &Error, intact: &Answers) {
    // the magic of the last batch: no batch follows that would say that it was another one
    let last = intact.batches.last().map(|batch| batch.base_offset);
    let is_later_format = matches!(error, Error::UnsupportedFormat { place, found, .. }
        if place.offset == last && found.starts_with("magic "));
    assert!(
        is_later_format || matches!(error, Error::Corrupt { .. } | Error::OffsetOutOfRange { .. }),
        "damage is Corrupt, or the log is shorter: {error:?}"
    );
}

/// The damage to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Damage {
    /// Counted from the highest bit of the first byte.
    Flip(usize),
    Truncate(usize),
}

/// All damage to one file of the log in `dir`, on two threads, each with its own copy.
pub fn judge_every(dir: &Path, file: &str, intact: &Answers) -> Vec<(Damage, Judged)> {
    let files = files(dir);
    let bytes = &files[file];
    let damages: Vec<Damage> =
        (0..bytes.len() * 8).map(Damage::Flip).chain((0..bytes.len()).map(Damage::Truncate)).collect();
    let next = AtomicUsize::new(0);
    let judged = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let parent = folder();
                let copy: PathBuf = write(parent.path(), "t-0", &files);
                let path = copy.join(file);
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some(damage) = damages.get(n) else { break };
                    let mut copied = bytes.clone();
                    match damage {
                        Damage::Flip(bit) => copied[bit / 8] ^= 0x80 >> (bit % 8),
                        Damage::Truncate(length) => copied.truncate(*length),
                    }
                    std::fs::write(&path, &copied).unwrap();
                    let found = judge(&copy, IOS[n / 7 % 2], intact, n);
                    judged.lock().unwrap().push((*damage, found));
                }
            });
        }
    });
    let mut judged = judged.into_inner().unwrap();
    judged.sort_by_key(|(damage, _)| *damage);
    judged
}

//! Random histories of producers on one log, compared with a model that keeps every batch: which batches are
//! accepted, which are duplicates, and which are refused. Appends of markers whose writes fail.

use std::ops::Range;

use cordwood::Error;
use cordwood::fs::mem::{Fault, FaultKind, MemoryDisk};
use cordwood::record::NewRecord;
use cordwood::writer::{Appended, FlushMode, LogWriter};

use crate::batches::{ABORT, BatchV2, Rec};
use crate::judge::Tally;
use crate::script::{Before, NOW, Setup};

const SEQUENCES: i64 = 1 << 31;

/// A producer's batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sent {
    producer_id: i64,
    epoch: i16,
    sequence: i64,
    count: i64,
}

impl Sent {
    /// The sequence after it.
    fn next(self) -> i64 {
        (self.sequence + self.count) % SEQUENCES
    }

    fn bytes(self) -> Vec<u8> {
        let records = (0..self.count).map(|n| Rec::at(NOW).value(n.to_string()));
        let batch = BatchV2::new(0).producer(self.producer_id, self.epoch, self.sequence as i32);
        batch.records(records).build().bytes
    }
}

/// What an append of a producer's batch may return.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// The first offset, of this batch or of the one that it duplicates.
    At(i64),
    OutOfOrder {
        expected: i64,
    },
    OldEpoch {
        expected: i16,
    },
    Other(String),
}

impl From<cordwood::Result<Appended>> for Outcome {
    fn from(result: cordwood::Result<Appended>) -> Self {
        match result {
            Ok(appended) => Self::At(appended.first_offset),
            Err(Error::OutOfOrderSequence { expected, .. }) => Self::OutOfOrder { expected: expected.into() },
            Err(Error::InvalidProducerEpoch { expected, .. }) => Self::OldEpoch { expected },
            Err(error) => Self::Other(error.to_string()),
        }
    }
}

/// All batches of producers in the log, with their first offsets.
#[derive(Default)]
struct Model {
    batches: Vec<(i64, Sent)>,
    end: i64,
    /// The log end offset when the producers were last loaded: from a snapshot, which has the last batch of
    /// each only.
    loaded: i64,
}

impl Model {
    /// The batches of a producer in its last epoch, the latest first.
    fn of(&self, producer_id: i64) -> Vec<(i64, Sent)> {
        let own = || self.batches.iter().rev().filter(|(_, sent)| sent.producer_id == producer_id);
        let epoch = own().next().map(|(_, last)| last.epoch);
        own().take_while(|(_, sent)| Some(sent.epoch) == epoch).copied().collect()
    }

    /// The outcomes that are right.
    fn outcomes(&self, sent: Sent) -> Vec<Outcome> {
        let known = self.of(sent.producer_id);
        let Some((_, last)) = known.first() else { return vec![Outcome::At(self.end)] };
        if sent.epoch < last.epoch {
            return vec![Outcome::OldEpoch { expected: last.epoch }];
        }
        let expected = if sent.epoch > last.epoch { 0 } else { last.next() };
        let fresh =
            if sent.sequence == expected { Outcome::At(self.end) } else { Outcome::OutOfOrder { expected } };
        let mut remembered = (0..).zip(&known).take(5);
        match remembered.find(|(_, (_, old))| *old == sent) {
            Some((0, (offset, _))) => vec![Outcome::At(*offset)],
            Some((_, (offset, _))) if *offset >= self.loaded => vec![Outcome::At(*offset)],
            Some((_, (offset, _))) => vec![Outcome::At(*offset), fresh],
            None => vec![fresh],
        }
    }

    fn truncate(&mut self, end: i64) {
        self.batches.retain(|(offset, sent)| offset + sent.count <= end);
        self.end = end;
        self.loaded = end;
    }
}

/// Random numbers, from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    /// A batch that follows, one that was sent before, or one that is wrong in most cases.
    fn batch(&mut self, model: &Model) -> Sent {
        let producer_id = [3, 3, 3, 19, 1 << 40][self.below(5)];
        let count = 1 + self.below(3) as i64;
        let known = model.of(producer_id);
        let Some((_, last)) = known.first() else {
            let sequence = [0, 7, SEQUENCES - 4][self.below(3)];
            return Sent { producer_id, epoch: 0, sequence, count };
        };
        let next = Sent { producer_id, epoch: last.epoch, sequence: last.next(), count };
        match self.below(10) {
            0..=4 => next,
            5..=7 => known[self.below(known.len().min(7))].1,
            8 => {
                Sent { sequence: (next.sequence + [1, SEQUENCES - 1, 2][self.below(3)]) % SEQUENCES, ..next }
            }
            _ => {
                let epoch = (last.epoch + [1, 1, -1][self.below(3)]).max(0);
                Sent { epoch, sequence: [0, next.sequence][self.below(2)], ..next }
            }
        }
    }
}

/// Runs a history for each seed.
pub fn run(seeds: Range<u64>, steps: usize) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let setup = Setup { flush: FlushMode::None, sector: 16, before: Before::Nothing };
        let (disk, options) = (MemoryDisk::new(16), setup.options());
        let open = || LogWriter::open_in(disk.directory("/orders-0"), &options);
        let (mut writer, mut model) = (open().unwrap(), Model::default());
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for step in 0..steps {
            let place = || format!("history {seed}, step {step}");
            match dice.below(100) {
                0..=89 => {
                    let sent = dice.batch(&model);
                    let (before, outcomes) = (model.end, model.outcomes(sent));
                    let found = Outcome::from(writer.append_batches(&sent.bytes(), false));
                    tally.judged += 1;
                    if !outcomes.contains(&found) {
                        tally.note("misread", &place, &format!("{sent:?}: {found:?}, not {outcomes:?}"));
                        break;
                    }
                    if found == Outcome::At(before) {
                        model.batches.push((before, sent));
                        model.end += sent.count;
                    }
                }
                90 => {
                    let plain = NewRecord { timestamp: NOW, ..NewRecord::default() };
                    model.end = writer.append(&plain).unwrap().last_offset + 1;
                }
                91..=93 => writer.roll().unwrap(),
                94..=96 => {
                    // at a batch, so that the next opening finds this end
                    let ends = model.batches.iter().rev().map(|(offset, sent)| offset + sent.count);
                    if let Some(end) = ends.take(4).nth(dice.below(4)).filter(|end| *end < model.end) {
                        writer.truncate_to(end).unwrap();
                        model.truncate(end);
                    }
                }
                other => {
                    if other == 97 {
                        writer.close().unwrap();
                    }
                    drop(writer);
                    writer = match open() {
                        Ok(writer) => writer,
                        Err(error) => {
                            tally.note("unopened", &place, &error.to_string());
                            break;
                        }
                    };
                    model.loaded = model.end;
                }
            }
            if writer.log_end_offset() != model.end {
                let what = format!("the log ends at {}, not at {}", writer.log_end_offset(), model.end);
                tally.note("lost", &place, &what);
                break;
            }
        }
    }
    tally
}

/// The last offset of each entry of the transaction index.
fn aborted(disk: &MemoryDisk) -> Vec<i64> {
    let files = disk.shown().files();
    let index = files.iter().find(|(name, _)| name == "00000000000000000000.txnindex");
    let entries = index.map(|(_, bytes)| &bytes[..]).unwrap_or_default().chunks_exact(34);
    entries.map(|entry| i64::from_be_bytes(entry[18..26].try_into().unwrap())).collect()
}

/// Every operation of an append that aborts a transaction fails, and the append is repeated.
pub fn failed_markers() -> Tally {
    let mut tally = Tally::default();
    let setup = Setup { flush: FlushMode::None, sector: 16, before: Before::Nothing };
    for kind in [FaultKind::InputOutput, FaultKind::NoSpace, FaultKind::ShortWrite] {
        for at in 0.. {
            let place = || format!("{kind:?} at {at}");
            let disk = MemoryDisk::new(16);
            let mut writer = LogWriter::open_in(disk.directory("/orders-0"), &setup.options()).unwrap();
            let batch = BatchV2::new(0).transaction(7, 0, 0).records([Rec::at(NOW)]);
            writer.append_batches(&batch.build().bytes, false).unwrap();
            let marker = BatchV2::marker(1, ABORT, 7, 0, NOW).build().bytes;
            disk.set_fault(Some(Fault { at, kind, forever: false }));
            let appended = writer.append_batches(&marker, true);
            let is_over = disk.fault_is_over();
            disk.set_fault(None);
            if !is_over {
                break;
            }
            tally.judged += 1;
            if appended.is_err() {
                if !aborted(&disk).is_empty() {
                    tally.note("invented", &place, "an entry of a marker that is not in the log");
                }
                match writer.append_batches(&marker, true) {
                    Ok(_) => {}
                    Err(Error::Poisoned { .. }) => continue,
                    Err(error) => tally.note("lost", &place, &format!("the repeated append: {error}")),
                }
            }
            if aborted(&disk) != [1] {
                tally.note("lost", &place, &format!("the entries are {:?}", aborted(&disk)));
            }
        }
    }
    tally
}

#[test]
fn producers_are_answered_as_by_a_model_that_keeps_every_batch() {
    let tally = run(0..24, 200);
    tally.assert_none();
    assert!(tally.judged > 2_000, "{}", tally.counts());
}

#[test]
fn a_marker_that_could_not_be_written_leaves_no_entry_in_the_transaction_index() {
    let tally = failed_markers();
    tally.assert_none();
    assert!(tally.judged > 5, "{}", tally.counts());
}

//! Batches of idempotent producers, compared with `UnifiedLog.appendAsLeader` on the same batches.
//!
//! The batches of [`PRODUCERS`] producers are appended in turn, so that each is checked against the states of
//! its producer: its epoch, its sequence, and the last five batches. Their sequences, and so their checksums,
//! are set before they are appended again, which is not timed.

use std::fs;
use std::path::Path;

use cordwood::Error;
use cordwood::record::BatchBuilder;
use cordwood::state::producers::ProducerSnapshot;
use cordwood::writer::{FlushMode, LogWriter};
use cordwood_benches::batches::crc32c;

use super::kafka::{Kafka, TurnResult};
use super::random::Random;
use super::turns::{Clock, Pair, Spent};
use super::{
    Arguments, INTERVAL, KIB, WARM_UPS, assert_same_files, file, finish, fresh, now, options, record,
};

const PRODUCERS: usize = 16;
const FIRST_PRODUCER: usize = 4000;
const EPOCH: i16 = 3;

/// Batches of the same size, as many as fit into a core's private cache, of the producers in turn.
struct Batches {
    raw: Vec<Vec<u8>>,
    records: usize,
}

impl Batches {
    fn new(size: usize, records: usize) -> Self {
        let (now, mut random) = (now(), Random(size as u64));
        let mut builder = BatchBuilder::new();
        let raw = (0..256 * KIB / size).map(|i| {
            for number in 0..records {
                let timestamp = now + (i * records + number) as i64;
                // less than its part of the batch, with the other fields
                let length = size / records - if records == 1 { 100 } else { 40 };
                let mut value: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
                // the last record fills the batch; length fields may become longer with it
                while number + 1 == records && builder.size_with(&record(timestamp, &value)) < size {
                    value.push(random.below(256) as u8);
                }
                builder.append(&record(timestamp, &value)).unwrap();
            }
            let mut raw = finish(&mut builder);
            let producer_id = (FIRST_PRODUCER + i % PRODUCERS) as i64;
            raw[43..51].copy_from_slice(&producer_id.to_be_bytes());
            raw[51..53].copy_from_slice(&EPOCH.to_be_bytes());
            raw
        });
        let mut batches = Self { raw: raw.collect(), records };
        batches.set_sequences(0);
        assert!(batches.raw.iter().all(|raw| raw.len() == size), "{size}");
        batches
    }

    /// The sequences of the batches that are appended from batch `start` on.
    fn set_sequences(&mut self, start: usize) {
        for (i, raw) in self.raw.iter_mut().enumerate() {
            set_sequence(raw, (start + i) / PRODUCERS * self.records);
        }
    }
}

/// Sets the first sequence of a batch, and its checksum.
pub(super) fn set_sequence(raw: &mut [u8], sequence: usize) {
    raw[53..57].copy_from_slice(&i32::try_from(sequence).unwrap().to_be_bytes());
    let crc = crc32c(&raw[21..]);
    raw[17..21].copy_from_slice(&crc.to_be_bytes());
}

/// `count` batches into an empty log. With `keep`, duplicates and gaps are tried afterwards, and the log is
/// closed.
fn ours(dir: &Path, count: usize, keep: bool, batches: &mut Batches) -> TurnResult {
    let mut writer = LogWriter::open(dir, &options(FlushMode::None, INTERVAL)).unwrap();
    let appender = writer.appender();
    let mut spent = Spent::ZERO;
    for start in (0..count).step_by(batches.raw.len()) {
        batches.set_sequences(start);
        spent += Spent::on(|| {
            for raw in &batches.raw {
                appender.append_batches(raw, false).unwrap();
            }
        })
        .0;
    }
    let log_end_offset = writer.log_end_offset();
    let size = file(dir, "log").metadata().unwrap().len();
    if keep {
        let last = batches.raw.last_mut().unwrap();
        let answer = appender.append_batches(last, false).unwrap();
        assert!(answer.is_duplicate && answer.last_offset + 1 == log_end_offset, "{answer:?}");
        set_sequence(last, count);
        let refused = appender.append_batches(last, false);
        assert!(matches!(refused, Err(Error::OutOfOrderSequence { .. })), "{refused:?}");
        writer.close().unwrap();
    }
    TurnResult { spent, log_end_offset, size }
}

/// The names and the bytes of the snapshots in a directory, with the producers by ascending id: Kafka writes
/// them in the order of a hash map.
pub(super) fn snapshots(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = entries.filter(|name| name.ends_with(".snapshot"));
    let in_order = |bytes: &[u8]| {
        let mut snapshot = ProducerSnapshot::decode(bytes).unwrap();
        snapshot.entries.sort_unstable_by_key(|entry| entry.producer_id);
        snapshot.encode()
    };
    let read = |name: &String| in_order(&fs::read(dir.join(name)).unwrap());
    let mut found: Vec<_> = names.map(|name| (name.clone(), read(&name))).collect();
    found.sort();
    found
}

pub(super) fn appends(arguments: &Arguments, kafka: &mut Kafka, pairs: &mut Vec<Pair>) {
    for (size, records) in [(KIB, 1), (16 * KIB, 1), (16 * KIB, 100)] {
        let several = if records == 1 { String::new() } else { format!("/{records}-records") };
        let name = format!("append/idempotent/{}KiB{several}", size / KIB);
        if !arguments.wants(&name) {
            continue;
        }
        let mut batches = Batches::new(size, records);
        let path = arguments.scratch.join("batches");
        fs::create_dir_all(&arguments.scratch).unwrap();
        fs::write(&path, batches.raw.concat()).unwrap();
        let count = 128 * KIB * KIB / size;
        let elements = (count as u64, count as u64);
        let (peer, floor) = ("UnifiedLog.appendAsLeader", Some(1.4));
        let mut pair = Pair { name, peer, floor, clock: Clock::Cpu, elements, turns: vec![] };
        for turn in 0..WARM_UPS + arguments.rounds {
            let keep = turn == 0;
            let dirs = ["cordwood", "kafka"].map(|side| fresh(&arguments.scratch, side));
            let mut play_ours = || ours(&dirs[0], count, keep, &mut batches);
            let first = (turn % 2 == 0).then(&mut play_ours);
            let theirs = kafka.turn(&[
                "idempotent",
                dirs[1].to_str().unwrap(),
                path.to_str().unwrap(),
                &count.to_string(),
                &INTERVAL.to_string(),
                &keep.to_string(),
                &PRODUCERS.to_string(),
            ]);
            let ours = first.unwrap_or_else(play_ours);
            for took in [ours, theirs] {
                let expected = ((count * records) as i64, (count * size) as u64);
                assert_eq!((took.log_end_offset, took.size), expected, "{}", pair.name);
            }
            if keep {
                assert_same_files([&dirs[0], &dirs[1]], &pair.name);
                let [ours, theirs] = dirs.each_ref().map(|dir| snapshots(dir));
                assert!(!ours.is_empty() && ours == theirs, "{}: the snapshots differ", pair.name);
            }
            if turn >= WARM_UPS {
                pair.turns.push((ours.spent, theirs.spent));
            }
        }
        println!("{}", pair.line());
        pairs.push(pair);
    }
}

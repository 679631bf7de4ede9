//! An opening that loads many producers from a snapshot, compared with `UnifiedLog.create` on the same
//! directory.

use std::fs;
use std::path::Path;

use cordwood::record::BatchBuilder;
use cordwood::writer::{FlushMode, LogWriter};

use super::idempotent::{set_sequence, snapshots};
use super::kafka::Kafka;
use super::turns::{Clock, Pair, Spent};
use super::{Arguments, INTERVAL, finish, fresh, now, options, record};

const PRODUCERS: usize = 100_000;

/// The first batch of a producer, of one record.
fn batch(producer_id: usize) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder.append(&record(now(), b"the value of a record")).unwrap();
    let mut raw = finish(&mut builder);
    raw[43..51].copy_from_slice(&(producer_id as i64).to_be_bytes());
    raw[51..53].copy_from_slice(&0_i16.to_be_bytes());
    set_sequence(&mut raw, 0);
    raw
}

/// A log of a batch of each producer, closed in order, so that the snapshot at its end has all of them.
fn write(dir: &Path) {
    let mut writer = LogWriter::open(dir, &options(FlushMode::None, INTERVAL)).unwrap();
    for producer_id in 0..PRODUCERS {
        writer.append_batches(&batch(producer_id), false).unwrap();
    }
    writer.close().unwrap();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// After each opening a batch of a new producer is appended and the log closed, so that a snapshot of all
/// producers is written.
pub(super) fn with_producers(arguments: &Arguments, kafka: &mut Kafka, pairs: &mut Vec<Pair>) {
    let name = format!("open/{PRODUCERS}-producers");
    if !arguments.wants(&name) {
        return;
    }
    let written = fresh(&arguments.scratch, "written");
    write(&written);
    let next = arguments.scratch.join("batches");
    let raw = batch(PRODUCERS);
    fs::write(&next, &raw).unwrap();
    let elements = (PRODUCERS as u64, PRODUCERS as u64);
    let peer = "UnifiedLog.create";
    let mut pair = Pair { name, peer, floor: None, clock: Clock::Wall, elements, turns: vec![] };
    for turn in 0..=arguments.rounds {
        let dirs = ["cordwood", "kafka"].map(|side| fresh(&arguments.scratch, side));
        for dir in &dirs {
            copy(&written, dir);
        }
        let play_ours = || {
            let (spent, mut writer) =
                Spent::on(|| LogWriter::open(&dirs[0], &options(FlushMode::None, INTERVAL)).unwrap());
            writer.append_batches(&raw, false).unwrap();
            let end = writer.log_end_offset();
            writer.close().unwrap();
            (spent, end)
        };
        let first = (turn % 2 == 0).then(play_ours);
        let theirs = kafka.ask(&["producers", dirs[1].to_str().unwrap(), next.to_str().unwrap()]);
        let (ours, end) = first.unwrap_or_else(play_ours);
        let expected = (PRODUCERS as i64, PRODUCERS as i64 + 1);
        assert_eq!((theirs.number("producers"), theirs.number("end")), expected);
        assert_eq!(end, expected.1);
        let [mine, kafkas] = dirs.each_ref().map(|dir| snapshots(dir).pop().unwrap());
        assert!(mine.1.len() > PRODUCERS && mine == kafkas, "{}: the snapshots differ", pair.name);
        if turn > 0 {
            pair.turns.push((ours, theirs.spent()));
        }
    }
    println!("{}", pair.line());
    pairs.push(pair);
}

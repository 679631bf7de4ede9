//! The scan of a recovery: every batch is verified and both indexes are written, without a sync.

use std::fs;
use std::path::{Path, PathBuf};

use cordwood::Log;
use cordwood::bench::derived_indexes;
use cordwood::config::LogConfig;
use cordwood::types::Io;

use super::contest::{Contest, Row};
use super::kafka::Kafka;
use super::log_targets::{LogTargets, opened};
use super::turns::{Clock, Spent};

/// Kafka's default `index.interval.bytes`.
const INTERVAL: u32 = 4096;

/// How the scan reads, and the floors with batches of 16 KiB, 1 KiB and with lz4.
const IOS: [(Io, &str, [Option<f64>; 3]); 2] = [
    (Io::Mmap, "mmap", [Some(7.0), Some(11.0), Some(8.0)]),
    (Io::Pread, "pread", [Some(2.0), Some(6.0), None]),
];

pub fn run(contest: &mut Contest) {
    for (place, (batch_kib, codec)) in [(16, "none"), (1, "none"), (16, "lz4")].into_iter().enumerate() {
        let rows = IOS
            .map(|(io, name, floors)| (format!("recovery/{batch_kib}KiB/{codec}/{name}"), io, floors[place]));
        if !rows.iter().any(|(name, ..)| contest.wants(name)) {
            continue;
        }
        let source =
            if codec == "none" { contest.log(batch_kib) } else { contest.scanned_log(batch_kib, codec) };
        let elements = LogTargets::of(&source).batches();
        // recovery replaces the indexes
        let dirs = ["cordwood", "kafka"].map(|side| linked(&source, &contest.data.scratch().join(side)));
        for (name, io, floor) in rows {
            if !contest.wants(&name) {
                continue;
            }
            // stays open, so that a mapping is made once; the scan remembers nothing
            let log = opened(&dirs[0], io);
            compare(contest, &log, &dirs);
            let row = Row { name, peer: "LogSegment.recover", floor, clock: Clock::Cpu, elements };
            let play_ours = |passes| ours(&log, passes);
            contest.race_turns(row, play_ours, |kafka, passes| theirs(kafka, &dirs[1], passes));
        }
    }
}

/// Compares the end offsets and the bytes of the indexes.
fn compare(contest: &mut Contest, log: &Log, dirs: &[PathBuf; 2]) {
    let ends = [ours(log, 1).1, theirs(&mut contest.kafka, &dirs[1], 1).1];
    assert_eq!(ends[0], ends[1]);
    for extension in ["index", "timeindex"] {
        let [ours, theirs] = [&dirs[0], &dirs[1]].map(|dir| fs::read(file(dir, extension)).unwrap());
        assert!(ours.len() > 8 && ours == theirs, "the .{extension} files differ");
    }
}

/// A new directory with the same `.log`.
fn linked(source: &Path, folder: &Path) -> PathBuf {
    let dir = folder.join("orders-0");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    fs::hard_link(file(source, "log"), file(&dir, "log")).unwrap();
    dir
}

fn file(dir: &Path, extension: &str) -> PathBuf {
    dir.join(format!("{:020}.{extension}", 0))
}

/// Returns the sum of the end offsets.
fn ours(log: &Log, passes: usize) -> (Spent, i64) {
    let config = LogConfig { index_interval_bytes: INTERVAL, ..LogConfig::default() };
    Spent::on(|| {
        (0..passes).fold(0, |sum, _| {
            let (end, indexes) = derived_indexes(log, &config).unwrap();
            for (extension, bytes) in ["index", "timeindex"].into_iter().zip(indexes) {
                fs::write(file(log.path(), extension), bytes).unwrap();
            }
            sum + end
        })
    })
}

/// As [`ours`].
fn theirs(kafka: &mut Kafka, dir: &Path, passes: usize) -> (Spent, i64) {
    let (mut spent, mut sum) = (Spent::ZERO, 0);
    for _ in 0..passes {
        let answer = kafka.ask(&["recover", dir.to_str().unwrap(), &INTERVAL.to_string()]);
        assert_eq!(answer.number("cut"), 0);
        spent += answer.spent();
        sum += answer.number("end");
    }
    (spent, sum)
}

//! Rebuilding the indexes of a log of 1 GiB, compared with `LogSegment.recover` of its four segments: `make
//! bench-inspect`.
//!
//! Kafka writes the indexes, and `rebuild` compares those that it derives with them, on two threads, so every
//! turn checks both sides. Exit code 1: an index differs, or with `--strict` a floor was missed.

use std::path::Path;

use cordwood::inspect::rebuild::{FileState, RebuildOptions, rebuild};
use cordwood_benches::{self as support, kafka, turns};
use kafka::Kafka;
use support::batches::Codec;
use support::written::{Shape, Written};
use turns::{Clock, Pair, Spent};

const ROUNDS: usize = 9;
/// Untimed turns, in which the JVM compiles hot code.
const WARM_UPS: usize = 3;
/// Kafka's default `index.interval.bytes`.
const INTERVAL: &str = "4096";

fn main() {
    let is_strict = std::env::args().any(|word| word == "--strict");
    let mut kafka = Kafka::start();
    println!("compared with Kafka {}\n{}", kafka.version, Pair::HEAD);
    let mut is_missed = false;
    for (name, batch_bytes, floor) in
        [("rebuild/1KiB", 1 << 10, None), ("rebuild/16KiB", 16 << 10, Some(7.0))]
    {
        let shape = Shape { batch_bytes, codec: Codec::None, log_bytes: 1 << 30, segment_bytes: 256 << 20 };
        // on the repository's disk; a temporary directory may be in memory
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let written = Written::new_in(folder, shape);
        let mut bases: Vec<_> = written.batches.iter().map(|batch| batch.segment).collect();
        bases.dedup();
        let count = written.batches.len() as u64;
        let mut pair = Pair {
            name: name.to_owned(),
            peer: "LogSegment.recover",
            floor,
            clock: Clock::Wall,
            elements: (count, count),
            turns: vec![],
        };
        for turn in 0..ROUNDS + WARM_UPS {
            let mut theirs = Spent::ZERO;
            let mut end = 0;
            for base in &bases {
                let answer =
                    kafka.turn(&["recover", written.dir.to_str().unwrap(), INTERVAL, &base.to_string()]);
                theirs += answer.spent;
                end = answer.log_end_offset;
            }
            let ours = rebuilt(&written.dir, end);
            if turn >= WARM_UPS {
                pair.turns.push((ours, theirs));
            }
        }
        println!("{}", pair.line());
        is_missed |= pair.is_missed();
    }
    if is_strict && is_missed {
        std::process::exit(1);
    }
}

/// Derives and compares all indexes.
///
/// # Panics
/// If one differs.
fn rebuilt(dir: &Path, end: i64) -> Spent {
    let config = Some(cordwood::config::LogConfig::default());
    let options = RebuildOptions { config, threads: 2, ..RebuildOptions::default() };
    let (spent, report) = Spent::of_process(|| rebuild(dir, &options).unwrap());
    assert_eq!(report.log_end_offset, end);
    let is_index = |file: &Path| file.extension().is_some_and(|end| end == "index" || end == "timeindex");
    let indexes: Vec<_> = report.files.iter().filter(|file| is_index(&file.file)).collect();
    assert!(indexes.len() >= 8, "{indexes:?}");
    assert!(indexes.iter().all(|file| file.state == FileState::Unchanged), "{indexes:?}");
    spent
}

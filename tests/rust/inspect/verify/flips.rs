//! Every one-bit flip of a segment, found by the verification of its neighbourhood: a flip changes one batch,
//! and the walk compares it with those next to it. What no rule finds is counted by field.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use cordwood::inspect::verify::{PartCheck, Rule, Severity};
use cordwood::types::Io;
use cordwood::{Log, LogOptions};

use super::{options, verified};
use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::reading::{files, folder, write};

/// The parts of a v2 batch, by the bytes from its start.
fn field(byte: usize) -> &'static str {
    match byte {
        0..8 => "base_offset",
        8..12 => "length",
        12..16 => "leader_epoch",
        16 => "magic",
        17..21 => "crc",
        21..61 => "header",
        _ => "records",
    }
}

const SEGMENT_BYTES: usize = 1 << 20;

/// Batches of 1 to 40 records without gaps, in some leader epochs, up to a size.
fn batches(bytes: usize) -> Vec<Built> {
    let mut built: Vec<Built> = Vec::new();
    let (mut size, mut seed) = (0, 7_u64);
    while size < bytes {
        let base = built.last().map_or(0, Built::next_offset);
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let count = 1 + (seed >> 33) as i64 % 40;
        let epoch = 5 + 2 * (base / 1500) as i32;
        let records = (base..base + count).map(|offset| {
            Rec::at(1_700_000_000_000 + offset).key(format!("key {offset}")).value(vec![
                b'v';
                80 + offset as usize
                    % 50
            ])
        });
        let batch = BatchV2::new(base).leader_epoch(epoch).records(records).build();
        size += batch.bytes.len();
        built.push(batch);
    }
    built
}

/// A log of two segments, of which the first has about so many bytes; and the state of each of its batches.
fn log(parent: &Path, bytes: usize, with_epochs: bool) -> (std::path::PathBuf, Vec<Around>) {
    let all = batches(bytes + 4000);
    let mut size = 0;
    let first: Vec<_> = all
        .iter()
        .take_while(|batch| {
            size += batch.bytes.len();
            size <= bytes
        })
        .cloned()
        .collect();
    let rest = all[first.len()..].to_vec();
    let mut around = Vec::new();
    let mut epochs: Vec<(i32, i64)> = Vec::new();
    let mut position = 0;
    for batch in &first {
        let epoch = i32::from_be_bytes(batch.bytes[12..16].try_into().unwrap());
        around.push(Around { position, size: batch.bytes.len(), last_offset: batch.last_offset, epoch });
        position += batch.bytes.len();
    }
    for batch in &all {
        let epoch = i32::from_be_bytes(batch.bytes[12..16].try_into().unwrap());
        if epochs.last().is_none_or(|(last, _)| *last != epoch) {
            epochs.push((epoch, batch.base_offset));
        }
    }
    let next = rest[0].base_offset;
    let dir = PartitionBuilder::new(Indexing::every(4096))
        .segment(0, first)
        .segment(next, rest)
        .write(parent, "flips-0");
    if with_epochs {
        let lines: Vec<_> = epochs.iter().map(|(epoch, start)| format!("{epoch} {start}\n")).collect();
        let lines = lines.concat();
        std::fs::write(dir.join("leader-epoch-checkpoint"), format!("0\n{}\n{lines}", epochs.len())).unwrap();
    }
    (dir, around)
}

#[derive(Debug, Clone, Copy)]
struct Around {
    position: usize,
    size: usize,
    last_offset: i64,
    epoch: i32,
}

/// Flips each of these bits of the first segment, one after the other, and counts those that are not found,
/// by field. Each finding must be about the batch of the bit, or the next one.
fn undetected(
    with_epochs: bool,
    bytes: usize,
    threads: usize,
    chosen: impl Fn(usize, usize) -> bool + Sync,
) -> (u64, BTreeMap<&'static str, u64>) {
    let found = Mutex::new(BTreeMap::new());
    let (next, flips) = (AtomicUsize::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let parent = folder();
                let (dir, around) = log(parent.path(), bytes, with_epochs);
                let log = Log::open(&dir, LogOptions { io: Io::Mmap, ..LogOptions::default() }).unwrap();
                let path = dir.join(file_name(0, "log"));
                let original = std::fs::read(&path).unwrap();
                let file = File::options().write(true).open(&path).unwrap();
                let part = PartCheck::new(&log, 0).unwrap();
                let mut missed: BTreeMap<&'static str, u64> = BTreeMap::new();
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some(batch) = around.get(n) else { break };
                    let before = n.saturating_sub(1);
                    let (last_offset, epoch) =
                        before.checked_sub(1).map_or((-1, -1), |b| (around[b].last_offset, around[b].epoch));
                    let start = around[before].position as u64;
                    let until = around.get(n + 2).map_or(original.len(), |after| after.position) as u64;
                    let first = || part.first(start, last_offset, epoch, until).unwrap();
                    assert!(first().is_none(), "batch {n} is intact: {}", first().unwrap());
                    for byte in 0..batch.size {
                        for bit in 0..8 {
                            if !chosen(n, byte * 8 + bit) {
                                continue;
                            }
                            let at = batch.position + byte;
                            file.write_all_at(&[original[at] ^ 1 << bit], at as u64).unwrap();
                            flips.fetch_add(1, Ordering::Relaxed);
                            match first() {
                                None => *missed.entry(field(byte)).or_default() += 1,
                                Some(finding) => {
                                    // a batch that takes the epoch of its neighbour agrees with it against
                                    // the file of the epochs
                                    let is_of_epochs =
                                        field(byte) == "leader_epoch" && finding.position.is_none();
                                    let start = finding.position.unwrap_or(u64::MAX);
                                    let range = start..finding.end_position.unwrap_or(u64::MAX);
                                    let is_next = range.start == (batch.position + batch.size) as u64;
                                    let is_near = range.contains(&(at as u64)) || is_next || is_of_epochs;
                                    // as Kafka, a reader accepts any epoch
                                    let is_odd = (byte, bit) == EPOCH_SIGN && finding.rule == Rule::OddHeader;
                                    assert!(
                                        is_near && (finding.severity == Severity::Error || is_odd),
                                        "batch {n}, byte {byte}, bit {bit}: {finding}"
                                    );
                                }
                            }
                            file.write_all_at(&original[at..=at], at as u64).unwrap();
                        }
                    }
                }
                let mut found = found.lock().unwrap();
                for (field, count) in missed {
                    *found.entry(field).or_default() += count;
                }
            });
        }
    });
    (flips.into_inner(), found.into_inner().unwrap())
}

/// The byte and the bit of the sign of a leader epoch in a header.
const EPOCH_SIGN: (usize, usize) = (12, 7);

/// All bits of the headers of every tenth batch, and every 300th of the records.
fn sample(n: usize, bit: usize) -> bool {
    if bit < 61 * 8 { n % 10 < 2 } else { (bit + 37 * n).is_multiple_of(300) }
}

#[test]
fn sampled_flips_of_a_segment_are_found_at_their_batch() {
    let (flips, missed) = undetected(true, SEGMENT_BYTES, 1, sample);
    assert!(flips > 40_000, "{flips}");
    assert_eq!(missed, BTreeMap::new());
}

#[test]
fn without_leader_epoch_checkpoint_only_epochs_between_those_of_the_neighbours_are_not_found() {
    let parent = folder();
    let (_, around) = log(parent.path(), SEGMENT_BYTES, false);
    let last = around.len() - 1;
    let is_chosen = move |n: usize, bit: usize| (12 * 8..16 * 8).contains(&bit) && (1..last).contains(&n);
    let (flips, missed) = undetected(false, SEGMENT_BYTES, 1, is_chosen);
    println!("{flips} {missed:?}");
    // an epoch may rise by a flip in the last batch before the next epoch
    let missed = missed.get("leader_epoch").copied().unwrap_or(0);
    assert!(missed <= flips / 200, "{missed} of {flips}");
}

/// The first batch of a log may be of another cluster: that is a warning. The next segment shows that the
/// last batch of a segment is wrong.
#[test]
fn without_leader_epoch_checkpoint_an_epoch_that_falls_at_an_end_of_a_segment_is_found() {
    let parent = folder();
    let (dir, around) = log(parent.path(), 40_000, false);
    let path = dir.join(file_name(0, "log"));
    let original = std::fs::read(&path).unwrap();
    let (first, last) = (&around[0], &around[around.len() - 1]);
    assert_eq!(first.epoch, last.epoch);
    assert!(around.len() > 3);
    for bit in 0..31 {
        let epoch = first.epoch ^ (1 << bit);
        let found_with = |batch: &Around| {
            let mut damaged = original.clone();
            damaged[batch.position + 12..batch.position + 16].copy_from_slice(&epoch.to_be_bytes());
            std::fs::write(&path, damaged).unwrap();
            verified(&dir, &options(Io::Pread))
        };
        let found = found_with(first);
        let is_noted = found.findings.iter().any(|found| found.rule == Rule::LeaderEpochsFall);
        assert_eq!((is_noted, found.is_intact()), (epoch > first.epoch, true), "{:?}", found.findings);
        assert!(!found_with(last).is_intact(), "epoch {epoch}");
    }
}

/// 8,388,608 flips: `make verify-flips`.
#[test]
#[ignore = "minutes in a release build"]
fn every_flip_of_a_segment_of_1_mib_is_found_at_its_batch() {
    let (flips, missed) = undetected(true, SEGMENT_BYTES, 2, |_, _| true);
    println!("{flips} flips, not found: {missed:?}");
    assert!(flips > 8_300_000, "{flips}");
    assert_eq!(missed, BTreeMap::new());
}

/// A flip is found by the whole verification as by that of the neighbourhood, whatever is in the log.
#[test]
fn flips_of_whole_logs_are_found() {
    let parent = folder();
    let (dir, around) = log(parent.path(), 6000, true);
    let originals = files(&dir);
    let name = file_name(0, "log");
    for (number, batch) in around.iter().enumerate() {
        for bit in (0..61 * 8).chain((61 * 8..batch.size * 8).step_by(211)) {
            let mut damaged = originals[&name].clone();
            damaged[batch.position + bit / 8] ^= 1 << (bit % 8);
            std::fs::write(dir.join(&name), &damaged).unwrap();
            let found = verified(&dir, &options(Io::Pread));
            let is_odd = (bit / 8, bit % 8) == EPOCH_SIGN
                && found.findings.iter().any(|found| found.rule == Rule::OddHeader);
            assert!(!found.is_intact() || is_odd, "batch {number}, bit {bit}");
        }
    }
    std::fs::write(dir.join(&name), &originals[&name]).unwrap();
    assert_eq!(verified(&dir, &options(Io::Pread)).findings, []);
}

/// Flips of the small files: each is found, or changes no answer. What is not found is counted.
#[test]
fn flips_of_indexes_are_found_or_harmless() {
    let parent = folder();
    let (dir, _) = log(parent.path(), 60_000, true);
    let originals = files(&dir);
    let mut missed: BTreeMap<String, u64> = BTreeMap::new();
    for name in [file_name(0, "index"), file_name(0, "timeindex"), "leader-epoch-checkpoint".to_owned()] {
        let original = &originals[&name];
        for bit in 0..original.len() * 8 {
            let mut damaged = original.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(dir.join(&name), &damaged).unwrap();
            if verified(&dir, &options(Io::Pread)).findings.is_empty() {
                *missed.entry(name.clone()).or_default() += 1;
                assert_unchanged_answers(&dir, &originals, parent.path());
            }
        }
        std::fs::write(dir.join(&name), original).unwrap();
    }
    // An offset that becomes the last one of a later batch, as of an append of several; an offset of the same
    // batch in a time index; the start of an epoch that moves within missing offsets before its first
    // batch.
    let counts: Vec<_> = missed.iter().map(|(name, count)| (&name[..], *count)).collect();
    let expected = [
        (&file_name(0, "index")[..], 1),
        (&file_name(0, "timeindex")[..], 22),
        ("leader-epoch-checkpoint", 5),
    ];
    assert_eq!(counts, expected);
}

/// The same records are found by every offset and time, with and without the damage.
fn assert_unchanged_answers(dir: &Path, originals: &BTreeMap<String, Vec<u8>>, parent: &Path) {
    let intact = parent.join("intact-0");
    if !intact.exists() {
        write(parent, "intact-0", originals);
    }
    let open = |dir: &Path| Log::open(dir, LogOptions::default()).unwrap();
    let (log, intact) = (open(dir), open(&intact));
    assert_eq!(log.log_end_offset().unwrap(), intact.log_end_offset().unwrap());
    for offset in (0..intact.log_end_offset().unwrap()).step_by(3) {
        assert_eq!(log.locate(offset).unwrap(), intact.locate(offset).unwrap());
        let time = 1_700_000_000_000 + offset;
        assert_eq!(log.offset_for_time(time).unwrap(), intact.offset_for_time(time).unwrap());
    }
}

/// Gaps, as compaction leaves them: a base offset may move within its gap, and nothing else may change
/// unnoticed.
#[test]
fn in_a_log_with_gaps_only_base_offsets_within_a_gap_are_not_found() {
    let parent = folder();
    let spread: Vec<_> = (0..40)
        .map(|n| {
            BatchV2::new(n * 37)
                .records((0..3).map(|k| Rec::at(1_700_000_000_000 + n * 3 + k).value("value")))
                .build()
        })
        .collect();
    let dir = PartitionBuilder::new(Indexing::every(100_000))
        .segment(0, spread.clone())
        .segment(40 * 37, [BatchV2::new(40 * 37).records([Rec::at(1)]).build()])
        .write(parent.path(), "gaps-0");
    std::fs::write(dir.join("leader-epoch-checkpoint"), "0\n1\n0 0\n").unwrap();
    let name = file_name(0, "log");
    let original = std::fs::read(dir.join(&name)).unwrap();
    let (mut flips, mut missed) = (0, BTreeMap::<&str, u64>::new());
    let mut position = 0;
    for batch in &spread {
        for bit in 0..17 * 8 {
            let mut damaged = original.clone();
            damaged[position + bit / 8] ^= 1 << (bit % 8);
            std::fs::write(dir.join(&name), &damaged).unwrap();
            flips += u64::from(bit < 64);
            if verified(&dir, &options(Io::Pread))
                .findings
                .iter()
                .all(|finding| finding.rule == Rule::OffsetGap || finding.severity == Severity::Info)
            {
                *missed.entry(field(bit / 8)).or_default() += 1;
            }
        }
        position += batch.bytes.len();
    }
    // a base offset moves within the gap before its batch, or the one after it; the last batch has an entry
    // in the time index
    let is_possible = |n: i64, bit: u32| {
        let moved = (n * 37) ^ (1 << bit);
        (n == 0 || moved > (n - 1) * 37 + 2) && moved >= 0 && moved + 2 < (n + 1) * 37
    };
    let possible = (0..39)
        .flat_map(|n| (0..63).map(move |bit| (n, bit)))
        .filter(|(n, bit)| is_possible(*n, *bit))
        .count();
    assert_eq!(missed, BTreeMap::from([("base_offset", possible as u64)]));
    assert_eq!((flips, possible), (2560, 234));
}

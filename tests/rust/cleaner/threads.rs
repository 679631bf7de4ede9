//! Compaction with several threads: the same bytes, and the same errors, as with one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cordwood::Error;
use cordwood::cleaner::{Compaction, CompactionOptions, plan_compaction};
use cordwood::writer::LogWriter;

use super::case::{ALL, Case, NOW, memory_for};
use crate::support::batches::{ABORT, BatchV2, Built, COMMIT, Codec, Rec, crc32c};
use crate::support::reading::folder;

/// Keys, of which each has some twenty records.
const KEYS: i64 = 900;
const BATCHES: i64 = 640;
/// A batch with more records than a thread takes at a time.
const LONG: i64 = 70_000;

/// 9 MiB in three segments, more than several threads take at a time: batches of all codecs, tombstones,
/// records without a key, a batch with very many records, and transactions.
fn log() -> Case {
    let mut case = Case::new(|config| config.segment_bytes = 64 << 20);
    let mut sequence = 0;
    for number in 0..BATCHES {
        let records = (0..30).map(|at| {
            let random = (number * 30 + at) * 7919 % 10_007;
            let record = Rec::at(NOW + number);
            let record = if random % 50 == 0 { record } else { record.key((random % KEYS).to_string()) };
            if random % 17 == 0 { record } else { record.value(noise(number * 30 + at)) }
        });
        let codec = Codec::ALL[number as usize % Codec::ALL.len()];
        let batch = case.batch().codec(codec).records(records);
        if number % 5 == 0 {
            case.put(&batch.transaction(9, 0, sequence));
            sequence += 30;
        } else {
            case.put(&batch);
        }
        if number % 20 == 19 {
            case.end(if number % 40 == 39 { ABORT } else { COMMIT }, 9);
        }
        if number == BATCHES / 2 {
            let records = (0..LONG).map(|at| Rec::at(NOW).key((at % KEYS).to_string()).value("v"));
            case.put(&case.batch().records(records));
        }
        if number % 250 == 249 {
            case.roll();
        }
    }
    case.roll();
    case.writer.close().unwrap();
    case
}

/// 400 bytes that no codec compresses well.
fn noise(seed: i64) -> Vec<u8> {
    let mut state = seed.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(next).take(50).flatten().collect()
}

fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    let segments = named.filter(|(name, _)| name.len() > 20 && name.starts_with('0'));
    segments.map(|(name, path)| (name, fs::read(path).unwrap())).collect()
}

/// The passes over a copy of the log until it is clean, and its files.
fn compacted(case: &Case, bytes: usize, threads: usize) -> (Vec<Compaction>, BTreeMap<String, Vec<u8>>) {
    let folder = folder();
    let directory = folder.path().join("orders-0");
    fs::create_dir(&directory).unwrap();
    for (name, bytes) in files(&case.path()) {
        fs::write(directory.join(name), bytes).unwrap();
    }
    let mut writer = LogWriter::open(&directory, &case.options).unwrap();
    let options = CompactionOptions { now: Some(NOW), dedupe_buffer_bytes: bytes, threads };
    let mut passes = vec![writer.compact(&options).unwrap()];
    while !passes.last().unwrap().is_complete() {
        passes.push(writer.compact(&options).unwrap());
    }
    writer.close().unwrap();
    (passes, files(&directory))
}

#[test]
fn the_files_do_not_depend_on_the_number_of_threads() {
    let case = log();
    // room for all keys, and for fewer, so that there are several passes
    for bytes in [ALL, memory_for(KEYS as usize - 5)] {
        let one = compacted(&case, bytes, 1);
        assert_eq!(one.0.len() > 1, bytes != ALL, "{} passes", one.0.len());
        for threads in if bytes == ALL { vec![2, 5] } else { vec![3] } {
            assert!(compacted(&case, bytes, threads) == one, "{threads} threads, {bytes} bytes");
        }
    }
}

#[test]
fn a_batch_with_a_broken_record_is_the_same_error_with_any_number_of_threads() {
    let batch = |offset| BatchV2::new(offset).record(Rec::at(NOW).key("k").value(noise(offset).repeat(10)));
    let mut batches: Vec<_> = (0..600).map(|offset| batch(offset).build()).collect();
    // the length of a record, or the bit of a control batch, with a checksum that matches; 300 batches are
    // more than a thread takes at a time
    for (broken, at, bit) in [(250, 61, 1), (251, 22, 0x20), (450, 61, 1), (550, 61, 1)] {
        batches[broken] = with_checksum(batches[broken].clone(), |bytes| bytes[at] ^= bit);
    }
    let last = [600, 601].map(|offset| (offset, vec![batch(offset).build()]));
    let segments = [&[(0, batches)], &last[..]].concat();
    // found while the keys are read, and in a part that is clean, while batches are written again
    for first_dirty in [0, 600] {
        let case = Case::with_segments(&segments);
        case.set_checkpoint(first_dirty);
        let error = |threads| planned(&case, ALL, threads).unwrap_err();
        let one = error(1);
        assert!(matches!(&one, Error::Corrupt { place, .. } if place.offset == Some(250)), "{one}");
        for threads in [2, 3] {
            assert_eq!(error(threads).to_string(), one.to_string());
        }
    }
}

fn planned(case: &Case, bytes: usize, threads: usize) -> cordwood::Result<Compaction> {
    let options = CompactionOptions { now: Some(NOW), dedupe_buffer_bytes: bytes, threads };
    plan_compaction(&case.log(), &case.options.config, &options)
}

#[test]
fn what_is_wrong_after_the_last_key_for_which_there_is_room_is_no_error_with_any_number_of_threads() {
    let many = |offset: i64, count: i64| {
        let keys = (0..count).map(|n| Rec::at(NOW).key((offset + n).to_string()).value("v"));
        BatchV2::new(offset).records(keys.collect::<Vec<_>>()).build()
    };
    // the bit of a control batch; the length of the last record
    let marker = with_checksum(many(2, 1), |bytes| bytes[22] ^= 0x20);
    let broken = with_checksum(many(2, 200), |bytes| *bytes.iter_mut().rev().nth(6).unwrap() ^= 0x40);
    for (wrong, keys) in [(marker, 1), (broken, 2)] {
        let segments =
            [(0, vec![many(0, 1)]), (1, vec![many(1, 1)]), (2, vec![wrong]), (300, vec![many(300, 1)])];
        let case = Case::with_segments(&segments);
        let one = planned(&case, memory_for(keys), 1);
        assert!(one.as_ref().is_ok_and(|plan| plan.end_offset == keys as i64), "{one:?}");
        for threads in [2, 3] {
            assert_eq!(planned(&case, memory_for(keys), threads).unwrap(), *one.as_ref().unwrap());
        }
    }
}

fn with_checksum(mut batch: Built, change: impl FnOnce(&mut [u8])) -> Built {
    change(&mut batch.bytes);
    let crc = crc32c(&batch.bytes[21..]);
    batch.bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    batch
}

#[test]
fn damage_after_the_last_key_for_which_there_is_room_is_an_error_and_nothing_changes() {
    // the last byte of a record; the bit of a marker that makes it a control batch
    let damages: [fn(&mut [u8]); 2] = [|batch| *batch.last_mut().unwrap() ^= 1, |batch| batch[22] ^= 0x20];
    for (number, damage) in damages.into_iter().enumerate() {
        for threads in [1, 2] {
            let mut case = Case::new(|_| ());
            case.keys(&[1, 2, 3]);
            case.roll();
            case.send(9, &[1]);
            case.end(ABORT, 9);
            case.roll();
            let path = case.path().join("00000000000000000003.log");
            let mut bytes = fs::read(&path).unwrap();
            let marker = case.headers()[2].size as usize;
            let (record, marker) = {
                let at = bytes.len() - marker;
                bytes.split_at_mut(at)
            };
            damage(if number == 0 { record } else { marker });
            fs::write(&path, &bytes).unwrap();
            let before = files(&case.path());
            let options = CompactionOptions { now: Some(NOW), dedupe_buffer_bytes: memory_for(1), threads };
            let found = case.writer.compact(&options);
            assert!(matches!(found, Err(Error::Corrupt { .. })), "{number} {threads}: {found:?}");
            assert!(files(&case.path()) == before);
        }
    }
}

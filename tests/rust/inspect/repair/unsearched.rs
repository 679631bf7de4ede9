//! Bytes that are not known to be damage are not cut: what follows damage after a search that was given up,
//! and batches of a later format.

use cordwood::writer::{LogWriter, WriterOptions};

use super::rules::{batch, log, offsets};
use super::*;
use crate::support::batches::BatchV2;
use crate::support::partition::{Indexing, PartitionBuilder};

/// Damage whose bytes have so many possible headers that the search in them is given up; 500 batches follow
/// it.
fn hostile(parent: &Path) -> std::path::PathBuf {
    let mut fake = BatchV2::empty(5, 0, 1).build().bytes;
    fake[8..12].copy_from_slice(&800_000_i32.to_be_bytes());
    let mut batches: Vec<_> = (0..4).map(|offset| batch(offset, 1, 0)).collect();
    let before: usize = batches.iter().map(|batch| batch.build().bytes.len()).sum();
    let mut damaged = batch(4, 1, 0);
    damaged.records[0].value = Some([vec![b'z'; 8000], fake.repeat(400)].concat());
    batches.push(damaged);
    batches.extend((5..505).map(|offset| {
        let mut batch = batch(offset, 1, 0);
        batch.records[0].value = Some(vec![b'x'; 4000]);
        batch
    }));
    let dir = log(parent, &batches, |bytes| bytes[before..before + 4096].fill(0));
    std::fs::remove_file(dir.join(format!("{:020}.index", 0))).unwrap();
    dir
}

#[test]
fn what_follows_damage_after_a_search_that_was_given_up_is_not_cut() {
    let folder = reading::folder();
    let dir = hostile(folder.path());
    for policy in [RepairPolicy::TornTail, RepairPolicy::Salvage] {
        let error = repaired(&dir, &options(policy, 4096)).unwrap_err();
        assert!(error.to_string().contains("given up"), "{policy:?}: {error}");
    }
    let error = LogWriter::open(&dir, &WriterOptions::default()).err().unwrap();
    assert!(error.to_string().contains("given up"), "{error}");
    let log = Log::open(&dir, LogOptions::default()).unwrap();
    let read = reading::all(&log, OnDamage::Raise);
    assert!(read.error.unwrap().to_string().contains("given up"));
    let plan = repaired(&dir, &options(RepairPolicy::Kafka, 4096)).unwrap();
    assert_eq!(plan.log_end_offset, 4);
}

/// A log of ten batches; those with these numbers have another magic.
fn with_magic(parent: &Path, magic: u8, numbers: &[usize], damaged: Option<usize>) -> std::path::PathBuf {
    let batches: Vec<BatchV2> = (0..10).map(|number| batch(2 * number, 2, 0)).collect();
    log(parent, &batches, |bytes| {
        let size = batches[0].build().bytes.len();
        for number in numbers {
            bytes[number * size + 16] = magic;
        }
        if let Some(number) = damaged {
            bytes[number * size + 70] ^= 1;
        }
    })
}

#[test]
fn intact_batches_of_a_later_format_are_not_damage() {
    for (magic, numbers, damaged) in [
        (3, &[8, 9][..], None),
        (3, &[4, 5, 6, 7, 8, 9], None),
        (3, &[4, 5, 6, 7, 8, 9], Some(3)),
        (3, &[9], None),
        (3, &[4, 5], None),
        (5, &[4], None),
    ] {
        for policy in RepairPolicy::ALL {
            let folder = reading::folder();
            let dir = with_magic(folder.path(), magic, numbers, damaged);
            let place = format!("{magic} {numbers:?} {damaged:?} {policy:?}");
            let error = repaired(&dir, &options(policy, 4096)).unwrap_err();
            assert!(matches!(error, Error::UnsupportedFormat { .. }), "{place}: {error}");
            let error = LogWriter::open(&dir, &WriterOptions::default()).err().unwrap();
            assert!(matches!(error, Error::UnsupportedFormat { .. }), "{place}: {error}");
            let log = Log::open(&dir, LogOptions::default()).unwrap();
            let error = reading::all(&log, OnDamage::Raise).error.unwrap();
            assert!(matches!(error, Error::UnsupportedFormat { .. }), "{place}: {error}");
        }
    }
}

#[test]
fn a_single_batch_with_another_magic_between_two_of_the_second_format_has_a_flipped_bit() {
    // alone; beside a damaged batch, with which it is taken out
    for (damaged, kept) in [(None, 10), (Some(5), 8), (Some(3), 8)] {
        let folder = reading::folder();
        let dir = with_magic(folder.path(), 3, &[4], damaged);
        repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
        assert_eq!(offsets(&dir).len(), kept, "{damaged:?}");
    }
    // its checksum does not match
    let folder = reading::folder();
    let dir = with_magic(folder.path(), 3, &[4], Some(4));
    repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
    assert_eq!(offsets(&dir).len(), 9);
}

/// Two segments: one of ten batches, of which the last ones have magic 3, and after a gap one of a batch of
/// the second format.
fn closed(parent: &Path, later: usize) -> std::path::PathBuf {
    let first = (0..10).map(|number| batch(2 * number, 2, 0).build());
    let builder = PartitionBuilder::new(Indexing::default()).segment(0, first);
    let dir = builder.segment(30, [batch(30, 1, 0).build()]).write(parent, "orders-0");
    let path = dir.join(format!("{:020}.log", 0));
    let mut bytes = std::fs::read(&path).unwrap();
    let size = bytes.len() / 10;
    for number in 10 - later..10 {
        bytes[number * size + 16] = 3;
    }
    std::fs::write(path, bytes).unwrap();
    dir
}

#[test]
fn batches_of_a_later_format_are_not_skipped_as_damage() {
    let folders = [reading::folder(), reading::folder()];
    for dir in [closed(folders[0].path(), 4), with_magic(folders[1].path(), 3, &[4, 5], None)] {
        let log = Log::open(&dir, LogOptions::default()).unwrap();
        for on_damage in [OnDamage::Raise, OnDamage::Skip, OnDamage::Report] {
            let error = reading::all(&log, on_damage).error.unwrap();
            assert!(matches!(error, Error::UnsupportedFormat { .. }), "{on_damage:?}: {error}");
        }
    }
}

#[test]
fn a_flipped_magic_of_the_last_batch_of_a_closed_segment_is_corrected() {
    let folder = reading::folder();
    let dir = closed(folder.path(), 1);
    let plan = repaired(&dir, &options(RepairPolicy::Salvage, 4096)).unwrap();
    assert!(plan.lost_ranges.is_empty(), "{:#?}", plan.lost_ranges);
    assert_eq!(offsets(&dir).len(), 11);
}

/// Ten batches, and one of these bytes that is cut short.
fn torn(parent: &Path, value: Vec<u8>) -> std::path::PathBuf {
    let mut batches: Vec<BatchV2> = (0..10).map(|offset| batch(offset, 1, 0)).collect();
    let mut last = batch(10, 1, 0);
    last.records[0].value = Some(value);
    let size = last.build().bytes.len();
    batches.push(last);
    log(parent, &batches, |bytes| bytes.truncate(bytes.len() - size / 10))
}

#[test]
fn a_torn_batch_of_numbers_is_a_torn_write() {
    let numbers = |count: i64| (0..count).map(|n| n * 7_919 % 1_000_003);
    for value in [
        numbers(100_000).flat_map(i64::to_be_bytes).collect::<Vec<_>>(),
        numbers(100_000).flat_map(i64::to_le_bytes).collect(),
        numbers(200_000).flat_map(|n| (n as i32).to_be_bytes()).collect(),
        numbers(200_000).flat_map(|n| (n as i32).to_le_bytes()).collect(),
        numbers(200_000).flat_map(|n| f32::from(n as i16).to_be_bytes()).collect(),
        numbers(200_000).flat_map(|n| f32::from(n as i16).to_le_bytes()).collect(),
        numbers(800_000).map(|n| (n % 3) as u8).collect(),
    ] {
        let start = value[..16].to_vec();
        let folder = reading::folder();
        let dir = torn(folder.path(), value);
        let read = reading::all(&Log::open(&dir, LogOptions::default()).unwrap(), OnDamage::Raise);
        assert!(read.error.is_none(), "{start:?}: {:?}", read.error);
        assert_eq!(read.offsets().len(), 10, "{start:?}");
        let plan = repaired(&dir, &options(RepairPolicy::TornTail, 4096)).unwrap();
        assert_eq!(plan.log_end_offset, 10, "{start:?}");
    }
}

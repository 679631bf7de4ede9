//! A look-up in a table does not read the index. The index is compared with the log when the table is built,
//! so that damage in it still causes a warning.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use cordwood::log::{Ranges, ScanOptions};
use cordwood::types::Io;
use cordwood::{Error, Log};

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::partition::{Indexing, PartitionBuilder, file_name, offset_entry};
use crate::support::reading::{IOS, both, folder, open};

const BATCHES: i64 = 20;

fn batch(n: i64, base: i64) -> Built {
    BatchV2::new(base + n * 5).records((0..5).map(|time| Rec::at(time).value([b'v'; 20]))).build()
}

/// One segment at a base offset: batches of five records, and an index with these entries.
fn partition(parent: &Path, base: i64, batches: i64, entries: &[[u8; 8]]) -> PathBuf {
    let built = (0..batches).map(|n| batch(n, base));
    let dir = PartitionBuilder::new(Indexing::every(1 << 20)).segment(base, built).write(parent, "orders-0");
    fs::write(dir.join(file_name(base, "index")), entries.concat()).unwrap();
    dir
}

/// The entry of the batch with number `n`, in the place of another one.
fn entry(n: i64, at: i64) -> [u8; 8] {
    let size = batch(0, 0).bytes.len() as i32;
    offset_entry(0, n * 5 + 4, at as i32 * size)
}

/// Looks up the first offset until its segment has a table, and then all offsets.
fn warnings_of_a_table(log: &Log) -> Vec<String> {
    let base = log.segments().first().unwrap().base_offset();
    for _ in 0..50 {
        assert_eq!(log.locate(base).unwrap().unwrap().batch_base_offset, base);
    }
    let warnings = log.warnings();
    for offset in base..log.log_end_offset().unwrap() {
        let found = log.locate(offset).unwrap().unwrap();
        assert_eq!(found.batch_base_offset, base + (offset - base) / 5 * 5);
    }
    assert_eq!(log.warnings(), warnings);
    warnings
}

#[test]
fn entries_that_single_look_ups_confirm_cause_no_warning() {
    // the last offset of a batch; the first one, as Kafka 0.8 wrote it; the last one of a later batch, whose
    // position is lower than that of the entry before
    let size = batch(0, 0).bytes.len() as i32;
    let first = offset_entry(0, 40, 8 * size);
    let entries = [offset_entry(0, 0, 0), entry(2, 2), entry(6, 6), first, entry(10, 5), entry(19, 19)];
    let parent = folder();
    let dir = partition(parent.path(), 0, BATCHES, &entries);
    for io in IOS {
        assert_eq!(warnings_of_a_table(&open(&dir, io)), [""; 0]);
    }
}

#[test]
fn the_first_entry_that_the_log_does_not_confirm_causes_one_warning() {
    for (wrong, named) in [
        (entry(9, 10), "offset 49"),
        (entry(9, 20), "offset 49"),
        (entry(9, -1), "offset 49"),
        (offset_entry(0, 47, 9 * 100), "offset 47"),
        (*b"\xff\xff\xff\xff\0\0\0\0", "offset -1,"),
    ] {
        let entries = [entry(2, 2), wrong, entry(12, 13), entry(19, 19)];
        let entries =
            if named.contains('-') { [wrong, entry(2, 2), entry(12, 13), entry(19, 19)] } else { entries };
        let parent = folder();
        let dir = partition(parent.path(), 0, BATCHES, &entries);
        for io in IOS {
            let warnings = warnings_of_a_table(&open(&dir, io));
            let [warning] = &warnings[..] else { panic!("{named}: {warnings:?}") };
            assert!(warning.contains(named) && warning.contains("does not agree"), "{warning}");
            // the single look-up that uses the entry has the same warning
            if !named.contains('-') {
                let log = open(&dir, io);
                log.locate(50).unwrap();
                assert_eq!(log.warnings(), warnings);
            }
        }
    }
}

#[test]
fn entries_out_of_order_cause_a_warning() {
    for entries in
        [[entry(2, 2), entry(9, 9), entry(4, 4), entry(19, 19)], [2, 9, 9, 19].map(|n| entry(n, n))]
    {
        let parent = folder();
        let dir = partition(parent.path(), 0, BATCHES, &entries);
        for io in IOS {
            let warnings = warnings_of_a_table(&open(&dir, io));
            let [warning] = &warnings[..] else { panic!("{warnings:?}") };
            assert!(warning.contains("is not above the entry before it"), "{warning}");
        }
    }
}

#[test]
fn an_entry_beyond_the_end_of_a_closed_segment_causes_a_warning() {
    let parent = folder();
    let dir =
        partition(parent.path(), 0, BATCHES, &[entry(2, 2), entry(1000, 3), entry(12, 12), entry(19, 19)]);
    fs::write(dir.join(file_name(BATCHES * 5, "log")), batch(BATCHES, 0).bytes).unwrap();
    for io in IOS {
        let warnings = warnings_of_a_table(&open(&dir, io));
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(warning.contains("offset 5004") && warning.contains("does not agree"), "{warning}");
    }
}

#[test]
fn an_entry_whose_offset_wraps_near_the_largest_offset_is_not_confirmed() {
    let base = i64::MAX - 5;
    let parent = folder();
    // the offsets of the batch end below the largest number; that of the entry does not
    let built = BatchV2::new(base).record(Rec::at(7).value([b'v'; 20])).build();
    let dir = PartitionBuilder::new(Indexing::every(1 << 20))
        .segment(base, [built])
        .write(parent.path(), "orders-0");
    let wrapped = [100_i32.to_be_bytes(), 0_i32.to_be_bytes()].concat();
    fs::write(dir.join(file_name(base, "index")), wrapped).unwrap();
    for io in IOS {
        let log = open(&dir, io);
        for _ in 0..20 {
            assert_eq!(log.locate(base).unwrap().unwrap().position, 0);
            assert_eq!(log.locate_many(&[base, base + 1, i64::MAX]).unwrap()[1..], [None, None]);
            assert_eq!(log.offset_for_time(7).unwrap().unwrap().offset, base);
        }
        assert_eq!(log.warnings().len(), 1, "{:?}", log.warnings());
    }
}

#[test]
fn of_an_index_far_larger_than_its_log_only_the_start_is_read() {
    let parent = folder();
    let dir = partition(parent.path(), 0, BATCHES, &[]);
    // zeros for entries that are not there, up to one at the end
    let index = File::options().write(true).open(dir.join(file_name(0, "index"))).unwrap();
    index.write_all_at(&entry(19, 19), 1 << 40).unwrap();
    for io in IOS {
        let warnings = warnings_of_a_table(&open(&dir, io));
        assert!(warnings.iter().any(|warning| warning.contains("is not above the entry")), "{warnings:?}");
    }
}

#[test]
fn entries_of_batches_that_were_appended_since_are_ignored() {
    let parent = folder();
    let dir = partition(parent.path(), 0, BATCHES, &[entry(3, 3), entry(15, 15)]);
    let log = open(&dir, Io::Pread);
    let append = |extension: &str, bytes: &[u8]| {
        let mut file = File::options().append(true).open(dir.join(file_name(0, extension))).unwrap();
        file.write_all(bytes).unwrap();
    };
    append("log", &batch(BATCHES, 0).bytes);
    append("index", &entry(BATCHES, BATCHES));
    assert_eq!(warnings_of_a_table(&log), [""; 0]);
    assert_eq!(log.log_end_offset().unwrap(), BATCHES * 5);
}

/// An entry as old versions wrote them, with the first offset of the batch: a look-up begins at it, and not
/// before it.
#[test]
fn damage_at_the_position_of_an_index_entry_begins_after_the_batch_before() {
    let folder = folder();
    let records = |base: i64| BatchV2::new(base).records((0..10).map(|n| Rec::at(base + n))).build();
    let batches: Vec<_> = (0..6).map(|n| records(10 * n)).collect();
    let position: usize = batches.iter().take(2).map(|batch| batch.bytes.len()).sum();
    let dir = PartitionBuilder::new(Indexing::every(1 << 20)).segment(0, batches).write(folder.path(), "t-0");
    let entry = offset_entry(0, 20, i32::try_from(position).unwrap());
    fs::write(dir.join(file_name(0, "index")), entry).unwrap();
    // the last offset of the batch at the position, which its checksum covers, is in the next batch
    let log_file = dir.join(file_name(0, "log"));
    let mut bytes = fs::read(&log_file).unwrap();
    bytes[position + 26] ^= 2;
    fs::write(&log_file, bytes).unwrap();
    for log in both(&dir) {
        let ranges = Ranges { start_offset: Some(25), ..Ranges::default() };
        let options = ScanOptions { ranges, ..ScanOptions::default() };
        let error = log.scan(options).unwrap().next_step().unwrap_err();
        let Error::Corrupt { place, .. } = error else { panic!("{error}") };
        assert_eq!((place.position, place.offset), (position as u64, Some(20)));
    }
}

//! Scans that verify no checksums.

use std::fs;
use std::path::{Path, PathBuf};

use cordwood::Error;
use cordwood::log::{DamagedRange, OnDamage, Ranges, ScanOptions};
use cordwood::types::{Io, IsolationLevel};

use crate::support::batches::{ABORT, BatchV2, Built, Codec, MessageSet, Rec, crc32, crc32c};
use crate::support::golden;
use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::reading::{IOS, Read, both, folder, open, read, scan};

const VALUE: &[u8] = b"a value that is in the log once";

fn plain(base: i64) -> Built {
    BatchV2::new(base).record(Rec::at(7).value("plain")).build()
}

fn write_all(parent: &Path, batches: Vec<Built>) -> PathBuf {
    PartitionBuilder::new(Indexing::every(1 << 20)).segment(0, batches).write(parent, "t-0")
}

/// Three batches, the second with the value.
fn write(parent: &Path, second: impl Fn(i64, Rec) -> Vec<Built>) -> PathBuf {
    let mut all = vec![BatchV2::new(0).record(Rec::at(7)).build()];
    all.extend(second(1, Rec::at(5).value(VALUE)));
    all.push(plain(2));
    write_all(parent, all)
}

fn log_file(dir: &Path) -> PathBuf {
    dir.join(file_name(0, "log"))
}

/// The position of the second batch.
fn second_of(bytes: &[u8]) -> usize {
    12 + u32::from_be_bytes(*bytes[8..].first_chunk().unwrap()) as usize
}

/// Changes the bytes of the second batch, and the others after it. Returns its position.
fn change(dir: &Path, change: impl FnOnce(&mut [u8])) -> u64 {
    let mut bytes = fs::read(log_file(dir)).unwrap();
    let second = second_of(&bytes);
    change(&mut bytes[second..]);
    fs::write(log_file(dir), bytes).unwrap();
    second as u64
}

/// Flips a bit of the value, which is not compressed.
fn flip_value(dir: &Path) {
    change(dir, |bytes| {
        let at = bytes.windows(VALUE.len()).position(|window| window == VALUE).unwrap();
        bytes[at] ^= 4;
    });
}

fn flipped_value() -> Vec<u8> {
    [&[VALUE[0] ^ 4], &VALUE[1..]].concat()
}

fn unverified(on_damage: OnDamage) -> ScanOptions {
    ScanOptions { on_damage, check_crcs: false, ..ScanOptions::default() }
}

fn values(read: &Read) -> Vec<Option<Vec<u8>>> {
    read.records().map(|record| record.value.clone()).collect()
}

/// The second batch is damage: an error at its position, or a damaged range, and the other records are
/// returned.
fn assert_second_is_damaged(dir: &Path, second: u64, what: &str) {
    for log in both(dir) {
        let error = scan(&log, unverified(OnDamage::Raise)).error.unwrap();
        assert!(matches!(error, Error::Corrupt { .. }), "{what}: {error}");
        assert_eq!((error.position(), error.offset()), (Some(second), Some(1)), "{what}: {error}");
        let read = scan(&log, unverified(OnDamage::Skip)).whole();
        assert_eq!(read.offsets(), [0, 2], "{what}");
        assert_eq!(read.gaps.len(), 1, "{what}");
    }
}

#[test]
fn a_flipped_bit_of_a_value_is_returned_as_data() {
    for second in [
        |base, record| vec![BatchV2::new(base).record(record).build()],
        |base, record| MessageSet::v1(base).record(record).build(),
        |base, record| MessageSet::v0(base).record(record).build(),
    ] as [fn(i64, Rec) -> Vec<Built>; 3]
    {
        let folder = folder();
        let dir = write(folder.path(), second);
        flip_value(&dir);
        for log in both(&dir) {
            assert!(scan(&log, ScanOptions::default()).error.is_some());
            let options = unverified(OnDamage::Raise);
            let wanted = [None, Some(flipped_value()), Some(b"plain".to_vec())];
            assert_eq!(values(&scan(&log, options).whole()), wanted);
            let splits = log.plan(100, &options).unwrap();
            assert!(splits.len() > 1);
            let of_splits: Vec<_> = splits
                .iter()
                .flat_map(|split| values(&read(log.scan_split(split, options)).whole()))
                .collect();
            assert_eq!(of_splits, wanted);
        }
    }
}

#[test]
fn damage_of_the_structure_is_found() {
    for codec in Codec::ALL {
        let folder = folder();
        let dir =
            write(folder.path(), |base, record| vec![BatchV2::new(base).codec(codec).record(record).build()]);
        // the length of the record, or the start of the compressed stream
        let second = change(&dir, |bytes| bytes[61..65].fill(0xff));
        assert_second_is_damaged(&dir, second, &format!("{codec:?}"));
    }
}

#[test]
fn a_codec_that_does_not_exist_is_damage_only_if_the_checksum_does_not_match() {
    type Case = (fn(i64, Rec) -> Vec<Built>, usize);
    let cases: [Case; 4] = [
        (|base, record| vec![BatchV2::new(base).codec(Codec::Gzip).record(record).build()], 22),
        (|base, record| vec![BatchV2::new(base).codec(Codec::Lz4).record(record).build()], 22),
        (|base, record| MessageSet::v1(base).codec(Codec::Gzip).record(record).build(), 17),
        (|base, record| MessageSet::v0(base).codec(Codec::SnappyXerial).record(record).build(), 17),
    ];
    for (second, attributes) in cases {
        let folder = folder();
        let dir = write(folder.path(), second);
        let position = change(&dir, |bytes| bytes[attributes] ^= 4);
        assert_second_is_damaged(&dir, position, "a flipped bit of the codec");
        change(&dir, |bytes| {
            let size = second_of(bytes);
            if attributes == 22 {
                let crc = crc32c(&bytes[21..size]);
                bytes[17..21].copy_from_slice(&crc.to_be_bytes());
            } else {
                let crc = crc32(&bytes[16..size]);
                bytes[12..16].copy_from_slice(&crc.to_be_bytes());
            }
        });
        for log in both(&dir) {
            for on_damage in [OnDamage::Raise, OnDamage::Skip] {
                for check_crcs in [true, false] {
                    let options = ScanOptions { check_crcs, ..unverified(on_damage) };
                    let error = scan(&log, options).error.unwrap();
                    assert!(matches!(error, Error::UnsupportedFormat { .. }), "{error}");
                }
            }
        }
    }
}

#[test]
fn a_batch_that_says_it_has_no_records_to_return_is_verified() {
    for codec in Codec::ALL {
        for (at, bit) in [(60, 1), (22, 0x20)] {
            let folder = folder();
            let dir = write(folder.path(), |base, record| {
                vec![BatchV2::new(base).codec(codec).record(record).build()]
            });
            // the count becomes 0, or the batch one of control records
            let second = change(&dir, |bytes| bytes[at] ^= bit);
            assert_second_is_damaged(&dir, second, &format!("{codec:?} {at}"));
        }
    }
    // compaction leaves batches without records
    let folder = folder();
    let dir = write(folder.path(), |base, _| vec![BatchV2::empty(base, 0, 5).build()]);
    for log in both(&dir) {
        assert_eq!(scan(&log, unverified(OnDamage::Raise)).whole().offsets(), [0, 2]);
    }
}

#[test]
fn of_two_headers_that_contradict_each_other_the_checksum_shows_the_damaged_one() {
    let folder = folder();
    let dir = write(folder.path(), |base, record| vec![BatchV2::new(base).record(record).build()]);
    // the last offset reaches into the batch after it
    let second = change(&dir, |bytes| bytes[26] ^= 2);
    assert_second_is_damaged(&dir, second, "the last offset");
}

#[test]
fn a_last_batch_whose_checksum_does_not_match_is_not_part_of_the_log() {
    let folder = folder();
    let dir = write(folder.path(), |base, record| vec![BatchV2::new(base).record(record).build()]);
    let mut bytes = fs::read(log_file(&dir)).unwrap();
    let value = bytes.len() - 2;
    bytes[value] ^= 1;
    fs::write(log_file(&dir), &bytes).unwrap();
    for log in both(&dir) {
        let read = scan(&log, unverified(OnDamage::Raise)).whole();
        assert_eq!(values(&read), [None, Some(VALUE.to_vec())]);
        assert_eq!(log.log_end_offset().unwrap(), 2);
        assert_eq!(log.warnings().len(), 1);
        let read = scan(&log, unverified(OnDamage::Skip)).whole();
        assert_eq!(read.offsets(), [0, 1]);
        assert!(read.gaps[0].is_tail());
    }
    // with a batch after it, it is
    bytes.extend(plain(3).bytes);
    fs::write(log_file(&dir), &bytes).unwrap();
    for log in both(&dir) {
        let read = scan(&log, unverified(OnDamage::Raise)).whole();
        assert_eq!(read.offsets(), [0, 1, 2, 3]);
        assert_ne!(values(&read)[2], Some(b"plain".to_vec()));
    }
}

#[test]
fn a_committed_scan_verifies_every_batch() {
    let folder = folder();
    let aborted = BatchV2::new(1).transaction(5, 0, 0).record(Rec::at(5).value(VALUE)).build();
    let batches = vec![plain(0), aborted, BatchV2::marker(2, ABORT, 5, 0, 6).build(), plain(3)];
    let dir = write_all(folder.path(), batches);
    let isolation_level = IsolationLevel::ReadCommitted;
    let options = |on_damage| ScanOptions { isolation_level, ..unverified(on_damage) };
    for log in both(&dir) {
        assert_eq!(scan(&log, options(OnDamage::Raise)).whole().offsets(), [0, 3]);
    }
    flip_value(&dir);
    for log in both(&dir) {
        let error = scan(&log, options(OnDamage::Raise)).error.unwrap();
        assert_eq!(error.offset(), Some(1), "{error}");
        let read = scan(&log, options(OnDamage::Skip)).whole();
        assert_eq!(read.offsets(), [0, 3]);
        assert_eq!(read.gaps.len(), 1);
        // an uncommitted scan has no outcome to decide
        assert_eq!(scan(&log, unverified(OnDamage::Raise)).whole().offsets(), [0, 1, 3]);
    }
}

/// Every bit of the second batch: each offset is returned or in a damaged range, and the other records are
/// never changed.
#[test]
fn no_flipped_bit_loses_a_record_silently() {
    type Case = (&'static str, fn(i64, Rec) -> Vec<Built>);
    let cases: [Case; 7] = [
        ("v2", |base, record| vec![BatchV2::new(base).record(record).build()]),
        ("v2 gzip", |base, record| vec![BatchV2::new(base).codec(Codec::Gzip).record(record).build()]),
        ("v2 lz4", |base, record| vec![BatchV2::new(base).codec(Codec::Lz4).record(record).build()]),
        ("v2 zstd", |base, record| vec![BatchV2::new(base).codec(Codec::Zstd).record(record).build()]),
        ("v1", |base, record| MessageSet::v1(base).record(record).build()),
        ("v0", |base, record| MessageSet::v0(base).record(record).build()),
        ("v1 gzip", |base, record| MessageSet::v1(base).codec(Codec::Gzip).record(record).build()),
    ];
    for (name, second) in cases {
        let folder = folder();
        let dir = write(folder.path(), second);
        let bytes = fs::read(log_file(&dir)).unwrap();
        let start = second_of(&bytes);
        let end = start + second_of(&bytes[start..]);
        let first = values(&scan(&open(&dir, Io::Pread), ScanOptions::default()))[0].clone();
        for bit in start * 8..end * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(log_file(&dir), flipped).unwrap();
            let what = format!("{name}, byte {} of the batch, bit {}", bit / 8 - start, bit % 8);
            let log = open(&dir, IOS[bit % 2]);
            let read = scan(&log, unverified(OnDamage::Skip)).whole();
            for offset in 0..3 {
                let is_damaged = read
                    .gaps
                    .iter()
                    .any(|gap| gap.start_offset <= offset && gap.end_offset.is_none_or(|end| offset < end));
                assert!(is_damaged || read.offsets().contains(&offset), "{what}: {:?}", read.offsets());
            }
            assert!(read.offsets().is_sorted_by(|a, b| a < b), "{what}");
            for record in read.records() {
                match record.offset {
                    0 => assert_eq!(record.value, first, "{what}"),
                    1 => {}
                    _ => assert_eq!(record.value.as_deref(), Some(&b"plain"[..]), "{what}"),
                }
            }
            let raised = scan(&log, unverified(OnDamage::Raise));
            assert!(
                raised.error.is_some() || raised.offsets() == [0, 1, 2],
                "{what}: {:?}",
                raised.offsets()
            );
        }
    }
}

/// Bits of headers by which a scan of a range decides whether it skips a batch.
#[test]
fn no_flipped_bit_moves_a_record_out_of_a_range_silently() {
    type Case = (fn(i64) -> Vec<Built>, i64, Ranges);
    let times = |start, end| Ranges { start_time: start, end_time: end, ..Ranges::default() };
    let offsets = |start| Ranges { start_offset: start, ..Ranges::default() };
    let one = |base| vec![BatchV2::new(base).record(Rec::at(5).value(VALUE)).build()];
    let sparse = |base| {
        let records = [Rec::at(5).value(VALUE), Rec::at(100).delta(9).value(VALUE)];
        vec![BatchV2::new(base).records(records).last_offset_delta(9).build()]
    };
    let cases: [Case; 6] = [
        (one, 2, times(Some(5), None)),
        (one, 2, times(None, Some(6))),
        (sparse, 11, times(Some(5), None)),
        (sparse, 11, times(None, Some(50))),
        (sparse, 11, times(Some(50), None)),
        (sparse, 11, offsets(Some(6))),
    ];
    for (second, next, ranges) in cases {
        let folder = folder();
        let mut all = vec![BatchV2::new(0).record(Rec::at(7)).build()];
        all.extend(second(1));
        all.push(plain(next));
        let dir = write_all(folder.path(), all);
        let bytes = fs::read(log_file(&dir)).unwrap();
        let start = second_of(&bytes);
        let end = start + second_of(&bytes[start..]);
        for bit in start * 8..end * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(log_file(&dir), flipped).unwrap();
            let what = format!("{ranges:?}, byte {} of the batch, bit {}", bit / 8 - start, bit % 8);
            let log = open(&dir, IOS[bit % 2]);
            let [whole, ranged] = [Ranges::default(), ranges]
                .map(|ranges| scan(&log, ScanOptions { ranges, ..unverified(OnDamage::Raise) }));
            if ranged.error.is_some() {
                continue;
            }
            let is_in_range = |record: &crate::support::naive::Record| {
                // a negative timestamp is none, and in no range of times
                ranges.start_time.is_none_or(|start| record.timestamp >= start)
                    && ranges.end_time.is_none_or(|end| (0..end).contains(&record.timestamp))
                    && ranges.start_offset.is_none_or(|start| record.offset >= start)
            };
            for record in whole.records().filter(|record| is_in_range(record)) {
                assert!(ranged.offsets().contains(&record.offset), "{what}: offset {}", record.offset);
            }
        }
    }
}

/// Without its checksum, the length of a damaged batch would decide which batch is next.
#[test]
fn after_a_batch_of_a_wrong_length_no_intact_one_is_skipped() {
    for damaged in golden::damaged().into_iter().filter(|damaged| damaged.case.starts_with("length-")) {
        for log in both(&damaged.dir) {
            let verified =
                scan(&log, ScanOptions { on_damage: OnDamage::Skip, ..ScanOptions::default() }).whole();
            assert_eq!(
                scan(&log, unverified(OnDamage::Skip)).whole().offsets(),
                verified.offsets(),
                "{}",
                damaged.case
            );
            let raised = scan(&log, unverified(OnDamage::Raise));
            assert_eq!(
                raised.error.is_some(),
                !verified.gaps.iter().all(DamagedRange::is_tail),
                "{}",
                damaged.case
            );
        }
    }
}

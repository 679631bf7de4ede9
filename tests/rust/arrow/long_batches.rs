//! Columns of batches with more records than are decoded at a time, and of logs that several threads read,
//! compared with the records that were written.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use cordwood::arrow::{ByteType, Column, Progress, Reader, ReaderOptions};
use cordwood::log::{OnDamage, Ranges, ScanOptions};
use cordwood::{Error, Log};

use crate::support::batches::{BatchV2, Built, Codec, Rec, crc32c};
use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::reading::{both, folder};

/// Around the number of records that are decoded at a time, and more.
const COUNTS: [i64; 4] = [511, 512, 513, 1500];

/// The offset and the value of each row.
type Rows = Vec<(i64, Vec<u8>)>;

fn value(offset: i64) -> Vec<u8> {
    format!("value {offset} {}", "x".repeat(offset as usize % 50)).into_bytes()
}

fn batch(base: i64, count: i64, codec: Codec) -> Built {
    let records = (base..base + count).map(|offset| Rec::at(offset).value(value(offset)));
    BatchV2::new(base).codec(codec).records(records).build()
}

fn expected(offsets: impl Iterator<Item = i64>) -> Rows {
    offsets.map(|offset| (offset, value(offset))).collect()
}

/// The rows up to the end or to an error, which is returned too.
fn read(log: &Log, options: ReaderOptions) -> (Rows, Option<Error>, Progress) {
    let progress = Progress::default();
    let mut reader = Reader::new(std::iter::once(Ok(log.clone())), options, progress.clone());
    let mut rows = Vec::new();
    loop {
        match reader.next_batch() {
            Ok(Some(batch)) => rows.extend(rows_of(&batch)),
            Ok(None) => return (rows, None, progress),
            Err(error) => return (rows, Some(error), progress),
        }
    }
}

fn rows_of(batch: &RecordBatch) -> Rows {
    let offsets = batch.column(0).as_primitive::<Int64Type>().values();
    let values: Vec<_> = match batch.column(1).as_binary_opt::<i32>() {
        Some(values) => values.iter().map(|value| value.unwrap().to_vec()).collect(),
        None => batch.column(1).as_binary_view().iter().map(|value| value.unwrap().to_vec()).collect(),
    };
    offsets.iter().copied().zip(values).collect()
}

fn options(scan: ScanOptions, value_type: ByteType) -> ReaderOptions {
    ReaderOptions {
        scan,
        value_type,
        columns: vec![Column::Offset, Column::Value],
        ..ReaderOptions::default()
    }
}

const TYPES: [ByteType; 2] = [ByteType::Binary, ByteType::BinaryView];

#[test]
fn every_record_of_a_long_batch_is_returned_once_with_and_without_a_range() {
    for (count, codec) in COUNTS.into_iter().flat_map(|count| [(count, Codec::None), (count, Codec::Lz4)]) {
        let folder = folder();
        let batches = [batch(0, count, codec), batch(count, count, codec)];
        let dir =
            PartitionBuilder::new(Indexing::every(4096)).segment(0, batches).write(folder.path(), "t-0");
        for log in both(&dir) {
            for (start, end) in [(0, 2 * count), (5, 2 * count - 5), (count - 1, count + 1)] {
                let by_time = Ranges { start_time: Some(start), end_time: Some(end), ..Ranges::default() };
                let by_offset =
                    Ranges { start_offset: Some(start), end_offset: Some(end), ..Ranges::default() };
                for (ranges, value_type) in
                    [by_time, by_offset].into_iter().flat_map(|r| TYPES.map(|t| (r, t)))
                {
                    let scan = ScanOptions { ranges, ..ScanOptions::default() };
                    for (max_rows, max_bytes) in [(65_536, 16 << 20), (500, 16 << 20), (65_536, 3000)] {
                        let options = ReaderOptions { max_rows, max_bytes, ..options(scan, value_type) };
                        let (rows, error, _) = read(&log, options);
                        assert!(error.is_none(), "{error:?}");
                        assert!(
                            rows == expected(start..end),
                            "{count} {codec:?} {start} {end} {value_type:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn the_records_of_a_long_batch_before_a_broken_one_are_returned() {
    for broken in COUNTS {
        let folder = folder();
        let mut built = batch(0, 2000, Codec::None);
        let needle = value(broken);
        let at = built.bytes.windows(needle.len()).position(|window| window == needle).unwrap();
        // the length of the value
        built.bytes[at - 1] = 1;
        let crc = crc32c(&built.bytes[21..]);
        built.bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        let dir = PartitionBuilder::new(Indexing::every(4096))
            .segment(0, [built, batch(2000, 3, Codec::None)])
            .write(folder.path(), "t-0");
        for (log, value_type) in both(&dir).into_iter().flat_map(|log| TYPES.map(|t| (log.clone(), t))) {
            let scan = ScanOptions { on_damage: OnDamage::Skip, ..ScanOptions::default() };
            let (rows, error, progress) = read(&log, options(scan, value_type));
            assert!(error.is_none(), "{error:?}");
            assert_eq!(rows, expected((0..broken).chain(2000..2003)), "{broken}");
            let ranges = progress.damaged_ranges();
            assert_eq!(ranges.len(), 1);
            assert_eq!((ranges[0].start_offset, ranges[0].end_offset), (broken, Some(2000)));
            let error = read(&log, options(ScanOptions::default(), value_type)).1.unwrap();
            assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        }
    }
}

/// A log that several splits read, with a flipped bit in the middle, and the offsets of the damaged batch.
fn large(parent: &std::path::Path) -> (PathBuf, std::ops::Range<i64>) {
    const BATCH: i64 = 1000;
    let batches: Vec<_> = (0..320).map(|n| batch(BATCH * n, BATCH, Codec::None)).collect();
    let dir = PartitionBuilder::rolled(Indexing::every(4096), 8 << 20, batches.clone()).write(parent, "t-0");
    let size: usize = batches.iter().map(|batch| batch.bytes.len()).sum();
    assert!(size > 12 << 20, "{size} bytes are fewer than three splits");
    let damaged = 100;
    let position: usize = batches[..damaged].iter().map(|batch| batch.bytes.len()).sum();
    let file = OpenOptions::new().read(true).write(true).open(dir.join(file_name(0, "log"))).unwrap();
    assert!(fs::metadata(dir.join(file_name(0, "log"))).unwrap().len() > position as u64 + 1000);
    file.write_at(b"~", position as u64 + 500).unwrap();
    (dir, BATCH * damaged as i64..BATCH * (damaged as i64 + 1))
}

#[test]
fn several_threads_return_what_one_does_also_around_damage() {
    let folder = folder();
    let (dir, damaged) = large(folder.path());
    for log in both(&dir) {
        for (threads, value_type) in [1, 2, 3].into_iter().flat_map(|n| TYPES.map(|t| (n, t))) {
            let scan = ScanOptions { on_damage: OnDamage::Skip, ..ScanOptions::default() };
            let (rows, error, progress) = read(&log, ReaderOptions { threads, ..options(scan, value_type) });
            assert!(error.is_none(), "{error:?}");
            assert!(rows == expected((0..damaged.start).chain(damaged.end..320_000)), "{threads} threads");
            let ranges = progress.damaged_ranges();
            let ranges: Vec<_> = ranges.iter().map(|range| (range.start_offset, range.end_offset)).collect();
            assert_eq!(ranges, [(damaged.start, Some(damaged.end))], "{threads} threads");
            assert_eq!(progress.stats().records, rows.len() as u64, "{threads} threads");
        }
        let options = ReaderOptions { threads: 2, ..options(ScanOptions::default(), ByteType::Binary) };
        let (rows, error, _) = read(&log, options);
        assert_eq!(error.unwrap().offset(), Some(damaged.start));
        assert!(
            rows == expected(0..rows.len() as i64) && rows.len() as i64 <= damaged.start,
            "{}",
            rows.len()
        );
    }
}

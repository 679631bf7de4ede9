//! Several threads return what one thread returns: rows, damaged ranges, the number of records, and errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use cordwood::arrow::{ByteType, Column, Progress, Reader, ReaderOptions};
use cordwood::log::{LogOptions, OnDamage, Ranges, ScanOptions};
use cordwood::types::{Interrupt, Io, IsolationLevel};
use cordwood::{Error, Log};
use proptest::prelude::*;

use crate::support::batches::{ABORT, BatchV2, Built, COMMIT, Codec, MessageSet, Rec};
use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::reading::{IOS, both, folder, options};
use crate::support::{fixed_seed, is_exhaustive};

/// Numbers of threads, half of them for each way of reading.
const THREADS: [[usize; 2]; 2] = [[2, usize::MAX], [3, 8]];

fn threads(log: &Log) -> impl Iterator<Item = usize> {
    let half = usize::from(log.options().io == IOS[0]);
    let others = THREADS[1 - half].into_iter().filter(|_| is_exhaustive());
    THREADS[half].into_iter().chain(others)
}

/// What is done about damage: the one or the other for each way of reading, alternately.
fn on_damage(log: &Log, number: usize) -> impl Iterator<Item = OnDamage> {
    let is_other = (usize::from(log.options().io == IOS[0]) + number).is_multiple_of(2);
    let both = if is_other { [OnDamage::Report, OnDamage::Skip] } else { [OnDamage::Skip, OnDamage::Report] };
    both.into_iter().take(if is_exhaustive() { 2 } else { 1 })
}

/// The records of a batch.
const BATCH: i64 = 100;

/// The batches of a log, which many tests damage.
fn batches() -> Vec<Built> {
    static BATCHES: OnceLock<Vec<Built>> = OnceLock::new();
    BATCHES.get_or_init(|| (0..200).map(|n| batch(BATCH * n, Codec::None)).collect()).clone()
}

/// Text that compresses a little, the same for the same offset.
fn value(offset: i64) -> Vec<u8> {
    let mut state = offset as u64 + 1;
    let letter = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        b'a' + (state >> 60) as u8
    };
    (0..150).map(letter).collect()
}

fn batch(base: i64, codec: Codec) -> Built {
    let records =
        (base..base + BATCH).map(|offset| Rec::at(offset).key(offset.to_be_bytes()).value(value(offset)));
    BatchV2::new(base).codec(codec).records(records).build()
}

/// A log of 3 MiB or, compressed, fewer: with segments of 1 MiB, and larger than the smallest splits.
fn log(parent: &Path, codec: Codec) -> (PathBuf, i64) {
    let batches: Vec<_> = (0..200).map(|n| batch(BATCH * n, codec)).collect();
    (PartitionBuilder::rolled(Indexing::every(4096), 1 << 20, batches).write(parent, "t-0"), 200 * BATCH)
}

/// What a reading returned.
#[derive(Debug, PartialEq)]
struct Found {
    rows: Vec<Row>,
    error: Option<String>,
    damaged_ranges: Vec<(i64, Option<i64>)>,
    records: u64,
}

/// The offset, the value, and whether the row is a damaged range. Without columns only the last.
type Row = (Option<i64>, Option<Vec<u8>>, bool);

fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let offset = |row| Some(batch.column_by_name("offset")?.as_primitive::<Int64Type>().value(row));
    let value = |row| {
        let column = batch.column_by_name("value")?;
        let bytes = match column.as_binary_opt::<i32>() {
            Some(values) => values.value(row),
            None => column.as_binary_view().value(row),
        };
        column.is_valid(row).then(|| bytes.to_vec())
    };
    let is_damage = |row| batch.column_by_name("error").is_some_and(|errors| errors.is_valid(row));
    (0..batch.num_rows()).map(|row| (offset(row), value(row), is_damage(row))).collect()
}

/// Reads all; `keep`: whether record batches are kept until the end, so that no memory is used again.
fn read(log: &Log, options: ReaderOptions, keep: bool) -> Found {
    let progress = Progress::default();
    let (max_rows, threads) = (options.max_rows, options.threads);
    let mut reader = Reader::new(std::iter::once(Ok(log.clone())), options, progress.clone());
    let (mut rows, mut kept) = (Vec::new(), Vec::new());
    let error = loop {
        match reader.next_batch() {
            Ok(Some(batch)) => {
                assert!(batch.num_rows() <= max_rows && batch.num_rows() > 0, "{threads} threads");
                if keep {
                    kept.push(batch);
                } else {
                    rows.extend(rows_of(&batch));
                }
            }
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    assert!(matches!(reader.next_batch(), Ok(None)), "nothing follows the end");
    rows.extend(kept.iter().flat_map(rows_of));
    let damaged = progress.damaged_ranges();
    Found {
        rows,
        error,
        damaged_ranges: damaged.iter().map(|range| (range.start_offset, range.end_offset)).collect(),
        records: progress.stats().records,
    }
}

fn with_columns(scan: ScanOptions) -> ReaderOptions {
    ReaderOptions { scan, columns: vec![Column::Offset, Column::Value], ..ReaderOptions::default() }
}

/// Reads with one thread and with several, without error, and compares all; returns the rows.
fn compare(log: &Log, options: &ReaderOptions) -> Vec<Row> {
    let one = read(log, options.clone(), false);
    assert!(one.error.is_none(), "{:?}", one.error);
    for threads in threads(log) {
        let found = read(log, ReaderOptions { threads, ..options.clone() }, threads % 2 == 1);
        assert_eq!(found.error, None, "{threads} threads");
        assert_eq!(found.damaged_ranges, one.damaged_ranges, "{threads} threads");
        assert!(found == one, "{threads} threads: {} rows of {}", found.rows.len(), one.rows.len());
    }
    one.rows
}

#[test]
fn the_rows_are_the_same_with_any_limits_and_number_of_threads() {
    for codec in [Codec::None, Codec::Zstd] {
        let folder = folder();
        let (dir, end) = log(folder.path(), codec);
        let expected: Vec<_> = (0..end).map(|offset| (Some(offset), Some(value(offset)), false)).collect();
        for log in both(&dir) {
            let limits =
                [(usize::MAX, usize::MAX), (7, 1 << 20), (usize::MAX, 1), (65_536, 20_000), (1000, 1 << 30)];
            for (n, (max_rows, max_bytes)) in limits.into_iter().enumerate() {
                let is_view = n % 2 == usize::from(codec == Codec::None);
                for value_type in [ByteType::Binary, ByteType::BinaryView] {
                    if !is_exhaustive() && is_view != (value_type == ByteType::BinaryView) {
                        continue;
                    }
                    let options = with_columns(ScanOptions::default());
                    let rows = compare(&log, &ReaderOptions { max_rows, max_bytes, value_type, ..options });
                    assert!(rows == expected, "{codec:?} {max_rows} {max_bytes} {value_type:?}");
                }
            }
            let options = ReaderOptions { columns: Vec::new(), ..ReaderOptions::default() };
            assert_eq!(compare(&log, &options).len(), expected.len());
            for (max_rows, max_bytes) in [(0, 1000), (1000, 0)] {
                let options = ReaderOptions { max_rows, max_bytes, ..ReaderOptions::default() };
                assert!(compare(&log, &options).is_empty());
            }
        }
    }
}

#[test]
fn a_log_without_an_index_or_with_a_false_one_returns_the_same() {
    let entry = |n: i32, position: i32| [n.to_be_bytes(), position.to_be_bytes()].concat();
    let far = (0..500).flat_map(|n| entry(19_900 + n / 5, 0)).collect();
    let descending = (0..500).rev().flat_map(|n| entry(n * 5, n * 5000)).collect();
    let same = (0..500).flat_map(|n| entry(n * 5, 60_000)).collect();
    for index in [None, Some(Vec::new()), Some(far), Some(descending), Some(same)] {
        let folder = folder();
        let dir =
            PartitionBuilder::new(Indexing::every(4096)).segment(0, batches()).write(folder.path(), "t-0");
        match index {
            Some(bytes) => fs::write(dir.join(file_name(0, "index")), bytes).unwrap(),
            None => fs::remove_file(dir.join(file_name(0, "index"))).unwrap(),
        }
        for log in both(&dir) {
            assert_eq!(compare(&log, &with_columns(ScanOptions::default())).len(), 20_000);
        }
    }
}

#[test]
fn aborted_transactions_are_omitted_from_every_split() {
    let folder = folder();
    let mut batches = Vec::new();
    let mut expected = Vec::new();
    for n in 0..150 {
        let base = (BATCH + 1) * n;
        let records = (base..base + BATCH).map(|offset| Rec::at(offset).value(value(offset)));
        batches.push(BatchV2::new(base).transaction(7, 0, 0).records(records).build());
        let commits = n % 3 != 0;
        batches.push(BatchV2::marker(base + BATCH, if commits { COMMIT } else { ABORT }, 7, 0, base).build());
        if commits {
            expected.extend((base..base + BATCH).map(|offset| (Some(offset), Some(value(offset)), false)));
        }
    }
    let dir = PartitionBuilder::rolled(Indexing::every(4096), 1 << 20, batches).write(folder.path(), "t-0");
    for log in both(&dir) {
        let scan = ScanOptions { isolation_level: IsolationLevel::ReadCommitted, ..ScanOptions::default() };
        assert!(compare(&log, &with_columns(scan)) == expected);
    }
}

#[test]
fn gaps_between_offsets_and_old_message_sets_are_the_same() {
    let folder = folder();
    let batches: Vec<_> = (0..200)
        .filter(|n| n % 7 != 3)
        .flat_map(|n| {
            let base = BATCH * n;
            if n % 2 == 0 {
                return vec![batch(base, Codec::Zstd)];
            }
            let records = (base..base + 40).map(|offset| Rec::at(offset).value(value(offset)));
            MessageSet::v1(base).codec(Codec::Gzip).records(records).build()
        })
        .collect();
    let dir = PartitionBuilder::rolled(Indexing::every(4096), 1 << 20, batches).write(folder.path(), "t-0");
    for log in both(&dir) {
        assert!(compare(&log, &with_columns(ScanOptions::default())).len() > 10_000);
    }
}

#[test]
fn damage_at_the_end_of_the_log_is_the_same() {
    let folder = folder();
    let (dir, end) = log(folder.path(), Codec::None);
    let torn = batch(end, Codec::None);
    fs::write(dir.join(file_name(end, "log")), &torn.bytes[..3000]).unwrap();
    for log in both(&dir) {
        for on_damage in [OnDamage::Skip, OnDamage::Report] {
            for start_time in [None, Some(end - 5), Some(end + 1000)] {
                let ranges = Ranges { start_time, ..Ranges::default() };
                compare(&log, &with_columns(ScanOptions { on_damage, ranges, ..ScanOptions::default() }));
            }
        }
    }
}

#[test]
fn ranges_and_times_that_skip_most_of_the_log_return_the_same() {
    let folder = folder();
    let (dir, end) = log(folder.path(), Codec::Zstd);
    for log in both(&dir) {
        for (start, stop) in [(0, 1), (0, 0), (end - 1, end), (end / 2 - 3, end / 2 + 3), (450, end - 450)] {
            for ranges in [
                Ranges { start_time: Some(start), end_time: Some(stop), ..Ranges::default() },
                Ranges { start_offset: Some(start), end_offset: Some(stop), ..Ranges::default() },
            ] {
                let rows = compare(&log, &with_columns(ScanOptions { ranges, ..ScanOptions::default() }));
                assert_eq!(rows.len() as i64, stop - start);
            }
        }
    }
}

#[test]
fn damage_is_the_same_and_the_rows_before_it_are_returned() {
    let some = [vec![0], vec![1], vec![77, 78, 140], vec![198], (3..90).collect(), (20..199).collect()];
    let ends = [vec![199], (100..200).collect(), (0..199).collect(), (0..200).step_by(2).collect()];
    for (number, at) in some.into_iter().chain(ends).enumerate() {
        let folder = folder();
        let mut batches = batches();
        for n in &at {
            batches[*n].bytes[5000] ^= 1;
        }
        let dir =
            PartitionBuilder::rolled(Indexing::every(4096), 1 << 20, batches).write(folder.path(), "t-0");
        for log in both(&dir) {
            for on_damage in on_damage(&log, number) {
                compare(&log, &with_columns(ScanOptions { on_damage, ..ScanOptions::default() }));
            }
            let options = with_columns(ScanOptions::default());
            let one = read(&log, options.clone(), false);
            // a damaged batch at the end of the log is the end of the data
            assert_eq!(one.error.is_some(), at[0] < 199);
            for threads in threads(&log) {
                let found = read(&log, ReaderOptions { threads, ..options.clone() }, false);
                assert_eq!(found.error, one.error, "{threads} threads, batches {at:?}");
                if one.error.is_none() {
                    assert!(found == one);
                    continue;
                }
                // the rows of the last record batch, which is not full, are not returned
                let (before, returned) = (at[0] as i64 * BATCH, found.rows.len() as i64);
                assert!((before - 20_000..=before).contains(&returned), "{returned} of {before}");
                assert!(found.rows.iter().map(|row| row.0).eq((0..returned).map(Some)));
            }
        }
    }
}

/// Batches to damage, each with a byte and a bit: a run of batches, or some anywhere. Not in the base offset
/// and the leader epoch, which no checksum covers: they are compared with those of the batches before, and
/// the first batch of a split has none.
fn damage() -> impl Strategy<Value = Vec<(usize, usize, u8)>> {
    let byte = || prop_oneof![8..12usize, 16..61usize, 100..16_000usize];
    let run = (0..200usize, 1..60usize, byte(), 0..8u8).prop_map(|(from, count, byte, bit)| {
        (from..(from + count).min(200)).map(|at| (at, byte, bit)).collect()
    });
    prop_oneof![run, proptest::collection::vec((0..200usize, byte(), 0..8u8), 1..40)]
}

proptest! {
    #![proptest_config(fixed_seed(20))]

    #[test]
    fn damage_anywhere_is_skipped_and_reported_the_same(damage in damage()) {
        let folder = folder();
        let mut batches = batches();
        let number = damage.len();
        for (at, byte, bit) in damage {
            batches[at].bytes[byte] ^= 1 << bit;
        }
        let dir = PartitionBuilder::rolled(Indexing::every(4096), 1 << 20, batches).write(folder.path(), "t-0");
        for log in both(&dir) {
            for on_damage in on_damage(&log, number) {
                compare(&log, &with_columns(ScanOptions { on_damage, ..ScanOptions::default() }));
            }
        }
    }
}

/// The number of checks after which a signal arrives.
static CHECKS_LEFT: AtomicUsize = AtomicUsize::new(0);

fn interrupt() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    match CHECKS_LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
        Ok(_) => Ok(()),
        Err(_) => Err("a signal".into()),
    }
}

#[test]
fn a_signal_ends_the_reading_at_once() {
    let folder = folder();
    let (dir, end) = log(folder.path(), Codec::Zstd);
    let log_options = LogOptions { interrupt: Interrupt(interrupt), ..options(Io::Pread) };
    let mut interrupted = 0;
    for checks in (0..2000).step_by(23) {
        CHECKS_LEFT.store(usize::MAX, Ordering::Relaxed);
        let log = Log::open(&dir, log_options.clone()).unwrap();
        CHECKS_LEFT.store(checks, Ordering::Relaxed);
        let options = ReaderOptions { threads: 3, ..with_columns(ScanOptions::default()) };
        let mut reader = Reader::new(std::iter::once(Ok(log)), options, Progress::default());
        let mut rows = Vec::new();
        let error = loop {
            match reader.next_batch() {
                Ok(Some(batch)) => rows.extend(rows_of(&batch)),
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        assert!(rows.iter().map(|row| row.0).eq((0..rows.len() as i64).map(Some)));
        match error {
            Some(error) => {
                interrupted += 1;
                assert!(matches!(error, Error::Interrupted(_)), "{error}");
            }
            None => assert_eq!(rows.len() as i64, end),
        }
        assert!(matches!(reader.next_batch(), Ok(None)));
    }
    assert!(interrupted > 5, "{interrupted}");
}

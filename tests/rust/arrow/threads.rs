//! Several threads return what one thread returns: rows, damaged ranges, statistics and errors.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use cordwood::arrow::{ByteType, Column, Progress, Reader, ReaderOptions};
use cordwood::log::{LogOptions, OnDamage, Ranges, ScanOptions};
use cordwood::types::{Interrupt, Io};
use cordwood::{Error, Log};

use crate::support::batches::{BatchV2, Built, Codec, Rec};
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::reading::{both, folder, options};

const THREADS: [usize; 4] = [2, 3, 8, usize::MAX];

/// The records of a batch.
const BATCH: i64 = 100;

/// Text that compresses a little, the same for the same offset.
fn value(offset: i64) -> Vec<u8> {
    let mut state = offset as u64 + 1;
    let letter = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        b'a' + (state >> 60) as u8
    };
    (0..300).map(letter).collect()
}

fn batch(base: i64, codec: Codec) -> Built {
    let records =
        (base..base + BATCH).map(|offset| Rec::at(offset).key(offset.to_be_bytes()).value(value(offset)));
    BatchV2::new(base).codec(codec).records(records).build()
}

/// A log of 6 MiB or, compressed, fewer: with segments of 2 MiB, and larger than the smallest splits.
fn log(parent: &Path, codec: Codec) -> (PathBuf, i64) {
    let batches: Vec<_> = (0..200).map(|n| batch(BATCH * n, codec)).collect();
    (PartitionBuilder::rolled(Indexing::every(4096), 2 << 20, batches).write(parent, "t-0"), 200 * BATCH)
}

/// What a reading returned.
#[derive(Debug, PartialEq)]
struct Found {
    rows: Vec<(i64, Vec<u8>)>,
    error: Option<String>,
    damaged_ranges: Vec<(i64, Option<i64>)>,
    records: u64,
}

fn rows_of(batch: &RecordBatch) -> impl Iterator<Item = (i64, Vec<u8>)> {
    let offsets = batch.column(0).as_primitive::<Int64Type>();
    let values: Vec<Vec<u8>> = match batch.column(1).as_binary_opt::<i32>() {
        Some(values) => values.iter().map(|value| value.unwrap().to_vec()).collect(),
        None => batch.column(1).as_binary_view().iter().map(|value| value.unwrap().to_vec()).collect(),
    };
    offsets.values().to_vec().into_iter().zip(values)
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
                assert!(batch.num_rows() <= max_rows.max(1) && batch.num_rows() > 0, "{threads} threads");
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

#[test]
fn the_rows_are_the_same_with_any_limits_and_number_of_threads() {
    for codec in [Codec::None, Codec::Zstd] {
        let folder = folder();
        let (dir, end) = log(folder.path(), codec);
        let expected: Vec<_> = (0..end).map(|offset| (offset, value(offset))).collect();
        for log in both(&dir) {
            for (max_rows, max_bytes) in
                [(usize::MAX, usize::MAX), (7, 1 << 20), (usize::MAX, 1), (65_536, 20_000), (1000, 1 << 30)]
            {
                for (threads, value_type) in THREADS
                    .into_iter()
                    .flat_map(|threads| [(threads, ByteType::Binary), (threads, ByteType::BinaryView)])
                {
                    let options = ReaderOptions {
                        max_rows,
                        max_bytes,
                        threads,
                        value_type,
                        ..with_columns(ScanOptions::default())
                    };
                    let found = read(&log, options, threads == 3);
                    assert!(found.error.is_none(), "{found:?}");
                    assert!(
                        found.rows == expected,
                        "{codec:?} {max_rows} {max_bytes} {threads} {value_type:?}"
                    );
                    assert_eq!(found.records, end as u64);
                }
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
                let scan = ScanOptions { ranges, ..ScanOptions::default() };
                let one = read(&log, with_columns(scan), false);
                assert_eq!(one.rows.len() as i64, stop - start);
                for threads in THREADS {
                    let options = ReaderOptions { threads, ..with_columns(scan) };
                    assert!(read(&log, options, false) == one, "{threads} threads, {ranges:?}");
                }
            }
        }
    }
}

#[test]
fn damage_is_the_same_and_the_rows_before_it_are_returned() {
    for at in [0, 1, 77, 198] {
        let folder = folder();
        let mut batches: Vec<_> = (0..200).map(|n| batch(BATCH * n, Codec::None)).collect();
        let broken = batches.get_mut(at).unwrap();
        broken.bytes[5000] ^= 1;
        let dir =
            PartitionBuilder::rolled(Indexing::every(4096), 2 << 20, batches).write(folder.path(), "t-0");
        for log in both(&dir) {
            for on_damage in [OnDamage::Raise, OnDamage::Skip] {
                let scan = ScanOptions { on_damage, ..ScanOptions::default() };
                let one = read(&log, with_columns(scan), false);
                assert_eq!(one.error.is_some(), on_damage == OnDamage::Raise);
                for threads in THREADS {
                    let found = read(&log, ReaderOptions { threads, ..with_columns(scan) }, false);
                    assert_eq!(found.error, one.error, "{threads} threads, batch {at}");
                    if found.error.is_none() {
                        assert!(found == one, "{threads} threads, batch {at}");
                        continue;
                    }
                    // the rows of the last record batch, which is not full, are not returned
                    let before = at as i64 * BATCH;
                    let returned = found.rows.len() as i64;
                    assert!((before - 20_000..=before).contains(&returned), "{returned} of {before}");
                    assert!(found.rows.iter().map(|(offset, _)| *offset).eq(0..returned));
                }
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
        assert!(rows.iter().map(|(offset, _)| *offset).eq(0..rows.len() as i64));
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

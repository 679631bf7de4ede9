//! Records into columns: `arrow::Reader`, against Kafka's records copied into columns.
//!
//! Both verify every checksum, and copy keys and values; with *views* only Kafka's side copies them. Kafka's
//! columns are filled again and again, ours are new ones for each record batch, which is dropped at once.

use std::hint::black_box;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMillisecondType};
use arrow_array::{Array, RecordBatch};
use cordwood::Log;
use cordwood::arrow::{ByteType, Column, Progress, Reader, ReaderOptions};
use cordwood::types::Io;

use super::contest::{Contest, Row};
use super::log_targets::opened;
use super::turns::Clock;

const ALL: [Column; 4] = [Column::Offset, Column::Timestamp, Column::Key, Column::Value];
const TWO: [Column; 2] = [Column::Offset, Column::Timestamp];

/// How Kafka reads: a batch at a time, as a broker, or 1 MiB at a time, as a consumer.
const SOURCES: [(&str, &str); 2] =
    [("file", "FileRecords, streamingIterator"), ("fetched", "MemoryRecords, streamingIterator")];

/// What is read.
#[derive(Debug, Clone, Copy)]
struct Selection {
    columns: &'static [Column],
    /// The columns' name in the JVM.
    selected: &'static str,
    /// A part of the rows' names.
    part: &'static str,
    byte_type: ByteType,
    io: Io,
}

impl Selection {
    const ALL: Self =
        Self { columns: &ALL, selected: "all", part: "", byte_type: ByteType::Binary, io: Io::Mmap };
    const READ: Self = Self { part: "/pread", io: Io::Pread, ..Self::ALL };
    const VIEWS: Self = Self { part: "/views", byte_type: ByteType::BinaryView, ..Self::ALL };
    const READ_VIEWS: Self = Self { part: "/views/pread", io: Io::Pread, ..Self::VIEWS };
    const TWO: Self = Self { columns: &TWO, selected: "two", part: "/offset+timestamp", ..Self::ALL };

    fn batches(self, log: &Log) -> impl Iterator<Item = RecordBatch> {
        let options = ReaderOptions {
            columns: self.columns.to_vec(),
            key_type: self.byte_type,
            value_type: self.byte_type,
            ..ReaderOptions::default()
        };
        let reader = Reader::new(std::iter::once(Ok(log.clone())), options, Progress::default());
        reader.map(|batch| batch.unwrap())
    }
}

pub fn run(contest: &mut Contest) {
    // plain ones first: code of the JVM that has seen only them is the fastest for them
    for batch_kib in [16, 1] {
        of_log(contest, ("none", batch_kib), Selection::ALL, Some(3.0));
        of_log(contest, ("none", batch_kib), Selection::READ, None);
        of_log(contest, ("none", batch_kib), Selection::VIEWS, (batch_kib == 16).then_some(5.0));
        of_log(contest, ("none", batch_kib), Selection::READ_VIEWS, None);
        of_log(contest, ("none", batch_kib), Selection::TWO, Some(5.0));
    }
    for (codec, floor) in [("lz4", 2.2), ("zstd", 2.0), ("snappy", 2.5), ("gzip", 1.6)] {
        of_log(contest, (codec, 16), Selection::ALL, Some(floor));
    }
}

fn of_log(
    contest: &mut Contest,
    (codec, batch_kib): (&'static str, usize),
    selection: Selection,
    floor: Option<f64>,
) {
    let rows = SOURCES.map(|(source, peer)| {
        (format!("columns/{batch_kib}KiB/{codec}{}/{source}", selection.part), source, peer)
    });
    if !rows.iter().any(|(name, ..)| contest.wants(name)) {
        return;
    }
    let dir = contest.scanned_log(batch_kib, codec);
    let log = opened(&dir, selection.io);
    let elements = compare(contest, &dir, &log, selection);
    for (name, source, peer) in rows {
        if contest.wants(&name) {
            let row = Row { name, peer, floor, clock: Clock::Cpu, elements };
            let command = ["columns", dir.to_str().unwrap(), source, selection.selected];
            contest.race(row, || digest(selection.batches(&log)), &command);
        }
    }
}

/// Rows, lengths and the last row, as in the JVM: the sum is the same however the rows are cut.
fn digest(batches: impl Iterator<Item = RecordBatch>) -> i64 {
    let (mut sum, mut last) = (0i64, 0);
    for batch in batches {
        let batch = black_box(batch);
        sum += batch.num_rows() as i64;
        for (column, factor) in batch.columns()[2..].iter().zip([31, 961]) {
            sum += factor * length(column);
        }
        let end = batch.num_rows() - 1;
        let offset = batch.column(0).as_primitive::<Int64Type>().value(end);
        last = offset
            .wrapping_mul(31)
            .wrapping_add(batch.column(1).as_primitive::<TimestampMillisecondType>().value(end));
    }
    sum.wrapping_add(last)
}

/// The number of bytes of all values.
fn length(column: &dyn Array) -> i64 {
    match column.as_binary_view_opt() {
        Some(views) => views.lengths().map(i64::from).sum(),
        None => i64::from(*column.as_binary::<i32>().value_offsets().last().unwrap()),
    }
}

/// Compares a hash of all rows and columns, read as the selection says; returns the number of rows.
fn compare(contest: &mut Contest, dir: &Path, log: &Log, selection: Selection) -> usize {
    let (mut hash, mut rows) = (0, 0);
    for batch in (Selection { columns: &ALL, ..selection }).batches(log) {
        rows += batch.num_rows();
        let offsets = batch.column(0).as_primitive::<Int64Type>();
        let timestamps = batch.column(1).as_primitive::<TimestampMillisecondType>();
        let [keys, values] = [2, 3].map(|column| bytes_of(batch.column(column)));
        for row in 0..batch.num_rows() {
            hash = hashed(hashed(hash, offsets.value(row)), timestamps.value(row));
            hash = hashed_bytes(hashed_bytes(hash, keys(row)), values(row));
        }
    }
    let theirs = contest.kafka.ask(&["contents", dir.to_str().unwrap()]).number("sum");
    assert_eq!(hash, theirs, "{}: the records differ", dir.display());
    rows
}

/// The value of a row, of copied bytes or of views.
fn bytes_of<'a>(column: &'a dyn Array) -> impl Fn(usize) -> Option<&'a [u8]> {
    let (copies, views) = (column.as_binary_opt::<i32>(), column.as_binary_view_opt());
    move |row| {
        let value = || copies.map(|copies| copies.value(row)).or_else(|| views.map(|views| views.value(row)));
        if column.is_null(row) { None } else { value() }
    }
}

/// FNV-1a, 8 bytes at a time.
fn hashed(hash: i64, number: i64) -> i64 {
    (hash ^ number).wrapping_mul(0x0100_0000_01B3)
}

/// The length, −1 for null, and the bytes.
fn hashed_bytes(hash: i64, bytes: Option<&[u8]>) -> i64 {
    let Some(bytes) = bytes else { return hashed(hash, -1) };
    bytes.iter().fold(hashed(hash, bytes.len() as i64), |hash, byte| hashed(hash, i64::from(*byte as i8)))
}

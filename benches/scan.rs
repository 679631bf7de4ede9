//! Records to Arrow: scans of a mapped partition into record batches, with the default columns and with only `offset`
//! and `timestamp`, for each codec.
//!
//! `naive/rows` verifies the checksum, decompresses with each library's simplest call, and decodes every record into a
//! row of owned values. `parts` is the minimum cost of the work: checksum, decompression and decoding by this crate, and
//! one copy of the bytes of keys and values; no columns, no headers.
//!
//! Bytes are those of the batches before compression, so that rates of different codecs can be compared.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a bench fails by panicking, and its sizes are its own"
)]

mod support;

use std::hint::black_box;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMillisecondType};
use arrow_array::{Array, RecordBatch};
use cordwood::arrow::{Column, Progress, Reader, ReaderOptions};
use cordwood::fs::{FileBytes, SystemFile};
use cordwood::record::{BatchHeader, Payload, Records};
use cordwood::types::Io;
use cordwood::{Log, LogOptions};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::batches::{Codec, crc32c};
use support::naive::{Header, Row, decompressed, rows};
use support::partition::file_name;
use support::race::group;
use support::written::{Shape, Sums, Written};

const CODECS: [(&str, Codec); 5] = [
    ("none", Codec::None),
    ("lz4", Codec::Lz4),
    ("zstd", Codec::Zstd),
    ("snappy", Codec::SnappyXerial),
    ("gzip", Codec::Gzip),
];

fn reader(log: &Log, columns: &[Column]) -> Reader {
    let options = ReaderOptions { columns: columns.to_vec(), ..ReaderOptions::default() };
    Reader::new(std::iter::once(Ok(log.clone())), options, Progress::default())
}

/// Rows and bytes of all record batches. Each batch is dropped at once, as in streaming.
fn columns(log: &Log, columns: &[Column]) -> u64 {
    let batches = reader(log, columns);
    batches.map(|batch| black_box(batch.unwrap()).num_rows() as u64).sum()
}

fn sums_of_columns(log: &Log) -> Sums {
    let mut sums = Sums::default();
    for batch in reader(log, &Column::DEFAULT) {
        add_columns(&mut sums, &batch.unwrap());
    }
    sums
}

fn add_columns(sums: &mut Sums, batch: &RecordBatch) {
    let column = |name| batch.column_by_name(name).unwrap();
    let offsets = column("offset").as_primitive::<Int64Type>();
    let times = column("timestamp").as_primitive::<TimestampMillisecondType>();
    let (keys, values) = (column("key").as_binary::<i32>(), column("value").as_binary::<i32>());
    let headers = column("headers").as_list::<i32>();
    for row in 0..batch.num_rows() {
        let own = headers.is_valid(row).then(|| headers.value(row));
        let mut pairs = Vec::new();
        if let Some(own) = &own {
            let own = own.as_struct();
            let (names, contents) = (own.column(0).as_string::<i32>(), own.column(1).as_binary::<i32>());
            pairs.extend(
                names.iter().zip(contents).map(|(name, content)| (name.unwrap().as_bytes(), content)),
            );
        }
        let [key, value] = [keys, values].map(|column| column.is_valid(row).then(|| column.value(row)));
        sums.add(offsets.value(row), times.value(row), key, value, pairs);
    }
}

fn sums_of_two_columns(log: &Log) -> (u64, i64, i64) {
    let mut sums = (0, 0i64, 0i64);
    for batch in reader(log, &[Column::Offset, Column::Timestamp]) {
        let batch = batch.unwrap();
        assert_eq!(batch.num_columns(), 2);
        sums.0 += batch.num_rows() as u64;
        let offsets = batch.column(0).as_primitive::<Int64Type>().values();
        let times = batch.column(1).as_primitive::<TimestampMillisecondType>().values();
        sums.1 = offsets.iter().fold(sums.1, |sum, offset| sum.wrapping_add(*offset));
        sums.2 = times.iter().fold(sums.2, |sum, time| sum.wrapping_add(*time));
    }
    sums
}

/// Passes each batch's records as rows to `visit`.
fn naive(maps: &[FileBytes], mut visit: impl FnMut(Vec<Row>)) {
    for map in maps {
        let mut rest = map.mapped().unwrap();
        while !rest.is_empty() {
            let header = Header::new(rest);
            let (batch, after) = rest.split_at(header.size as usize);
            assert_eq!(crc32c(&batch[21..]), header.crc);
            visit(rows(&header, &decompressed(header.codec, &batch[61..])));
            rest = after;
        }
    }
}

/// The number of records, and the bytes of their keys and values.
fn parts(maps: &[FileBytes]) -> (u64, u64) {
    let (mut buffer, mut copied, mut found) = (Vec::new(), Vec::new(), (0, 0));
    for map in maps {
        let mut rest = map.mapped().unwrap();
        while !rest.is_empty() {
            let header = BatchHeader::parse(rest, rest.len() as u64).unwrap();
            let (batch, after) = rest.split_at(header.size as usize);
            header.ensure_valid(batch).unwrap();
            let (mut records, payload) = Records::open(header, batch, &mut buffer).unwrap();
            let payload = match payload {
                Payload::Batch(start) => &batch[start..],
                Payload::Buffer => &buffer,
            };
            while let Some(record) = records.next(payload).unwrap() {
                found.0 += 1;
                copied.extend_from_slice(record.key.unwrap_or_default());
                copied.extend_from_slice(record.value.unwrap_or_default());
            }
            if copied.len() > 16 << 20 {
                found.1 += copied.len() as u64;
                black_box(&copied);
                copied.clear();
            }
            rest = after;
        }
    }
    (found.0, found.1 + copied.len() as u64)
}

fn scan(criterion: &mut Criterion) {
    for (codec_name, codec) in CODECS {
        for (size, batch_bytes) in [("1KiB", 1 << 10), ("16KiB", 16 << 10)] {
            if batch_bytes == 1 << 10 && codec != Codec::None {
                continue;
            }
            let written =
                Written::new(Shape { batch_bytes, codec, log_bytes: 128 << 20, segment_bytes: 64 << 20 });
            let log = Log::open(&written.dir, LogOptions { io: Io::Mmap, ..LogOptions::default() }).unwrap();
            let map = |segment: &std::sync::Arc<cordwood::segment::Segment>| {
                let path = written.dir.join(file_name(segment.base_offset(), "log"));
                FileBytes::new(SystemFile::open(&path).unwrap(), None, true).unwrap()
            };
            let maps: Vec<_> = log.segments().iter().map(map).collect();

            let right = &written.sums;
            assert_eq!(sums_of_columns(&log), *right);
            assert_eq!(sums_of_two_columns(&log), (right.records, right.offsets, right.timestamps));
            let mut sums = Sums::default();
            naive(&maps, |rows| {
                for row in rows {
                    let headers = row.headers.iter().map(|(name, value)| (name.as_slice(), value.as_deref()));
                    sums.add(row.offset, row.timestamp, row.key.as_deref(), row.value.as_deref(), headers);
                }
            });
            assert_eq!(sums, *right);
            let copied = right.keys.len() + right.values.len();
            assert_eq!(parts(&maps), (right.records, copied));

            let rows = || {
                let mut records = 0;
                naive(&maps, |rows| records += black_box(rows).len() as u64);
                records
            };
            let arms: [(&str, &dyn Fn() -> u64); 4] = [
                ("cordwood/default", &|| columns(&log, &Column::DEFAULT)),
                ("cordwood/offset_timestamp", &|| columns(&log, &[Column::Offset, Column::Timestamp])),
                ("naive/rows", &rows),
                ("parts", &|| parts(&maps).0),
            ];
            let mut group = group(criterion, &format!("scan/{codec_name}/{size}"));
            group.throughput(Throughput::ElementsAndBytes {
                elements: right.records,
                bytes: written.plain_bytes,
            });
            for (arm, run) in arms {
                group.bench_function(arm, |bencher| bencher.iter(|| assert_eq!(run(), right.records)));
            }
            group.finish();
        }
    }
}

criterion_group!(benches, scan);
criterion_main!(benches);

//! Records to Arrow: scans of a mapped partition into record batches, with the default columns and with only
//! `offset` and `timestamp`, for each codec.
//!
//! `naive/rows` verifies the checksum, decompresses with each library's simplest call, and decodes every
//! record into a row of owned values. `parts` is the minimum cost of the work: checksum, decompression and
//! decoding by this crate, and one copy of the bytes of keys and values; no columns, no headers.
//!
//! `pread` reads by position, as by default, into buffers that are used again.
//!
//! `cordwood/views` has `offset`, `timestamp`, and keys and values as views. `lengths`, only of uncompressed
//! batches, is a loop that verifies the checksum and reads the lengths and deltas of every record: the
//! minimum cost of columns that copy nothing.
//!
//! Bytes are those of the batches before compression, so that rates of different codecs can be compared.

use std::hint::black_box;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use cordwood::Log;
use cordwood::arrow::{ByteType, Column, Progress, Reader, ReaderOptions};
use cordwood::fs::FileBytes;
use cordwood::record::{BatchHeader, Payload, Records, V2_HEADER, varint};
use cordwood::types::Io;
use cordwood_benches as support;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::batches::Codec;
use support::columns::{columns, rows, sums_of_columns, sums_of_rows, sums_of_two_columns};
use support::race::group;
use support::written::{Shape, Written};

const CODECS: [(&str, Codec); 5] = [
    ("none", Codec::None),
    ("lz4", Codec::Lz4),
    ("zstd", Codec::Zstd),
    ("snappy", Codec::SnappyXerial),
    ("gzip", Codec::Gzip),
];

/// Offset, timestamp, and keys and values as views.
fn views(log: &Log) -> impl Iterator<Item = RecordBatch> {
    let options = ReaderOptions {
        columns: vec![Column::Offset, Column::Timestamp, Column::Key, Column::Value],
        key_type: ByteType::BinaryView,
        value_type: ByteType::BinaryView,
        ..ReaderOptions::default()
    };
    let reader = Reader::new(std::iter::once(Ok(log.clone())), options, Progress::default());
    reader.map(|batch| batch.unwrap())
}

/// The number of records, and the bytes of their keys and values.
fn sizes_of_views(log: &Log) -> (u64, u64) {
    let mut found = (0, 0);
    for batch in views(log) {
        found.0 += batch.num_rows() as u64;
        for column in &batch.columns()[2..] {
            found.1 += column.as_binary_view().iter().flatten().map(|bytes| bytes.len() as u64).sum::<u64>();
        }
    }
    found
}

/// As [`sizes_of_views`], of batches that are not compressed.
fn lengths(maps: &[FileBytes]) -> (u64, u64) {
    let mut found = (0, 0);
    for map in maps {
        let mut rest = map.mapped().unwrap();
        while !rest.is_empty() {
            let header = BatchHeader::parse(rest, rest.len() as u64).unwrap();
            let (batch, after) = rest.split_at(header.size as usize);
            header.ensure_valid(batch).unwrap();
            let mut records = &batch[V2_HEADER..];
            while !records.is_empty() {
                let length = varint::read_i32(&mut records).unwrap() as usize;
                let (record, next) = records.split_at(length);
                let mut fields = &record[1..];
                black_box(varint::read_i64(&mut fields).unwrap());
                black_box(varint::read_i32(&mut fields).unwrap());
                for _ in 0..2 {
                    let length = varint::read_i32(&mut fields).unwrap().max(0) as usize;
                    found.1 += length as u64;
                    fields = &fields[length..];
                }
                found.0 += 1;
                records = next;
            }
            rest = after;
        }
    }
    found
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
            let log = written.open(Io::Mmap);
            let by_position = written.open(Io::Pread);
            let maps = written.maps();

            let right = &written.sums;
            assert_eq!(sums_of_columns(&log), *right);
            assert_eq!(sums_of_columns(&by_position), *right);
            assert_eq!(sums_of_two_columns(&log), (right.records, right.offsets, right.timestamps));
            assert_eq!(sums_of_rows(&maps), *right);
            let copied = right.keys.len() + right.values.len();
            assert_eq!(parts(&maps), (right.records, copied));
            assert_eq!(sizes_of_views(&log), (right.records, copied));

            let rows_of_views = || views(&log).map(|batch| black_box(batch).num_rows() as u64).sum();
            let arms: [(&str, &dyn Fn() -> u64); 8] = [
                ("cordwood/default", &|| columns(&log, &Column::DEFAULT)),
                ("cordwood/offset_timestamp", &|| columns(&log, &[Column::Offset, Column::Timestamp])),
                ("cordwood/default/pread", &|| columns(&by_position, &Column::DEFAULT)),
                ("cordwood/offset_timestamp/pread", &|| {
                    columns(&by_position, &[Column::Offset, Column::Timestamp])
                }),
                ("cordwood/views", &rows_of_views),
                ("naive/rows", &|| rows(&maps)),
                ("parts", &|| parts(&maps).0),
                ("lengths", &|| lengths(&maps).0),
            ];
            let is_plain = codec == Codec::None;
            assert!(!is_plain || lengths(&maps) == (right.records, copied));
            let arms = arms.into_iter().filter(|(arm, _)| is_plain || *arm != "lengths");
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

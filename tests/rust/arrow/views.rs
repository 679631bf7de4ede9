//! Keys and values as views: the same bytes as copies, which stay readable whatever happens to the files.

use std::fs::{self, OpenOptions};

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use cordwood::arrow::{ByteType, Column, Progress, Reader, ReaderOptions};
use cordwood::log::{OnDamage, Ranges, ScanOptions};
use cordwood::types::Io;
use cordwood::{Error, Log, LogOptions};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::support::batches::{BatchV2, Built, Codec, Rec, crc32c};
use crate::support::fixed_seed;
use crate::support::golden;
use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::reading::{both, folder, open};

const MODES: [Io; 3] = [Io::Auto, Io::Mmap, Io::Pread];

fn options(byte_type: ByteType) -> ReaderOptions {
    let columns = vec![Column::Key, Column::Value];
    ReaderOptions { columns, key_type: byte_type, value_type: byte_type, ..ReaderOptions::default() }
}

fn read(log: &Log, options: ReaderOptions) -> Result<Vec<RecordBatch>, Error> {
    let mut reader = Reader::new(std::iter::once(Ok(log.clone())), options, Progress::default());
    std::iter::from_fn(|| reader.next_batch().transpose()).collect()
}

/// All values of a column of any type of bytes or text.
fn values(batches: &[RecordBatch], column: usize) -> Vec<Option<Vec<u8>>> {
    let values = |batch: &RecordBatch| -> Vec<Option<Vec<u8>>> {
        let array = batch.column(column);
        array.to_data().validate_full().unwrap();
        let owned = |value: Option<&[u8]>| value.map(<[u8]>::to_vec);
        match array.data_type() {
            DataType::Binary => array.as_binary::<i32>().iter().map(owned).collect(),
            DataType::BinaryView => array.as_binary_view().iter().map(owned).collect(),
            DataType::Utf8 => {
                array.as_string::<i32>().iter().map(|text| owned(text.map(str::as_bytes))).collect()
            }
            DataType::Utf8View => {
                array.as_string_view().iter().map(|text| owned(text.map(str::as_bytes))).collect()
            }
            other => panic!("{other}"),
        }
    };
    batches.iter().flat_map(values).collect()
}

/// The addresses of the buffers of a column of views.
fn buffers(batch: &RecordBatch, column: usize) -> Vec<usize> {
    batch
        .column(column)
        .as_binary_view()
        .data_buffers()
        .iter()
        .map(|buffer| buffer.as_ptr() as usize)
        .collect()
}

/// Batches with keys and values of all sizes around the limit of an inline view, and nulls.
fn mixed(codec: Codec) -> Vec<Built> {
    let record = |n: usize| {
        let record = Rec::at(1000 + n as i64);
        let record = if n.is_multiple_of(5) { record } else { record.key("k".repeat(n % 30)) };
        if n.is_multiple_of(7) { record } else { record.value(format!("{n}-{}", "é".repeat(n % 40))) }
    };
    let batch = |b: usize| {
        BatchV2::new(50 * b as i64).codec(codec).records((0..50).map(|n| record(50 * b + n))).build()
    };
    (0..40).map(batch).collect()
}

#[test]
fn views_of_every_golden_partition_equal_copies() {
    let mut rows = 0;
    for partition in golden::intact() {
        for log in both(&partition.dir) {
            for (max_rows, threads) in [(65_536, 1), (7, 1), (100, 2)] {
                let limited = |byte_type| ReaderOptions { max_rows, threads, ..options(byte_type) };
                let copies = read(&log, limited(ByteType::Binary)).unwrap();
                let views = read(&log, limited(ByteType::BinaryView)).unwrap();
                for column in [0, 1] {
                    assert_eq!(values(&views, column), values(&copies, column), "{}", partition.case);
                }
                rows += values(&views, 0).len();
            }
        }
    }
    assert!(rows > 10_000, "{rows}");
}

#[test]
fn views_of_every_damaged_partition_equal_copies() {
    for damaged in golden::damaged() {
        for log in both(&damaged.dir) {
            for on_damage in [OnDamage::Skip, OnDamage::Report] {
                let scan = ScanOptions { on_damage, ..ScanOptions::default() };
                let of = |byte_type| read(&log, ReaderOptions { scan, ..options(byte_type) }).unwrap();
                let (copies, views) = (of(ByteType::Binary), of(ByteType::BinaryView));
                for column in [0, 1] {
                    assert_eq!(values(&views, column), values(&copies, column), "{}", damaged.case);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(fixed_seed(80))]

    /// The checksum is right, so that the damaged bytes are decoded.
    #[test]
    fn views_of_damaged_records_with_right_checksums_equal_copies(
        flips in proptest::collection::vec((0..40usize, any::<Index>(), any::<u8>()), 1..60),
        is_compressed: bool,
        max_rows in 1..300usize,
    ) {
        let mut batches = mixed(if is_compressed { Codec::Lz4 } else { Codec::None });
        for (batch, at, byte) in flips {
            let bytes = &mut batches[batch].bytes;
            let at = 61 + at.index(bytes.len() - 61);
            bytes[at] = byte;
            let crc = crc32c(&bytes[21..]);
            bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        }
        let folder = folder();
        let dir = PartitionBuilder::rolled(Indexing::every(4096), 1 << 20, batches).write(folder.path(), "a-0");
        let scan = ScanOptions { on_damage: OnDamage::Skip, ..ScanOptions::default() };
        for log in both(&dir) {
            let of = |byte_type| {
                read(&log, ReaderOptions { scan, max_rows, ..options(byte_type) }).map_err(|error| error.to_string())
            };
            for [copied, viewed] in [[ByteType::Binary, ByteType::BinaryView], [ByteType::String, ByteType::StringView]] {
                match (of(copied), of(viewed)) {
                    (Ok(copies), Ok(views)) => for column in [0, 1] {
                        prop_assert_eq!(values(&views, column), values(&copies, column));
                    },
                    (copies, views) => prop_assert_eq!(copies.err(), views.err()),
                }
            }
        }
    }
}

#[test]
fn all_types_have_the_same_bytes() {
    for codec in Codec::ALL {
        let folder = folder();
        let dir =
            PartitionBuilder::rolled(Indexing::every(4096), 20_000, mixed(codec)).write(folder.path(), "a-0");
        for io in MODES {
            let log = open(&dir, io);
            let wanted = read(&log, options(ByteType::Binary)).unwrap();
            assert_eq!(values(&wanted, 0).len(), 2000);
            for byte_type in [ByteType::BinaryView, ByteType::String, ByteType::StringView] {
                let found = read(&log, options(byte_type)).unwrap();
                for column in [0, 1] {
                    assert_eq!(values(&found, column), values(&wanted, column), "{codec:?} {byte_type:?}");
                }
            }
        }
    }
}

#[test]
fn keys_and_values_are_in_the_same_blocks() {
    for codec in [Codec::None, Codec::Lz4] {
        let folder = folder();
        let dir = PartitionBuilder::rolled(Indexing::every(4096), 1 << 20, mixed(codec))
            .write(folder.path(), "a-0");
        for io in MODES {
            let views = read(&open(&dir, io), options(ByteType::BinaryView)).unwrap();
            assert_eq!(buffers(&views[0], 0), buffers(&views[0], 1), "{codec:?} {io:?}");
            // a whole file is one block, and each compressed batch is another
            assert_eq!(buffers(&views[0], 0).len(), if codec == Codec::None { 1 } else { 40 });
        }
    }
}

#[test]
fn only_with_mmap_are_views_in_the_mapping() {
    let folder = folder();
    let dir = PartitionBuilder::rolled(Indexing::every(4096), 20_000, mixed(Codec::None))
        .write(folder.path(), "a-0");
    for io in MODES {
        let log = open(&dir, io);
        let read = || read(&log, options(ByteType::BinaryView)).unwrap();
        // both readings are kept: memory that is free is used again
        let (first, second) = (read(), read());
        let same = buffers(&first[0], 1) == buffers(&second[0], 1);
        assert_eq!(same, io == Io::Mmap, "{io:?}");
    }
}

#[test]
fn views_stay_readable_after_the_log_is_closed_and_its_files_are_shortened_or_removed() {
    for codec in [Codec::None, Codec::Zstd] {
        for io in [Io::Auto, Io::Pread] {
            let folder = folder();
            let built = mixed(codec);
            let dir =
                PartitionBuilder::rolled(Indexing::every(4096), 20_000, built).write(folder.path(), "a-0");
            let log = open(&dir, io);
            let wanted = values(&read(&log, options(ByteType::Binary)).unwrap(), 1);
            let views = read(&log, options(ByteType::BinaryView)).unwrap();
            drop(log);
            OpenOptions::new().write(true).open(dir.join(file_name(0, "log"))).unwrap().set_len(0).unwrap();
            assert_eq!(values(&views, 1), wanted);
            fs::remove_dir_all(&dir).unwrap();
            assert_eq!(values(&views, 1), wanted);
        }
    }
}

#[test]
fn views_keep_the_mapping_but_no_descriptor() {
    let folder = folder();
    let dir = PartitionBuilder::rolled(Indexing::every(4096), 2_000, mixed(Codec::None))
        .write(folder.path(), "a-0");
    let log =
        Log::open(&dir, LogOptions { io: Io::Mmap, max_open_files: 4, ..LogOptions::default() }).unwrap();
    let open_logs = || {
        let links = fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        links
            .filter(|link| link.starts_with(&dir) && link.extension().is_some_and(|name| name == "log"))
            .count()
    };
    let views = read(&log, options(ByteType::BinaryView)).unwrap();
    assert!(buffers(&views[0], 1).len() > 10);
    assert!(open_logs() <= 4, "{}", open_logs());
    drop(log);
    assert_eq!(open_logs(), 0);
    assert_eq!(values(&views, 1).len(), 2000);
}

#[test]
fn few_rows_of_many_large_batches_keep_a_bounded_memory() {
    const SIZE: usize = 100_000;
    const LIMIT: usize = 1 << 20;
    // one record in each batch is in the range of times, and the others are large
    let batch = |n: i64| {
        let records =
            [Rec::at(5000).value("a value of more than twelve bytes"), Rec::at(1).value(vec![b'x'; SIZE])];
        BatchV2::new(2 * n).codec(Codec::Lz4).records(records).build()
    };
    let folder = folder();
    let dir = PartitionBuilder::rolled(Indexing::every(4096), 1 << 20, (0..100).map(batch))
        .write(folder.path(), "a-0");
    for log in both(&dir) {
        let ranges = Ranges { start_time: Some(5000), ..Ranges::default() };
        let scan = ScanOptions { ranges, ..ScanOptions::default() };
        let views =
            read(&log, ReaderOptions { scan, max_bytes: LIMIT, ..options(ByteType::BinaryView) }).unwrap();
        assert_eq!(values(&views, 1).len(), 100);
        for batch in &views {
            assert!(batch.num_rows() * SIZE <= LIMIT + 2 * SIZE, "{} rows", batch.num_rows());
        }
        assert!(views.len() < 20, "{}", views.len());
    }
}

#[test]
fn values_that_are_inline_keep_no_block() {
    let folder = folder();
    let batch = |n: i64| BatchV2::new(n).record(Rec::at(n).key("twelve bytes").value("")).build();
    let dir = PartitionBuilder::rolled(Indexing::every(4096), 1 << 20, (0..10).map(batch))
        .write(folder.path(), "a-0");
    let views = read(&open(&dir, Io::Pread), options(ByteType::BinaryView)).unwrap();
    assert_eq!((buffers(&views[0], 0), buffers(&views[0], 1)), (vec![], vec![]));
    assert_eq!(values(&views, 0), vec![Some(b"twelve bytes".to_vec()); 10]);
}

#[test]
fn text_that_is_not_utf8_is_an_error_that_names_the_offset() {
    let folder = folder();
    let values: [&[u8]; 3] = [b"caf\xc3\xa9", b"\xc3", b"fine"];
    let records = values.map(|value| Rec::at(1).key("key").value(value));
    let dir =
        PartitionBuilder::rolled(Indexing::every(4096), 1 << 20, [BatchV2::new(40).records(records).build()])
            .write(folder.path(), "a-0");
    for log in both(&dir) {
        for byte_type in [ByteType::String, ByteType::StringView] {
            let error = read(&log, options(byte_type)).unwrap_err().to_string();
            assert!(error.starts_with("value_type: ") && error.contains("offset 41"), "{error}");
            let key_only = ReaderOptions { columns: vec![Column::Key], ..options(byte_type) };
            assert_eq!(read(&log, key_only).unwrap()[0].num_rows(), 3);
            let before = Ranges { end_offset: Some(41), ..Ranges::default() };
            let scan = ScanOptions { ranges: before, ..ScanOptions::default() };
            assert_eq!(read(&log, ReaderOptions { scan, ..options(byte_type) }).unwrap()[0].num_rows(), 1);
        }
    }
}

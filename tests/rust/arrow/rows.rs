//! Columns filled batch by batch equal those of a naive reader that takes one record after another.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, ListBuilder, StringBuilder, StructBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Int8Array, Int16Array, Int32Array,
    Int64Array, RecordBatch, RecordBatchOptions, StringArray, StructArray, TimestampMicrosecondArray,
    TimestampMillisecondArray,
};
use arrow_schema::{DataType, TimeUnit};
use cordwood::Log;
use cordwood::arrow::{Column, HeaderKeys, Progress, Reader, ReaderOptions};
use cordwood::log::{DamagedRange, OnDamage, Ranges, ScanOptions};
use cordwood::record::BatchHeader;
use proptest::prelude::*;

use super::naive_rows::{Bytes, Row, Rows, rows};
use crate::support::batches::{BatchV2, Built, Codec, MessageSet, Rec};
use crate::support::golden;
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::reading::{both, folder};
use crate::support::{fixed_seed, step};

const COLUMNS: [Column; 21] = [
    Column::Topic,
    Column::Partition,
    Column::Offset,
    Column::Timestamp,
    Column::TimestampType,
    Column::Key,
    Column::Value,
    Column::Headers,
    Column::LeaderEpoch,
    Column::ProducerId,
    Column::ProducerEpoch,
    Column::Sequence,
    Column::IsTransactional,
    Column::IsControl,
    Column::Codec,
    Column::Magic,
    Column::BatchBaseOffset,
    Column::Position,
    Column::Segment,
    Column::KeySize,
    Column::ValueSize,
];

/// The size of a row as `max_bytes` counts it.
fn size(row: &Row, options: &ReaderOptions) -> usize {
    if row.damage.is_some() {
        return 0;
    }
    let length = |bytes: &Bytes| bytes.as_ref().map_or(0, Vec::len);
    let header = |(key, value): &(Vec<u8>, Bytes)| 16 + name(key, options.header_keys).len() + length(value);
    let of_column = |column: &Column| match column {
        Column::Key => length(&row.key),
        Column::Value => length(&row.value),
        Column::Headers => row.headers.iter().map(header).sum(),
        _ => 0,
    };
    8 * options.columns.len() + options.columns.iter().map(of_column).sum::<usize>()
}

/// A header's name as its column stores it: of a string, each surrogate becomes one U+FFFD, also one without
/// its last byte, as in Java.
fn name(key: &[u8], keys: HeaderKeys) -> Vec<u8> {
    if keys == HeaderKeys::Binary {
        return key.to_vec();
    }
    let (mut bytes, mut rest) = (Vec::new(), key);
    while let [first, after @ ..] = rest {
        if let [0xed, 0xa0..=0xbf, 0x80..=0xbf, after @ ..] | [0xed, 0xa0..=0xbf, after @ ..] = rest {
            bytes.extend("\u{fffd}".as_bytes());
            rest = after;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned().into_bytes()
}

/// The record batches of the rows. An error drops the rows of the batch that it interrupts.
fn naive(log: &Log, (rows, error): &Rows, options: &ReaderOptions) -> Vec<RecordBatch> {
    let (mut batches, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, row) in rows.iter().enumerate() {
        bytes += size(row, options);
        if at + 1 - start >= options.max_rows || bytes >= options.max_bytes {
            batches.push(record_batch(log, &rows[start..=at], options));
            (start, bytes) = (at + 1, 0);
        }
    }
    if error.is_none() && start < rows.len() {
        batches.push(record_batch(log, &rows[start..], options));
    }
    batches
}

fn record_batch(log: &Log, rows: &[Row], options: &ReaderOptions) -> RecordBatch {
    let mut arrays: Vec<_> =
        options.columns.iter().map(|column| array(log, rows, *column, options)).collect();
    if options.scan.on_damage == OnDamage::Report {
        arrays.push(errors(rows, options));
    }
    let count = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(options.schema(), arrays, &count).unwrap()
}

/// A value of a record; null for a damaged range.
fn of_record<T>(row: &Row, value: T) -> Option<T> {
    row.damage.is_none().then_some(value)
}

fn array(log: &Log, rows: &[Row], column: Column, options: &ReaderOptions) -> ArrayRef {
    let bytes = |of: fn(&Row) -> &Bytes| -> ArrayRef {
        Arc::new(rows.iter().map(|row| of(row).as_deref()).collect::<BinaryArray>())
    };
    let ints = |of: &dyn Fn(&Row) -> i32| -> ArrayRef {
        Arc::new(rows.iter().map(|row| of_record(row, of(row))).collect::<Int32Array>())
    };
    let longs = |of: fn(&Row) -> i64| -> ArrayRef {
        Arc::new(rows.iter().map(|row| of_record(row, of(row))).collect::<Int64Array>())
    };
    let bits = |of: fn(&Row) -> i8| -> ArrayRef {
        Arc::new(rows.iter().map(|row| of_record(row, of(row))).collect::<Int8Array>())
    };
    let flags = |of: fn(&BatchHeader) -> bool| -> ArrayRef {
        Arc::new(rows.iter().map(|row| of_record(row, of(&row.header))).collect::<BooleanArray>())
    };
    let both =
        |of: fn(&Row) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(rows.iter().map(of))) };
    let length = |bytes: &Bytes| bytes.as_ref().map_or(-1, |bytes| bytes.len() as i32);
    let times = rows.iter().map(|row| (row.timestamp >= 0).then_some(row.timestamp));
    match column {
        Column::Topic => {
            let topic = log.topic().filter(|_| rows.iter().any(|row| row.damage.is_none()));
            let names = StringArray::from(topic.into_iter().collect::<Vec<_>>());
            let keys: Int32Array = rows.iter().map(|row| topic.and_then(|_| of_record(row, 0))).collect();
            Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(names)))
        }
        Column::Partition => {
            let partitions =
                rows.iter().map(|row| log.partition().and_then(|partition| of_record(row, partition)));
            Arc::new(partitions.collect::<Int32Array>())
        }
        Column::Offset => both(|row| row.offset),
        Column::Timestamp if options.timestamp_unit == TimeUnit::Microsecond => {
            let times = times.map(|time| time.map(|time| time * 1000));
            Arc::new(times.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
        }
        Column::Timestamp => Arc::new(times.collect::<TimestampMillisecondArray>().with_timezone("UTC")),
        Column::TimestampType => bits(|row| row.timestamp_type),
        Column::Key => bytes(|row| &row.key),
        Column::Value => bytes(|row| &row.value),
        Column::Headers => headers(rows, options.header_keys),
        Column::LeaderEpoch => ints(&|row| row.header.leader_epoch),
        Column::ProducerId => longs(|row| row.header.producer_id),
        Column::ProducerEpoch => {
            let epochs = rows.iter().map(|row| of_record(row, row.header.producer_epoch));
            Arc::new(epochs.collect::<Int16Array>())
        }
        Column::Sequence => ints(&|row| row.sequence),
        Column::IsTransactional => flags(BatchHeader::is_transactional),
        Column::IsControl => flags(BatchHeader::is_control),
        Column::Codec => {
            let names = rows.iter().map(|row| of_record(row, row.header.codec().unwrap().name()));
            Arc::new(names.collect::<StringArray>())
        }
        Column::Magic => bits(|row| row.header.magic as i8),
        Column::BatchBaseOffset => longs(|row| row.header.base_offset),
        Column::Position => both(|row| row.position),
        Column::Segment => longs(|row| row.segment),
        Column::KeySize => ints(&|row| length(&row.key)),
        Column::ValueSize => ints(&|row| length(&row.value)),
    }
}

/// The column `error`. The fields of a null have values, as the schema says.
fn errors(rows: &[Row], options: &ReaderOptions) -> ArrayRef {
    let schema = options.schema();
    let DataType::Struct(fields) = schema.field(options.columns.len()).data_type() else {
        panic!("a struct")
    };
    let text = |of: fn(&DamagedRange) -> String| -> ArrayRef {
        let texts = rows.iter().map(|row| row.damage.as_ref().map(of).unwrap_or_default());
        Arc::new(StringArray::from_iter_values(texts))
    };
    let number = |of: fn(&DamagedRange) -> Option<i64>| -> ArrayRef {
        let numbers = rows.iter().map(|row| row.damage.as_ref().map_or(Some(0), of));
        Arc::new(numbers.collect::<Int64Array>())
    };
    let children = vec![
        text(|range| range.file.to_str().unwrap().to_owned()),
        number(|range| Some(range.start_position as i64)),
        number(|range| Some(range.end_position as i64)),
        number(|range| Some(range.start_offset)),
        number(|range| range.end_offset),
        text(|range| range.reason.clone()),
    ];
    let validity = rows.iter().map(|row| row.damage.is_some()).collect::<Vec<_>>();
    Arc::new(StructArray::new(fields.clone(), children, Some(validity.into())))
}

fn headers(rows: &[Row], keys: HeaderKeys) -> ArrayRef {
    let schema =
        ReaderOptions { columns: vec![Column::Headers], header_keys: keys, ..ReaderOptions::default() };
    let DataType::List(item) = schema.schema().field(0).data_type().clone() else { panic!("a list") };
    let DataType::Struct(fields) = item.data_type().clone() else { panic!("of structs") };
    let mut lists = ListBuilder::new(StructBuilder::from_fields(fields, 0)).with_field(item);
    for row in rows {
        for (key, value) in &row.headers {
            let pair = lists.values();
            if keys == HeaderKeys::Utf8 {
                let names: &mut StringBuilder = pair.field_builder(0).unwrap();
                names.append_value(String::from_utf8(name(key, keys)).unwrap());
            } else {
                pair.field_builder::<BinaryBuilder>(0).unwrap().append_value(key);
            }
            pair.field_builder::<BinaryBuilder>(1).unwrap().append_option(value.as_ref());
            pair.append(true);
        }
        lists.append(!row.headers.is_empty());
    }
    Arc::new(lists.finish())
}

/// Compares record batch for record batch, up to the end or the error.
fn compare(log: &Log, rows: &Rows, options: &ReaderOptions, what: &str) {
    let progress = Progress::default();
    let mut reader = Reader::new(std::iter::once(Ok(log.clone())), options.clone(), progress.clone());
    let (batches, error) = (naive(log, rows, options), rows.1.as_deref());
    if options.threads == 1 {
        for (at, batch) in batches.iter().enumerate() {
            assert_eq!(reader.next_batch().unwrap().as_ref(), Some(batch), "{what}: record batch {at}");
        }
    } else {
        compare_rows(&mut reader, options, &batches, error, what);
        return;
    }
    match (reader.next_batch(), error) {
        (Ok(None), None) => {}
        (Err(found), Some(expected)) => assert_eq!(found.to_string(), expected, "{what}"),
        (found, expected) => panic!("{what}: {found:?} instead of {expected:?}"),
    }
    assert!(matches!(reader.next_batch(), Ok(None)), "{what}: an error ends a reader");
    if options.scan.on_damage != OnDamage::Raise {
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let reported =
            if options.scan.on_damage == OnDamage::Report { progress.damaged_ranges().len() } else { 0 };
        assert_eq!(progress.stats().records, (rows - reported) as u64, "{what}");
    }
}

/// Compares the rows of several threads, whose splits end record batches. Before an error they are the first
/// ones: another thread may have found damage first.
fn compare_rows(
    reader: &mut Reader,
    options: &ReaderOptions,
    batches: &[RecordBatch],
    error: Option<&str>,
    what: &str,
) {
    let mut found = Vec::new();
    let mut next = reader.next_batch();
    while let Ok(Some(batch)) = next {
        found.push(batch);
        next = reader.next_batch();
    }
    assert_eq!(next.is_err(), error.is_some(), "{what}: {next:?} instead of {error:?}");
    for column in 0..options.schema().fields().len() {
        let of = |batches: &[RecordBatch]| {
            batches.iter().flat_map(|batch| lines(batch.column(column))).collect::<Vec<_>>()
        };
        let (found, mut wanted) = (of(&found), of(batches));
        if error.is_some() {
            wanted.truncate(found.len());
        }
        assert_eq!(found, wanted, "{what}: column {column}");
    }
}

/// Each row as text.
fn lines(array: &ArrayRef) -> Vec<String> {
    (0..array.len()).map(|row| format!("{:?}", array.slice(row, 1))).collect()
}

/// All combinations of columns, limits and units that end record batches at different places.
fn compare_all(log: &Log, scan: ScanOptions, what: &str) -> Rows {
    let rows = rows(log, scan);
    for (columns, max_rows, max_bytes) in [
        (COLUMNS.to_vec(), 65_536, 16 << 20),
        (COLUMNS.to_vec(), 7, 16 << 20),
        (vec![Column::Value, Column::Offset], 65_536, 300),
        (vec![Column::Headers, Column::Key], 65_536, 1),
        (vec![], 3, 16 << 20),
    ] {
        for header_keys in [HeaderKeys::Utf8, HeaderKeys::Binary] {
            if header_keys == HeaderKeys::Binary && !columns.contains(&Column::Headers) {
                continue;
            }
            let columns = columns.clone();
            let options =
                ReaderOptions { scan, columns, max_rows, max_bytes, header_keys, ..ReaderOptions::default() };
            let what = format!("{what}, {max_rows} rows, {max_bytes} bytes, {header_keys:?}");
            compare(log, &rows, &options, &what);
        }
    }
    rows
}

#[test]
fn every_golden_partition() {
    let mut rows = 0;
    for partition in golden::intact() {
        for log in both(&partition.dir) {
            let scan = ScanOptions { include_control: true, ..ScanOptions::default() };
            rows += compare_all(&log, scan, &format!("{} {}", partition.case, partition.name)).0.len();
        }
    }
    assert!(rows > 10_000, "{rows}");
}

#[test]
fn every_damaged_partition() {
    let mut errors = 0;
    for (number, damaged) in golden::damaged().into_iter().enumerate() {
        for (io, log) in both(&damaged.dir).into_iter().enumerate() {
            let all = [OnDamage::Raise, OnDamage::Skip, OnDamage::Report];
            for on_damage in all.into_iter().skip((number + io) % step(2)).step_by(step(2)) {
                let scan = ScanOptions { on_damage, ..ScanOptions::default() };
                let rows = compare_all(&log, scan, &format!("{} {on_damage:?}", damaged.case));
                errors += u32::from(rows.1.is_some());
            }
        }
    }
    assert!(errors > 10, "{errors}");
}

fn records() -> impl Strategy<Value = Vec<Rec>> {
    let bytes = || {
        proptest::option::of(prop_oneof![
            4 => proptest::collection::vec(any::<u8>(), 0..40),
            1 => proptest::collection::vec(any::<u8>(), 100..3000),
        ])
    };
    let header = (proptest::collection::vec(any::<u8>(), 0..5), bytes());
    let headers = prop_oneof![4 => Just(Vec::new()), 1 => proptest::collection::vec(header, 1..4)];
    let time = prop_oneof![9 => 1_000_000i64..1_020_000, 1 => -1i64..2_000_000_000];
    let record = (time, bytes(), bytes(), headers).prop_map(|(time, key, value, headers)| {
        let mut record = Rec::at(time);
        record.key = key;
        record.value = value;
        record.headers = headers;
        record
    });
    proptest::collection::vec(record, 1..30)
}

/// The magic (3: magic 2 with append times), the codec, and a number that selects the bit to flip.
type Kind = (u8, Codec, Option<u16>);

/// A batch of a magic and a codec; a damaged one has a record that breaks the format, and a right checksum.
fn built(base: i64, records: Vec<Rec>, (kind, codec, flipped): Kind) -> Vec<Built> {
    if kind < 2 && codec != Codec::Zstd {
        let set = if kind == 0 { MessageSet::v0(base) } else { MessageSet::v1(base) };
        let plain = records.into_iter().map(|mut record| {
            record.headers.clear();
            record
        });
        return set.codec(codec).records(plain).build();
    }
    let batch = BatchV2::new(base).leader_epoch(3).producer(9, 1, i32::MAX - 5).codec(codec).records(records);
    let mut built = if kind == 3 { batch.log_append_time(77).build() } else { batch.build() };
    if let (Some(flipped), Codec::None) = (flipped, codec) {
        let at = 61 + usize::from(flipped) % (built.bytes.len() - 61);
        built.bytes[at] ^= 1 << (flipped % 8);
        let crc = crate::support::batches::crc32c(&built.bytes[21..]);
        built.bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    }
    vec![built]
}

fn write(parent: &Path, batches: Vec<(Vec<Rec>, Kind)>) -> std::path::PathBuf {
    let mut all: Vec<Built> = Vec::new();
    for (records, kind) in batches {
        let base = all.last().map_or(0, Built::next_offset);
        all.extend(built(base, records, kind));
    }
    PartitionBuilder::rolled(Indexing::every(4096), 20_000, all).write(parent, "orders-3")
}

proptest! {
    #![proptest_config(fixed_seed(100))]

    #[test]
    fn generated_partitions(
        batches in proptest::collection::vec(
            (records(), (0u8..4, proptest::sample::select(&Codec::ALL[..]), proptest::option::weighted(0.05, any::<u16>()))),
            1..12,
        ),
        limits in (1usize..50, prop_oneof![Just(16usize << 20), 1usize..5000]),
        offsets in proptest::option::of((0i64..60, 0i64..60)),
        times in proptest::option::weighted(0.3, (1_000_000i64..1_020_000, 0i64..20_000)),
        on_damage in proptest::sample::select(&[OnDamage::Raise, OnDamage::Skip, OnDamage::Report][..]),
        flags in (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
    ) {
        let folder = folder();
        let dir = write(folder.path(), batches);
        let (check_crcs, has_threads, is_binary, is_micro) = flags;
        for log in both(&dir) {
            let ranges = Ranges {
                start_offset: offsets.map(|(start, _)| start.min(log.log_end_offset().unwrap())),
                end_offset: offsets.map(|(start, length)| start + length),
                start_time: times.map(|(start, _)| start),
                end_time: times.map(|(start, length)| start + length),
            };
            let options = ReaderOptions {
                scan: ScanOptions { ranges, on_damage, check_crcs, ..ScanOptions::default() },
                columns: COLUMNS.to_vec(),
                max_rows: limits.0,
                max_bytes: limits.1,
                header_keys: if is_binary { HeaderKeys::Binary } else { HeaderKeys::Utf8 },
                timestamp_unit: if is_micro { TimeUnit::Microsecond } else { TimeUnit::Millisecond },
                threads: if has_threads { 2 } else { 1 },
                ..ReaderOptions::default()
            };
            compare(&log, &rows(&log, options.scan), &options, "generated");
        }
    }
}

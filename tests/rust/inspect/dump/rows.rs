//! The rows of a dump, compared with its text.

use std::fmt::Write as _;
use std::path::PathBuf;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type};
use arrow_array::{Array, RecordBatch};
use cordwood::inspect::{DumpOptions, DumpRanges, DumpRows};

use super::{dump, files_of};
use crate::support::golden;

fn long(batch: &RecordBatch, name: &str, row: usize) -> i64 {
    batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().value(row)
}

fn integer(batch: &RecordBatch, name: &str, row: usize) -> i32 {
    batch.column_by_name(name).unwrap().as_primitive::<Int32Type>().value(row)
}

fn word<'a>(batch: &'a RecordBatch, name: &str, row: usize) -> &'a str {
    batch.column_by_name(name).unwrap().as_string::<i32>().value(row)
}

fn flag(batch: &RecordBatch, name: &str, row: usize) -> bool {
    batch.column_by_name(name).unwrap().as_boolean().value(row)
}

fn crc(batch: &RecordBatch, row: usize) -> u32 {
    batch.column_by_name("crc").unwrap().as_primitive::<UInt32Type>().value(row)
}

fn is_null(batch: &RecordBatch, name: &str, row: usize) -> bool {
    batch.column_by_name(name).unwrap().is_null(row)
}

/// The line of a batch, made from its row.
fn batch_line(batch: &RecordBatch, row: usize) -> String {
    let (long, integer) = (|name| long(batch, name, row), |name| integer(batch, name, row));
    let mut line = if is_null(batch, "base_offset", row) {
        format!("offset: {}", long("last_offset"))
    } else {
        let horizon = if is_null(batch, "delete_horizon", row) {
            "OptionalLong.empty".to_owned()
        } else {
            format!("OptionalLong[{}]", long("delete_horizon"))
        };
        format!(
            "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} producerId: {} producerEpoch: {} \
             partitionLeaderEpoch: {} isTransactional: {} isControl: {} deleteHorizonMs: {horizon}",
            long("base_offset"),
            long("last_offset"),
            integer("count"),
            integer("base_sequence"),
            integer("last_sequence"),
            long("producer_id"),
            integer("producer_epoch"),
            integer("leader_epoch"),
            flag(batch, "is_transactional", row),
            flag(batch, "is_control", row),
        )
    };
    write!(
        line,
        " position: {} {}: {} size: {} magic: {} compresscodec: {} crc: {} isvalid: {}",
        long("position"),
        word(batch, "timestamp_type", row),
        long("max_timestamp"),
        integer("size"),
        integer("magic"),
        word(batch, "codec", row),
        crc(batch, row),
        flag(batch, "is_valid", row),
    )
    .unwrap();
    line
}

/// The line of a record, made from its row.
fn record_line(batch: &RecordBatch, row: usize) -> String {
    let mut line = format!(
        "| offset: {} {}: {} keySize: {} valueSize: {}",
        long(batch, "offset", row),
        word(batch, "timestamp_type", row),
        long(batch, "timestamp", row),
        integer(batch, "key_size", row),
        integer(batch, "value_size", row),
    );
    if is_null(batch, "crc", row) {
        let names = batch.column_by_name("header_keys").unwrap().as_list::<i32>().value(row);
        let names: Vec<_> = names.as_string::<i32>().iter().flatten().collect();
        write!(line, " sequence: {} headerKeys: [{}]", integer(batch, "sequence", row), names.join(","))
            .unwrap();
    } else {
        write!(line, " isValid: {} crc: {}", flag(batch, "is_valid", row), crc(batch, row)).unwrap();
    }
    for (name, before) in [("control", " "), ("key", " key: "), ("payload", " payload: ")] {
        if !is_null(batch, name, row) {
            write!(line, "{before}{}", word(batch, name, row)).unwrap();
        }
    }
    line
}

fn lines(
    files: &[PathBuf],
    ranges: DumpRanges,
    options: DumpOptions,
    line: fn(&RecordBatch, usize) -> String,
) -> String {
    let mut rows = DumpRows::new(files, ranges, options);
    let mut text = String::new();
    while let Some(batch) = rows.next_batch().unwrap() {
        assert_eq!(batch.schema(), rows.schema());
        (0..batch.num_rows()).for_each(|row| text.push_str(&(line(&batch, row) + "\n")));
    }
    text
}

#[test]
fn rows_have_the_fields_of_the_text() {
    let cases =
        ["01-small", "06-mixed-codecs", "07-edge-values", "11-transactions", "12-compacted", "17-v0-gzip"];
    for partition in golden::intact().iter().filter(|partition| cases.contains(&partition.case.as_str())) {
        let files = files_of(&partition.dir, &[".log"]);
        let is_head = |line: &&str| line.starts_with("Dumping ") || line.starts_with("Log starting ");
        for (deep, line) in [(false, batch_line as fn(&RecordBatch, usize) -> String), (true, record_line)] {
            let options = DumpOptions { print_data_log: deep, ..DumpOptions::default() };
            let text = dump(&files, options.clone()).stdout;
            let is_batch = |line: &str| line.starts_with("baseOffset: ") || line.starts_with("offset: ");
            let expected: String = text
                .split_inclusive('\n')
                .filter(|line| !is_head(line) && (!deep || !is_batch(line)))
                .collect();
            assert_eq!(lines(&files, DumpRanges::default(), options, line), expected, "{}", partition.case);
        }
    }
}

#[test]
fn ranges_select_rows() {
    let files = files_of(&golden::root().join("01-small/tickets-0"), &[".log"]);
    let options = DumpOptions { deep_iteration: true, ..DumpOptions::default() };
    let all = lines(&files, DumpRanges::default(), options.clone(), record_line);
    let offsets = DumpRanges { start_offset: Some(90), end_offset: Some(100), ..DumpRanges::default() };
    let expected: Vec<_> = all.lines().skip(90).take(10).collect();
    assert_eq!(lines(&files, offsets, options.clone(), record_line).lines().collect::<Vec<_>>(), expected);
    let times = DumpRanges {
        start_time: Some(1_700_000_001_000),
        end_time: Some(1_700_000_002_000),
        ..DumpRanges::default()
    };
    let time = |line: &&str| line.contains(" CreateTime: 1700000001");
    let expected: Vec<_> = all.lines().filter(time).collect();
    assert!(!expected.is_empty());
    assert_eq!(lines(&files, times, options, record_line).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn damage_ends_the_rows_where_it_ends_the_text() {
    let zeros = golden::root().join("damaged/length-zero/tickets-0/00000000000000000285.log");
    let mut rows = DumpRows::new([&zeros], DumpRanges::default(), DumpOptions::default());
    let batches = rows.next_batch().unwrap().unwrap().num_rows();
    let text = dump(&[zeros], DumpOptions::default());
    assert_eq!(batches, text.stdout.lines().count() - 2);
    assert_eq!(rows.next_batch().unwrap_err().to_string(), text.error.unwrap().to_string());
    assert!(rows.next_batch().unwrap().is_none());
}

//! Records as Arrow columns, and as rows of owned values: their number, and their sums.

use std::hint::black_box;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMillisecondType};
use arrow_array::{Array, RecordBatch};
use cordwood::Log;
use cordwood::arrow::{Column, Progress, Reader, ReaderOptions};
use cordwood::fs::FileBytes;

use super::batches::crc32c;
use super::naive::{self, Header, Row, decompressed};
use super::written::Sums;

fn reader(log: &Log, columns: &[Column]) -> Reader {
    let options = ReaderOptions { columns: columns.to_vec(), ..ReaderOptions::default() };
    Reader::new(std::iter::once(Ok(log.clone())), options, Progress::default())
}

/// The number of rows of all record batches. Each batch is dropped at once, as in streaming.
pub fn columns(log: &Log, columns: &[Column]) -> u64 {
    let batches = reader(log, columns);
    batches.map(|batch| black_box(batch.unwrap()).num_rows() as u64).sum()
}

/// Sums over the default columns.
pub fn sums_of_columns(log: &Log) -> Sums {
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

/// The number of rows, and sums over the columns `offset` and `timestamp`.
pub fn sums_of_two_columns(log: &Log) -> (u64, i64, i64) {
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

/// The number of rows. Each batch's rows are dropped at once.
pub fn rows(maps: &[FileBytes]) -> u64 {
    let mut records = 0;
    each_batch(maps, |rows| records += black_box(rows).len() as u64);
    records
}

/// Sums over the rows.
pub fn sums_of_rows(maps: &[FileBytes]) -> Sums {
    let mut sums = Sums::default();
    each_batch(maps, |rows| {
        for row in rows {
            let headers = row.headers.iter().map(|(name, value)| (name.as_slice(), value.as_deref()));
            sums.add(row.offset, row.timestamp, row.key.as_deref(), row.value.as_deref(), headers);
        }
    });
    sums
}

/// Passes each batch's records as rows to `visit`.
fn each_batch(maps: &[FileBytes], mut visit: impl FnMut(Vec<Row>)) {
    for map in maps {
        let mut rest = map.mapped().unwrap();
        while !rest.is_empty() {
            let header = Header::new(rest);
            let (batch, after) = rest.split_at(header.size as usize);
            assert_eq!(crc32c(&batch[21..]), header.crc);
            visit(naive::rows(&header, &decompressed(header.codec, &batch[61..])));
            rest = after;
        }
    }
}

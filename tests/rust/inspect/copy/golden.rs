//! Copies of the partitions that real Kafka wrote: whole, and in ranges.

use std::collections::BTreeSet;
use std::path::Path;

use cordwood::Log;
use cordwood::index::AbortedTransaction;
use cordwood::inspect::copy::CopyOptions;
use cordwood::log::{OnDamage, Ranges};

use super::support::{contents, copied, files, of_offsets, open, open_from_first_segment};
use crate::support::golden::{Partition, intact};
use crate::support::naive::Batch;
use crate::support::reading::{all, committed, folder};

fn extension(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, extension)| extension)
}

/// The aborted transactions in the indexes of a log, in order.
fn aborted(log: &Log) -> Vec<AbortedTransaction> {
    let indexes = log.segments().iter().filter_map(|segment| segment.transaction_index().unwrap());
    indexes.flat_map(|index| index.iter().map(Result::unwrap).collect::<Vec<_>>()).collect()
}

fn without_stable_offset(aborted: &[AbortedTransaction]) -> Vec<AbortedTransaction> {
    aborted.iter().map(|entry| AbortedTransaction { last_stable_offset: 0, ..*entry }).collect()
}

/// The offsets of the last batch, and everything before: what a copy from an offset to another one contains.
fn expected_batches(source: &[Batch], start: i64, end: i64) -> Vec<Batch> {
    let in_range = source.iter().filter(|batch| batch.last_offset >= start && batch.base_offset < end);
    contents(&in_range.cloned().collect::<Vec<_>>())
}

fn assert_equal_reads(source: &Partition, copy: &Path, start: i64, end: i64, what: &str) {
    let (from, to) = (open_from_first_segment(&source.dir), open_from_first_segment(copy));
    let expected = expected_batches(&all(&from, OnDamage::Raise).whole().batches, start, end);
    assert_eq!(contents(&all(&to, OnDamage::Raise).whole().batches), expected, "{what}");
    // committed readers see the same, up to the first transaction whose marker is after the range
    let stable = to.last_stable_offset().unwrap();
    let (first, last) = (to.segments().first().unwrap().base_offset(), to.log_end_offset().unwrap());
    let of_range = |log: &Log| -> Vec<_> {
        let read = committed(log, OnDamage::Raise).whole();
        let is_in = |offset: i64| (first..last.min(stable)).contains(&offset);
        read.records().filter(|record| is_in(record.offset)).cloned().collect()
    };
    assert_eq!(of_range(&to), of_range(&from), "{what}: committed");
    let markers: Vec<_> =
        aborted(&from).into_iter().filter(|entry| (first..last).contains(&entry.last_offset)).collect();
    assert_eq!(without_stable_offset(&aborted(&to)), without_stable_offset(&markers), "{what}");
    for batch in &expected {
        for offset in [batch.base_offset, batch.last_offset] {
            let found = |log: &Log| log.locate(offset).unwrap().map(|at| (at.batch_base_offset, at.size));
            assert_eq!(found(&to), found(&from), "{what}: offset {offset}");
        }
    }
}

#[test]
fn a_whole_copy_has_the_files_of_the_source() {
    let folder = folder();
    for partition in intact() {
        let what = format!("{} {}", partition.case, partition.name);
        let to = folder.path().join(format!("{}-{}", partition.case, partition.name));
        let report = copied(&partition.dir, &to, &CopyOptions::default())
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let source = open(&partition.dir);
        assert_eq!(report.end_offset, Some(source.log_end_offset().unwrap()), "{what}");
        assert_eq!(report.log_start_offset, Some(source.log_start_offset()), "{what}");
        assert_eq!(open(&to).log_start_offset(), source.log_start_offset(), "{what}");
        assert_eq!(report.bytes, source.size().unwrap(), "{what}");
        assert_eq!((report.bytes_written, report.damaged_ranges.len()), (report.bytes, 0), "{what}");
        let (from, copy) = (files(&partition.dir), files(&to));
        for (name, bytes) in &from {
            let is_exact = match extension(name) {
                "log" => !partition.case.contains("preallocated"),
                "index" | "timeindex" => !partition.case.starts_with("14-"),
                // an entry of 21-follower has a last stable offset that recovery does not compute
                "txnindex" => partition.case != "21-follower",
                "snapshot" => copy.contains_key(name),
                "metadata" => true,
                _ => false,
            };
            if is_exact {
                assert!(copy.get(name) == Some(bytes), "{what}: {name} differs");
            }
        }
        let end = source.log_end_offset().unwrap();
        assert_equal_reads(&partition, &to, 0, end, &what);
        // a second call compares, and changes nothing
        let again = copied(&partition.dir, &to, &CopyOptions::default())
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(again.bytes_written, 0, "{what}");
        assert_eq!(files(&to), copy, "{what}");
    }
}

#[test]
fn a_range_has_the_whole_batches_of_the_source_and_their_transactions() {
    let folder = folder();
    let mut random = 0x00c0_4d00_d000_u64;
    for partition in intact() {
        let source = open(&partition.dir);
        let (low, high) = (source.log_start_offset(), source.log_end_offset().unwrap());
        for round in 0..2 {
            let mut offset = || {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                low + ((random >> 33) % (high - low + 1) as u64) as i64
            };
            let (one, other) = (offset(), offset());
            let (start, end) = (one.min(other), one.max(other));
            let what = format!("{} {} {start}..{end}", partition.case, partition.name);
            let to = folder.path().join(format!("{}-{}-{round}", partition.case, partition.name));
            let report = copied(&partition.dir, &to, &of_offsets(Some(start), Some(end)))
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_equal_reads(&partition, &to, start, end, &what);
            let names: BTreeSet<_> = source.segments().iter().map(|segment| segment.base_offset()).collect();
            let copy = open(&to);
            for segment in copy.segments().iter().skip(1) {
                assert!(names.contains(&segment.base_offset()), "{what}");
            }
            let is_wrong = |warning: &String| !warning.contains(" hidden below the log start offset");
            assert_eq!(copy.warnings().into_iter().find(is_wrong), None, "{what}");
            assert_eq!(report.start_offset, Some(copy.segments().first().unwrap().base_offset()), "{what}");
            assert_eq!(report.end_offset, Some(copy.log_end_offset().unwrap()), "{what}");
            assert!(
                copy.log_start_offset() >= source.log_start_offset().min(report.end_offset.unwrap()),
                "{what}"
            );
        }
    }
}

#[test]
fn a_range_of_times_has_every_record_in_it_and_no_batch_outside_of_the_first_and_the_last() {
    let folder = folder();
    for case in ["01-plain", "08-late", "11-transactions", "17-upgraded"] {
        let partition = intact().into_iter().find(|partition| partition.case == case).unwrap();
        let records = all(&open(&partition.dir), OnDamage::Raise).whole();
        let mut times: Vec<_> =
            records.records().map(|record| record.timestamp).filter(|time| *time >= 0).collect();
        times.sort_unstable();
        let (since, until) = (times[times.len() / 3], times[times.len() * 2 / 3]);
        for (number, ranges) in [
            Ranges { start_time: Some(since), ..Ranges::default() },
            Ranges { end_time: Some(until), ..Ranges::default() },
            Ranges { start_time: Some(since), end_time: Some(until), ..Ranges::default() },
        ]
        .into_iter()
        .enumerate()
        {
            let to = folder.path().join(format!("{case}-{number}"));
            copied(&partition.dir, &to, &CopyOptions { ranges, ..CopyOptions::default() }).unwrap();
            let is_in = |time: i64| {
                time >= 0
                    && ranges.start_time.is_none_or(|since| time >= since)
                    && ranges.end_time.is_none_or(|until| time < until)
            };
            let expected: Vec<_> =
                records.records().filter(|record| is_in(record.timestamp)).cloned().collect();
            let copy = all(&open(&to), OnDamage::Raise).whole();
            let found: Vec<_> = copy.records().filter(|record| is_in(record.timestamp)).cloned().collect();
            assert_eq!(found, expected, "{case} {ranges:?}");
            let first = copy.batches.first().unwrap();
            assert!(first.records.iter().any(|record| is_in(record.timestamp)), "{case} {ranges:?}");
            if ranges.end_time.is_some() {
                let last = copy.batches.last().unwrap();
                assert!(last.records.iter().any(|record| is_in(record.timestamp)), "{case} {ranges:?}");
            }
        }
    }
}

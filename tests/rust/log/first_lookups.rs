//! What a look-up reads of a log that is not mapped: few calls, and a large batch at most once.

use std::fs;
use std::path::{Path, PathBuf};

use cordwood::Log;
use cordwood::types::Io;

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::reading::{folder, locate, open};

/// One batch of one record for each size of a value.
fn write(parent: &Path, sizes: impl IntoIterator<Item = usize>) -> PathBuf {
    let batch = |(offset, size): (i64, usize)| -> Built {
        BatchV2::new(offset).record(Rec::at(1_000 + offset).value(vec![b'v'; size])).build()
    };
    let built: Vec<Built> = (0..).zip(sizes).map(batch).collect();
    PartitionBuilder::rolled(Indexing::every(4096), usize::MAX, built).write(parent, "t-0")
}

/// Bytes that this thread has read by system calls, and the number of the calls.
fn counters() -> [u64; 2] {
    let counters = fs::read_to_string("/proc/thread-self/io").unwrap();
    ["rchar: ", "syscr: "].map(|name| {
        let line = counters.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().parse().unwrap()
    })
}

/// Bytes and calls of a look-up by offset.
fn reads(log: &Log, offset: i64) -> [u64; 2] {
    reads_of(|| assert!(locate(log, offset).unwrap().is_some()))
}

fn reads_of(look_up: impl FnOnce()) -> [u64; 2] {
    let difference = |before: [u64; 2]| {
        let after = counters();
        [after[0] - before[0], after[1] - before[1]]
    };
    let of_counters = difference(counters());
    let before = counters();
    look_up();
    let all = difference(before);
    // the counters have a few digits more or less
    [all[0].saturating_sub(of_counters[0]), all[1] - of_counters[1]]
}

fn opened(dir: &Path) -> Log {
    let log = open(dir, Io::Pread);
    // opens the files and finds the end of the log
    locate(&log, 0).unwrap();
    log
}

#[test]
fn a_large_batch_is_read_once_with_the_header_after_it() {
    let parent = folder();
    let size = |n: usize| 10_000 + n * 7919 % 10_000;
    let log = opened(&write(parent.path(), (0..100).map(size)));
    locate(&log, 1).unwrap();
    // after a few more look-ups there is a table
    for offset in (2..60).step_by(9) {
        let [bytes, calls] = reads(&log, offset);
        assert!(bytes < size(offset as usize) as u64 + 1_000, "{offset}: {bytes} bytes");
        // of the index, and of the log at once
        assert!(calls <= 2, "{offset}: {calls} calls");
    }
}

#[test]
fn a_look_up_by_time_reads_a_large_batch_once_and_headers_before_it() {
    let parent = folder();
    let size = |n: usize| 10_000 + n * 7919 % 10_000;
    let log = opened(&write(parent.path(), (0..100).map(size)));
    let look_up = |offset: i64| {
        let found = log.offset_for_time(1_000 + offset).unwrap().unwrap();
        assert_eq!((found.timestamp, found.offset), (1_000 + offset, offset));
    };
    look_up(1);
    for offset in (2..60).step_by(9) {
        let [bytes, calls] = reads_of(|| look_up(offset));
        assert!(bytes < size(offset as usize) as u64 + 2 * 8192, "{offset}: {bytes} bytes");
        // of the two indexes, of three headers, and of the batch, perhaps in two parts
        assert!(calls <= 7, "{offset}: {calls} calls");
    }
}

#[test]
fn the_first_look_up_of_all_reads_a_large_batch_at_once() {
    let parent = folder();
    let dir = write(parent.path(), [20_000; 9]);
    let log = open(&dir, Io::Pread);
    // opens the files and finds the end of the log, without a look-up
    log.log_end_offset().unwrap();
    log.segments().iter().for_each(|segment| drop(segment.offset_index().unwrap()));
    let [bytes, calls] = reads(&log, 5);
    assert!(bytes < 21_000 && calls <= 2, "{bytes} bytes, {calls} calls");
}

#[test]
fn a_batch_that_was_verified_is_not_read_again() {
    for size in [20_000, 1_000_000] {
        let parent = folder();
        let log = opened(&write(parent.path(), [size; 9]));
        let [first, _] = reads(&log, 5);
        let [again, calls] = reads(&log, 5);
        assert!(
            first > size as u64 && again < 1_000 && calls <= 3,
            "{size}: {first}, {again} bytes, {calls} calls"
        );
    }
}

#[test]
fn small_batches_are_read_together_after_a_look_up_of_a_large_one() {
    let parent = folder();
    let size = |n: usize| if n.is_multiple_of(200) { 8_000 } else { 30 };
    let log = opened(&write(parent.path(), (0..1_000).map(size)));
    for offset in [190, 350, 590, 777] {
        locate(&log, 400).unwrap();
        let [_, calls] = reads(&log, offset);
        assert!(calls <= 4, "{offset}: {calls} calls");
    }
}

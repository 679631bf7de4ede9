//! A record may hold a whole log. If its batch is cut, the log ends before it, and no part of the record
//! becomes a record.

use std::collections::BTreeMap;
use std::path::Path;

use cordwood::Error;
use cordwood::log::{OnDamage, ScanOptions};
use cordwood::writer::{LogWriter, WriterOptions};

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::is_exhaustive;
use crate::support::nested_logs::{NestedLog, whole_offsets};
use crate::support::partition::{Indexing, SegmentFiles, file_name, offset_entry, segment_files};
use crate::support::reading::{IOS, all, both, folder, open, read, write};

/// The bytes after the cut.
#[derive(Debug, Clone, Copy)]
enum Fill {
    Nothing,
    /// Zeros up to the size before the cut, and more.
    Zeros,
}

/// The indexes: none, with an entry for each batch, and those of a broker that runs.
fn indexings() -> [Option<Indexing>; 3] {
    [None, Some(Indexing::every(0)), Some(Indexing { preallocated_bytes: Some(4096), ..Indexing::every(0) })]
}

fn write_log(dir: &Path, files: &SegmentFiles, log: &[u8], has_indexes: bool) {
    std::fs::write(dir.join(file_name(0, "log")), log).unwrap();
    if has_indexes {
        std::fs::write(dir.join(file_name(0, "index")), &files.index).unwrap();
        std::fs::write(dir.join(file_name(0, "timeindex")), &files.time_index).unwrap();
    }
}

/// Expects that readers and a recovery find the whole batches and nothing else.
fn assert_ends(dir: &Path, number: usize, expected: &[i64], context: &str) {
    let end = expected.last().map_or(0, |last| last + 1);
    let log = open(dir, IOS[number % 2]);
    assert_eq!(log.log_end_offset().unwrap(), end, "{context}");
    for on_damage in [OnDamage::Raise, OnDamage::Skip] {
        let read = all(&log, on_damage);
        assert!(read.error.is_none(), "{context}: {:?}", read.error);
        assert_eq!(read.offsets(), expected, "{context}");
    }
    let options = ScanOptions { on_damage: OnDamage::Skip, ..ScanOptions::default() };
    let last = read(log.last_records(1, options, None));
    assert_eq!(last.offsets().last(), expected.last(), "{context}");
    let plan = LogWriter::plan_recovery(dir, &WriterOptions::default())
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(plan.log_end_offset, end, "{context}");
}

#[test]
fn a_log_that_is_cut_in_a_record_with_a_log_ends_before_it() {
    let (mut judged, mut number) = (0, 0_usize);
    for case in NestedLog::all() {
        let built = case.batches();
        let outer = NestedLog::outer_position(&built);
        for indexing in indexings() {
            let parent = folder();
            let dir = parent.path().join("t-0");
            std::fs::create_dir(&dir).unwrap();
            let files = segment_files(0, &built, indexing.unwrap_or_default());
            for cut in outer..=files.log.len() {
                for fill in [Fill::Nothing, Fill::Zeros] {
                    number += 1;
                    if !is_exhaustive() && !number.is_multiple_of(199) {
                        continue;
                    }
                    let mut log = files.log[..cut].to_vec();
                    if matches!(fill, Fill::Zeros) {
                        log.resize(files.log.len() + 512, 0);
                    }
                    write_log(&dir, &files, &log, indexing.is_some());
                    let expected = whole_offsets(&built, &log);
                    let context = format!("{case:?}, {indexing:?}, cut at {cut} after {outer}, {fill:?}");
                    assert_ends(&dir, judged, &expected, &context);
                    judged += 1;
                }
            }
        }
    }
    println!("{{\"rig\": \"values that are logs\", \"images\": {judged}}}");
    assert!(judged > 2_000, "{judged} images");
}

/// A cut at the end of each batch of the log in the record, with every kind of log.
#[test]
fn a_log_that_is_cut_between_two_batches_in_a_record_ends_before_it() {
    let mut judged = 0;
    for case in NestedLog::all() {
        let built = case.batches();
        let outer = NestedLog::outer_position(&built);
        let files = segment_files(0, &built, Indexing::default());
        let inner: Vec<usize> = (outer + 1..files.log.len())
            .filter(|at| is_batch_end(&files.log[outer + 1..*at], case.inner_base))
            .collect();
        for (has_indexes, cut) in
            [false, true].into_iter().flat_map(|has| inner.iter().map(move |at| (has, *at)))
        {
            let parent = folder();
            let dir = parent.path().join("t-0");
            std::fs::create_dir(&dir).unwrap();
            write_log(&dir, &files, &files.log[..cut], has_indexes);
            let expected = whole_offsets(&built, &files.log[..cut]);
            assert_ends(&dir, judged, &expected, &format!("{case:?}, {has_indexes}, cut at {cut}"));
            judged += 1;
        }
    }
    assert!(judged > 200, "{judged} cuts");
}

/// Whether the bytes end with a whole batch of the log in a record.
fn is_batch_end(bytes: &[u8], first_offset: i64) -> bool {
    (first_offset..first_offset + 4).any(|offset| {
        let start = bytes.windows(8).rposition(|found| found == offset.to_be_bytes());
        start.and_then(|start| bytes.get(start..)).is_some_and(|batch| {
            let length = batch.get(8..12).and_then(|length| length.first_chunk());
            length.is_some_and(|length| i32::from_be_bytes(*length) as usize + 12 == batch.len())
        })
    })
}

/// The last segment but one is cut: what follows it in the log is read, and nothing of the record.
#[test]
fn a_segment_that_is_cut_in_a_record_with_a_log_has_nothing_of_the_record() {
    let mut number = 0_usize;
    for case in NestedLog::all() {
        let built = case.batches();
        let outer = NestedLog::outer_position(&built);
        let files = segment_files(0, &built, Indexing::default());
        let next = built.last().map_or(0, Built::next_offset) + 10;
        let last = BatchV2::new(next).record(Rec::at(90).value(b"last")).build();
        for cut in outer + 1..files.log.len() {
            number += 1;
            if !is_exhaustive() && !number.is_multiple_of(97) {
                continue;
            }
            let parent = folder();
            let dir = parent.path().join("t-0");
            std::fs::create_dir(&dir).unwrap();
            write_log(&dir, &files, &files.log[..cut], number.is_multiple_of(2));
            std::fs::write(dir.join(file_name(next, "log")), &last.bytes).unwrap();
            let mut expected = whole_offsets(&built, &files.log[..cut]);
            expected.push(next);
            let log = open(&dir, IOS[number % 2]);
            let read = all(&log, OnDamage::Skip).whole();
            assert_eq!(read.offsets(), expected, "{case:?}, cut at {cut}: {:?}", read.gaps);
            // between two batches, nothing but missing offsets shows the cut
            let error = all(&log, OnDamage::Raise).error;
            assert!(matches!(error, None | Some(Error::Corrupt { .. })), "{case:?}, cut at {cut}: {error:?}");
        }
    }
}

/// The file is longer than the batch with the wrong length says, or shorter: only an index entry shows the
/// batches after it.
#[test]
fn an_index_entry_shows_the_batches_in_the_extent_of_a_batch_with_wrong_length_and_bytes() {
    let built: Vec<Built> = (0..10)
        .map(|offset| BatchV2::new(offset).record(Rec::at(offset).value([b'v'; 40])).build())
        .collect();
    let size = built[0].bytes.len();
    let mut log: Vec<u8> = built.iter().flat_map(|batch| batch.bytes.clone()).collect();
    // the length reaches beyond the end of the file, and the checksum is wrong with the right length too
    log[3 * size + 9] ^= 1;
    log[3 * size + 70] ^= 1;
    let entry = offset_entry(0, 6, (6 * size) as i32).to_vec();
    for (index, expected) in
        [(None, (0..3).collect()), (Some(entry), (0..10).filter(|n| *n != 3).collect::<Vec<_>>())]
    {
        let mut files = BTreeMap::from([(file_name(0, "log"), log.clone())]);
        files.extend(index.map(|index| (file_name(0, "index"), index)));
        let parent = folder();
        for log in both(&write(parent.path(), "t-0", &files)) {
            assert_eq!(all(&log, OnDamage::Skip).whole().offsets(), expected);
            assert_eq!(log.log_end_offset().unwrap(), expected.last().unwrap() + 1);
        }
    }
}

//! A time index whose entries each name a batch and its timestamp, and are wrong all the same: the timestamp
//! is not the largest so far.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use cordwood::Log;

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::naive;
use crate::support::partition::{Indexing, PartitionBuilder, file_name, time_entry};
use crate::support::reading::{IOS, folder, open, time, timed};
use crate::support::step;

/// Look-ups after which a segment has a table.
const ENOUGH: usize = 8;

fn batch(offset: i64, time: i64) -> Built {
    BatchV2::new(offset).record(Rec::at(time).value("v")).build()
}

/// A segment of batches of one record with these times, and an empty one after it if it is to be `closed`.
fn partition(parent: &Path, times: &[i64], is_closed: bool) -> PathBuf {
    let built = (0..).zip(times).map(|(offset, time)| batch(offset, *time));
    let mut builder = PartitionBuilder::new(Indexing::default()).segment(0, built);
    if is_closed {
        builder = builder.segment(times.len() as i64, []);
    }
    builder.write(parent, "t-0")
}

fn write_index(dir: &Path, entries: &[(i64, i64)]) {
    let bytes: Vec<u8> = entries.iter().flat_map(|(time, offset)| time_entry(0, *time, *offset)).collect();
    fs::write(dir.join(file_name(0, "timeindex")), bytes).unwrap();
}

/// An entry for each time above those before it.
fn right_entries(times: &[i64]) -> Vec<(i64, i64)> {
    let mut largest = -1;
    let raises = |(time, _): &(i64, i64)| {
        *time > largest && {
            largest = *time;
            true
        }
    };
    times.iter().copied().zip(0..).filter(raises).collect()
}

fn warnings_of_a_table(log: &Log) -> Vec<String> {
    for _ in 0..ENOUGH {
        log.offset_for_time(0).unwrap();
    }
    log.warnings()
}

/// Each target in a log without a table, and then all of them in one that has one.
fn assert_finds_all(dir: &Path, context: &str) {
    let naive = naive::read(dir).unwrap();
    for io in IOS {
        let log = open(dir, io);
        for turn in 0..ENOUGH {
            for target in [5, 15, 20, 25, 30] {
                let log = if turn == 0 { &open(dir, io) } else { &log };
                let right = timed(naive.offset_for_time(0, target));
                assert_eq!(time(log, target).unwrap(), right, "{context} {io:?} {turn} {target}");
            }
        }
    }
}

/// All sequences of four times.
fn sequences() -> impl Iterator<Item = [i64; 4]> {
    (0..81).map(|number| [27, 9, 3, 1].map(|digit| 10 * (1 + number / digit % 3)))
}

#[test]
fn one_wrong_missing_or_added_entry_changes_no_result() {
    for times in sequences() {
        let parent = folder();
        let dir = partition(parent.path(), &times, times[0] == 10);
        let right = right_entries(&times);
        for slot in 0..=right.len() {
            for (number, wrong) in times.into_iter().zip(0..).map(Some).chain([None]).enumerate() {
                for is_added in [false, true].into_iter().skip((slot + number) % step(2)).step_by(step(2)) {
                    let mut entries = right.clone();
                    let replaced = slot..(slot + usize::from(!is_added)).min(right.len());
                    entries.splice(replaced, wrong);
                    write_index(&dir, &entries);
                    assert_finds_all(&dir, &format!("{times:?} {entries:?}"));
                }
            }
        }
    }
}

#[test]
fn the_first_entry_below_the_largest_time_so_far_causes_a_warning_when_the_table_is_built() {
    let times = [10, 100, 40, 50, 200];
    let parent = folder();
    let dir = partition(parent.path(), &times, true);
    for (entries, wrong) in [
        (&[(10, 0), (100, 1), (200, 4)][..], None),
        (&[(100, 1), (200, 4)], None),
        (&[(200, 4)], None),
        (&[(10, 0), (100, 1), (50, 3), (200, 4)], Some((50, 3))),
        // each of them agrees with the entry before it
        (&[(10, 0), (40, 2), (50, 3), (200, 4)], Some((40, 2))),
        (&[(10, 0), (100, 1), (100, 1), (200, 4)], Some((100, 1))),
        (&[(10, 0), (100, 3), (200, 2)], Some((200, 2))),
        (&[(10, 0), (100, 1), (200, 4), (300, 5)], Some((300, 5))),
    ] {
        write_index(&dir, entries);
        for io in IOS {
            let log = open(&dir, io);
            let warnings = warnings_of_a_table(&log);
            let named = wrong.map(|(time, offset)| format!("the entry (timestamp {time}, offset {offset})"));
            assert!(
                warnings.iter().zip(&named).all(|(warning, named)| warning.contains(named))
                    && warnings.len() == usize::from(wrong.is_some()),
                "{entries:?}: {warnings:?}"
            );
            // whatever the single look-ups found
            assert_eq!(time(&log, 60).unwrap(), Some((100, 1)), "{entries:?}");
        }
    }
}

#[test]
fn entries_of_batches_that_were_appended_since_cause_no_warning() {
    for io in IOS {
        let parent = folder();
        let dir = partition(parent.path(), &[10, 100], false);
        let log = open(&dir, io);
        let mut file = File::options().append(true).open(dir.join(file_name(0, "log"))).unwrap();
        file.write_all(&batch(2, 200).bytes).unwrap();
        write_index(&dir, &[(10, 0), (100, 1), (200, 2)]);
        assert_eq!(warnings_of_a_table(&log), [""; 0]);
        assert_eq!(time(&log, 101).unwrap(), None);
    }
}

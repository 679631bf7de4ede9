//! A plan by time skips segments that are too old. Offsets that are missing after them, and before a segment
//! in the range, are in a split, whose reader notices them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cordwood::log::{Ranges, ScanOptions, Split};
use cordwood::types::Io;

use crate::support::batches::{BatchV2, Rec};
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::reading::{folder, open, read};

const SEGMENTS: i64 = 8;
const RECORDS: i64 = 3;

/// The time of an offset.
fn time_of(offset: i64) -> i64 {
    1000 + 10 * offset
}

/// Segments of three batches of one record, without some of them.
fn write(parent: &Path, name: &str, missing: &BTreeSet<i64>) -> PathBuf {
    let mut builder = PartitionBuilder::new(Indexing::every(50));
    for segment in (0..SEGMENTS).filter(|segment| !missing.contains(segment)) {
        let (base, end) = (segment * RECORDS, (segment + 1) * RECORDS);
        let batch = |offset| BatchV2::new(offset).record(Rec::at(time_of(offset)).value("value")).build();
        builder = builder.segment(base, (base..end).map(batch));
    }
    builder.write(parent, name)
}

fn plan(dir: &Path, max_bytes: u64, start_offset: i64, start_time: i64) -> Vec<Split> {
    let ranges =
        Ranges { start_offset: Some(start_offset), start_time: Some(start_time), ..Ranges::default() };
    open(dir, Io::Pread).plan(max_bytes, &ScanOptions { ranges, ..ScanOptions::default() }).unwrap()
}

/// Runs `check` for a log without each two segments, the first and the last one excepted, with a range of
/// each start and time.
fn in_each_case(check: impl Fn(&BTreeSet<i64>, i64, i64, &[Split])) {
    let folder = folder();
    for first in 1..SEGMENTS - 1 {
        for second in first..SEGMENTS - 1 {
            let missing = BTreeSet::from([first, second]);
            let dir = write(folder.path(), &format!("t{first}-{second}"), &missing);
            for start_offset in [0, 1, RECORDS, 2 * RECORDS + 1] {
                for offset in 0..SEGMENTS * RECORDS {
                    for max_bytes in [1, 200, u64::MAX] {
                        let splits = plan(&dir, max_bytes, start_offset, time_of(offset));
                        check(&missing, start_offset, offset, &splits);
                    }
                }
            }
        }
    }
}

#[test]
fn missing_offsets_before_a_segment_in_the_range_are_in_a_split() {
    in_each_case(|missing, start_offset, first_in_time, splits| {
        for segment in missing {
            // the segment after the gap
            let next = (*segment..SEGMENTS).find(|segment| !missing.contains(segment)).unwrap();
            let is_in_time = (next + 1) * RECORDS > first_in_time;
            for offset in segment * RECORDS..(segment + 1) * RECORDS {
                let is_covered =
                    splits.iter().any(|split| (split.start_offset..split.end_offset).contains(&offset));
                assert!(
                    is_covered || !is_in_time || offset < start_offset,
                    "{offset} without {missing:?} from {start_offset} and the time of {first_in_time}: {splits:?}"
                );
            }
        }
    });
}

#[test]
fn splits_do_not_overlap_and_have_each_record_once() {
    let folder = folder();
    for missing in [BTreeSet::new(), BTreeSet::from([1]), BTreeSet::from([3, 4]), BTreeSet::from([2, 5])] {
        let dir = write(
            folder.path(),
            &format!("t-{}", missing.len() + 10 * missing.first().map_or(0, |first| *first as usize)),
            &missing,
        );
        let log = open(&dir, Io::Pread);
        for start_offset in [0, 4, 9] {
            for first_in_time in 0..SEGMENTS * RECORDS {
                for max_bytes in [1, 200, u64::MAX] {
                    let splits = plan(&dir, max_bytes, start_offset, time_of(first_in_time));
                    assert!(
                        splits.windows(2).all(|pair| pair[0].end_offset <= pair[1].start_offset),
                        "{splits:?}"
                    );
                    assert!(splits.iter().all(|split| split.start_offset >= start_offset), "{splits:?}");
                    let found = splits.iter().flat_map(|split| {
                        read(log.scan_split(split, ScanOptions::default())).whole().offsets()
                    });
                    let expected = (start_offset.max(first_in_time)..SEGMENTS * RECORDS)
                        .filter(|offset| !missing.contains(&(offset / RECORDS)));
                    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{splits:?}");
                }
            }
        }
    }
}

#[test]
fn a_plan_of_a_whole_log_begins_at_the_first_segment_in_the_range() {
    let folder = folder();
    let dir = write(folder.path(), "t-0", &BTreeSet::new());
    for first_in_time in 0..SEGMENTS * RECORDS {
        let splits = plan(&dir, u64::MAX, 0, time_of(first_in_time));
        let starts: Vec<i64> = splits.iter().map(|split| split.start_offset).collect();
        assert_eq!(starts, [first_in_time / RECORDS * RECORDS]);
    }
}

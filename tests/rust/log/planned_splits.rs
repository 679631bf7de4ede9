//! Splits of an older plan: a scan of one returns the planned records, or an error that says what has
//! changed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use cordwood::Log;
use cordwood::log::{Change, PlannedSegment, ScanOptions, Split};
use cordwood::types::Io;

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::partition::{Indexing, PartitionBuilder, file_name};
use crate::support::reading::{folder, open, read};

fn batch(offset: i64, value: &str) -> Built {
    BatchV2::new(offset).record(Rec::at(1000 + offset).value(value)).build()
}

/// Three segments of ten records, one in each batch.
fn write_log(parent: &Path) -> std::path::PathBuf {
    let mut builder = PartitionBuilder::new(Indexing::every(200));
    for base in [0, 10, 20] {
        builder = builder.segment(base, (base..base + 10).map(|offset| batch(offset, "old")));
    }
    builder.write(parent, "t-0")
}

fn bytes_of(offsets: std::ops::Range<i64>, value: &str) -> Vec<u8> {
    offsets.flat_map(|offset| batch(offset, value).bytes).collect()
}

/// Overwrites bytes of a file, which keeps its inode.
fn overwrite(path: &Path, position: u64, bytes: &[u8]) {
    let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(position)).unwrap();
    file.write_all(bytes).unwrap();
}

/// Replaces a file by a new one, as Kafka's cleaner does.
fn replace(path: &Path, bytes: &[u8]) {
    let new = path.with_extension("new");
    fs::write(&new, bytes).unwrap();
    fs::rename(new, path).unwrap();
}

fn append(path: &Path, bytes: &[u8]) {
    fs::OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(bytes).unwrap();
}

fn resize(path: &Path, size: u64) {
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(size).unwrap();
}

/// A change of the log between the plan and the scan.
struct Case {
    name: &'static str,
    change: fn(&Path),
    /// The segments whose splits a log refuses that was opened after the change, and the reason.
    changed: &'static [(i64, Change)],
    /// The segments whose splits are damaged.
    damaged: &'static [i64],
}

const SIZE: u64 = 71;

const fn case(name: &'static str, change: fn(&Path), changed: &'static [(i64, Change)]) -> Case {
    Case { name, change, changed, damaged: &[] }
}

fn log_file(dir: &Path, base: i64) -> std::path::PathBuf {
    dir.join(file_name(base, "log"))
}

const CASES: &[Case] = &[
    case("nothing", |_| {}, &[]),
    case("records are appended", |dir| append(&log_file(dir, 20), &bytes_of(30..40, "old")), &[]),
    case(
        "records are appended, and a segment rolled",
        |dir| {
            append(&log_file(dir, 20), &bytes_of(30..35, "old"));
            append(&log_file(dir, 35), &bytes_of(35..40, "old"));
        },
        &[],
    ),
    case(
        "the first segment is deleted",
        |dir| fs::remove_file(log_file(dir, 0)).unwrap(),
        &[(0, Change::Gone)],
    ),
    case(
        "a segment in the middle is deleted",
        |dir| fs::remove_file(log_file(dir, 10)).unwrap(),
        &[(10, Change::Gone)],
    ),
    case(
        "the last segment is deleted",
        |dir| fs::remove_file(log_file(dir, 20)).unwrap(),
        &[(20, Change::Gone)],
    ),
    case(
        "a sealed segment is cut between batches",
        |dir| resize(&log_file(dir, 10), 4 * SIZE),
        &[(10, Change::Shortened { size: 4 * SIZE })],
    ),
    case(
        "a sealed segment is cut inside a batch",
        |dir| resize(&log_file(dir, 10), 4 * SIZE + 9),
        &[(10, Change::Shortened { size: 4 * SIZE + 9 })],
    ),
    case(
        "the last segment is cut",
        |dir| resize(&log_file(dir, 20), 4 * SIZE),
        &[(20, Change::Shortened { size: 4 * SIZE })],
    ),
    case(
        "the last segment is empty",
        |dir| resize(&log_file(dir, 20), 0),
        &[(20, Change::Shortened { size: 0 })],
    ),
    case(
        "the last batches become zeros",
        |dir| overwrite(&log_file(dir, 20), 8 * SIZE, &[0; 2 * SIZE as usize]),
        &[(20, Change::Ended { log_end_offset: 28 })],
    ),
    case(
        "a sealed segment is compacted",
        |dir| replace(&log_file(dir, 0), &bytes_of(4..6, "old")),
        &[(0, Change::Shortened { size: 2 * SIZE })],
    ),
    case(
        "two segments are compacted into a larger one",
        |dir| {
            replace(&log_file(dir, 0), &bytes_of(0..15, "old"));
            fs::remove_file(log_file(dir, 10)).unwrap();
        },
        &[(0, Change::Replaced), (10, Change::Gone)],
    ),
    case(
        "a sealed segment is replaced by another one of the same size",
        |dir| replace(&log_file(dir, 10), &bytes_of(10..20, "new")),
        &[(10, Change::Replaced)],
    ),
    case(
        "a sealed segment is overwritten with other records",
        |dir| overwrite(&log_file(dir, 10), 0, &bytes_of(10..20, "new")),
        &[(10, Change::Replaced)],
    ),
    case(
        "the last segment is replaced by a longer one",
        |dir| replace(&log_file(dir, 20), &bytes_of(20..35, "new")),
        &[(20, Change::Replaced)],
    ),
    case(
        "the topic is created again",
        |dir| {
            fs::remove_dir_all(dir).unwrap();
            fs::create_dir(dir).unwrap();
            append(&log_file(dir, 0), &bytes_of(0..40, "new"));
        },
        &[(0, Change::Replaced), (10, Change::Gone), (20, Change::Gone)],
    ),
    case(
        "a sealed segment is restored from a copy",
        |dir| replace(&log_file(dir, 10), &bytes_of(10..20, "old")),
        &[],
    ),
    Case {
        name: "a record of the first batch is damaged",
        change: |dir| overwrite(&log_file(dir, 10), SIZE - 2, b"?"),
        changed: &[],
        damaged: &[10],
    },
    Case {
        name: "the checksum of the first batch is damaged",
        change: |dir| overwrite(&log_file(dir, 10), 17, b"?"),
        changed: &[],
        damaged: &[10],
    },
    Case {
        name: "the length of the first batch is damaged",
        change: |dir| overwrite(&log_file(dir, 10), 8, b"?"),
        changed: &[],
        damaged: &[10],
    },
];

/// The offsets and values of a split, or the code of the error.
fn rows(log: &Log, split: &Split) -> Result<Vec<(i64, Vec<u8>)>, &'static str> {
    let read = read(log.scan_split(split, ScanOptions::default()));
    let rows = read.records().map(|record| (record.offset, record.value.clone().unwrap())).collect();
    read.error.map_or(Ok(rows), |error| Err(error.code()))
}

#[test]
fn a_split_of_an_older_plan_returns_the_planned_records_or_reports_the_change() {
    for Case { name, change, changed, damaged } in CASES {
        for io in [Io::Auto, Io::Pread] {
            for max_bytes in [3 * SIZE, 10 * SIZE, u64::MAX] {
                let parent = folder();
                let dir = write_log(parent.path());
                let planned = open(&dir, io);
                let splits = planned.plan(max_bytes, &ScanOptions::default()).unwrap();
                let expected: Vec<_> = splits.iter().map(|split| rows(&planned, split).unwrap()).collect();
                assert_eq!(expected.iter().flatten().count(), 30);
                // a log that has read nothing yet, and has no file open
                let idle = open(&dir, io);
                change(&dir);
                // a refresh uses the open directory, which may be removed
                let refreshed = [&planned, &idle].into_iter().filter_map(|log| log.refresh().ok());
                for log in refreshed.chain([open(&dir, io)]) {
                    for (split, expected) in splits.iter().zip(&expected) {
                        let bases: Vec<i64> =
                            split.segments.iter().map(|segment| segment.base_offset).collect();
                        let is_changed = |(base, change): &&(i64, Change)| match change {
                            Change::Ended { log_end_offset } => split.end_offset > *log_end_offset,
                            _ => bases.contains(base),
                        };
                        let first = changed.iter().find(is_changed);
                        let found = log.change_since(split).unwrap();
                        assert_eq!(
                            found.map(|(segment, change)| (segment.base_offset, change)).as_ref(),
                            first,
                            "{name}, {io:?}, {split:?}"
                        );
                        let found = rows(&log, split);
                        if first.is_some() {
                            assert_eq!(found, Err("log_changed"), "{name}");
                        } else if bases.iter().any(|base| damaged.contains(base)) {
                            assert!(
                                found == Err("corrupt") || found.as_ref() == Ok(expected),
                                "{name}: {found:?}"
                            );
                        } else {
                            assert_eq!(found.as_ref(), Ok(expected), "{name}");
                        }
                    }
                }
                // a log that was opened before the change returns the planned records, or an error
                if io == Io::Pread {
                    for (split, expected) in splits.iter().zip(&expected) {
                        if let Ok(found) = rows(&planned, split) {
                            assert_eq!(&found, expected, "{name}");
                        }
                    }
                }
            }
        }
    }
    let kinds: BTreeSet<_> = CASES
        .iter()
        .flat_map(|case| case.changed)
        .map(|(_, change)| format!("{change:?}")[..4].to_owned())
        .collect();
    assert_eq!(kinds.len(), 4);
}

#[test]
fn the_error_of_a_changed_split_contains_the_file_and_both_states() {
    let parent = folder();
    let dir = write_log(parent.path());
    let [split] = &open(&dir, Io::Auto).plan(u64::MAX, &ScanOptions::default()).unwrap()[..] else {
        panic!()
    };
    resize(&log_file(&dir, 10), 100);
    let error = open(&dir, Io::Auto).scan_split(split, ScanOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{} changed while it was read: expected the segment that was planned, 710 bytes, \
             found a segment shortened to 100 bytes",
            log_file(&dir, 10).display()
        )
    );
}

#[test]
fn a_split_has_the_segments_that_contain_its_range() {
    let parent = folder();
    let dir = write_log(parent.path());
    // as a broker preallocates it
    resize(&log_file(&dir, 20), 4096);
    let log = open(&dir, Io::Auto);
    let splits = log.plan(3 * SIZE, &ScanOptions::default()).unwrap();
    assert!(splits.len() >= 10);
    for Split { start_offset, end_offset, segments, .. } in &splits {
        let covered = [0, 10, 20].into_iter().filter(|base| base + 10 > *start_offset && base < end_offset);
        let expected: Vec<_> = covered
            .map(|base| PlannedSegment {
                base_offset: base,
                size: 10 * SIZE,
                first_batch_crc: batch(base, "old").bytes[17..21].try_into().ok().map(u32::from_be_bytes),
                is_last: base == 20,
            })
            .collect();
        assert_eq!(segments, &expected);
    }
    // the roll of a broker cuts the file to its batches
    resize(&log_file(&dir, 20), 10 * SIZE);
    let later = open(&dir, Io::Auto);
    assert!(splits.iter().all(|split| later.change_since(split).unwrap().is_none()));
}

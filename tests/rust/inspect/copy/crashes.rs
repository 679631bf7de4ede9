//! Copies that are interrupted by a crash at each operation, and continued.

use std::collections::HashSet;
use std::path::Path;

use cordwood::fs::Directory;
use cordwood::fs::mem::{Fault, FaultKind, MemoryDisk};
use cordwood::inspect::copy::{CopyOptions, copy_in};
use cordwood::log::{OnDamage, Ranges};
use cordwood::{Error, Log, LogOptions};

use crate::support::golden::{Partition, intact};
use crate::support::reading::all;

type Files = Vec<(String, Vec<u8>)>;

const PATH: &str = "/copy";

fn partition(case: &str) -> Partition {
    intact().into_iter().find(|partition| partition.case == case).unwrap()
}

fn files(disk: &MemoryDisk) -> Files {
    disk.shown().files().into_iter().map(|(name, bytes)| (name, bytes.to_vec())).collect()
}

fn copy_to(source: &Path, disk: &MemoryDisk, options: &CopyOptions) -> Result<(), Error> {
    let source = Directory::open(source, "").unwrap();
    copy_in(&source, &disk.directory(PATH), options, &mut |_| Ok(())).map(drop)
}

/// A reader of an interrupted copy finds no log, or the whole copy.
fn assert_nothing_or_all(disk: &MemoryDisk, expected: &[i64], what: &str) {
    match Log::open_in(disk.directory(PATH), LogOptions::default()) {
        Err(Error::LogNotFound { .. }) => {}
        Err(error) => panic!("{what}: {error}"),
        Ok(log) => assert_eq!(all(&log, OnDamage::Raise).whole().offsets(), expected, "{what}"),
    }
}

fn cases() -> Vec<(Partition, CopyOptions)> {
    let of = |start, end| CopyOptions {
        ranges: Ranges { start_offset: start, end_offset: end, ..Ranges::default() },
        ..CopyOptions::default()
    };
    vec![
        (partition("11-transactions"), of(Some(330), Some(420))),
        (partition("01-small"), of(None, Some(200))),
    ]
}

#[test]
fn a_copy_that_loses_power_at_any_operation_is_nothing_or_whole_and_can_be_continued() {
    for (partition, options) in cases() {
        let disk = MemoryDisk::default();
        disk.record();
        copy_to(&partition.dir, &disk, &options).unwrap();
        let mut points = disk.recorded();
        let whole = files(&disk);
        let log = Log::open_in(disk.directory(PATH), LogOptions::default()).unwrap();
        let expected = all(&log, OnDamage::Raise).whole().offsets();
        assert_eq!(disk.crash_point().changes(), 0, "{}: all of it is durable", partition.case);
        // every operation at the start and at the end, and a part of those between
        let count = points.len();
        let mut number = 0;
        points.retain(|_| {
            number += 1;
            number < 12 || number + 40 > count || number % 7 == 0
        });
        let mut seen = HashSet::new();
        for (number, (operation, point)) in points.into_iter().enumerate() {
            for survivors in point.survivors(2, number as u64) {
                let image = point.image(survivors);
                if !seen.insert(image.hash()) {
                    continue;
                }
                let what = format!("{} before {operation}, {survivors:?}", partition.case);
                let disk = image.disk();
                assert_nothing_or_all(&disk, &expected, &what);
                copy_to(&partition.dir, &disk, &options).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(files(&disk) == whole, "{what}");
            }
        }
        assert!(seen.len() > 100, "{}: {} states", partition.case, seen.len());
    }
}

#[test]
fn a_copy_that_fails_or_is_killed_at_any_operation_can_be_continued() {
    for (partition, options) in cases() {
        let disk = MemoryDisk::default();
        copy_to(&partition.dir, &disk, &options).unwrap();
        let (operations, whole) = (disk.operations(), files(&disk));
        for kind in [FaultKind::Killed, FaultKind::InputOutput, FaultKind::NoSpace] {
            for at in (0..operations).step_by(if kind == FaultKind::Killed { 1 } else { 5 }) {
                let disk = MemoryDisk::default();
                disk.set_fault(Some(Fault { at, kind, forever: false }));
                let first = copy_to(&partition.dir, &disk, &options);
                assert!(first.is_err() || kind == FaultKind::NoSpace, "{} {kind:?} at {at}", partition.case);
                disk.set_fault(None);
                copy_to(&partition.dir, &disk, &options)
                    .unwrap_or_else(|error| panic!("{} {kind:?} at {at}: {error}", partition.case));
                assert!(files(&disk) == whole, "{} {kind:?} at {at}", partition.case);
            }
        }
    }
}

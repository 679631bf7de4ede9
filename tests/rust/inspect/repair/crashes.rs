//! A repair that is killed, loses power or meets a full disk at any operation, and is run again: the result
//! is that of an uninterrupted one.

use cordwood::fs::mem::{Fault, FaultKind, Image, MemoryDisk, Survivors};
use cordwood::inspect::repair::repair_in;

use super::*;
use crate::support::golden;

pub(super) const PATH: &str = "/tickets-0";

/// A log with damage in three of its four segments, a torn tail, wrong and missing indexes, leftovers, and
/// the durable offset of a writer.
fn damaged() -> Files {
    let source = golden::intact().into_iter().find(|partition| partition.case == "01-small").unwrap();
    let mut files = reading::files(&source.dir);
    let name = |base: i64, suffix: &str| format!("{base:020}{suffix}");
    files.get_mut(&name(0, ".log")).unwrap()[2408] ^= 1 << 6;
    files.get_mut(&name(96, ".log")).unwrap()[400..1400].fill(0xaa);
    files.get_mut(&name(285, ".log")).unwrap()[2303] ^= 1;
    let last = files.get_mut(&name(285, ".log")).unwrap();
    last.truncate(10_200);
    files.get_mut(&name(189, ".timeindex")).unwrap()[5] ^= 4;
    files.remove(&name(96, ".index"));
    files.insert(name(0, ".log.cleaned"), b"an interrupted compaction".to_vec());
    files.insert(name(500, ".index.deleted"), vec![7; 80]);
    files.insert("leader-epoch-checkpoint".to_owned(), b"0\n1\nzero 0\n".to_vec());
    files
}

pub(super) fn disk(files: &Files) -> MemoryDisk {
    let disk = MemoryDisk::new(512);
    for (name, bytes) in files {
        disk.put(name, bytes);
    }
    disk
}

pub(super) fn files_of(image: &Image) -> Files {
    let own = |name: &str| name.starts_with(".cordwood.lock");
    let found = image.files().into_iter().filter(|(name, _)| !own(name));
    found.map(|(name, bytes)| (name, bytes.to_vec())).collect()
}

/// The batches of the source.
fn source() -> Vec<OwnBatch> {
    let source = golden::intact().into_iter().find(|partition| partition.case == "01-small").unwrap();
    batches(&source.dir, OnDamage::Raise)
}

/// What a reader returns that skips damage: never a batch that was not in the log.
fn assert_readable(image: &Image, source: &[(i64, i64)], at_least: usize, place: &str) {
    let log = Log::open_in(image.disk().directory(PATH), LogOptions::default()).unwrap();
    let read = reading::all(&log, OnDamage::Skip);
    assert!(read.error.is_none(), "{place}: {:?}", read.error);
    let found: Vec<_> = read.batches.iter().map(|batch| (batch.base_offset, batch.last_offset)).collect();
    assert!(found.iter().all(|batch| source.contains(batch)), "{place}: a batch that was not there");
    assert!(found.len() >= at_least, "{place}: {} batches", found.len());
}

/// `random`: the number of random sets of surviving changes at each point; `None`: only a few sets.
fn explore(policy: RepairPolicy, at_least: usize, lost: usize, random: Option<u64>) -> usize {
    let options = options(policy, 1024);
    let before = damaged();
    let undisturbed = disk(&before);
    let plan = repair_in(&undisturbed.directory(PATH), &options).unwrap();
    assert_eq!(plan.lost_ranges.len(), lost, "{:#?}", plan.lost_ranges);
    let wanted = files_of(&undisturbed.shown());
    assert_conserved(&before, &wanted, &plan);
    let source: Vec<_> = source().iter().map(|(first, last, _)| (*first, *last)).collect();

    crash_everywhere(&before, &options, random, |image, place| {
        assert_readable(image, &source, at_least, place);
    })
}

/// Repairs files with a crash before each operation, again, and compares with an uninterrupted repair.
/// `check`: called with what is on the disk after the crash. Returns the number of crashes.
pub(super) fn crash_everywhere(
    before: &Files,
    options: &RepairOptions,
    random: Option<u64>,
    check: impl Fn(&Image, &str),
) -> usize {
    let undisturbed = disk(before);
    repair_in(&undisturbed.directory(PATH), options).unwrap();
    let wanted = files_of(&undisturbed.shown());
    let crashed = disk(before);
    crashed.record();
    repair_in(&crashed.directory(PATH), options).unwrap();
    let mut images = 0;
    let points = crashed.recorded();
    for (number, (operation, point)) in points.iter().enumerate() {
        let few = vec![Survivors::None, Survivors::All, Survivors::Random(number as u64)];
        for survivors in random.map_or(few, |random| point.survivors(random, number as u64)) {
            let place = format!("{}: before {operation}, {survivors:?}", options.policy.code());
            let image = point.image(survivors);
            images += 1;
            if matches!(survivors, Survivors::All | Survivors::None) {
                check(&image, &place);
            }
            let disk = image.disk();
            repair_in(&disk.directory(PATH), options).unwrap_or_else(|error| panic!("{place}: {error}"));
            let found = files_of(&disk.shown());
            let differs: Vec<_> =
                wanted.iter().filter(|(name, bytes)| found.get(*name) != Some(*bytes)).collect();
            assert!(
                differs.is_empty(),
                "{place}: {:?}",
                differs.iter().map(|(name, _)| name).collect::<Vec<_>>()
            );
            // a temporary copy that the crash left may remain beside the copies
            let more: Vec<_> = found.keys().filter(|name| !wanted.contains_key(*name)).collect();
            assert!(
                more.iter().all(|name| Path::new(name).extension().is_some_and(|suffix| suffix == "tmp")),
                "{place}: {more:?}"
            );
        }
    }
    images
}

#[test]
fn a_salvage_that_crashes_anywhere_is_completed_by_the_next() {
    let images = explore(RepairPolicy::Salvage, 70, 3, None);
    assert!(images > 150, "{images} images");
}

#[test]
#[ignore = "takes minutes; `make repair-crashes` runs it"]
fn a_repair_that_loses_any_set_of_changes_is_completed_by_the_next() {
    let images =
        explore(RepairPolicy::Salvage, 70, 3, Some(12)) + explore(RepairPolicy::Kafka, 3, 4, Some(12));
    println!("{{\"rig\": \"crashes of a repair\", \"images\": {images}}}");
    assert!(images > 1_000, "{images} images");
}

#[test]
fn a_cut_that_crashes_anywhere_is_completed_by_the_next() {
    let images = explore(RepairPolicy::Kafka, 3, 4, None);
    assert!(images > 60, "{images} images");
}

#[test]
fn a_repair_that_fails_anywhere_is_completed_by_the_next() {
    let options = options(RepairPolicy::Salvage, 1024);
    let before = damaged();
    let undisturbed = disk(&before);
    repair_in(&undisturbed.directory(PATH), &options).unwrap();
    let wanted = files_of(&undisturbed.shown());
    let mut failures = 0;
    for kind in [FaultKind::NoSpace, FaultKind::InputOutput, FaultKind::Killed] {
        for at in 0.. {
            let disk = disk(&before);
            disk.set_fault(Some(Fault { at, kind, forever: true }));
            let failed = repair_in(&disk.directory(PATH), &options);
            if !disk.fault_is_over() {
                break;
            }
            disk.set_fault(None);
            failures += usize::from(failed.is_err());
            let disk = disk.shown().disk();
            repair_in(&disk.directory(PATH), &options).unwrap();
            let found = files_of(&disk.shown());
            for (name, bytes) in &wanted {
                assert!(found.get(name) == Some(bytes), "{kind:?} at operation {at}: {name} differs");
            }
        }
    }
    assert!(failures > 100, "{failures} failures");
}

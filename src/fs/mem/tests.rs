use std::collections::HashSet;

use super::*;
use crate::Error;
use crate::fs::{FileType, Staged};

fn disk() -> (MemoryDisk, Directory) {
    let disk = MemoryDisk::new(8);
    let directory = disk.directory("/log");
    (disk, directory)
}

/// The distinct contents of a file in all images of a crash point; `None` if the file is missing.
fn outcomes(point: &CrashPoint, name: &str) -> HashSet<Option<Vec<u8>>> {
    let images = point.survivors(200, 1).into_iter().map(|survivors| point.image(survivors));
    images
        .map(|image| {
            let files = image.files();
            files.iter().find(|(path, _)| path == name).map(|(_, bytes)| bytes.to_vec())
        })
        .collect()
}

#[test]
fn a_write_is_visible_and_survives_only_when_synced() {
    let (disk, directory) = disk();
    let file = directory.create("a").unwrap();
    file.write_all_at(b"01234567", 0).unwrap();
    file.write_all_at(b"89abcdef", 8).unwrap();
    assert_eq!(directory.read_small("a", 99).unwrap().unwrap(), b"0123456789abcdef");
    directory.sync().unwrap();
    let found = outcomes(&disk.crash_point(), "a");
    for expected in [
        &b""[..],
        b"01234567",
        b"\0\0\0\0\0\0\0\0",
        b"0123456789abcdef",
        b"01234567\0\0\0\0\0\0\0\0",
        b"\0\0\0\0\0\0\0\089abcdef",
        b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    ] {
        assert!(found.contains(&Some(expected.to_vec())), "{expected:?} of {found:?}");
    }
    assert_eq!(found.len(), 7, "these are all valid outcomes");
    file.sync().unwrap();
    assert_eq!(outcomes(&disk.crash_point(), "a").len(), 1);
}

#[test]
fn a_sector_has_the_contents_of_one_point_in_time() {
    let (disk, directory) = disk();
    let file = directory.create("a").unwrap();
    file.write_all_at(b"0123", 0).unwrap();
    file.sync().unwrap();
    directory.sync().unwrap();
    file.write_all_at(b"AA", 0).unwrap();
    file.write_all_at(b"BB", 2).unwrap();
    let found = outcomes(&disk.crash_point(), "a");
    let expected = ["0123", "AA23", "AABB"].map(|text| Some(text.as_bytes().to_vec()));
    assert_eq!(found, HashSet::from(expected));
}

#[test]
fn a_truncation_that_is_not_synced_may_be_lost() {
    let (disk, directory) = disk();
    let file = directory.create("a").unwrap();
    file.write_all_at(b"0123456789", 0).unwrap();
    file.sync().unwrap();
    directory.sync().unwrap();
    file.set_size(4).unwrap();
    let found = outcomes(&disk.crash_point(), "a");
    assert!(found.contains(&Some(b"0123456789".to_vec())) && found.contains(&Some(b"0123".to_vec())));
    file.set_size(6).unwrap();
    assert_eq!(directory.read_small("a", 99).unwrap().unwrap(), b"0123\0\0");
    file.sync().unwrap();
    assert_eq!(outcomes(&disk.crash_point(), "a"), HashSet::from([Some(b"0123\0\0".to_vec())]));
}

#[test]
fn names_survive_as_any_subset_and_a_rename_is_atomic() {
    let (disk, directory) = disk();
    for (name, bytes) in [("a", b"old"), ("b", b"new")] {
        let file = directory.create(name).unwrap();
        file.write_all_at(bytes, 0).unwrap();
        file.sync().unwrap();
    }
    assert_eq!(outcomes(&disk.crash_point(), "a").len(), 2, "a synced file may lack its name");
    directory.sync().unwrap();
    directory.rename("b", "a").unwrap();
    directory.create("c").unwrap();
    let point = disk.crash_point();
    let states: HashSet<Vec<(String, Vec<u8>)>> = point
        .survivors(50, 2)
        .into_iter()
        .map(|survivors| point.image(survivors).files())
        .map(|files| files.into_iter().map(|(name, bytes)| (name, bytes.to_vec())).collect())
        .collect();
    assert_eq!(states.len(), 4);
    for state in states {
        let names: Vec<_> = state.iter().map(|(name, _)| &**name).collect();
        match state[0].1.as_slice() {
            b"old" => assert!(names.contains(&"b")),
            b"new" => assert!(!names.contains(&"b")),
            other => panic!("{other:?}"),
        }
    }
    directory.remove("c").unwrap();
    directory.sync().unwrap();
    assert_eq!(disk.crash_point().changes(), 0);
    assert_eq!(directory.entries().unwrap(), [("a".to_owned(), FileType::RegularFile)]);
}

#[test]
fn a_crash_point_is_recorded_before_every_operation() {
    let (disk, directory) = disk();
    disk.record();
    directory.replace("a", b"something").unwrap();
    let recorded = disk.recorded();
    let words: Vec<_> = recorded.iter().map(|(operation, _)| operation.to_string()).collect();
    let expected = ["create a.tmp", "write a.tmp 0+9", "sync a.tmp", "rename a.tmp a", "sync folder"];
    assert_eq!(words, expected);
    for (_, point) in &recorded {
        let found = outcomes(point, "a");
        assert!(found.iter().all(|bytes| bytes.as_deref().is_none_or(|bytes| bytes == b"something")));
    }
    assert_eq!(outcomes(&disk.crash_point(), "a"), HashSet::from([Some(b"something".to_vec())]));
}

#[test]
fn after_a_failed_sync_the_bytes_are_visible_until_the_cache_is_dropped_and_never_durable() {
    let (disk, directory) = disk();
    let file = directory.create("a").unwrap();
    directory.sync().unwrap();
    file.write_all_at(b"0123", 0).unwrap();
    disk.set_fault(Some(Fault { at: 0, kind: FaultKind::InputOutput, forever: false }));
    assert!(matches!(file.sync(), Err(Error::Io { .. })));
    // this handle remembers the failure; a new handle of the file does not, as with the system's files
    assert!(matches!(file.sync(), Err(Error::Io { .. })));
    directory.open_writable("a").unwrap().sync().unwrap();
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"0123");
    assert_eq!(outcomes(&disk.crash_point(), "a"), HashSet::from([Some(vec![0; 4])]));
    directory.open_file("a").unwrap().forget_cached().unwrap();
    file.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, [0; 4]);
}

#[test]
fn a_write_to_a_full_disk_is_short_first() {
    let (disk, directory) = disk();
    let file = directory.create("a").unwrap();
    disk.set_fault(Some(Fault { at: 0, kind: FaultKind::NoSpace, forever: true }));
    assert!(file.write_all_at(b"0123", 0).is_err());
    assert_eq!(file.identity().unwrap().size, 2);
    file.write_all_at(b"xy", 0).unwrap(); // these blocks are allocated
    assert!(directory.create("b").is_err() && file.allocate(99).is_err());
    directory.remove("a").unwrap();
    disk.set_fault(None);
    directory.create("b").unwrap();
}

#[test]
fn a_write_continues_after_interruptions_and_short_writes() {
    for (kind, forever) in [
        (FaultKind::Interrupted, false),
        (FaultKind::Interrupted, true),
        (FaultKind::ShortWrite, false),
        (FaultKind::ShortWrite, true),
    ] {
        let (disk, directory) = disk();
        let file = directory.create("a").unwrap();
        disk.set_fault(Some(Fault { at: 0, kind, forever }));
        file.write_all_at(b"0123456789", 0).unwrap();
        assert!(disk.fault_is_over());
        assert_eq!(directory.read_small("a", 99).unwrap().unwrap(), b"0123456789");
    }
}

#[test]
fn equal_images_have_equal_hashes_and_different_images_different_ones() {
    let (disk, directory) = disk();
    let folder = directory.folder("quarantine").unwrap();
    for (number, in_folder) in [(1u8, false), (2, true)] {
        let directory = if in_folder { &folder } else { &directory };
        let file = directory.create(&number.to_string()).unwrap();
        file.write_all_at(&[number; 20], 0).unwrap();
    }
    let point = disk.crash_point();
    let images = point.survivors(300, 3).into_iter().map(|survivors| point.image(survivors));
    let mut by_hash = std::collections::HashMap::new();
    for image in images {
        let entries: Vec<_> = image.disk().directory("/x").entries().unwrap();
        let content = (entries, image.files());
        assert_eq!(*by_hash.entry(image.hash()).or_insert_with(|| content.clone()), content);
    }
    let contents: HashSet<_> = by_hash.values().map(|content| format!("{content:?}")).collect();
    assert_eq!(contents.len(), by_hash.len());
    assert!(by_hash.len() > 20, "{}", by_hash.len());
}

#[test]
fn a_failed_replacement_keeps_the_file_and_leaves_no_staged_file() {
    let (disk, directory) = disk();
    directory.replace("a", b"complete").unwrap();
    for at in 1..4 {
        // the operations: create, write, sync, rename
        disk.set_fault(Some(Fault { at, kind: FaultKind::InputOutput, forever: false }));
        let replaced = directory.stage_start("a", 2).and_then(Staged::put);
        assert!(replaced.is_err(), "operation {at}");
        disk.set_fault(None);
        assert_eq!(directory.entries().unwrap(), [("a".to_owned(), FileType::RegularFile)]);
        assert_eq!(directory.read_small("a", 99).unwrap().unwrap(), b"complete");
    }
    directory.stage_start("a", 2).unwrap().put().unwrap();
    assert_eq!(directory.read_small("a", 99).unwrap().unwrap(), b"co");
}

#[test]
fn a_disk_with_few_free_sectors_is_full_until_a_file_is_removed() {
    let (disk, directory) = disk();
    let is_full = |error: &Error| matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull);
    let file = directory.create("a").unwrap();
    file.write_all_at(&[1; 16], 0).unwrap();
    assert!(!file.reserve(16, 8), "nothing is reserved on a disk without a limit");
    disk.set_free_sectors(Some(3));
    // a write is short, and its rest fails
    assert!(is_full(&file.write_all_at(&[2; 30], 16).unwrap_err()));
    assert_eq!(directory.read_small("a", 99).unwrap().unwrap().len(), 40);
    assert!(is_full(&directory.create("b").unwrap_err()));
    file.write_all_at(&[3; 40], 0).unwrap();
    file.set_size(16).unwrap();
    // its name, and two sectors beyond its end
    let spare = directory.create("spare").unwrap();
    assert!(spare.reserve(0, 16) && !spare.reserve(0, 17));
    assert!(is_full(&file.write_all_at(&[4], 16).unwrap_err()));
    directory.remove("spare").unwrap();
    file.write_all_at(&[4; 24], 16).unwrap();
    assert!(is_full(&file.allocate(41).unwrap_err()));
    disk.set_free_sectors(None);
    file.allocate(80).unwrap();
}

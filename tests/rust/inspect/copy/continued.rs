//! Copies that were not completed, and are continued by another call.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use cordwood::Error;
use cordwood::fs::names::PartitionName;
use cordwood::fs::{Directory, Lock};
use cordwood::inspect::copy::{CopyOptions, CopyReport, copy, copy_data_directory};
use cordwood::log::{OnDamage, Ranges};

use super::support::{copied, files, of_offsets, open, same_files};
use crate::support::golden::{intact, root};
use crate::support::reading::folder;

const JOURNAL: &str = ".cordwood.copy";

fn small() -> PathBuf {
    intact().into_iter().find(|partition| partition.case == "01-small").unwrap().dir
}

fn copied_directory(source: &Path, to: &Path, options: &CopyOptions) -> Result<CopyReport, Error> {
    copy_data_directory(source, to, options, |_| true, &mut |_| Ok(()))
}

/// Begins a copy that ends before it is committed.
fn begun(source: &Path, to: &Path, options: &CopyOptions) {
    let ended = copy(source, to, options, &mut |_| Err(Error::Interrupted("the test".into())));
    assert!(matches!(ended, Err(Error::Interrupted(_))));
    assert!(to.join(JOURNAL).exists());
}

fn assert_refused(result: Result<CopyReport, Error>, expected: &str, what: &str) {
    match result {
        Err(Error::Config { argument, found, .. }) => {
            assert_eq!(argument, "destination", "{what}: {found}");
            assert!(found.contains(expected), "{what}: {found}");
        }
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn an_unfinished_copy_is_continued_with_the_same_range_only() {
    let (folder, source) = (folder(), small());
    let times = |start_time, end_time| CopyOptions {
        ranges: Ranges { start_time, end_time, ..Ranges::default() },
        ..CopyOptions::default()
    };
    let ranges = [
        CopyOptions::default(),
        of_offsets(None, Some(200)),
        of_offsets(Some(100), None),
        of_offsets(Some(100), Some(200)),
        times(Some(1), None),
        times(None, Some(i64::MAX)),
    ];
    for (first, began) in ranges.iter().enumerate() {
        for (second, other) in ranges.iter().enumerate() {
            let to = folder.path().join(format!("{first}-{second}"));
            begun(&source, &to, began);
            let before = files(&to);
            let result = copied(&source, &to, other);
            if first == second {
                result.unwrap();
                assert!(!to.join(JOURNAL).exists());
            } else {
                assert_refused(result, "the unfinished copy of", &format!("{first} {second}"));
                assert!(files(&to) == before, "{first} {second}");
            }
        }
    }
}

/// A partition of a data directory is complete before the others are, and keeps its journal until then.
#[test]
fn a_data_directory_is_continued_with_the_same_range_only() {
    let folder = folder();
    let source = folder.path().join("source");
    for name in ["aaa-0", "bbb-0"] {
        same_files(&small(), &source.join(name));
    }
    let log = source.join("bbb-0/00000000000000000000.log");
    let mut bytes = fs::read(&log).unwrap();
    bytes[3000] ^= 1;
    fs::write(&log, bytes).unwrap();
    let to = folder.path().join("copy");
    // between two batches
    let end = 204;
    assert!(matches!(
        copied_directory(&source, &to, &of_offsets(None, Some(end))),
        Err(Error::Corrupt { .. })
    ));
    assert_eq!(open(&to.join("aaa-0")).log_end_offset().unwrap(), end);
    let whole = CopyOptions { on_damage: OnDamage::Skip, ..CopyOptions::default() };
    assert_refused(copied_directory(&source, &to, &whole), "the unfinished copy of", "the directory");
    let same = CopyOptions { on_damage: OnDamage::Skip, ..of_offsets(None, Some(end)) };
    let report = copied_directory(&source, &to, &same).unwrap();
    assert_eq!(report.partitions.len(), 2);
    for partition in &report.partitions {
        assert_eq!(partition.end_offset, Some(end));
        assert!(!partition.path.join(JOURNAL).exists());
    }
    assert!(!to.join(JOURNAL).exists());
}

/// The files that a crash leaves between the commit of a copy and the last step.
#[test]
fn a_copy_that_was_committed_before_a_crash_gets_its_lines_in_the_checkpoints() {
    let folder = folder();
    let source = folder.path().join("source-0");
    same_files(&small(), &source);
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::copy(root().join("16-data-dir/meta.properties"), data.join("meta.properties")).unwrap();
    let (to, points) = (data.join("orders-0"), data.join("recovery-point-offset-checkpoint"));
    begun(&source, &to, &CopyOptions::default());
    let journal = fs::read(to.join(JOURNAL)).unwrap();
    copied(&source, &to, &CopyOptions::default()).unwrap();
    let expected = fs::read_to_string(&points).unwrap();
    assert!(expected.contains("orders 0 370"), "{expected}");
    fs::write(&points, "0\n0\n").unwrap();
    fs::write(to.join(JOURNAL), journal).unwrap();
    copied(&source, &to, &CopyOptions::default()).unwrap();
    assert_eq!(fs::read_to_string(&points).unwrap(), expected);
    assert!(!to.join(JOURNAL).exists());
}

/// Each partition locks the data directory too; between two of them, and after the last one, a broker could
/// start.
#[test]
fn the_data_directory_is_locked_while_partitions_are_copied_into_it() {
    let folder = folder();
    let source = folder.path().join("source");
    for number in 0..16 {
        same_files(&small(), &source.join(format!("orders-{number}")));
    }
    let to = folder.path().join("copy");
    let (begun, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let taken = std::thread::scope(|scope| {
        let broker = scope.spawn(|| {
            let mut taken = 0;
            while !ended.load(Ordering::Relaxed) {
                if begun.load(Ordering::Relaxed) {
                    let data = Directory::open(&to, "").unwrap();
                    let is_free = Lock::exclusive(&data, ".lock").is_ok();
                    // the copy may have ended since the condition of the loop
                    taken += u32::from(is_free && !ended.load(Ordering::SeqCst));
                }
            }
            taken
        });
        let (mut partitions, mut done) = (0, 0);
        let report = copy_data_directory(&source, &to, &CopyOptions::default(), |_| true, &mut |progress| {
            begun.store(true, Ordering::Relaxed);
            partitions += u32::from(progress.bytes > done);
            done = progress.bytes;
            // the last one
            ended.store(partitions == 16, Ordering::SeqCst);
            Ok(())
        });
        ended.store(true, Ordering::SeqCst);
        assert_eq!(report.map(|report| report.partitions.len()).unwrap_or_default(), 16);
        broker.join().unwrap()
    });
    assert_eq!(taken, 0);
    // it is free again
    Lock::exclusive(&Directory::open(&to, "").unwrap(), ".lock").unwrap();
}

#[test]
fn copies_of_several_partitions_into_one_data_directory_keep_the_lines_of_each_other() {
    let folder = folder();
    let source = folder.path().join("source");
    let name = "replication-offset-checkpoint";
    let lines: Vec<_> = (0..12).map(|number| format!("orders {number} 200")).collect();
    for number in 0..12 {
        same_files(&small(), &source.join(format!("orders-{number}")));
    }
    fs::write(source.join(name), format!("0\n12\n{}\n", lines.join("\n"))).unwrap();
    let to = folder.path().join("copy");
    copy_data_directory(&source, &to, &CopyOptions::default(), |name| name.partition == 0, &mut |_| Ok(()))
        .unwrap();
    // so that it takes a while to rewrite the file
    let more: Vec<_> = (0..20_000).map(|number| format!("more {number} 1")).collect();
    fs::write(to.join(name), format!("0\n20001\norders 0 200\n{}\n", more.join("\n"))).unwrap();
    std::thread::scope(|scope| {
        for number in 1..12 {
            let (source, to) = (&source, &to);
            scope.spawn(move || {
                let is_wanted = |name: &PartitionName| name.partition == number;
                copy_data_directory(source, to, &CopyOptions::default(), is_wanted, &mut |_| Ok(())).unwrap();
            });
        }
    });
    let copied = fs::read_to_string(to.join(name)).unwrap();
    for line in &lines {
        assert!(copied.lines().any(|copied| copied == line), "{line}: {copied}");
    }
}

#[test]
fn a_name_that_a_data_directory_does_not_allow_is_refused_before_anything_is_created() {
    let folder = folder();
    let data = folder.path().join("data");
    fs::create_dir_all(data.join("orders")).unwrap();
    fs::copy(root().join("16-data-dir/meta.properties"), data.join("meta.properties")).unwrap();
    for name in ["orders", "payments"] {
        let error = copied(&small(), &data.join(name), &CopyOptions::default()).unwrap_err();
        assert!(matches!(&error, Error::Config { argument, .. } if argument == "path"), "{error}");
    }
    assert_eq!(fs::read_dir(&data).unwrap().count(), 2);
    assert_eq!(fs::read_dir(data.join("orders")).unwrap().count(), 0);
}

//! Copies of damaged logs, and destinations that are something else.

use std::fs;
use std::path::Path;

use cordwood::Error;
use cordwood::inspect::copy::CopyOptions;
use cordwood::log::OnDamage;

use super::support::{copied, files, of_offsets, open, same_files};
use crate::support::golden::{damaged, intact};
use crate::support::reading::{all, folder};

#[test]
fn a_copy_that_skips_damage_has_the_records_that_a_scan_returns() {
    let folder = folder();
    for case in damaged() {
        let to = folder.path().join(case.case.replace('/', "-"));
        let options = CopyOptions { on_damage: OnDamage::Skip, ..CopyOptions::default() };
        let source = open(&case.dir);
        let read = all(&source, OnDamage::Skip);
        let report = match copied(&case.dir, &to, &options) {
            Ok(report) => report,
            Err(error) => {
                assert_eq!(
                    Some(error.code()),
                    read.error.as_ref().map(Error::code),
                    "{}: {error}",
                    case.case
                );
                continue;
            }
        };
        let read = read.whole();
        let copy = all(&open(&to), OnDamage::Skip).whole();
        let in_copy: Vec<_> =
            copy.records().filter(|record| record.offset >= source.log_start_offset()).collect();
        assert_eq!(in_copy, read.records().collect::<Vec<_>>(), "{}", case.case);
        // what the copy still skips are batches with a valid checksum whose records cannot be read
        let left_out = read.gaps.len() - copy.gaps.len();
        assert_eq!(report.damaged_ranges.len(), left_out, "{}: {:?}", case.case, read.gaps);
        if copy.gaps.is_empty() {
            assert_eq!(report.damaged_ranges, read.gaps, "{}", case.case);
        }
        let again = copied(&case.dir, &to, &options).unwrap_or_else(|error| panic!("{}: {error}", case.case));
        assert_eq!(
            (again.bytes_written, &again.damaged_ranges),
            (0, &report.damaged_ranges),
            "{}",
            case.case
        );
    }
}

/// A log ends before a damaged last batch, which is no damage to a scan.
#[test]
fn bytes_after_the_last_whole_batch_are_a_warning_unless_they_are_zeros() {
    let folder = folder();
    let intact = || intact().into_iter();
    let source = same_files(
        &intact().find(|partition| partition.case == "01-small").unwrap().dir,
        &folder.path().join("source-0"),
    );
    let log = source.join("00000000000000000285.log");
    let mut bytes = fs::read(&log).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&log, bytes).unwrap();
    let warnings = |source: &Path, to: &str, options: &CopyOptions| {
        let report = copied(source, &folder.path().join(to), options).unwrap();
        if report.damaged_ranges.iter().all(|range| !range.is_tail()) {
            return report.warnings;
        }
        assert!(report.warnings.is_empty(), "it is reported once");
        report
            .damaged_ranges
            .into_iter()
            .map(|range| format!("{}: {}", range.file.display(), range.reason))
            .collect()
    };
    let end = open(&source).log_end_offset().unwrap();
    assert!(end < 370);
    for on_damage in [OnDamage::Raise, OnDamage::Skip] {
        let options = CopyOptions { on_damage, ..CopyOptions::default() };
        let found = warnings(&source, &format!("{on_damage:?}-0"), &options);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(log.to_str().unwrap()), "{found:?}");
        let is_said = found[0].contains(&format!("the data ends there, at offset {end}"));
        assert_eq!(is_said, on_damage == OnDamage::Raise, "{found:?}");
    }
    // they do not belong to an earlier range
    assert!(warnings(&source, "before-0", &of_offsets(None, Some(200))).is_empty());
    for (number, partition) in intact().filter(|one| one.case.starts_with("14-killed")).enumerate() {
        let found = warnings(&partition.dir, &format!("killed-{number}"), &CopyOptions::default());
        assert!(found.is_empty(), "{}: {found:?}", partition.case);
    }
}

#[test]
fn damage_ends_a_copy_that_raises_and_no_log_is_left() {
    let folder = folder();
    for case in damaged() {
        let to = folder.path().join(case.case.replace('/', "-"));
        let expected = all(&open(&case.dir), OnDamage::Raise).error;
        match copied(&case.dir, &to, &CopyOptions::default()) {
            Ok(_) => assert!(expected.is_none(), "{}: {expected:?}", case.case),
            Err(error) => {
                assert!(
                    matches!(error, Error::Corrupt { .. } | Error::UnsupportedFormat { .. }),
                    "{}: {error}",
                    case.case
                );
                let is_log = |name: &String| name.split_once('.').is_some_and(|(_, kind)| kind == "log");
                assert!(!files(&to).keys().any(is_log), "{}", case.case);
            }
        }
    }
}

#[test]
fn a_destination_that_is_something_else_is_an_error_and_is_not_changed() {
    let folder = folder();
    let source = &intact()[0].dir;
    let other = &intact()[1].dir;
    let refused_as = |expected: &str, name: &str, options: &CopyOptions| {
        let to = folder.path().join(name);
        let names = || {
            let mut names: Vec<_> =
                fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = (files(&to), names());
        let error = copied(source, &to, options).unwrap_err();
        assert!(matches!(&error, Error::Config { argument, .. } if argument == expected), "{name}: {error}");
        // not even a lock file is created
        assert!((files(&to), names()) == before, "{name}");
    };
    let refused = |name: &str, options: &CopyOptions| refused_as("destination", name, options);
    same_files(other, &folder.path().join("another-log"));
    refused("another-log", &CopyOptions::default());
    fs::create_dir(folder.path().join("notes")).unwrap();
    fs::write(folder.path().join("notes/notes.txt"), "mine").unwrap();
    refused("notes", &CopyOptions::default());
    copied(source, &folder.path().join("shorter"), &of_offsets(None, Some(200))).unwrap();
    refused("shorter", &CopyOptions::default());
    refused("shorter", &of_offsets(Some(100), Some(200)));
    copied(source, &folder.path().join("flipped"), &CopyOptions::default()).unwrap();
    let log = folder.path().join("flipped/00000000000000000000.log");
    let mut bytes = fs::read(&log).unwrap();
    bytes[100] ^= 1;
    fs::write(&log, bytes).unwrap();
    refused("flipped", &CopyOptions::default());
    fs::create_dir(folder.path().join("data")).unwrap();
    same_files(&intact()[0].dir, &folder.path().join("data/orders-0"));
    refused_as("path", "data", &CopyOptions::default());
    for name in ["inside", ""] {
        let mine = same_files(source, &folder.path().join("mine"));
        let error = copied(&mine, &mine.join(name), &CopyOptions::default()).unwrap_err();
        assert!(matches!(error, Error::Config { .. }), "{error}");
    }
}

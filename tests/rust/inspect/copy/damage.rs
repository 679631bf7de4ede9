//! Copies of damaged logs, and destinations that are something else.

use std::fs;

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
    let refused = |name: &str, options: &CopyOptions| {
        let to = folder.path().join(name);
        let before = files(&to);
        let error = copied(source, &to, options).unwrap_err();
        assert!(
            matches!(&error, Error::Config { argument, .. } if argument == "destination"),
            "{name}: {error}"
        );
        assert_eq!(files(&to), before, "{name}");
    };
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
    for name in ["inside", ""] {
        let mine = same_files(source, &folder.path().join("mine"));
        let error = copied(&mine, &mine.join(name), &CopyOptions::default()).unwrap_err();
        assert!(matches!(error, Error::Config { .. }), "{error}");
    }
}

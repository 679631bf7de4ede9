//! `leader-epoch-checkpoint`: missing, malformed, and with starts that do not agree with the batches.

use std::fs;
use std::path::{Path, PathBuf};

use cordwood::inspect::repair::{RepairOptions, repair};
use cordwood::inspect::verify::{Finding, Rule, Severity};
use cordwood::types::Io;

use super::{options, verified};
use crate::support::golden;
use crate::support::reading::{copy, folder};

const FILE: &str = "leader-epoch-checkpoint";

fn case(parent: &Path, case: &str) -> PathBuf {
    let partition = golden::intact().into_iter().find(|partition| partition.case == case).unwrap();
    copy(&partition.dir, parent, &partition.name)
}

fn findings(dir: &Path) -> Vec<Finding> {
    verified(dir, &options(Io::Pread)).findings
}

#[test]
fn a_missing_file_is_a_warning_if_batches_have_epochs() {
    for (name, has_epochs) in
        [("19-leader-epochs", true), ("01-plain", true), ("17-v0-none", false), ("15-empty", false)]
    {
        let parent = folder();
        let dir = case(parent.path(), name);
        // old versions of Kafka wrote none
        let _ = fs::remove_file(dir.join(FILE));
        let found = findings(&dir);
        let rules: Vec<_> = found.iter().map(|finding| (finding.rule, finding.severity)).collect();
        let expected = has_epochs.then_some((Rule::LeaderEpochsMissing, Severity::Warning));
        assert_eq!(rules, Vec::from_iter(expected), "{name}");
        repair(&dir, &RepairOptions::default()).unwrap();
        assert_eq!(findings(&dir), [], "{name}");
    }
}

#[test]
fn an_epoch_that_starts_one_offset_too_early_or_too_late_is_found() {
    let parent = folder();
    let dir = case(parent.path(), "19-leader-epochs");
    let text = fs::read_to_string(dir.join(FILE)).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines.len() > 6);
    // the first epoch begins where the log does, or once did: batches before it were below the log start
    // offset
    for (number, line) in lines.iter().enumerate().skip(3) {
        let (epoch, start) = line.split_once(' ').unwrap();
        let start: i64 = start.parse().unwrap();
        for moved in [start - 1, start + 1] {
            let mut lines: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
            lines[number] = format!("{epoch} {moved}");
            fs::write(dir.join(FILE), lines.join("\n") + "\n").unwrap();
            let found = findings(&dir);
            let is_it = |finding: &&Finding| {
                matches!(finding.rule, Rule::LeaderEpochMismatch | Rule::LeaderEpochsWrong)
            };
            assert!(found.iter().any(|finding| is_it(&finding)), "{line} as {moved}: {found:?}");
        }
    }
}

#[test]
fn a_line_that_java_splits_differently_is_unreadable_and_is_repaired() {
    let parent = folder();
    let dir = case(parent.path(), "01-plain");
    fs::write(dir.join(FILE), "0\n1\n 0 0\n").unwrap();
    let found = findings(&dir);
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!((finding.rule, finding.severity), (Rule::LeaderEpochsUnreadable, Severity::Error));
    repair(&dir, &RepairOptions::default()).unwrap();
    assert_eq!(fs::read_to_string(dir.join(FILE)).unwrap(), "0\n1\n0 0\n");
    fs::remove_dir_all(dir.join("quarantine")).unwrap();
    assert_eq!(findings(&dir), []);
}

//! The commands that findings advise, run in their order: afterwards the partition is intact.

use std::fs;
use std::path::Path;

use cordwood::inspect::rebuild::{RebuildOptions, rebuild};
use cordwood::inspect::repair::{RepairOptions, RepairPolicy, repair};
use cordwood::inspect::verify::{Finding, Rule, Severity};
use cordwood::types::Io;

use super::{options, verified};
use crate::support::golden;
use crate::support::reading::{copy, folder};

fn findings(dir: &Path) -> Vec<Finding> {
    verified(dir, &options(Io::Pread)).findings
}

/// Follows an advice; `false` if it is no command.
fn follow(advice: &str, dir: &Path) -> bool {
    let path = dir.display();
    let repaired = |policy| {
        repair(dir, &RepairOptions { policy, ..RepairOptions::default() })
            .unwrap_or_else(|error| panic!("{advice}: {error}"));
    };
    if advice == format!("cordwood repair {path} --apply") {
        repaired(RepairPolicy::TornTail);
    } else if advice == format!("cordwood repair {path} --policy salvage --apply") {
        repaired(RepairPolicy::Salvage);
    } else if advice == format!("cordwood reindex {path} --yes") {
        rebuild(dir, &RebuildOptions { dry_run: false, ..RebuildOptions::default() })
            .unwrap_or_else(|error| panic!("{advice}: {error}"));
    } else {
        assert!(!advice.starts_with("cordwood"), "{advice}");
        return false;
    }
    true
}

/// Follows each advice of the findings once, and again those of what is left. What remains is no error that a
/// command mends.
fn assert_mended(name: &str, dir: &Path) {
    let mut first: Vec<Finding> = Vec::new();
    for _ in 0..2 {
        let found = findings(dir);
        let mut advices: Vec<_> = found.iter().map(Finding::advice).collect();
        advices.dedup();
        for advice in &advices {
            follow(advice, dir);
        }
        if first.is_empty() {
            first = found;
        }
    }
    let left = findings(dir);
    for finding in &left {
        let advice = finding.advice();
        let is_lost =
            first.iter().any(|finding| finding.rule == Rule::DamagedBatch || finding.rule == Rule::TornTail);
        // batches that were taken out are missing
        let is_hole = is_lost && finding.rule == Rule::OffsetGap;
        let is_manual = !advice.starts_with("cordwood");
        assert!(is_manual, "{name}: after {first:#?}: {finding}; {advice}");
        assert!(
            finding.severity != Severity::Error || is_hole || first.contains(finding),
            "{name}: after {first:#?}: {finding}"
        );
    }
}

#[test]
fn the_advice_on_every_damage_of_the_corpus_mends_it() {
    for case in golden::damaged() {
        let parent = folder();
        let dir = copy(&case.dir, parent.path(), &case.from.name);
        assert_mended(&case.case, &dir);
    }
}

#[test]
fn the_advice_on_several_damages_of_one_partition_mends_them() {
    for case in golden::damaged() {
        let parent = folder();
        let dir = copy(&case.dir, parent.path(), &case.from.name);
        let mut logs: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        logs.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
        logs.sort();
        // a torn tail, an index that is missing, and epochs that are malformed
        let last = logs.last().unwrap();
        let bytes = fs::read(last).unwrap();
        fs::write(last, [&bytes[..], &[7; 30]].concat()).unwrap();
        let _ = fs::remove_file(logs[0].with_extension("timeindex"));
        fs::write(dir.join("leader-epoch-checkpoint"), "0\n1\n 0 0\n").unwrap();
        assert_mended(&case.case, &dir);
    }
}

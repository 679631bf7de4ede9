//! Files that were given a size of 1 TiB, of which almost all is a hole: they are verified at once.

use std::fs::File;
use std::path::PathBuf;

use cordwood::inspect::verify::{Rule, Severity};

use super::{options, verified};
use crate::support::golden;
use crate::support::reading::{IOS, copy, folder};

const SIZE: u64 = 1 << 40;

/// The findings about a file of a partition that was extended: rules and severities.
fn found(case: &str, file: &str) -> Vec<(Rule, Severity)> {
    let partition = golden::intact().into_iter().find(|partition| partition.case == case).unwrap();
    let mut of_each = IOS.map(|io| {
        let parent = folder();
        let dir: PathBuf = copy(&partition.dir, parent.path(), &partition.name);
        File::options().write(true).open(dir.join(file)).unwrap().set_len(SIZE).unwrap();
        let found = verified(&dir, &options(io)).findings;
        assert!(found.iter().all(|finding| finding.file == dir.join(file)), "{found:?}");
        found.iter().map(|finding| (finding.rule, finding.severity)).collect::<Vec<_>>()
    });
    assert_eq!(of_each[0], of_each[1]);
    std::mem::take(&mut of_each[0])
}

#[test]
fn a_log_is_too_large_and_ends_with_zeros() {
    let last = found("01-plain", "00000000000000001217.log");
    assert_eq!(last, [(Rule::SegmentTooLarge, Severity::Error), (Rule::ZerosAfterEnd, Severity::Info)]);
    let middle = found("01-plain", "00000000000000000400.log");
    assert_eq!(middle, [(Rule::SegmentTooLarge, Severity::Error), (Rule::DamagedBatch, Severity::Error)]);
}

#[test]
fn an_index_has_zeros_after_its_entries() {
    let zeros = (Rule::IndexZeroTail, Severity::Warning);
    // no broker maps 1 TiB
    let fails = (Rule::LoadFails, Severity::Error);
    assert_eq!(found("01-plain", "00000000000000000400.index"), [fails, zeros]);
    // 1 TiB is no multiple of 12
    let fragment = (Rule::IndexFragment, Severity::Warning);
    assert_eq!(found("01-plain", "00000000000000000400.timeindex"), [fails, zeros, fragment]);
}

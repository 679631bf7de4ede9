//! Batches and segments that were taken out of a log that was never compacted, with indexes that agree with
//! what is left.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use cordwood::inspect::rebuild::{RebuildOptions, rebuild};
use cordwood::inspect::verify::{Finding, Rule, Severity};
use cordwood::types::Io;

use super::{options, verified};
use crate::support::golden;
use crate::support::partition::file_name;
use crate::support::reading::{copy, folder};

const SEGMENTS: [i64; 4] = [0, 400, 807, 1217];

fn plain(parent: &Path) -> PathBuf {
    let partition = golden::intact().into_iter().find(|partition| partition.case == "01-plain").unwrap();
    copy(&partition.dir, parent, &partition.name)
}

/// The positions of the batches of a segment.
fn batches_of(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut position = 0;
    while position < bytes.len() {
        let length = i32::from_be_bytes(bytes[position + 8..position + 12].try_into().unwrap());
        let end = position + 12 + usize::try_from(length).unwrap();
        ranges.push(position..end);
        position = end;
    }
    ranges
}

/// Keeps the batches of a segment with these numbers, and makes its indexes again.
fn keep(dir: &Path, base_offset: i64, is_kept: impl Fn(usize, usize) -> bool) -> usize {
    let path = dir.join(file_name(base_offset, "log"));
    let bytes = fs::read(&path).unwrap();
    let ranges = batches_of(&bytes);
    let kept: Vec<_> = ranges
        .iter()
        .enumerate()
        .filter(|(number, _)| is_kept(*number, ranges.len()))
        .flat_map(|(_, range)| &bytes[range.clone()])
        .copied()
        .collect();
    fs::write(&path, kept).unwrap();
    rebuild(dir, &RebuildOptions { dry_run: false, ..RebuildOptions::default() }).unwrap();
    fs::remove_dir_all(dir.join("quarantine")).unwrap();
    ranges.len()
}

fn remove_segment(dir: &Path, base_offset: i64) {
    for extension in ["log", "index", "timeindex"] {
        fs::remove_file(dir.join(file_name(base_offset, extension))).unwrap();
    }
}

fn findings(dir: &Path) -> Vec<Finding> {
    verified(dir, &options(Io::Pread)).findings
}

#[test]
fn many_batches_that_were_taken_out_of_a_segment_are_one_finding() {
    let parent = folder();
    let dir = plain(parent.path());
    let count = keep(&dir, 400, |number, count| number % 2 == 0 || number == count - 1);
    let found = findings(&dir);
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!((finding.rule, finding.severity), (Rule::OffsetGap, Severity::Warning));
    assert!(finding.file.ends_with(file_name(400, "log")), "{finding}");
    assert!(finding.position.is_some() && finding.start_offset > Some(400), "{finding}");
    assert!(finding.end_offset <= Some(807), "{finding}");
    let taken = (0..count).filter(|number| number % 2 == 1 && *number != count - 1).count();
    assert!(finding.found.starts_with(&format!("{taken} gaps")), "{finding}");
}

#[test]
fn batches_that_were_taken_out_are_a_warning_within_a_segment_and_an_error_at_its_end() {
    let parent = folder();
    let dir = plain(parent.path());
    keep(&dir, 400, |number, count| number != 5 && number != 9 && number != count - 1);
    let found = findings(&dir);
    assert_eq!(found.len(), 3, "{found:?}");
    for finding in &found {
        // one between two segments has no position
        let severity = if finding.position.is_some() { Severity::Warning } else { Severity::Error };
        assert_eq!((finding.rule, finding.severity), (Rule::OffsetGap, severity), "{finding}");
    }
    assert_eq!(found.iter().filter(|finding| finding.position.is_none()).count(), 1, "{found:?}");
}

#[test]
fn a_missing_segment_is_an_error_although_batches_are_missing_in_the_segments_beside_it() {
    for number in 1..3 {
        let parent = folder();
        let dir = plain(parent.path());
        keep(&dir, SEGMENTS[number - 1], |number, _| number != 5);
        keep(&dir, SEGMENTS[number + 1], |number, _| number != 7);
        remove_segment(&dir, SEGMENTS[number]);
        let found = findings(&dir);
        let missing = found.iter().find(|finding| finding.position.is_none()).unwrap();
        assert_eq!((missing.rule, missing.severity), (Rule::OffsetGap, Severity::Error), "{missing}");
        let gap = (SEGMENTS[number], SEGMENTS[number + 1]);
        assert_eq!((missing.start_offset, missing.end_offset), (Some(gap.0), Some(gap.1)));
        assert!(!verified(&dir, &options(Io::Mmap)).is_intact());
    }
}

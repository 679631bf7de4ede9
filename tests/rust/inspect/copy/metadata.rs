//! Copies of the metadata log of a cluster, which has files that other logs do not have.

use std::fs;
use std::path::{Path, PathBuf};

use cordwood::Error;
use cordwood::inspect::copy::{CopyOptions, copy, copy_data_directory};

use super::support::{copied, files, of_offsets, same_files};
use crate::support::golden::{intact, root};
use crate::support::reading::folder;

const SNAPSHOTS: [&str; 2] =
    ["00000000000000000096-0000000000.checkpoint", "00000000000000000370-0000000001.checkpoint"];
/// Snapshots that a copy does not have: of a later log, not complete, and being deleted.
const OTHERS: [&str; 3] = [
    "00000000000000000371-0000000001.checkpoint",
    "00000000000000000370-0000000002.checkpoint.part",
    "00000000000000000001-0000000000.checkpoint.deleted",
];

/// A log with 370 offsets, and the files of a metadata log. The first snapshot is larger than what is copied
/// at a time.
fn metadata(path: &Path) -> PathBuf {
    let small = intact().into_iter().find(|partition| partition.case == "01-small").unwrap().dir;
    let path = same_files(&small, path);
    for (number, name) in SNAPSHOTS.into_iter().chain(OTHERS).enumerate() {
        let size = if number == 0 { (2 << 20) + 7 } else { 100 };
        let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8 + number as u8).collect();
        fs::write(path.join(name), bytes).unwrap();
    }
    fs::write(path.join("quorum-state"), r#"{"leaderId":1,"leaderEpoch":1,"data_version":1}"#).unwrap();
    path
}

fn of_metadata(path: &Path) -> Vec<(String, Vec<u8>)> {
    let is_one = |name: &String| name.contains(".checkpoint") || name == "quorum-state";
    files(path).into_iter().filter(|(name, _)| is_one(name)).collect()
}

/// Those that a copy has.
fn expected(source: &Path) -> Vec<(String, Vec<u8>)> {
    let mut expected = of_metadata(source);
    expected.retain(|(name, _)| !OTHERS.contains(&name.as_str()));
    assert_eq!(expected.len(), 3);
    expected
}

#[test]
fn a_whole_metadata_log_is_copied_with_its_snapshots_and_its_last_election() {
    let folder = folder();
    let source = metadata(&folder.path().join("__cluster_metadata-0"));
    let to = folder.path().join("copy-0");
    copied(&source, &to, &CopyOptions::default()).unwrap();
    assert!(of_metadata(&to) == expected(&source));
    let again = copied(&source, &to, &CopyOptions::default()).unwrap();
    assert_eq!(again.bytes_written, 0);
    // a complete copy is compared with the source
    let snapshot = to.join(SNAPSHOTS[0]);
    let mut bytes = fs::read(&snapshot).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    for change in [Some(bytes), None] {
        match change {
            Some(bytes) => fs::write(&snapshot, bytes).unwrap(),
            None => fs::remove_file(&snapshot).unwrap(),
        }
        let error = copied(&source, &to, &CopyOptions::default()).unwrap_err();
        assert!(error.to_string().contains(SNAPSHOTS[0]), "{error}");
    }
}

#[test]
fn a_range_of_a_metadata_log_has_no_snapshots_and_says_so() {
    let folder = folder();
    let source = metadata(&folder.path().join("__cluster_metadata-0"));
    let to = folder.path().join("copy-0");
    let report = copied(&source, &to, &of_offsets(Some(96), None)).unwrap();
    assert!(of_metadata(&to).is_empty());
    assert!(report.warnings.len() == 1 && report.warnings[0].contains("snapshots"), "{:?}", report.warnings);
}

#[test]
fn snapshots_that_the_source_deletes_are_a_change_or_are_deleted_in_an_unfinished_copy() {
    let folder = folder();
    let source = metadata(&folder.path().join("__cluster_metadata-0"));
    let to = folder.path().join("copy-0");
    // it was there when the copy began
    let result = copy(&source, &to, &CopyOptions::default(), &mut |_| {
        fs::remove_file(source.join(SNAPSHOTS[1])).unwrap();
        Ok(())
    });
    assert!(matches!(result, Err(Error::LogChanged { .. })), "{result:?}");
    fs::remove_file(source.join(SNAPSHOTS[0])).unwrap();
    // what a killed call leaves
    fs::write(to.join(format!("{}.tmp", SNAPSHOTS[1])), "a part").unwrap();
    copied(&source, &to, &CopyOptions::default()).unwrap();
    let names: Vec<_> = of_metadata(&to).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["quorum-state"]);
}

#[test]
fn a_new_data_directory_has_the_snapshot_with_which_the_cluster_started() {
    let folder = folder();
    let source = folder.path().join("source");
    let log = metadata(&source.join("__cluster_metadata-0"));
    fs::copy(root().join("16-data-dir/meta.properties"), source.join("meta.properties")).unwrap();
    fs::write(source.join("bootstrap.checkpoint"), [7; 300]).unwrap();
    let to = folder.path().join("copy");
    let all =
        |to: &Path| copy_data_directory(&source, to, &CopyOptions::default(), |_| true, &mut |_| Ok(()));
    all(&to).unwrap();
    assert_eq!(fs::read(to.join("bootstrap.checkpoint")).unwrap(), [7; 300]);
    assert!(of_metadata(&to.join("__cluster_metadata-0")) == expected(&log));
    all(&to).unwrap();
}

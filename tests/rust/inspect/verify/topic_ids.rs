//! The topic ids of a data directory: one for a topic, and one topic for each.

use std::fs;
use std::path::Path;

use cordwood::inspect::verify::{Rule, Severity};
use cordwood::types::Io;

use super::{options, verified};
use crate::support::golden;
use crate::support::reading::{copy, folder};

const IDS: [&str; 2] = ["aFsHoJ8mSkaI5w7rWQb5Qg", "rTuMuC1KRkKA9tUnPqVq6A"];

/// A data directory with these partitions, each with the id of this number.
fn data_directory(parent: &Path, partitions: &[(&str, usize)]) {
    let plain = golden::intact().into_iter().find(|partition| partition.case == "15-one-record").unwrap();
    fs::write(parent.join("meta.properties"), "version=1\ncluster.id=abc\nnode.id=1\n").unwrap();
    for (name, id) in partitions {
        let dir = copy(&plain.dir, parent, name);
        fs::write(dir.join("partition.metadata"), format!("version: 0\ntopic_id: {}", IDS[*id])).unwrap();
    }
}

/// The partitions with a topic id that contradicts others, when the whole directory is verified, and when
/// each is alone.
fn wrong(partitions: &[(&str, usize)]) -> Vec<String> {
    let parent = folder();
    data_directory(parent.path(), partitions);
    let found = verified(parent.path(), &options(Io::Pread)).findings;
    let mut names: Vec<String> = Vec::new();
    for finding in &found {
        assert_eq!((finding.rule, finding.severity), (Rule::TopicIdMismatch, Severity::Error), "{finding}");
        names.push(finding.file.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned());
    }
    names.sort();
    for (name, _) in partitions {
        let alone = verified(&parent.path().join(name), &options(Io::Pread)).findings;
        assert_eq!(alone.len(), names.iter().filter(|wrong| wrong == name).count(), "{name}: {alone:?}");
    }
    names
}

#[test]
fn a_topic_has_one_id_and_an_id_one_topic() {
    assert!(wrong(&[("a-0", 0), ("a-1", 0), ("b-0", 1)]).is_empty());
    assert_eq!(wrong(&[("a-0", 0), ("a-1", 0), ("a-2", 1)]), ["a-2"]);
    assert_eq!(wrong(&[("a-0", 0), ("a-1", 1)]), ["a-0", "a-1"]);
    assert_eq!(wrong(&[("a-0", 0), ("b-0", 0)]), ["a-0", "b-0"]);
    // that of another topic, whose other partitions show whose it is
    assert_eq!(wrong(&[("a-0", 0), ("a-1", 0), ("a-2", 1), ("b-0", 1)]), ["a-2"]);
}

//! Globs of directories: by the rules of a shell.

use std::path::{Path, PathBuf};

use cordwood::plan::{Code, PlanError};

use crate::support::batches::{BatchV2, Rec};
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::planning::{asked, cache, run_json};

/// A folder without a leading dot, which other ones of these tests have.
fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("globs").tempdir().unwrap()
}

/// Writes logs of one record in directories of `parent`.
fn write(parent: &Path, names: &[&str]) {
    for name in names {
        let path = parent.join(name);
        let parent = path.parent().unwrap();
        std::fs::create_dir_all(parent).unwrap();
        let batch = BatchV2::new(0).record(Rec::at(1000).value(*name)).build();
        let name = path.file_name().unwrap().to_str().unwrap();
        PartitionBuilder::new(Indexing::every(200)).segment(0, [batch]).write(parent, name);
    }
}

/// The partitions that a pattern below `parent` matches, relative to it.
fn found(parent: &Path, pattern: &str) -> Result<Vec<PathBuf>, PlanError> {
    let answer = run_json(&cache(), &asked(&parent.join(pattern), &[]));
    if let Some(error) = answer.error {
        return Err(error);
    }
    let real = parent.canonicalize().unwrap();
    let paths = answer.bounds.iter().map(|bounds| bounds.directory.path.strip_prefix(&real).unwrap());
    let mut paths: Vec<PathBuf> = paths.map(Path::to_path_buf).collect();
    paths.sort();
    Ok(paths)
}

fn check(parent: &Path, pattern: &str, expected: &[&str]) {
    let found = match found(parent, pattern) {
        Ok(found) => found,
        Err(error) => {
            assert_eq!(error.code, Code::NotFound, "{pattern}: {error}");
            Vec::new()
        }
    };
    assert_eq!(found, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{pattern}");
}

#[test]
fn a_leading_dot_matches_hidden_directories_and_not_the_directory_or_its_parent() {
    let folder = folder();
    let data = folder.path().join("d");
    write(folder.path(), &["outside-0"]);
    write(&data, &[".h/orders-0", ".h/.secret-0", ".i/sub/orders-1", "plain/orders-2", "orders-3"]);
    for (pattern, expected) in [
        (".*/*", &[".h/orders-0", ".i/sub/orders-1"][..]),
        (".*/orders-*", &[".h/orders-0"]),
        (".*/.*", &[".h/.secret-0"]),
        (".h/*", &[".h/orders-0"]),
        (".[hi]/*", &[".h/orders-0", ".i/sub/orders-1"]),
        (".?/orders-0", &[".h/orders-0"]),
        (".*/sub/*", &[".i/sub/orders-1"]),
        ("*/orders-*", &["plain/orders-2"]),
        ("*", &["orders-3", "plain/orders-2"]),
    ] {
        check(&data, pattern, expected);
    }
}

#[test]
fn literal_dots_beside_wildcards_are_the_directory_and_its_parent() {
    let folder = folder();
    write(folder.path(), &["d/orders-0", "e/orders-1"]);
    for (pattern, expected) in [
        ("d/./orders-*", &["d/orders-0"][..]),
        ("./d/orders-*", &["d/orders-0"]),
        ("d/../e/orders-*", &["e/orders-1"]),
        ("d/../*/orders-*", &["d/orders-0", "e/orders-1"]),
        ("*/../e/orders-1", &["e/orders-1"]),
    ] {
        // the same directory by two paths is refused
        let found = found(folder.path(), pattern);
        if pattern.starts_with("*/..") {
            let reason = found.unwrap_err().reason;
            assert!(reason.contains("each partition once"), "{pattern}: {reason}");
        } else {
            check(folder.path(), pattern, expected);
        }
    }
}

#[test]
fn characters_of_a_pattern_are_those_of_a_name_that_exists() {
    let folder = folder();
    write(folder.path(), &["[x/orders-0", "a*/orders-1", "a?/orders-2", "[ab]/orders-3", "a/orders-4"]);
    for (path, expected) in [
        ("[x", "[x/orders-0"),
        ("[x/orders-0", "[x/orders-0"),
        ("a*/orders-1", "a*/orders-1"),
        ("a?", "a?/orders-2"),
        ("[ab]/orders-3", "[ab]/orders-3"),
        // not a name here, so a pattern
        ("[ab]/orders-4", "a/orders-4"),
    ] {
        check(folder.path(), path, &[expected]);
    }
}

#[test]
fn an_incomplete_bracket_that_is_no_name_is_not_found() {
    let folder = folder();
    write(folder.path(), &["a/orders-0"]);
    for path in ["[x", "[x/orders-0", "a/orders-[0", "a/["] {
        let error = found(folder.path(), path).unwrap_err();
        assert_eq!(error.code, Code::NotFound, "{path}: {error}");
        assert!(error.reason.contains(path), "{path}: {error}");
    }
}

#[test]
fn a_folder_of_data_directories_is_refused_with_the_folder_to_give() {
    let folder = folder();
    let data = folder.path().join("broker");
    write(&data, &["orders-0"]);
    std::fs::write(data.join("meta.properties"), "version=1\n").unwrap();
    // beside it are another data directory and a file
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("meta.properties"), "version=1\n").unwrap();
    std::fs::write(folder.path().join("notes"), "").unwrap();
    let error = run_json(&cache(), &asked(folder.path(), &[])).error.unwrap();
    assert_eq!(error.code, Code::BadOption, "{error}");
    let text = error.to_string();
    let found = format!("found {}, which has none and whose folder", folder.path().display());
    assert!(text.contains(&found) && text.contains("is one: give the path of the folder"), "{text}");
}

//! The texts of Kafka's tool for every fixture.

use std::io::Read;
use std::path::Path;

use cordwood::inspect::DumpOptions;

use super::{Written, dump, files_of};
use crate::support::golden;

/// The text of a `.gz`. The fixtures were dumped from the case's directory, so their paths are relative.
fn expected(path: &Path) -> String {
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(&std::fs::read(path).unwrap()[..]).read_to_string(&mut text).unwrap();
    text
}

fn relative(text: &str, dir: &Path) -> String {
    text.replace(&format!("{}/", dir.parent().unwrap().display()), "")
}

/// Compares texts, and shows the first line that differs.
fn assert_same(name: &str, found: &str, expected: &str) {
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "{name}, line {}", number + 1);
    }
    assert_eq!(found.len(), expected.len(), "{name}: bytes of the text");
    assert_eq!(found, expected, "{name}");
}

fn logs(dir: &Path, print_data_log: bool) -> Written {
    let options = DumpOptions { deep_iteration: true, print_data_log, ..DumpOptions::default() };
    // the fixtures were dumped without a file whose name is no offset
    let files: Vec<_> =
        files_of(dir, &[".log"]).into_iter().filter(|path| !path.ends_with("notes.log")).collect();
    dump(&files, options)
}

#[test]
fn logs_of_every_intact_fixture_are_the_text_of_kafkas_tool() {
    let mut bytes = 0;
    for partition in golden::intact() {
        let found = logs(&partition.dir, true);
        let text = expected(&partition.expected.join("dump-log.txt.gz"));
        let name = format!("{}/{}", partition.case, partition.name);
        assert_same(&name, &relative(&found.stdout, &partition.dir), &text);
        // Kafka's tool ends with an exception at the zeros of a preallocated file
        assert_eq!(found.error.is_some(), partition.case == "14-killed-preallocated-log", "{name}");
        bytes += text.len();
    }
    assert!(bytes > 8_000_000, "{bytes}");
}

#[test]
fn other_files_of_every_intact_fixture_are_the_text_of_kafkas_tool() {
    let mut bytes = 0;
    for partition in golden::intact() {
        let path = partition.expected.join("dump-rest.txt.gz");
        let (mut found, mut has_failed) = (String::new(), false);
        // one run of the tool for each kind of file
        for suffix in [".index", ".timeindex", ".txnindex", ".snapshot"] {
            let written = dump(&files_of(&partition.dir, &[suffix]), DumpOptions::default());
            found.push_str(&written.stdout);
            has_failed |= written.error.is_some();
        }
        let text = if path.exists() { expected(&path) } else { String::new() };
        let name = format!("{}/{}", partition.case, partition.name);
        assert_same(&name, &relative(&found, &partition.dir), &text);
        assert_eq!(has_failed, partition.case == "14-killed-preallocated-log", "{name}");
        bytes += text.len();
    }
    assert!(bytes > 100_000, "{bytes}");
}

#[test]
fn logs_of_every_damaged_fixture_are_the_text_of_kafkas_tool() {
    let (mut bytes, mut failed) = (0, 0);
    for damaged in golden::damaged() {
        let found = logs(&damaged.dir, false);
        let text = expected(&damaged.expected.join("dump-log.txt.gz"));
        assert_same(&damaged.case, &relative(&found.stdout, &damaged.dir), &text);
        assert_eq!(found.error.is_some(), damaged.fails_in("dump"), "{}: {:?}", damaged.case, found.error);
        failed += usize::from(found.error.is_some());
        bytes += text.len();
    }
    assert!(bytes > 2_000_000, "{bytes}");
    assert_eq!(failed, 11);
}

//! Behaviours of Kafka's `DumpLogSegmentsTest` that the recorded texts do not name, and files that are not
//! what they should be.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use cordwood::inspect::internal_topics::MessageParser;
use cordwood::inspect::{Decoder, Dump, DumpOptions, OutputStream, dumped_files};

use super::dump;
use crate::support::golden;

fn small(name: &str) -> PathBuf {
    golden::root().join("01-small/tickets-0").join(name)
}

fn lines(path: &Path, options: DumpOptions) -> Vec<String> {
    let written = dump(&[path.to_owned()], options);
    assert!(written.error.is_none(), "{:?}", written.error);
    written.stdout.lines().map(str::to_owned).collect()
}

fn records(path: &Path, options: DumpOptions) -> Vec<String> {
    lines(path, options).into_iter().filter(|line| line.starts_with('|')).collect()
}

#[test]
fn records_are_shown_by_deep_iteration_and_their_contents_by_printing_or_a_decoder() {
    let log = small("00000000000000000000.log");
    let defaults = DumpOptions::default();
    assert!(records(&log, defaults.clone()).is_empty());
    let deep = records(&log, DumpOptions { deep_iteration: true, ..defaults.clone() });
    assert_eq!(deep.len(), 96);
    for (offset, line) in deep.iter().enumerate() {
        assert!(line.starts_with(&format!("| offset: {offset} CreateTime: ")), "{line}");
        assert!(line.ends_with(" headerKeys: []"), "{line}");
    }
    let printed = records(&log, DumpOptions { print_data_log: true, ..defaults.clone() });
    assert!(printed.iter().zip(&deep).all(|(printed, deep)| printed.starts_with(&format!("{deep} key: "))));
    for implied in [
        DumpOptions { key_decoder: Some(Decoder::String), ..defaults.clone() },
        DumpOptions { value_decoder: Some(Decoder::String), ..defaults.clone() },
    ] {
        assert_eq!(records(&log, implied), printed);
    }
    let bare = records(&log, DumpOptions { print_data_log: true, skip_record_metadata: true, ..defaults });
    assert!(bare.iter().zip(&printed).all(|(bare, printed)| {
        printed.ends_with(bare.strip_prefix('|').unwrap()) && bare.starts_with("| key: ")
    }));
}

#[test]
fn with_a_limit_of_bytes_a_batch_that_it_cuts_is_not_shown() {
    let log = small("00000000000000000000.log");
    let whole = lines(&log, DumpOptions::default());
    let end_of = |line: &str| {
        let number = |name: &str| {
            let rest = line.split_once(name).unwrap().1;
            rest.split(' ').next().unwrap().parse::<u32>().unwrap()
        };
        number(" position: ") + number(" size: ")
    };
    let end = end_of(&whole[3]);
    for (max_bytes, shown) in [(end, 4), (end - 1, 3), (end + 5, 4), (0, 2)] {
        let limited = lines(&log, DumpOptions { max_bytes, ..DumpOptions::default() });
        assert_eq!(limited, whole[..shown], "{max_bytes} bytes");
    }
}

#[test]
fn the_indexes_of_a_leader_match_also_with_zeros_after_their_entries() {
    let folder = tempfile::tempdir().unwrap();
    for suffix in ["log", "index", "timeindex"] {
        let name = format!("00000000000000000000.{suffix}");
        let mut bytes = fs::read(small(&name)).unwrap();
        if suffix != "log" {
            bytes.resize(bytes.len() + 2400, 0);
        }
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    for suffix in ["index", "timeindex"] {
        let name = format!("00000000000000000000.{suffix}");
        let padded = folder.path().join(&name);
        let found = dump(std::slice::from_ref(&padded), DumpOptions::default());
        assert_eq!((found.stderr.as_str(), found.error.is_none()), ("", true), "{suffix}");
        let entries = |path: &Path| lines(path, DumpOptions::default()).split_off(1);
        assert_eq!(entries(&padded), entries(&small(&name)));
    }
}

#[test]
fn an_empty_index_is_said_to_be_empty_and_an_empty_time_index_is_not() {
    let folder = tempfile::tempdir().unwrap();
    for suffix in ["log", "index", "timeindex", "txnindex", "snapshot"] {
        fs::write(folder.path().join(format!("7.{suffix}")), "").unwrap();
    }
    let path = |suffix: &str| folder.path().join(format!("7.{suffix}"));
    let shown = |suffix: &str| lines(&path(suffix), DumpOptions::default()).split_off(1);
    assert_eq!(shown("index"), [format!("{} is empty.", path("index").display())]);
    assert_eq!(shown("log"), ["Log starting offset: 7"]);
    for suffix in ["timeindex", "txnindex", "snapshot"] {
        assert!(shown(suffix).is_empty(), "{suffix}");
    }
    let found = dump(&[path("snapshot")], DumpOptions::default());
    assert_eq!(found.stderr, "Snapshot failed schema validation: null\n");
}

#[test]
fn records_of_internal_topics_are_shown_by_their_parsers() {
    let log = |name: &str| golden::root().join("16-data-dir").join(name);
    let first = |path: PathBuf, parser| {
        let options = DumpOptions {
            message_parser: Some(parser),
            skip_record_metadata: true,
            ..DumpOptions::default()
        };
        records(&path, options)[0].clone()
    };
    let offsets = first(log("__consumer_offsets-0/00000000000000000000.log"), MessageParser::Offsets);
    assert!(
        offsets
            .starts_with("| key: {\"type\":\"2\",\"data\":{\"group\":\"readers\"}} payload: {\"version\":"),
        "{offsets}"
    );
    let snapshot = log("__cluster_metadata-0/00000000000000000038-0000000001.checkpoint");
    let metadata = first(snapshot.clone(), MessageParser::ClusterMetadata);
    assert!(metadata.starts_with("| payload: {\"type\":\""), "{metadata}");
    let shown = lines(&snapshot, DumpOptions::default());
    assert_eq!(shown[1], "Snapshot end offset: 38, epoch: 1");
    let bootstrap = lines(&log("bootstrap.checkpoint"), DumpOptions::default());
    assert_eq!(bootstrap[1], "KRaft bootstrap snapshot");
}

#[test]
fn a_missing_file_ends_the_dump_before_its_findings() {
    let missing = small("00000000000000000001.log");
    let compacted = golden::intact().into_iter().find(|partition| partition.case == "12-compacted").unwrap();
    let compacted = dumped_files(&compacted.dir).unwrap();
    let found = dump(&[vec![missing.clone()], compacted].concat(), DumpOptions::default());
    let text = format!("Dumping {}\nLog starting offset: 1\n", missing.display());
    assert_eq!((found.stdout, found.stderr), (text, String::new()));
    assert_eq!(found.error.unwrap().code(), "log_not_found");
}

#[test]
fn files_of_any_bytes_end_soon_with_the_memory_of_a_window() {
    let folder = tempfile::tempdir().unwrap();
    let zeros = vec![0; 1 << 20];
    let ones = vec![0xff; 1 << 20];
    let mut huge = fs::read(small("00000000000000000000.log")).unwrap();
    huge[8..12].copy_from_slice(&i32::MAX.to_be_bytes());
    let mut dense = Vec::new();
    while dense.len() < 1 << 20 {
        // the smallest message: no key, no value
        dense.extend(
            [[0; 8].as_slice(), &14_i32.to_be_bytes(), &[0; 4], &[0, 0], &[0xff; 4], &[0xff; 4]].concat(),
        );
    }
    let cases: [&[u8]; 7] = [b"", b"x", &zeros[..17], &zeros, &ones, &huge, &dense];
    for (number, bytes) in cases.iter().enumerate() {
        for suffix in ["log", "index", "timeindex", "txnindex", "snapshot"] {
            fs::write(folder.path().join(format!("{number}.{suffix}")), bytes).unwrap();
        }
        for suffix in ["log", "index", "timeindex", "txnindex", "snapshot"] {
            let path = folder.path().join(format!("{number}.{suffix}"));
            let start = Instant::now();
            let options = DumpOptions { print_data_log: true, ..DumpOptions::default() };
            let mut dump = Dump::new([&path], options);
            let mut largest = 0;
            while let Ok(Some(block)) = dump.next_block() {
                largest =
                    largest.max(if block.stream == OutputStream::Stdout { block.text.len() } else { 0 });
            }
            assert!(start.elapsed().as_secs() < 5, "{}", path.display());
            assert!(largest < 280 << 10, "{}: a block of {largest} bytes", path.display());
        }
    }
}

#[test]
fn a_directory_stands_for_its_files_and_those_of_its_partitions() {
    let folder = tempfile::tempdir().unwrap();
    let partition = folder.path().join("t-0");
    fs::create_dir(&partition).unwrap();
    fs::create_dir(folder.path().join("other")).unwrap();
    for name in [
        "00000000000000000007.log",
        "00000000000000000007.index",
        "notes.log",
        "leader-epoch-checkpoint",
        ".x.log",
    ] {
        fs::write(partition.join(name), "").unwrap();
        fs::write(folder.path().join("other").join(name), "").unwrap();
    }
    let expected =
        ["00000000000000000007.index", "00000000000000000007.log"].map(|name| partition.join(name));
    assert_eq!(dumped_files(&partition).unwrap(), expected);
    assert_eq!(dumped_files(folder.path()).unwrap(), expected);
    assert_eq!(dumped_files(&partition.join("notes.log")).unwrap(), [partition.join("notes.log")]);
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(dumped_files(empty.path()).unwrap_err().code(), "config");
}

//! The golden cases: the bytes of `LogSegment.recover`, and of the brokers that wrote them.

use std::collections::HashMap;

use cordwood::config::{LogConfig, StatedSettings};
use serde_json::Value;

use super::{compared, copied, differences, files, is_derived, rebuilt, remove_derived};
use crate::support::golden::{self, Partition};
use crate::support::reading::folder;

/// The settings of a case.
fn config(partition: &Partition) -> LogConfig {
    // a data directory has settings by topic
    let topic = partition.name.rsplit_once('-').unwrap().0;
    let settings = &partition.manifest["settings"];
    let settings = settings.get(topic).unwrap_or(settings);
    let number = |name: &str, default| settings[name].as_str().map_or(default, |text| text.parse().unwrap());
    let default = LogConfig::default();
    LogConfig {
        index_interval_bytes: number("index.interval.bytes", default.index_interval_bytes),
        segment_index_bytes: number("segment.index.bytes", default.segment_index_bytes),
        stated: StatedSettings::ALL,
        ..default
    }
}

/// Sizes and checksums of the derived files that `LogSegment.recover` wrote.
fn expected(partition: &Partition) -> Vec<(String, u64, String)> {
    golden::lines_of_type(&partition.expected.join("rebuild.jsonl"), "file")
        .into_iter()
        .map(|line| {
            let text = |field: &str| line[field].as_str().unwrap().to_owned();
            (text("name"), line["bytes"].as_u64().unwrap(), text("sha256"))
        })
        .filter(|(name, ..)| is_derived(name))
        .collect()
}

/// The checksums of the files that the broker left.
fn broker_checksums(partition: &Partition) -> HashMap<String, String> {
    let prefix = format!("{}/", partition.name);
    let files = partition.manifest["files"].as_array().unwrap().iter();
    let named = files.filter_map(|file: &Value| {
        let name = file["path"].as_str()?.strip_prefix(&prefix)?;
        Some((name.to_owned(), file["sha256"].as_str()?.to_owned()))
    });
    named.collect()
}

#[test]
fn rebuilt_files_have_the_sizes_that_kafka_writes_and_the_bytes_that_the_broker_wrote() {
    let (mut same_bytes, mut same_sizes) = (0, 0);
    for partition in golden::intact() {
        let folder = folder();
        let directory = copied(&partition.dir, &folder);
        let original: HashMap<_, _> = files(&directory).into_iter().collect();
        remove_derived(&directory);
        let report = rebuilt(&directory, Some(config(&partition)));
        let rebuilt: HashMap<_, _> = files(&directory).into_iter().collect();
        let brokers = broker_checksums(&partition);
        for (name, size, checksum) in expected(&partition) {
            let place = format!("{} {name}", partition.case);
            let Some(bytes) = rebuilt.get(&name) else { panic!("{place}: missing") };
            assert_eq!(bytes.len() as u64, size, "{place}");
            same_sizes += 1;
            // the same checksum: the broker's file has the bytes that recovery writes
            if brokers.get(&name) == Some(&checksum) {
                let original = &original[&name];
                if name.ends_with(".snapshot") {
                    assert_eq!(golden::sorted_snapshot(bytes), golden::sorted_snapshot(original), "{place}");
                } else {
                    assert_eq!(bytes, original, "{place}");
                }
                same_bytes += 1;
            }
        }
        for (name, bytes) in rebuilt.iter().filter(|(name, _)| !is_derived(name)) {
            assert_eq!(Some(bytes), original.get(name), "{} {name}", partition.case);
        }
        assert!(!report.dry_run);
        assert!(compared(&directory, Some(config(&partition))).is_clean(), "{}", partition.case);
    }
    assert!(same_sizes > 400 && same_bytes > 300, "{same_sizes} {same_bytes}");
}

/// The files of a case that are not as the log gives them, without the zeros before their numbers.
fn known_differences(case: &str) -> Vec<(&'static str, &'static str)> {
    match case {
        // snapshots from before the compaction, which removed the batches; and the cleaner keeps the entries
        // of transactions whose marker is left
        "12-compacted-empty" => vec![
            ("181.snapshot", "differs"),
            ("181.txnindex", "differs"),
            ("292.snapshot", "differs"),
            ("340.snapshot", "differs"),
            ("388.snapshot", "differs"),
            ("436.snapshot", "differs"),
            ("484.snapshot", "differs"),
            ("532.snapshot", "differs"),
        ],
        // a broker that was killed; and idle producers that had expired when it started again
        "19-leader-epochs" => vec![
            ("172.index", "differs"),
            ("172.timeindex", "differs"),
            ("318.snapshot", "expired"),
            ("346.snapshot", "expired"),
            ("430.snapshot", "expired"),
        ],
        // last stable offsets depend on how a follower's appends were grouped
        "21-follower" => {
            vec![("0.txnindex", "differs"), ("517.txnindex", "differs"), ("1027.txnindex", "differs")]
        }
        _ => Vec::new(),
    }
}

fn full_name(name: &str) -> String {
    let (number, suffix) = name.split_once('.').unwrap();
    format!("{number:0>20}.{suffix}")
}

#[test]
fn the_files_of_brokers_that_stopped_cleanly_are_as_their_logs_give_them() {
    let mut seen = 0;
    for partition in golden::intact() {
        let case = &partition.case;
        // written by older brokers by other rules, or not closed; and many snapshots from before a compaction
        if ["17-", "14-", "12-compacted-codecs"].iter().any(|other| case.starts_with(other))
            || partition.name == "rivers.compact-0"
        {
            continue;
        }
        let expected: Vec<_> =
            known_differences(case).into_iter().map(|(name, state)| (full_name(name), state)).collect();
        for config in [Some(config(&partition)), None] {
            let report = compared(&partition.dir, config.clone());
            assert_eq!(differences(&report), expected, "{case} {config:?}");
            assert_eq!(report.is_clean(), expected.is_empty());
            let source = report.interval_source.code();
            // of a topic in the metadata, the one that is given is also the topic's
            let is_given = source == "given" || config.is_some() && source == "topic";
            assert_eq!(is_given, config.is_some(), "{case}");
            seen += 1;
        }
    }
    assert!(seen > 60, "{seen}");
}

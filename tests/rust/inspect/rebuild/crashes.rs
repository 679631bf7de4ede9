//! A rebuild on a disk that loses its power or fails at every operation.

use std::collections::HashMap;
use std::sync::Arc;

use cordwood::config::LogConfig;
use cordwood::fs::mem::{Fault, FaultKind, Image, MemoryDisk};
use cordwood::inspect::rebuild::{RebuildReport, rebuild_in};
use cordwood::{Error, Result};

use super::{files, is_derived, options};
use crate::support::golden;

const PATH: &str = "/payments-0";

type Files = HashMap<String, Arc<Vec<u8>>>;

fn config() -> LogConfig {
    LogConfig { index_interval_bytes: 1024, ..LogConfig::default() }
}

fn run(disk: &MemoryDisk, dry_run: bool) -> Result<RebuildReport> {
    rebuild_in(&disk.directory(PATH), &options(Some(config()), dry_run))
}

/// A partition with transactions whose derived files are wrong in every way.
fn damaged_disk() -> MemoryDisk {
    let disk = MemoryDisk::new(64);
    let partition =
        golden::intact().into_iter().find(|partition| partition.case == "11-transactions").unwrap();
    for (name, mut bytes) in files(&partition.dir) {
        match &*name {
            "00000000000000000012.index" => bytes[20] ^= 1,
            "00000000000000000012.txnindex" => bytes.truncate(100),
            "00000000000000000356.timeindex" => bytes.resize(480, 0),
            "00000000000000000356.snapshot" => bytes[30] ^= 1,
            "00000000000000000356.index" => continue,
            // without the later segments it is faster
            _ if is_derived(&name) && &*name > "00000000000000000389" => continue,
            "00000000000000000389.log" | "00000000000000000745.log" | "00000000000000000751.log" => continue,
            _ => {}
        }
        disk.put(&name, &bytes);
    }
    disk.put("00000000000000000001.snapshot", b"inside a batch");
    disk
}

fn contents(image: &Image) -> Files {
    image.files().into_iter().map(|(name, bytes)| (name.trim_start_matches('/').to_owned(), bytes)).collect()
}

/// The derived files of the root.
fn derived(files: &Files) -> Vec<(&String, &Arc<Vec<u8>>)> {
    let mut derived: Vec<_> = files.iter().filter(|(name, _)| is_derived(name)).collect();
    derived.sort();
    derived
}

/// Checks that each file is the old or the new one, that no old bytes are lost, and that a second run
/// completes the first.
fn check(image: &Image, old: &Files, new: &Files, place: &str) {
    let found = contents(image);
    let quarantined: Vec<_> =
        found.iter().filter(|(name, _)| name.starts_with("quarantine/")).map(|(_, bytes)| bytes).collect();
    for (name, bytes) in old {
        let now = found.get(name);
        if !is_derived(name) {
            assert_eq!(now, Some(bytes), "{place}: {name}");
            continue;
        }
        assert!(now == Some(bytes) || now == new.get(name), "{place}: {name} is neither old nor new");
        if now != Some(bytes) {
            assert!(quarantined.contains(&bytes), "{place}: the old {name} is lost");
        }
    }
    for (name, bytes) in derived(&found) {
        assert!(old.get(name) == Some(bytes) || new.get(name) == Some(bytes), "{place}: {name}");
    }
    let disk = image.disk();
    run(&disk, false).unwrap_or_else(|error| panic!("{place}: {error}"));
    assert_eq!(derived(&contents(&disk.shown())), derived(new), "{place}");
    assert!(run(&disk, true).unwrap().is_clean(), "{place}");
}

#[test]
fn after_a_power_loss_at_any_operation_each_file_is_old_or_new_and_a_second_run_completes_the_first() {
    let disk = damaged_disk();
    let old = contents(&disk.shown());
    disk.record();
    let report = run(&disk, false).unwrap();
    let mut points: Vec<_> =
        disk.recorded().into_iter().map(|(operation, point)| (operation.to_string(), point)).collect();
    points.push(("the end".to_owned(), disk.crash_point()));
    let new = contents(&disk.shown());
    let mut states: Vec<_> =
        report.files.iter().map(|file| file.state.code()).filter(|code| *code != "unchanged").collect();
    states.sort_unstable();
    assert_eq!(states, ["damaged", "differs", "differs", "missing", "missing", "stray", "untrimmed"]);
    // all is durable when the call returns
    assert_eq!(disk.crash_point().changes(), 0);
    let mut checked = std::collections::HashSet::new();
    for (number, (operation, point)) in points.iter().enumerate() {
        for survivors in point.survivors(4, number as u64) {
            let image = point.image(survivors);
            if checked.insert(image.hash()) {
                check(&image, &old, &new, &format!("before operation {number}, {operation}: {survivors:?}"));
            }
        }
    }
    assert!(checked.len() > 100, "{}", checked.len());
}

#[test]
fn after_a_fault_at_any_operation_each_file_is_old_or_new_and_a_second_run_completes_the_first() {
    let damaged = damaged_disk();
    let old = contents(&damaged.shown());
    let new = {
        let disk = damaged.fork();
        run(&disk, false).unwrap();
        contents(&disk.shown())
    };
    let mut faults = 0;
    for kind in [FaultKind::InputOutput, FaultKind::NoSpace, FaultKind::Killed] {
        for at in 0.. {
            let disk = damaged.fork();
            disk.set_fault(Some(Fault { at, kind, forever: kind == FaultKind::Killed }));
            let result = run(&disk, false);
            let is_over = disk.fault_is_over();
            disk.set_fault(None);
            if !is_over {
                assert!(result.is_ok());
                break;
            }
            if let Err(error) = result {
                assert!(matches!(error, Error::Io { .. }), "{error}");
            }
            check(&disk.shown(), &old, &new, &format!("{kind:?} at operation {at}"));
            faults += 1;
        }
    }
    assert!(faults > 90, "{faults}");
}

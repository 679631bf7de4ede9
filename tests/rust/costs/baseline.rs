//! What hot paths cost, compared with recorded numbers: instructions and allocations, which do not depend on
//! the machine's load.
//!
//! `RECORD_COSTS=1 make costs` records what it finds in `costs.json`. The numbers are those of the `release`
//! profile: without optimisation they say nothing.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::hot_paths::{ALL, HotPath, Pass, write};

/// For the child process: the name of the path, and the directory of the log.
const CHILD: [&str; 2] = ["COSTS_OF_PATH", "COSTS_OF_LOG"];

/// A compiler of another version may need a few instructions more; a checksum, a lock or an allocation is
/// more than that.
const TOLERANCE: f64 = 0.25;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn recorded_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("costs.json")
}

/// Compares with the recorded numbers of this name, or records them.
fn compare(kind: &str, found: &BTreeMap<&str, f64>) {
    let mut recorded: Value = serde_json::from_slice(&fs::read(recorded_file()).unwrap()).unwrap();
    if env::var_os("RECORD_COSTS").is_some() {
        recorded[kind] = json!(found);
        fs::write(recorded_file(), serde_json::to_string_pretty(&recorded).unwrap() + "\n").unwrap();
        return;
    }
    let mut wrong = Vec::new();
    for (name, found) in found {
        let expected = recorded[kind][name].as_f64().unwrap_or(0.0);
        let tolerated = expected * TOLERANCE + if kind == "allocations" { 0.0 } else { 3.0 };
        if (found - expected).abs() > tolerated {
            wrong.push(format!("{name}: {found} {kind}, recorded are {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}\nIf the change is intended, run with RECORD_COSTS=1.", wrong.join("\n"));
}

/// Its calls are what callgrind counts.
#[inline(never)]
fn counted_pass(pass: &mut Pass) {
    pass();
    black_box(pass);
}

#[test]
#[ignore = "runs in the child process of another test"]
fn child() {
    let [Ok(name), Ok(dir)] = CHILD.map(env::var) else { return };
    let path = ALL.iter().find(|path| path.name == name).unwrap();
    counted_pass(&mut path.warmed_up(Path::new(&dir)));
}

/// Instructions of one element of a pass.
fn instructions(path: &HotPath, dir: &Path) -> f64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*counted_pass*"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "baseline::child", "--ignored", "--test-threads=1"])
        .envs(CHILD.into_iter().zip([path.name, dir.to_str().unwrap()]))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {text}", path.name);
    let collected = text.split_once("Collected : ").and_then(|(_, rest)| rest.split_whitespace().next());
    let collected: f64 = collected.unwrap_or_else(|| panic!("{text}")).parse().unwrap();
    assert!(collected > 0.0, "{}: nothing was counted", path.name);
    (collected / f64::from(path.elements) * 10.0).round() / 10.0
}

#[test]
fn hot_paths_execute_about_as_many_instructions_as_recorded() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        assert!(env::var_os("CI").is_none(), "valgrind is not installed");
        return;
    }
    let folder = folder();
    let dir = write(folder.path());
    compare("instructions", &ALL.iter().map(|path| (path.name, instructions(path, &dir))).collect());
}

#[test]
fn hot_paths_allocate_about_as_often_as_recorded() {
    let folder = folder();
    let dir = write(folder.path());
    let allocations = |path: &HotPath| {
        let pass = path.warmed_up(&dir);
        let counted = allocation_counter::measure(pass);
        (path.name, f64::from(u32::try_from(counted.count_total).unwrap()))
    };
    compare("allocations", &ALL.iter().map(allocations).collect());
}

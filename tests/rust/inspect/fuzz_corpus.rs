//! The inputs of `tests/fuzz/corpus`: seeds, and inputs that once found a bug. `make fuzz` looks for new ones.

#[path = "../../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::path::Path;

/// Runs a target with each of its inputs. `make fuzz` limits their time and memory.
fn run(target: &str, function: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    let mut inputs = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        // shown if the target panics
        println!("{}", path.display());
        function(&fs::read(&path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "{} is empty", folder.display());
}

#[test]
fn batches() {
    run("batches", targets::batches);
}

#[test]
fn indexes() {
    run("indexes", targets::indexes);
}

#[test]
fn state_files() {
    run("state_files", targets::state_files);
}

#[test]
fn directories() {
    run("directories", targets::directories);
}

#[test]
fn internal_topics() {
    run("internal_topics", targets::internal_topics);
}

#[test]
fn repairs() {
    run("directories", targets::repairs);
}

#[test]
fn rebuilds() {
    run("directories", targets::rebuilds);
}

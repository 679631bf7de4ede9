//! The inputs of `tests/fuzz/corpus`: seeds, and inputs that once found a bug; and the same number of mutated
//! ones in every run. `make fuzz` looks for new ones, guided by coverage.

#[path = "../../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::path::Path;

use cordwood_tests::random::Random;

/// Runs a target with each of its inputs, and with mutated ones. `make fuzz` limits their time and memory.
fn run(target: &str, function: fn(&[u8]), mutated: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut paths: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    // the order of a directory is not fixed, and the mutations must be
    paths.sort();
    let inputs: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    for (path, input) in paths.iter().zip(&inputs) {
        // shown if the target panics
        println!("{}", path.display());
        function(input);
    }
    let mut random = Random(0);
    for number in 0..mutated {
        let mut input = inputs[random.below(inputs.len() as i64) as usize].clone();
        for _ in 0..=random.below(4) {
            let other = &inputs[random.below(inputs.len() as i64) as usize];
            mutate(&mut input, other, &mut random);
        }
        println!(
            "mutated input {number}: {}",
            input.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        );
        function(&input);
    }
}

/// Changes an input at a random place.
fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let mut below = |end: usize| random.below(end.max(1) as i64) as usize;
    let place = below(input.len());
    match below(6) {
        0 => input[place..].iter_mut().take(1).for_each(|byte| *byte ^= 1 << below(8)),
        1 => input[place..].iter_mut().take(1).for_each(|byte| *byte = below(256) as u8),
        // what lengths, counts and offsets are at their limits
        2 => {
            let extremes = [0, 1, -1, i32::MAX, i32::MIN, input.len() as i32];
            let number = extremes[below(extremes.len())].to_be_bytes();
            input[place..].iter_mut().zip(number).for_each(|(byte, new)| *byte = new);
        }
        3 => input.truncate(place),
        4 => drop(input.drain(place..(place + below(64)).min(input.len()))),
        _ => {
            input.truncate(place);
            input.extend_from_slice(&other[below(other.len())..]);
        }
    }
}

#[test]
fn batches() {
    run("batches", targets::batches, 8_000);
}

#[test]
fn indexes() {
    run("indexes", targets::indexes, 400);
}

#[test]
fn state_files() {
    run("state_files", targets::state_files, 20_000);
}

#[test]
fn directories() {
    run("directories", targets::directories, 200);
}

#[test]
fn internal_topics() {
    run("internal_topics", targets::internal_topics, 20_000);
}

#[test]
fn repairs() {
    run("directories", targets::repairs, 100);
}

#[test]
fn rebuilds() {
    run("directories", targets::rebuilds, 200);
}

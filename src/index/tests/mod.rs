//! The three indexes over real files.

mod damage;
mod examples;
mod properties;
mod writing;
mod writing_properties;

use std::path::PathBuf;

use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;

use super::{Method, OffsetIndex, TimeIndex, TransactionIndex};
use crate::types::{OffsetPosition, TimestampOffset};

const METHODS: [Method; 3] = [Method::Binary, Method::Warm, Method::Learned];

/// A configuration with the same cases in every run.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(8192),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// An index file in a temporary directory, which is removed with it.
struct Sample {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Sample {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        Self { path, _folder: folder }
    }

    /// The same file twice: mapped, and read by position.
    fn offset_indexes(&self, base_offset: i64) -> [OffsetIndex; 2] {
        [true, false].map(|map| OffsetIndex::open(&self.path, Some(base_offset), map).unwrap())
    }

    fn time_indexes(&self, base_offset: i64) -> [TimeIndex; 2] {
        [true, false].map(|map| TimeIndex::open(&self.path, Some(base_offset), map).unwrap())
    }

    fn transaction_indexes(&self, base_offset: i64) -> [TransactionIndex; 2] {
        [true, false].map(|map| TransactionIndex::open(&self.path, Some(base_offset), map).unwrap())
    }
}

/// The bytes of an offset index file, from absolute offsets and positions.
fn offset_bytes(base_offset: i64, entries: &[(i64, i32)]) -> Vec<u8> {
    let relative = |offset: i64| i32::try_from(offset - base_offset).unwrap().to_be_bytes();
    entries
        .iter()
        .flat_map(|(offset, position)| [relative(*offset), position.to_be_bytes()].concat())
        .collect()
}

/// The bytes of a time index file, from timestamps and absolute offsets.
fn time_bytes(base_offset: i64, entries: &[(i64, i64)]) -> Vec<u8> {
    let relative = |offset: i64| i32::try_from(offset - base_offset).unwrap().to_be_bytes();
    let slot = |(timestamp, offset): &(i64, i64)| [&timestamp.to_be_bytes()[..], &relative(*offset)].concat();
    entries.iter().flat_map(slot).collect()
}

/// The bytes of a transaction index file, from producer id, first, last and last stable offset.
fn transaction_bytes(entries: &[[i64; 4]]) -> Vec<u8> {
    entries.iter().flat_map(|fields| [&[0, 0][..], &fields.map(i64::to_be_bytes).concat()].concat()).collect()
}

fn hex(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn at(offset: i64, position: i32) -> OffsetPosition {
    OffsetPosition { offset, position }
}

fn when(timestamp: i64, offset: i64) -> TimestampOffset {
    TimestampOffset { timestamp, offset }
}

//! Look-ups in an index of 10 MiB, mapped.
//!
//! *First*: the first look-up of an index that was just opened. *Model*: all keys have been read, and the
//! model of `Method::Learned` is in memory. *Tail* targets are between the keys of the last 1,024 entries,
//! *uniform* ones between the first key and the last.

use std::fs;
use std::path::Path;

use cordwood::index::{Entry, Index, Method};
use cordwood::types::{OffsetPosition, TimestampOffset};

use super::page_cache::{CachedFiles, MappedIndex};
use super::rows::{Call, Calls, Rows};
use super::support::contents::Content;
use super::support::partition::{offset_entry, time_entry};
use super::support::random::Random;

const FILE_BYTES: usize = 10 << 20;
const TAIL: usize = 1024;
/// Positions in an offset index are this far from each other, so that the last is an `i32`.
const POSITION_STEP: usize = 1_500;
/// The largest mean of faults of a first look-up by `Method::Learned` in an offset index with even contents.
const MAX_FAULTS: f64 = 1.05;

const FIRST: [(&str, Method); 3] =
    [("binary/first", Method::Binary), ("warm/first", Method::Warm), ("learned/first", Method::Learned)];
const MODEL: &str = "learned/model";

/// Key and value of an entry.
type Answer = (i64, i64);

pub fn run(rows: &mut Rows) {
    // target/tmp is on the repository's disk; a temporary directory may be in memory
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for content in Content::ALL {
        let entries: Vec<Answer> =
            content.keys(FILE_BYTES / 8).into_iter().zip((0..).step_by(POSITION_STEP)).collect();
        let entry = |(offset, position): &Answer| offset_entry(0, *offset, *position as i32);
        let case = Case::<OffsetPosition, 8> {
            name: format!("offset-index/{}", content.name()),
            bytes: entries.iter().flat_map(entry).collect(),
            entries,
            none: (0, 0),
            max_faults: (content == Content::Even).then_some(MAX_FAULTS),
            answer: |entry| (entry.offset, i64::from(entry.position)),
        };
        case.run(rows, &folder.path().join(format!("{:020}.{}.index", 0, content.name())));

        let entries: Vec<Answer> = content.keys(FILE_BYTES / 12).into_iter().zip(0..).collect();
        let entry = |(timestamp, offset): &Answer| time_entry(0, *timestamp, *offset);
        let case = Case::<TimestampOffset, 12> {
            name: format!("time-index/{}", content.name()),
            bytes: entries.iter().flat_map(entry).collect(),
            entries,
            none: (-1, 0),
            max_faults: None,
            answer: |entry| (entry.timestamp, entry.offset),
        };
        case.run(rows, &folder.path().join(format!("{:020}.{}.timeindex", 0, content.name())));
    }
}

/// An index, and its entries.
struct Case<E, const SIZE: usize> {
    name: String,
    bytes: Vec<u8>,
    entries: Vec<Answer>,
    /// The answer below the first entry.
    none: Answer,
    /// The largest mean of page faults that is expected of first look-ups by `Method::Learned`.
    max_faults: Option<f64>,
    answer: fn(E) -> Answer,
}

impl<E: Entry<SIZE>, const SIZE: usize> Case<E, SIZE> {
    fn run(&self, rows: &mut Rows, path: &Path) {
        fs::write(path, &self.bytes).unwrap();
        let files = CachedFiles::open(vec![path.to_owned()]);
        let last = self.entries.len() - 1;
        for (shape, first) in [("tail", self.entries.len() - TAIL), ("uniform", 0)] {
            let [start, end] = [first, last].map(|slot| self.entries[slot].0);
            let targets = Random(5).between(start, end + 1, rows.look_ups());
            for (arm, method) in FIRST {
                let name = format!("{}/{shape}/{arm}", self.name);
                if rows.wants(&name) {
                    let max_faults = self.max_faults.filter(|_| method == Method::Learned);
                    rows.add(&name, &self.first(path, &files, &targets, method), max_faults);
                }
            }
            let name = format!("{}/{shape}/{MODEL}", self.name);
            if rows.wants(&name) {
                rows.add(&name, &self.with_model(path, &files, &targets), None);
            }
        }
        fs::remove_file(path).unwrap();
    }

    /// By a plain binary search.
    fn right(&self, target: i64) -> Answer {
        let after = self.entries.partition_point(|(key, _)| *key <= target);
        after.checked_sub(1).map_or(self.none, |slot| self.entries[slot])
    }

    fn look_up(&self, index: &Index<E, SIZE>, target: i64, method: Method, calls: &mut Calls) {
        let (call, found) = Call::of(|| index.lookup(target, method).unwrap());
        assert_eq!((self.answer)(found), self.right(target), "{}: {target}", self.name);
        calls.look_up.push(call);
        calls.pages.push(index.trace(target, method).unwrap().len());
    }

    fn first(&self, path: &Path, files: &CachedFiles, targets: &[i64], method: Method) -> Calls {
        let mut calls = Calls::default();
        for target in targets {
            files.evict();
            let (call, index) = Call::of(|| Index::open(path, None, true).unwrap());
            calls.opening.push(call);
            self.look_up(&index, *target, method, &mut calls);
        }
        calls
    }

    fn with_model(&self, path: &Path, files: &CachedFiles, targets: &[i64]) -> Calls {
        let mapped = MappedIndex::open(path);
        // many more than those after which the model is built
        for (key, _) in self.entries.iter().step_by(16) {
            mapped.index.lookup(*key, Method::Learned).unwrap();
        }
        let mut calls = Calls::default();
        for target in targets {
            mapped.forget_pages();
            files.evict();
            self.look_up(&mapped.index, *target, Method::Learned, &mut calls);
        }
        calls
    }
}

//! Indexes of 1 KiB to 10 MiB, mapped: a look-up by each method, and a plain binary search over the same
//! bytes.
//!
//! *Tail* targets are between the keys of the last 1,024 entries, *uniform* ones between the first key and
//! the last.

use std::path::Path;

use cordwood::index::{Method, OffsetIndex, TimeIndex};

use super::support::entries::{
    BASE, floors, offset_entries, offset_index_bytes, time_entries, time_index_bytes,
};
use super::support::naive;
use super::support::random::Random;
use super::sweep::{Answer, Arm, Sweeps};

const SIZES: [usize; 8] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 10 << 20];
const TARGETS: usize = 1 << 15;
const TAIL: usize = 1024;
const METHODS: [(&str, Method); 3] =
    [("learned", Method::Learned), ("warm", Method::Warm), ("binary", Method::Binary)];

pub fn run(sweeps: &mut Sweeps) {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        offset_index(sweeps, size, folder.path());
        time_index(sweeps, size, folder.path());
    }
}

/// One index, and its look-ups.
struct Index<'a> {
    /// The sweeps of tail and of uniform targets.
    sweeps: [&'static str; 2],
    size: usize,
    entries: &'a [(i64, i64)],
    /// The answer below the first entry.
    none: Answer,
}

impl Index<'_> {
    fn run(
        &self,
        sweeps: &mut Sweeps,
        look_up: impl Fn(i64, Method) -> Answer + Copy,
        plain: impl Fn(i64) -> Answer + Copy,
    ) {
        let Self { entries, none, .. } = *self;
        let (first, last) = (entries[0].0, entries[entries.len() - 1].0);
        let tail = entries[entries.len().saturating_sub(TAIL)].0;
        for (sweep, start) in self.sweeps.into_iter().zip([tail, first]) {
            let mut targets = Random(3).between(start, last + 1, TARGETS);
            targets.extend([first - 1, first, first + 1, last - 1, last, last + 1]);
            let answers = floors(entries, &targets, none);
            let mut arms: Vec<_> = METHODS
                .into_iter()
                .map(|(name, method)| {
                    Arm::look_ups(name, &targets, &answers, move |target| look_up(target, method))
                })
                .collect();
            arms.push(Arm::look_ups("plain binary search", &targets, &answers, plain));
            sweeps.measure(sweep, self.size as u64, &arms);
        }
    }
}

fn offset_index(sweeps: &mut Sweeps, size: usize, folder: &Path) {
    let names = ["offset-index/tail", "offset-index/uniform"];
    if !sweeps.wants(&names) {
        return;
    }
    let entries = offset_entries(size / 8);
    let bytes = offset_index_bytes(&entries);
    let path = folder.join(format!("{BASE:020}.{size}.index"));
    std::fs::write(&path, &bytes).unwrap();
    let index = OffsetIndex::open(&path, None, true).unwrap();
    Index { sweeps: names, size, entries: &entries, none: (BASE, 0) }.run(
        sweeps,
        |target, method| {
            let found = index.lookup(target, method).unwrap();
            (found.offset, i64::from(found.position))
        },
        |target| {
            let slot = naive::floor(&bytes, naive::offset_key, target - BASE);
            slot.map_or((BASE, 0), |slot| (BASE + naive::offset_key(slot), naive::position(slot)))
        },
    );
}

fn time_index(sweeps: &mut Sweeps, size: usize, folder: &Path) {
    let names = ["time-index/tail", "time-index/uniform"];
    if !sweeps.wants(&names) {
        return;
    }
    let entries = time_entries(size / 12);
    let bytes = time_index_bytes(&entries);
    let path = folder.join(format!("{BASE:020}.{size}.timeindex"));
    std::fs::write(&path, &bytes).unwrap();
    let index = TimeIndex::open(&path, None, true).unwrap();
    Index { sweeps: names, size, entries: &entries, none: (-1, BASE) }.run(
        sweeps,
        |target, method| {
            let found = index.lookup(target, method).unwrap();
            (found.timestamp, found.offset)
        },
        |target| {
            let slot = naive::floor(&bytes, naive::time_key, target);
            slot.map_or((-1, BASE), |slot| (naive::time_key(slot), BASE + naive::time_offset(slot)))
        },
    );
}

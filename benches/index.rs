//! Index look-up: `learned`, `warm` and `binary`, mapped and by position, compared with a plain binary search
//! over the same bytes, a search of decoded pairs, and a linear search.
//!
//! The files have 2 MiB, the size for a segment of 1 GiB at Kafka's default interval of 4,096 bytes. *Tail*
//! targets are among the last 1,024 entries, *uniform* ones between the first key and the last.

use std::path::Path;

use cordwood::index::{Method, OffsetIndex, TimeIndex};
use cordwood_benches as support;
use criterion::{Criterion, criterion_group, criterion_main};
use support::entries::{BASE, floors, offset_entries, offset_index_bytes, time_entries, time_index_bytes};
use support::naive;
use support::race::Race;
use support::random::Random;

const FILE_BYTES: usize = 2 << 20;
/// More targets than a branch predictor can learn.
const TARGETS: usize = 1 << 16;
/// The number of targets of the slow linear search.
const FEW: usize = 64;
/// The entries whose keys are *tail* targets.
const TAIL: usize = 1024;

/// One index: its entries, and the look-up of each arm.
struct Contest<'a> {
    kind: &'static str,
    entries: &'a [(i64, i64)],
    none: (i64, i64),
}

impl Contest<'_> {
    /// `ours`: mapped and by position; `slots`: plain binary search over the bytes.
    fn run(
        &self,
        criterion: &mut Criterion,
        ours: [&dyn Fn(i64, Method) -> (i64, i64); 2],
        slots: impl Fn(i64) -> (i64, i64),
    ) {
        let Self { kind, entries, none } = *self;
        let (first, last) = (entries[0].0, entries[entries.len() - 1].0);
        for (shape, start) in [("tail", entries[entries.len() - TAIL].0), ("uniform", first)] {
            let targets = Random(3).between(start, last + 1, TARGETS);
            let answers = floors(entries, &targets, none);
            let race = Race {
                name: format!("index/{kind}/{shape}"),
                targets: &targets,
                answers: &answers,
                number: |(_, value)| *value,
            };
            for (io, ours) in ["mapped", "positional"].into_iter().zip(ours) {
                race.run(criterion, &format!("learned/{io}"), |target| ours(target, Method::Learned));
                race.run(criterion, &format!("warm/{io}"), |target| ours(target, Method::Warm));
                race.run(criterion, &format!("binary/{io}"), |target| ours(target, Method::Binary));
            }
            race.run(criterion, "naive/slots", &slots);
            race.run(criterion, "naive/partition_point", |target| {
                let after = entries.partition_point(|(key, _)| *key <= target);
                after.checked_sub(1).map_or(none, |slot| entries[slot])
            });
            race.run_few(criterion, "naive/linear", FEW, |target| {
                entries.iter().take_while(|(key, _)| *key <= target).last().copied().unwrap_or(none)
            });
        }
    }
}

fn offset_index(criterion: &mut Criterion, folder: &Path) {
    let entries = offset_entries(FILE_BYTES / 8);
    let bytes = offset_index_bytes(&entries);
    let path = folder.join(format!("{BASE:020}.index"));
    std::fs::write(&path, &bytes).unwrap();
    let [mapped, positional] = [true, false].map(|map| OffsetIndex::open(&path, None, map).unwrap());
    let look_up = |index: &OffsetIndex, target, method| {
        let found = index.lookup(target, method).unwrap();
        (found.offset, i64::from(found.position))
    };
    let contest = Contest { kind: "offset", entries: &entries, none: (BASE, 0) };
    contest.run(
        criterion,
        [&|target, method| look_up(&mapped, target, method), &|target, method| {
            look_up(&positional, target, method)
        }],
        |target| {
            let slot = naive::floor(&bytes, naive::offset_key, target - BASE);
            slot.map_or((BASE, 0), |slot| (BASE + naive::offset_key(slot), naive::position(slot)))
        },
    );
}

fn time_index(criterion: &mut Criterion, folder: &Path) {
    let entries = time_entries(FILE_BYTES / 12);
    let bytes = time_index_bytes(&entries);
    let path = folder.join(format!("{BASE:020}.timeindex"));
    std::fs::write(&path, &bytes).unwrap();
    let [mapped, positional] = [true, false].map(|map| TimeIndex::open(&path, None, map).unwrap());
    let look_up = |index: &TimeIndex, target, method| {
        let found = index.lookup(target, method).unwrap();
        (found.timestamp, found.offset)
    };
    let contest = Contest { kind: "time", entries: &entries, none: (-1, BASE) };
    contest.run(
        criterion,
        [&|target, method| look_up(&mapped, target, method), &|target, method| {
            look_up(&positional, target, method)
        }],
        |target| {
            let slot = naive::floor(&bytes, naive::time_key, target);
            slot.map_or((-1, BASE), |slot| (naive::time_key(slot), BASE + naive::time_offset(slot)))
        },
    );
}

fn index(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    offset_index(criterion, folder.path());
    time_index(criterion, folder.path());
}

criterion_group!(benches, index);
criterion_main!(benches);

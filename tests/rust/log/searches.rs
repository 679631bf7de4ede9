//! Look-ups and scans of random logs return the same as a reader that reads everything, whatever the contents
//! of the indexes.

use std::path::{Path, PathBuf};

use cordwood::log::{Ranges, ScanOptions};
use proptest::prelude::*;

use crate::support::batches::{BatchV2, Built, Codec, MessageSet, Rec};
use crate::support::fixed_seed;
use crate::support::naive;
use crate::support::partition::{EntryOffset, Indexing, PartitionBuilder};
use crate::support::reading::{both, folder, locate, located, range, scan, time, timed};

/// The parameters of a random log.
#[derive(Debug, Clone)]
pub struct Recipe {
    batches: Vec<BatchRecipe>,
    segment_bytes: usize,
    indexing: Indexing,
    /// The number of zeros after the last segment's data.
    zero_tail: usize,
    /// The state of the index files.
    hints: Hints,
}

#[derive(Debug, Clone)]
pub struct BatchRecipe {
    /// 0, 1, 2; 3: a v2 batch that compaction emptied.
    kind: u8,
    codec: usize,
    /// The number of offsets left out before the batch.
    gap: i64,
    /// Timestamp, number of offsets left out before the record, length of the value.
    records: Vec<(i64, i32, usize)>,
    log_append_time: Option<i64>,
    delete_horizon: bool,
    /// The number of offsets after the last record, as compaction leaves them.
    kept_delta: i32,
}

#[derive(Debug, Clone)]
pub enum Hints {
    Right,
    Missing,
    Empty,
    /// All bytes have this value.
    Garbage(u8),
    /// Random bytes of a random length.
    Random(Vec<u8>),
    Cut(usize),
    /// Entries of another log: increasing offsets and times that no batch confirms.
    Shifted(u8),
}

fn batch() -> impl Strategy<Value = BatchRecipe> {
    let record = (-1i64..60, prop_oneof![8 => Just(0), 1 => 1i32..5], 0usize..40);
    (
        prop_oneof![1 => Just(0u8), 2 => Just(1), 6 => Just(2), 1 => Just(3)],
        0usize..6,
        prop_oneof![6 => Just(0i64), 1 => 1i64..30],
        proptest::collection::vec(record, 1..5),
        proptest::option::weighted(0.1, 0i64..60),
        proptest::bool::weighted(0.1),
        prop_oneof![6 => Just(0i32), 1 => 1i32..6],
    )
        .prop_map(|(kind, codec, gap, records, log_append_time, delete_horizon, kept_delta)| {
            BatchRecipe { kind, codec, gap, records, log_append_time, delete_horizon, kept_delta }
        })
}

fn hints() -> impl Strategy<Value = Hints> {
    prop_oneof![
        6 => Just(Hints::Right),
        1 => Just(Hints::Missing),
        1 => Just(Hints::Empty),
        1 => any::<u8>().prop_map(Hints::Garbage),
        1 => proptest::collection::vec(any::<u8>(), 0..200).prop_map(Hints::Random),
        1 => (0usize..60).prop_map(Hints::Cut),
        1 => any::<u8>().prop_map(Hints::Shifted),
    ]
}

pub fn recipe() -> impl Strategy<Value = Recipe> {
    let zero_tail = prop_oneof![5 => Just(0usize), 1 => 1usize..5000];
    (
        proptest::collection::vec(batch(), 1..25),
        60usize..2500,
        (
            0usize..400,
            any::<bool>(),
            proptest::option::weighted(0.2, 0usize..600),
            proptest::bool::weighted(0.8),
        ),
        zero_tail,
        hints(),
    )
        .prop_map(|(batches, segment_bytes, indexing, zero_tail, hints)| {
            let (interval_bytes, is_base, preallocated_bytes, has_time_index) = indexing;
            let entry_offset = if is_base { EntryOffset::Base } else { EntryOffset::Last };
            let indexing = Indexing { interval_bytes, entry_offset, preallocated_bytes, has_time_index };
            Recipe { batches, segment_bytes, indexing, zero_tail, hints }
        })
}

fn build(recipe: &BatchRecipe, next: i64) -> Vec<Built> {
    let base = next + recipe.gap;
    let mut delta = -1;
    let records: Vec<Rec> = recipe
        .records
        .iter()
        .map(|&(timestamp, gap, length)| {
            delta += 1 + gap;
            Rec::at(timestamp).value(vec![length as u8; length]).delta(delta)
        })
        .collect();
    match recipe.kind {
        2 => {
            let mut batch = BatchV2::new(base).codec(Codec::ALL[recipe.codec]).records(records);
            batch.log_append_time = recipe.log_append_time;
            if recipe.delete_horizon {
                batch = batch.delete_horizon(7);
            }
            vec![batch.last_offset_delta(delta + recipe.kept_delta).build()]
        }
        3 => vec![BatchV2::empty(base, recipe.kept_delta, 59).build()],
        magic => {
            let mut set = if magic == 0 { MessageSet::v0(base) } else { MessageSet::v1(base) };
            if magic == 1 {
                set.log_append_time = recipe.log_append_time;
            }
            // a v1 wrapper has relative offsets; one at offset 0 starts at 0, whatever its last entry's
            // offset (old librdkafka)
            let codec = if base == 0 { Codec::None } else { Codec::ALL[recipe.codec % 5] };
            set.codec(codec).records(records).build()
        }
    }
}

pub fn write(recipe: &Recipe, parent: &Path) -> PathBuf {
    let mut built: Vec<Built> = Vec::new();
    for batch in &recipe.batches {
        let next = built.last().map_or(0, Built::next_offset);
        built.extend(self::build(batch, next));
    }
    let dir = PartitionBuilder::rolled(recipe.indexing, recipe.segment_bytes, built).write(parent, "t-0");
    let mut logs: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "log") {
            logs.push(path);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let entry_size = if path.extension().is_some_and(|extension| extension == "index") { 8 } else { 12 };
        let damaged = match &recipe.hints {
            Hints::Right => bytes,
            Hints::Missing => {
                std::fs::remove_file(&path).unwrap();
                continue;
            }
            Hints::Empty => Vec::new(),
            Hints::Garbage(byte) => vec![*byte; bytes.len().max(40)],
            Hints::Random(random) => random.clone(),
            Hints::Cut(length) => bytes[..bytes.len().min(*length)].to_vec(),
            Hints::Shifted(by) => {
                let mut bytes = bytes;
                for entry in bytes.chunks_exact_mut(entry_size) {
                    entry[entry_size - 1] = entry[entry_size - 1].wrapping_add(*by);
                }
                bytes
            }
        };
        std::fs::write(&path, damaged).unwrap();
    }
    logs.sort();
    let last = logs.last().unwrap();
    let mut bytes = std::fs::read(last).unwrap();
    bytes.resize(bytes.len() + recipe.zero_tail, 0);
    std::fs::write(last, bytes).unwrap();
    dir
}

proptest! {
    #![proptest_config(fixed_seed(300))]

    #[test]
    fn a_random_log_returns_the_same_as_a_reader_of_everything(
        recipe in recipe(),
        ranges in proptest::collection::vec((any::<proptest::sample::Index>(), any::<proptest::sample::Index>(), -1i64..62, -1i64..62), 4),
        max_bytes in 1u64..3000,
    ) {
        let parent = folder();
        let dir = write(&recipe, parent.path());
        let naive = naive::read(&dir).unwrap();
        let end = naive.end_offset();
        for log in both(&dir) {
            prop_assert_eq!(log.log_end_offset().unwrap(), end);
            let all = range(&log, Ranges::default()).whole();
            prop_assert!(all.records().eq(naive.records()));
            prop_assert_eq!(&all.gaps, &[]);
            for offset in 0..end {
                prop_assert_eq!(locate(&log, offset).unwrap(), located(naive.locate(offset)), "offset {}", offset);
            }
            for target in 0..62 {
                let found = time(&log, target).unwrap();
                prop_assert_eq!(found, timed(naive.offset_for_time(0, target)), "time {}", target);
            }
            for (a, b, low, high) in &ranges {
                let (a, b) = (a.index(end as usize + 1) as i64, b.index(end as usize + 1) as i64);
                let start_time = (*low >= 0).then_some(*low);
                let end_time = (*high >= 0).then_some(*high).filter(|high| start_time.is_none_or(|low| low <= *high));
                let ranges = Ranges { start_offset: Some(a.min(b)), end_offset: Some(a.max(b)), start_time, end_time };
                let times = (start_time.is_some() || end_time.is_some())
                    .then(|| start_time.unwrap_or(0)..end_time.unwrap_or(i64::MAX));
                let expected: Vec<_> = naive.scan(a.min(b)..a.max(b), times, false).collect();
                let read = range(&log, ranges).whole();
                prop_assert_eq!(read.records().collect::<Vec<_>>(), expected.clone(), "{:?}", ranges);
                let options = ScanOptions { ranges, ..ScanOptions::default() };
                let mut planned = Vec::new();
                let mut at = a.min(b);
                for split in log.plan(max_bytes, &options).unwrap() {
                    prop_assert!(split.start_offset >= at && split.start_offset < split.end_offset);
                    let in_split = |batch: &&naive::Batch| {
                        batch.last_offset >= split.start_offset && batch.base_offset < split.end_offset
                    };
                    let (count, bytes) =
                        naive.batches.iter().filter(in_split).fold((0, 0), |(n, sum), batch| (n + 1, sum + batch.size));
                    prop_assert!(count <= 1 || bytes <= max_bytes, "{} bytes of {:?}", bytes, split);
                    at = split.end_offset;
                    let read = scan(&log, ScanOptions { ranges: split.ranges(), ..options }).whole();
                    planned.extend(read.records().cloned());
                }
                prop_assert!(planned.iter().eq(expected), "{:?}", log.plan(max_bytes, &options));
            }
            for segment in log.segments().iter() {
                let of_segment = naive.batches.iter().filter(|batch| batch.segment == segment.base_offset());
                let largest = of_segment.map(|batch| batch.max_timestamp).max().unwrap_or(-1);
                if largest >= 0 {
                    prop_assert_eq!(segment.largest_timestamp().unwrap(), largest);
                }
            }
            if matches!(recipe.hints, Hints::Right) && recipe.zero_tail == 0 {
                // warnings about gaps between segments are tested in another module
                let warnings = log.warnings().into_iter().filter(|warning| !warning.contains(" missing "));
                prop_assert_eq!(warnings.collect::<Vec<_>>(), [""; 0]);
            }
        }
    }
}

//! Random logs with everything that Kafka's format allows: all versions and codecs, transactions, compaction,
//! records without a time.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::batches::{ABORT, BatchV2, Built, COMMIT, Codec, MessageSet, Rec};
use super::partition::{Indexing, PartitionBuilder};

/// What is appended next: its kind, a codec, the times of its records with the distances of their offsets,
/// and the number of missing offsets before it.
pub type Step = (Kind, Codec, Vec<(i64, i32)>, i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    CreateTime,
    AppendTime,
    WithoutTimes,
    V0,
    V1,
    /// A batch of a transaction of this producer.
    Transaction(i64),
    Commit(i64),
    Abort(i64),
    /// A batch whose records compaction removed.
    Emptied,
    /// A batch of which compaction removed records.
    Sparse,
    /// A batch with a delete horizon.
    Horizon,
}

/// Kinds of logs that are not compacted and have no old format.
pub const PLAIN: [Kind; 1] = [Kind::CreateTime];
pub const ALL: [Kind; 16] = [
    Kind::CreateTime,
    Kind::CreateTime,
    Kind::CreateTime,
    Kind::AppendTime,
    Kind::WithoutTimes,
    Kind::V0,
    Kind::V1,
    Kind::Transaction(1),
    Kind::Transaction(2),
    Kind::Commit(1),
    Kind::Commit(2),
    Kind::Abort(1),
    Kind::Abort(2),
    Kind::Emptied,
    Kind::Sparse,
    Kind::Horizon,
];

/// Up to `length` steps of some kinds. Times are near each other, so that many are equal or disordered.
pub fn steps(kinds: &'static [Kind], length: usize) -> impl Strategy<Value = Vec<Step>> {
    let time = prop_oneof![
        12 => 1000i64..1010,
        3 => 0i64..4,
        2 => Just(-1),
        1 => -9i64..-1,
        1 => 4_102_444_800_000i64..4_102_444_800_003,
    ];
    let records = proptest::collection::vec((time, 1i32..4), 1..8);
    let gap = prop_oneof![6 => Just(0i64), 1 => 1i64..4];
    let codec = prop_oneof![4 => Just(Codec::None), 1 => proptest::sample::select(&Codec::ALL[..])];
    proptest::collection::vec((proptest::sample::select(kinds), codec, records, gap), 1..length)
}

/// The batches of steps. Each record's value is its offset, so that no two are equal.
pub fn batches(steps: &[Step]) -> Vec<Built> {
    let mut built: Vec<Built> = Vec::new();
    for (kind, codec, times, gap) in steps {
        let base = built.last().map_or(0, Built::next_offset) + gap;
        built.extend(step(*kind, *codec, times, base));
    }
    built
}

fn step(kind: Kind, codec: Codec, times: &[(i64, i32)], base: i64) -> Vec<Built> {
    let numbered =
        |(number, (time, _)): (usize, &(i64, i32))| Rec::at(*time).value((base + number as i64).to_string());
    let records = || times.iter().enumerate().map(numbered);
    let last_time = times.last().map_or(0, |(time, _)| *time).max(0);
    let v2 = BatchV2::new(base).codec(codec);
    let old_codec = if codec == Codec::Zstd { Codec::Gzip } else { codec };
    let one = |batch: BatchV2| vec![batch.build()];
    match kind {
        Kind::CreateTime => one(v2.records(records())),
        Kind::AppendTime => one(v2.records(records()).log_append_time(last_time)),
        Kind::WithoutTimes => one(v2.records(records().map(|record| Rec { timestamp: -1, ..record }))),
        Kind::V0 => MessageSet::v0(base).codec(old_codec).records(records()).build(),
        Kind::V1 => {
            // the naive reader refuses other times below 0 here
            let records = records().map(|record| Rec { timestamp: record.timestamp.max(-1), ..record });
            MessageSet::v1(base).codec(old_codec).records(records).build()
        }
        Kind::Transaction(producer) => one(v2.transaction(producer, 0, 0).records(records())),
        Kind::Commit(producer) => one(BatchV2::marker(base, COMMIT, producer, 0, last_time)),
        Kind::Abort(producer) => one(BatchV2::marker(base, ABORT, producer, 0, last_time)),
        Kind::Emptied => one(BatchV2::empty(base, times.len() as i32, last_time)),
        Kind::Sparse => {
            let mut delta = -1;
            let spread = records().zip(times).map(|(record, (_, distance))| {
                delta += distance;
                record.delta(delta)
            });
            let batch = v2.records(spread.collect::<Vec<_>>());
            one(batch.last_offset_delta(delta + times[0].1 - 1))
        }
        Kind::Horizon => one(v2.records(records()).delete_horizon(5000)),
    }
}

/// Writes a log with several segments, and returns its directory.
pub fn write(parent: &Path, name: &str, steps: &[Step], segment_bytes: usize) -> PathBuf {
    PartitionBuilder::rolled(Indexing::every(200), segment_bytes, batches(steps)).write(parent, name)
}

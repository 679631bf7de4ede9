//! A log of 1 to 100,000 segments: the segment of an offset, `Log::locate`, `Log::offset_for_time`.
//!
//! A segment has one batch of one record, which covers all offsets up to the next segment. *Tail* targets are
//! in the last ten segments, *uniform* ones anywhere; they are asked again and again. *First in a segment*:
//! in a log that was just opened, each segment is asked once. Times of `offset_for_time` are not from the
//! first call, which reads the largest timestamp of every segment.

use std::fs;
use std::path::{Path, PathBuf};

use cordwood::types::Io;
use cordwood::{Log, LogOptions};

use super::support::batches::{BatchV2, Rec};
use super::support::entries::floors;
use super::support::partition::{Indexing, PartitionBuilder};
use super::support::random::Random;
use super::sweep::{Answer, Arm, Sweeps, latencies};
use super::turns::Spent;

const COUNTS: [usize; 6] = [1, 10, 100, 1_000, 10_000, 100_000];
const TAIL: usize = 10;
/// More targets than a branch predictor can learn.
const FLOORS: usize = 1 << 16;
/// The first look-ups in a segment open its files; after eight it has a table.
const LOOK_UPS: usize = 1 << 11;
const UNTIL_TABLES: i64 = 10;
const FIRSTS: usize = 512;
const SWEEPS: [&str; 3] = ["segments/floor", "segments/locate", "segments/offset_for_time"];

/// The offsets of a segment, and its record.
#[derive(Debug, Clone, Copy)]
struct Segment {
    base_offset: i64,
    end_offset: i64,
    timestamp: i64,
    size: i64,
}

pub fn run(sweeps: &mut Sweeps) {
    if sweeps.wants(&SWEEPS) {
        for count in COUNTS {
            of_log(sweeps, count);
        }
    }
}

/// The log's directory, which is kept for the next run, because writing and removing so many files takes
/// long; and its segments. The distances of base offsets and of timestamps are uneven; the first base offset
/// is 0.
fn written(count: usize) -> (PathBuf, Vec<Segment>) {
    let (mut random, mut base_offset, mut timestamp) = (Random(1), 0, 1_700_000_000_000);
    let (mut partition, mut segments) = (PartitionBuilder::new(Indexing::every(4096)), Vec::new());
    for _ in 0..count {
        let end_offset = base_offset + 500 + random.below(1000);
        timestamp += 1 + random.below(1000);
        let batch = BatchV2::new(base_offset)
            .record(Rec::at(timestamp).value(timestamp.to_string()))
            .last_offset_delta((end_offset - base_offset - 1) as i32)
            .build();
        let size = batch.bytes.len() as i64;
        segments.push(Segment { base_offset, end_offset, timestamp, size });
        partition = partition.segment(base_offset, [batch]);
        base_offset = end_offset;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-sweeps");
    let dir = folder.join(format!("{count}-segments-0"));
    if !dir.exists() {
        fs::create_dir_all(&folder).unwrap();
        // under another name until it is complete
        let partial = folder.join("partial-0");
        if partial.exists() {
            fs::remove_dir_all(&partial).unwrap();
        }
        fs::rename(partition.write(&folder, "partial-0"), &dir).unwrap();
    }
    (dir, segments)
}

fn opened(dir: &Path) -> Log {
    Log::open(dir, LogOptions { io: Io::Mmap, ..LogOptions::default() }).unwrap()
}

fn of_log(sweeps: &mut Sweeps, count: usize) {
    let (dir, segments) = written(count);
    let log = opened(&dir);
    assert_eq!(log.segments().len(), count);
    let tail = segments[count.saturating_sub(TAIL)];
    let last = segments[count - 1];

    let draw = |first: i64, end: i64, count| Random(2).between(first, end, count);
    let offsets = [tail.base_offset, 0].map(|first| draw(first, last.end_offset, FLOORS));
    floor(sweeps, &log, &segments, &offsets);
    let offsets = offsets.map(|targets| targets[..LOOK_UPS].to_vec());
    locate(sweeps, &log, &segments, &offsets);
    let times = [tail.timestamp, segments[0].timestamp - 1];
    let times = times.map(|first| draw(first, last.timestamp + 1, LOOK_UPS));
    offset_for_time(sweeps, &log, &segments, &times);
    assert!(log.warnings().is_empty(), "{:?}", log.warnings());
}

/// Targets in the tail, and uniform ones, with their answers and the names of their arms.
fn arms<'a>(
    name: &str,
    targets: &'a [Vec<i64>; 2],
    answer: impl Fn(&[i64]) -> Vec<Answer>,
    look_up: impl Fn(i64) -> Answer + Copy + 'a,
) -> [Arm<'a>; 2] {
    [0, 1].map(|shape| {
        let arm = format!("{name}; {}", ["tail", "uniform"][shape]);
        Arm::look_ups(arm, &targets[shape], &answer(&targets[shape]), look_up)
    })
}

fn floor(sweeps: &mut Sweeps, log: &Log, segments: &[Segment], targets: &[Vec<i64>; 2]) {
    let bases: Vec<_> = segments.iter().map(|segment| (segment.base_offset, segment.base_offset)).collect();
    let right = |targets: &[i64]| floors(&bases, targets, (-1, -1));
    let list = arms("Segments::floor", targets, right, |target| {
        let base = log.segments().floor(target).unwrap().base_offset();
        (base, base)
    });
    let array = arms("sorted array", targets, right, |target| {
        bases[bases.partition_point(|(base, _)| *base <= target) - 1]
    });
    sweeps.measure(SWEEPS[0], segments.len() as u64, &list.into_iter().chain(array).collect::<Vec<_>>());
}

fn locate(sweeps: &mut Sweeps, log: &Log, segments: &[Segment], targets: &[Vec<i64>; 2]) {
    let entry = |segment: &Segment| (segment.base_offset, (segment.base_offset << 16) + segment.size);
    let entries: Vec<_> = segments.iter().map(entry).collect();
    let right = |targets: &[i64]| floors(&entries, targets, (-1, -1));
    let look_up = |log: &Log, target| {
        let found = log.locate(target).unwrap().unwrap();
        assert_eq!((found.segment_base_offset, found.position), (found.batch_base_offset, 0));
        (found.batch_base_offset, (found.segment_base_offset << 16) + i64::from(found.size))
    };
    // at most one target in a segment
    let count = segments.len();
    let firsts: Vec<i64> =
        segments.iter().step_by(count.div_ceil(FIRSTS)).map(|segment| segment.base_offset).collect();
    let first = Arm::timed("Log::locate; first in a segment", firsts.len() as u64, || {
        let log = opened(log.path());
        Spent::on(|| latencies(&firsts, |target| look_up(&log, target)))
    });
    let unread = opened(log.path());
    assert!(firsts.iter().map(|target| look_up(&unread, *target)).eq(right(&firsts)));

    let mut arms = Vec::from(arms("Log::locate", targets, right, |target| look_up(log, target)));
    for arm in &arms {
        arm.repeat(UNTIL_TABLES);
    }
    arms.push(first);
    sweeps.measure(SWEEPS[1], count as u64, &arms);
}

fn offset_for_time(sweeps: &mut Sweeps, log: &Log, segments: &[Segment], targets: &[Vec<i64>; 2]) {
    let right = |targets: &[i64]| {
        let first = |target: &i64| segments.iter().find(|segment| segment.timestamp >= *target).unwrap();
        let first = targets.iter().map(first);
        first.map(|segment| (segment.timestamp, segment.base_offset)).collect()
    };
    let arms = arms("Log::offset_for_time", targets, right, |target| {
        let found = log.offset_for_time(target).unwrap().unwrap();
        (found.timestamp, found.offset)
    });
    for arm in &arms {
        arm.repeat(UNTIL_TABLES);
    }
    sweeps.measure(SWEEPS[2], segments.len() as u64, &arms);
}

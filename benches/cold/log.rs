//! The first look-up in a log of 112 MiB in segments of 32 MiB. With `io=auto` the last segment is read by
//! position, and the others are mapped.

use std::fs;

use cordwood::Log;
use cordwood::types::Io;

use super::page_cache::CachedFiles;
use super::rows::{Call, Calls, Rows};
use super::support::batches::Codec;
use super::support::random::Random;
use super::support::written::{Shape, Written};

/// The last segment is half as large as the others.
const LOG_BYTES: usize = 112 << 20;
const SEGMENT_BYTES: usize = 32 << 20;

/// A look-up, and its right answers.
#[derive(Debug, Clone, Copy)]
struct Method {
    name: &'static str,
    look_up: fn(&Log, i64) -> Answer,
    /// A target for an offset in the wanted segment.
    target: fn(&Written, i64) -> i64,
    right: fn(&Written, &[i64]) -> Vec<Answer>,
}

type Answer = (i64, i64);

const LOCATE: Method = Method {
    name: "locate",
    look_up: |log, offset| {
        let found = log.locate(offset).unwrap().unwrap();
        (found.batch_base_offset, found.position as i64)
    },
    target: |_, offset| offset,
    right: |written, offsets| {
        let batches = offsets.iter().map(|offset| written.batch_of(*offset));
        batches.map(|batch| (batch.base_offset, batch.position as i64)).collect()
    },
};

const OFFSET_FOR_TIME: Method = Method {
    name: "offset_for_time",
    look_up: |log, time| {
        let found = log.offset_for_time(time).unwrap().unwrap();
        (found.timestamp, found.offset)
    },
    target: |written, offset| written.times[offset as usize],
    right: Written::first_at,
};

/// Where the targets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    ClosedSegments,
    LastSegment,
}

/// One row.
struct Case {
    name: String,
    method: Method,
    io: Io,
    place: Place,
}

pub fn run(rows: &mut Rows) {
    for (size, batch_bytes) in [("1KiB", 1 << 10), ("16KiB", 16 << 10)] {
        let mut cases = cases(size);
        cases.retain(|case| rows.wants(&case.name));
        if !cases.is_empty() {
            of_log(rows, batch_bytes, &cases);
        }
    }
}

fn cases(size: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for method in [LOCATE, OFFSET_FOR_TIME] {
        for (io_name, io) in [("mmap", Io::Mmap), ("auto", Io::Auto)] {
            for (place_name, place) in
                [("closed-segments", Place::ClosedSegments), ("last-segment", Place::LastSegment)]
            {
                let name = format!("{}/{size}/{io_name}/{place_name}", method.name);
                cases.push(Case { name, method, io, place });
            }
        }
    }
    cases
}

fn of_log(rows: &mut Rows, batch_bytes: usize, cases: &[Case]) {
    // target/tmp is on the repository's disk; a temporary directory may be in memory
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let shape = Shape { batch_bytes, codec: Codec::None, log_bytes: LOG_BYTES, segment_bytes: SEGMENT_BYTES };
    let written = Written::new_in(folder, shape);
    let paths = fs::read_dir(&written.dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    let files = CachedFiles::open(paths);
    let last = written.batches[written.batches.len() - 1].segment;
    for case in cases {
        let [start, end] = match case.place {
            Place::ClosedSegments => [0, last],
            Place::LastSegment => [last, written.end_offset()],
        };
        let offsets = Random(5).between(start, end, rows.look_ups());
        let targets: Vec<_> =
            offsets.into_iter().map(|offset| (case.method.target)(&written, offset)).collect();
        rows.add(&case.name, &first(&written, &files, case, &targets), None);
    }
}

/// A new log for every look-up.
fn first(written: &Written, files: &CachedFiles, case: &Case, targets: &[i64]) -> Calls {
    let method = case.method;
    let mut calls = Calls::default();
    for (target, right) in targets.iter().zip((method.right)(written, targets)) {
        files.evict();
        let (call, log) = Call::of(|| written.open(case.io));
        calls.opening.push(call);
        let (call, found) = Call::of(|| (method.look_up)(&log, *target));
        assert_eq!(found, right, "{}: {target}", method.name);
        assert!(log.warnings().is_empty(), "{:?}", log.warnings());
        calls.look_up.push(call);
    }
    calls
}

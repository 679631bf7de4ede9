//! Look-ups in a partition by offset and by time: `Log::locate` and `Log::offset_for_time`, mapped and by
//! position, compared with a naive reader that reads 61 bytes per batch from its segment's start, or from the
//! position in its index.
//!
//! The library confirms the index entry by the log, compares the headers of neighbours, and verifies the
//! checksum of the batch that the answer depends on. The naive reader verifies nothing, except in the arm
//! `naive/index_crc`; by time it verifies the one batch that it decodes.
//!
//! Four segments of 64 MiB. *Tail* targets are in the last 1,024 batches, *uniform* ones anywhere.
//!
//! Bulk look-ups, `Log::locate_many` and `Log::offsets_for_times`, in calls of 10,000 over 1 GiB of batches
//! of 16 KiB, after the tables are built, compared with single look-ups and the naive reader in a loop.

use std::fmt::Debug;
use std::hint::black_box;

use cordwood::types::{Io, Location, TimestampOffset};
use cordwood::{Log, LogOptions};
use cordwood_benches as support;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::batches::Codec;
use support::naive::{From, Location as Place, Reader};
use support::race::{Race, group};
use support::random::Random;
use support::written::{Batch, Shape, Written};

const TARGETS: usize = 1 << 14;
/// The targets of a bulk call, and the number of calls.
const ROWS: usize = 10_000;
const CALLS: usize = 16;
/// The number of targets of a walk from the segment's start: one takes up to 30 ms.
const FEW: usize = 8;
const TAIL: usize = 1024;

fn lookup(criterion: &mut Criterion) {
    for (size, batch_bytes) in [("1KiB", 1 << 10), ("16KiB", 16 << 10)] {
        let written = Written::new(Shape {
            batch_bytes,
            codec: Codec::None,
            log_bytes: 256 << 20,
            segment_bytes: 64 << 20,
        });
        let logs = [("mmap", Io::Mmap), ("pread", Io::Pread)].map(|(name, io)| {
            (name, Log::open(&written.dir, LogOptions { io, ..LogOptions::default() }).unwrap())
        });
        let reader = Reader::open(&written.dir);
        assert!(reader.segments.len() > 1);
        let tail = written.batches[written.batches.len() - TAIL].base_offset;
        for (shape, start) in [("tail", tail), ("uniform", 0)] {
            by_offset(criterion, &format!("locate/{size}/{shape}"), start, &written, &logs, &reader);
            by_time(criterion, &format!("time/{size}/{shape}"), start, &written, &logs, &reader);
        }
        for (_, log) in &logs {
            assert!(log.warnings().is_empty(), "{:?}", log.warnings());
        }
    }
}

fn by_offset(
    criterion: &mut Criterion,
    name: &str,
    start: i64,
    written: &Written,
    logs: &[(&str, Log)],
    reader: &Reader,
) {
    let targets = Random(4).between(start, written.end_offset(), TARGETS);
    let right = |target: &i64| -> Place {
        let batch = written.batch_of(*target);
        (batch.segment, batch.base_offset, batch.position, u64::from(batch.size))
    };
    let answers: Vec<_> = targets.iter().map(right).collect();
    let race = Race {
        name: name.to_owned(),
        targets: &targets,
        answers: &answers,
        number: |answer| answer.2 as i64,
    };
    for (io, log) in logs {
        race.run(criterion, &format!("cordwood/{io}"), |target| {
            let found = log.locate(target).unwrap().unwrap();
            (found.segment_base_offset, found.batch_base_offset, found.position, u64::from(found.size))
        });
    }
    race.run(criterion, "naive/index", |target| reader.locate(target, From::Index, false));
    race.run(criterion, "naive/index_crc", |target| reader.locate(target, From::Index, true));
    race.run_few(criterion, "naive/walk", FEW, |target| reader.locate(target, From::SegmentStart, false));
}

fn by_time(
    criterion: &mut Criterion,
    name: &str,
    start: i64,
    written: &Written,
    logs: &[(&str, Log)],
    reader: &Reader,
) {
    let (first, last) = (written.times[start as usize], *written.times.iter().max().unwrap());
    let targets = Random(5).between(first, last + 1, TARGETS);
    let answers = written.first_at(&targets);
    let race =
        Race { name: name.to_owned(), targets: &targets, answers: &answers, number: |answer| answer.1 };
    for (io, log) in logs {
        race.run(criterion, &format!("cordwood/{io}"), |target| {
            let found = log.offset_for_time(target).unwrap().unwrap();
            (found.timestamp, found.offset)
        });
    }
    race.run(criterion, "naive/index", |target| reader.offset_for_time(target, From::Index));
    race.run_few(criterion, "naive/walk", FEW, |target| reader.offset_for_time(target, From::SegmentStart));
}

/// Calls of 10,000 rows, as in a vectorised UDF.
fn many(criterion: &mut Criterion) {
    let written = Written::new(Shape {
        batch_bytes: 16 << 10,
        codec: Codec::None,
        log_bytes: 1 << 30,
        segment_bytes: 256 << 20,
    });
    let log = Log::open(&written.dir, LogOptions { io: Io::Mmap, ..LogOptions::default() }).unwrap();
    let reader = Reader::open(&written.dir);
    assert!(reader.segments.len() > 1);
    let offsets = Random(6).between(0, written.end_offset(), CALLS * ROWS);
    let last = *written.times.iter().max().unwrap();
    let times = Random(7).between(written.times[0], last + 1, CALLS * ROWS);
    for order in ["uniform", "sorted"] {
        let (mut offsets, mut times) = (offsets.clone(), times.clone());
        if order == "sorted" {
            offsets.chunks_mut(ROWS).for_each(<[i64]>::sort_unstable);
            times.chunks_mut(ROWS).for_each(<[i64]>::sort_unstable);
        }
        let location = |batch: Batch| (batch.segment, batch.base_offset, batch.position, batch.size);
        let right: Vec<_> = offsets.iter().map(|offset| location(written.batch_of(*offset))).collect();
        let located = |found: Location| {
            (found.segment_base_offset, found.batch_base_offset, found.position, found.size)
        };
        in_calls(criterion, &format!("locate_many/{order}/cordwood/many"), &offsets, &right, |call| {
            log.locate_many(call).unwrap().into_iter().map(|found| located(found.unwrap())).collect()
        });
        in_calls(criterion, &format!("locate_many/{order}/cordwood/single"), &offsets, &right, |call| {
            call.iter().map(|offset| located(log.locate(*offset).unwrap().unwrap())).collect()
        });
        in_calls(criterion, &format!("locate_many/{order}/naive/index"), &offsets, &right, |call| {
            let found = call.iter().map(|offset| reader.locate(*offset, From::Index, false));
            found.map(|at| (at.0, at.1, at.2, at.3 as u32)).collect()
        });
        let right = written.first_at(&times);
        let record = |found: TimestampOffset| (found.timestamp, found.offset);
        in_calls(criterion, &format!("offsets_for_times/{order}/cordwood/many"), &times, &right, |call| {
            log.offsets_for_times(call).unwrap().into_iter().map(|found| record(found.unwrap())).collect()
        });
        in_calls(criterion, &format!("offsets_for_times/{order}/cordwood/single"), &times, &right, |call| {
            call.iter().map(|time| record(log.offset_for_time(*time).unwrap().unwrap())).collect()
        });
        in_calls(criterion, &format!("offsets_for_times/{order}/naive/index"), &times, &right, |call| {
            call.iter().map(|time| reader.offset_for_time(*time, From::Index)).collect()
        });
    }
    assert!(log.warnings().is_empty(), "{:?}", log.warnings());
}

/// Checks all calls, then times one after another.
fn in_calls<Answer: PartialEq + Debug>(
    criterion: &mut Criterion,
    name: &str,
    targets: &[i64],
    right: &[Answer],
    mut answer: impl FnMut(&[i64]) -> Vec<Answer>,
) {
    for (call, right) in targets.chunks(ROWS).zip(right.chunks(ROWS)) {
        assert_eq!(answer(call), right, "{name}");
    }
    let mut group = group(criterion, name);
    group.throughput(Throughput::Elements(ROWS as u64));
    let mut calls = targets.chunks(ROWS).cycle();
    group.bench_function("call", |bencher| bencher.iter(|| answer(black_box(calls.next().unwrap()))));
    group.finish();
}

criterion_group!(benches, lookup, many);
criterion_main!(benches);

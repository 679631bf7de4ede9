//! Where an offset or a time lies in a partition: `Log::locate` and `Log::offset_for_time`, mapped and by position,
//! beside a naive reader that reads 61 bytes a batch from its segment's start, or from the position its index gives.
//!
//! Ours confirm the index entry by the log, compare the headers of neighbours and verify the checksum of the batch that
//! the answer rests on. The naive reader believes what it reads, but for the arm `naive/index_crc`; by time it verifies
//! the one batch that it decodes.
//!
//! Four segments of 64 MiB. *Tail* targets lie in the last 1,024 batches, *uniform* ones anywhere.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a bench fails by panicking, and its sizes are its own"
)]

mod support;

use cordwood::types::Io;
use cordwood::{Log, LogOptions};
use criterion::{Criterion, criterion_group, criterion_main};
use support::batches::Codec;
use support::naive::{From, Location, Reader};
use support::race::Race;
use support::random::Random;
use support::written::{Shape, Written};

const TARGETS: usize = 1 << 14;
/// How many a walk from the segment's start is asked: one takes up to 30 ms.
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
    let right = |target: &i64| -> Location {
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
            (found.segment, found.batch_base_offset, found.position, u64::from(found.size))
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

criterion_group!(benches, lookup);
criterion_main!(benches);

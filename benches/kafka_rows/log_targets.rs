//! Targets of look-ups in a log, drawn from the headers of its batches.

use std::path::Path;

use cordwood::log::{ScanOptions, ScanStep};
use cordwood::types::Io;
use cordwood::{Log, LogOptions};

use super::random::Random;

/// The batches that are the tail.
const TAIL: usize = 1024;

/// Which batches have targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The last 1,024.
    Tail,
    /// All.
    Uniform,
}

impl Shape {
    pub const ALL: [Self; 2] = [Self::Tail, Self::Uniform];

    pub fn name(self) -> &'static str {
        match self {
            Self::Tail => "tail",
            Self::Uniform => "uniform",
        }
    }
}

/// The base offsets and the largest timestamps of a log's batches.
#[derive(Debug)]
pub struct LogTargets {
    base_offsets: Vec<i64>,
    /// Of a batch and all before it.
    timestamps: Vec<i64>,
}

impl LogTargets {
    /// Reads all headers.
    pub fn of(dir: &Path) -> Self {
        let log = opened(dir, Io::Mmap);
        let mut targets = Self { base_offsets: Vec::new(), timestamps: Vec::new() };
        let mut scan = log.scan(ScanOptions { batches_only: true, ..ScanOptions::default() }).unwrap();
        while let Some(ScanStep::Batch(batch)) = scan.next_step().unwrap() {
            targets.base_offsets.push(batch.header.base_offset);
            let max = targets.timestamps.last().copied().unwrap_or(0).max(batch.header.max_timestamp);
            targets.timestamps.push(max);
        }
        targets.base_offsets.push(log.log_end_offset().unwrap());
        targets
    }

    /// The number of batches.
    pub fn batches(&self) -> usize {
        self.timestamps.len()
    }

    fn first(&self, shape: Shape) -> usize {
        if shape == Shape::Tail { self.batches() - TAIL } else { 0 }
    }

    pub fn offsets(&self, shape: Shape, count: usize) -> Vec<i64> {
        Random(4).between(self.base_offsets[self.first(shape)], self.base_offsets[self.batches()], count)
    }

    pub fn times(&self, shape: Shape, count: usize) -> Vec<i64> {
        let [first, last] = [self.first(shape), self.batches() - 1].map(|batch| self.timestamps[batch]);
        Random(5).between(first, last + 1, count)
    }

    /// `parts` parts of `count` targets each: in a part, every batch has at most one.
    pub fn distinct(&self, shape: Shape, is_time: bool, [parts, count]: [usize; 2]) -> Vec<i64> {
        let mut random = Random(6);
        let mut batches: Vec<usize> = (self.first(shape)..self.batches()).collect();
        let mut targets = Vec::with_capacity(parts * count);
        for _ in 0..parts {
            // the start of a shuffle
            for place in 0..count {
                let other = place + random.below((batches.len() - place) as i64) as usize;
                batches.swap(place, other);
                let batch = batches[place];
                let [base, next] = [batch, batch + 1].map(|batch| self.base_offsets[batch]);
                targets.push(if is_time { self.timestamps[batch] } else { base + random.below(next - base) });
            }
        }
        targets
    }
}

/// A log of the bench.
pub fn opened(dir: &Path, io: Io) -> Log {
    Log::open(dir, LogOptions { io, ..LogOptions::default() }).unwrap()
}

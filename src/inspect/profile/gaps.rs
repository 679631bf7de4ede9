//! Ranges of offsets between two batches.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The number of gaps that are kept.
const KEPT: usize = 256;

/// The gaps of a log: all are counted, and the largest are kept.
#[derive(Debug, Clone, Default)]
pub struct Gaps {
    /// Gaps.
    pub count: u64,
    /// The offsets in all of them.
    pub offsets: u64,
    /// The largest 256, the smallest of them on top.
    largest: BinaryHeap<Reverse<(i64, BatchGap)>>,
}

/// Offsets that are in no batch. Compaction leaves such gaps, and so does damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BatchGap {
    /// The first missing offset.
    pub start_offset: i64,
    /// Exclusive.
    pub end_offset: i64,
}

impl Gaps {
    pub(super) fn add(&mut self, start_offset: i64, end_offset: i64) {
        let missing = end_offset.saturating_sub(start_offset);
        if missing <= 0 {
            return;
        }
        self.count += 1;
        self.offsets += missing.unsigned_abs();
        self.largest.push(Reverse((missing, BatchGap { start_offset, end_offset })));
        if self.largest.len() > KEPT {
            self.largest.pop();
        }
    }

    /// The largest gaps, at most 256, in the order of their offsets.
    pub fn largest(&self) -> Vec<BatchGap> {
        let mut gaps: Vec<_> = self.largest.iter().map(|Reverse((_, gap))| *gap).collect();
        gaps.sort_unstable();
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_gaps_are_counted_and_the_largest_are_kept_in_order() {
        let mut gaps = Gaps::default();
        gaps.add(5, 5);
        for n in 0..1000 {
            gaps.add(n * 10_000, n * 10_000 + n + 1);
        }
        assert_eq!((gaps.count, gaps.offsets), (1000, 500_500));
        let largest = gaps.largest();
        assert_eq!(largest.len(), KEPT);
        assert_eq!(largest.first(), Some(&BatchGap { start_offset: 7_440_000, end_offset: 7_440_745 }));
        assert!(largest.is_sorted());
    }
}

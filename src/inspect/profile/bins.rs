//! Counts in bins whose number is bounded.

use std::collections::BTreeMap;
use std::ops::AddAssign;

/// The widths of time bins in ms: each is a multiple of the one before, so that bins can be merged.
const WIDTHS: [i64; 19] = [
    1,
    10,
    100,
    1_000,
    5_000,
    10_000,
    30_000,
    60_000,
    300_000,
    600_000,
    1_800_000,
    3_600_000,
    10_800_000,
    21_600_000,
    43_200_000,
    86_400_000,
    7 * 86_400_000,
    28 * 86_400_000,
    364 * 86_400_000,
];

/// The maximum number of time bins that are not empty. With the largest width, all times until the year 3000
/// need fewer.
const MAX_TIME_BINS: usize = 2048;

/// The maximum number of offset bins.
const MAX_OFFSET_BINS: i64 = 512;

/// Records by their timestamps. Bins without a record do not exist, so a few records with a wrong time do not
/// make the bins of the others wider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeBins {
    width_index: usize,
    /// By the timestamp divided by the width.
    bins: BTreeMap<i64, TimeSums>,
    /// The bin of the last record, which is usually that of the next one too: its key, and its sums that are
    /// not in `bins` yet.
    current: Option<(i64, TimeSums)>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct TimeSums {
    records: u64,
    bytes: u64,
}

impl AddAssign for TimeSums {
    fn add_assign(&mut self, other: Self) {
        self.records += other.records;
        self.bytes += other.bytes;
    }
}

/// The records within one width of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeBin {
    /// The first time, inclusive, ms since the epoch.
    pub start: i64,
    /// Records.
    pub records: u64,
    /// The bytes of their keys and values.
    pub bytes: u64,
}

impl TimeBins {
    /// The width of every bin, ms.
    pub fn width(&self) -> i64 {
        WIDTHS.get(self.width_index).copied().unwrap_or(1)
    }

    /// The bins with records, in the order of time.
    pub fn bins(&self) -> Vec<TimeBin> {
        let mut all = self.clone();
        all.store_current();
        let width = all.width();
        let bin = |(key, TimeSums { records, bytes })| TimeBin { start: key * width, records, bytes };
        all.bins.into_iter().map(bin).collect()
    }

    pub(super) fn add(&mut self, timestamp: i64, bytes: u64) {
        let key = timestamp.div_euclid(self.width());
        let record = TimeSums { records: 1, bytes };
        if let Some((current, sums)) = &mut self.current
            && *current == key
        {
            *sums += record;
            return;
        }
        self.store_current();
        self.current = Some((timestamp.div_euclid(self.width()), record));
    }

    fn store_current(&mut self) {
        let Some((key, sums)) = self.current.take() else { return };
        *self.bins.entry(key).or_default() += sums;
        while self.bins.len() > MAX_TIME_BINS && self.width_index + 1 < WIDTHS.len() {
            let narrow = self.width();
            self.width_index += 1;
            let ratio = self.width() / narrow;
            for (key, sums) in std::mem::take(&mut self.bins) {
                *self.bins.entry(key.div_euclid(ratio)).or_default() += sums;
            }
        }
    }
}

/// Records by their offsets, in bins of equal width between the log start offset and the log end offset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OffsetBins {
    /// The first offset of the first bin.
    pub start_offset: i64,
    /// Offsets for each bin; at least 1.
    pub width: i64,
    /// The bins, in order; also empty ones.
    pub bins: Vec<OffsetBin>,
}

/// The records in a range of offsets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OffsetBin {
    /// Records.
    pub records: u64,
    /// The bytes of the batches that begin here.
    pub bytes: u64,
    /// The smallest and the largest timestamp; `None` if no record has one.
    pub time_range: Option<(i64, i64)>,
    /// The largest difference between a record's timestamp and the largest before it in the log, ms.
    pub max_lateness: i64,
}

impl OffsetBins {
    pub(super) fn new(start_offset: i64, end_offset: i64) -> Self {
        let offsets = end_offset.saturating_sub(start_offset).max(0);
        let width = (offsets / MAX_OFFSET_BINS + i64::from(offsets % MAX_OFFSET_BINS != 0)).max(1);
        let count = usize::try_from(offsets / width + i64::from(offsets % width != 0)).unwrap_or(0);
        Self { start_offset, width, bins: vec![OffsetBin::default(); count] }
    }

    fn bin(&mut self, offset: i64) -> Option<&mut OffsetBin> {
        // the first batch may begin below the log start offset
        let index = offset.saturating_sub(self.start_offset).max(0) / self.width;
        self.bins.get_mut(usize::try_from(index).ok()?)
    }

    pub(super) fn add_bytes(&mut self, offset: i64, bytes: u64) {
        if let Some(bin) = self.bin(offset) {
            bin.bytes += bytes;
        }
    }

    pub(super) fn add_record(&mut self, offset: i64, timestamp: i64, lateness: i64) {
        let Some(bin) = self.bin(offset) else { return };
        bin.records += 1;
        if timestamp >= 0 {
            bin.time_range = union(bin.time_range, Some((timestamp, timestamp)));
            bin.max_lateness = bin.max_lateness.max(lateness);
        }
    }
}

/// The smallest range that contains both.
pub(super) fn union(a: Option<(i64, i64)>, b: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    }
}

/// How many sizes are within each power of two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SizeCounts(Vec<u64>);

impl SizeCounts {
    pub(super) fn add(&mut self, size: u64) {
        let index = (u64::BITS - size.leading_zeros()) as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        if let Some(count) = self.0.get_mut(index) {
            *count += 1;
        }
    }

    /// The counts: the first of size 0, then of sizes from 2^(n-1) to 2^n - 1 for n from 1 on.
    pub fn counts(&self) -> &[u64] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_of_time_bins_are_multiples_of_each_other() {
        for pair in WIDTHS.windows(2) {
            let [narrow, wide] = pair else { continue };
            assert_eq!(wide % narrow, 0, "{wide} and {narrow}");
        }
    }

    #[test]
    fn time_bins_keep_every_record_and_few_bins_for_any_times() {
        let mut bins = TimeBins::default();
        let mut time = 1_u64;
        for _ in 0..100_000 {
            time = time.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            bins.add(i64::try_from(time >> 24).unwrap_or(0), 3);
        }
        let all = bins.bins();
        assert!(all.len() <= MAX_TIME_BINS);
        assert_eq!(all.iter().map(|bin| bin.records).sum::<u64>(), 100_000);
        assert_eq!(all.iter().map(|bin| bin.bytes).sum::<u64>(), 300_000);
        assert!(
            all.windows(2).all(|pair| pair.first().map(|bin| bin.start) < pair.last().map(|bin| bin.start))
        );
    }

    #[test]
    fn one_record_with_a_wrong_time_leaves_the_bins_of_the_others_narrow() {
        let mut bins = TimeBins::default();
        for second in 0..100 {
            bins.add(1_700_000_000_000 + second * 1000, 1);
        }
        bins.add(9_999_999_999_999, 1);
        assert_eq!((bins.width(), bins.bins().len()), (1, 101));
    }

    #[test]
    fn sizes_are_counted_by_powers_of_two() {
        let mut sizes = SizeCounts::default();
        for size in [0, 1, 2, 3, 4, 7, 8] {
            sizes.add(size);
        }
        assert_eq!(sizes.counts(), [1, 1, 2, 2, 1]);
    }

    #[test]
    fn offset_bins_cover_every_offset_of_the_log_and_no_more() {
        for (start, end, width, count) in [(0, 0, 1, 0), (5, 6, 1, 1), (0, 512, 1, 512), (0, 513, 2, 257)] {
            let bins = OffsetBins::new(start, end);
            assert_eq!((bins.width, bins.bins.len()), (width, count), "{start} to {end}");
        }
        assert!(OffsetBins::new(0, i64::MAX).bins.len() <= 513);
    }
}

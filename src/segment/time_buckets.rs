//! Increasing times and their offsets, in a layout in which a look-up misses the cache at most once.
//!
//! The span of time is divided into buckets of equal width. A bucket is one cache line, which contains its
//! records and the first record after it. So the result for a time is in the line of its bucket, and a
//! multiplication computes which line that is.
//!
//! ```text
//! ├──x─x───x─x──x────┼──x────────────x──┼──────────────────┼──────x───────  time →
//!  line 0: xxxxx and  line 1: xx and     line 2: the next
//!  the next one       the next one       one
//! ```
//!
//! Times of a log increase evenly enough that most buckets hold a few records. The records of a bucket that
//! do not fit into its line are stored separately and bisected.

use crate::types::distance;

/// A record: its time, ms, and its offset relative to the segment's base offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) time: i64,
    pub(super) offset: u32,
}

/// Records whose times increase strictly, for look-ups of the first one at or above a time.
#[derive(Debug)]
pub(super) enum TimeBuckets {
    /// Twice as many records per line, so half as much memory.
    Dense(Lines<u8, 24>),
    /// For records that are farther apart.
    Wide(Lines<u16, 12>),
}

impl TimeBuckets {
    /// The dense form is used if at most one record in this many is spilled.
    const MIN_ROWS_PER_SPILLED: usize = 8;

    /// `None` if there are more than a `u32` counts.
    pub(super) fn new(rows: &[Row]) -> Option<Self> {
        let dense = Lines::new(rows)?;
        if dense.spilled.len() <= rows.len() / Self::MIN_ROWS_PER_SPILLED {
            return Some(Self::Dense(dense));
        }
        Some(Self::Wide(Lines::new(rows)?))
    }

    /// How much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Dense(lines) => lines.bytes(),
            Self::Wide(lines) => lines.bytes(),
        }
    }

    /// The index of the line that contains the result for a time; an index past the last line if no record is
    /// at or above it.
    #[inline]
    pub(super) fn place(&self, target: i64) -> usize {
        match self {
            Self::Dense(lines) => lines.place(target),
            Self::Wide(lines) => lines.place(target),
        }
    }

    /// Reads the line into the cache. The result has no meaning; it keeps the load from being optimized away.
    #[inline]
    pub(super) fn prefetch(&self, place: usize) -> u32 {
        match self {
            Self::Dense(lines) => lines.buckets.get(place).map_or(0, |line| line.offset),
            Self::Wide(lines) => lines.buckets.get(place).map_or(0, |line| line.offset),
        }
    }

    /// The first record at or above a time, whose line [`TimeBuckets::place`] returned.
    #[inline]
    pub(super) fn find(&self, target: i64, place: usize) -> Option<Row> {
        match self {
            Self::Dense(lines) => lines.find(target, place),
            Self::Wide(lines) => lines.find(target, place),
        }
    }
}

/// Lines of up to `ROWS` records each, stored as distances of type `T` from the first record of the line.
#[derive(Debug)]
pub(super) struct Lines<T, const ROWS: usize> {
    /// The start time of the first bucket.
    first: i64,
    /// From `first` to the last record, ms.
    span: u64,
    /// Buckets per millisecond, times 2⁶⁴.
    density: u64,
    buckets: Vec<Line<T, ROWS>>,
    /// The records of the buckets that do not fit into a line.
    spilled: Vec<Row>,
}

/// The records of a bucket, and the first one after it: 64 bytes.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line<T, const ROWS: usize> {
    /// The time of the first record.
    time: i64,
    /// The offset of the first record; if the records were spilled, the index of the first of them in
    /// `Lines::spilled`.
    offset: u32,
    /// How many records were spilled; 0 if none.
    spilled: u32,
    /// Distances from `time` and `offset`; the last one is repeated to the end.
    times: [T; ROWS],
    offsets: [T; ROWS],
}

/// The type of the distances in a line.
pub(super) trait Distance: Copy + Ord + Default + TryFrom<i64> + Into<u32> {
    const MAX: Self;
}

impl Distance for u8 {
    const MAX: Self = Self::MAX;
}

impl Distance for u16 {
    const MAX: Self = Self::MAX;
}

impl<T: Distance, const ROWS: usize> Line<T, ROWS> {
    /// `None` if there are too many records, or they are too far apart.
    fn of(rows: &[Row]) -> Option<Self> {
        let (first, last) = (rows.first()?, rows.last()?);
        let time = |row: &Row| T::try_from(row.time.checked_sub(first.time)?).ok();
        let offset = |row: &Row| T::try_from(i64::from(row.offset) - i64::from(first.offset)).ok();
        let mut line = Self {
            time: first.time,
            offset: first.offset,
            spilled: 0,
            times: [time(last)?; ROWS],
            offsets: [offset(last)?; ROWS],
        };
        for (place, row) in rows.iter().enumerate() {
            *line.times.get_mut(place)? = time(row)?;
            *line.offsets.get_mut(place)? = offset(row)?;
        }
        Some(line)
    }

    /// Compares all times: random targets would mispredict an early exit.
    #[inline]
    fn find(&self, target: i64) -> Option<Row> {
        let above = T::try_from(target.max(self.time) - self.time).unwrap_or(T::MAX);
        let place = usize::from(self.times.iter().map(|time| u8::from(*time < above)).sum::<u8>());
        let (time, offset): (u32, u32) =
            ((*self.times.get(place)?).into(), (*self.offsets.get(place)?).into());
        Some(Row { time: self.time + i64::from(time), offset: self.offset + offset })
    }
}

impl<T: Distance, const ROWS: usize> Lines<T, ROWS> {
    /// Records per bucket if they are evenly spaced: low enough that few buckets have more than a line holds.
    const ROWS_IN_BUCKET: usize = ROWS * 5 / 8;

    /// `None` if there are more than a `u32` counts.
    fn new(rows: &[Row]) -> Option<Self> {
        let first = rows.first().map_or(0, |row| row.time);
        let span = rows.last().map_or(0, |row| distance(first, row.time));
        let wanted = u64::try_from(rows.len() / Self::ROWS_IN_BUCKET).ok()?.min(span) + 1;
        let density = u64::try_from((u128::from(wanted) << 64) / (u128::from(span) + 1)).unwrap_or(u64::MAX);
        let mut lines = Self { first, span, density, buckets: Vec::new(), spilled: Vec::new() };
        let mut rest = rows;
        while !rest.is_empty() {
            let bucket = lines.buckets.len();
            let count = rest.partition_point(|row| lines.place(row.time) <= bucket);
            // and the first one after them
            let held = rest.get(..count + 1).unwrap_or(rest);
            let line = match Line::of(held) {
                Some(line) => line,
                None => lines.spill(held)?,
            };
            lines.buckets.push(line);
            rest = rest.get(count..).unwrap_or_default();
        }
        lines.buckets.shrink_to_fit();
        lines.spilled.shrink_to_fit();
        Some(lines)
    }

    fn spill(&mut self, rows: &[Row]) -> Option<Line<T, ROWS>> {
        let (offset, spilled) = (u32::try_from(self.spilled.len()).ok()?, u32::try_from(rows.len()).ok()?);
        self.spilled.extend_from_slice(rows);
        let nothing = [T::default(); ROWS];
        Some(Line { time: 0, offset, spilled, times: nothing, offsets: nothing })
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.buckets[..]) + size_of_val(&self.spilled[..])
    }

    #[inline]
    fn place(&self, target: i64) -> usize {
        let above = distance(self.first, target.max(self.first));
        if above > self.span {
            return usize::MAX;
        }
        let bucket = (u128::from(above) * u128::from(self.density)) >> 64;
        usize::try_from(bucket).unwrap_or(usize::MAX)
    }

    #[inline]
    fn find(&self, target: i64, place: usize) -> Option<Row> {
        let line = self.buckets.get(place)?;
        if line.spilled == 0 { line.find(target) } else { self.find_spilled(target, line) }
    }

    #[cold]
    fn find_spilled(&self, target: i64, line: &Line<T, ROWS>) -> Option<Row> {
        let start = usize::try_from(line.offset).ok()?;
        let rows = self.spilled.get(start..start.checked_add(usize::try_from(line.spilled).ok()?)?)?;
        rows.get(rows.partition_point(|row| row.time < target)).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Line, Lines, Row, TimeBuckets};

    type Wide = Lines<u16, 12>;

    /// The maximum memory of a record: its part of a line, and up to two spilled copies.
    const BYTES_PER_ROW: usize = 64 / Wide::ROWS_IN_BUCKET + 1 + 2 * size_of::<Row>();

    fn assert_finds_first_at_or_above(rows: &[Row]) {
        let lines = TimeBuckets::new(rows).unwrap();
        assert!(lines.bytes() <= rows.len() * BYTES_PER_ROW + 64, "{} bytes", lines.bytes());
        let near =
            rows.iter().flat_map(|row| [row.time.saturating_sub(1), row.time, row.time.saturating_add(1)]);
        let middles = rows.windows(2).map(|rows| rows[0].time.midpoint(rows[1].time));
        for target in near.chain(middles).chain([i64::MIN, -1, 0, i64::MAX]) {
            let expected = rows.iter().find(|row| row.time >= target).copied();
            assert_eq!(lines.find(target, lines.place(target)), expected, "{target} in {rows:?}");
        }
    }

    /// Rows from the differences between them.
    fn rows(steps: impl IntoIterator<Item = (i64, u32)>) -> Vec<Row> {
        let mut last = Row { time: 0, offset: 0 };
        let rows = steps.into_iter().map(|(time, offset)| {
            last = Row { time: last.time.saturating_add(time), offset: last.offset.saturating_add(offset) };
            last
        });
        rows.collect()
    }

    #[test]
    fn no_record_one_record_and_extreme_times() {
        assert_finds_first_at_or_above(&[]);
        assert_finds_first_at_or_above(&[Row { time: 0, offset: u32::MAX }]);
        assert_finds_first_at_or_above(&[Row { time: i64::MAX, offset: 0 }]);
        assert_finds_first_at_or_above(&[
            Row { time: 0, offset: 0 },
            Row { time: i64::MAX, offset: u32::MAX },
        ]);
    }

    #[test]
    fn evenly_spaced_times_spill_nothing() {
        for step in [1, 3, 1000] {
            let rows = rows((0..10_000).map(|_| (step, 4)));
            assert_finds_first_at_or_above(&rows);
            match TimeBuckets::new(&rows).unwrap() {
                TimeBuckets::Dense(lines) => assert!(step < 1000 && lines.spilled.is_empty()),
                TimeBuckets::Wide(lines) => assert!(step == 1000 && lines.spilled.is_empty()),
            }
        }
    }

    #[test]
    fn a_few_jumps_are_spilled_and_the_lines_stay_dense() {
        let rows = rows((0..5_000).map(|i| if i % 1_000 == 999 { (400, 4) } else { (2, 4) }));
        assert_finds_first_at_or_above(&rows);
        match TimeBuckets::new(&rows).unwrap() {
            TimeBuckets::Dense(lines) => assert!(!lines.spilled.is_empty()),
            TimeBuckets::Wide(_) => panic!("few records are far apart"),
        }
    }

    #[test]
    fn a_line_of_either_kind_fills_a_cache_line() {
        assert_eq!((size_of::<Line<u8, 24>>(), size_of::<Line<u16, 12>>()), (64, 64));
    }

    #[test]
    fn records_crowded_into_one_bucket_are_found() {
        let close_together = (0..300).map(|_| (1, 1));
        assert_finds_first_at_or_above(&rows(close_together.clone().chain([(1 << 40, 1)])));
        assert_finds_first_at_or_above(&rows([(5, 1), (1 << 40, 1)].into_iter().chain(close_together)));
    }

    proptest! {
        #[test]
        fn a_look_up_finds_the_same_record_as_a_linear_search(
            steps in proptest::collection::vec(
                (
                    prop_oneof![8 => 1i64..4, 4 => 1i64..200, 2 => 60_000i64..70_000, 1 => 1i64..1 << 50],
                    prop_oneof![8 => 1u32..4, 1 => 60_000u32..70_000, 1 => 1u32..1 << 24],
                ),
                0..150,
            ),
        ) {
            assert_finds_first_at_or_above(&rows(steps));
        }
    }
}

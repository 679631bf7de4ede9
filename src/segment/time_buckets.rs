//! Times that rise, and the offsets that go with them, laid out so that a look-up waits for memory once.
//!
//! The span of time is cut into buckets of equal width. A bucket is a cache line, which holds its records and the first one
//! behind it: so the answer for a time lies in the line of its bucket, and which line that is takes a multiplication.
//!
//! ```text
//! ├──x─x───x─x──x────┼──x────────────x──┼──────────────────┼──────x───────  time →
//!  line 0: xxxxx and  line 1: xx and     line 2: the next
//!  the next one       the next one       one
//! ```
//!
//! Times of a log rise evenly enough for most buckets to hold a few records. What a line has no room for is searched.

/// A record: its time, ms, and its offset relative to the segment's base offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) time: i64,
    pub(super) offset: u32,
}

/// Records whose times rise strictly, for who looks up the first one at or above a time.
#[derive(Debug)]
pub(super) enum TimeBuckets {
    /// Twice as many to a line, which is half as much memory to miss.
    Dense(Lines<u8, 24>),
    /// For records that lie farther apart.
    Wide(Lines<u16, 12>),
}

impl TimeBuckets {
    /// One in so many may be spilled before a line is to hold fewer.
    const FEW: usize = 8;

    /// `None` where they are more than a `u32` counts.
    pub(super) fn new(rows: &[Row]) -> Option<Self> {
        let dense = Lines::new(rows)?;
        if dense.spilled.len() <= rows.len() / Self::FEW {
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

    /// The line in which the answer for a time lies; none has that place where there is no answer.
    #[inline]
    pub(super) fn place(&self, target: i64) -> usize {
        match self {
            Self::Dense(lines) => lines.place(target),
            Self::Wide(lines) => lines.place(target),
        }
    }

    /// Loads what [`TimeBuckets::find`] will want; the answer is of no use.
    #[inline]
    pub(super) fn touch(&self, place: usize) -> u32 {
        match self {
            Self::Dense(lines) => lines.buckets.get(place).map_or(0, |line| line.offset),
            Self::Wide(lines) => lines.buckets.get(place).map_or(0, |line| line.offset),
        }
    }

    /// The first record at or above a time, from the line in which it lies.
    #[inline]
    pub(super) fn find(&self, target: i64, place: usize) -> Option<Row> {
        match self {
            Self::Dense(lines) => lines.find(target, place),
            Self::Wide(lines) => lines.find(target, place),
        }
    }
}

/// Lines of `ROWS` records each, of which each lies a `T` above the first one.
#[derive(Debug)]
pub(super) struct Lines<T, const ROWS: usize> {
    /// The time at which the first bucket begins.
    first: i64,
    /// From there to the last record, ms.
    span: u64,
    /// Buckets to the millisecond, times 2⁶⁴.
    density: u64,
    buckets: Vec<Line<T, ROWS>>,
    /// The records of the buckets for which a line has no room.
    spilled: Vec<Row>,
}

/// The records of a bucket, and the first one behind it: 64 bytes.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line<T, const ROWS: usize> {
    /// Of the first of them.
    time: i64,
    /// The same; or where they begin among the spilled ones.
    offset: u32,
    /// How many of them were spilled.
    spilled: u32,
    /// How far they lie above `time` and `offset`; the last one is repeated to the end.
    times: [T; ROWS],
    offsets: [T; ROWS],
}

/// How far records of a line lie apart.
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
    /// `None` where they are too many, or too far apart.
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

    /// All are compared, needed or not: no branch that random times would mislead.
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
    /// How many records a bucket has if they lie evenly: so many that few buckets have more than a line holds.
    const ROWS_IN_BUCKET: usize = ROWS * 5 / 8;

    /// `None` where they are more than a `u32` counts.
    fn new(rows: &[Row]) -> Option<Self> {
        let first = rows.first().map_or(0, |row| row.time);
        let span = rows.last().map_or(0, |row| distance(first, row.time));
        let wanted = u64::try_from(rows.len() / Self::ROWS_IN_BUCKET).ok()?.min(span) + 1;
        let density = u64::try_from((u128::from(wanted) << 64) / (u128::from(span) + 1)).unwrap_or(u64::MAX);
        let mut made = Self { first, span, density, buckets: Vec::new(), spilled: Vec::new() };
        let mut rest = rows;
        while !rest.is_empty() {
            let bucket = made.buckets.len();
            let count = rest.partition_point(|row| made.place(row.time) <= bucket);
            // and the first one behind
            let held = rest.get(..count + 1).unwrap_or(rest);
            let line = match Line::of(held) {
                Some(line) => line,
                None => made.spill(held)?,
            };
            made.buckets.push(line);
            rest = rest.get(count..).unwrap_or_default();
        }
        made.buckets.shrink_to_fit();
        made.spilled.shrink_to_fit();
        Some(made)
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

/// How far `to` lies above `from`.
#[inline]
fn distance(from: i64, to: i64) -> u64 {
    to.wrapping_sub(from).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Line, Lines, Row, TimeBuckets};

    type Wide = Lines<u16, 12>;

    /// What a record costs at most: its part of a line, and itself, if need be twice.
    const BYTES_PER_ROW: usize = 64 / Wide::ROWS_IN_BUCKET + 1 + 2 * size_of::<Row>();

    fn same(rows: &[Row]) {
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

    /// Rows by the steps between them.
    fn rows(steps: impl IntoIterator<Item = (i64, u32)>) -> Vec<Row> {
        let mut last = Row { time: 0, offset: 0 };
        let rows = steps.into_iter().map(|(time, offset)| {
            last = Row { time: last.time.saturating_add(time), offset: last.offset.saturating_add(offset) };
            last
        });
        rows.collect()
    }

    #[test]
    fn none_one_and_the_ends_of_the_numbers() {
        same(&[]);
        same(&[Row { time: 0, offset: u32::MAX }]);
        same(&[Row { time: i64::MAX, offset: 0 }]);
        same(&[Row { time: 0, offset: 0 }, Row { time: i64::MAX, offset: u32::MAX }]);
    }

    #[test]
    fn even_times_leave_nothing_spilled() {
        for step in [1, 3, 1000] {
            let rows = rows((0..10_000).map(|_| (step, 4)));
            same(&rows);
            match TimeBuckets::new(&rows).unwrap() {
                TimeBuckets::Dense(lines) => assert!(step < 1000 && lines.spilled.is_empty()),
                TimeBuckets::Wide(lines) => assert!(step == 1000 && lines.spilled.is_empty()),
            }
        }
    }

    #[test]
    fn a_few_leaps_are_spilled_and_leave_the_rest_dense() {
        let rows = rows((0..5_000).map(|i| if i % 1_000 == 999 { (400, 4) } else { (2, 4) }));
        same(&rows);
        match TimeBuckets::new(&rows).unwrap() {
            TimeBuckets::Dense(lines) => assert!(!lines.spilled.is_empty()),
            TimeBuckets::Wide(_) => panic!("few are far apart"),
        }
    }

    #[test]
    fn a_line_of_either_kind_fills_a_cache_line() {
        assert_eq!((size_of::<Line<u8, 24>>(), size_of::<Line<u16, 12>>()), (64, 64));
    }

    #[test]
    fn all_of_them_in_one_bucket_are_found() {
        let crowd = (0..300).map(|_| (1, 1));
        same(&rows(crowd.clone().chain([(1 << 40, 1)])));
        same(&rows([(5, 1), (1 << 40, 1)].into_iter().chain(crowd)));
    }

    proptest! {
        #[test]
        fn the_answers_are_those_of_a_walk(
            steps in proptest::collection::vec(
                (
                    prop_oneof![8 => 1i64..4, 4 => 1i64..200, 2 => 60_000i64..70_000, 1 => 1i64..1 << 50],
                    prop_oneof![8 => 1u32..4, 1 => 60_000u32..70_000, 1 => 1u32..1 << 24],
                ),
                0..150,
            ),
        ) {
            same(&rows(steps));
        }
    }
}

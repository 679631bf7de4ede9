//! Types that every module uses.

#[cfg(feature = "arrow")]
use std::fmt::Display;

use crate::error::{Error, Result};

#[cfg(feature = "binding")]
pub(crate) mod paths;

/// The largest number of threads of one call: more are reduced to it.
pub(crate) const MAX_THREADS: usize = 256;

/// The meaning of a record's timestamp. Kafka: `TimestampType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimestampType {
    /// The format (magic 0) has no timestamps.
    NoTimestampType,
    /// The producer's clock.
    CreateTime,
    /// The broker's clock at the append.
    LogAppendTime,
}

impl TimestampType {
    /// Kafka's id: −1, 0 or 1.
    pub fn id(self) -> i8 {
        match self {
            Self::NoTimestampType => -1,
            Self::CreateTime => 0,
            Self::LogAppendTime => 1,
        }
    }

    /// Kafka's name, as in the enum's `toString` and in the dump tool.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoTimestampType => "NoTimestampType",
            Self::CreateTime => "CreateTime",
            Self::LogAppendTime => "LogAppendTime",
        }
    }
}

/// A timestamp (ms since the epoch, −1 = none) and the offset it belongs to.
/// Kafka: `FileRecords.TimestampAndOffset`, `TimestampOffset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct TimestampOffset {
    /// Milliseconds since the epoch; −1 = none.
    pub timestamp: i64,
    /// Logical offset, absolute.
    pub offset: i64,
}

/// An offset and a position in its segment's `.log`. Kafka: `OffsetPosition`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct OffsetPosition {
    /// Logical offset, absolute.
    pub offset: i64,
    /// Bytes from the start of the `.log`.
    pub position: i32,
}

/// The location of the batch that contains an offset. Kafka: `FileRecords.LogOffsetPosition`, from
/// `LogSegment.translateOffset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "binding", derive(serde::Deserialize, serde::Serialize))]
pub struct Location {
    /// The segment's base offset.
    pub segment_base_offset: i64,
    /// The batch's base offset.
    pub batch_base_offset: i64,
    /// Bytes from the start of the segment's `.log`.
    pub position: u64,
    /// Size of the whole batch in bytes.
    pub size: u32,
}

/// Which records of transactions a reader sees. Kafka: `IsolationLevel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IsolationLevel {
    /// Everything up to the log end offset.
    #[default]
    ReadUncommitted,
    /// Records outside transactions and of committed transactions, up to the last stable offset.
    ReadCommitted,
}

/// Which files are mapped into memory; SECURITY.md describes the risks of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Io {
    /// Nothing, as with `Pread`: a process cannot know that no other one shortens a file.
    #[default]
    Auto,
    /// Everything: the caller asserts that nothing writes to the directory.
    Mmap,
    /// Nothing: files are read by position.
    Pread,
}

/// A function that receives each warning of a [`Log`](crate::log::Log) once, when a call finds it. All of
/// them are also in [`Log::warnings`](crate::log::Log::warnings), which also says if records are hidden below
/// the log start offset.
///
/// The function runs in the thread that found the warning, during the call, and must not use the log.
/// [`OnWarning::IGNORE`] does nothing.
///
/// It is a plain function, as [`Interrupt`] is.
#[derive(Debug, Clone, Copy)]
pub struct OnWarning(pub fn(&str));

impl OnWarning {
    /// Does nothing.
    pub const IGNORE: Self = Self(|_| ());
}

impl Default for OnWarning {
    fn default() -> Self {
        Self::IGNORE
    }
}

/// A function that long operations call from time to time; an `Err` stops the operation. [`Interrupt::NEVER`]
/// never does.
///
/// It is a plain function, so that a handle is `Send + Sync` and two handles share no state through it.
#[derive(Debug, Clone, Copy)]
pub struct Interrupt(pub fn() -> std::result::Result<(), Box<dyn std::error::Error + Send + Sync>>);

impl Interrupt {
    /// Never interrupts.
    pub const NEVER: Self = Self(|| Ok(()));

    /// Calls the function.
    ///
    /// # Errors
    /// [`Error::Interrupted`] with the function's own error.
    pub fn check(self) -> Result<()> {
        (self.0)().map_err(Error::Interrupted)
    }
}

impl Default for Interrupt {
    fn default() -> Self {
        Self::NEVER
    }
}

/// A unit of time in which a number is a time of these decades, although it is not one in milliseconds.
#[cfg(feature = "arrow")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub struct OtherUnit {
    /// The plural of the unit's name.
    pub name: &'static str,
    /// The time that the number is in this unit, ms since the epoch, rounded down.
    pub milliseconds: i64,
}

#[cfg(feature = "arrow")]
impl OtherUnit {
    /// The unit that a number of milliseconds since the epoch was probably meant in; `None` if it may be
    /// milliseconds, or no time in any unit: 0 and small numbers, negative ones, and the largest, as in
    /// "to the end".
    pub fn of(number: i64) -> Option<Self> {
        // 1980 to 2100, ms. In two units no number is within it.
        const PLAUSIBLE: std::ops::Range<i64> = 315_532_800_000..4_102_444_800_000;
        let units = [
            ("seconds", number.saturating_mul(1000)),
            ("microseconds", number.div_euclid(1000)),
            ("nanoseconds", number.div_euclid(1_000_000)),
        ];
        let found = units.into_iter().find(|(_, milliseconds)| PLAUSIBLE.contains(milliseconds));
        found.map(|(name, milliseconds)| Self { name, milliseconds })
    }

    /// A number of milliseconds since the epoch. A number that is only plausible in another unit is an error
    /// that names the unit.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn check(argument: impl Display, number: i64) -> Result<i64> {
        let Some(Self { name, milliseconds }) = Self::of(number) else { return Ok(number) };
        let expected =
            "milliseconds since the epoch, or a time with a unit, such as a datetime or \"1700000012s\"";
        let found = format!("{number}, which is {milliseconds} ms if it is in {name}");
        Err(Error::config(argument.to_string(), expected, found))
    }
}

/// Offsets as every message writes them: `offset 5`, `offsets 5 to 9` with the last one, `offset 5 and after`
/// if the end, exclusive, is not known, `no offset` if there is none.
#[doc(hidden)]
pub fn offsets_in_words(start: i64, end: Option<i64>) -> String {
    match end.map(|end| end.saturating_sub(1)) {
        None => format!("offset {start} and after"),
        Some(last) if last < start => "no offset".to_owned(),
        Some(last) if last == start => format!("offset {start}"),
        Some(last) => format!("offsets {start} to {last}"),
    }
}

/// The verb after [`offsets_in_words`].
pub(crate) fn is_or_are(start: i64, end: i64) -> &'static str {
    if end.saturating_sub(start) > 1 { "are" } else { "is" }
}

/// The distance from `from` up to `to`, which is not below it.
#[inline]
pub(crate) fn distance(from: i64, to: i64) -> u64 {
    to.wrapping_sub(from).cast_unsigned()
}

/// The configuration of a property test with a fixed seed: the cases are the same in every run.
#[cfg(test)]
pub(crate) fn fixed_seed(cases: u32) -> proptest::test_runner::Config {
    proptest::test_runner::Config {
        cases,
        rng_seed: proptest::test_runner::RngSeed::Fixed(0x00c0_4d00_d000),
        failure_persistence: None,
        ..proptest::test_runner::Config::default()
    }
}

#[cfg(all(test, feature = "arrow"))]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_only_plausible_in_another_unit_names_it() {
        let now = 1_795_000_000_123_456_789;
        for (number, expected) in [
            (now / 1_000_000_000, Some("seconds")),
            (now / 1_000_000, None),
            (now / 1000, Some("microseconds")),
            (now, Some("nanoseconds")),
            (0, None),
            (-1, None),
            (i64::MIN, None),
            (i64::MAX, None),
            (1 << 62, None),
            (1_000_000, None),
            (-62_135_596_800_000, None),
            (253_402_300_799_999, None),
        ] {
            assert_eq!(OtherUnit::of(number).map(|unit| unit.name), expected, "{number}");
        }
        assert_eq!(OtherUnit::of(now).unwrap().milliseconds, now / 1_000_000);
        assert_eq!(OtherUnit::of(1_700_000_012).unwrap().milliseconds, 1_700_000_012_000);
    }

    #[test]
    fn offsets_have_one_notation() {
        for (start, end, expected) in [
            (302, Some(303), "offset 302"),
            (302, Some(302), "no offset"),
            (302, Some(310), "offsets 302 to 309"),
            (302, None, "offset 302 and after"),
        ] {
            assert_eq!(offsets_in_words(start, end), expected);
        }
    }

    #[test]
    fn the_units_do_not_overlap() {
        let years = |from: i64, to: i64| (from - 1970) * 31_556_952_000..(to - 1970) * 31_556_952_000;
        for milliseconds in years(1981, 2099).step_by(1_000_000_007) {
            assert_eq!(OtherUnit::of(milliseconds), None);
            for (number, name) in [
                (milliseconds / 1000, "seconds"),
                (milliseconds * 1000, "microseconds"),
                (milliseconds * 1_000_000, "nanoseconds"),
            ] {
                assert_eq!(OtherUnit::of(number).map(|unit| unit.name), Some(name), "{number}");
            }
        }
    }
}

//! Times as texts, in the forms that the library, the command line and the options of Spark accept.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use super::utc;
use crate::types::OtherUnit;

/// The forms, for help texts and errors.
pub const FORMS: &str = "2024-05-01T10:00Z, 2024-05-01T12:00+02:00, 2024-05-01 (midnight UTC), -2h, -1h30m, now, or ms since the epoch \
                         (1714557600s is in seconds, with us and ns in smaller units)";

const SECOND_NS: i128 = 1_000_000_000;
const MILLISECOND_NS: i128 = 1_000_000;
// as in the texts of the unit and in `OtherUnit`
const UNITS_NS: [(&str, &str, i128); 4] = [
    ("ms", "milliseconds", MILLISECOND_NS),
    ("us", "microseconds", 1000),
    ("ns", "nanoseconds", 1),
    ("s", "seconds", SECOND_NS),
];
const SPANS_MS: [(char, i128); 5] =
    [('w', 604_800_000), ('d', 86_400_000), ('h', 3_600_000), ('m', 60_000), ('s', 1000)];
// enough for every time within 64 bits
const MAX_DIGITS: usize = 19;

/// A text that is not a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeFormError {
    /// The form that is expected.
    pub expected: String,
    /// Whether it would be a time with a time zone.
    pub lacks_zone: bool,
}

impl fmt::Display for TimeFormError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "expected {}", self.expected)
    }
}

impl std::error::Error for TimeFormError {}

impl TimeFormError {
    fn new(expected: impl Into<String>) -> Self {
        Self { expected: expected.into(), lacks_zone: false }
    }

    /// The error for a time without a time zone.
    pub fn without_zone(text: &str) -> Self {
        let text = text.trim();
        let expected =
            format!("a time with a time zone: add Z for UTC ({text}Z) or an offset ({text}+02:00)");
        Self { expected, lacks_zone: true }
    }

    /// The error for a local time that its zone has twice, or not at all, because of a change of the clock.
    /// `first`, `second`: how far the zone is ahead of UTC before and after the change, nanoseconds.
    pub fn not_once(text: &str, first: i128, second: i128) -> Self {
        let text = text.trim();
        let offset = |ahead: i128| {
            let minutes = (ahead / (60 * SECOND_NS)).abs();
            let sign = if ahead < 0 { '-' } else { '+' };
            format!("{text}{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        };
        let why = if first > second { "has twice" } else { "leaves out" };
        Self::new(format!(
            "a time with an offset, because the clock of the zone {why} this one: {} or {}",
            offset(first),
            offset(second)
        ))
    }
}

/// The time that a text names, nanoseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeText {
    /// A moment.
    Moment(i128),
    /// A date: its midnight in UTC, if no other zone is known.
    Date(i128),
    /// A time without a zone, as it were in UTC.
    Local(i128),
}

impl TimeText {
    /// Reads a text. `now_ms`: the present time, milliseconds since the epoch.
    ///
    /// A number without a unit is in milliseconds. One that is a time of these decades only in another unit
    /// is an error, and one that looks like a date or a year.
    ///
    /// # Errors
    /// For a text in none of the [`FORMS`].
    pub fn parse(text: &str, now_ms: i64) -> Result<Self, TimeFormError> {
        let text = text.trim();
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number(text) {
            // longer ones are out of range too
            let number = text[..text.len().min(MAX_DIGITS + 1)].parse::<i128>().ok();
            return of_number(number.unwrap_or(i128::MAX / MILLISECOND_NS), text);
        }
        for (suffix, _, nanoseconds) in UNITS_NS {
            let number = text.strip_suffix(suffix).filter(|number| is_number(number));
            if let Some(number) = number.filter(|number| number.len() <= MAX_DIGITS) {
                return Ok(Self::Moment(number.parse().unwrap_or(i128::from(i64::MAX)) * nanoseconds));
            }
        }
        if text == "now" {
            return Ok(Self::Moment(i128::from(now_ms) * MILLISECOND_NS));
        }
        if let Some(ago) = text.strip_prefix('-').and_then(span_ms) {
            return Ok(Self::Moment((i128::from(now_ms) - ago) * MILLISECOND_NS));
        }
        date_and_time(text).ok_or_else(|| TimeFormError::new(format!("a time in one of the forms {FORMS}")))
    }

    /// Milliseconds since the epoch of a bound: rounded up, because records have whole milliseconds.
    ///
    /// # Errors
    /// For a text in none of the [`FORMS`], without a time zone, or with a time that Kafka cannot store.
    pub fn bound(text: &str) -> Result<i64, TimeFormError> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        match Self::parse(text, i64::try_from(since.as_millis()).unwrap_or(i64::MAX))? {
            Self::Moment(nanoseconds) | Self::Date(nanoseconds) => milliseconds(nanoseconds, true),
            Self::Local(_) => Err(TimeFormError::without_zone(text)),
        }
    }
}

/// Milliseconds since the epoch of nanoseconds, rounded up or down.
///
/// # Errors
/// For a time that Kafka cannot store.
pub fn milliseconds(nanoseconds: i128, rounds_up: bool) -> Result<i64, TimeFormError> {
    let rest = if rounds_up { MILLISECOND_NS - 1 } else { 0 };
    let found = i64::try_from((nanoseconds + rest).div_euclid(MILLISECOND_NS)).ok();
    found
        .filter(|found| *found >= 0)
        .ok_or_else(|| TimeFormError::new("a time from 1970-01-01, as Kafka's look-ups need, to 2^63 - 1 ms"))
}

/// A time in milliseconds as a text with which [`TimeText::parse`] returns it.
#[cfg(any(feature = "plan", test))]
pub(crate) fn write(milliseconds: i64) -> String {
    let text = milliseconds.to_string();
    let is_ambiguous = OtherUnit::of(milliseconds).is_some() || date_of_digits(&text).is_some();
    text + if is_ambiguous { "ms" } else { "" }
}

/// The time of a number without a unit.
fn of_number(number: i128, text: &str) -> Result<TimeText, TimeFormError> {
    let found = milliseconds(number * MILLISECOND_NS, false)?;
    let other = OtherUnit::of(found);
    let suffix_of =
        |name| UNITS_NS.iter().find(|(_, unit, _)| *unit == name).map_or("", |(suffix, ..)| suffix);
    if let Some(date) = date_of_digits(text) {
        let other = other.map(|OtherUnit { name, .. }| format!(", {name} as {text}{}", suffix_of(name)));
        let expected = format!(
            "a date as {date}{} or milliseconds since the epoch as {text}ms, because {text} may be either",
            other.unwrap_or_default()
        );
        return Err(TimeFormError::new(expected));
    }
    let Some(OtherUnit { name, milliseconds }) = other else {
        return Ok(TimeText::Moment(number * MILLISECOND_NS));
    };
    let suffix = suffix_of(name);
    let mut time = Vec::new();
    utc::write(&mut time, milliseconds);
    let time = String::from_utf8_lossy(&time).replace(' ', "T");
    let expected = format!(
        "milliseconds since the epoch, or a unit: in {name} it is {text}{suffix} ({time}), in ms {text}ms"
    );
    Err(TimeFormError::new(expected))
}

/// The date that a number without a unit is taken for: `20240501`, also with the hour, the minute and the
/// second after it, or a year, between 1900 and 2199.
fn date_of_digits(text: &str) -> Option<String> {
    let mut cursor = Cursor(text.as_bytes());
    let year = cursor.number(4).filter(|year| (1900..2200).contains(year))?;
    let (month, day) = match cursor.0.len() {
        0 => (1, 1),
        4 | 6 | 8 | 10 => (cursor.number(2)?, cursor.number(2)?),
        _ => return None,
    };
    utc::days_of(year, month, day)?;
    let date = format!("{year}-{month:02}-{day:02}");
    if let Some(hour) = cursor.number(2) {
        let (minute, second) = (cursor.number(2).unwrap_or(0), cursor.number(2));
        if hour > 23 || minute > 59 || second.is_some_and(|second| second > 59) {
            return None;
        }
        let second = second.map(|second| format!(":{second:02}")).unwrap_or_default();
        return Some(format!("{date}T{hour:02}:{minute:02}{second}Z"));
    }
    Some(date)
}

/// A span such as `1h30m`.
fn span_ms(text: &str) -> Option<i128> {
    let (mut sum, mut rest) = (0, text);
    while let Some(end) = rest.find(|letter: char| !letter.is_ascii_digit()) {
        let (count, unit) = rest.split_at(end);
        let letter = unit.chars().next()?;
        let (_, factor) = SPANS_MS.into_iter().find(|(name, _)| *name == letter)?;
        if count.len() > MAX_DIGITS {
            return None;
        }
        sum += count.parse::<i128>().ok()? * factor;
        rest = &unit[letter.len_utf8()..];
    }
    (rest.is_empty() && !text.is_empty()).then_some(sum)
}

/// ISO 8601, with `-` and `:` or without: a date, or a date and a time, with the offset of its zone from UTC
/// or without.
fn date_and_time(text: &str) -> Option<TimeText> {
    let mut cursor = Cursor(text.as_bytes());
    let year = cursor.number(4)?;
    let is_extended = cursor.skip(b"-");
    let month = cursor.number(2)?;
    if is_extended && !cursor.skip(b"-") {
        return None;
    }
    let days = utc::days_of(year, month, cursor.number(2)?)?;
    let date = i128::from(days) * 86_400 * SECOND_NS;
    if cursor.0.is_empty() {
        return is_extended.then_some(TimeText::Date(date));
    }
    cursor.skip(b"Tt ").then_some(())?;
    let time = date + cursor.time_of_day()?;
    if cursor.0.is_empty() {
        return Some(TimeText::Local(time));
    }
    let offset = if cursor.skip(b"Zz") {
        0
    } else {
        let is_behind = cursor.skip(b"-");
        (is_behind || cursor.skip(b"+")).then_some(())?;
        let offset = cursor.time_of_day()?;
        if is_behind { -offset } else { offset }
    };
    cursor.0.is_empty().then_some(TimeText::Moment(time - offset))
}

/// The rest of a text.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    /// Takes one of several characters. Returns whether it was there.
    fn skip(&mut self, allowed: &[u8]) -> bool {
        let Some((first, rest)) = self.0.split_first() else { return false };
        let is_there = allowed.contains(first);
        if is_there {
            self.0 = rest;
        }
        is_there
    }

    /// Takes a number of exactly so many digits.
    fn number(&mut self, digits: usize) -> Option<i64> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        if !number.iter().all(u8::is_ascii_digit) {
            return None;
        }
        self.0 = rest;
        Some(number.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
    }

    /// Takes `10`, `10:00`, `10:00:00` or `10:00:00.250`, also without colons. Returns nanoseconds; further
    /// digits are left out.
    fn time_of_day(&mut self) -> Option<i128> {
        let mut seconds = self.number(2).filter(|hours| *hours < 24)? * 3600;
        let has_colons = self.skip(b":");
        if !has_colons && !self.0.first().is_some_and(u8::is_ascii_digit) {
            return Some(i128::from(seconds) * SECOND_NS);
        }
        seconds += self.number(2).filter(|minutes| *minutes < 60)? * 60;
        let has_seconds =
            if has_colons { self.skip(b":") } else { self.0.first().is_some_and(u8::is_ascii_digit) };
        if !has_seconds {
            return Some(i128::from(seconds) * SECOND_NS);
        }
        seconds += self.number(2).filter(|seconds| *seconds < 60)?;
        let mut nanoseconds = 0;
        if self.skip(b".,") {
            self.0.first().filter(|digit| digit.is_ascii_digit())?;
            let mut unit = SECOND_NS / 10;
            while let Some(digit) = self.number(1) {
                nanoseconds += i128::from(digit) * unit;
                unit /= 10;
            }
        }
        Some(i128::from(seconds) * SECOND_NS + nanoseconds)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{TimeText, milliseconds, write};
    use crate::text::utc;
    use crate::types::fixed_seed;

    const NOW_MS: i64 = 1_714_557_600_000;

    fn moment_ms(text: &str) -> Option<i64> {
        match TimeText::parse(text, NOW_MS) {
            Ok(TimeText::Moment(nanoseconds) | TimeText::Date(nanoseconds)) => {
                milliseconds(nanoseconds, true).ok()
            }
            _ => None,
        }
    }

    #[test]
    fn a_time_has_several_forms() {
        for text in [
            "2024-05-01T10:00Z",
            "2024-05-01 10:00:00Z",
            "20240501T100000Z",
            "2024-05-01T10Z",
            "2024-05-01T12:00:00.000+02:00",
            "2024-05-01T04:30-0530",
            " 1714557600000 ",
            "1714557600s",
            "1714557600000000us",
            "now",
            "-0s",
        ] {
            assert_eq!(moment_ms(text), Some(NOW_MS), "{text}");
        }
        assert_eq!(moment_ms("2024-05-01"), Some(NOW_MS - 36_000_000));
        assert_eq!(moment_ms("-1h30m"), Some(NOW_MS - 5_400_000));
        assert_eq!(moment_ms("2024-05-01T10:00:00.0000001Z"), Some(NOW_MS + 1));
    }

    #[test]
    fn a_number_that_looks_like_a_date_needs_a_unit() {
        for (text, date) in [
            ("20240501", "2024-05-01"),
            ("2024", "2024-01-01"),
            (" 19000228 ", "1900-02-28"),
            ("2024050110", "2024-05-01T10:00Z"),
            ("202405011030", "2024-05-01T10:30Z"),
            ("20240501235959", "2024-05-01T23:59:59Z"),
        ] {
            assert!(TimeText::parse(date, NOW_MS).is_ok(), "{date}");
            let expected = TimeText::parse(text, NOW_MS).unwrap_err().expected;
            let text = text.trim();
            assert!(expected.contains(date) && expected.contains(&format!("{text}ms")), "{expected}");
            assert_eq!(moment_ms(&format!("{text}ms")), text.parse().ok());
        }
        let expected = TimeText::parse("2024050110", NOW_MS).unwrap_err().expected;
        assert!(expected.contains("seconds as 2024050110s"), "{expected}");
        for text in [
            "20241301",
            "20230229",
            "2200",
            "1899",
            "22000101",
            "202405",
            "202405010",
            "02024",
            "202405012400",
            "202405011060",
            "20240501101060",
            "20241301100000",
            "2024050110000",
        ] {
            assert_eq!(moment_ms(text), text.parse().ok(), "{text}");
        }
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "",
            "-",
            "soon",
            "1e3",
            "-5",
            "5h",
            "-5x",
            "-h",
            "+7",
            "1.5s",
            "2024-13-01",
            "2023-02-29",
            "2024-05-01T",
            "2024-05-01T24:00Z",
            "2024-05-01T10:60Z",
            "2024-05-01T10:00:00.Z",
            "2024-05-01T10:00Zx",
            "2024-05-01T10:00+",
            "2024-0501",
            "20240501T",
            "0000-01-01",
            "1969-12-31",
            "20240501",
            "2024",
            "202405011000",
            "19691231",
            "9223372036854775808",
            "99999999999999999999999",
            "9999999999999999999s",
            "1714557600",
            "2024-05-01T10:00",
            "é",
            "2024-05-01é10:00Z",
        ] {
            assert_eq!(moment_ms(text), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(fixed_seed(500))]

        #[test]
        fn a_written_time_is_read(milliseconds in prop_oneof![0_i64..5_000_000_000_000, 0..i64::MAX, 0_i64..30_000, 19_000_000_i64..22_000_000]) {
            prop_assert_eq!(moment_ms(&write(milliseconds)), Some(milliseconds));
        }

        #[test]
        fn a_time_in_utc_is_read_as_it_was_written(milliseconds in 0_i64..250_000_000_000_000) {
            let mut text = Vec::new();
            utc::write(&mut text, milliseconds);
            let text = String::from_utf8(text).unwrap();
            prop_assert_eq!(moment_ms(&text), Some(milliseconds), "{}", text);
        }

        #[test]
        fn no_text_is_a_panic(text in ".*", digits in "[-+0-9TZ:., wdhms]{0,30}") {
            let _ = TimeText::parse(&text, NOW_MS);
            let _ = TimeText::parse(&digits, NOW_MS);
        }
    }
}

//! Times as text: `2023-11-14 22:13:20.000Z`, or with the offset of local time from UTC.

/// Days from 0000-03-01 to 1970-01-01, in the Gregorian calendar.
const DAYS_TO_EPOCH: i64 = 719_468;
/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;
/// Days in 400 years.
const DAYS_OF_ERA: i64 = 146_097;

/// Writes milliseconds since the epoch. A year has four digits, from 10000 on more; one before the year 0, a
/// minus sign.
pub(super) fn write(out: &mut Vec<u8>, milliseconds: i64) {
    write_date_and_time(out, milliseconds);
    out.push(b'Z');
}

/// Writes milliseconds since the epoch as local time that is `seconds` ahead of UTC: `2023-11-14
/// 23:13:20.000+01:00`.
pub(super) fn write_local(out: &mut Vec<u8>, milliseconds: i64, seconds: i32) {
    let local = milliseconds.saturating_add(i64::from(seconds) * 1000);
    write_date_and_time(out, local);
    out.push(if seconds < 0 { b'-' } else { b'+' });
    let seconds = u64::from(seconds.unsigned_abs());
    out.extend_from_slice(&two_digits(seconds / 3600));
    out.push(b':');
    out.extend_from_slice(&two_digits(seconds / 60 % 60));
    if seconds % 60 != 0 {
        out.push(b':');
        out.extend_from_slice(&two_digits(seconds % 60));
    }
}

/// Writes milliseconds since 1970-01-01 00:00 on some clock.
fn write_date_and_time(out: &mut Vec<u8>, milliseconds: i64) {
    let of_day = milliseconds.rem_euclid(DAY_MS).cast_unsigned();
    let (second, fraction) = (of_day / 1000, of_day % 1000);
    let (year, month, day) = date(milliseconds.div_euclid(DAY_MS) + DAYS_TO_EPOCH);
    if year < 0 {
        out.push(b'-');
    }
    let year = year.unsigned_abs();
    if year < 10_000 {
        out.extend_from_slice(&two_digits(year / 100));
        out.extend_from_slice(&two_digits(year % 100));
    } else {
        out.extend_from_slice(itoa::Buffer::new().format(year).as_bytes());
    }
    for (separator, part) in [(b'-', month), (b'-', day), (b' ', second / 3600)] {
        out.push(separator);
        out.extend_from_slice(&two_digits(part));
    }
    for part in [second / 60 % 60, second % 60] {
        out.push(b':');
        out.extend_from_slice(&two_digits(part));
    }
    let [_, hundreds] = two_digits(fraction / 100);
    let [tens, ones] = two_digits(fraction % 100);
    out.extend_from_slice(&[b'.', hundreds, tens, ones]);
}

/// Year, month and day of a day since 0000-03-01. The year begins in March here, so that the leap day is its
/// last.
fn date(days: i64) -> (i64, u64, u64) {
    let (era, day) = (days.div_euclid(DAYS_OF_ERA), days.rem_euclid(DAYS_OF_ERA).cast_unsigned());
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // months of 31, 30, 31, 30, 31 days, which repeat: 153 days in five of them
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year.cast_signed();
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

/// Days since the epoch of a date in the Gregorian calendar, from the year 1; `None` if there is no such day.
#[cfg(feature = "arrow")]
pub(super) fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if year < 1 || !(1..=12).contains(&month) || !(1..=length).contains(&day) {
        return None;
    }
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let of_year = 365 * year + year / 4 - year / 100 + year / 400;
    Some(of_year + (153 * month + 2) / 5 + day - 1 - DAYS_TO_EPOCH)
}

/// The digits of a number below 100.
#[inline]
fn two_digits(number: u64) -> [u8; 2] {
    [number / 10 % 10, number % 10].map(|digit| b'0' + u8::try_from(digit).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{DAYS_TO_EPOCH, date, write, write_local};

    fn text(milliseconds: i64) -> String {
        let mut out = Vec::new();
        write(&mut out, milliseconds);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn dates_are_those_of_a_calendar_that_counts_days() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..=400_000 {
            assert_eq!(date(days + DAYS_TO_EPOCH), (year, month, day), "day {days}");
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + u64::from(is_leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }

    #[test]
    fn known_times() {
        for (milliseconds, wanted) in [
            (0, "1970-01-01 00:00:00.000Z"),
            (1, "1970-01-01 00:00:00.001Z"),
            (951_782_400_000, "2000-02-29 00:00:00.000Z"),
            (1_700_000_000_123, "2023-11-14 22:13:20.123Z"),
            (253_402_300_799_999, "9999-12-31 23:59:59.999Z"),
            (253_402_300_800_000, "10000-01-01 00:00:00.000Z"),
            (971_890_963_199_999, "32767-12-31 23:59:59.999Z"),
            (971_890_963_200_000, "32768-01-01 00:00:00.000Z"),
            (i64::MAX, "292278994-08-17 07:12:55.807Z"),
            (-2, "1969-12-31 23:59:59.998Z"),
            (-62_135_596_800_000, "0001-01-01 00:00:00.000Z"),
            (-62_135_596_800_001, "0000-12-31 23:59:59.999Z"),
            (-62_167_219_200_001, "-0001-12-31 23:59:59.999Z"),
            (i64::MIN, "-292275055-05-16 16:47:04.192Z"),
        ] {
            assert_eq!(text(milliseconds), wanted);
        }
    }

    #[test]
    fn local_times() {
        for (milliseconds, seconds, wanted) in [
            (0, 0, "1970-01-01 00:00:00.000+00:00"),
            (0, -18_000, "1969-12-31 19:00:00.000-05:00"),
            (1_700_000_000_123, 3600, "2023-11-14 23:13:20.123+01:00"),
            (1_700_000_000_123, 20_700, "2023-11-15 03:58:20.123+05:45"),
            (0, -2670, "1969-12-31 23:15:30.000-00:44:30"),
        ] {
            let mut out = Vec::new();
            write_local(&mut out, milliseconds, seconds);
            assert_eq!(String::from_utf8(out).unwrap(), wanted);
        }
    }

    proptest! {
        #![proptest_config(crate::types::fixed_seed(2000))]

        #[test]
        fn the_time_of_day_is_its_parts(days in 0i64..40_000, rest in 0i64..86_400_000) {
            let (year, month, day) = date(days + DAYS_TO_EPOCH);
            let (seconds, fraction) = (rest / 1000, rest % 1000);
            let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            let wanted = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{fraction:03}Z");
            prop_assert_eq!(text(days * 86_400_000 + rest), wanted);
        }
    }
}

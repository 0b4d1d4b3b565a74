//! Points in time for computations. Flow logic cannot read a clock.
//!
//! The contract writes them as RFC 3339 in UTC with milliseconds. Times in data may have other
//! offsets; they are converted to UTC.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// The beginning of the year 1.
const START_MS: i64 = -62_135_596_800_000;
/// The beginning of the year 10000, which has too many digits.
const END_MS: i64 = 253_402_300_800_000;

/// A point in time, to the millisecond, in the years 1 to 9999.
///
/// ```
/// use wrkflw_guest::{Moment, hours};
///
/// let due = Moment::parse("2026-01-05T09:00:00.000Z").map(|now| now.after(hours(48)));
/// assert_eq!(due.map(|due| due.to_string()).as_deref(), Some("2026-01-07T09:00:00.000Z"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    /// Milliseconds since the beginning of 1970.
    ms: i64,
}

impl Moment {
    /// Reads an RFC 3339 text. Digits beyond milliseconds are cut off.
    pub fn parse(text: &str) -> Option<Self> {
        // Each call of flow logic reads the time of its facts, so nothing is allocated here.
        let (date, rest) = text.as_bytes().split_at_checked(10)?;
        let [year, month, day] = numbers(date, b'-', [4, 2, 2])?;
        let (b'T' | b't' | b' ', rest) = rest.split_first()? else {
            return None;
        };
        let zone = |one: &u8| matches!(one, b'Z' | b'z' | b'+' | b'-');
        let (time, zone) = rest.split_at(rest.iter().position(zone)?);
        let (time, fraction) = time.split_at_checked(8)?;
        let [hour, minute, second] = numbers(time, b':', [2, 2, 2])?;
        let possible = (1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_in(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        if !possible {
            return None;
        }
        let seconds = (hour * 60 + minute) * 60 + second - offset(zone)?;
        let ms = i64::from(seconds) * 1000 + i64::from(thousandths(fraction)?);
        let ms = i64::from(day_number(year, month, day)) * DAY_MS + ms;
        // The offset may lead out of the years 1 to 9999.
        (START_MS..END_MS).contains(&ms).then_some(Self { ms })
    }

    /// This moment plus `seconds`.
    pub fn after(self, seconds: u32) -> Self {
        let ms = (self.ms + i64::from(seconds) * 1000).min(END_MS - 1);
        Self { ms }
    }

    /// This moment minus `seconds`.
    pub fn before(self, seconds: u32) -> Self {
        let ms = (self.ms - i64::from(seconds) * 1000).max(START_MS);
        Self { ms }
    }
}

/// Reads numbers with these counts of digits, as in a date or a time of day. WebAssembly multiplies 32 bits in one operation, and checks
/// a product of 64 bits in some sixty.
fn numbers<const N: usize>(text: &[u8], between: u8, digits: [usize; N]) -> Option<[i32; N]> {
    let mut numbers = [0; N];
    let mut rest = text;
    for (place, digits) in digits.into_iter().enumerate() {
        if place > 0 {
            rest = rest.strip_prefix(&[between])?;
        }
        let (part, after) = rest.split_at_checked(digits)?;
        numbers[place] = number(part)?;
        rest = after;
    }
    rest.is_empty().then_some(numbers)
}

fn number(digits: &[u8]) -> Option<i32> {
    digits.iter().try_fold(0, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| i32::from(digit - b'0'))?;
        Some(number * 10 + digit)
    })
}

/// The milliseconds of a fraction, `.5` or nothing.
fn thousandths(fraction: &[u8]) -> Option<i32> {
    let Some((b'.', digits)) = fraction.split_first() else {
        return fraction.is_empty().then_some(0);
    };
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let mut first = [b'0'; 3];
    for (digit, written) in first.iter_mut().zip(digits) {
        *digit = *written;
    }
    number(&first).filter(|_| all_digits)
}

/// The offset of the zone from UTC in seconds.
fn offset(zone: &[u8]) -> Option<i32> {
    let (sign, zone) = zone.split_first()?;
    if matches!(sign, b'Z' | b'z') {
        return zone.is_empty().then_some(0);
    }
    let [hours, minutes] = numbers(zone, b':', [2, 2])?;
    let seconds = (hours * 60 + minutes) * 60;
    let possible = hours < 24 && minutes < 60;
    possible.then_some(if *sign == b'-' { -seconds } else { seconds })
}

fn days_in(year: i32, month: i32) -> i32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since the beginning of 1970. Years are counted from March, so that a leap day comes last.
fn day_number(year: i32, month: i32, day: i32) -> i32 {
    let year = if month < 3 { year - 1 } else { year };
    let of_year = ((month + 9) % 12 * 153 + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

/// Year, month and day from the number of days since 1970.
fn date(number: i32) -> (i32, i32, i32) {
    let mut year = 1970 + number / if number < 0 { 366 } else { 365 };
    while day_number(year, 1, 1) > number {
        year -= 1;
    }
    let mut month = 12;
    while day_number(year, month, 1) > number {
        month -= 1;
    }
    (year, month, number - day_number(year, month, 1) + 1)
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a moment is in the years 1 to 9999"
        )]
        let days = self.ms.div_euclid(DAY_MS) as i32;
        let (year, month, day) = date(days);
        let ms = self.ms.rem_euclid(DAY_MS);
        let (hour, minute) = (ms / 3_600_000, ms / 60_000 % 60);
        let (second, ms) = (ms / 1000 % 60, ms % 1000);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z"
        )
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            de::Error::custom("expected a time such as 2026-11-20T18:00:00Z (RFC 3339)")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{days, hours};

    fn moment(text: &str) -> Moment {
        Moment::parse(text).expect(text)
    }

    #[test]
    fn times_are_read_in_any_zone_and_written_in_utc() {
        for (read, written) in [
            ("2026-01-05T09:00:00.000Z", "2026-01-05T09:00:00.000Z"),
            ("2024-02-29T23:30:00-01:00", "2024-03-01T00:30:00.000Z"),
            (
                "2026-01-01T00:15:00.98765+05:30",
                "2025-12-31T18:45:00.987Z",
            ),
            ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500Z"),
            ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(moment(read).to_string(), written);
        }
        for wrong in [
            "2026-02-29T00:00:00Z",
            "2026-01-05",
            "2026-01-05T09:00:00",
            "2026-13-01T00:00:00Z",
            "2026-01-05T24:00:00Z",
            "2026-1-5T09:00:00Z",
            "2026-1-005T9:00:000Z",
            "2026-01-05T09:00:00+1:030",
            "2026-01-05T09:00:00.Z",
            "2026-01-05T09:00:00.000x1Z",
            "2026-01-05T09:00:00,5Z",
            "2026-01-05T09:00:00Z1",
            "2026-01-05T09:00:00+01:00:00",
            "9999-12-31T23:59:59-01:00",
            "0001-01-01T00:00:00+01:00",
            "tomorrow at noon, or so",
            "",
        ] {
            assert!(Moment::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn every_day_is_written_as_it_is_read() {
        let mut day = moment("1999-12-31T12:00:00Z");
        for _ in 0..3000 {
            let next = day.after(days(1));
            assert_eq!(moment(&next.to_string()), next);
            assert!(next > day && next.before(days(1)) == day);
            day = next;
        }
        assert_eq!(day.to_string(), "2008-03-18T12:00:00.000Z");
    }

    #[test]
    fn moments_end_with_the_last_year_that_can_be_written() {
        let end = moment("9999-12-31T23:59:59.999Z");
        assert_eq!(end.after(hours(1)), end);
    }
}

//! Exact decimals, for money and other numbers that must not be rounded.
//!
//! A decimal keeps the digits of a JSON number or a JSON string. Comparison is exact and never uses binary fractions: 0.1 is 0.1,
//! and 50000.01 is more than 50000.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::value::RawValue;

/// The most digits before and after the point that the host accepts in an attribute.
const DIGITS_MAX: usize = 100;

/// A number in decimal notation, as exact as it was written.
///
/// ```
/// use wrkflw_guest::Decimal;
///
/// #[derive(serde::Deserialize)]
/// struct Purchase {
///     amount: Decimal,
/// }
///
/// let limit = Decimal::from(50_000);
/// let purchase: Purchase = serde_json::from_str(r#"{ "amount": 50000.000000000000000001 }"#)?;
/// assert!(purchase.amount > limit);
/// assert_eq!(purchase.amount.to_string(), "50000.000000000000000001");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone)]
pub struct Decimal {
    /// `-`, the digits without redundant leading zeros, and after a point the digits as written.
    text: String,
    /// Whether the JSON value was a string. Then it is written as a string again.
    quoted: bool,
}

impl Decimal {
    /// Reads `1999.90`, `-3` or `5e4`. None if the text is no number, or has more than 100 digits before or after the point.
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, rest) = match text.strip_prefix('-') {
            Some(rest) => ("-", rest),
            None => ("", text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().ok()?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|one| one.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || mantissa.len() > 2 * DIGITS_MAX + 1 {
            return None;
        }
        let fraction = if mantissa.contains('.') { fraction } else { "" };
        let (whole, fraction) = shifted(whole, fraction, exponent)?;
        let whole = whole.trim_start_matches('0');
        if whole.len() > DIGITS_MAX || fraction.len() > DIGITS_MAX {
            return None;
        }
        let zero = whole.is_empty() && fraction.bytes().all(|one| one == b'0');
        let mut text = String::from(if zero { "" } else { sign });
        text.push_str(if whole.is_empty() { "0" } else { whole });
        if !fraction.is_empty() {
            text.push('.');
            text.push_str(&fraction);
        }
        let quoted = false;
        Some(Self { text, quoted })
    }

    /// Whether it is greater than zero.
    pub fn is_positive(&self) -> bool {
        *self > Self::from(0)
    }

    /// The sign and the magnitude, in parts that are compared in order.
    fn parts(&self) -> (bool, (usize, &str, &str)) {
        let (negative, size) = match self.text.strip_prefix('-') {
            Some(size) => (true, size),
            None => (false, self.text.as_str()),
        };
        let (whole, fraction) = size.split_once('.').unwrap_or((size, ""));
        (
            negative,
            (whole.len(), whole, fraction.trim_end_matches('0')),
        )
    }
}

/// The digits after the exponent has moved the point. None if there would be too many.
fn shifted(whole: &str, fraction: &str, exponent: i16) -> Option<(String, String)> {
    let by = usize::from(exponent.unsigned_abs());
    if by > 2 * DIGITS_MAX {
        return None;
    }
    Some(if exponent < 0 {
        let digits = format!("{}{whole}", "0".repeat(by));
        let (whole, moved) = digits.split_at(digits.len() - by);
        (whole.into(), format!("{moved}{fraction}"))
    } else {
        let digits = format!("{fraction:0<by$}");
        let (moved, fraction) = digits.split_at(by);
        (format!("{whole}{moved}"), fraction.into())
    })
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.parts(), other.parts()) {
            ((false, one), (false, two)) => one.cmp(&two),
            ((true, one), (true, two)) => two.cmp(&one),
            ((negative, _), _) => {
                if negative {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl From<i64> for Decimal {
    fn from(number: i64) -> Self {
        let (text, quoted) = (number.to_string(), false);
        Self { text, quoted }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let quoted = serde_json::from_str::<String>(raw.get()).ok();
        let read = Self::parse(quoted.as_deref().unwrap_or(raw.get()));
        let decimal = read.ok_or_else(|| {
            de::Error::custom("expected a decimal number of at most 100 digits on each side")
        })?;
        let quoted = quoted.is_some();
        Ok(Self { quoted, ..decimal })
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.quoted {
            return serializer.serialize_str(&self.text);
        }
        RawValue::from_string(self.text.clone())
            .map_err(ser::Error::custom)?
            .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).expect(text)
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for (written, plain) in [
            ("1999.90", "1999.90"),
            ("007", "7"),
            ("-0.0", "0.0"),
            ("-3", "-3"),
            ("5e4", "50000"),
            ("5.25E+1", "52.5"),
            ("5.25e2", "525"),
            ("5.25e3", "5250"),
            ("1.20e1", "12.0"),
            ("25e-3", "0.025"),
            ("1.5e-1", "0.15"),
            (
                "12345678901234567890.123456789",
                "12345678901234567890.123456789",
            ),
        ] {
            assert_eq!(decimal(written).to_string(), plain, "{written}");
        }
        for wrong in [
            "", "-", ".5", "5.", "1e", "1e999", "ten", "1 000", "0x1", "+1", "NaN", "1.-2",
        ] {
            assert!(Decimal::parse(wrong).is_none(), "{wrong}");
        }
        assert!(Decimal::parse(&"9".repeat(101)).is_none());
        let longest = format!("{0}.{0}", "9".repeat(100));
        assert_eq!(
            Decimal::parse(&longest).expect("a decimal").to_string(),
            longest
        );
        assert!(Decimal::parse(&format!("{longest}9")).is_none());
    }

    #[test]
    fn they_compare_exactly() {
        let ascending = [
            "-100000000000000000000.5",
            "-100000000000000000000.4",
            "-2",
            "0",
            "0.1",
            "0.10000000000000000001",
            "9",
            "10",
            "49999.99",
            "50000",
            "50000.000000000000000001",
            "5.1e4",
        ];
        for (at, one) in ascending.iter().enumerate() {
            for (other_at, other) in ascending.iter().enumerate() {
                assert_eq!(
                    decimal(one).cmp(&decimal(other)),
                    at.cmp(&other_at),
                    "{one} {other}"
                );
            }
        }
        assert_eq!(decimal("1.50"), decimal("15e-1"));
    }

    #[test]
    fn they_keep_their_digits_and_their_quotes_in_json() {
        for text in ["0.10000000000000000001", r#""12345678901234567890.10""#] {
            let read: Decimal = serde_json::from_str(text).expect(text);
            assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
        }
        assert!(serde_json::from_str::<Decimal>("null").is_err());
        let read: Decimal = serde_json::from_value(serde_json::json!(12.5)).expect("a number");
        assert_eq!(read, decimal("12.5"));
    }
}

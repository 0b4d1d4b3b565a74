//! Timestamps from callers, limited to years of four digits, which URLs, JSON and the database all support.
//!
//! Every external timestamp is parsed here, so that one rule applies. The library's parser also accepts signed years of
//! six digits. Its debug assertions fail just before its first year.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Deserializer};

/// The years that are accepted.
pub(crate) const YEARS: RangeInclusive<i16> = 1..=9999;

/// Parses a moment to the nanosecond; none if the text is not a moment or its year is not accepted.
pub fn parse(text: &str) -> Option<Timestamp> {
    if text.trim_start().starts_with(['-', '+']) {
        return None;
    }
    accepted(text.parse().ok()?)
}

/// The moment, if its year is accepted.
pub fn accepted(moment: Timestamp) -> Option<Timestamp> {
    let year = moment.to_zoned(TimeZone::UTC).year();
    YEARS.contains(&year).then_some(moment)
}

/// The format of a moment, for error messages. The last moment is one that is valid in every offset.
pub fn expected() -> String {
    format!(
        "a time such as 2026-01-31T12:00:00Z from the year {} to {} (a + in a URL is written %2B)",
        YEARS.start(),
        Timestamp::MAX.strftime("%Y-%m-%d")
    )
}

/// For `#[serde(deserialize_with)]` on a required moment.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| serde::de::Error::custom(refusal(&text)))
}

/// For `#[serde(default, deserialize_with)]` on an optional or null moment.
pub fn read_optional<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| parse(&text).ok_or_else(|| serde::de::Error::custom(refusal(&text))))
        .transpose()
}

fn refusal(text: &str) -> String {
    const SHOWN: usize = 40;
    let shown: String = text.chars().take(SHOWN).collect();
    format!("\"{shown}\" is not {}", expected())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_a_year_of_four_digits() {
        for (text, read) in [
            ("2026-01-31T12:00:00Z", Some("2026-01-31T12:00:00Z")),
            ("2026-01-31T12:00:00+02:00", Some("2026-01-31T10:00:00Z")),
            ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z")),
            ("0001-01-01T00:00:00+01:00", None),
            ("0000-06-01T00:00:00Z", None),
            ("9999-12-30T22:00:00Z", Some("9999-12-30T22:00:00Z")),
            ("9999-12-31T23:59:59Z", None),
            ("-000001-01-01T00:00:00Z", None),
            // The moments of the second before the first one of the parser.
            ("-009999-01-02T01:59:58,89Z", None),
            ("+010000-01-01T00:00:00Z", None),
            ("2026-01-31", None),
            ("", None),
        ] {
            let moment = parse(text).map(|moment| moment.to_string());
            assert_eq!(moment.as_deref(), read, "{text}");
        }
    }

    #[test]
    fn a_refusal_says_what_a_moment_looks_like() {
        #[derive(Debug, Deserialize)]
        struct Body {
            #[serde(deserialize_with = "read")]
            at: Timestamp,
            #[serde(default, deserialize_with = "read_optional")]
            until: Option<Timestamp>,
        }
        let body: Body = serde_json::from_str(r#"{"at":"2026-01-31T12:00:00Z"}"#).expect("read");
        assert_eq!(body.at.to_string(), "2026-01-31T12:00:00Z");
        assert_eq!(body.until, None);
        for wrong in [
            r#"{"at":"-009999-01-02T01:59:58,89Z"}"#,
            r#"{"at":"2026-01-31T12:00:00Z","until":"soon"}"#,
        ] {
            let error = serde_json::from_str::<Body>(wrong).expect_err(wrong);
            assert!(error.to_string().contains("from the year 1 to 9999-12-30"));
        }
    }
}

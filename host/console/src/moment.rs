//! Moments for people: relative in words, absolute for programs and on hover.

use jiff::{SignedDuration, Timestamp};

use wrkflw_runtime::clock::Clock;

use crate::language::Words;
use crate::zone;

/// A moment as a page shows it.
pub(crate) struct Moment {
    /// RFC 3339, in UTC.
    pub(crate) at: String,
    /// In words, relative to now.
    pub(crate) relative: String,
    /// For people, in the zone that the reader chose, else in UTC. The script writes it in the form of the language, and uses the
    /// zone of the browser if none was chosen.
    pub(crate) absolute: String,
    /// Whether it has passed.
    pub(crate) passed: bool,
    /// Whether it is less than a day away, before or after now.
    pub(crate) soon: bool,
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// A moment that is further away is shown as a date, which says more than a number of days.
const RELATIVE_DAYS_MAX: i64 = 60;

impl Moment {
    pub(crate) fn of(at: Timestamp, w: Words) -> Moment {
        Moment::from(at, Clock::System.now(), w)
    }

    fn from(at: Timestamp, now: Timestamp, w: Words) -> Moment {
        let away = at.duration_since(now);
        Moment {
            at: at.to_string(),
            relative: relative(at, away, w),
            absolute: zone::formatted(at, w.zone(), "%Y-%m-%d %H:%M %Z"),
            passed: away.is_negative(),
            soon: away.as_secs().abs() < DAY,
        }
    }
}

fn relative(at: Timestamp, away: SignedDuration, w: Words) -> String {
    let seconds = away.as_secs();
    let (size, ahead) = (seconds.abs(), seconds >= 0);
    let (unit, count) = match size {
        0..MINUTE => return w.t("moment-now").into_owned(),
        MINUTE..HOUR => ("minutes", size / MINUTE),
        HOUR..DAY => ("hours", size / HOUR),
        _ => ("days", size / DAY),
    };
    if unit == "days" && count > RELATIVE_DAYS_MAX {
        return zone::formatted(at, w.zone(), "%Y-%m-%d");
    }
    let way = if ahead { "in" } else { "ago" };
    w.n(&format!("moment-{way}-{unit}"), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_in_the_largest_unit_that_fits() {
        let w = Words::named("en").expect("English");
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().expect("a moment");
        let cases = [
            (0, "just now"),
            (-59, "just now"),
            (60, "in 1 minute"),
            (-7_200, "2 hours ago"),
            (90_000, "in 1 day"),
            (-60 * DAY, "60 days ago"),
            (61 * DAY, "2026-05-01"),
        ];
        for (seconds, expected) in cases {
            let at = now + SignedDuration::from_secs(seconds);
            let moment = Moment::from(at, now, w);
            assert_eq!(moment.relative, expected, "{seconds}");
            assert_eq!(moment.passed, seconds < 0, "{seconds}");
        }
    }

    #[test]
    fn a_moment_is_told_in_the_zone_that_was_chosen() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().expect("a moment");
        let late: Timestamp = "2025-06-30T22:30:00Z".parse().expect("a moment");
        let plain = Words::named("en").expect("English");
        assert_eq!(
            Moment::from(late, now, plain).absolute,
            "2025-06-30 22:30 UTC"
        );
        let chosen = plain.preferring(&wrkflw_engine::Preference {
            time_zone: Some("Europe/Berlin".to_owned()),
            ..Default::default()
        });
        let moment = Moment::from(late, now, chosen);
        assert_eq!(moment.absolute, "2025-07-01 00:30 CEST");
        assert_eq!(moment.relative, "2025-07-01");
    }
}

//! The time zone in which a person reads moments.

use std::sync::{LazyLock, OnceLock};

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use wrkflw_core::zone;

/// The zones that there are. Each is read when somebody first uses it.
static ZONES: LazyLock<Vec<(String, OnceLock<TimeZone>)>> = LazyLock::new(|| {
    let names = zone::names().into_iter();
    names.map(|name| (name, OnceLock::new())).collect()
});

/// One of the zones.
#[derive(Clone, Copy)]
pub(crate) struct Zone(usize);

impl Zone {
    pub(crate) fn named(name: &str) -> Option<Zone> {
        let found = ZONES.binary_search_by(|(one, _)| one.as_str().cmp(name));
        found.ok().map(Zone)
    }

    pub(crate) fn name(self) -> &'static str {
        &ZONES[self.0].0
    }

    fn zone(self) -> TimeZone {
        let (name, zone) = &ZONES[self.0];
        let read = || zone::named(name).unwrap_or(TimeZone::UTC);
        zone.get_or_init(read).clone()
    }
}

/// All names of zones, to choose from.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ZONES.iter().map(|(name, _)| name.as_str())
}

/// The zone that a reader chose; without a choice, UTC.
pub(crate) fn of(zone: Option<Zone>) -> TimeZone {
    zone.map_or(TimeZone::UTC, Zone::zone)
}

/// The name of the zone that a reader chose; without a choice, UTC.
pub(crate) fn name_of(zone: Option<Zone>) -> &'static str {
    zone.map_or("UTC", Zone::name)
}

/// The beginning of a day in this zone, as the API takes it. A text that is not a day is sent to the API unchanged, and the
/// refusal names it.
pub(crate) fn day(text: &str, zone: Option<Zone>) -> String {
    let day = text.parse::<Date>().ok();
    let begin = day.and_then(|day| day.to_zoned(of(zone)).ok());
    begin.map_or_else(|| text.to_owned(), |begin| begin.timestamp().to_string())
}

/// The moment of a field without a zone, in this zone, as the API takes it. A text that is not a moment is sent to the API unchanged.
pub(crate) fn moment(text: &str, zone: Option<Zone>) -> String {
    let moment = text.parse::<DateTime>().ok();
    let moment = moment.and_then(|moment| moment.to_zoned(of(zone)).ok());
    moment.map_or_else(|| text.to_owned(), |moment| moment.timestamp().to_string())
}

/// A moment in this zone, by a format of `jiff`.
pub(crate) fn formatted(at: Timestamp, zone: Option<Zone>, format: &str) -> String {
    at.to_zoned(of(zone)).strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_moments_of_fields_are_those_of_the_reader() {
        let bangkok = Zone::named("Asia/Bangkok");
        assert!(bangkok.is_some());
        for (zone, begin, noon) in [
            (None, "2026-03-01T00:00:00Z", "2026-03-01T12:00:00Z"),
            (bangkok, "2026-02-28T17:00:00Z", "2026-03-01T05:00:00Z"),
        ] {
            assert_eq!(day("2026-03-01", zone), begin);
            assert_eq!(moment("2026-03-01T12:00", zone), noon);
        }
        assert_eq!(
            moment("2026-03-01T12:00:05.123", None),
            "2026-03-01T12:00:05.123Z"
        );
        for none in ["", "soon", "2026-02-30"] {
            assert_eq!(
                (day(none, bangkok), moment(none, None)),
                (none.to_owned(), none.to_owned())
            );
        }
    }
}

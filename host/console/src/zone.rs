//! The time zone in which a person reads moments.

use std::sync::{LazyLock, OnceLock};

use jiff::Timestamp;
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

/// A moment in this zone, by a format of `jiff`.
pub(crate) fn told(at: Timestamp, zone: Option<Zone>, format: &str) -> String {
    at.to_zoned(of(zone)).strftime(format).to_string()
}

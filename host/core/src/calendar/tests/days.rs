//! Working days: a table that can be checked by hand, and random calendars against a count of days one by one.

use super::*;

#[track_caller]
fn ends(calendar: &Calendar, start: &str, days: u32, end: &str) {
    let found = calendar.days_after(at(start), days);
    assert_eq!(found, Some(at(end)), "{days} working days after {start}");
}

#[test]
fn the_day_of_the_start_does_not_count_and_the_last_day_counts_whole() {
    let office = office(
        "Europe/Berlin",
        json!({
            "holidays": ["2026-12-25"],
            "exceptions": {
                "2026-12-24": [{ "from": "09:00", "until": "12:00" }],
                "2026-12-26": [{ "from": "10:00", "until": "11:00" }],
                "2026-12-28": [],
            },
        }),
    );
    // A Friday, at each time of its day.
    for start in [
        "2026-10-02T00:00+02",
        "2026-10-02T10:00+02",
        "2026-10-02T23:59+02",
    ] {
        ends(&office, start, 1, "2026-10-05T17:00+02");
        ends(&office, start, 5, "2026-10-09T17:00+02");
        ends(&office, start, 7, "2026-10-13T17:00+02");
    }
    ends(&office, "2026-10-03T12:00+02", 1, "2026-10-05T17:00+02");
    // Holidays and days without hours do not count; a Saturday with hours does.
    ends(&office, "2026-12-23T10:00+01", 1, "2026-12-24T12:00+01");
    ends(&office, "2026-12-23T10:00+01", 2, "2026-12-26T11:00+01");
    ends(&office, "2026-12-23T10:00+01", 3, "2026-12-29T17:00+01");
    // The day is that of the calendar's zone: here it is Saturday already.
    ends(&office, "2026-10-02T22:30Z", 1, "2026-10-05T17:00+02");
    ends(&office, "2026-10-04T22:30Z", 1, "2026-10-06T17:00+02");
    assert_eq!(office.days_after(at("2026-10-02T10:00Z"), 0), None);
}

#[test]
fn a_day_that_ends_while_the_clocks_change() {
    let skipped = daily("Europe/Berlin", "01:00", "02:30");
    ends(&skipped, "2026-03-28T12:00+01", 1, "2026-03-29T03:30+02");
    let twice = daily("Europe/Berlin", "01:00", "02:30");
    ends(&twice, "2026-10-24T12:00+02", 1, "2026-10-25T02:30+01");
    let always = daily("Europe/Berlin", "00:00", "24:00");
    ends(&always, "2026-10-24T12:00+02", 1, "2026-10-26T00:00+01");
}

#[test]
fn the_search_for_days_ends() {
    let office = office("Europe/Berlin", json!({}));
    assert_eq!(office.days_after(at("2026-01-01T00:00Z"), u32::MAX), None);
    assert_eq!(office.days_after(Timestamp::MAX, 1), None);
    // 52 weeks and one day of each year, five days of each week.
    let years = office.days_after(at("2026-01-01T00:00Z"), 5_000);
    assert_eq!(years, Some(at("2045-03-02T16:00Z")));
}

/// The simple implementation: looks at each day.
fn day_by_day(calendar: &Calendar, start: Timestamp, days: u32) -> Option<Date> {
    let mut date = calendar.time_zone.to_datetime(start).date();
    let mut left = days;
    for _ in 0..2_000 {
        date = date.tomorrow().expect("a day");
        left -= u32::from(!calendar.hours_of(date).is_empty());
        if left == 0 {
            return Some(date);
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn working_days_are_counted_one_by_one(
        zone in prop::sample::select(vec!["Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC"]),
        days in prop::array::uniform7(intervals()),
        start in starts(),
        later in 0i64..10_000,
        free in prop::collection::btree_set(-3i64..90, 0..12),
        special in 91i64..120,
        count in prop_oneof![3 => 1u32..30, 1 => 30u32..600],
    ) {
        let names = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
        let hours: serde_json::Map<_, _> = names.map(str::to_owned).into_iter().zip(days).collect();
        let day = |after: i64| {
            let moment = start + SignedDuration::from_hours(24 * after);
            moment.to_zoned(TimeZone::UTC).date()
        };
        let holidays: Vec<_> = free.iter().map(|after| day(*after).to_string()).collect();
        let exceptions = json!({ day(special).to_string(): [{ "from": "11:00", "until": "11:30" }] });
        let settings = json!({
            "timeZone": zone, "hours": hours, "holidays": holidays, "exceptions": exceptions,
        });
        let Ok(calendar) = Calendar::parse(&Json::of(&settings)) else {
            return Ok(());
        };
        let Some(expected) = day_by_day(&calendar, start, count) else {
            return Ok(());
        };
        let end = calendar.days_after(start, count).expect("within twenty years");
        // Its last second is on that day, and that is no holiday.
        let last = calendar.time_zone.to_datetime(end - SignedDuration::from_secs(1)).date();
        prop_assert_eq!(last, expected, "{}", settings);
        prop_assert!(!calendar.holidays.contains(&last));
        prop_assert!(end > start);
        // More days end later, and a later start never ends earlier.
        let next = calendar.days_after(start, count + 1);
        prop_assert!(next.is_none_or(|next| next > end));
        let begun_later = calendar.days_after(start + SignedDuration::from_mins(later), count);
        prop_assert!(begun_later.is_none_or(|other| other >= end), "{}", settings);
    }
}

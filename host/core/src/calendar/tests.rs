//! Moments that can be checked by hand, and random ones against a simple implementation.

use proptest::prelude::*;
use serde_json::json;

use super::*;

mod days;

fn calendar(settings: serde_json::Value) -> Calendar {
    Calendar::parse(&Json::of(&settings)).expect("sound settings")
}

/// Nine to five from Monday to Friday, with additional settings.
fn office(zone: &str, more: serde_json::Value) -> Calendar {
    let day = json!([{ "from": "09:00", "until": "17:00" }]);
    let mut settings = json!({
        "timeZone": zone,
        "hours": { "monday": day, "tuesday": day, "wednesday": day, "thursday": day, "friday": day },
    });
    for (name, value) in more.as_object().expect("an object") {
        settings[name] = value.clone();
    }
    calendar(settings)
}

/// The same hours on every day.
fn daily(zone: &str, from: &str, to: &str) -> Calendar {
    let day = json!([{ "from": from, "until": to }]);
    calendar(json!({
        "timeZone": zone,
        "hours": {
            "monday": day, "tuesday": day, "wednesday": day, "thursday": day, "friday": day, "saturday": day,
            "sunday": day,
        },
    }))
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("a moment")
}

#[track_caller]
fn check(calendar: &Calendar, start: &str, minutes: u32, end: &str) {
    let found = calendar.after(at(start), minutes * 60);
    assert_eq!(found, Some(at(end)), "{minutes} minutes after {start}");
}

#[test]
fn working_time_passes_within_hours_only() {
    let office = office("Europe/Berlin", json!({}));
    // A Friday.
    check(&office, "2026-10-02T10:00+02", 60, "2026-10-02T11:00+02");
    check(&office, "2026-10-02T16:30+02", 60, "2026-10-05T09:30+02");
    check(&office, "2026-10-02T20:00+02", 60, "2026-10-05T10:00+02");
    check(&office, "2026-10-03T12:00+02", 1, "2026-10-05T09:01+02");
    // Just as work ends; one minute more is the next working day's.
    check(&office, "2026-10-01T09:00+02", 480, "2026-10-01T17:00+02");
    check(&office, "2026-10-01T09:00+02", 481, "2026-10-02T09:01+02");
    check(&office, "2026-10-01T17:00+02", 1, "2026-10-02T09:01+02");
    // Two weeks of working time.
    check(&office, "2026-10-05T09:00+02", 4800, "2026-10-16T17:00+02");
    assert_eq!(
        office.after(at("2026-10-02T16:59:59.250+02"), 2),
        Some(at("2026-10-05T09:00:01.250+02"))
    );
}

#[test]
fn no_working_time_has_passed_at_the_start() {
    let office = office("Europe/Berlin", json!({}));
    for start in ["2026-10-02T10:00+02", "2026-10-03T03:00+02"] {
        check(&office, start, 0, start);
    }
}

#[test]
fn holidays_count_nothing_and_exceptions_have_their_own_hours() {
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
    check(&office, "2026-12-24T11:00+01", 61, "2026-12-26T10:01+01");
    check(&office, "2026-12-24T11:00+01", 121, "2026-12-29T09:01+01");
}

#[test]
fn hours_over_midnight_are_two_intervals_that_touch() {
    let night = calendar(json!({
        "timeZone": "UTC",
        "hours": {
            "monday": [{ "from": "22:00", "until": "24:00" }],
            "tuesday": [{ "from": "00:00", "until": "06:00" }, { "from": "06:00", "until": "07:00" }],
        },
    }));
    check(&night, "2026-10-05T20:00Z", 120, "2026-10-06T00:00Z");
    check(&night, "2026-10-05T20:00Z", 121, "2026-10-06T00:01Z");
    check(&night, "2026-10-05T20:00Z", 540, "2026-10-06T07:00Z");
    check(&night, "2026-10-05T20:00Z", 541, "2026-10-12T22:01Z");
}

#[test]
fn an_hour_that_does_not_exist_counts_nothing() {
    // 02:00 is 03:00 at once.
    let berlin = daily("Europe/Berlin", "00:00", "24:00");
    check(
        &berlin,
        "2026-03-29T00:00+01",
        23 * 60,
        "2026-03-30T00:00+02",
    );
    let buffered = daily("Europe/Berlin", "01:00", "04:00");
    check(&buffered, "2026-03-29T00:00+01", 60, "2026-03-29T03:00+02");
    check(&buffered, "2026-03-29T00:00+01", 120, "2026-03-29T04:00+02");
    check(&buffered, "2026-03-29T00:00+01", 121, "2026-03-30T01:01+02");
    let within = daily("Europe/Berlin", "02:15", "02:45");
    check(&within, "2026-03-28T12:00+01", 1, "2026-03-30T02:16+02");
    let york = daily("America/New_York", "01:30", "03:30");
    check(&york, "2026-03-08T00:00-05", 60, "2026-03-08T03:30-04");
    check(&york, "2026-03-08T00:00-05", 61, "2026-03-09T01:31-04");
}

#[test]
fn an_hour_that_comes_twice_counts_twice() {
    let berlin = daily("Europe/Berlin", "00:00", "24:00");
    check(
        &berlin,
        "2026-10-25T00:00+02",
        25 * 60,
        "2026-10-26T00:00+01",
    );
    // The local time leaves the hours, goes back by an hour, and is within them again.
    let twice = daily("Europe/Berlin", "02:00", "02:30");
    check(&twice, "2026-10-25T00:00+02", 30, "2026-10-25T02:30+02");
    check(&twice, "2026-10-25T00:00+02", 31, "2026-10-25T02:01+01");
    check(&twice, "2026-10-25T00:00+02", 60, "2026-10-25T02:30+01");
    check(&twice, "2026-10-25T00:00+02", 61, "2026-10-26T02:01+01");
    // Begun between the two.
    check(&twice, "2026-10-25T02:45+02", 30, "2026-10-25T02:30+01");
    let york = daily("America/New_York", "00:30", "01:30");
    check(&york, "2026-11-01T00:00-04", 61, "2026-11-01T01:01-05");
    check(&york, "2026-11-01T00:00-04", 90, "2026-11-01T01:30-05");
}

#[test]
fn midnights_that_come_twice_or_never_and_days_that_are_left_out() {
    // Havana goes back from 01:00 to 00:00, and skips from 00:00 to 01:00.
    let havana = daily("America/Havana", "00:00", "00:30");
    check(&havana, "2026-10-31T23:00-04", 60, "2026-11-01T00:30-05");
    check(&havana, "2026-03-07T23:00-05", 1, "2026-03-09T00:01-04");
    // Samoa had no 30 December 2011.
    let apia = daily("Pacific/Apia", "09:00", "10:00");
    check(&apia, "2011-12-29T09:00-10", 61, "2011-12-31T09:01+14");
}

#[test]
fn the_search_ends() {
    let office = office("Europe/Berlin", json!({}));
    assert_eq!(office.after(at("2026-01-01T00:00Z"), u32::MAX), None);
    assert_eq!(office.after(Timestamp::MAX, 60), None);
    // Nineteen years of whole days are within reach.
    let always = daily("UTC", "00:00", "24:00");
    let years = 6940 * 24 * 60;
    check(&always, "2026-01-01T00:00Z", years, "2045-01-01T00:00Z");
}

#[test]
fn settings_have_one_spelling() {
    let settings = json!({
        "timeZone": "europe/berlin",
        "hours": { "friday": [{ "until": "24:00", "from": "09:05" }], "monday": [] },
        "holidays": ["2026-12-25", "2026-01-01"],
        "exceptions": { "2026-12-24": [] },
    });
    let read = calendar(settings);
    let expected = r#"{"exceptions":{"2026-12-24":[]},"holidays":["2026-01-01","2026-12-25"],"hours":{"friday":[{"from":"09:05","until":"24:00"}]},"timeZone":"Europe/Berlin"}"#;
    assert_eq!(read.to_json().as_str(), expected);
    assert_eq!(Calendar::parse(&read.to_json()), Ok(read));
}

/// Settings with these hours on Mondays.
fn mondays(hours: serde_json::Value) -> serde_json::Value {
    json!({ "timeZone": "UTC", "hours": { "monday": hours } })
}

/// Valid settings except for one member.
fn with(name: &str, value: serde_json::Value) -> serde_json::Value {
    let mut settings = mondays(json!([{ "from": "09:00", "until": "17:00" }]));
    settings[name] = value;
    settings
}

/// The pointers and codes of all violations of the settings.
#[track_caller]
fn refused(settings: serde_json::Value, expected: &str) {
    let violations = Calendar::parse(&Json::of(&settings)).expect_err("something is wrong");
    let found: Vec<_> = violations
        .iter()
        .map(|violation| format!("{} {}", violation.field, violation.code))
        .collect();
    assert_eq!(found.join(", "), expected, "{settings}");
}

#[test]
fn members_are_checked_by_name_and_kind() {
    refused(json!([]), " malformed");
    refused(json!({}), "/timeZone required, /hours required");
    refused(
        with("timeZone", json!("Mars/Olympus")),
        "/timeZone unknown_time_zone",
    );
    refused(with("timeZone", json!(1)), "/timeZone unknown_time_zone");
    refused(with("holiday", json!([])), "/holiday unknown_field");
    refused(with("hours", json!({})), "/hours empty");
    refused(with("hours", json!([])), "/hours malformed");
    refused(
        with("hours", json!({ "Monday": [] })),
        "/hours/Monday unknown_field, /hours empty",
    );
    refused(mondays(json!([])), "/hours empty");
    refused(mondays(json!("9-5")), "/hours/monday malformed");
    refused(
        mondays(json!([["09:00", "17:00"]])),
        "/hours/monday/0 malformed",
    );
}

#[test]
fn everything_to_mend_is_told_at_once() {
    refused(
        mondays(json!([{ "from": "9:00", "until": "24:01" }, { "from": "23:60", "to": "24:00" }])),
        "/hours/monday/0/from malformed, /hours/monday/0/until malformed, /hours/monday/1/to unknown_field, \
         /hours/monday/1/from malformed, /hours/monday/1/until required",
    );
    refused(
        with(
            "holidays",
            json!(["2026-02-29", "20261225", "2026-12-25", "2026-12-25", 7]),
        ),
        "/holidays/0 malformed, /holidays/1 malformed, /holidays/3 repeated, /holidays/4 malformed",
    );
    refused(
        with("exceptions", json!({ "a/b": [], "2026-12-24": [{}] })),
        "/exceptions/2026-12-24/0/from required, /exceptions/2026-12-24/0/until required, /exceptions/a~1b malformed",
    );
}

#[test]
fn intervals_are_in_order_and_everything_has_a_bound() {
    refused(
        mondays(json!([{ "from": "17:00", "until": "17:00" }])),
        "/hours/monday/0 malformed",
    );
    refused(
        mondays(
            json!([{ "from": "09:00", "until": "12:00" }, { "from": "11:59", "until": "13:00" }]),
        ),
        "/hours/monday/1 overlapping",
    );
    refused(
        mondays(json!(vec![json!({}); 25])),
        "/hours/monday too_many",
    );
    refused(
        with("holidays", json!(vec!["2026-01-01"; 1001])),
        "/holidays too_many",
    );
    let days: serde_json::Map<_, _> = (0..1001).map(|day| (day.to_string(), json!([]))).collect();
    refused(with("exceptions", json!(days)), "/exceptions too_many");
    let wrong = Calendar::parse(&Json::of(&with("holidays", json!(vec![1; 1000]))));
    assert_eq!(wrong.expect_err("a thousand").len(), 100);
}

#[test]
fn a_day_is_a_holiday_or_an_exception() {
    let mut settings = json!({ "timeZone": "UTC", "hours": { "monday": [{ "from": "09:00", "until": "10:00" }] } });
    settings["holidays"] = json!(["2026-12-24"]);
    settings["exceptions"] = json!({ "2026-12-24": [] });
    let violations = Calendar::parse(&Json::of(&settings)).expect_err("both");
    assert_eq!(violations[0].field, "/exceptions/2026-12-24");
}

/// Counting equal weeks in one step gives the same as counting day by day.
#[test]
fn years_are_the_sum_of_their_hours() {
    let days = |first: &str, count: i64| {
        let first: Date = first.parse().expect("a day");
        (0..count).map(move |number| {
            first
                .checked_add(Span::new().days(number * 5))
                .expect("a day")
        })
    };
    let holidays: Vec<_> = days("2026-01-01", 900).collect();
    let short: Vec<_> = (0..24)
        .map(|hour| json!({ "from": format!("{hour:02}:00"), "until": format!("{hour:02}:30") }))
        .collect();
    let exceptions: serde_json::Map<_, _> = days("2026-01-03", 900)
        .map(|day| (day.to_string(), json!(short)))
        .collect();
    let crafted = office(
        "Europe/Berlin",
        json!({ "holidays": holidays, "exceptions": exceptions }),
    );
    let plain = office("America/New_York", json!({ "holidays": ["2031-07-04"] }));
    let start = at("2026-01-02T13:17Z");
    for calendar in [&crafted, &plain] {
        let (step, steps) = (3 * 3_600, 6_000);
        let mut slowly = start;
        for _ in 0..steps {
            slowly = calendar.after(slowly, step).expect("within twenty years");
        }
        assert_eq!(calendar.after(start, step * steps), Some(slowly));
        assert!(slowly > at("2033-01-01T00:00Z"), "{slowly}");
    }
    // As many as one assignment may have. An implementation that visits every interval of every day takes minutes.
    let begun = std::time::Instant::now();
    for deadline in 0..400 {
        assert!(crafted.after(start, 90_000_000 + deadline).is_some());
    }
    assert!(begun.elapsed().as_secs() < 40, "{:?}", begun.elapsed());
}

/// Equal weeks are not counted day by day.
#[test]
fn years_that_are_alike_take_no_longer_than_a_month() {
    let (office, start) = (office("UTC", json!({})), at("2026-01-05T09:00Z"));
    // The best of many counts: the machine may be busy with other things.
    let best = |weeks: u32| {
        let rounds = (0..200).map(|_| {
            let begun = std::time::Instant::now();
            assert!(office.after(start, weeks * 40 * 3_600).is_some());
            begun.elapsed()
        });
        rounds.min().expect("rounds")
    };
    let (month, years) = (best(4), best(900));
    assert!(
        years < month * 20,
        "{month:?} for a month, {years:?} for years"
    );
}

/// The simple implementation: the local time of each minute determines whether it counts.
fn minute_by_minute(calendar: &Calendar, start: Timestamp, minutes: u32) -> Option<Timestamp> {
    let mut left = minutes;
    for minute in 0..400 * 24 * 60 {
        if left == 0 {
            return Some(start + SignedDuration::from_mins(minute));
        }
        let shown = calendar
            .time_zone
            .to_datetime(start + SignedDuration::from_mins(minute));
        let of_day =
            u16::from(shown.hour().unsigned_abs()) * 60 + u16::from(shown.minute().unsigned_abs());
        let works = calendar
            .hours_of(shown.date())
            .iter()
            .any(|hours| hours.from.0 <= of_day && of_day < hours.to.0);
        left -= u32::from(works);
    }
    None
}

fn intervals() -> impl Strategy<Value = serde_json::Value> {
    prop::collection::btree_set(0..=DAY_MINUTES, 0..6).prop_map(|bounds| {
        let bounds: Vec<_> = bounds.into_iter().map(Minute).collect();
        let pairs = bounds
            .chunks_exact(2)
            .map(|pair| json!({ "from": pair[0], "until": pair[1] }));
        pairs.collect()
    })
}

/// Around a change of the clocks, where errors are, or anywhere in ten years.
fn starts() -> impl Strategy<Value = Timestamp> {
    let near = prop_oneof![
        Just("2026-03-29T01:00Z"),
        Just("2026-10-25T01:00Z"),
        Just("2026-03-08T07:00Z"),
        Just("2026-11-01T06:00Z"),
        Just("2026-10-03T16:00Z"),
        Just("2026-04-04T15:00Z"),
    ];
    let near = near.prop_flat_map(|moment| (Just(at(moment)), -4320i64..4320));
    let anywhere = (Just(at("2020-01-01T00:00Z")), 0i64..10 * 365 * 24 * 60);
    prop_oneof![3 => near, 1 => anywhere]
        .prop_map(|(moment, minutes)| moment + SignedDuration::from_mins(minutes))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn counts_as_the_wall_clock_shows(
        zone in prop::sample::select(vec![
            "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", "Asia/Kolkata", "UTC",
        ]),
        days in prop::array::uniform7(intervals()),
        start in starts(),
        holiday in -3i64..4,
        exception in -20i64..60,
        minutes in prop_oneof![3 => 0u32..4_000, 1 => 4_000u32..60_000],
    ) {
        let names = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
        let hours: serde_json::Map<_, _> = names.map(str::to_owned).into_iter().zip(days).collect();
        let free = (start + SignedDuration::from_hours(24 * holiday)).to_zoned(TimeZone::UTC).date();
        let special = (start + SignedDuration::from_hours(24 * exception)).to_zoned(TimeZone::UTC).date();
        let exceptions = json!({ special.to_string(): [{ "from": "11:00", "until": "11:30" }] });
        let settings = json!({
            "timeZone": zone, "hours": hours, "holidays": [free.to_string()], "exceptions": exceptions,
        });
        let Ok(calendar) = Calendar::parse(&Json::of(&settings)) else {
            return Ok(());
        };
        if let Some(expected) = minute_by_minute(&calendar, start, minutes) {
            prop_assert_eq!(calendar.after(start, minutes * 60), Some(expected), "{}", settings);
        }
    }
}

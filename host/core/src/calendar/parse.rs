//! Reads the settings of a calendar, and reports all violations at once, each with its JSON Pointer.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::{Calendar, DAY_MINUTES, Hours, Minute, Week};
use crate::answer::Violation;
use crate::json::escaped;
use crate::zone;

/// How many holidays a calendar may have.
const HOLIDAYS_MAX: usize = 1000;
/// How many days with other hours a calendar may have.
const EXCEPTIONS_MAX: usize = 1000;
/// How many intervals one day may have.
const INTERVALS_MAX: usize = 24;
/// How many violations are reported.
const VIOLATIONS_MAX: usize = 100;

#[derive(Default)]
struct Violations(Vec<Violation>);

impl Violations {
    fn add(&mut self, field: impl Into<String>, code: &str, message: impl Into<String>) {
        if self.0.len() < VIOLATIONS_MAX {
            self.0.push(Violation {
                expected: None,
                field: field.into(),
                code: code.to_owned(),
                message: message.into(),
            });
        }
    }

    fn object<'a>(&mut self, at: &str, value: &'a Value) -> Option<&'a Map<String, Value>> {
        let object = value.as_object();
        if object.is_none() {
            self.add(at, "malformed", "this must be a JSON object");
        }
        object
    }

    fn array<'a>(&mut self, at: &str, value: &'a Value, max: usize) -> &'a [Value] {
        let Some(items) = value.as_array() else {
            self.add(at, "malformed", "this must be a JSON array");
            return &[];
        };
        if items.len() > max {
            self.add(at, "too_many", format!("at most {max}"));
            return &[];
        }
        items
    }

    /// Refuses unknown members: they may be misspelt names.
    fn refuse_unknown(&mut self, at: &str, object: &Map<String, Value>, known: &[&str]) {
        for name in object.keys().filter(|name| !known.contains(&name.as_str())) {
            let detail = format!(
                "this is unknown; the known members are {}",
                known.join(", ")
            );
            self.add(below(at, name), "unknown_field", detail);
        }
    }
}

/// The JSON Pointer to a member.
fn below(at: &str, name: &str) -> String {
    format!("{at}/{}", escaped(name))
}

pub(super) fn parse(settings: &Value) -> Result<Calendar, Vec<Violation>> {
    let mut wrong = Violations::default();
    let Some(settings) = wrong.object("", settings) else {
        return Err(wrong.0);
    };
    wrong.refuse_unknown(
        "",
        settings,
        &["timeZone", "hours", "holidays", "exceptions"],
    );
    let time_zone = time_zone(settings.get("timeZone"), &mut wrong);
    let hours = week(settings.get("hours"), &mut wrong);
    let holidays = holidays(settings.get("holidays"), &mut wrong);
    let exceptions = exceptions(settings.get("exceptions"), &holidays, &mut wrong);
    match time_zone {
        Some(time_zone) if wrong.0.is_empty() => Ok(Calendar {
            time_zone,
            hours,
            holidays,
            exceptions,
        }),
        _ => Err(wrong.0),
    }
}

fn time_zone(value: Option<&Value>, wrong: &mut Violations) -> Option<TimeZone> {
    const AT: &str = "/timeZone";
    let Some(value) = value else {
        wrong.add(AT, "required", "name a time zone, such as Europe/Berlin");
        return None;
    };
    let found = value.as_str().and_then(zone::named);
    if found.is_none() {
        let detail = "no time zone of the IANA database, such as Europe/Berlin";
        wrong.add(AT, "unknown_time_zone", detail);
    }
    found
}

fn week(value: Option<&Value>, wrong: &mut Violations) -> Week {
    const AT: &str = "/hours";
    let mut week = Week::default();
    let Some(value) = value else {
        wrong.add(AT, "required", "give the hours of at least one weekday");
        return week;
    };
    let Some(days) = wrong.object(AT, value) else {
        return week;
    };
    let Week {
        monday,
        tuesday,
        wednesday,
        thursday,
        friday,
        saturday,
        sunday,
    } = &mut week;
    let places = [
        ("monday", monday),
        ("tuesday", tuesday),
        ("wednesday", wednesday),
        ("thursday", thursday),
        ("friday", friday),
        ("saturday", saturday),
        ("sunday", sunday),
    ];
    wrong.refuse_unknown(AT, days, &places.each_ref().map(|(name, _)| *name));
    let mut is_empty = true;
    for (name, place) in places {
        if let Some(value) = days.get(name) {
            *place = intervals(&below(AT, name), value, wrong);
            is_empty &= value.as_array().is_some_and(Vec::is_empty);
        }
    }
    if is_empty {
        let detail = "the calendar has no hours, so no working time would ever pass";
        wrong.add(AT, "empty", detail);
    }
    week
}

fn intervals(at: &str, value: &Value, wrong: &mut Violations) -> Vec<Hours> {
    let mut read: Vec<Hours> = Vec::new();
    for (index, item) in wrong.array(at, value, INTERVALS_MAX).iter().enumerate() {
        let at = format!("{at}/{index}");
        let Some(object) = wrong.object(&at, item) else {
            continue;
        };
        wrong.refuse_unknown(&at, object, &["from", "until"]);
        let from = minute(&below(&at, "from"), object.get("from"), wrong);
        let to = minute(&below(&at, "until"), object.get("until"), wrong);
        let (Some(from), Some(to)) = (from, to) else {
            continue;
        };
        if from >= to {
            wrong.add(
                &at,
                "malformed",
                "`until` must be later than `from`; split work over midnight into two intervals",
            );
        } else if read.last().is_some_and(|before| from < before.to) {
            wrong.add(
                &at,
                "overlapping",
                "begins before the previous interval ends",
            );
        } else {
            read.push(Hours { from, to });
        }
    }
    read
}

fn minute(at: &str, value: Option<&Value>, wrong: &mut Violations) -> Option<Minute> {
    let Some(value) = value else {
        wrong.add(at, "required", "a time such as 09:00");
        return None;
    };
    let read = value.as_str().and_then(clock_time);
    if read.is_none() {
        wrong.add(at, "malformed", "a time from 00:00 to 24:00, as HH:MM");
    }
    read
}

fn clock_time(text: &str) -> Option<Minute> {
    let &[ten_hours, hour, b':', ten_minutes, minute] = text.as_bytes() else {
        return None;
    };
    let digit = |byte: u8| byte.is_ascii_digit().then(|| u16::from(byte - b'0'));
    let minutes = digit(ten_minutes)? * 10 + digit(minute)?;
    let total = (digit(ten_hours)? * 10 + digit(hour)?) * 60 + minutes;
    (minutes < 60 && total <= DAY_MINUTES).then_some(Minute(total))
}

/// Parses a day as `YYYY-MM-DD` and refuses other spellings.
fn date(text: &str) -> Option<Date> {
    let date: Date = text.parse().ok()?;
    (date.to_string() == text).then_some(date)
}

fn holidays(value: Option<&Value>, wrong: &mut Violations) -> BTreeSet<Date> {
    const AT: &str = "/holidays";
    let mut holidays = BTreeSet::new();
    let Some(value) = value else {
        return holidays;
    };
    for (index, item) in wrong.array(AT, value, HOLIDAYS_MAX).iter().enumerate() {
        match item.as_str().and_then(date) {
            None => wrong.add(
                format!("{AT}/{index}"),
                "malformed",
                "a day such as 2026-12-25",
            ),
            Some(day) => {
                if !holidays.insert(day) {
                    wrong.add(
                        format!("{AT}/{index}"),
                        "repeated",
                        "is in the list already",
                    );
                }
            }
        }
    }
    holidays
}

fn exceptions(
    value: Option<&Value>,
    holidays: &BTreeSet<Date>,
    wrong: &mut Violations,
) -> BTreeMap<Date, Vec<Hours>> {
    const AT: &str = "/exceptions";
    let mut exceptions = BTreeMap::new();
    let Some(days) = value.and_then(|value| wrong.object(AT, value)) else {
        return exceptions;
    };
    if days.len() > EXCEPTIONS_MAX {
        wrong.add(AT, "too_many", format!("at most {EXCEPTIONS_MAX}"));
        return exceptions;
    }
    for (name, value) in days {
        let at = below(AT, name);
        let Some(day) = date(name) else {
            wrong.add(at, "malformed", "a day such as 2026-12-24");
            continue;
        };
        if holidays.contains(&day) {
            wrong.add(&at, "repeated", "is a holiday, too; a day cannot be both");
        }
        exceptions.insert(day, intervals(&at, value, wrong));
    }
    exceptions
}

//! A month of absences: the days on which the visitor is absent, the people whom they substitute, and the days that they choose
//! for another absence.

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan as _};

use super::absence::{self, Days};
use super::{Absence, Me};
use crate::api::with_query;
use crate::language::Words;
use crate::zone;

/// How many months ahead the calendar goes.
const MONTHS_MAX: i32 = 24;
const WEEK_DAYS: usize = 7;

/// A month as a table. Weeks begin on Monday.
pub(super) struct Month {
    pub(super) title: String,
    /// `2026-11`.
    pub(super) previous: Option<String>,
    pub(super) next: Option<String>,
    /// The first day of an absence, which stays chosen in other months; empty if none is chosen.
    pub(super) from: String,
    pub(super) weekdays: Vec<String>,
    /// None for days of other months.
    pub(super) weeks: Vec<Vec<Option<Day>>>,
}

pub(super) struct Day {
    pub(super) number: i8,
    /// RFC 3339.
    pub(super) date: String,
    pub(super) is_today: bool,
    /// The form of an absence with this day; empty if none can be entered.
    pub(super) address: String,
    /// Whether it is one of the chosen days.
    pub(super) is_chosen: bool,
    pub(super) marks: Vec<Mark>,
}

pub(super) struct Mark {
    pub(super) text: String,
    pub(super) is_substitute: bool,
}

impl Month {
    /// The requested month, from the present one on, else the present one. Past absences are not known here.
    pub(super) fn of(
        (requested, chosen): (&str, Option<Days>),
        me: &Me,
        now: Timestamp,
        w: Words,
    ) -> Month {
        let today = now.to_zoned(zone::of(w.zone())).date();
        let present = today.first_of_month();
        let requested = format!("{requested}-01").parse::<Date>().ok();
        let first = requested.filter(|first| (0..=MONTHS_MAX).contains(&months(present, *first)));
        let first = first.unwrap_or(present);
        let blank = usize::try_from(first.weekday().to_monday_zero_offset()).unwrap_or_default();
        let days = (1..=first.days_in_month())
            .map(|number| Some(Day::of((first, number), (today, chosen), me, w)));
        let mut cells: Vec<_> = (0..blank).map(|_| None).chain(days).collect();
        while cells.len() % WEEK_DAYS != 0 {
            cells.push(None);
        }
        let mut weeks: Vec<Vec<_>> = Vec::new();
        for (place, cell) in cells.into_iter().enumerate() {
            if place % WEEK_DAYS == 0 {
                weeks.push(Vec::new());
            }
            weeks.last_mut().expect("a week has begun").push(cell);
        }
        let ahead = months(present, first);
        let other = |step: i32| {
            let there = (0..=MONTHS_MAX).contains(&(ahead + step));
            let date = first.checked_add(step.months()).ok().filter(|_| there);
            date.map(|date| date.strftime("%Y-%m").to_string())
        };
        Month {
            title: w.say(
                "month-title",
                &[
                    ("month", w.t(&format!("month-{}", first.month())).as_ref()),
                    ("year", &first.year().to_string()),
                ],
            ),
            previous: other(-1),
            next: other(1),
            from: chosen.map_or_else(String::new, |days| days.first.to_string()),
            weekdays: (1..=WEEK_DAYS)
                .map(|day| w.t(&format!("weekday-{day}")).into_owned())
                .collect(),
            weeks,
        }
    }
}

/// How many months `to` is after `from`.
fn months(from: Date, to: Date) -> i32 {
    let count = |date: Date| i32::from(date.year()) * 12 + i32::from(date.month());
    count(to) - count(from)
}

impl Day {
    fn of(
        (first, number): (Date, i8),
        (today, chosen): (Date, Option<Days>),
        me: &Me,
        w: Words,
    ) -> Day {
        let date = first.with().day(number).build().unwrap_or(first);
        let own = me.absences.iter().filter(|one| covers(one, date, w));
        let own = own.map(|one| Mark {
            text: w.with("month-away", "substitute", &one.substitute),
            is_substitute: false,
        });
        let others = me.stands_in_for.iter().filter(|one| covers(one, date, w));
        let others = others.map(|one| Mark {
            text: w.with("month-stands-in", "person", &one.person),
            is_substitute: true,
        });
        Day {
            number,
            date: date.to_string(),
            is_today: date == today,
            address: if date >= today && me.may(absence::PERMISSION) {
                address(date, chosen)
            } else {
                String::new()
            },
            is_chosen: chosen.is_some_and(|days| days.has(date)),
            marks: own.chain(others).collect(),
        }
    }
}

/// The page with the form for this day. The second chosen day makes a range; a third one begins a new choice.
fn address(date: Date, chosen: Option<Days>) -> String {
    let day = date.to_string();
    let first = chosen.filter(|days| days.first == days.last);
    let from = first.map_or_else(|| day.clone(), |days| days.first.to_string());
    let month = date.strftime("%Y-%m").to_string();
    let parameters = [("month", month.as_str()), ("from", &from), ("until", &day)];
    format!("{}#act", with_query("/console/me", &parameters))
}

/// Whether a part of this day, in the zone of the reader, is within an absence.
fn covers(absence: &Absence, date: Date, w: Words) -> bool {
    let zone = zone::of(w.zone());
    let begins = |date: Date| date.to_zoned(zone.clone()).map(|begin| begin.timestamp());
    match (begins(date), date.tomorrow().and_then(begins)) {
        (Ok(begin), Ok(end)) => absence.from < end && absence.until > begin,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;
    use wrkflw_engine::Preference;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a moment")
    }

    fn me() -> Me {
        let absence = |person: &str, from: &str, until: &str| Absence {
            id: Uuid::nil(),
            person: person.to_owned(),
            substitute: "sam".to_owned(),
            from: at(from),
            until: at(until),
        };
        Me {
            id: "ada".to_owned(),
            name: None,
            tenant: "default".to_owned(),
            roles: Vec::new(),
            permissions: Vec::new(),
            groups: Vec::new(),
            manager: None,
            absences: vec![absence(
                "ada",
                "2026-03-02T22:30:00Z",
                "2026-03-05T00:00:00Z",
            )],
            stands_in_for: vec![absence(
                "bob",
                "2026-03-10T08:00:00Z",
                "2026-03-10T09:00:00Z",
            )],
        }
    }

    fn month(requested: &str, zone: &str) -> Month {
        let w = Words::named("en")
            .expect("English")
            .preferring(&Preference {
                time_zone: Some(zone.to_owned()),
                ..Preference::default()
            });
        Month::of((requested, None), &me(), at("2026-03-01T12:00:00Z"), w)
    }

    #[test]
    fn a_day_leads_to_the_form_and_a_second_one_makes_a_range() {
        let w = Words::named("en").expect("English");
        let address = |now: &str, days: Option<Days>, permitted: bool| {
            let mut me = me();
            if permitted {
                me.permissions.push(absence::PERMISSION.to_owned());
            }
            let month = Month::of(("2026-03", days), &me, at(now), w);
            let mut days = month.weeks.into_iter().flatten().flatten();
            let ninth = days.find(|day| day.number == 9).expect("a day");
            (ninth.address, ninth.is_chosen)
        };
        let morning = "2026-03-09T08:00:00Z";
        let single = "/console/me?month=2026-03&from=2026-03-09&until=2026-03-09#act";
        assert_eq!(address(morning, None, true), (single.to_owned(), false));
        let second = Days::of("2026-03-20", "");
        let range = "/console/me?month=2026-03&from=2026-03-20&until=2026-03-09#act";
        assert_eq!(address(morning, second, true), (range.to_owned(), false));
        let whole = Days::of("2026-03-20", "2026-03-09");
        assert_eq!(address(morning, whole, true), (single.to_owned(), true));
        assert_eq!(address("2026-03-10T00:00:00Z", None, true).0, "");
        assert_eq!(address(morning, None, false).0, "");
    }

    fn marked(month: &Month) -> Vec<i8> {
        let days = month.weeks.iter().flatten().flatten();
        days.filter(|day| !day.marks.is_empty())
            .map(|day| day.number)
            .collect()
    }

    #[test]
    fn days_of_absences_are_marked_in_the_zone_of_the_reader() {
        assert_eq!(marked(&month("", "UTC")), [2, 3, 4, 10]);
        // In that zone, the absence began when it was already the third, and ended when it was still the fifth.
        assert_eq!(marked(&month("", "Asia/Bangkok")), [3, 4, 5, 10]);
    }

    #[test]
    fn weeks_are_whole_and_begin_on_monday() {
        let month = month("2026-08", "UTC");
        assert_eq!(month.title, "August 2026");
        assert!(month.weeks.iter().all(|week| week.len() == WEEK_DAYS));
        // The first of August 2026 is a Saturday.
        let before = month.weeks[0].iter().take_while(|day| day.is_none());
        assert_eq!(before.count(), 5);
        assert_eq!(month.weeks.iter().flatten().flatten().count(), 31);
    }

    #[test]
    fn one_looks_ahead_and_not_without_end() {
        let present = month("", "UTC");
        assert_eq!(
            (present.previous, present.next.as_deref()),
            (None, Some("2026-04"))
        );
        let last = month("2028-03", "UTC");
        assert_eq!(
            (last.previous.as_deref(), last.next),
            (Some("2028-02"), None)
        );
        for other in ["2026-02", "2028-04", "9999-12", "-0001", "2026-13", "x"] {
            assert_eq!(month(other, "UTC").title, "March 2026", "{other}");
        }
    }
}

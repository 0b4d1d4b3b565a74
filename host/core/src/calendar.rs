//! Working calendars: the working time of people, and the moment at which a given amount of it has passed.
//!
//! A moment is working time when the local time in the calendar's time zone is within the hours of that day. Elapsed time
//! counts: an hour that daylight saving time skips counts nothing, and a repeated hour counts twice. Time zones come from
//! the database compiled into this program, never from the machine, so that every host computes the same. Start reading at
//! [`Calendar::after`] and [`Calendar::days_after`].

mod parse;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::{Date, Weekday};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Span, Timestamp};
use serde::{Serialize, Serializer};

use super::answer::Violation;
use super::json::Json;

/// How far ahead a deadline may be: 20 years, leap days included.
const SEARCH_DAYS_MAX: i64 = 7305;
/// Minutes of a day; also the representation of `24:00`.
const DAY_MINUTES: u16 = 24 * 60;

/// The working hours of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Calendar {
    #[serde(serialize_with = "zone_name")]
    time_zone: TimeZone,
    hours: Week,
    /// Days without working time.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    holidays: BTreeSet<Date>,
    /// Days whose hours differ from their weekday's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    exceptions: BTreeMap<Date, Vec<Hours>>,
}

/// The hours of each weekday.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
struct Week {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    monday: Vec<Hours>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tuesday: Vec<Hours>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    wednesday: Vec<Hours>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    thursday: Vec<Hours>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    friday: Vec<Hours>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    saturday: Vec<Hours>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sunday: Vec<Hours>,
}

/// An interval of a day; `to` is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Hours {
    from: Minute,
    #[serde(rename = "until")]
    to: Minute,
}

/// A time of day, up to `24:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Minute(u16);

impl Serialize for Minute {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:02}:{:02}", self.0 / 60, self.0 % 60))
    }
}

fn zone_name<S: Serializer>(zone: &TimeZone, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(zone.iana_name().unwrap_or_default())
}

impl Week {
    fn day(&self, weekday: Weekday) -> &[Hours] {
        match weekday {
            Weekday::Monday => &self.monday,
            Weekday::Tuesday => &self.tuesday,
            Weekday::Wednesday => &self.wednesday,
            Weekday::Thursday => &self.thursday,
            Weekday::Friday => &self.friday,
            Weekday::Saturday => &self.saturday,
            Weekday::Sunday => &self.sunday,
        }
    }

    fn working_days(&self) -> i64 {
        let days = Weekday::Monday.cycle_forward().take(7);
        let working = days.filter(|day| !self.day(*day).is_empty()).count();
        i64::try_from(working).unwrap_or(0)
    }

    /// The working time of a week.
    fn length(&self) -> SignedDuration {
        let days = Weekday::Monday.cycle_forward().take(7);
        days.map(|day| length(self.day(day))).sum()
    }
}

/// The working time of a day of 24 hours, that is, one without a transition of the time zone.
fn length(day: &[Hours]) -> SignedDuration {
    let minutes = day.iter().map(|hours| i64::from(hours.to.0 - hours.from.0));
    SignedDuration::from_mins(minutes.sum())
}

impl Calendar {
    /// Reads settings. The error lists every violation with its JSON Pointer.
    pub fn parse(settings: &Json) -> Result<Calendar, Vec<Violation>> {
        parse::parse(&settings.value())
    }

    /// The settings in canonical form; [`Calendar::parse`] gives the same calendar again.
    pub fn to_json(&self) -> Json {
        Json::of(self)
    }

    /// The first moment at which `working` seconds of working time have passed since `start`.
    ///
    /// The moment is after `start` unless `working` is 0. When the last second passes at the end of an interval, it is
    /// that end, not the beginning of the next interval. None when twenty years are not enough.
    pub fn after(&self, start: Timestamp, working: u32) -> Option<Timestamp> {
        let mut left = SignedDuration::from_secs(i64::from(working));
        if left.is_zero() {
            return Some(start);
        }
        let horizon = SignedDuration::from_hours(24 * SEARCH_DAYS_MAX);
        let end = start.checked_add(horizon).unwrap_or(Timestamp::MAX);
        let mut transitions = self.time_zone.following(start);
        let mut begin = start;
        while begin < end {
            // Between two transitions the offset is constant.
            let until = transitions
                .next()
                .map_or(end, |next| next.timestamp().min(end));
            let offset = self.time_zone.to_offset(begin);
            match self.count_down(begin, until, offset, left) {
                CountDown::Over(moment) => return Some(moment),
                CountDown::Left(remaining) => left = remaining,
            }
            begin = until;
        }
        None
    }

    /// Subtracts the working time between `begin` and `until` from `left`. The UTC offset is `offset` all that time.
    fn count_down(
        &self,
        begin: Timestamp,
        until: Timestamp,
        offset: Offset,
        mut left: SignedDuration,
    ) -> CountDown {
        let first = offset.to_datetime(begin).date();
        let last = offset.to_datetime(until).date();
        let mut date = first;
        loop {
            if first < date && date < last {
                let (days, worked) = self.whole_days(date, last, left);
                if worked < left {
                    left -= worked;
                    match date.checked_add(Span::new().days(days)) {
                        Ok(next) => date = next,
                        Err(_) => return CountDown::Left(left),
                    }
                    continue;
                }
            }
            for hours in self.hours_of(date) {
                let (Some(from), Some(to)) = (
                    moment(date, hours.from, offset),
                    moment(date, hours.to, offset),
                ) else {
                    return CountDown::Left(left);
                };
                let (from, to) = (from.max(begin), to.min(until));
                let worked = to.duration_since(from);
                if worked >= left {
                    return CountDown::Over(from + left);
                }
                left -= worked.max(SignedDuration::ZERO);
            }
            match date.tomorrow() {
                Ok(next) if next <= last => date = next,
                _ => return CountDown::Left(left),
            }
        }
    }

    /// The end of the working hours of the last of `days` working days after the day of `start`.
    ///
    /// A working day is a day with working hours. Hours that the clocks skip end an hour later, and hours that come twice end
    /// the second time. None if `days` is 0, or when twenty years are not enough.
    pub fn days_after(&self, start: Timestamp, days: u32) -> Option<Timestamp> {
        let first = self.time_zone.to_datetime(start).date();
        let last = first.checked_add(Span::new().days(SEARCH_DAYS_MAX)).ok()?;
        let mut left = i64::from(days);
        let mut date = first.tomorrow().ok()?;
        while date <= last {
            let weeks = self.equal_weeks(date, last, left, self.hours.working_days());
            if weeks > 0 {
                left -= weeks * self.hours.working_days();
                date = date.checked_add(Span::new().days(weeks * 7)).ok()?;
                continue;
            }
            if let Some(hours) = self.hours_of(date).last() {
                left -= 1;
                if left == 0 {
                    return self.local(date, hours.to);
                }
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    /// The moment of a local time in the calendar's zone: the later one if it comes twice.
    fn local(&self, date: Date, minute: Minute) -> Option<Timestamp> {
        let midnight = date.at(0, 0, 0, 0);
        let passed = Span::new().minutes(i64::from(minute.0));
        let local = midnight.checked_add(passed).ok()?;
        self.time_zone.to_ambiguous_timestamp(local).later().ok()
    }

    /// The number of weeks from `date` and before `last` that have neither holidays nor exceptions, and that together have less
    /// working time than `left`. One such week has `each`.
    fn equal_weeks(&self, date: Date, last: Date, left: i64, each: i64) -> i64 {
        let holiday = self.holidays.range(date..).next();
        let exception = self.exceptions.range(date..).next().map(|(day, _)| day);
        let end = holiday
            .into_iter()
            .chain(exception)
            .fold(last, |end, day| end.min(*day));
        let days = date.until(end).map_or(0, |span| i64::from(span.get_days()));
        // Some working time must remain, because the caller finds the moment itself within one day.
        let enough = (left - 1).checked_div(each);
        (days / 7).min(enough.unwrap_or(i64::MAX))
    }

    /// The number of days to count in one step, from `date` and before `last`, and their working time. The step is as
    /// many weeks without holidays and exceptions as have less working time than `left`, or else one day. So the time
    /// to count twenty years depends on the number of holidays and exceptions, not on the number of days.
    fn whole_days(&self, date: Date, last: Date, left: SignedDuration) -> (i64, SignedDuration) {
        let week = self.hours.length();
        let weeks = self.equal_weeks(date, last, left.as_secs(), week.as_secs());
        match i32::try_from(weeks) {
            Ok(weeks @ 1..) => (i64::from(weeks) * 7, week * weeks),
            _ => (1, length(self.hours_of(date))),
        }
    }

    fn hours_of(&self, date: Date) -> &[Hours] {
        if self.holidays.contains(&date) {
            return &[];
        }
        let exception = self.exceptions.get(&date);
        exception.map_or_else(|| self.hours.day(date.weekday()), Vec::as_slice)
    }
}

enum CountDown {
    /// All working time had passed at this moment.
    Over(Timestamp),
    /// The working time left.
    Left(SignedDuration),
}

/// The moment of a local time; none outside the years that timestamps cover.
fn moment(date: Date, minute: Minute, offset: Offset) -> Option<Timestamp> {
    let midnight = offset.to_timestamp(date.at(0, 0, 0, 0)).ok()?;
    let passed = SignedDuration::from_mins(i64::from(minute.0));
    midnight.checked_add(passed).ok()
}

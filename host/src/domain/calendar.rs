//! Working calendars: when people work, and when so much working time is over.
//!
//! A moment is working time when the clock on the wall of the calendar's time zone shows a time within the hours of
//! that day. So an hour that daylight saving leaves out counts nothing, and one that it repeats counts twice: what is
//! counted is time that passes. Time zones come from the tables that this program was built with, never from the
//! machine's, so that every host answers alike. Start reading at [`Calendar::after`].

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

/// How far ahead a deadline is looked for: 20 years, leap days included.
const SEARCH_DAYS_MAX: i64 = 7305;
/// Minutes of a day, which is also how `24:00` is kept.
const DAY_MINUTES: u16 = 24 * 60;

/// When people of a tenant work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Calendar {
    #[serde(serialize_with = "named")]
    time_zone: TimeZone,
    hours: Week,
    /// Days without working time.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    holidays: BTreeSet<Date>,
    /// Days with hours of their own.
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

/// From one time of a day to a later one, which is outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Hours {
    from: Minute,
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

fn named<S: Serializer>(zone: &TimeZone, serializer: S) -> Result<S::Ok, S::Error> {
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

    /// The working time of a week.
    fn length(&self) -> SignedDuration {
        let days = Weekday::Monday.cycle_forward().take(7);
        days.map(|day| length(self.day(day))).sum()
    }
}

/// The working time of a day, which has as many hours as any: between two transitions there is no other.
fn length(day: &[Hours]) -> SignedDuration {
    let minutes = day.iter().map(|hours| i64::from(hours.to.0 - hours.from.0));
    SignedDuration::from_mins(minutes.sum())
}

impl Calendar {
    /// Reads settings; else everything that is to be mended, by JSON Pointer.
    pub fn parse(settings: &Json) -> Result<Calendar, Vec<Violation>> {
        parse::parse(&settings.value())
    }

    /// The settings in canonical form; [`Calendar::parse`] gives the same calendar again.
    pub fn to_json(&self) -> Json {
        Json::of(self)
    }

    /// The first moment at which `working` seconds of working time have passed since `start`.
    ///
    /// No working time has passed at `start` itself, whether people work then or not. When work ends just as the
    /// last second passes, that is the moment, not the next morning. None when twenty years are not enough.
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
            // Between two transitions the wall clock runs as time does.
            let until = transitions
                .next()
                .map_or(end, |next| next.timestamp().min(end));
            let offset = self.time_zone.to_offset(begin);
            match self.pass(begin, until, offset, left) {
                Passed::Over(moment) => return Some(moment),
                Passed::Left(remaining) => left = remaining,
            }
            begin = until;
        }
        None
    }

    /// Counts down from `begin` to `until`, while the wall clock is `offset` away from universal time.
    fn pass(
        &self,
        begin: Timestamp,
        until: Timestamp,
        offset: Offset,
        mut left: SignedDuration,
    ) -> Passed {
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
                        Err(_) => return Passed::Left(left),
                    }
                    continue;
                }
            }
            for hours in self.hours_of(date) {
                let (Some(from), Some(to)) = (
                    moment(date, hours.from, offset),
                    moment(date, hours.to, offset),
                ) else {
                    return Passed::Left(left);
                };
                let (from, to) = (from.max(begin), to.min(until));
                let worked = to.duration_since(from);
                if worked >= left {
                    return Passed::Over(from + left);
                }
                left -= worked.max(SignedDuration::ZERO);
            }
            match date.tomorrow() {
                Ok(next) if next <= last => date = next,
                _ => return Passed::Left(left),
            }
        }
    }

    /// How many days from this one on pass whole, all before `last`, and what is worked on them: as many weeks like any
    /// other as leave something of `left`, else this day. So twenty years take no longer than the days that differ.
    fn whole_days(&self, date: Date, last: Date, left: SignedDuration) -> (i64, SignedDuration) {
        let holiday = self.holidays.range(date..).next();
        let exception = self.exceptions.range(date..).next().map(|(day, _)| day);
        let end = holiday
            .into_iter()
            .chain(exception)
            .fold(last, |end, day| end.min(*day));
        let days = date.until(end).map_or(0, |span| i64::from(span.get_days()));
        let week = self.hours.length();
        // Something is left after them: the moment itself is looked for day by day.
        let enough = (left.as_secs() - 1).checked_div(week.as_secs());
        let weeks = (days / 7).min(enough.unwrap_or(i64::MAX));
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

enum Passed {
    /// The working time was over at this moment.
    Over(Timestamp),
    /// So much is left.
    Left(SignedDuration),
}

/// When the wall clock shows this time; none beyond the years that timestamps cover.
fn moment(date: Date, minute: Minute, offset: Offset) -> Option<Timestamp> {
    let midnight = offset.to_timestamp(date.at(0, 0, 0, 0)).ok()?;
    let passed = SignedDuration::from_mins(i64::from(minute.0));
    midnight.checked_add(passed).ok()
}

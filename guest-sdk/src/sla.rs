//! Service levels: the time limits of work, as a setting of the flow.
//!
//! `Sla` is a field of a `config!`: hours or days until a reminder and until the escalation, and the calendar that counts them.

use serde::Deserialize;

use crate::{Assignment, Deadline, Due, Moment, Offer, days, hours};

/// The times until a reminder and until an escalation.
///
/// In JSON: `{ "remindHours": 24, "escalateHours": 48 }`, and to count working time only,
/// `"calendar": "office"`. Or in days: `{ "remindDays": 5, "escalateDays": 7, "calendar": "office" }`, which
/// are working days with a calendar. The reminder must come before the escalation.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Written")]
pub struct Sla {
    remind: u32,
    escalate: u32,
    unit: Unit,
    calendar: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Hours,
    Days,
}

/// An `Sla` as it is written in a config, before validation.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    remind_hours: Option<u32>,
    escalate_hours: Option<u32>,
    remind_days: Option<u32>,
    escalate_days: Option<u32>,
    calendar: Option<String>,
}

impl TryFrom<Written> for Sla {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, &'static str> {
        let hours = written.remind_hours.zip(written.escalate_hours);
        let days = written.remind_days.zip(written.escalate_days);
        let is_one = |hours: Option<u32>, days: Option<u32>| hours.is_none() || days.is_none();
        let both = is_one(written.remind_hours, written.remind_days)
            && is_one(written.escalate_hours, written.escalate_days);
        let ((remind, escalate), unit) = match (hours, days) {
            (Some(hours), None) if both => (hours, Unit::Hours),
            (None, Some(days)) if both => (days, Unit::Days),
            _ => {
                return Err(
                    "give both remindHours and escalateHours, or both remindDays and escalateDays",
                );
            }
        };
        if remind == 0 || remind >= escalate {
            return Err("remind after one hour or day or more, and before escalating");
        }
        Ok(Self {
            remind,
            escalate,
            unit,
            calendar: written.calendar,
        })
    }
}

impl Sla {
    /// A reminder after `remind` hours and an escalation after `escalate` hours.
    pub const fn hours(remind: u32, escalate: u32) -> Self {
        Self {
            remind,
            escalate,
            unit: Unit::Hours,
            calendar: None,
        }
    }

    /// A reminder after `remind` days and an escalation after `escalate` days. With a calendar these are working days.
    pub const fn days(remind: u32, escalate: u32) -> Self {
        Self {
            remind,
            escalate,
            unit: Unit::Days,
            calendar: None,
        }
    }

    /// Counts working time or working days only, by the tenant's calendar of this name.
    pub fn by_calendar(mut self, calendar: &str) -> Self {
        self.calendar = Some(calendar.into());
        self
    }

    /// The calendar that counts working time, for [`Graph::uses_calendars`](crate::Graph::uses_calendars).
    pub fn calendar(&self) -> Option<&str> {
        self.calendar.as_deref()
    }

    /// The reminder and the escalation.
    pub fn deadlines(&self) -> [Deadline; 2] {
        let due = |count| match (&self.calendar, self.unit) {
            (Some(calendar), Unit::Hours) => Due::working(hours(count), calendar),
            (Some(calendar), Unit::Days) => Due::working_days(count, calendar),
            (None, _) => Due::After(self.seconds(count)),
        };
        [due(self.remind).remind(), due(self.escalate).escalate()]
    }

    /// The time of the escalation of work that begins at this moment. None with a calendar, which only the host knows.
    pub fn due(&self, given: Moment) -> Option<Moment> {
        let plain = self.calendar.is_none();
        plain.then(|| given.after(self.seconds(self.escalate)))
    }

    fn seconds(&self, count: u32) -> u32 {
        match self.unit {
            Unit::Hours => hours(count),
            Unit::Days => days(count),
        }
    }
}

impl Assignment {
    /// Adds both deadlines to the state as a whole.
    pub fn sla(mut self, sla: &Sla) -> Self {
        self.deadlines.extend(sla.deadlines());
        self
    }
}

impl Offer {
    /// Adds both deadlines to this task.
    pub fn sla(mut self, sla: &Sla) -> Self {
        self.deadlines.extend(sla.deadlines());
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reminder_that_comes_too_late_is_refused() {
        let read = |remind| {
            let written = json!({ "remindHours": remind, "escalateHours": 48 });
            serde_json::from_value::<Sla>(written)
        };
        assert_eq!(
            read(24).expect("an SLA").deadlines(),
            Sla::hours(24, 48).deadlines()
        );
        assert!(read(48).is_err() && read(0).is_err());
    }

    #[test]
    fn only_the_host_counts_working_time() {
        let given = Moment::parse("2026-01-05T09:00:00Z").expect("a time");
        let sla = Sla::hours(1, 2);
        assert_eq!(sla.due(given), Some(given.after(hours(2))));
        let working = sla.by_calendar("office");
        assert_eq!(working.due(given), None);
        assert_eq!(
            working.deadlines()[1],
            Due::working(hours(2), "office").escalate()
        );
    }
    #[test]
    fn days_are_working_days_with_a_calendar() {
        let read = |written: serde_json::Value| serde_json::from_value::<Sla>(written);
        let written = json!({ "remindDays": 5, "escalateDays": 7, "calendar": "office" });
        let sla = read(written).expect("an SLA");
        let due = |days| Due::working_days(days, "office");
        assert_eq!(sla.deadlines(), [due(5).remind(), due(7).escalate()]);
        let plain = Sla::days(1, 2);
        assert_eq!(plain.deadlines(), Sla::hours(24, 48).deadlines());
        for mixed in [
            json!({}),
            json!({ "remindHours": 5, "escalateDays": 7 }),
            json!({ "remindHours": 5, "escalateHours": 7, "remindDays": 1 }),
            json!({ "remindDays": 7, "escalateDays": 7 }),
        ] {
            assert!(read(mixed.clone()).is_err(), "{mixed}");
        }
    }
}

//! Service levels: how long work may take, as a setting of the flow.
//!
//! `Sla` is a field of a `config!`: hours until a reminder, hours until the escalation, and the calendar
//! that counts them.

use serde::Deserialize;

use crate::{Assignment, Deadline, Due, Moment, Offer, hours};

/// When people are reminded of work, and when it is escalated.
///
/// In JSON: `{ "remindHours": 24, "escalateHours": 48 }`, and to count working time only,
/// `"calendar": "office"`. The reminder must come before the escalation.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Written")]
pub struct Sla {
    remind_hours: u32,
    escalate_hours: u32,
    calendar: Option<String>,
}

/// An `Sla` as written in a config, not checked yet.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    remind_hours: u32,
    escalate_hours: u32,
    calendar: Option<String>,
}

impl TryFrom<Written> for Sla {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, &'static str> {
        if written.remind_hours == 0 || written.remind_hours >= written.escalate_hours {
            return Err("remind after one hour or more, and before escalating");
        }
        Ok(Self {
            remind_hours: written.remind_hours,
            escalate_hours: written.escalate_hours,
            calendar: written.calendar,
        })
    }
}

impl Sla {
    /// A reminder after `remind` hours and an escalation after `escalate` hours.
    pub const fn hours(remind: u32, escalate: u32) -> Self {
        Self {
            remind_hours: remind,
            escalate_hours: escalate,
            calendar: None,
        }
    }

    /// Counts working time only, by the tenant's calendar of this name.
    pub fn by_calendar(mut self, calendar: &str) -> Self {
        self.calendar = Some(calendar.into());
        self
    }

    /// The reminder and the escalation.
    pub fn deadlines(&self) -> [Deadline; 2] {
        let due = |count| match &self.calendar {
            Some(calendar) => Due::working(hours(count), calendar),
            None => Due::After(hours(count)),
        };
        [
            due(self.remind_hours).remind(),
            due(self.escalate_hours).escalate(),
        ]
    }

    /// When work given at this moment is escalated. None with a calendar, which only the host knows.
    pub fn due(&self, given: Moment) -> Option<Moment> {
        let plain = self.calendar.is_none();
        plain.then(|| given.after(hours(self.escalate_hours)))
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
}

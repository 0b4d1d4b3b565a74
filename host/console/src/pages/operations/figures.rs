//! Figures over time on the page of operations: decisions, starts, refusals and backlogs, each as a drawn line with its numbers.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use wrkflw_runtime::clock::Clock;

use super::{PanelItem, ROOT};
use crate::api::with_query;
use crate::language::Words;
use crate::list::Link;
use crate::session::Visitor;
use crate::zone;

/// The size of a drawn line, in the units of its drawing.
const WIDTH: usize = 240;
const HEIGHT: u64 = 48;
/// Room above and below the line.
const MARGIN: u64 = 2;
/// Reasons that the page names; the list has the others.
const REASONS_MAX: usize = 8;
/// The times to choose from, by their names in the address, in hours.
const RANGES: [(&str, i64); 3] = [("hour", 1), ("day", 24), ("week", 7 * 24)];

/// The period in the address.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FiguresQuery {
    range: String,
}

impl FiguresQuery {
    /// The chosen time; without a known one, the first.
    fn range(&self) -> (&'static str, i64) {
        let mut ranges = RANGES.into_iter();
        ranges
            .find(|(name, _)| *name == self.range)
            .unwrap_or(RANGES[0])
    }

    /// The path of the figures in the API.
    pub(super) fn path(&self) -> String {
        let until = Clock::System.now();
        let from = until - SignedDuration::from_hours(self.range().1);
        let (from, until) = (from.to_string(), until.to_string());
        with_query("/v1/series", &[("from", &from), ("until", &until)])
    }

    pub(super) fn tabs(&self, w: Words) -> Vec<Link> {
        let chosen = self.range().0;
        let tab = |(name, _): (&str, i64)| Link {
            is_current: name == chosen,
            ..Link::to(
                with_query(ROOT, &[("range", name)]),
                w.t(&format!("range-{name}")),
            )
        };
        RANGES.into_iter().map(tab).collect()
    }
}

/// The answer of the API.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Figures {
    from: Timestamp,
    until: Timestamp,
    step_seconds: i64,
    data: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    name: String,
    combined: String,
    lines: Vec<Values>,
}

#[derive(Deserialize)]
struct Values {
    label: Option<String>,
    total: u64,
    values: Vec<u64>,
}

/// A card with drawn lines.
pub(super) struct Card {
    /// Part of ids in the page.
    pub(super) id: &'static str,
    pub(super) name: String,
    pub(super) about: String,
    /// The list behind it.
    pub(super) address: String,
    pub(super) sparks: Vec<Spark>,
    /// Links to parts of the list.
    pub(super) lines: Vec<PanelItem>,
}

/// A drawn line with its numbers.
pub(super) struct Spark {
    pub(super) id: &'static str,
    pub(super) name: String,
    /// The list behind it.
    pub(super) address: String,
    /// The figure that counts most.
    pub(super) figure: String,
    /// A description of the drawing, for people who do not see it.
    pub(super) description: String,
    /// The corners of the line.
    pub(super) points: String,
    /// When, and how much: the steps that are not zero.
    pub(super) rows: Vec<(String, String)>,
}

impl Figures {
    /// The time of the figures, in words.
    pub(super) fn span(&self, w: Words) -> String {
        let moment = |at| zone::formatted(at, w.zone(), "%Y-%m-%d %H:%M %Z");
        let step = duration(self.step_seconds.unsigned_abs(), w);
        let variables = [
            ("from", moment(self.from)),
            ("until", moment(self.until)),
            ("step", step),
        ];
        w.say("figures-span", &variables)
    }

    pub(super) fn cards(&self, visitor: &Visitor) -> Vec<Card> {
        let w = visitor.w;
        // The filter of the audit takes days of the reader's zone.
        let day = zone::formatted(self.from, w.zone(), "%Y-%m-%d");
        let audit = |kind| with_query("/console/audit", &[("type", kind), ("from", &day)]);
        let (decisions, starts) = (audit("DECISION_RECORDED"), audit("FLOW_STARTED"));
        let refusals = with_query(
            &format!("{ROOT}/refusals"),
            &[("from", &self.from.to_string())],
        );
        let (letters, hooks) = (format!("{ROOT}/dead-letters"), format!("{ROOT}/webhooks"));
        let jobs = format!("{ROOT}/jobs");
        let of = |id, name: &str, address: &str| self.spark(id, name, address, w);
        let card = |id, address: String, sparks: Vec<Option<Spark>>| Card {
            id,
            name: w.t(&format!("figures-{id}")).into_owned(),
            about: w.t(&format!("figures-{id}-about")).into_owned(),
            address,
            sparks: sparks.into_iter().flatten().collect(),
            lines: Vec::new(),
        };
        let throughput = vec![
            of("decisions", "decisions", &decisions),
            of("starts", "starts", &starts),
        ];
        let relay = vec![
            of("events-waiting", "events_waiting", &letters),
            of("events-oldest", "events_oldest_seconds", &letters),
        ];
        let webhooks = vec![
            of("deliveries-waiting", "deliveries_waiting", &hooks),
            of("deliveries-oldest", "deliveries_oldest_seconds", &hooks),
        ];
        let refused = vec![of("refusals", "refusals", &refusals)];
        vec![
            card("throughput", decisions.clone(), throughput),
            Card {
                lines: self.reasons(w),
                ..card("refused", refusals.clone(), refused)
            },
            card("relay", letters.clone(), relay),
            card("webhooks", hooks.clone(), webhooks),
            card(
                "jobs",
                jobs.clone(),
                vec![of("jobs", "jobs_failing", &jobs)],
            ),
        ]
    }

    fn series(&self, name: &str) -> Option<&Series> {
        self.data.iter().find(|series| series.name == name)
    }

    /// The most frequent reasons of refusals, each with the list of its attempts.
    fn reasons(&self, w: Words) -> Vec<PanelItem> {
        let from = self.from.to_string();
        let lines = self
            .series("refusals")
            .map_or(&[][..], |series| series.lines.as_slice());
        let line = |values: &Values| {
            let reason = values.label.clone().unwrap_or_default();
            let parameters = [("reason", reason.as_str()), ("from", from.as_str())];
            PanelItem {
                address: with_query(&format!("{ROOT}/refusals"), &parameters),
                detail: w.number(values.total),
                name: reason,
            }
        };
        lines.iter().take(REASONS_MAX).map(line).collect()
    }

    /// The line of all values of a series together.
    fn spark(&self, id: &'static str, name: &str, address: &str, w: Words) -> Option<Spark> {
        let series = self.series(name)?;
        let steps = (self.until.as_second() - self.from.as_second()) / self.step_seconds.max(1);
        let mut values = vec![0_u64; usize::try_from(steps).unwrap_or_default()];
        for line in &series.lines {
            for (sum, value) in values.iter_mut().zip(&line.values) {
                *sum = sum.saturating_add(*value);
            }
        }
        let text = |value: u64| {
            if name.ends_with("_seconds") {
                duration(value, w)
            } else {
                w.number(value)
            }
        };
        let peak = values.iter().copied().max().unwrap_or_default();
        let last = values.last().copied().unwrap_or_default();
        let figure = if series.combined == "sum" {
            text(
                values
                    .iter()
                    .fold(0, |sum, value| sum.saturating_add(*value)),
            )
        } else {
            text(last)
        };
        let variables = [("peak", text(peak)), ("last", text(last))];
        let moment = |place: usize| {
            let after = i64::try_from(place).unwrap_or_default() * self.step_seconds;
            let at = self.from + SignedDuration::from_secs(after);
            zone::formatted(at, w.zone(), "%Y-%m-%d %H:%M")
        };
        let rows = values.iter().enumerate().filter(|(_, value)| **value > 0);
        Some(Spark {
            id,
            name: w.t(&format!("figure-{id}")).into_owned(),
            address: address.to_owned(),
            figure: w.with(&format!("figure-{}", series.combined), "value", &figure),
            description: w.say("figure-described", &variables),
            points: points(&values),
            rows: rows
                .map(|(place, value)| (moment(place), text(*value)))
                .collect(),
        })
    }
}

/// The corners of a line through these values, the largest at the top.
fn points(values: &[u64]) -> String {
    let peak = values.iter().copied().max().unwrap_or_default().max(1);
    let (last, room) = (values.len().saturating_sub(1).max(1), HEIGHT - 2 * MARGIN);
    let corner = |(place, value): (usize, &u64)| {
        let up = u128::from(*value) * u128::from(room) / u128::from(peak);
        let y = u128::from(HEIGHT - MARGIN) - up;
        format!("{},{y}", place * WIDTH / last)
    };
    let corners: Vec<_> = values.iter().enumerate().map(corner).collect();
    corners.join(" ")
}

/// A duration in one unit: a larger unit from two of them on, or for exactly one.
fn duration(seconds: u64, w: Words) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    let (unit, count) = if seconds == HOUR || seconds >= 2 * HOUR {
        ("hours", seconds / HOUR)
    } else if seconds == MINUTE || seconds >= 2 * MINUTE {
        ("minutes", seconds / MINUTE)
    } else {
        ("seconds", seconds)
    };
    w.with(&format!("duration-{unit}"), "count", &w.number(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_spans_the_drawing_whatever_its_values() {
        assert_eq!(points(&[0, 5, 10]), "0,46 120,24 240,2");
        assert_eq!(points(&[0, 0]), "0,46 240,46");
        assert_eq!(points(&[7]), "0,2");
        assert_eq!(points(&[]), "");
        assert_eq!(points(&[u64::MAX, 0]), "0,2 240,46");
    }

    #[test]
    fn a_duration_is_told_in_a_unit_that_fits() {
        let w = Words::named("en").expect("English");
        let durations =
            [0, 59, 60, 90, 300, 3_600, 5_400, 90_000].map(|seconds| duration(seconds, w));
        assert_eq!(
            durations,
            [
                "0 s", "59 s", "1 min", "90 s", "5 min", "1 h", "90 min", "25 h"
            ]
        );
    }

    #[test]
    fn an_unknown_range_is_the_last_hour() {
        let of = |range: &str| {
            let range = range.to_owned();
            FiguresQuery { range }.range().0
        };
        assert_eq!(["", "century", "day"].map(of), ["hour", "hour", "day"]);
    }
}

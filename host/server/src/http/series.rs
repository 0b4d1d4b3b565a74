//! Series: figures of the tenant over time.

use std::collections::BTreeMap;

use axum::extract::State;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::extract::{Caller, Query};
use super::problem::Problem;
use super::value_error::of_parameter;
use wrkflw_core::moment;
use wrkflw_store::series::{self, MINUTES_KEPT, Series, SeriesValue, Span};

/// The default period of a series: the last hour.
const SPAN_DEFAULT: SignedDuration = SignedDuration::from_hours(1);
/// Steps to choose from if none is given, in seconds: the shortest that makes at most [`STEPS_WANTED`].
const STEPS: [i64; 6] = [60, 300, 900, 3_600, 7_200, 86_400];
const STEPS_WANTED: i64 = 121;
const HOUR: i64 = 3_600;
/// The longest step, in seconds.
const STEP_MAX: i64 = 86_400;
/// The most steps of an answer: the minutes of a day, and a few.
const STEPS_MAX: i64 = 1_500;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show))
}

/// The name of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum SeriesName {
    /// Decisions that were recorded.
    Decisions,
    /// Instances that were started.
    Starts,
    /// Commands that were refused, with a line for each reason.
    Refusals,
    /// Events that wait for Kafka.
    EventsWaiting,
    /// The age of the oldest event that waits for Kafka.
    EventsOldestSeconds,
    /// Deliveries that wait for their receiver.
    DeliveriesWaiting,
    /// The age of the oldest delivery that waits.
    DeliveriesOldestSeconds,
    /// Jobs that failed and wait to be tried again.
    JobsFailing,
}

impl From<Series> for SeriesName {
    fn from(series: Series) -> SeriesName {
        match series {
            Series::Decisions => SeriesName::Decisions,
            Series::Starts => SeriesName::Starts,
            Series::Refusals => SeriesName::Refusals,
            Series::EventsWaiting => SeriesName::EventsWaiting,
            Series::EventsOldestSeconds => SeriesName::EventsOldestSeconds,
            Series::DeliveriesWaiting => SeriesName::DeliveriesWaiting,
            Series::DeliveriesOldestSeconds => SeriesName::DeliveriesOldestSeconds,
            Series::JobsFailing => SeriesName::JobsFailing,
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SeriesQuery {
    /// Only this one. Default: all.
    #[param(inline)]
    pub name: Option<SeriesName>,
    /// Where it begins, rounded down to a whole step. Default: an hour before `until`.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub from: Option<Timestamp>,
    /// Where it ends, rounded up to a whole step. Default: now.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub until: Option<Timestamp>,
    /// The length of a step in seconds, a multiple of 60. Default: one that makes at most 121 steps.
    #[param(minimum = 60, maximum = 86400)]
    pub step_seconds: Option<u32>,
}

/// How the values of a step become one.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Combined {
    /// They are added.
    Sum,
    /// The largest counts.
    Maximum,
}

/// One line of a series.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SeriesLine {
    /// The reason of refusals; `other` for all but the 20 most frequent. None for a series with one line.
    pub label: Option<String>,
    /// All values added, or the largest.
    pub total: u64,
    /// A value for each step, beginning at `from`.
    #[schema(max_items = 1500)]
    pub values: Vec<u64>,
}

/// Figures of one kind over time.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SeriesView {
    pub name: SeriesName,
    pub combined: Combined,
    /// The largest first.
    #[schema(max_items = 21)]
    pub lines: Vec<SeriesLine>,
}

/// Figures of the tenant over time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SeriesAnswer {
    #[schema(value_type = String, format = DateTime)]
    pub from: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub until: Timestamp,
    #[schema(minimum = 60)]
    pub step_seconds: u32,
    #[schema(max_items = 8)]
    pub data: Vec<SeriesView>,
}

/// The span of the answer in whole steps, and their number.
fn span(query: &SeriesQuery, now: Timestamp) -> Result<(Span, usize), Problem> {
    let until = query.until.unwrap_or(now).max(Timestamp::UNIX_EPOCH);
    let from = query.from.map_or_else(
        || until.checked_sub(SPAN_DEFAULT).unwrap_or(until),
        |from| from.max(Timestamp::UNIX_EPOCH),
    );
    if from >= until {
        return Err(of_parameter("from", "from must be before until"));
    }
    let (from, until) = (from.as_second(), (until.as_millisecond() + 999) / 1_000);
    let has_hours = from < now.as_second() / HOUR * HOUR - MINUTES_KEPT.as_secs().cast_signed();
    let step = match query.step_seconds.map(i64::from) {
        Some(step) if step % 60 == 0 && (60..=STEP_MAX).contains(&step) => step,
        Some(_) => {
            let detail = format!("stepSeconds is a multiple of 60 up to {STEP_MAX}");
            return Err(of_parameter("stepSeconds", detail));
        }
        None => {
            let fits = |step: &&i64| {
                (until - from) / **step < STEPS_WANTED && !(has_hours && **step < HOUR)
            };
            *STEPS.iter().find(fits).unwrap_or(&STEP_MAX)
        }
    };
    let (first, last) = (from / step, (until + step - 1) / step);
    let steps = last - first;
    if steps > STEPS_MAX {
        let detail = format!(
            "at most {STEPS_MAX} steps, not {steps}: choose a longer stepSeconds or a shorter time"
        );
        return Err(of_parameter("stepSeconds", detail));
    }
    let moment = |second: i64| Timestamp::from_second(second).unwrap_or(Timestamp::MAX);
    let span = Span {
        from: moment(first * step),
        until: moment(last * step),
        step,
    };
    Ok((span, usize::try_from(steps).unwrap_or_default()))
}

/// The lines of a series among these values, the largest first. A series without labels always has one.
fn lines(series: Series, found: &[SeriesValue], steps: usize) -> Vec<SeriesLine> {
    let is_labelled = series == Series::Refusals;
    let line = |label: &str| SeriesLine {
        label: is_labelled.then(|| label.to_owned()),
        total: 0,
        values: vec![0; steps],
    };
    let mut lines = BTreeMap::new();
    if !is_labelled {
        lines.insert("", line(""));
    }
    for one in found.iter().filter(|one| one.series == series.name()) {
        let label = one.label.as_str();
        let line = lines.entry(label).or_insert_with(|| line(label));
        let place = usize::try_from(one.step).ok();
        if let Some(place) = place.and_then(|place| line.values.get_mut(place)) {
            let value = one.value.cast_unsigned();
            *place = value;
            line.total = if series.is_counted() {
                line.total + value
            } else {
                line.total.max(value)
            };
        }
    }
    let mut lines: Vec<_> = lines.into_values().collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.total));
    lines
}

fn view(series: Series, found: &[SeriesValue], steps: usize) -> SeriesView {
    SeriesView {
        name: series.into(),
        combined: if series.is_counted() {
            Combined::Sum
        } else {
            Combined::Maximum
        },
        lines: lines(series, found, steps),
    }
}

/// Returns the figures of the tenant over time: all series, or one.
///
/// Hosts write what they counted every 10 s, so the last step may grow. A step without a value is 0: nothing happened, or no host
/// ran. Values of a minute become values of an hour after a day, which are at the beginning of the hour, and are deleted after
/// seven days. What a host counted in the seconds before it failed is lost.
#[utoipa::path(get, path = "/v1/series", tag = "operation", operation_id = "getSeries", params(SeriesQuery),
    responses((status = 200, body = SeriesAnswer)))]
pub(super) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<SeriesQuery>,
) -> Result<axum::Json<SeriesAnswer>, Problem> {
    app.engine.permit(&who, "dead-letter:read").await?;
    let (span, steps) = span(&query, app.engine.clock().now())?;
    let is_wanted = |series: &Series| {
        query
            .name
            .is_none_or(|name| name == SeriesName::from(*series))
    };
    let wanted: Vec<_> = Series::ALL.into_iter().filter(is_wanted).collect();
    let reader = app.engine.reader();
    let found = series::list(reader, who.tenant, &wanted, span).await?;
    let views = wanted.into_iter().map(|series| view(series, &found, steps));
    Ok(axum::Json(SeriesAnswer {
        from: span.from,
        until: span.until,
        step_seconds: u32::try_from(span.step).unwrap_or(u32::MAX),
        data: views.collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(from: Option<&str>, until: &str, step_seconds: Option<u32>) -> SeriesQuery {
        let moment = |text: &str| text.parse().expect("a moment");
        SeriesQuery {
            name: None,
            from: from.map(moment),
            until: Some(moment(until)),
            step_seconds,
        }
    }

    fn spanned(query: &SeriesQuery) -> Result<(String, String, i64, usize), String> {
        let now = "2030-01-31T12:00:30Z".parse().expect("a moment");
        let found = span(query, now);
        let listed = |(span, steps): (Span, usize)| {
            (
                span.from.to_string(),
                span.until.to_string(),
                span.step,
                steps,
            )
        };
        found.map(listed).map_err(|problem| problem.detail)
    }

    #[test]
    fn a_span_has_whole_steps_and_a_bounded_number_of_them() {
        let hour = spanned(&query(None, "2030-01-31T12:00:30Z", None));
        let (from, until) = ("2030-01-31T11:00:00Z", "2030-01-31T12:01:00Z");
        assert_eq!(hour, Ok((from.to_owned(), until.to_owned(), 60, 61)));
        let of = |from, step| spanned(&query(Some(from), "2030-01-31T12:00:00Z", step));
        let steps = |from, step| of(from, step).map(|(.., step, steps)| (step, steps));
        assert_eq!(steps("2030-01-30T12:00:00Z", None), Ok((900, 96)));
        assert_eq!(steps("2030-01-30T12:00:00Z", Some(60)), Ok((60, 1_440)));
        assert_eq!(steps("2030-01-24T12:00:00Z", None), Ok((7_200, 84)));
        // Older than a day there are hours only.
        let old = query(Some("2030-01-29T12:00:00Z"), "2030-01-29T13:00:00Z", None);
        assert_eq!(spanned(&old).map(|(.., step, _)| step), Ok(3_600));
        for (from, step, part) in [
            (
                "2030-01-24T12:00:00Z",
                Some(60),
                "at most 1500 steps, not 10080",
            ),
            ("2030-01-31T12:00:00Z", None, "before until"),
            ("2030-01-31T11:00:00Z", Some(90), "multiple of 60"),
            ("2030-01-31T11:00:00Z", Some(0), "multiple of 60"),
            ("2030-01-31T11:00:00Z", Some(86_460), "multiple of 60"),
            ("0001-01-01T00:00:00Z", None, "at most 1500 steps"),
        ] {
            let refused = of(from, step).expect_err("too much");
            assert!(refused.contains(part), "{refused}");
        }
    }

    #[test]
    fn each_label_has_a_line_and_the_largest_is_first() {
        let value = |series: Series, label: &str, step, value| SeriesValue {
            series: series.name().to_owned(),
            label: label.to_owned(),
            step,
            value,
        };
        let found = [
            value(Series::EventsWaiting, "", 0, 4),
            value(Series::EventsWaiting, "", 1, 2),
            value(Series::Refusals, "a", 0, 1),
            value(Series::Refusals, "b", 1, 2),
            value(Series::Refusals, "b", 2, 3),
        ];
        let shown = lines(Series::Refusals, &found, 3);
        let listed: Vec<_> = shown
            .iter()
            .map(|line| (line.label.as_deref(), line.total, line.values.clone()))
            .collect();
        let (most, least) = ((Some("b"), 5, vec![0, 2, 3]), (Some("a"), 1, vec![1, 0, 0]));
        assert_eq!(listed, [most, least]);
        let shown = lines(Series::EventsWaiting, &found, 2);
        assert_eq!((shown[0].total, shown[0].label.as_deref()), (4, None));
        assert_eq!(lines(Series::Starts, &found, 2)[0].values, [0, 0]);
        assert!(lines(Series::Refusals, &[], 2).is_empty());
    }
}

//! `wrkflw series`: figures over time: decisions, starts, refusals and backlogs.

use anyhow::Result;
use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Environment;
use super::connection::ConnectionArgs;
use super::output::{Column, Format, Output};

const LINES: &[Column] = &[
    ("SERIES", "/series"),
    ("REASON", "/label"),
    ("TOTAL", "/total"),
    ("LAST", "/last"),
];
const VALUES: &[Column] = &[("AT", "/at"), ("REASON", "/label"), ("VALUE", "/value")];

#[derive(Debug, Subcommand)]
pub(super) enum SeriesCommand {
    /// List all series with their totals of a time: sums of decisions, starts and refusals, the largest value of the others
    List(SpanArgs),
    /// Show the values of one series that are not 0, step by step
    Show {
        /// `decisions`, `starts`, `refusals`, `events_waiting`, `events_oldest_seconds`, `deliveries_waiting`,
        /// `deliveries_oldest_seconds` or `jobs_failing`
        name: String,
        #[command(flatten)]
        span: SpanArgs,
    },
}

#[derive(Debug, Args)]
pub(super) struct SpanArgs {
    /// From this time on, as 2030-01-31T08:00:00Z; default: an hour before the end
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Until this time; default: now
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// The length of a step in seconds, a multiple of 60
    #[arg(long, value_name = "SECONDS")]
    step_seconds: Option<u32>,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl SpanArgs {
    fn query(&self, name: Option<String>) -> [(&'static str, Option<String>); 4] {
        [
            ("name", name),
            ("from", self.from.clone()),
            ("until", self.until.clone()),
            (
                "stepSeconds",
                self.step_seconds.map(|step| step.to_string()),
            ),
        ]
    }
}

pub(super) fn run(command: SeriesCommand, output: Output, environment: &Environment) -> Result<()> {
    let (name, span) = match command {
        SeriesCommand::List(span) => (None, span),
        SeriesCommand::Show { name, span } => (Some(name), span),
    };
    let is_list = name.is_none();
    let client = span.connection.open(environment)?;
    let answer = client.get("/v1/series", &span.query(name))?;
    if output.format == Format::Json {
        return output.record(&answer, &[]);
    }
    let rows = if is_list {
        totals(&answer)
    } else {
        values(&answer)
    };
    let columns = if is_list { LINES } else { VALUES };
    output.list(&json!({ "data": rows }), columns)
}

/// Each line of each series, with the name of its series.
fn lines(answer: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    let series = answer["data"].as_array().into_iter().flatten();
    series.flat_map(|series| {
        let lines = series["lines"].as_array().into_iter().flatten();
        lines.map(move |line| (&series["name"], line))
    })
}

fn totals(answer: &Value) -> Vec<Value> {
    let row = |(series, line): (&Value, &Value)| {
        let last = line["values"].as_array().and_then(|values| values.last());
        json!({ "series": series, "label": line["label"], "total": line["total"], "last": last })
    };
    lines(answer).map(row).collect()
}

fn values(answer: &Value) -> Vec<Value> {
    let from: Option<Timestamp> = answer["from"].as_str().and_then(|text| text.parse().ok());
    let step = SignedDuration::from_secs(answer["stepSeconds"].as_i64().unwrap_or_default());
    let mut rows = Vec::new();
    for (_, line) in lines(answer) {
        let mut at = from;
        for value in line["values"].as_array().into_iter().flatten() {
            if value.as_u64().is_some_and(|value| value > 0) {
                let at = at.map(|at| at.to_string());
                rows.push(json!({ "at": at, "label": line["label"], "value": value }));
            }
            at = at.and_then(|at| at.checked_add(step).ok());
        }
    }
    rows
}

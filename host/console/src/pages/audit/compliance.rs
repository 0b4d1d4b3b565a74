//! The report of self-approvals: decisions of people on their own requests, and refused attempts at such decisions.

use askama::Template;
use axum::extract::Query;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

use crate::api::{Trouble, with_query};
use crate::list::{Cell, Link, Table};
use crate::session::{Answer, Visitor};
use crate::shell::{Shell, page};
use crate::zone;

/// The query parameters of the page.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ComplianceQuery {
    #[serde(rename = "definitionKey")]
    definition: String,
    /// Days, in the zone of the reader.
    from: String,
    until: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    decisions_examined: u64,
    own_work: u64,
    self_approvals: u64,
    findings: Vec<Finding>,
    refused_attempts: u64,
    refused: Vec<RefusedAttemptRow>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    instance_id: Uuid,
    definition_key: Option<String>,
    state: Option<String>,
    outcome: String,
    actor: String,
    on_behalf_of: Option<String>,
    decided_at: Timestamp,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RefusedAttemptRow {
    occurred_at: Timestamp,
    actor: String,
    action: String,
    instance_id: Option<Uuid>,
    task_id: Option<Uuid>,
    detail: String,
}

#[derive(Template)]
#[template(path = "compliance.html")]
struct Page {
    shell: Shell,
    tabs: Vec<Link>,
    query: ComplianceQuery,
    refusal: Option<Trouble>,
    facts: Vec<(String, String)>,
    /// Whether the report has self-approvals. None if the API refused the query.
    is_broken: Option<bool>,
    findings: Table,
    refused: Table,
}

pub(super) async fn show(Query(query): Query<ComplianceQuery>, visitor: Visitor) -> Answer {
    let w = visitor.w;
    let day = |text: &str| zone::day(text, w.zone());
    let (from, until) = (day(&query.from), day(&query.until));
    let parameters = [
        ("definitionKey", query.definition.trim()),
        ("from", from.as_str()),
        ("until", &until),
    ];
    let path = with_query("/v1/compliance/self-approvals", &parameters);
    let (report, refusal, status) = match visitor.api.get::<Report>(&path).await {
        Ok(report) => (Some(report), None, StatusCode::OK),
        // If the period is invalid or too long, the page shows the error above the form.
        Err(trouble) if matches!(trouble.status, 400 | 422) => {
            let status = trouble.status();
            (None, Some(trouble), status)
        }
        Err(trouble) => return Err(visitor.halt(&trouble)),
    };
    let heading = w.t("compliance").into_owned();
    let template = Page {
        shell: Shell::of(&visitor, "audit", heading).await,
        tabs: super::tabs(&visitor, "compliance"),
        query,
        refusal,
        is_broken: report.as_ref().map(|report| report.self_approvals > 0),
        facts: report.as_ref().map_or_else(Vec::new, |report| {
            let counts = [
                ("compliance-examined", report.decisions_examined),
                ("compliance-own-work", report.own_work),
                ("compliance-self-approvals", report.self_approvals),
                ("compliance-refused", report.refused_attempts),
            ];
            let fact = |(id, count): (&str, u64)| (w.t(id).into_owned(), w.number(count));
            counts.into_iter().map(fact).collect()
        }),
        findings: findings(&visitor, report.as_ref()),
        refused: attempts(&visitor, report.as_ref()),
    };
    Ok(page(status, &template))
}

/// The link to an instance.
fn instance(visitor: &Visitor, id: Uuid) -> Cell {
    let name = visitor.w.t("stream-instance");
    Cell::link(name, format!("/console/instances/{id}")).below(id.to_string())
}

fn findings(visitor: &Visitor, report: Option<&Report>) -> Table {
    let w = visitor.w;
    let row = |one: &Finding| {
        let place = [&one.definition_key, &one.state];
        let place = place.into_iter().flatten().cloned();
        let who = match &one.on_behalf_of {
            Some(other) => w.say("holder-for", &[("owner", &one.actor), ("other", other)]),
            None => one.actor.clone(),
        };
        vec![
            Cell::when(one.decided_at, w),
            Cell::text(who),
            Cell::text(one.outcome.as_str()).below(place.collect::<Vec<_>>().join(" · ")),
            instance(visitor, one.instance_id),
        ]
    };
    let rows = report.map_or_else(Vec::new, |report| report.findings.iter().map(row).collect());
    let columns = [
        "column-when",
        "column-actor",
        "column-decision",
        "column-about",
    ];
    Table::new(w, &w.t("compliance-self-approvals"), &columns, rows)
}

fn attempts(visitor: &Visitor, report: Option<&Report>) -> Table {
    let w = visitor.w;
    let row = |one: &RefusedAttemptRow| {
        let about = match (one.instance_id, one.task_id) {
            (Some(id), _) => Some(instance(visitor, id)),
            // For a command on a task, the API returns only the id of the task.
            (None, Some(task)) => Some(Cell::text(w.t("stream-task")).below(task.to_string())),
            (None, None) => None,
        };
        vec![
            Cell::when(one.occurred_at, w),
            Cell::text(one.actor.as_str()),
            Cell::text(one.action.as_str()).below(one.detail.as_str()),
            about.unwrap_or_default(),
        ]
    };
    let rows = report.map_or_else(Vec::new, |report| report.refused.iter().map(row).collect());
    let columns = [
        "column-when",
        "column-actor",
        "column-attempt",
        "column-about",
    ];
    Table::new(w, &w.t("compliance-refused"), &columns, rows)
}

//! Operations on many instances: all of them, and one with the result of each instance.

use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use askama::Template;

use super::{ROOT, trail};
use crate::api::with_query;
use crate::language::Words;
use crate::list::{Cell, Link, ListQuery, Listing, Paged, Table};
use crate::posted::Posted;
use crate::session::{Answer, Visitor};
use crate::shell::{Shell, page};

const PAGE_ROWS: &str = "50";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Operation {
    id: Uuid,
    action: String,
    status: String,
    settings: Value,
    requested_by: String,
    created_at: Timestamp,
    total: u32,
    done: u32,
    refused: u32,
    failed: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    instance_id: Uuid,
    result: Option<String>,
    detail: Option<String>,
}

impl Operation {
    fn address(&self) -> String {
        format!("{ROOT}/bulk/{}", self.id)
    }

    fn runs(&self) -> bool {
        self.status == "RUNNING"
    }

    fn name(&self, w: Words) -> String {
        let known = w.known(&format!("bulk-{}", self.action));
        known.map_or_else(|| self.action.clone(), std::borrow::Cow::into_owned)
    }

    /// The definition and its versions.
    fn about(&self) -> String {
        let text = |name: &str| match &self.settings[name] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let parts = [text("definitionKey"), text("fromVersion"), text("version")];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(" · ")
    }

    fn counts(&self, w: Words) -> String {
        let counts = [
            ("instances", w.n("instances-count", self.total)),
            ("done", w.number(self.done)),
            ("refused", w.number(self.refused)),
            ("failed", w.number(self.failed)),
        ];
        w.say("bulk-counts", &counts)
    }
}

pub(super) async fn list(Query(query): Query<ListQuery>, visitor: Visitor) -> Answer {
    let w = visitor.w;
    let parameters = [("limit", PAGE_ROWS), ("after", query.after.as_str())];
    let found: Paged<Operation> = visitor
        .get(&with_query("/v1/operations", &parameters))
        .await?;
    let row = |one: &Operation| {
        vec![
            Cell::link(one.name(w), one.address()).below(one.about()),
            Cell::text(one.status.as_str()),
            Cell::text(one.counts(w)),
            Cell::text(one.requested_by.as_str()),
            Cell::when(one.created_at, w),
        ]
    };
    let rows = found.data.iter().map(row).collect();
    let heading = w.t("bulk-operations").into_owned();
    let columns = [
        "column-operation",
        "column-status",
        "column-progress",
        "column-actor",
        "column-since",
    ];
    let table = Table::new(w, &heading, &columns, rows);
    let listing = Listing {
        trail: trail(&visitor),
        about: w.t("bulk-about").into_owned(),
        empty: w.t("bulk-empty").into_owned(),
        ..Listing::new(&visitor, "operations", heading, table).await
    };
    let path = format!("{ROOT}/bulk");
    let listing = listing.paged(&path, &[], &query, found.page.next.as_ref());
    Ok(page(StatusCode::OK, &listing))
}

#[derive(Template)]
#[template(path = "bulk_operation.html")]
struct BulkOperationPage {
    shell: Shell,
    trail: Vec<Link>,
    heading: String,
    about: String,
    counts: String,
    /// Whether it runs, so that the page looks again by itself.
    runs: bool,
    here: String,
    table: Table,
    first: Option<String>,
    next: Option<String>,
}

pub(super) async fn show(
    Path(id): Path<Uuid>,
    Query(query): Query<ListQuery>,
    visitor: Visitor,
) -> Answer {
    let w = visitor.w;
    let operation: Operation = visitor.get(&format!("/v1/operations/{id}")).await?;
    let parameters = [("limit", PAGE_ROWS), ("after", query.after.as_str())];
    let path = with_query(&format!("/v1/operations/{id}/items"), &parameters);
    let items: Paged<Item> = visitor.get(&path).await?;
    let row = |one: &Item| {
        let result = one.result.as_deref().unwrap_or("waiting");
        let shown = w.known(&format!("bulk-result-{result}"));
        let shown = shown.map_or_else(|| result.to_owned(), std::borrow::Cow::into_owned);
        let class = match result {
            "done" => "good",
            "waiting" => "waiting",
            _ => "bad",
        };
        vec![
            Cell::link(
                one.instance_id.to_string(),
                format!("/console/instances/{}", one.instance_id),
            ),
            Cell::badge(shown, class).below(one.detail.clone().unwrap_or_default()),
        ]
    };
    let rows = items.data.iter().map(row).collect();
    let mut trail = trail(&visitor);
    trail.push(Link::to(format!("{ROOT}/bulk"), w.t("bulk-operations")));
    let here = operation.address();
    let heading = operation.name(w);
    let template = BulkOperationPage {
        shell: Shell::of(&visitor, "operations", heading.clone()).await,
        trail,
        about: operation.about(),
        counts: operation.counts(w),
        runs: operation.runs(),
        table: Table::new(w, &heading, &["column-instance", "column-result"], rows),
        first: (!query.after.is_empty()).then(|| here.clone()),
        next: items
            .page
            .next
            .map(|next| with_query(&here, &[("after", &next)])),
        here,
        heading,
    };
    Ok(page(StatusCode::OK, &template))
}

/// Ends an operation early.
pub(super) async fn stop(Path(id): Path<Uuid>, Posted { visitor, .. }: Posted) -> Answer {
    let path = format!("/v1/operations/{id}/stop");
    let _: Value = visitor.post(&path, &json!({}), None).await?;
    Ok(Redirect::to(&format!("{ROOT}/bulk/{id}")).into_response())
}

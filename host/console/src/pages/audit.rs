//! The audit of the tenant: what happened, by actor, type and time. `export` is the same as a file, `checkpoints` the signed roots,
//! `compliance` the report of self-approvals, `custody` the chain of custody.

mod checkpoints;
mod compliance;
pub(super) mod custody;
mod export;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::routing::get;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::api::{Trouble, with_query};
use crate::data::beginning;
use crate::language::Words;
use crate::list::{Cell, Link, PageInfo, Table};
use crate::moment::Moment;
use crate::session::{Answer, Visitor};
use crate::shell::{Shell, page};
use crate::{Console, zone};

/// The address of the entries.
const ROOT: &str = "/console/audit";
const PAGE_ROWS: &str = "50";
/// How many characters of an entry's content a row shows. The page of the instance shows all.
const CONTENT_CHARS_MAX: usize = 200;

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console/audit", get(show))
        .route("/console/audit/entries.jsonl", get(export::file))
        .route("/console/audit/checkpoints", get(checkpoints::show))
        .route("/console/audit/self-approvals", get(compliance::show))
        .route("/console/instances/{id}/custody", get(custody::of_instance))
        .route(
            "/console/instances/{id}/custody.csv",
            get(custody::file_of_instance),
        )
        .route(
            "/console/entities/{type}/{id}/custody",
            get(custody::of_entity),
        )
        .route(
            "/console/entities/{type}/{id}/custody.csv",
            get(custody::file_of_entity),
        )
}

/// The pages of the audit.
fn tabs(visitor: &Visitor, current: &str) -> Vec<Link> {
    let pages = [
        ("audit-entries", "/console/audit"),
        ("checkpoints", "/console/audit/checkpoints"),
        ("compliance", "/console/audit/self-approvals"),
    ];
    let link = |(name, address): (&str, &str)| Link {
        is_current: name == current,
        ..Link::to(address, visitor.w.t(name))
    };
    pages.into_iter().map(link).collect()
}

/// The parameters of the address. Empty values count as missing, because forms send them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct AuditPageQuery {
    actor: String,
    #[serde(rename = "type")]
    kind: String,
    /// Days, in the zone of the reader.
    from: String,
    until: String,
    /// As in the API. Empty: the newest first.
    sort: String,
    after: String,
}

impl AuditPageQuery {
    /// The address of a page with these filters.
    fn address(&self, page: &str, after: &str) -> String {
        let parameters = [
            ("actor", self.actor.as_str()),
            ("type", &self.kind),
            ("from", &self.from),
            ("until", &self.until),
            ("sort", &self.sort),
            ("after", after),
        ];
        with_query(page, &parameters)
    }

    /// The path in the API of the entries behind `after` in this order.
    fn path(&self, sort: &str, limit: &str, after: &str, w: Words) -> String {
        let day = |text: &str| zone::day(text, w.zone());
        let (from, until) = (day(&self.from), day(&self.until));
        let parameters = [
            ("actor", self.actor.as_str()),
            ("type", &self.kind),
            ("from", &from),
            ("until", &until),
            ("sort", sort),
            ("limit", limit),
            ("after", after),
        ];
        with_query("/v1/audit", &parameters)
    }
}

/// An entry with the stream that it is in.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(rename = "type")]
    kind: String,
    actor: Option<String>,
    occurred_at: Timestamp,
    payload: Box<RawValue>,
    stream: String,
    stream_id: Uuid,
    leaf: u64,
}

/// A page of entries.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entries {
    data: Vec<Entry>,
    page: PageInfo,
    last_checkpoint_at: Option<Timestamp>,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct Page {
    shell: Shell,
    tabs: Vec<Link>,
    query: AuditPageQuery,
    refusal: Option<Trouble>,
    /// When the last checkpoint was signed. The page has only entries that it covers.
    signed: Option<Moment>,
    table: Table,
    /// The same entries as a file.
    file: String,
    first: Option<String>,
    next: Option<String>,
}

async fn show(Query(query): Query<AuditPageQuery>, visitor: Visitor) -> Answer {
    let w = visitor.w;
    let sort = match query.sort.as_str() {
        "" => "-occurredAt",
        sort => sort,
    };
    let path = query.path(sort, PAGE_ROWS, &query.after, w);
    let (found, refusal, status) = match visitor.api.get::<Entries>(&path).await {
        Ok(found) => (Some(found), None, StatusCode::OK),
        // The page shows a refused filter with its error, so that the reader can change it.
        Err(trouble) if matches!(trouble.status, 400 | 422) => {
            let status = trouble.status();
            (None, Some(trouble), status)
        }
        Err(trouble) => return Err(visitor.halt(&trouble)),
    };
    let next = found.as_ref().and_then(|found| found.page.next.clone());
    let signed = found.as_ref().and_then(|found| found.last_checkpoint_at);
    let entries = found.map_or_else(Vec::new, |found| found.data);
    let row = |entry: &Entry| {
        let stream = w.known(&format!("stream-{}", entry.stream));
        let stream = stream.map_or_else(|| entry.stream.clone(), std::borrow::Cow::into_owned);
        let about = match entry.stream.as_str() {
            "instance" => {
                let address = format!("/console/instances/{}", entry.stream_id);
                Cell::link(stream, address).below(entry.stream_id.to_string())
            }
            _ => Cell::text(stream),
        };
        let actor = entry.actor.clone();
        vec![
            Cell::when(entry.occurred_at, w).below(entry.leaf.to_string()),
            Cell::text(actor.unwrap_or_else(|| w.t("audit-host").into_owned())),
            Cell::text(entry.kind.as_str()).below(content(&entry.payload)),
            about,
        ]
    };
    let heading = w.t("audit").into_owned();
    let columns = [
        "column-when",
        "column-actor",
        "column-entry",
        "column-about",
    ];
    let template = Page {
        shell: Shell::of(&visitor, "audit", heading.clone()).await,
        tabs: tabs(&visitor, "audit-entries"),
        table: Table::new(w, &heading, &columns, entries.iter().map(row).collect()),
        refusal,
        signed: signed.map(|at| Moment::of(at, w)),
        first: (!query.after.is_empty()).then(|| query.address(ROOT, "")),
        next: next.map(|next| query.address(ROOT, &next)),
        file: query.address(export::ADDRESS, ""),
        query,
    };
    Ok(page(status, &template))
}

/// The beginning of an entry's content, with all its digits.
fn content(payload: &RawValue) -> String {
    beginning(payload.get(), CONTENT_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_of_an_entry_has_its_digits() {
        let entry = |payload: &str| {
            let text = format!(
                r#"{{"type":"FLOW_STARTED","actor":"ann","occurredAt":"2030-01-31T08:00:00Z","payload":{payload},
                "stream":"instance","streamId":"01900000-0000-7000-8000-000000000007","leaf":1}}"#
            );
            let entry = serde_json::from_str::<Entry>(&text).expect("an entry");
            content(&entry.payload)
        };
        let sum = r#"{"sum":50000.000000000000000001}"#;
        assert_eq!(entry(sum), sum);
        let long = format!("\"{}\"", "ä".repeat(CONTENT_CHARS_MAX));
        let shown = entry(&long);
        assert_eq!(shown.chars().count(), CONTENT_CHARS_MAX + 1, "{shown}");
        assert!(shown.ends_with('…'), "{shown}");
    }
}

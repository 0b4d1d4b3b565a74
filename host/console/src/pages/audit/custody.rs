//! The chain of custody of an instance or an entity: every decision and delegation with its seal, as one page for printing, and as a file.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

use wrkflw_runtime::clock::Clock;

use crate::Console;
use crate::api::{Trouble, segment, with_query};
use crate::language::Words;
use crate::list::{Cell, Link, Paged, Table};
use crate::moment::Moment;
use crate::names::Names;
use crate::session::{Answer, Visitor, while_signed_in};
use crate::shell::{Shell, page};

/// Limit of the pages of the API in one page for printing, a hundred records each. The file has all records.
const PAGES_MAX: usize = 10;
const PAGE_ROWS: &str = "100";

/// A decision, a delegation or a return.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CustodyRecord {
    instance_id: Uuid,
    definition_key: String,
    definition_version: u32,
    entity_type: String,
    entity_id: String,
    action: String,
    state: Option<String>,
    outcome: Option<String>,
    actor: Option<String>,
    on_behalf_of: Option<String>,
    comment: Option<String>,
    owner: Option<String>,
    reason: Option<String>,
    occurred_at: Timestamp,
    signature: Option<Signature>,
    entry: Entry,
}

#[derive(Deserialize)]
struct Signature {
    status: String,
}

#[derive(Deserialize)]
struct Entry {
    seq: u64,
    hash: String,
}

#[derive(Template)]
#[template(path = "custody.html")]
struct Page {
    shell: Shell,
    trail: Vec<Link>,
    about: String,
    /// When it was made.
    made: Moment,
    by: String,
    /// How many seals are valid, and whether all are.
    seals: (String, bool),
    file: String,
    is_more: bool,
    table: Table,
}

pub(super) async fn of_instance(Path(id): Path<Uuid>, visitor: Visitor) -> Answer {
    let path = format!("/v1/instances/{id}/custody");
    let here = format!("/console/instances/{id}");
    let back = Link::to(here.as_str(), visitor.w.t("who-instance"));
    show(&visitor, &path, &here, id.to_string(), vec![back]).await
}

pub(super) async fn of_entity(
    Path((kind, id)): Path<(String, String)>,
    visitor: Visitor,
) -> Answer {
    let place = format!("entities/{}/{}", segment(&kind), segment(&id));
    let (path, here) = (format!("/v1/{place}/custody"), format!("/console/{place}"));
    let back = Link::to("/console/audit", visitor.w.t("audit"));
    show(&visitor, &path, &here, format!("{kind} {id}"), vec![back]).await
}

async fn show(
    visitor: &Visitor,
    path: &str,
    here: &str,
    about: String,
    trail: Vec<Link>,
) -> Answer {
    let w = visitor.w;
    let read = records(visitor, path, u64::MAX).await;
    let (records, is_more) = read.map_err(|trouble| visitor.halt(&trouble))?;
    let ids = records.iter().flat_map(|one| {
        let people = [&one.actor, &one.on_behalf_of, &one.owner];
        people.into_iter().flatten()
    });
    let ids: Vec<_> = ids.map(String::as_str).collect();
    let names = Names::of_people(visitor, &ids).await;
    let is_valid = |one: &CustodyRecord| status(one) == "VALID";
    let valid = records.iter().filter(|one| is_valid(one)).count();
    let counts = [("valid", w.number(valid)), ("all", w.number(records.len()))];
    let heading = w.t("custody").into_owned();
    let rows = records.iter().map(|one| row(one, &names, w)).collect();
    let columns = [
        "column-when",
        "column-custody",
        "column-actor",
        "comment",
        "column-seal",
        "column-entry",
    ];
    let shell = Shell::of(visitor, "audit", heading.clone()).await;
    let template = Page {
        by: shell
            .reader
            .as_ref()
            .map_or_else(String::new, |reader| reader.name.clone()),
        shell,
        trail,
        about: match records.first() {
            Some(one) => format!("{} {} · {about}", one.entity_type, one.entity_id),
            None => about,
        },
        made: Moment::of(Clock::System.now(), w),
        seals: (w.say("custody-seals", &counts), valid == records.len()),
        file: format!("{here}/custody.csv"),
        is_more,
        table: Table::new(w, &heading, &columns, rows),
    };
    Ok(page(StatusCode::OK, &template))
}

/// The first records, oldest first, up to the page that reaches the entry with the number `until`. Also whether more records come
/// before that entry.
async fn records(
    visitor: &Visitor,
    path: &str,
    until: u64,
) -> Result<(Vec<CustodyRecord>, bool), Trouble> {
    let (mut records, mut after) = (Vec::<CustodyRecord>::new(), Some(String::new()));
    for _ in 0..PAGES_MAX {
        let Some(from) = after.take() else { break };
        let path = with_query(path, &[("limit", PAGE_ROWS), ("after", &from)]);
        let found: Paged<CustodyRecord> = visitor.api.get(&path).await?;
        records.extend(found.data);
        after = found.page.next;
        after.take_if(|_| records.last().is_some_and(|last| last.entry.seq >= until));
    }
    Ok((records, after.is_some()))
}

/// The seals of the decisions and delegations of an instance, by the numbers of their entries, up to the number `until`. Also whether
/// more come before that entry. Visitors who may not read them get none.
pub(in crate::pages) async fn seals(
    visitor: &Visitor,
    instance: Uuid,
    until: u64,
) -> (BTreeMap<u64, Seal>, bool) {
    let path = format!("/v1/instances/{instance}/custody");
    let (records, is_more) = records(visitor, &path, until).await.unwrap_or_default();
    let seals = records
        .iter()
        .map(|one| (one.entry.seq, seal(one, visitor.w)));
    (seals.collect(), is_more)
}

/// The text of a seal, and the class of its badge.
pub(in crate::pages) type Seal = (String, &'static str);

fn seal(record: &CustodyRecord, w: Words) -> Seal {
    let status = status(record);
    let shown = w.known(&format!("seal-{status}"));
    let shown = shown.map_or_else(|| status.to_owned(), std::borrow::Cow::into_owned);
    let class = if status == "VALID" { "good" } else { "bad" };
    (shown, class)
}

fn status(record: &CustodyRecord) -> &str {
    record
        .signature
        .as_ref()
        .map_or("MISSING", |signature| signature.status.as_str())
}

fn row(record: &CustodyRecord, names: &Names, w: Words) -> Vec<Cell> {
    let person = |id: &Option<String>| id.as_deref().map(|id| names.person(id));
    let what = match record.action.as_str() {
        "decide" => record.outcome.clone().unwrap_or_default(),
        action => {
            let owner = person(&record.owner).unwrap_or_default();
            let id = format!("custody-{action}");
            let known = w.known(&id).map(|_| w.with(&id, "who", &owner));
            known.unwrap_or_else(|| action.to_owned())
        }
    };
    let flow = format!("{} {}", record.definition_key, record.definition_version);
    let place = match &record.state {
        Some(state) => format!("{flow} · {state}"),
        None => flow,
    };
    let actor = person(&record.actor).unwrap_or_default();
    let who = match person(&record.on_behalf_of) {
        Some(other) => w.say("holder-for", &[("owner", &actor), ("other", &other)]),
        None => actor,
    };
    let text = record.comment.clone().or_else(|| record.reason.clone());
    let (shown, class) = seal(record, w);
    vec![
        Cell {
            // On paper, a moment is absolute.
            text: Moment::of(record.occurred_at, w).absolute,
            ..Cell::default()
        },
        Cell::link(what, format!("/console/instances/{}", record.instance_id)).below(place),
        Cell::text(who),
        Cell::text(text.unwrap_or_default()),
        Cell::badge(shown, class),
        Cell::text(record.entry.seq.to_string()).below(record.entry.hash.as_str()),
    ]
}

pub(super) async fn file_of_instance(
    State(console): State<Console>,
    Path(id): Path<Uuid>,
    visitor: Visitor,
) -> Response {
    file(console, visitor, &format!("/v1/instances/{id}/custody")).await
}

pub(super) async fn file_of_entity(
    State(console): State<Console>,
    Path((kind, id)): Path<(String, String)>,
    visitor: Visitor,
) -> Response {
    let path = format!("/v1/entities/{}/{}/custody", segment(&kind), segment(&id));
    file(console, visitor, &path).await
}

/// The file of the API, to be saved.
async fn file(console: Console, visitor: Visitor, path: &str) -> Response {
    let response = visitor.api.raw(&format!("{path}?format=csv")).await;
    let mut response = response.map(|file| while_signed_in(console, visitor.session, file));
    let attachment = HeaderValue::from_static("attachment; filename=\"custody.csv\"");
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_ENCODING);
    headers.insert(header::CONTENT_DISPOSITION, attachment);
    response
}

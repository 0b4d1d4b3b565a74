//! Events that Kafka refused: the events of one instance, with the content of the first. `many` has the events of all instances, `sent`
//! the status of events that were sent again.

pub(super) mod many;
mod sent;

use std::borrow::Cow;

use askama::Template;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{ROOT, trail};
use crate::api::{Trouble, with_query};
use crate::confirm::Confirm;
use crate::data::pretty;
use crate::language::Words;
use crate::list::{Cell, Link, Paged, Table};
use crate::moment::Moment;
use crate::pages::operations::choices::Sent;
use crate::posted::Posted;
use crate::session::{Answer, Halt, Visitor};
use crate::shell::{Shell, page};

const PAGE_ROWS: &str = "100";
/// How many events the API sends again at once.
const RELEASED_MAX: usize = 1000;
/// Pages of an instance's events that are searched for the content of one.
const EVENT_PAGES_MAX: usize = 5;
/// The actions of one instance's events.
const ACTIONS: [&str; 2] = ["retry", "discard"];

/// An event that waits.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ParkedEvent {
    pub(super) instance_id: Uuid,
    entry: u64,
    event_id: Option<Uuid>,
    #[serde(rename = "type")]
    kind: Option<String>,
    sequence: Option<u64>,
    pub(super) error: String,
    attempts: u32,
    parked_at: Timestamp,
}

impl ParkedEvent {
    pub(super) fn kind(&self) -> String {
        self.kind.clone().unwrap_or_else(|| self.entry.to_string())
    }
}

#[derive(Deserialize)]
pub(super) struct DeadLetter {
    #[serde(flatten)]
    pub(super) event: ParkedEvent,
    followers: u32,
}

#[derive(Deserialize)]
struct Moved {
    released: u32,
    /// More events wait.
    more: bool,
}

/// The parameters in the address of an instance's events.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct DeadLetterPageQuery {
    #[serde(rename = "do")]
    action: String,
    done: String,
    /// The event that was sent again.
    event: String,
    /// More events wait than one command sends.
    more: bool,
    after: String,
}

#[derive(Template)]
#[template(path = "dead_letter.html")]
struct DeadLetterPage {
    shell: Shell,
    trail: Vec<Link>,
    instance: Uuid,
    here: String,
    done: Vec<String>,
    confirm: Option<Confirm>,
    /// The refused event; none if none waits any more.
    first: Option<First>,
    table: Table,
    sent: Option<Sent>,
    first_page: Option<String>,
    next: Option<String>,
}

/// The refused event, behind which the others wait.
struct First {
    kind: String,
    error: String,
    facts: Vec<(String, String)>,
    content: Option<String>,
}

pub(super) async fn show(
    Path(id): Path<Uuid>,
    Query(query): Query<DeadLetterPageQuery>,
    visitor: Visitor,
) -> Answer {
    let waiting = Waiting::read(&visitor, id, &query.after).await?;
    let confirm = form(&visitor, id, &waiting, &query.action).await?;
    render(&visitor, id, waiting, &query, confirm, StatusCode::OK).await
}

/// The waiting events of an instance.
struct Waiting {
    /// The refused event, behind which the others wait; none if none waits.
    first: Option<ParkedEvent>,
    /// How many events the first page has, and where the next one begins.
    begun: (usize, Option<String>),
    shown: Paged<ParkedEvent>,
}

impl Waiting {
    async fn read(visitor: &Visitor, id: Uuid, after: &str) -> Result<Waiting, Halt> {
        let shown = events(visitor, id, after).await?;
        let other = if after.is_empty() {
            None
        } else {
            Some(events(visitor, id, "").await?)
        };
        let head = other.as_ref().unwrap_or(&shown);
        Ok(Waiting {
            first: head.data.first().cloned(),
            begun: (head.data.len(), head.page.next.clone()),
            shown,
        })
    }
}

/// A page of the waiting events of an instance, in their order; the refused one is the first of the first page.
async fn events(visitor: &Visitor, id: Uuid, after: &str) -> Result<Paged<ParkedEvent>, Halt> {
    let parameters = [("limit", PAGE_ROWS), ("after", after)];
    let path = with_query(&format!("/v1/dead-letters/{id}"), &parameters);
    match visitor.api.get(&path).await {
        Ok(found) => Ok(found),
        Err(trouble) if trouble.status == 404 => Ok(Paged::default()),
        Err(trouble) => Err(visitor.halt(&trouble)),
    }
}

/// The number of waiting events, counted until it exceeds the number that one command discards and sends.
async fn counted(visitor: &Visitor, id: Uuid, waiting: &Waiting) -> Result<usize, Halt> {
    let (mut count, mut after) = waiting.begun.clone();
    while let Some(place) = after.take_if(|_| count <= RELEASED_MAX + 1) {
        let found = events(visitor, id, &place).await?;
        count += found.data.len();
        after = found.page.next;
    }
    Ok(count)
}

async fn form(
    visitor: &Visitor,
    id: Uuid,
    waiting: &Waiting,
    action: &str,
) -> Result<Option<Confirm>, Halt> {
    let w = visitor.w;
    let action = ACTIONS.into_iter().find(|one| *one == action);
    let (Some(action), Some(first)) = (action, &waiting.first) else {
        return Ok(None);
    };
    let page = format!("{ROOT}/dead-letters/{id}");
    let count = counted(visitor, id, waiting).await?;
    let (mut effects, mut sent, mut text) = (Vec::new(), count, "dead-letter-retry-effect");
    if action == "discard" {
        effects.push(w.with("dead-letter-discard-effect", "kind", &first.kind()));
        (sent, text) = (count.saturating_sub(1), "dead-letter-discard-rest");
    }
    effects.push(w.n(text, sent.min(RELEASED_MAX)));
    if sent > RELEASED_MAX {
        effects.push(w.t("dead-letter-more").into_owned());
    }
    Ok(Some(Confirm {
        hidden: vec![
            ("do", action.to_owned()),
            ("entry", first.entry.to_string()),
        ],
        effects,
        reason: Some(String::new()),
        is_final: action == "discard",
        ..Confirm::new(
            w.t(&format!("dead-letter-{action}")).into_owned(),
            format!("{page}#act"),
            page,
        )
    }))
}

async fn render(
    visitor: &Visitor,
    id: Uuid,
    Waiting { first, shown, .. }: Waiting,
    query: &DeadLetterPageQuery,
    confirm: Option<Confirm>,
    status: StatusCode,
) -> Answer {
    let w = visitor.w;
    let row = |event: &ParkedEvent| {
        vec![
            Cell::text(event.kind()),
            Cell::text(
                event
                    .sequence
                    .map(|number| number.to_string())
                    .unwrap_or_default(),
            ),
            Cell::text(w.number(event.attempts)),
            Cell::when(event.parked_at, w),
        ]
    };
    let columns = [
        "column-event",
        "column-sequence",
        "column-attempts",
        "column-since",
    ];
    let rows = shown.data.iter().map(row).collect();
    let first = match first {
        Some(event) => Some(First::of(visitor, id, event).await),
        None => None,
    };
    let (here, next) = (format!("{ROOT}/dead-letters/{id}"), shown.page.next);
    let mut trail = trail(visitor);
    trail.push(Link::to(
        format!("{ROOT}/dead-letters"),
        w.t("panel-dead-letters"),
    ));
    let template = DeadLetterPage {
        shell: Shell::of(visitor, "operations", w.t("dead-letter").into_owned()).await,
        trail,
        instance: id,
        sent: sent(visitor, id, query).await,
        done: query.in_words(w),
        confirm,
        first,
        table: Table::new(w, &w.t("dead-letter-waiting"), &columns, rows),
        first_page: (!query.after.is_empty()).then(|| here.clone()),
        next: next.map(|next| with_query(&here, &[("after", &next)])),
        here,
    };
    Ok(page(status, &template))
}

impl First {
    async fn of(visitor: &Visitor, id: Uuid, event: ParkedEvent) -> First {
        let w = visitor.w;
        let fact = |id: &str, value: String| (w.t(id).into_owned(), value);
        let (kind, number) = (event.kind(), event.event_id);
        let content = match number {
            Some(event) => content(visitor, id, event).await,
            None => None,
        };
        First {
            kind,
            error: event.error,
            facts: vec![
                fact("column-attempts", w.number(event.attempts)),
                fact("column-since", Moment::of(event.parked_at, w).relative),
                fact(
                    "fact-event",
                    number.map(|id| id.to_string()).unwrap_or_default(),
                ),
            ],
            content,
        }
    }
}

impl DeadLetterPageQuery {
    /// The result, in words.
    fn in_words(&self, w: Words) -> Vec<String> {
        let done = w.known(&format!("dead-letter-done-{}", self.done));
        let more = done.is_some() && self.more;
        let more = more.then(|| w.t("dead-letter-more"));
        done.into_iter().chain(more).map(Cow::into_owned).collect()
    }
}

/// The status of the events that were just sent again.
async fn sent(visitor: &Visitor, id: Uuid, query: &DeadLetterPageQuery) -> Option<Sent> {
    if query.done != "retry" {
        return None;
    }
    let status = sent::status(visitor, id, query.event.parse().ok()).await;
    let parameters = [("done", query.done.as_str()), ("event", &query.event)];
    let address = with_query(&format!("{ROOT}/dead-letters/{id}"), &parameters);
    Sent::of(address, vec![status])
}

/// The content of an event, as consumers see it. None if it is not among the first events of the instance, or the visitor may
/// not read events.
pub(super) async fn content(visitor: &Visitor, instance: Uuid, event: Uuid) -> Option<String> {
    let (instance, event) = (instance.to_string(), event.to_string());
    let mut after = String::new();
    for _ in 0..EVENT_PAGES_MAX {
        let parameters = [
            ("instanceId", instance.as_str()),
            ("limit", "100"),
            ("after", &after),
        ];
        let path = with_query("/v1/events", &parameters);
        let found: Paged<Box<RawValue>> = visitor.api.get(&path).await.ok()?;
        let is_it = |one: &RawValue| {
            let read = serde_json::from_str::<Value>(one.get());
            read.is_ok_and(|one| one["id"] == event.as_str())
        };
        if let Some(found) = found.data.iter().find(|one| is_it(one)) {
            return Some(pretty(found));
        }
        after = found.page.next.filter(|_| !found.data.is_empty())?;
    }
    None
}

/// Handles a sent form: sends the events of an instance again, or discards the first.
pub(super) async fn act(Path(id): Path<Uuid>, Posted { visitor, fields }: Posted) -> Answer {
    let action = fields.get("do");
    let reason = fields.get("reason").trim();
    let body = match action {
        "discard" => {
            let entry: Option<u64> = fields.get("entry").parse().ok();
            json!({ "entry": entry, "reason": reason })
        }
        _ => json!({ "reason": reason }),
    };
    let waiting = Waiting::read(&visitor, id, "").await?;
    let Some(confirm) = form(&visitor, id, &waiting, action).await? else {
        let query = DeadLetterPageQuery::default();
        return render(&visitor, id, waiting, &query, None, StatusCode::CONFLICT).await;
    };
    let path = format!("/v1/dead-letters/{id}/{action}");
    let answer: Result<Moved, Trouble> = visitor.api.post(&path, &body, None).await;
    match answer {
        Ok(moved) => {
            let event = waiting.first.and_then(|first| first.event_id);
            let event = event.map(|event| event.to_string()).unwrap_or_default();
            let more = if moved.more { "true" } else { "" };
            let parameters = [("done", action), ("event", &event), ("more", more)];
            let to = with_query(&format!("{ROOT}/dead-letters/{id}"), &parameters);
            Ok(Redirect::to(&to).into_response())
        }
        Err(trouble) => {
            let confirm = confirm.refuse(&trouble, &fields);
            let (query, status) = (DeadLetterPageQuery::default(), trouble.status());
            render(&visitor, id, waiting, &query, Some(confirm), status).await
        }
    }
}

//! Events that Kafka refused: those of one instance with the first one's content. `many` has those of all instances, `sent` what became
//! of events that were sent again.

pub(super) mod many;
mod sent;

use askama::Template;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{ROOT, trail};
use crate::api::{Trouble, with_query};
use crate::confirm::Confirm;
use crate::list::{Cell, Link, Paged, Table};
use crate::moment::Moment;
use crate::pages::operations::choices::Sent;
use crate::posted::Posted;
use crate::session::{Answer, Halt, Visitor};
use crate::shell::{Shell, page};

const PAGE_ROWS: &str = "100";
/// Pages of an instance's events that are searched for the content of one.
const EVENT_PAGES_MAX: usize = 5;
/// The actions of one instance's events.
const ACTIONS: [&str; 2] = ["retry", "discard"];

/// An event that waits.
#[derive(Deserialize)]
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
}

/// What the address of an instance's events says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct AskedOne {
    #[serde(rename = "do")]
    action: String,
    done: String,
    /// The event that was sent again.
    event: String,
}

#[derive(Template)]
#[template(path = "dead_letter.html")]
struct One {
    shell: Shell,
    trail: Vec<Link>,
    instance: Uuid,
    here: String,
    done: Option<String>,
    confirm: Option<Confirm>,
    /// The refused event; none if none waits any more.
    first: Option<First>,
    table: Table,
    sent: Option<Sent>,
}

/// The refused event, behind which the others wait.
struct First {
    kind: String,
    error: String,
    facts: Vec<(String, String)>,
    content: Option<String>,
}

pub(super) async fn one(
    Path(id): Path<Uuid>,
    Query(asked): Query<AskedOne>,
    visitor: Visitor,
) -> Answer {
    let events = events(&visitor, id).await?;
    let confirm = form(&visitor, id, &events, &asked.action);
    render(&visitor, id, &events, &asked, confirm, StatusCode::OK).await
}

/// The waiting events of an instance, the refused one first. None if no event waits.
async fn events(visitor: &Visitor, id: Uuid) -> Result<Vec<ParkedEvent>, Halt> {
    let path = format!("/v1/dead-letters/{id}?limit={PAGE_ROWS}");
    let found = visitor.api.get::<Paged<ParkedEvent>>(&path).await;
    match found {
        Ok(found) => Ok(found.data),
        Err(trouble) if trouble.status == 404 => Ok(Vec::new()),
        Err(trouble) => Err(visitor.halt(&trouble)),
    }
}

fn form(visitor: &Visitor, id: Uuid, events: &[ParkedEvent], action: &str) -> Option<Confirm> {
    let w = visitor.w;
    let action = ACTIONS.into_iter().find(|one| *one == action)?;
    let first = events.first()?;
    let page = format!("{ROOT}/dead-letters/{id}");
    let effects = match action {
        "retry" => vec![w.n("dead-letter-retry-effect", events.len())],
        _ => vec![
            w.with("dead-letter-discard-effect", "kind", &first.kind()),
            w.n("dead-letter-discard-rest", events.len() - 1),
        ],
    };
    Some(Confirm {
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
    })
}

async fn render(
    visitor: &Visitor,
    id: Uuid,
    events: &[ParkedEvent],
    asked: &AskedOne,
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
    let rows = events.iter().map(row).collect();
    let first = match events.first() {
        Some(event) => {
            let fact = |id: &str, value: String| (w.t(id).into_owned(), value);
            let content = match event.event_id {
                Some(event) => content(visitor, id, event).await,
                None => None,
            };
            Some(First {
                kind: event.kind(),
                error: event.error.clone(),
                facts: vec![
                    fact("column-attempts", w.number(event.attempts)),
                    fact("column-since", Moment::of(event.parked_at, w).relative),
                    fact(
                        "fact-event",
                        event.event_id.map(|id| id.to_string()).unwrap_or_default(),
                    ),
                ],
                content,
            })
        }
        None => None,
    };
    let mut trail = trail(visitor);
    trail.push(Link::to(
        format!("{ROOT}/dead-letters"),
        w.t("panel-dead-letters"),
    ));
    let template = One {
        shell: Shell::of(visitor, "operations", w.t("dead-letter").into_owned()).await,
        trail,
        instance: id,
        here: format!("{ROOT}/dead-letters/{id}"),
        sent: sent(visitor, id, asked).await,
        done: match asked.done.as_str() {
            "" => None,
            done => w
                .known(&format!("dead-letter-done-{done}"))
                .map(std::borrow::Cow::into_owned),
        },
        confirm,
        first,
        table: Table::new(w, &w.t("dead-letter-waiting"), &columns, rows),
    };
    Ok(page(status, &template))
}

/// What became of the events that were just sent again.
async fn sent(visitor: &Visitor, id: Uuid, asked: &AskedOne) -> Option<Sent> {
    if asked.done != "retry" {
        return None;
    }
    let standing = sent::standing(visitor, id, asked.event.parse().ok()).await;
    let parameters = [("done", asked.done.as_str()), ("event", &asked.event)];
    let address = with_query(&format!("{ROOT}/dead-letters/{id}"), &parameters);
    Sent::of(address, vec![standing])
}

/// The content of an event, as consumers would see it. None if it is not among the first events of the instance, or the visitor
/// may not read events.
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
        let found: Paged<Value> = visitor.api.get(&path).await.ok()?;
        let mut events = found.data.iter();
        if let Some(found) = events.find(|one| one["id"] == event.as_str()) {
            return serde_json::to_string_pretty(found).ok();
        }
        after = found.page.next.filter(|_| !found.data.is_empty())?;
    }
    None
}

/// A form that was sent: sends the events of an instance again, or discards the first.
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
    let events = events(&visitor, id).await?;
    let Some(confirm) = form(&visitor, id, &events, action) else {
        let asked = AskedOne::default();
        return render(&visitor, id, &events, &asked, None, StatusCode::CONFLICT).await;
    };
    let path = format!("/v1/dead-letters/{id}/{action}");
    let answer: Result<Moved, Trouble> = visitor.api.post(&path, &body, None).await;
    match answer {
        Ok(_) => {
            let event = events.first().and_then(|first| first.event_id);
            let event = event.map(|event| event.to_string()).unwrap_or_default();
            let parameters = [("done", action), ("event", &event)];
            let to = with_query(&format!("{ROOT}/dead-letters/{id}"), &parameters);
            Ok(Redirect::to(&to).into_response())
        }
        Err(trouble) => {
            let confirm = confirm.refuse(&trouble, &fields);
            let (asked, status) = (AskedOne::default(), trouble.status());
            render(&visitor, id, &events, &asked, Some(confirm), status).await
        }
    }
}

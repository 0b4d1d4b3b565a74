//! One delivery to a receiver of webhooks, with its attempts. `many` has all of a receiver.

pub(super) mod many;

use askama::Template;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use wrkflw_runtime::clock::Clock;

use super::{ROOT, dead_letters, trail};
use crate::api::with_query;
use crate::confirm::Confirm;
use crate::language::Words;
use crate::list::{Cell, Link, Paged, Table};
use crate::posted::Posted;
use crate::session::{Answer, Halt, Visitor};
use crate::shell::{Shell, page};

const PAGE_ROWS: &str = "50";
/// Pages of deliveries that are searched for one.
const PAGES_MAX: usize = 20;
/// A page waits for an attempt that is due within so many seconds.
const SOON_SECONDS: i64 = 60;

/// The parameters in the address of a delivery.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct DeliveryPageQuery {
    done: String,
    #[serde(rename = "do")]
    action: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delivery {
    id: Uuid,
    instance_id: Option<Uuid>,
    state: String,
    attempts: i32,
    last_status: Option<i16>,
    last_error: Option<String>,
    created_at: Timestamp,
    due_at: Timestamp,
}

impl Delivery {
    fn badge(&self, w: Words) -> Cell {
        let class = match self.state.as_str() {
            "delivered" => "good",
            "dead" => "bad",
            "pending" => "waiting",
            _ => "",
        };
        let text = name(&self.state, w);
        if class.is_empty() {
            Cell::text(text)
        } else {
            Cell::badge(text, class)
        }
    }

    /// Why it failed last; empty if it has not failed.
    fn error(&self) -> String {
        let status = self.last_status.map(|status| status.to_string());
        let parts = [status, self.last_error.clone()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}

fn name(state: &str, w: Words) -> String {
    let id = if state.is_empty() { "all" } else { state };
    let known = w.known(&format!("delivery-{id}"));
    known.map_or_else(|| state.to_owned(), std::borrow::Cow::into_owned)
}

fn list_path(id: Uuid, state: &str, after: &str) -> String {
    let path = format!("/v1/subscriptions/{id}/deliveries");
    with_query(
        &path,
        &[("state", state), ("limit", PAGE_ROWS), ("after", after)],
    )
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeliveryAttempt {
    at: Timestamp,
    status: Option<i16>,
    duration_ms: i32,
    error: Option<String>,
}

#[derive(Template)]
#[template(path = "delivery.html")]
struct DeliveryPage {
    shell: Shell,
    trail: Vec<Link>,
    here: String,
    id: Uuid,
    status: Cell,
    error: String,
    instance: Option<Uuid>,
    /// When it is tried again; empty if it is not.
    next: Option<crate::moment::Moment>,
    /// Whether the page asks again by itself.
    waits: bool,
    may_discard: bool,
    done: Option<String>,
    confirm: Option<Confirm>,
    table: Table,
    content: Option<String>,
}

/// The deliveries with these ids, searched among those of their receiver, the newest first.
async fn find(visitor: &Visitor, id: Uuid, ids: &[Uuid]) -> Result<Vec<Delivery>, Halt> {
    let (mut all, mut after) = (Vec::new(), String::new());
    for _ in 0..PAGES_MAX {
        let found: Paged<Delivery> = visitor.get(&list_path(id, "", &after)).await?;
        let named = found.data.into_iter().filter(|one| ids.contains(&one.id));
        all.extend(named);
        match found.page.next.filter(|_| all.len() < ids.len()) {
            Some(next) => after = next,
            None => break,
        }
    }
    Ok(all)
}

pub(super) async fn show(
    Path((id, delivery)): Path<(Uuid, Uuid)>,
    Query(query): Query<DeliveryPageQuery>,
    visitor: Visitor,
) -> Answer {
    let confirm = form(&visitor, id, delivery, &query.action);
    render(
        &visitor,
        (id, delivery),
        &query.done,
        confirm,
        StatusCode::OK,
    )
    .await
}

fn form(visitor: &Visitor, id: Uuid, delivery: Uuid, action: &str) -> Option<Confirm> {
    let w = visitor.w;
    let action = ["retry", "discard"]
        .into_iter()
        .find(|one| *one == action)?;
    let page = format!("{ROOT}/webhooks/{id}/{delivery}");
    Some(Confirm {
        hidden: vec![("do", action.to_owned())],
        effects: vec![w.t(&format!("delivery-{action}-effect")).into_owned()],
        reason: (action == "discard").then(String::new),
        is_final: action == "discard",
        ..Confirm::new(
            w.t(&format!("delivery-{action}")).into_owned(),
            format!("{page}#act"),
            page,
        )
    })
}

async fn render(
    visitor: &Visitor,
    (id, delivery): (Uuid, Uuid),
    done: &str,
    confirm: Option<Confirm>,
    status: StatusCode,
) -> Answer {
    let w = visitor.w;
    // The status is read first: once the delivery is settled, the page asks no more, and must have the last attempt by then.
    let found = find(visitor, id, &[delivery]).await?.pop();
    let path = format!("/v1/subscriptions/{id}/deliveries/{delivery}/attempts");
    let attempts: Paged<DeliveryAttempt> = visitor.get(&path).await?;
    let row = |one: &DeliveryAttempt| {
        let outcome = match one.status {
            Some(status) => status.to_string(),
            None => w.t("attempt-no-answer").into_owned(),
        };
        vec![
            Cell::when(one.at, w),
            Cell::text(outcome),
            Cell::text(one.error.clone().unwrap_or_default()),
            Cell::text(w.n("attempt-duration", one.duration_ms)),
        ]
    };
    let columns = [
        "column-when",
        "column-answer",
        "column-error",
        "column-duration",
    ];
    let rows = attempts.data.iter().map(row).collect();
    let instance = found.as_ref().and_then(|one| one.instance_id);
    let is_pending = found.as_ref().is_some_and(|one| one.state == "pending");
    let due = found.as_ref().map(|one| one.due_at).filter(|_| is_pending);
    let soon = Clock::System.now() + jiff::SignedDuration::from_secs(SOON_SECONDS);
    let mut trail = trail(visitor);
    trail.push(Link::to(format!("{ROOT}/webhooks"), w.t("panel-webhooks")));
    trail.push(Link::to(format!("{ROOT}/webhooks/{id}"), w.t("deliveries")));
    let template = DeliveryPage {
        shell: Shell::of(visitor, "operations", w.t("delivery").into_owned()).await,
        trail,
        here: format!("{ROOT}/webhooks/{id}/{delivery}"),
        id: delivery,
        status: found
            .as_ref()
            .map_or_else(Cell::default, |one| one.badge(w)),
        error: found.as_ref().map_or_else(String::new, Delivery::error),
        instance,
        waits: due.is_some_and(|due| due < soon),
        next: due.map(|due| crate::moment::Moment::of(due, w)),
        may_discard: found
            .as_ref()
            .is_some_and(|one| matches!(one.state.as_str(), "pending" | "dead")),
        done: match done {
            "" => None,
            done => w
                .known(&format!("delivery-done-{done}"))
                .map(std::borrow::Cow::into_owned),
        },
        confirm,
        table: Table::new(w, &w.t("attempts"), &columns, rows),
        content: match instance {
            Some(instance) => dead_letters::content(visitor, instance, delivery).await,
            None => None,
        },
    };
    Ok(page(status, &template))
}

/// A form that was sent: sends a delivery again, or discards it.
pub(super) async fn act(
    Path((id, delivery)): Path<(Uuid, Uuid)>,
    Posted { visitor, fields }: Posted,
) -> Answer {
    let action = fields.get("do");
    let Some(confirm) = form(&visitor, id, delivery, action) else {
        return Ok(StatusCode::NOT_FOUND.into_response());
    };
    let path = format!("/v1/subscriptions/{id}/deliveries/{delivery}/{action}");
    let body = match action {
        "discard" => json!({ "reason": fields.get("reason").trim() }),
        _ => json!({}),
    };
    let answer = visitor.api.post::<Option<Value>>(&path, &body, None).await;
    match answer {
        Ok(_) => {
            let to = format!("{ROOT}/webhooks/{id}/{delivery}?done={action}");
            Ok(Redirect::to(&to).into_response())
        }
        Err(trouble) => {
            let confirm = confirm.refuse(&trouble, &fields);
            render(
                &visitor,
                (id, delivery),
                "",
                Some(confirm),
                trouble.status(),
            )
            .await
        }
    }
}

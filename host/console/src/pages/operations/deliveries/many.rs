//! The deliveries to one receiver. Dead deliveries are listed by their errors: send some or all of them again, or discard them.

use askama::Template;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Delivery, find, list_path, name};
use crate::api::with_query;
use crate::form;
use crate::list::{Cell, Link, Paged, Table};
use crate::moment::Moment;
use crate::pages::instance::deliveries::DeliveryStatus;
use crate::pages::operations::choices::{Choice, Choices, FOLLOWED_MAX, Item, MANY_MAX, Sent};
use crate::pages::operations::lists::Subscription;
use crate::pages::operations::{ROOT, trail};
use crate::posted::Posted;
use crate::session::{Answer, Halt, Visitor};
use crate::shell::{Shell, page};

/// The states of deliveries, by their names in the API; the first shows all.
const STATES: [&str; 5] = ["", DEAD, "pending", "delivered", "discarded"];
/// The state of those that were given up.
const DEAD: &str = "dead";

/// The parameters in the address of the deliveries.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::pages::operations) struct DeliveryListQuery {
    state: String,
    after: String,
    /// The ids of those that were sent again, with commas between them.
    sent: String,
}

#[derive(Template)]
#[template(path = "deliveries.html")]
struct All {
    shell: Shell,
    trail: Vec<Link>,
    receiver: Subscription,
    here: String,
    tabs: Vec<Link>,
    choices: Choices,
    table: Table,
    first: Option<String>,
    next: Option<String>,
}

impl All {
    fn is_empty(&self) -> bool {
        let asks = self.choices.confirm.is_some();
        self.table.rows.is_empty() && self.choices.groups.is_empty() && !asks
    }
}

fn address(id: Uuid, parameters: &[(&str, &str)]) -> String {
    with_query(&format!("{ROOT}/webhooks/{id}"), parameters)
}

pub(in crate::pages::operations) async fn list(
    Path(id): Path<Uuid>,
    Query(query): Query<DeliveryListQuery>,
    visitor: Visitor,
) -> Answer {
    let mut choices = Choices::new(address(id, &[]));
    let sent = query.sent.split(',').filter_map(|id| id.parse().ok());
    choices.sent = followed(&visitor, id, &sent.collect::<Vec<_>>()).await?;
    render(&visitor, id, &query, choices, &Choice::default()).await
}

/// The present status of these deliveries.
async fn followed(visitor: &Visitor, id: Uuid, sent: &[Uuid]) -> Result<Option<Sent>, Halt> {
    let sent = &sent[..sent.len().min(FOLLOWED_MAX)];
    if sent.is_empty() {
        return Ok(None);
    }
    let found = find(visitor, id, sent).await?;
    let statuses = found.iter().map(|one| {
        let badge = one.badge(visitor.w);
        DeliveryStatus {
            name: one.id.to_string(),
            address: address(id, &[]) + "/" + &one.id.to_string(),
            state: badge.text,
            class: badge.badge,
            error: one.error(),
            at: None,
        }
    });
    let ids: Vec<_> = sent.iter().map(Uuid::to_string).collect();
    let again = address(id, &[("state", DEAD), ("sent", &ids.join(","))]);
    Ok(Sent::of(again, statuses.collect()))
}

async fn render(
    visitor: &Visitor,
    id: Uuid,
    query: &DeliveryListQuery,
    choices: Choices,
    choice: &Choice,
) -> Answer {
    let w = visitor.w;
    let state = STATES.into_iter().find(|one| *one == query.state);
    let state = state.unwrap_or_default();
    let receiver: Subscription = visitor.get(&format!("/v1/subscriptions/{id}")).await?;
    let found: Paged<Delivery> = visitor.get(&list_path(id, state, &query.after)).await?;
    let to = |state: &str, after: &str| address(id, &[("state", state), ("after", after)]);
    let tab = |one: &str| Link {
        is_current: one == state,
        ..Link::to(to(one, ""), name(one, w))
    };
    let mut trail = trail(visitor);
    trail.push(Link::to(format!("{ROOT}/webhooks"), w.t("panel-webhooks")));
    let status = match choices.refusal {
        Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
        None => StatusCode::OK,
    };
    let here = address(id, &[]);
    let (mut items, mut rows) = (Vec::new(), Vec::new());
    for one in found.data {
        if state == DEAD {
            items.push(item(&one, &here, visitor));
        } else {
            rows.push(row(&one, &here, visitor));
        }
    }
    let columns = [
        "column-delivery",
        "column-status",
        "column-error",
        "column-attempts",
        "column-since",
    ];
    let template = All {
        shell: Shell::of(visitor, "operations", receiver.url.clone()).await,
        trail,
        choices: choices.listing((items, &query.after), choice, "deliveries-count", w),
        table: Table::new(w, &w.t("deliveries"), &columns, rows),
        tabs: STATES.into_iter().map(tab).collect(),
        first: (!query.after.is_empty()).then(|| to(state, "")),
        next: found.page.next.map(|next| to(state, &next)),
        here,
        receiver,
    };
    Ok(page(status, &template))
}

fn row(one: &Delivery, here: &str, visitor: &Visitor) -> Vec<Cell> {
    vec![
        Cell::link(one.id.to_string(), format!("{here}/{}", one.id)),
        one.badge(visitor.w),
        Cell::text(one.error()),
        Cell::text(visitor.w.number(one.attempts)),
        Cell::when(one.created_at, visitor.w),
    ]
}

fn item(one: &Delivery, here: &str, visitor: &Visitor) -> Item {
    let w = visitor.w;
    Item {
        key: one.id.to_string(),
        error: one.error(),
        name: w.t("delivery").into_owned(),
        address: format!("{here}/{}", one.id),
        id: one.id.to_string(),
        about: w.n("delivery-attempts", one.attempts),
        since: Moment::of(one.created_at, w),
        is_chosen: false,
    }
}

/// Sends the chosen deliveries of a receiver again, or discards them.
pub(in crate::pages::operations) async fn act(
    Path(id): Path<Uuid>,
    Posted { visitor, fields }: Posted,
) -> Answer {
    let w = visitor.w;
    let mut choices = Choices::new(address(id, &[]));
    let choice = Choice::of(&fields);
    let mut query = DeliveryListQuery {
        state: DEAD.to_owned(),
        after: choice.after.clone(),
        sent: String::new(),
    };
    let known = |one: &Delivery| (one.error(), one.id.to_string());
    let path = |after: &str| list_path(id, DEAD, after);
    let (keys, is_more) = choice.resolved(&visitor, path, known).await?;
    let discards = fields.get("do") == "discard";
    if keys.is_empty() || (discards && choice.reason.is_empty()) {
        choices.refusal = Some(w.t("deliveries-choose").into_owned());
        return render(&visitor, id, &query, choices, &choice).await;
    }
    if is_more {
        choices.done.push(w.n("choice-bounded", MANY_MAX));
    }
    if discards && !form::is_to_be_done(&fields) {
        choices.asking(keys, &choice, "deliveries-discard-many", w);
        return render(&visitor, id, &query, choices, &choice).await;
    }
    let (command, text, body) = if discards {
        let body = json!({ "reason": choice.reason });
        ("discard", "deliveries-discarded", body)
    } else {
        ("retry", "deliveries-retried", json!({}))
    };
    let mut changed: Vec<Uuid> = Vec::new();
    for delivery in keys.iter().filter_map(|key| key.parse().ok()) {
        let path = format!("/v1/subscriptions/{id}/deliveries/{delivery}/{command}");
        match visitor.api.post::<Option<Value>>(&path, &body, None).await {
            Ok(_) => changed.push(delivery),
            Err(trouble) => {
                let page = format!("{}/{delivery}", choices.address);
                let name = delivery.to_string();
                choices.refused.push((page, name, trouble.detail));
            }
        }
    }
    if !changed.is_empty() {
        choices.done.push(w.n(text, changed.len()));
    }
    if !discards {
        choices.bounding(changed.len(), w);
        choices.sent = followed(&visitor, id, &changed).await?;
    }
    // The deliveries of the page are done.
    query.after.clear();
    render(&visitor, id, &query, choices, &Choice::default()).await
}

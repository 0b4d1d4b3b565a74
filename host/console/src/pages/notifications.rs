//! The notifications of the visitor and of their groups.

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use axum::routing::{get, post};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Console;
use crate::api::with_query;
use crate::list::{ListQuery, PageInfo};
use crate::moment::Moment;
use crate::names::Badge;
use crate::posted::Posted;
use crate::session::{Answer, Visitor};
use crate::shell::{Shell, page};

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console/notifications", get(show))
        .route("/console/notifications/{id}/read", post(read))
}

#[derive(Deserialize)]
struct Notifications {
    data: Vec<Notification>,
    page: PageInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Notification {
    id: Uuid,
    kind: String,
    instance_id: Uuid,
    instance_title: Option<String>,
    /// The name of the state in the flow, and its title.
    state: Option<String>,
    state_title: Option<String>,
    priority: Option<i16>,
    priority_name: Option<String>,
    created_at: Timestamp,
    read_at: Option<Timestamp>,
}

struct Row {
    id: Uuid,
    instance_id: Uuid,
    kind: String,
    title: String,
    /// The state that it is about; empty if it is about none.
    state: String,
    badge: Option<Badge>,
    created: Moment,
    is_unread: bool,
}

#[derive(Template)]
#[template(path = "notifications.html")]
struct Page {
    shell: Shell,
    rows: Vec<Row>,
    /// The place after which the rows begin; empty on the first page.
    after: String,
    next: Option<String>,
}

async fn show(Query(query): Query<ListQuery>, visitor: Visitor) -> Answer {
    let w = visitor.w;
    let list = [("limit", "50"), ("after", query.after.as_str())];
    let list = with_query("/v1/notifications", &list);
    let found: Notifications = visitor.get(&list).await?;
    let rows = found.data.into_iter().map(|one| Row {
        id: one.id,
        instance_id: one.instance_id,
        kind: w
            .known(&format!("notification-{}", one.kind))
            .map_or(one.kind, std::borrow::Cow::into_owned),
        title: one
            .instance_title
            .unwrap_or_else(|| one.instance_id.to_string()),
        state: one.state_title.or(one.state).unwrap_or_default(),
        badge: one
            .priority
            .and_then(|priority| Badge::of(priority, one.priority_name.as_deref(), w)),
        created: Moment::of(one.created_at, w),
        is_unread: one.read_at.is_none(),
    });
    let title = w.t("notifications").into_owned();
    let template = Page {
        shell: Shell::of(&visitor, "notifications", title).await,
        rows: rows.collect(),
        after: query.after,
        next: found
            .page
            .next
            .map(|next| with_query("/console/notifications", &[("after", &next)])),
    };
    Ok(page(StatusCode::OK, &template))
}

/// Marks one as read, and shows the same page of the list again.
async fn read(Path(id): Path<Uuid>, Posted { visitor, fields }: Posted) -> Answer {
    let path = format!("/v1/notifications/{id}/read");
    let _: Value = visitor.post(&path, &json!({}), None).await?;
    let here = with_query("/console/notifications", &[("after", fields.get("after"))]);
    Ok(Redirect::to(&here).into_response())
}

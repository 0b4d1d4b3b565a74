//! The notifications of the caller, as a person and as a member of groups.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::extract::{Body, Caller, Path, Query};
use super::layers::without_query;
use super::page::{Page, decode, limit, page};
use super::problem::Problem;
use super::shapes::{NotificationKind, RecipientType};
use super::tasks::Empty;
use super::view::view;
use wrkflw_core::ids::VersionRef;
use wrkflw_engine::Identity;
use wrkflw_store::notifications::{self, Notification, NotificationFilter};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .merge(without_query(OpenApiRouter::new().routes(routes!(read))))
}

view! {
    of wrkflw_store::notifications::Notification;
    /// A notification of a person or a group.
    pub(super) struct NotificationView {
        pub id: Uuid,
        #[schema(value_type = NotificationKind)]
        pub kind: String,
        #[schema(value_type = RecipientType)]
        pub recipient_type: String,
        pub recipient: String,
        pub instance_id: Uuid,
        /// The title of the instance, by the template of its definition.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub instance_title: Option<String>,
        /// Its summary.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub instance_summary: Option<String>,
        /// The definition whose version the instance runs now.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub definition_key: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub definition_version: Option<u32>,
        pub state_id: Option<Uuid>,
        /// The name of the state that it is about.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub state: Option<String>,
        /// How urgent the work in this state is: the higher, the more.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub priority: Option<i16>,
        /// What the definition calls this priority.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub priority_name: Option<String>,
        pub task_id: Option<Uuid>,
        /// The event that it reports.
        pub event_id: Uuid,
        /// When the work is due.
        #[schema(value_type = Option<String>, format = DateTime)]
        pub due_at: Option<Timestamp>,
        #[schema(value_type = String, format = DateTime)]
        pub created_at: Timestamp,
        /// When a webhook's receiver first accepted it.
        #[schema(value_type = Option<String>, format = DateTime)]
        pub sent_at: Option<Timestamp>,
        /// When it was marked as read. For a group: by the first member.
        #[schema(value_type = Option<String>, format = DateTime)]
        pub read_at: Option<Timestamp>,
    }
}

/// A notification, with what the definition says of its state.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NotificationSummary {
    #[serde(flatten)]
    notification: NotificationView,
    /// The title of the state, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    state_title: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct NotificationQuery {
    /// Only those that nobody marked as read.
    #[serde(default)]
    #[param(default = false)]
    pub unread: bool,
    /// Only of this kind.
    #[param(inline)]
    pub kind: Option<NotificationKind>,
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

/// Lists the notifications of the caller and of their current groups, newest first, without the kinds that the caller muted.
#[utoipa::path(get, path = "/v1/notifications", tag = "notifications", operation_id = "listNotifications", params(NotificationQuery),
    responses((status = 200, body = Page<NotificationSummary>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<NotificationQuery>,
) -> Result<axum::Json<Page<NotificationSummary>>, Problem> {
    let viewer = app.engine.viewing(&who, "notification:read").await?;
    let limit = limit(query.limit)?;
    let filter = NotificationFilter {
        person: &who.subject,
        unread: query.unread,
        kind: query.kind.map(NotificationKind::kind),
        before: decode(query.after.as_deref())?,
        limit: i64::from(limit) + 1,
    };
    let found = notifications::list(app.engine.reader(), &viewer, &filter).await?;
    let lines = titled(&app, &who, found).await?;
    Ok(axum::Json(page(
        lines,
        limit,
        |last: &TitledNotification| last.0.id.to_string(),
    )))
}

/// A notification, and the title of its state.
type TitledNotification = (Notification, Option<String>);

impl From<TitledNotification> for NotificationSummary {
    fn from((notification, state_title): TitledNotification) -> NotificationSummary {
        NotificationSummary {
            notification: notification.into(),
            state_title,
        }
    }
}

/// The version that the instance runs now, with the name of the state. None if the notification is about no state.
fn place(notification: &Notification) -> Option<(VersionRef, String)> {
    let version = VersionRef {
        key: notification.definition_key.clone()?,
        version: notification.definition_version?,
    };
    Some((version, notification.state.clone()?))
}

/// With the titles of the states, as far as the versions that the instances run now have them.
async fn titled(
    app: &App,
    who: &Identity,
    found: Vec<Notification>,
) -> Result<Vec<TitledNotification>, Problem> {
    let mut versions = HashMap::new();
    for (reference, _) in found.iter().filter_map(place) {
        if let Entry::Vacant(unread) = versions.entry(reference) {
            let version = app.engine.versions().get(who.tenant, unread.key()).await?;
            unread.insert(version);
        }
    }
    let title = |(reference, state): (VersionRef, String)| {
        let declared = versions.get(&reference)?.graph.state(&state)?;
        Some(declared.title.clone())
    };
    let lines = found.into_iter().map(|one| {
        let title = place(&one).and_then(title);
        (one, title)
    });
    Ok(lines.collect())
}

/// Marks a notification as read. One of a group is then read for all members.
#[utoipa::path(post, path = "/v1/notifications/{id}/read", tag = "notifications", operation_id = "markNotificationRead", params(("id" = Uuid, Path)),
    responses((status = 204)))]
pub(super) async fn read(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    Body { .. }: Body<Empty>,
) -> Result<StatusCode, Problem> {
    app.engine.notifications().mark_read(&who, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

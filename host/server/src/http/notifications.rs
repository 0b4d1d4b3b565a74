//! The notifications of the caller, as a person and as a member of groups.

use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::App;
use super::extract::{Body, Caller, Path, Query};
use super::page::{Page, decode, limit, page};
use super::problem::Problem;
use super::shapes::{NotificationKind, RecipientType};
use super::tasks::Empty;
use super::view::view;
use wrkflw_store::notifications::NotificationFilter;

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
        pub state_id: Option<Uuid>,
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
    responses((status = 200, body = Page<NotificationView>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<NotificationQuery>,
) -> Result<axum::Json<Page<NotificationView>>, Problem> {
    let viewer = app.engine.viewing(&who, "notification:read").await?;
    let limit = limit(query.limit)?;
    let filter = NotificationFilter {
        person: &who.subject,
        unread: query.unread,
        kind: query.kind.map(NotificationKind::kind),
        before: decode(query.after.as_deref())?,
        limit: i64::from(limit) + 1,
    };
    let found = app.engine.reader().notifications(&viewer, &filter).await?;
    Ok(axum::Json(page(found, limit, |last| last.id.to_string())))
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
    app.engine.mark_read(&who, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

//! What the caller wants to be notified of.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::App;
use super::extract::{Body, Caller};
use super::problem::Problem;
use super::shapes::NotificationKind;
use wrkflw_core::notification::Kind;
use wrkflw_engine::Error;

/// As many as there are.
const KINDS_MAX: usize = 5;

/// What a person wants. Whoever never chose wants all notifications.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Preferences {
    /// The kinds of notifications that are off. The person is not notified of them, also not by webhook, and does not see those
    /// of their groups.
    #[schema(max_items = 5)]
    pub muted_notifications: Vec<NotificationKind>,
}

/// The preferences of the caller.
#[utoipa::path(get, path = "/v1/me/preferences", tag = "notifications", operation_id = "getPreferences",
    responses((status = 200, body = Preferences)))]
pub(super) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
) -> Result<axum::Json<Preferences>, Problem> {
    app.engine.permit(&who, "notification:read").await?;
    let muted = app.engine.reader().muted(who.tenant, &who.subject).await?;
    let muted_notifications = muted.into_iter().map(NotificationKind::from).collect();
    Ok(axum::Json(Preferences {
        muted_notifications,
    }))
}

/// Replaces the preferences of the caller. Notifications that exist stay.
#[utoipa::path(put, path = "/v1/me/preferences", tag = "notifications", operation_id = "putPreferences",
    request_body = Preferences, responses((status = 200, body = Preferences)))]
pub(super) async fn put(
    State(app): State<App>,
    Caller(who): Caller,
    Body { value, .. }: Body<Preferences>,
) -> Result<axum::Json<Preferences>, Problem> {
    let muted = value.muted_notifications;
    if muted.len() > KINDS_MAX {
        let detail = format!("there are {KINDS_MAX} kinds of notifications");
        return Err(Error::malformed("/mutedNotifications", detail).into());
    }
    let kinds: Vec<Kind> = muted.iter().map(|one| one.kind()).collect();
    app.engine.mute(&who, &kinds).await?;
    show(State(app), Caller(who)).await
}

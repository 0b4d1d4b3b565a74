//! Commands that were refused because the caller was not allowed to run them.

use axum::extract::State;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::extract::{Caller, Query};
use super::page::{AtTime, Page, decode, limit, page_or_reached};
use super::problem::Problem;
use super::shapes::CommandName;
use super::value_error::of_parameter;
use super::view::view;
use wrkflw_core::moment;
use wrkflw_store::attempts::{self, AttemptFilter, AttemptRow, Attempts};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

view! {
    of wrkflw_store::attempts::AttemptRow;
    /// A command that was refused.
    pub(super) struct RefusalView {
        pub id: Uuid,
        #[schema(value_type = String, format = DateTime)]
        pub occurred_at: Timestamp,
        pub actor: String,
        #[schema(value_type = CommandName)]
        pub action: String,
        /// None for a start.
        #[serde(rename = "instanceId")]
        pub instance: Option<Uuid>,
        #[serde(rename = "taskId")]
        pub task: Option<Uuid>,
        /// The code of the reason: `permission_missing`, one of the host's rules, or one of flow logic.
        pub reason: String,
        pub detail: String,
        /// The id of the request, as in the host's log.
        pub request_id: Option<String>,
    }
}

/// The longest reason to look for, in characters.
const REASON_CHARS_MAX: usize = 200;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct RefusalQuery {
    /// Only those with this reason.
    #[param(max_length = 200)]
    pub reason: Option<String>,
    /// Only what happened at or after this.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub from: Option<Timestamp>,
    /// Only what happened before this.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub until: Option<Timestamp>,
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

/// Lists the commands that were refused because the caller was not allowed to, the newest first.
///
/// Commands that were refused for another reason, such as that somebody else was first, are counted in the series `refusals` and not
/// kept. A caller who may not see every instance gets those about instances that they see, and refused starts, so a page may not be full.
/// There may be more as long as `page.next` is present.
#[utoipa::path(get, path = "/v1/refusals", tag = "operation", operation_id = "listRefusals", params(RefusalQuery),
    responses((status = 200, body = Page<RefusalView>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<RefusalQuery>,
) -> Result<axum::Json<Page<RefusalView>>, Problem> {
    let viewer = app.engine.viewing(&who, "dead-letter:read").await?;
    let limit = limit(query.limit)?;
    let is_long = |reason: &String| reason.chars().count() > REASON_CHARS_MAX;
    if query.reason.as_ref().is_some_and(is_long) {
        let detail = format!("reason has at most {REASON_CHARS_MAX} characters");
        return Err(of_parameter("reason", detail));
    }
    let after: Option<AtTime> = decode(query.after.as_deref())?;
    let filter = AttemptFilter {
        reason: query.reason,
        from: query.from,
        until: query.until,
        after: after.map(|AtTime(at, id)| (at, id)),
        limit: i64::from(limit) + 1,
    };
    let place = |row: &AttemptRow| AtTime(row.occurred_at, row.id).to_string();
    let Attempts { found, reached } = attempts::list(app.engine.reader(), &viewer, &filter).await?;
    let reached = reached.as_ref().map(place);
    Ok(axum::Json(page_or_reached(found, limit, reached, place)))
}

//! Who could have acted on an instance, now or at any moment since it began.

use axum::extract::State;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::App;
use super::extract::{Caller, Path, Query};
use super::problem::Problem;
use crate::domain::ids::InstanceId;
use crate::domain::moment;
use crate::engine::StandingAt;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct StandingQuery {
    /// The moment, which is not in the future; now without it.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub at: Option<Timestamp>,
}

/// Who could act on each task that was open then, and how; and who could not, and why.
#[utoipa::path(get, path = "/v1/instances/{id}/standing", tag = "instances", operation_id = "standing", params(("id" = Uuid, Path), StandingQuery),
    responses((status = 200, body = StandingAt)))]
pub(super) async fn standing(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    Query(query): Query<StandingQuery>,
) -> Result<axum::Json<StandingAt>, Problem> {
    app.engine.permit(&who, "instance:read").await?;
    let now = app.engine.clock().now();
    let at = query.at.unwrap_or(now);
    if at > now {
        let detail = format!("at is in the future: here it is {now}");
        return Err(Problem::new("malformed_request", detail));
    }
    let standing = app.engine.standing_at(&who, InstanceId(id), at).await?;
    Ok(axum::Json(standing))
}

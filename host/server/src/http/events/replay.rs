//! Sends published events to Kafka again.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::position;
use crate::http::App;
use crate::http::extract::{Body, Caller};
use crate::http::layers::without_query;
use crate::http::page::encode;
use crate::http::problem::Problem;
use wrkflw_core::event_filter::EventFilter;
use wrkflw_core::ids::TenantId;
use wrkflw_store::feed::FeedCursor;
use wrkflw_store::replay::{REPLAYED_MAX, Replay};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    without_query(OpenApiRouter::new().routes(routes!(replay)))
}

/// Which events are sent again, and why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::http) struct ReplayBody {
    /// The cursor before the first event, of a page or a stream; `earliest` for the first event ever.
    pub after: String,
    /// The cursor of the last event. Default: all that there are now.
    pub until: Option<String>,
    /// Only events of this instance.
    pub instance_id: Option<Uuid>,
    /// Maximum number of events, 1000 by default.
    #[schema(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
    /// Kept in the audit.
    #[schema(format = "reason")]
    pub reason: String,
}

/// The events that are sent again.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct ReplayedView {
    /// How many events are sent again. Those that were not sent yet, such as those behind a dead letter, are not among them.
    pub replayed: u32,
    /// The value of `after` to go on with.
    pub next: String,
    /// Whether the range goes on. If so, repeat the request with `next`.
    pub more: bool,
}

/// Sends a range of published events to Kafka again, at most 1000 at once. Ids and content do not change, and each record has the
/// header `wrkflw-replayed: true`. Consumers drop by id what they know.
///
/// Who does not see every instance may send the events of one that they see.
#[utoipa::path(post, path = "/v1/events/replay", tag = "events", operation_id = "replayEvents", request_body = ReplayBody,
    responses((status = 200, body = ReplayedView)))]
pub(in crate::http) async fn replay(
    State(app): State<App>,
    Caller(who): Caller,
    Body { value, .. }: Body<ReplayBody>,
) -> Result<axum::Json<ReplayedView>, Problem> {
    let viewer = app.engine.viewing(&who, "dead-letter:write").await?;
    let limit = value.limit.unwrap_or(REPLAYED_MAX);
    if !(1..=REPLAYED_MAX).contains(&limit) {
        let detail = format!("/limit: this is 1 to {REPLAYED_MAX}");
        return Err(Problem::new("invalid_request", detail));
    }
    let after = known(&app, who.tenant, &value.after).await?;
    let until = match &value.until {
        Some(until) => Some(known(&app, who.tenant, until).await?),
        None => None,
    };
    if until.is_some_and(|until| until < after) {
        let detail = "/until: this event is before the one of `after`";
        return Err(Problem::new("invalid_request", detail));
    }
    let replay = Replay {
        after,
        until,
        instance: value.instance_id,
        limit,
    };
    let replayed = app
        .engine
        .dead_letters()
        .replay(&who, &viewer, replay, &value.reason)
        .await?;
    Ok(axum::Json(ReplayedView {
        replayed: replayed.replayed,
        next: encode(&replayed.end.to_string()),
        more: replayed.more,
    }))
}

/// The position that a cursor names, if it is one of this database.
async fn known(app: &App, tenant: TenantId, cursor: &str) -> Result<FeedCursor, Problem> {
    let position = position(Some(cursor))?.unwrap_or(FeedCursor::FIRST);
    super::read(app, tenant, Some(position), 0, &EventFilter::default()).await?;
    Ok(position)
}

//! The comment that the caller has begun to write for a decision.

use axum::extract::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::conditional::conditional;
use super::extract::{Body, Caller, Path};
use super::layers::without_query;
use super::problem::Problem;
use wrkflw_core::ids::TaskId;
use wrkflw_engine::Draft;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    let single = OpenApiRouter::new().routes(routes!(show, put));
    without_query(conditional(single))
}

/// A comment that is not sent yet. Nobody else sees it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DraftView {
    /// None if there is no draft.
    comment: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime)]
    updated_at: Option<Timestamp>,
}

impl From<Option<Draft>> for DraftView {
    fn from(draft: Option<Draft>) -> DraftView {
        let (comment, updated_at) = draft.map(|draft| (draft.comment, draft.updated_at)).unzip();
        DraftView {
            comment,
            updated_at,
        }
    }
}

/// A draft to keep.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DraftBody {
    /// Blank: deletes the draft.
    #[schema(max_length = 4096)]
    pub comment: String,
}

/// The draft of the caller for the decision of an open task.
#[utoipa::path(get, path = "/v1/tasks/{id}/draft", tag = "tasks", operation_id = "getDraft", params(("id" = Uuid, Path)),
    responses((status = 200, body = DraftView)))]
pub(super) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<axum::Json<DraftView>, Problem> {
    let draft = app.engine.drafts().get(&who, TaskId(id)).await?;
    Ok(axum::Json(draft.into()))
}

/// Keeps a draft of the caller for the decision of an open task. It ends with the task. A person has at most 200; a further one
/// takes the place of the oldest.
#[utoipa::path(put, path = "/v1/tasks/{id}/draft", tag = "tasks", operation_id = "putDraft", params(("id" = Uuid, Path)),
    request_body = DraftBody, responses((status = 200, body = DraftView)))]
pub(super) async fn put(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    Body { value, .. }: Body<DraftBody>,
) -> Result<axum::Json<DraftView>, Problem> {
    let draft = app
        .engine
        .drafts()
        .put(&who, TaskId(id), value.comment)
        .await?;
    Ok(axum::Json(draft.into()))
}

//! The views of the list of tasks that the caller saved.

use axum::extract::State;
use axum::http::StatusCode;
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
use wrkflw_engine::SavedView;
use wrkflw_store::saved_views;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    let single = OpenApiRouter::new().routes(routes!(list));
    OpenApiRouter::new()
        .merge(without_query(conditional(single)))
        .merge(without_query(
            OpenApiRouter::new().routes(routes!(put, delete)),
        ))
}

/// A saved view of the list of tasks.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SavedViewView {
    pub id: Uuid,
    pub name: String,
    /// The query of the list, without its question mark. Besides the parameters of `GET /v1/tasks` it may have parameters of the client,
    /// such as the columns of the console.
    pub query: String,
    /// Whether the list opens with this view. At most one view is the default.
    pub default: bool,
}

impl From<SavedView> for SavedViewView {
    fn from(view: SavedView) -> SavedViewView {
        SavedViewView {
            id: view.id,
            name: view.name,
            query: view.query,
            default: view.is_default,
        }
    }
}

/// The saved views of the caller.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SavedViews {
    #[schema(max_items = 30)]
    data: Vec<SavedViewView>,
}

/// A view to keep.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedViewBody {
    /// Unique among the saved views of the caller.
    #[schema(min_length = 1, max_length = 60)]
    pub name: String,
    #[schema(max_length = 1000)]
    pub query: String,
    /// Makes it the default, in place of any other.
    #[serde(default)]
    pub default: bool,
}

/// Lists the saved views of the caller by name, at most 30. It needs no permission.
#[utoipa::path(get, path = "/v1/me/views", tag = "tasks", operation_id = "listSavedViews", responses((status = 200, body = SavedViews)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
) -> Result<axum::Json<SavedViews>, Problem> {
    let views = saved_views::list(app.engine.reader(), who.tenant, &who.subject);
    let data = views.await?.into_iter().map(SavedViewView::from).collect();
    Ok(axum::Json(SavedViews { data }))
}

/// Creates or replaces a saved view of the caller, who chooses its id. It needs no permission.
#[utoipa::path(put, path = "/v1/me/views/{id}", tag = "tasks", operation_id = "putSavedView", params(("id" = Uuid, Path)),
    request_body = SavedViewBody, responses((status = 200, body = SavedViewView)))]
pub(super) async fn put(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    Body { value, .. }: Body<SavedViewBody>,
) -> Result<axum::Json<SavedViewView>, Problem> {
    let view = SavedView {
        id,
        name: value.name,
        query: value.query,
        is_default: value.default,
    };
    app.engine.saved_views().put(&who, &view).await?;
    Ok(axum::Json(view.into()))
}

/// Deletes a saved view of the caller. It needs no permission.
#[utoipa::path(delete, path = "/v1/me/views/{id}", tag = "tasks", operation_id = "deleteSavedView", params(("id" = Uuid, Path)),
    responses((status = 204)))]
pub(super) async fn delete(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, Problem> {
    app.engine.saved_views().delete(&who, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

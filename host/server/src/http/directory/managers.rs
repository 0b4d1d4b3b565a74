//! The managers of people.

use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{DirectoryAnswer, DirectoryResult, Person};
use crate::http::App;
use crate::http::extract::{Body, Caller, DryRun, Path, Query};
use crate::http::problem::Problem;
use wrkflw_engine::Identity;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(put_manager, delete_manager))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ManagerBody {
    /// Id of the person who manages.
    #[schema(format = "name")]
    pub manager: String,
}

/// Sets or replaces a person's manager.
#[utoipa::path(put, path = "/v1/people/{id}/manager", tag = "directory", operation_id = "putManager", params(("id" = String, Path, format = "name"), DryRun),
    request_body = ManagerBody,
    responses((status = 200, body = DirectoryAnswer)))]
pub(in crate::http) async fn put_manager(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
    Query(dry): Query<DryRun>,
    Body { value, .. }: Body<ManagerBody>,
) -> Result<axum::Json<DirectoryAnswer>, Problem> {
    change(&app, &who, id, Some(value.manager), &dry).await
}

/// Removes a person's manager.
#[utoipa::path(delete, path = "/v1/people/{id}/manager", tag = "directory", operation_id = "deleteManager", params(("id" = String, Path, format = "name"), DryRun),
    responses((status = 200, body = DirectoryAnswer)))]
pub(in crate::http) async fn delete_manager(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
    Query(dry): Query<DryRun>,
) -> Result<axum::Json<DirectoryAnswer>, Problem> {
    change(&app, &who, id, None, &dry).await
}

async fn change(
    app: &App,
    who: &Identity,
    person: String,
    manager: Option<String>,
    dry: &DryRun,
) -> Result<axum::Json<DirectoryAnswer>, Problem> {
    let manager = manager.as_deref();
    let changed = app
        .engine
        .directory()
        .put_manager(who, &person, manager, dry.dry_run)
        .await?;
    let answer = DirectoryAnswer::of::<_, Person>(changed, DirectoryResult::Changed);
    Ok(axum::Json(answer))
}

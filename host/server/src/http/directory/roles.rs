//! Roles and what they permit.

use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::DirectoryAnswer;
use crate::http::App;
use crate::http::conditional::conditional;
use crate::http::extract::{Body, Caller, DryRun, Path, Query};
use crate::http::layers::without_query;
use crate::http::page::{Page, page_to};
use crate::http::problem::Problem;
use crate::http::view::view;
use wrkflw_store::directory::roles;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    let single = OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show));
    OpenApiRouter::new()
        .routes(routes!(put))
        .merge(without_query(conditional(single)))
}

view! {
    of wrkflw_store::directory::roles::Role;
    /// A role. Tokens say which roles a person has.
    pub(in crate::http) struct Role {
        pub id: String,
        /// In alphabetical order.
        pub permissions: Vec<String>,
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct RoleBody {
    /// All that the role permits from now on, at most 200. Without any, there is no such role any more.
    pub permissions: Vec<String>,
}

/// All roles, by id. There are at most 100, on one page.
#[utoipa::path(get, path = "/v1/roles", tag = "directory", operation_id = "listRoles",
    responses((status = 200, body = Page<Role>)))]
pub(in crate::http) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
) -> Result<axum::Json<Page<Role>>, Problem> {
    app.engine.permit(&who, "role:read").await?;
    let roles = roles::list(app.engine.reader(), who.tenant, None).await?;
    Ok(axum::Json(page_to(roles, None)))
}

/// What a role permits.
#[utoipa::path(get, path = "/v1/roles/{id}", tag = "directory", operation_id = "getRole", params(("id" = String, Path, format = "name")),
    responses((status = 200, body = Role)))]
pub(in crate::http) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
) -> Result<axum::Json<Role>, Problem> {
    app.engine.permit(&who, "role:read").await?;
    Ok(axum::Json(app.engine.roles().get(&who, &id).await?.into()))
}

/// Sets what a role permits. It counts from the next request on. Some role always permits `role:write`.
#[utoipa::path(put, path = "/v1/roles/{id}", tag = "directory", operation_id = "putRole", params(("id" = String, Path, format = "name"), DryRun),
    request_body = RoleBody, responses((status = 200, body = DirectoryAnswer)))]
pub(in crate::http) async fn put(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
    Query(dry): Query<DryRun>,
    Body { value, .. }: Body<RoleBody>,
) -> Result<axum::Json<DirectoryAnswer>, Problem> {
    let (permissions, dry_run) = (&value.permissions, dry.dry_run);
    let put = app.engine.roles().put(&who, &id, permissions, dry_run);
    let (before, after) = put.await?;
    Ok(axum::Json(DirectoryAnswer {
        before: dry_run.then(|| before.into()),
        role: Some(after.into()),
        dry_run,
        ..DirectoryAnswer::default()
    }))
}

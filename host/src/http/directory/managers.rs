//! Managers: who is above whom.

use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Told, check_person, find_person, run_of, settle};
use crate::domain::standing::directory::Change;
use crate::engine::Identity;
use crate::http::App;
use crate::http::extract::{Body, Caller, DryRun, Path, Query};
use crate::http::problem::Problem;
use crate::store::directory::people::Person;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ManagerBody {
    /// Id of the person who manages.
    pub manager: String,
}

/// Gives a person a manager, instead of the one they have.
#[utoipa::path(put, path = "/v1/people/{id}/manager", tag = "directory", params(("id" = String, Path), DryRun), request_body = ManagerBody,
    responses((status = 200, body = Told<Person>)))]
pub(in crate::http) async fn put_manager(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
    Query(dry): Query<DryRun>,
    Body { value, .. }: Body<ManagerBody>,
) -> Result<axum::Json<Told<Person>>, Problem> {
    change(&app, &who, id, Some(value.manager), &dry).await
}

/// Leaves a person without a manager.
#[utoipa::path(delete, path = "/v1/people/{id}/manager", tag = "directory", params(("id" = String, Path), DryRun),
    responses((status = 200, body = Told<Person>)))]
pub(in crate::http) async fn delete_manager(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
    Query(dry): Query<DryRun>,
) -> Result<axum::Json<Told<Person>>, Problem> {
    change(&app, &who, id, None, &dry).await
}

async fn change(
    app: &App,
    who: &Identity,
    person: String,
    manager: Option<String>,
    dry: &DryRun,
) -> Result<axum::Json<Told<Person>>, Problem> {
    app.engine.permit(who, "directory:write").await?;
    if let Some(manager) = &manager {
        check_person("/manager", manager)?;
    }
    let note = app.engine.note(&who.subject);
    let put = app
        .engine
        .store()
        .put_manager(
            who.tenant,
            &person,
            manager.as_deref(),
            run_of(dry.dry_run),
            &note,
        )
        .await?;
    settle(put, "person", &person)?;
    if dry.dry_run {
        let change = Change::Managed { person, manager };
        return Ok(axum::Json(Told::Dry(
            app.engine.preview(who, &change).await?,
        )));
    }
    Ok(axum::Json(Told::Done(
        find_person(app, who, &person).await?,
    )))
}

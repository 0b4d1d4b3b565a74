//! People, groups and who is in which.

use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use super::App;
use super::extract::{Body, Caller, Path, check_name};
use super::problem::Problem;
use crate::engine::{Error, Identity};
use crate::store::directory::{Group, Membership, Person};

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NameBody {
    /// For people to read.
    pub name: String,
}

/// A person with their groups.
#[utoipa::path(get, path = "/v1/people/{id}", tag = "directory", params(("id" = String, Path)), responses((status = 200, body = Person)))]
pub(super) async fn person(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
) -> Result<axum::Json<Person>, Problem> {
    app.engine.permit(&who, "directory:read").await?;
    read_person(&app, &who, &id).await
}

async fn read_person(app: &App, who: &Identity, id: &str) -> Result<axum::Json<Person>, Problem> {
    let person = app.engine.store().person(who.tenant, id).await?;
    Ok(axum::Json(person.ok_or_else(|| Error::NotFound {
        what: "person",
        id: id.to_owned(),
    })?))
}

/// Adds a person, or renames them.
#[utoipa::path(put, path = "/v1/people/{id}", tag = "directory", params(("id" = String, Path)), request_body = NameBody,
    responses((status = 200, body = Person)))]
pub(super) async fn put_person(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
    Body { value, .. }: Body<NameBody>,
) -> Result<axum::Json<Person>, Problem> {
    app.engine.permit(&who, "directory:write").await?;
    check_name("/id", &id)?;
    check_name("/name", &value.name)?;
    app.engine
        .store()
        .put_person(who.tenant, &id, &value.name, &app.engine.note(&who.subject))
        .await?;
    read_person(&app, &who, &id).await
}

/// A group with its members.
#[utoipa::path(get, path = "/v1/groups/{id}", tag = "directory", params(("id" = String, Path)), responses((status = 200, body = Group)))]
pub(super) async fn group(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
) -> Result<axum::Json<Group>, Problem> {
    app.engine.permit(&who, "directory:read").await?;
    read_group(&app, &who, &id).await
}

async fn read_group(app: &App, who: &Identity, id: &str) -> Result<axum::Json<Group>, Problem> {
    let group = app.engine.store().group(who.tenant, id).await?;
    Ok(axum::Json(group.ok_or_else(|| Error::NotFound {
        what: "group",
        id: id.to_owned(),
    })?))
}

/// Adds a group, or renames it.
#[utoipa::path(put, path = "/v1/groups/{id}", tag = "directory", params(("id" = String, Path)), request_body = NameBody,
    responses((status = 200, body = Group)))]
pub(super) async fn put_group(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
    Body { value, .. }: Body<NameBody>,
) -> Result<axum::Json<Group>, Problem> {
    app.engine.permit(&who, "directory:write").await?;
    check_name("/id", &id)?;
    check_name("/name", &value.name)?;
    app.engine
        .store()
        .put_group(who.tenant, &id, &value.name, &app.engine.note(&who.subject))
        .await?;
    read_group(&app, &who, &id).await
}

/// Makes a person a member of a group.
#[utoipa::path(put, path = "/v1/groups/{id}/members/{person}", tag = "directory",
    params(("id" = String, Path), ("person" = String, Path)), responses((status = 200, body = Group)))]
pub(super) async fn put_member(
    State(app): State<App>,
    Caller(who): Caller,
    Path((group, person)): Path<(String, String)>,
) -> Result<axum::Json<Group>, Problem> {
    change(&app, &who, &group, &person, Membership::Begins).await
}

/// Ends a person's membership of a group.
#[utoipa::path(delete, path = "/v1/groups/{id}/members/{person}", tag = "directory",
    params(("id" = String, Path), ("person" = String, Path)), responses((status = 200, body = Group)))]
pub(super) async fn delete_member(
    State(app): State<App>,
    Caller(who): Caller,
    Path((group, person)): Path<(String, String)>,
) -> Result<axum::Json<Group>, Problem> {
    change(&app, &who, &group, &person, Membership::Ends).await
}

async fn change(
    app: &App,
    who: &Identity,
    group: &str,
    person: &str,
    membership: Membership,
) -> Result<axum::Json<Group>, Problem> {
    app.engine.permit(who, "directory:write").await?;
    let note = app.engine.note(&who.subject);
    if !app
        .engine
        .store()
        .put_membership(who.tenant, group, person, membership, &note)
        .await?
    {
        return Err(Error::NotFound {
            what: "group with that person",
            id: format!("{group}/{person}"),
        }
        .into());
    }
    read_group(app, who, group).await
}

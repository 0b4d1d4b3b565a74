//! People, groups and memberships. A dry run of a change checks it completely, and returns the open tasks for which nobody
//! would be eligible afterwards.

pub(super) mod absences;
pub(super) mod lists;
pub(super) mod managers;
pub(super) mod roles;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::App;
use super::eligibility::Preview;
use super::extract::{Body, Caller, DryRun, Path, Query};
use super::problem::Problem;
use crate::http::view::view;
use wrkflw_engine::{Changed, Identity};
use wrkflw_store::directory::Membership;

view! {
    of wrkflw_store::directory::people::Person;
    /// Somebody who may act.
    pub(super) struct Person {
        pub id: String,
        pub name: String,
        pub groups: Vec<String>,
        pub manager: Option<String>,
    }
}

view! {
    of wrkflw_store::directory::people::Group;
    /// People to whom work can be offered together.
    pub(super) struct Group {
        pub id: String,
        pub name: String,
        pub members: Vec<String>,
    }
}

/// The result of a change, or of its dry run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Told<T: ToSchema> {
    Done(T),
    Dry(Preview),
}

impl<R, T: From<R> + ToSchema> From<Changed<R>> for Told<T> {
    fn from(changed: Changed<R>) -> Told<T> {
        match changed {
            Changed::Done(done) => Told::Done(done.into()),
            Changed::Dry(preview) => Told::Dry(preview.into()),
        }
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NameBody {
    /// The name that people see.
    pub name: String,
}

/// A person with their groups.
#[utoipa::path(get, path = "/v1/people/{id}", tag = "directory", operation_id = "getPerson", params(("id" = String, Path)),
    responses((status = 200, body = Person)))]
pub(super) async fn person(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
) -> Result<axum::Json<Person>, Problem> {
    app.engine.permit(&who, "directory:read").await?;
    Ok(axum::Json(app.engine.person(&who, &id).await?.into()))
}

/// Adds a person, or renames them.
#[utoipa::path(put, path = "/v1/people/{id}", tag = "directory", operation_id = "putPerson", params(("id" = String, Path)), request_body = NameBody,
    responses((status = 200, body = Person)))]
pub(super) async fn put_person(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
    Body { value, .. }: Body<NameBody>,
) -> Result<axum::Json<Person>, Problem> {
    let person = app.engine.put_person(&who, &id, &value.name).await?;
    Ok(axum::Json(person.into()))
}

/// A group with its members.
#[utoipa::path(get, path = "/v1/groups/{id}", tag = "directory", operation_id = "getGroup", params(("id" = String, Path)),
    responses((status = 200, body = Group)))]
pub(super) async fn group(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
) -> Result<axum::Json<Group>, Problem> {
    app.engine.permit(&who, "directory:read").await?;
    Ok(axum::Json(app.engine.group(&who, &id).await?.into()))
}

/// Adds a group, or renames it.
#[utoipa::path(put, path = "/v1/groups/{id}", tag = "directory", operation_id = "putGroup", params(("id" = String, Path)), request_body = NameBody,
    responses((status = 200, body = Group)))]
pub(super) async fn put_group(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
    Body { value, .. }: Body<NameBody>,
) -> Result<axum::Json<Group>, Problem> {
    let group = app.engine.put_group(&who, &id, &value.name).await?;
    Ok(axum::Json(group.into()))
}

/// Makes a person a member of a group.
#[utoipa::path(put, path = "/v1/groups/{id}/members/{person}", tag = "directory", operation_id = "putGroupMember",
    params(("id" = String, Path), ("person" = String, Path), DryRun), responses((status = 200, body = Told<Group>)))]
pub(super) async fn put_member(
    State(app): State<App>,
    Caller(who): Caller,
    Path((group, person)): Path<(String, String)>,
    Query(dry): Query<DryRun>,
) -> Result<axum::Json<Told<Group>>, Problem> {
    change(&app, &who, (group, person), Membership::Begins, &dry).await
}

/// Ends a person's membership of a group.
#[utoipa::path(delete, path = "/v1/groups/{id}/members/{person}", tag = "directory", operation_id = "deleteGroupMember",
    params(("id" = String, Path), ("person" = String, Path), DryRun), responses((status = 200, body = Told<Group>)))]
pub(super) async fn delete_member(
    State(app): State<App>,
    Caller(who): Caller,
    Path((group, person)): Path<(String, String)>,
    Query(dry): Query<DryRun>,
) -> Result<axum::Json<Told<Group>>, Problem> {
    change(&app, &who, (group, person), Membership::Ends, &dry).await
}

async fn change(
    app: &App,
    who: &Identity,
    (group, person): (String, String),
    membership: Membership,
    dry: &DryRun,
) -> Result<axum::Json<Told<Group>>, Problem> {
    let names = (group.as_str(), person.as_str());
    let changed = app
        .engine
        .put_membership(who, names, membership, dry.dry_run)
        .await?;
    Ok(axum::Json(changed.into()))
}

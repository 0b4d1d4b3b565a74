//! People, groups and who is in which. A change that takes `dryRun` is judged in full and answered with the open tasks
//! that it would leave to nobody.

pub(super) mod absences;
pub(super) mod managers;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::App;
use super::extract::{Body, Caller, DryRun, Path, Query, check_id, check_name};
use super::problem::Problem;
use crate::domain::actor::is_reserved;
use crate::domain::standing::directory::Change;
use crate::engine::{Error, Identity, Preview};
use crate::store::directory::people::{Group, Person};
use crate::store::directory::{Membership, Put, Run};

/// What a change came to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Told<T: ToSchema> {
    Done(T),
    Dry(Preview),
}

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

/// An id of a person: none that the host acts under.
fn check_person(pointer: &str, id: &str) -> Result<(), Problem> {
    check_id(pointer, id)?;
    if !is_reserved(id) {
        return Ok(());
    }
    let detail = "names that begin with wrkflw: are the host's own";
    let problem = Problem::new("invalid_request", format!("{pointer}: {detail}"));
    Err(problem.at(pointer, "malformed", detail.to_owned()))
}

async fn read_person(app: &App, who: &Identity, id: &str) -> Result<axum::Json<Person>, Problem> {
    find_person(app, who, id).await.map(axum::Json)
}

async fn find_person(app: &App, who: &Identity, id: &str) -> Result<Person, Problem> {
    let person = app.engine.store().person(who.tenant, id).await?;
    person.ok_or_else(|| missing("person", id))
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
    check_person("/id", &id)?;
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
    find_group(app, who, id).await.map(axum::Json)
}

async fn find_group(app: &App, who: &Identity, id: &str) -> Result<Group, Problem> {
    let group = app.engine.store().group(who.tenant, id).await?;
    group.ok_or_else(|| missing("group", id))
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
    check_id("/id", &id)?;
    check_name("/name", &value.name)?;
    app.engine
        .store()
        .put_group(who.tenant, &id, &value.name, &app.engine.note(&who.subject))
        .await?;
    read_group(&app, &who, &id).await
}

/// Makes a person a member of a group.
#[utoipa::path(put, path = "/v1/groups/{id}/members/{person}", tag = "directory",
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
#[utoipa::path(delete, path = "/v1/groups/{id}/members/{person}", tag = "directory",
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
    app.engine.permit(who, "directory:write").await?;
    let note = app.engine.note(&who.subject);
    let (store, names) = (app.engine.store(), (group.as_str(), person.as_str()));
    let put = store
        .put_membership(who.tenant, names, membership, run_of(dry.dry_run), &note)
        .await?;
    settle(put, "group with that person", &format!("{group}/{person}"))?;
    if dry.dry_run {
        let change = match membership {
            Membership::Begins => Change::Joins { group, person },
            Membership::Ends => Change::Leaves { group, person },
        };
        return Ok(axum::Json(Told::Dry(
            app.engine.preview(who, &change).await?,
        )));
    }
    Ok(axum::Json(Told::Done(find_group(app, who, &group).await?)))
}

fn run_of(dry_run: bool) -> Run {
    if dry_run { Run::Dry } else { Run::Real }
}

/// The problem of a change that was not made.
fn settle(put: Put, what: &'static str, id: &str) -> Result<(), Problem> {
    match put {
        Put::Done => Ok(()),
        Put::Missing => Err(missing(what, id)),
        Put::Taken => Err(Error::KeyReused.into()),
        Put::Refused(refusal) => {
            let detail = refusal.to_string();
            let problem = Problem::new("invalid_request", detail.clone());
            Err(problem.at(refusal.pointer(), refusal.code(), detail))
        }
    }
}

fn missing(what: &'static str, id: &str) -> Problem {
    let id = id.to_owned();
    Error::NotFound { what, id }.into()
}

//! People, groups and memberships. A dry run of a change checks it completely, and returns the open tasks for which nobody
//! would be eligible afterwards.

pub(super) mod absences;
mod lists;
mod managers;
mod names;
mod roles;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::conditional::conditional;
use super::eligibility::Orphan;
use super::extract::{Body, Caller, DryRun, Path, Query};
use super::layers::without_query;
use super::problem::Problem;
use crate::http::view::{each, view};
use absences::KeptAbsence;
use roles::Role;
use wrkflw_engine::{Changed, Identity};
use wrkflw_store::directory::Membership;

/// The routes of this file and of those below it.
pub(super) fn routes() -> OpenApiRouter<App> {
    let single = OpenApiRouter::new()
        .routes(routes!(person, put_person))
        .routes(routes!(group, put_group));
    OpenApiRouter::new()
        .routes(routes!(put_member, delete_member))
        .merge(without_query(conditional(single)))
        .merge(absences::routes())
        .merge(lists::routes())
        .merge(managers::routes())
        .merge(names::routes())
        .merge(roles::routes())
}

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
        /// The first 100 by id. `GET /v1/people?group=` lists all.
        pub members: Vec<String>,
        /// Whether it has more members than these.
        pub more: bool,
    }
}

/// The answer to a change of the directory: what happened, and the person, group, absence or role afterwards. A dry run has the
/// open tasks for which nobody would be eligible instead; that of a role has the role before and after.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DirectoryAnswer {
    pub result: DirectoryResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub person: Option<Person>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absence: Option<KeptAbsence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// What the role permits now. Only of the dry run of a role; `role` is what it would permit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Role>,
    /// The open tasks for which somebody is eligible now, and nobody after the change. Only of a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orphans: Option<Vec<Orphan>>,
    /// Whether there may be more of them. Only of a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<bool>,
    /// Nothing was written.
    pub dry_run: bool,
}

/// What a change of the directory did, or would do if it is a dry run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum DirectoryResult {
    /// It is as the request says, whether it was so before or not.
    #[default]
    Changed,
    /// The absence is new, or the idempotency key repeats the request that made it.
    Created,
    /// The absence has ended.
    Ended,
}

impl From<Person> for DirectoryAnswer {
    fn from(person: Person) -> DirectoryAnswer {
        DirectoryAnswer {
            person: Some(person),
            ..DirectoryAnswer::default()
        }
    }
}

impl From<Group> for DirectoryAnswer {
    fn from(group: Group) -> DirectoryAnswer {
        DirectoryAnswer {
            group: Some(group),
            ..DirectoryAnswer::default()
        }
    }
}

impl From<KeptAbsence> for DirectoryAnswer {
    fn from(absence: KeptAbsence) -> DirectoryAnswer {
        DirectoryAnswer {
            absence: Some(absence),
            ..DirectoryAnswer::default()
        }
    }
}

impl DirectoryAnswer {
    /// The answer to a change, or to its dry run.
    pub(super) fn of<R, T>(changed: Changed<R>, result: DirectoryResult) -> DirectoryAnswer
    where
        T: From<R>,
        DirectoryAnswer: From<T>,
    {
        let answer = match changed {
            Changed::Done(done) => DirectoryAnswer::from(T::from(done)),
            Changed::Dry(preview) => DirectoryAnswer {
                orphans: Some(each(preview.orphans)),
                more: Some(preview.more),
                dry_run: true,
                ..DirectoryAnswer::default()
            },
        };
        DirectoryAnswer { result, ..answer }
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NameBody {
    /// The name that people see.
    #[schema(format = "name")]
    pub name: String,
}

/// A person with their groups.
#[utoipa::path(get, path = "/v1/people/{id}", tag = "directory", operation_id = "getPerson", params(("id" = String, Path, format = "name")),
    responses((status = 200, body = Person)))]
pub(super) async fn person(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
) -> Result<axum::Json<Person>, Problem> {
    app.engine.permit(&who, "directory:read").await?;
    Ok(axum::Json(
        app.engine.directory().person(&who, &id).await?.into(),
    ))
}

/// Adds a person, or renames them.
#[utoipa::path(put, path = "/v1/people/{id}", tag = "directory", operation_id = "putPerson", params(("id" = String, Path, format = "name")), request_body = NameBody,
    responses((status = 200, body = DirectoryAnswer)))]
pub(super) async fn put_person(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
    Body { value, .. }: Body<NameBody>,
) -> Result<axum::Json<DirectoryAnswer>, Problem> {
    let person = app
        .engine
        .directory()
        .put_person(&who, &id, &value.name)
        .await?;
    Ok(axum::Json(Person::from(person).into()))
}

/// A group with its first members.
#[utoipa::path(get, path = "/v1/groups/{id}", tag = "directory", operation_id = "getGroup", params(("id" = String, Path, format = "name")),
    responses((status = 200, body = Group)))]
pub(super) async fn group(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
) -> Result<axum::Json<Group>, Problem> {
    app.engine.permit(&who, "directory:read").await?;
    Ok(axum::Json(
        app.engine.directory().group(&who, &id).await?.into(),
    ))
}

/// Adds a group, or renames it.
#[utoipa::path(put, path = "/v1/groups/{id}", tag = "directory", operation_id = "putGroup", params(("id" = String, Path, format = "name")), request_body = NameBody,
    responses((status = 200, body = DirectoryAnswer)))]
pub(super) async fn put_group(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<String>,
    Body { value, .. }: Body<NameBody>,
) -> Result<axum::Json<DirectoryAnswer>, Problem> {
    let group = app
        .engine
        .directory()
        .put_group(&who, &id, &value.name)
        .await?;
    Ok(axum::Json(Group::from(group).into()))
}

/// Makes a person a member of a group.
#[utoipa::path(put, path = "/v1/groups/{id}/members/{person}", tag = "directory", operation_id = "putGroupMember",
    params(("id" = String, Path, format = "name"), ("person" = String, Path, format = "name"), DryRun), responses((status = 200, body = DirectoryAnswer)))]
pub(super) async fn put_member(
    State(app): State<App>,
    Caller(who): Caller,
    Path((group, person)): Path<(String, String)>,
    Query(dry): Query<DryRun>,
) -> Result<axum::Json<DirectoryAnswer>, Problem> {
    change(&app, &who, (group, person), Membership::Begins, &dry).await
}

/// Ends a person's membership of a group.
#[utoipa::path(delete, path = "/v1/groups/{id}/members/{person}", tag = "directory", operation_id = "deleteGroupMember",
    params(("id" = String, Path, format = "name"), ("person" = String, Path, format = "name"), DryRun), responses((status = 200, body = DirectoryAnswer)))]
pub(super) async fn delete_member(
    State(app): State<App>,
    Caller(who): Caller,
    Path((group, person)): Path<(String, String)>,
    Query(dry): Query<DryRun>,
) -> Result<axum::Json<DirectoryAnswer>, Problem> {
    change(&app, &who, (group, person), Membership::Ends, &dry).await
}

async fn change(
    app: &App,
    who: &Identity,
    (group, person): (String, String),
    membership: Membership,
    dry: &DryRun,
) -> Result<axum::Json<DirectoryAnswer>, Problem> {
    let names = (group.as_str(), person.as_str());
    let changed = app
        .engine
        .directory()
        .put_membership(who, names, membership, dry.dry_run)
        .await?;
    let answer = DirectoryAnswer::of::<_, Group>(changed, DirectoryResult::Changed);
    Ok(axum::Json(answer))
}

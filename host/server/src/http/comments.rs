//! Comments on an instance: people leave them, also after its end, and mention others.

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::commands::{CommandAnswer, run};
use super::extract::{Body, Caller, DryRun, Options, Path, Query};
use super::page::{Page, decode, limit, page};
use super::problem::Problem;
use super::shapes::Named;
use wrkflw_core::command::Command;
use wrkflw_core::ids::InstanceId;
use wrkflw_engine::Error;
use wrkflw_engine::validation::{check_comment, check_person};
use wrkflw_store::comments::{self, Comment};
use wrkflw_store::entities;
use wrkflw_store::viewer::Viewer;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(comment))
        .routes(routes!(list))
}

/// A comment, and whom it mentions.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CommentBody {
    #[schema(min_length = 1, max_length = 4096)]
    pub comment: String,
    /// The ids of the people whom it mentions, who are notified. A name in the text alone mentions nobody.
    #[serde(default)]
    #[schema(max_items = 20, value_type = Vec<Named>, inline)]
    pub mentions: Vec<String>,
}

/// A comment on an instance.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommentView {
    /// That of its event.
    id: Uuid,
    /// Who commented.
    actor: Option<String>,
    /// None where the entry was made unreadable.
    comment: Option<String>,
    /// The ids of the people whom it mentions.
    mentions: Vec<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<Comment> for CommentView {
    fn from(row: Comment) -> CommentView {
        CommentView {
            id: row.id,
            actor: row.actor,
            comment: row.comment,
            mentions: row.mentions,
            created_at: row.created_at,
        }
    }
}

/// Comments on an instance, also when it is suspended or has ended. The people whom the comment mentions are notified.
/// Flow logic is not asked, and is not told of the comment.
#[utoipa::path(post, path = "/v1/instances/{id}/comment", tag = "instances", operation_id = "commentOnInstance",
    params(("id" = Uuid, Path), DryRun), request_body = CommentBody, responses((status = 200, body = CommandAnswer)))]
pub(super) async fn comment(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    options: Options,
    Body { value, canonical }: Body<CommentBody>,
) -> Result<Response, Problem> {
    check_comment(&value.comment)?;
    for (place, person) in value.mentions.iter().enumerate() {
        check_person(&format!("/mentions/{place}"), person)?;
    }
    let command = Command::Comment {
        instance: InstanceId(id),
        comment: value.comment,
        mentions: value.mentions,
    };
    run(&app, &who, command, options, &canonical).await
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct CommentQuery {
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

/// Fails if there is no such instance, or the viewer does not see it.
pub(super) async fn seen(app: &App, viewer: &Viewer, instance: InstanceId) -> Result<(), Problem> {
    let entity = entities::of_instance(app.engine.reader(), viewer, instance).await?;
    let missing = || Error::NotFound {
        what: "instance",
        id: instance.0.to_string(),
    };
    entity.map(drop).ok_or_else(missing).map_err(Problem::from)
}

/// Lists the comments on an instance, newest first.
#[utoipa::path(get, path = "/v1/instances/{id}/comments", tag = "instances", operation_id = "listComments",
    params(("id" = Uuid, Path), CommentQuery), responses((status = 200, body = Page<CommentView>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    Query(query): Query<CommentQuery>,
) -> Result<axum::Json<Page<CommentView>>, Problem> {
    let viewer = app.engine.viewing(&who, "instance:read").await?;
    let (limit, before) = (limit(query.limit)?, decode(query.after.as_deref())?);
    let (reader, instance) = (app.engine.reader(), InstanceId(id));
    seen(&app, &viewer, instance).await?;
    let found = comments::list(reader, &viewer, instance, before, limit + 1);
    Ok(axum::Json(page(found.await?, limit, |last: &Comment| {
        last.seq.to_string()
    })))
}

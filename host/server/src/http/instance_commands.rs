//! What is done with instances as a whole: cancelled, suspended and let go on, restarted after their end.

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::App;
use super::commands::{CommandAnswer, StartAnswer, permission_first, run};
use super::extract::{Body, Caller, DryRun, Options, Path};
use super::problem::Problem;
use super::task_commands::ReasonBody;
use super::tasks::Empty;
use wrkflw_core::command::Command;
use wrkflw_core::ids::InstanceId;
use wrkflw_core::json::Json;
use wrkflw_engine::validation::{check_document, check_reason};

/// What an instance is taken up again with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RestartBody {
    /// Without it, the data that the ended instance was left with.
    #[schema(value_type = Option<Object>)]
    pub data: Option<Json>,
}

/// Cancels an instance that has not ended.
#[utoipa::path(post, path = "/v1/instances/{id}/cancel", tag = "instances", params(("id" = Uuid, Path), DryRun), request_body = ReasonBody,
    responses((status = 200, body = CommandAnswer)))]
pub(super) async fn cancel(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    options: Options,
    Body { value, canonical }: Body<ReasonBody>,
) -> Result<Response, Problem> {
    check_reason(&value.reason)?;
    let command = Command::Cancel {
        instance: InstanceId(id),
        reason: value.reason,
    };
    run(&app, &who, command, options, &canonical).await
}

/// Suspends an instance: until it is resumed nothing happens to it, and its deadlines rest.
#[utoipa::path(post, path = "/v1/instances/{id}/suspend", tag = "instances", params(("id" = Uuid, Path), DryRun), request_body = ReasonBody,
    responses((status = 200, body = CommandAnswer)))]
pub(super) async fn suspend(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    options: Options,
    Body { value, canonical }: Body<ReasonBody>,
) -> Result<Response, Problem> {
    check_reason(&value.reason)?;
    let command = Command::Suspend {
        instance: InstanceId(id),
        reason: value.reason,
    };
    run(&app, &who, command, options, &canonical).await
}

/// Lets a suspended instance go on. Each deadline is due as much later as the suspension lasted.
#[utoipa::path(post, path = "/v1/instances/{id}/resume", tag = "instances", params(("id" = Uuid, Path), DryRun),
    responses((status = 200, body = CommandAnswer)))]
pub(super) async fn resume(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    options: Options,
    Body { canonical, .. }: Body<Empty>,
) -> Result<Response, Problem> {
    let instance = InstanceId(id);
    run(
        &app,
        &who,
        Command::Resume { instance },
        options,
        &canonical,
    )
    .await
}

/// Takes up what an ended instance was about, in a new instance of the definition's active version. Whoever requested
/// the ended one counts as a requester of the new one, too. `If-Match` names the ended one's revision.
#[utoipa::path(post, path = "/v1/instances/{id}/restart", tag = "instances", params(("id" = Uuid, Path), DryRun), request_body = RestartBody,
    responses((status = 201, body = StartAnswer), (status = 200, body = StartAnswer, description = "dry run")))]
pub(super) async fn restart(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    options: Options,
    Body { value, canonical }: Body<RestartBody>,
) -> Result<Response, Problem> {
    if let Some(data) = &value.data {
        check_document("/data", data)?;
    }
    let ended = InstanceId(id);
    let successor = app
        .engine
        .successor(&who, ended, value.data, options.if_match);
    let command = match successor.await {
        Ok(command) => command,
        Err(error) => {
            let started = "instance:start";
            return Err(permission_first(&app, &who, started, error).await.into());
        }
    };
    run(&app, &who, command, options, &canonical).await
}

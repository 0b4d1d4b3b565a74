//! Commands on tasks: claim, release, decide, delegate, resolve, reassign, reset, suspend, resume.

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::commands::{CommandAnswer, run};
use super::extract::{Body, Caller, DryRun, Options, Path};
use super::problem::Problem;
use super::tasks::Empty;
use wrkflw_core::command::Command;
use wrkflw_core::ids::TaskId;
use wrkflw_core::json::Json;
use wrkflw_core::moment;
use wrkflw_engine::validation::{check_comment, check_document, check_id, check_reason};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(claim))
        .routes(routes!(release))
        .routes(routes!(decide))
        .routes(routes!(delegate))
        .routes(routes!(resolve))
        .routes(routes!(reassign))
        .routes(routes!(reset))
        .routes(routes!(suspend))
        .routes(routes!(resume))
}

/// A decision.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DecideBody {
    /// One of the outcomes that the state takes.
    pub outcome: String,
    #[schema(max_length = 4096)]
    pub comment: Option<String>,
    /// Must satisfy the input schema of the outcome.
    #[serde(default = "Json::empty")]
    #[schema(value_type = Object)]
    pub input: Json,
}

/// The new owner of a task, and the reason.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HandBody {
    /// Id of a person in the directory.
    #[schema(format = "name")]
    pub to: String,
    #[schema(format = "reason", min_length = 1, max_length = 2000)]
    pub reason: String,
}

/// The reason of a command.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReasonBody {
    #[schema(format = "reason", min_length = 1, max_length = 2000)]
    pub reason: String,
}

/// Why and until when a task is suspended.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SuspendBody {
    #[schema(format = "reason", min_length = 1, max_length = 2000)]
    pub reason: Option<String>,
    /// When the host resumes it, at most 366 days ahead. Default: when somebody does.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub until: Option<Timestamp>,
}

/// Claims a task: from now on, only the caller may decide it.
#[utoipa::path(post, path = "/v1/tasks/{id}/claim", tag = "tasks", operation_id = "claimTask", params(("id" = Uuid, Path), DryRun),
    responses((status = 200, body = CommandAnswer)))]
pub(super) async fn claim(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    options: Options,
    Body { canonical, .. }: Body<Empty>,
) -> Result<Response, Problem> {
    run(
        &app,
        &who,
        Command::Claim { task: TaskId(id) },
        options,
        &canonical,
    )
    .await
}

/// Gives a task back to its candidates.
#[utoipa::path(post, path = "/v1/tasks/{id}/release", tag = "tasks", operation_id = "releaseTask", params(("id" = Uuid, Path), DryRun),
    responses((status = 200, body = CommandAnswer)))]
pub(super) async fn release(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    options: Options,
    Body { canonical, .. }: Body<Empty>,
) -> Result<Response, Problem> {
    run(
        &app,
        &who,
        Command::Release { task: TaskId(id) },
        options,
        &canonical,
    )
    .await
}

/// Decides a task that the caller owns. A task without an owner is also claimed, if the caller may claim it.
#[utoipa::path(post, path = "/v1/tasks/{id}/decide", tag = "tasks", operation_id = "decideTask", params(("id" = Uuid, Path), DryRun),
    request_body = DecideBody,
    responses((status = 200, body = CommandAnswer)))]
pub(super) async fn decide(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    options: Options,
    Body { value, canonical }: Body<DecideBody>,
) -> Result<Response, Problem> {
    value.comment.as_deref().map_or(Ok(()), check_comment)?;
    check_document("/input", &value.input)?;
    let DecideBody {
        outcome,
        comment,
        input,
    } = value;
    let command = Command::Decide {
        task: TaskId(id),
        outcome,
        comment,
        input,
    };
    run(&app, &who, command, options, &canonical).await
}

/// Delegates a task. The delegate decides it on behalf of the first owner, who is recorded.
#[utoipa::path(post, path = "/v1/tasks/{id}/delegate", tag = "tasks", operation_id = "delegateTask", params(("id" = Uuid, Path), DryRun),
    request_body = HandBody,
    responses((status = 200, body = CommandAnswer)))]
pub(super) async fn delegate(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    options: Options,
    Body { value, canonical }: Body<HandBody>,
) -> Result<Response, Problem> {
    let (to, reason) = checked(value)?;
    let task = TaskId(id);
    let command = Command::Delegate { task, to, reason };
    run(&app, &who, command, options, &canonical).await
}

/// Gives a delegated task back to the person who delegated it to the caller.
#[utoipa::path(post, path = "/v1/tasks/{id}/resolve", tag = "tasks", operation_id = "resolveTask", params(("id" = Uuid, Path), DryRun),
    responses((status = 200, body = CommandAnswer)))]
pub(super) async fn resolve(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    options: Options,
    Body { canonical, .. }: Body<Empty>,
) -> Result<Response, Problem> {
    let command = Command::Resolve { task: TaskId(id) };
    run(&app, &who, command, options, &canonical).await
}

/// Gives an open task to another owner, as an operator. The new owner need not be a candidate.
#[utoipa::path(post, path = "/v1/tasks/{id}/reassign", tag = "tasks", operation_id = "reassignTask", params(("id" = Uuid, Path), DryRun),
    request_body = HandBody,
    responses((status = 200, body = CommandAnswer)))]
pub(super) async fn reassign(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    options: Options,
    Body { value, canonical }: Body<HandBody>,
) -> Result<Response, Problem> {
    let (to, reason) = checked(value)?;
    let task = TaskId(id);
    let command = Command::Reassign { task, to, reason };
    run(&app, &who, command, options, &canonical).await
}

/// Opens a task for its candidates again, as an operator. Its owner loses it.
#[utoipa::path(post, path = "/v1/tasks/{id}/reset", tag = "tasks", operation_id = "resetTask", params(("id" = Uuid, Path), DryRun),
    request_body = ReasonBody,
    responses((status = 200, body = CommandAnswer)))]
pub(super) async fn reset(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    options: Options,
    Body { value, canonical }: Body<ReasonBody>,
) -> Result<Response, Problem> {
    check_reason(&value.reason)?;
    let command = Command::Reset {
        task: TaskId(id),
        reason: value.reason,
    };
    run(&app, &who, command, options, &canonical).await
}

/// Suspends an open task. Until it is resumed, nobody may decide it, and its own deadlines do not count; those of its state do.
#[utoipa::path(post, path = "/v1/tasks/{id}/suspend", tag = "tasks", operation_id = "suspendTask", params(("id" = Uuid, Path), DryRun),
    request_body = SuspendBody,
    responses((status = 200, body = CommandAnswer)))]
pub(super) async fn suspend(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    options: Options,
    Body { value, canonical }: Body<SuspendBody>,
) -> Result<Response, Problem> {
    if let Some(reason) = &value.reason {
        check_reason(reason)?;
    }
    let command = Command::SuspendTask {
        task: TaskId(id),
        reason: value.reason,
        until: value.until,
    };
    run(&app, &who, command, options, &canonical).await
}

/// Resumes a suspended task. Each of its deadlines is moved by the duration of the suspension.
#[utoipa::path(post, path = "/v1/tasks/{id}/resume", tag = "tasks", operation_id = "resumeTask", params(("id" = Uuid, Path), DryRun),
    responses((status = 200, body = CommandAnswer)))]
pub(super) async fn resume(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    options: Options,
    Body { canonical, .. }: Body<Empty>,
) -> Result<Response, Problem> {
    let command = Command::ResumeTask { task: TaskId(id) };
    run(&app, &who, command, options, &canonical).await
}

fn checked(HandBody { to, reason }: HandBody) -> Result<(String, String), Problem> {
    check_id("/to", &to)?;
    check_reason(&reason)?;
    Ok((to, reason))
}

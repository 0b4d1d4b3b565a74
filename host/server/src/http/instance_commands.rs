//! Commands on whole instances: cancel, suspend, resume, restart.

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::commands::{CommandAnswer, permission_first, run};
use super::extract::{Body, Caller, DryRun, Options, Path};
use super::problem::Problem;
use super::task_commands::ReasonBody;
use super::tasks::Empty;
use wrkflw_core::command::Command;
use wrkflw_core::ids::InstanceId;
use wrkflw_core::json::Json;
use wrkflw_engine::validation::{check_document, check_reason};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(cancel))
        .routes(routes!(suspend))
        .routes(routes!(resume))
        .routes(routes!(restart))
}

/// The body of a restart.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RestartBody {
    /// Default: the last data of the ended instance.
    #[schema(value_type = Option<Object>)]
    pub data: Option<Json>,
}

/// Cancels an instance that has not ended.
#[utoipa::path(post, path = "/v1/instances/{id}/cancel", tag = "instances", operation_id = "cancelInstance", params(("id" = Uuid, Path), DryRun),
    request_body = ReasonBody,
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

/// Suspends an instance. Until it is resumed, nothing happens to it, and its deadlines do not run.
#[utoipa::path(post, path = "/v1/instances/{id}/suspend", tag = "instances", operation_id = "suspendInstance", params(("id" = Uuid, Path), DryRun),
    request_body = ReasonBody,
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

/// Resumes a suspended instance. Each deadline is moved by the duration of the suspension.
#[utoipa::path(post, path = "/v1/instances/{id}/resume", tag = "instances", operation_id = "resumeInstance", params(("id" = Uuid, Path), DryRun),
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

/// Starts a new instance of the definition's active version, about the entity of an ended instance. The requesters of the
/// ended instance are requesters of the new one, too. `If-Match` takes the revision of the ended instance.
#[utoipa::path(post, path = "/v1/instances/{id}/restart", tag = "instances", operation_id = "restartInstance", params(("id" = Uuid, Path), DryRun),
    request_body = RestartBody,
    responses((status = 201, body = CommandAnswer), (status = 200, body = CommandAnswer, description = "dry run")))]
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
    let key = options.idempotency_key.as_deref();
    let key = key.filter(|_| !options.dry_run);
    let successor = wrkflw_engine::successor(
        &app.engine,
        &who,
        ended,
        value.data,
        (options.if_match, key),
    );
    let command = match successor.await {
        Ok(command) => command,
        Err(error) => {
            let started = "instance:start";
            return Err(permission_first(&app, &who, started, error).await.into());
        }
    };
    run(&app, &who, command, options, &canonical).await
}

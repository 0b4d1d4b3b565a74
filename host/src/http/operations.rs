//! Migrations and cancellations of many instances, as operations that go on in the background.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::App;
use super::extract::{Body, Caller, DryRun, Options, Path, Query, check_id, check_reason};
use super::migrations::check_states;
use super::page::{Page, decode, limit, page};
use super::problem::Problem;
use crate::clock;
use crate::domain::ids::VersionRef;
use crate::engine::bulk::{Cancellations, Many, Migrations, Trial};
use crate::engine::{Error, Identity};
use crate::store::bulk::{AliveFilter, Begun, ItemView, OperationView, RUNNING_MAX};

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum WhichItems {
    Done,
    Refused,
    Failed,
    Waiting,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct ItemQuery {
    /// `done`, `refused`, `failed`, or `waiting` for those not tried yet.
    #[param(inline)]
    pub result: Option<WhichItems>,
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

/// Takes all instances of a version that the filter finds to another one, in the background. A dry run counts them and
/// tries some.
#[utoipa::path(post, path = "/v1/migrations", tag = "operations", operation_id = "begin_migrations", params(DryRun), request_body = Migrations,
    responses((status = 201, body = OperationView), (status = 200, body = Trial, description = "dry run")))]
pub(super) async fn begin(
    State(app): State<App>,
    Caller(who): Caller,
    options: Options,
    Body { value, .. }: Body<Migrations>,
) -> Result<Response, Problem> {
    app.engine.permit(&who, "instance:migrate").await?;
    check_unconditional(&options)?;
    check(&app, &who, &value).await?;
    carry_on(&app, &who, options, &Many::Migrate(value)).await
}

/// Cancels all instances of a version that the filter finds, in the background; of a stopped version as well. A dry run
/// counts them and tries some.
#[utoipa::path(post, path = "/v1/cancellations", tag = "operations", operation_id = "begin_cancellations", params(DryRun),
    request_body = Cancellations,
    responses((status = 201, body = OperationView), (status = 200, body = Trial, description = "dry run")))]
pub(super) async fn cancel(
    State(app): State<App>,
    Caller(who): Caller,
    options: Options,
    Body { value, .. }: Body<Cancellations>,
) -> Result<Response, Problem> {
    app.engine.permit(&who, "instance:cancel").await?;
    check_unconditional(&options)?;
    check_id("/definition", &value.definition)?;
    check_reason(&value.reason)?;
    check_status(&value.filter)?;
    let (key, version) = (value.definition.clone(), value.version);
    let reference = VersionRef { key, version };
    app.engine.version(who.tenant, &reference).await?;
    carry_on(&app, &who, options, &Many::Cancel(value)).await
}

async fn carry_on(
    app: &App,
    who: &Identity,
    options: Options,
    many: &Many,
) -> Result<Response, Problem> {
    if options.dry_run {
        return Ok(axum::Json(app.engine.try_many(who, many).await?).into_response());
    }
    let key = options.idempotency_key.as_deref();
    let id = key.map_or_else(clock::new_id, |key| id_of(&who.subject, key));
    match app.engine.begin_many(who, id, many).await? {
        Begun::Yes => {}
        Begun::Taken => return Err(Error::KeyReused.into()),
        Begun::TooMany => {
            let detail = format!(
                "at most {RUNNING_MAX} operations go on at once; wait for one, or stop one"
            );
            return Err(Problem::new("too_many_operations", detail));
        }
    }
    let place = [(header::LOCATION, format!("/v1/operations/{id}"))];
    let operation = read(app, who, id).await?;
    Ok((StatusCode::CREATED, place, axum::Json(operation)).into_response())
}

/// How far an operation has come.
#[utoipa::path(get, path = "/v1/operations/{id}", tag = "operations", operation_id = "show_operation",
    params(("id" = Uuid, Path)), responses((status = 200, body = OperationView)))]
pub(super) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<axum::Json<OperationView>, Problem> {
    app.engine.permit(&who, "instance:read").await?;
    Ok(axum::Json(read(&app, &who, id).await?))
}

/// What each instance of an operation came to.
#[utoipa::path(get, path = "/v1/operations/{id}/items", tag = "operations", operation_id = "list_operation_items",
    params(("id" = Uuid, Path), ItemQuery), responses((status = 200, body = Page<ItemView>)))]
pub(super) async fn items(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    Query(query): Query<ItemQuery>,
) -> Result<axum::Json<Page<ItemView>>, Problem> {
    app.engine.permit(&who, "instance:read").await?;
    let limit = limit(query.limit)?;
    let result = query.result.map(|result| match result {
        WhichItems::Done => "done",
        WhichItems::Refused => "refused",
        WhichItems::Failed => "failed",
        WhichItems::Waiting => "waiting",
    });
    let after = decode(query.after.as_deref())?;
    read(&app, &who, id).await?;
    let store = app.engine.store();
    let found = store
        .operation_items(who.tenant, id, result, after, i64::from(limit) + 1)
        .await?;
    Ok(axum::Json(page(found, limit, |last| {
        last.instance.to_string()
    })))
}

/// Ends an operation early. What is in hand is still done.
#[utoipa::path(post, path = "/v1/operations/{id}/stop", tag = "operations", operation_id = "stop_operation",
    params(("id" = Uuid, Path)), responses((status = 200, body = OperationView)))]
pub(super) async fn stop(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<axum::Json<OperationView>, Problem> {
    // Whoever may begin one may end it.
    let actor = app.engine.actor(&who).await?;
    let may = |action: &str| actor.may(&format!("instance:{action}"));
    if !may("migrate") && !may("cancel") {
        return Err(Error::Permission("instance:migrate").into());
    }
    let operation = read(&app, &who, id).await?;
    if !may(&operation.action) {
        let lacking = if operation.action == "cancel" {
            "instance:cancel"
        } else {
            "instance:migrate"
        };
        return Err(Error::Permission(lacking).into());
    }
    let note = app.engine.note(&who.subject);
    let store = app.engine.store();
    if !store.stop_operation(who.tenant, id, &note).await? {
        return Err(missing(id));
    }
    Ok(axum::Json(read(&app, &who, id).await?))
}

/// Refuses what could come to nothing for any instance.
async fn check(app: &App, who: &Identity, migrations: &Migrations) -> Result<(), Problem> {
    check_id("/definition", &migrations.definition)?;
    check_states(&migrations.states)?;
    check_status(&migrations.filter)?;
    if migrations.from == migrations.version {
        let detail = "the instances have this version already";
        return Err(Problem::new("invalid_request", detail).at("/version", "same_version", detail));
    }
    for version in [migrations.from, migrations.version] {
        let reference = VersionRef {
            key: migrations.definition.clone(),
            version,
        };
        app.engine.version(who.tenant, &reference).await?;
    }
    Ok(())
}

fn check_unconditional(options: &Options) -> Result<(), Problem> {
    if options.if_match.is_none() {
        return Ok(());
    }
    let detail = "many instances have no revision in common; leave If-Match out";
    Err(Problem::new("malformed_request", detail))
}

fn check_status(filter: &AliveFilter) -> Result<(), Problem> {
    let status = filter.status.as_deref();
    if status.is_none_or(|status| ["RUNNING", "SUSPENDED"].contains(&status)) {
        return Ok(());
    }
    let detail = "only what is RUNNING or SUSPENDED can be changed";
    Err(Problem::new("invalid_request", detail).at("/filter/status", "enum", detail))
}

async fn read(app: &App, who: &Identity, id: Uuid) -> Result<OperationView, Problem> {
    let found = app.engine.store().operation(who.tenant, id).await?;
    found.ok_or_else(|| missing(id))
}

fn missing(id: Uuid) -> Problem {
    let (what, id) = ("operation", id.to_string());
    Error::NotFound { what, id }.into()
}

/// The id of what a caller begins under an idempotency key: a repeat finds what is there.
fn id_of(subject: &str, key: &str) -> Uuid {
    let mut hasher = Sha256::new();
    for part in ["operation", subject, key] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize()[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

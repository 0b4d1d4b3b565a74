//! Bulk operations: migrations and cancellations of many instances in the background.

mod list;

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::conditional::conditional;
use super::extract::{Body, Caller, DryRun, Options, Path, Query};
use super::layers::without_query;
use super::page::{Page, decode, limit, page};
use super::problem::Problem;
use super::shapes::{AliveStatus, ItemResult, OperationAction, OperationStatus};
use super::view::{asked, each, view};
use wrkflw_core::json::Json;
use wrkflw_core::json::whole;
use wrkflw_engine::Identity;
use wrkflw_engine::bulk::{self, Many};

/// The routes of this file and of those below it.
pub(super) fn routes() -> OpenApiRouter<App> {
    let single = OpenApiRouter::new().routes(routes!(show));
    OpenApiRouter::new()
        .routes(routes!(begin))
        .routes(routes!(cancel))
        .routes(routes!(items))
        .merge(without_query(OpenApiRouter::new().routes(routes!(stop))))
        .merge(without_query(conditional(single)))
        .merge(list::routes())
}

view! {
    of wrkflw_engine::bulk::Trial;
    /// The result of a dry run of an operation.
    pub(super) struct Trial {
        /// Always true: nothing was written.
        pub dry_run: bool,
        /// How many instances the operation would change.
        pub total: usize,
        /// There may be more instances: than one operation takes, or than could be read in the time of the request.
        pub more: bool,
        /// How many instances were tried. Their results follow.
        pub tried: usize,
        pub done: usize,
        pub refused: usize,
        pub failed: usize,
        pub sample: Vec<Tried> => each,
    }
}

view! {
    of wrkflw_engine::bulk::TrialResult;
    /// The result of the dry run of one instance.
    pub(super) struct Tried {
        #[serde(rename = "instanceId")]
        pub instance: Uuid,
        #[schema(value_type = ItemResult)]
        pub result: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub code: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub detail: Option<String>,
    }
}

view! {
    of wrkflw_store::bulk::Operation;
    /// An operation and its progress.
    pub(super) struct OperationView {
        pub id: Uuid,
        #[schema(value_type = OperationAction)]
        pub action: String,
        #[schema(value_type = OperationStatus)]
        pub status: &'static str,
        /// The body of the request that began it.
        #[schema(value_type = Object)]
        pub settings: Json,
        pub requested_by: String,
        #[schema(value_type = String, format = DateTime)]
        pub created_at: Timestamp,
        #[schema(value_type = Option<String>, format = DateTime)]
        pub ended_at: Option<Timestamp>,
        pub stopped_by: Option<String>,
        /// How many instances it changes.
        pub total: u32,
        /// There may have been more instances: than one operation takes, or than could be read in the time of the request.
        pub more: bool,
        /// The last instance that it changes, in the order in which they are chosen. If there are `more`, another operation with this
        /// as `filter.afterInstanceId` goes on behind it. None after 90 days, or if it changes no instance.
        #[serde(rename = "lastInstanceId")]
        pub last: Option<Uuid>,
        pub done: u32,
        pub refused: u32,
        pub failed: u32,
    }
}

view! {
    of wrkflw_store::bulk::Item;
    /// One instance of an operation.
    pub(super) struct ItemView {
        #[serde(rename = "instanceId")]
        pub instance: Uuid,
        /// None before it was tried.
        #[schema(value_type = Option<ItemResult>)]
        pub result: Option<String>,
        pub code: Option<String>,
        pub detail: Option<String>,
        /// The instance's revision afterwards.
        pub revision: Option<u32>,
        #[schema(value_type = Option<String>, format = DateTime)]
        pub ended_at: Option<Timestamp>,
    }
}

asked! {
    for wrkflw_store::bulk::AliveFilter;
    /// Selects running and suspended instances of a version.
    #[derive(Default)]
    pub(super) struct AliveFilter {
        /// Default: both.
        #[schema(value_type = Option<AliveStatus>)]
        pub status: Option<String>,
        /// Name of an active state.
        #[schema(format = "key")]
        pub state: Option<String>,
        #[schema(format = "name")]
        pub entity_type: Option<String>,
        #[schema(format = "name")]
        pub entity_id: Option<String>,
        pub initiator: Option<String>,
        /// Only instances behind this one: `lastInstanceId` of an operation that left `more`.
        #[serde(rename = "afterInstanceId")]
        pub after: Option<Uuid>,
    }
}

asked! {
    for bulk::Migrations;
    /// Which instances are migrated, and to which version.
    pub(super) struct Migrations {
        #[serde(rename = "definitionKey")]
        #[schema(format = "key")]
        pub definition: String,
        /// The version that the instances have now.
        #[serde(deserialize_with = "whole")]
        pub from_version: u32,
        /// The version to which they are migrated.
        #[serde(deserialize_with = "whole")]
        pub version: u32,
        /// Old to new names, for each state that the new version renames.
        #[serde(default)]
        pub states: BTreeMap<String, String>,
        #[serde(default)]
        pub filter: AliveFilter,
    }
}

asked! {
    for bulk::Cancellations;
    /// Which instances are cancelled.
    pub(super) struct Cancellations {
        #[serde(rename = "definitionKey")]
        #[schema(format = "key")]
        pub definition: String,
        /// The version that the instances have.
        #[serde(deserialize_with = "whole")]
        pub version: u32,
        /// Why; each instance keeps it.
        #[schema(format = "reason")]
        pub reason: String,
        #[serde(default)]
        pub filter: AliveFilter,
    }
}

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

/// Migrates all instances of a version that match the filter to another version, in the background. A dry run counts them
/// and tries some.
#[utoipa::path(post, path = "/v1/migrations", tag = "operations", operation_id = "migrateInstances", params(DryRun), request_body = Migrations,
    responses((status = 201, body = OperationView), (status = 200, body = Trial, description = "dry run")))]
pub(super) async fn begin(
    State(app): State<App>,
    Caller(who): Caller,
    options: Options,
    Body { value, .. }: Body<Migrations>,
) -> Result<Response, Problem> {
    carry_on(&app, &who, options, &Many::Migrate(value.into())).await
}

/// Cancels all instances of a version that match the filter, in the background. The version may be stopped. A dry run
/// counts them and tries some.
#[utoipa::path(post, path = "/v1/cancellations", tag = "operations", operation_id = "cancelInstances", params(DryRun),
    request_body = Cancellations,
    responses((status = 201, body = OperationView), (status = 200, body = Trial, description = "dry run")))]
pub(super) async fn cancel(
    State(app): State<App>,
    Caller(who): Caller,
    options: Options,
    Body { value, .. }: Body<Cancellations>,
) -> Result<Response, Problem> {
    carry_on(&app, &who, options, &Many::Cancel(value.into())).await
}

async fn carry_on(
    app: &App,
    who: &Identity,
    options: Options,
    many: &Many,
) -> Result<Response, Problem> {
    if options.dry_run {
        let trial = app.engine.bulk().dry_run(who, many).await?;
        return Ok(axum::Json(Trial::from(trial)).into_response());
    }
    let key = options.idempotency_key.as_deref();
    let operation = app.engine.bulk().begin(who, many, key).await?;
    let place = [(header::LOCATION, format!("/v1/operations/{}", operation.id))];
    Ok((
        StatusCode::CREATED,
        place,
        axum::Json(OperationView::from(operation)),
    )
        .into_response())
}

/// An operation and its progress.
#[utoipa::path(get, path = "/v1/operations/{id}", tag = "operations", operation_id = "getOperation",
    params(("id" = Uuid, Path)), responses((status = 200, body = OperationView)))]
pub(super) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<axum::Json<OperationView>, Problem> {
    let viewer = app.engine.viewing(&who, "instance:read").await?;
    let operation = app.engine.bulk().operation_shown(&who, &viewer, id).await?;
    Ok(axum::Json(operation.into()))
}

/// The result of each instance of an operation.
#[utoipa::path(get, path = "/v1/operations/{id}/items", tag = "operations", operation_id = "listOperationItems",
    params(("id" = Uuid, Path), ItemQuery), responses((status = 200, body = Page<ItemView>)))]
pub(super) async fn items(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    Query(query): Query<ItemQuery>,
) -> Result<axum::Json<Page<ItemView>>, Problem> {
    let viewer = app.engine.viewing(&who, "instance:read").await?;
    let limit = limit(query.limit)?;
    let result = query.result.map(|result| match result {
        WhichItems::Done => "done",
        WhichItems::Refused => "refused",
        WhichItems::Failed => "failed",
        WhichItems::Waiting => "waiting",
    });
    let after = decode(query.after.as_deref())?;
    app.engine.bulk().operation_shown(&who, &viewer, id).await?;
    let reader = app.engine.reader();
    let found =
        wrkflw_store::bulk::items(reader, &viewer, id, result, after, i64::from(limit) + 1).await?;
    Ok(axum::Json(page(found, limit, |last| {
        last.instance.to_string()
    })))
}

/// Ends an operation early. Items in flight are completed.
#[utoipa::path(post, path = "/v1/operations/{id}/stop", tag = "operations", operation_id = "stopOperation",
    params(("id" = Uuid, Path)), responses((status = 200, body = OperationView)))]
pub(super) async fn stop(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<axum::Json<OperationView>, Problem> {
    Ok(axum::Json(app.engine.bulk().stop(&who, id).await?.into()))
}

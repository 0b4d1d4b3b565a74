//! One delivery of a webhook: its attempts, and the actions of people on it.

use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::http::App;
use crate::http::extract::{Body, Caller, Path};
use crate::http::layers::without_query;
use crate::http::page::{Page, page_to};
use crate::http::problem::Problem;
use crate::http::task_commands::ReasonBody;
use crate::http::tasks::Empty;
use crate::http::view::view;
use wrkflw_engine::Error;
use wrkflw_store::deliveries;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    without_query(
        OpenApiRouter::new()
            .routes(routes!(test))
            .routes(routes!(attempts))
            .routes(routes!(retry))
            .routes(routes!(discard)),
    )
}

view! {
    of wrkflw_store::deliveries::Attempt;
    /// An attempt to deliver.
    pub(in crate::http) struct AttemptView {
        /// When it ended.
        #[schema(value_type = String, format = DateTime)]
        pub at: Timestamp,
        /// The receiver's status, if there was one.
        pub status: Option<i16>,
        pub duration_ms: i32,
        /// Why it failed.
        pub error: Option<String>,
    }
}

/// Lists the attempts of a delivery, the newest 100 first.
#[utoipa::path(get, path = "/v1/subscriptions/{id}/deliveries/{delivery}/attempts", tag = "subscriptions", operation_id = "listDeliveryAttempts",
    params(("id" = Uuid, Path), ("delivery" = Uuid, Path)), responses((status = 200, body = Page<AttemptView>)))]
pub(in crate::http) async fn attempts(
    State(app): State<App>,
    Caller(who): Caller,
    Path((id, delivery)): Path<(Uuid, Uuid)>,
) -> Result<axum::Json<Page<AttemptView>>, Problem> {
    app.engine.permit(&who, "subscription:read").await?;
    app.engine.subscriptions().get(&who, id).await?;
    let reader = app.engine.reader();
    let found = deliveries::attempts(reader, who.tenant, id, delivery).await?;
    let found = found.ok_or_else(|| Problem::from(unknown(delivery)))?;
    Ok(axum::Json(page_to(found, None)))
}

fn unknown(delivery: Uuid) -> Error {
    Error::NotFound {
        what: "delivery",
        id: delivery.to_string(),
    }
}

/// A test that is sent.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Tested {
    /// The id of its delivery.
    pub id: Uuid,
}

/// Sends a `webhook.test` to the receiver, whatever types the subscription has. Its delivery shows the result.
#[utoipa::path(post, path = "/v1/subscriptions/{id}/test", tag = "subscriptions", operation_id = "testSubscription",
    params(("id" = Uuid, Path)), responses((status = 202, body = Tested)))]
pub(in crate::http) async fn test(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    Body { .. }: Body<Empty>,
) -> Result<(StatusCode, axum::Json<Tested>), Problem> {
    let id = app.engine.subscriptions().test(&who, id).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(Tested { id })))
}

/// Sends one delivery again, whatever became of it, and enables the subscription.
#[utoipa::path(post, path = "/v1/subscriptions/{id}/deliveries/{delivery}/retry", tag = "subscriptions", operation_id = "retryDelivery",
    params(("id" = Uuid, Path), ("delivery" = Uuid, Path)), responses((status = 204)))]
pub(in crate::http) async fn retry(
    State(app): State<App>,
    Caller(who): Caller,
    Path((id, delivery)): Path<(Uuid, Uuid)>,
    Body { .. }: Body<Empty>,
) -> Result<StatusCode, Problem> {
    app.engine
        .subscriptions()
        .retry_delivery(&who, id, delivery)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives up one delivery that the receiver has not accepted. The audit keeps the reason.
#[utoipa::path(post, path = "/v1/subscriptions/{id}/deliveries/{delivery}/discard", tag = "subscriptions", operation_id = "discardDelivery",
    params(("id" = Uuid, Path), ("delivery" = Uuid, Path)), request_body = ReasonBody, responses((status = 204)))]
pub(in crate::http) async fn discard(
    State(app): State<App>,
    Caller(who): Caller,
    Path((id, delivery)): Path<(Uuid, Uuid)>,
    Body { value, .. }: Body<ReasonBody>,
) -> Result<StatusCode, Problem> {
    let discarded =
        app.engine
            .subscriptions()
            .discard_delivery(&who, (id, delivery), &value.reason);
    discarded.await?;
    Ok(StatusCode::NO_CONTENT)
}

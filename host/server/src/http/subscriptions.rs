//! Subscriptions of webhooks: create, list, delete, and their deliveries.

mod delivery;

use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::conditional::conditional;
use super::extract::{Body, Caller, Path, Query};
use super::layers::without_query;
use super::page::{Page, decode, limit, page, page_to};
use super::problem::Problem;
use super::tasks::Empty;
use super::view::view;
use wrkflw_engine::Subscribing;
use wrkflw_store::deliveries::{self, Retried};
use wrkflw_store::subscriptions;

/// The prefix of secrets, by which scanners find leaked ones.
const SECRET_PREFIX: &str = "whsec_";

/// The routes of this file and of those below it.
pub(super) fn routes() -> OpenApiRouter<App> {
    let single = OpenApiRouter::new()
        .routes(routes!(show, delete))
        .routes(routes!(create, list));
    OpenApiRouter::new()
        .routes(routes!(deliveries))
        .merge(without_query(conditional(single)))
        .merge(without_query(OpenApiRouter::new().routes(routes!(retry))))
        .merge(delivery::routes())
}

view! {
    of wrkflw_store::deliveries::KeptDelivery;
    /// A delivery of the last 30 days.
    pub(super) struct DeliveryView {
        /// The id of the event or notification.
        pub id: Uuid,
        /// `pending`, `delivered`, `dead` or `discarded`.
        #[schema(value_type = DeliveryState)]
        pub state: String,
        /// None for a test.
        pub instance_id: Option<Uuid>,
        pub attempts: i32,
        /// The receiver's last status.
        pub last_status: Option<i16>,
        pub last_error: Option<String>,
        #[schema(value_type = String, format = DateTime)]
        pub created_at: Timestamp,
        /// When it is tried again, or when it ended.
        #[schema(value_type = String, format = DateTime)]
        pub due_at: Timestamp,
    }
}

view! {
    of wrkflw_store::subscriptions::Subscription;
    /// A URL to which events are sent.
    pub(super) struct Subscription {
        pub id: Uuid,
        pub url: String,
        /// Names of event types below the prefix, or families such as `task.*`.
        pub types: Vec<String>,
        /// Only for instances of this definition.
        #[serde(rename = "definitionKey")]
        pub definition: Option<String>,
        /// Whether events are sent.
        pub active: bool,
        /// Why they are not sent.
        pub disabled_reason: Option<String>,
        /// How many deliveries the host gave up since the last accepted one.
        pub failures: i32,
        #[schema(value_type = String, format = DateTime)]
        pub created_at: Timestamp,
        pub created_by: String,
    }
}

/// The events to send, and where to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SubscriptionBody {
    /// An https URL. Hosts may also allow http to private networks.
    pub url: String,
    /// Names of event types below the prefix, or families such as `task.*`; `*` for all.
    #[schema(min_items = 1, max_items = 32)]
    pub types: Vec<String>,
    /// Only for instances of this definition.
    #[serde(rename = "definitionKey")]
    #[schema(format = "key")]
    pub definition: Option<String>,
}

/// A subscription with its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Subscribed {
    #[serde(flatten)]
    pub subscription: Subscription,
    /// The key that verifies signatures: `whsec_` and base64. It is not shown again.
    pub secret: String,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum DeliveryState {
    Pending,
    Delivered,
    Dead,
    Discarded,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct DeliveryQuery {
    /// Default: all.
    #[param(inline)]
    pub state: Option<DeliveryState>,
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

/// The result of a retry.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RetryCount {
    /// How many deliveries are sent again: at most 1000 at a time, oldest first.
    pub retried: u64,
    /// Whether more are dead. If so, repeat the request.
    pub more: bool,
}

/// Sends events to a URL from now on. The host creates the secret that signs them.
#[utoipa::path(post, path = "/v1/subscriptions", tag = "subscriptions", operation_id = "createSubscription", request_body = SubscriptionBody,
    responses((status = 201, body = Subscribed)))]
pub(super) async fn create(
    State(app): State<App>,
    Caller(who): Caller,
    Body { value, .. }: Body<SubscriptionBody>,
) -> Result<(StatusCode, axum::Json<Subscribed>), Problem> {
    let request = Subscribing {
        url: value.url,
        types: value.types,
        definition: value.definition,
    };
    let created = app
        .engine
        .subscriptions()
        .subscribe(&who, request, app.reach)
        .await?;
    let subscribed = Subscribed {
        subscription: created.subscription.into(),
        secret: format!("{SECRET_PREFIX}{}", STANDARD.encode(created.secret)),
    };
    Ok((StatusCode::CREATED, axum::Json(subscribed)))
}

/// Lists all subscriptions, newest first.
#[utoipa::path(get, path = "/v1/subscriptions", tag = "subscriptions", operation_id = "listSubscriptions",
    responses((status = 200, body = Page<Subscription>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
) -> Result<axum::Json<Page<Subscription>>, Problem> {
    app.engine.permit(&who, "subscription:read").await?;
    let data = subscriptions::list(app.engine.reader(), who.tenant, None).await?;
    Ok(axum::Json(page_to(data, None)))
}

/// A subscription, without its secret.
#[utoipa::path(get, path = "/v1/subscriptions/{id}", tag = "subscriptions", operation_id = "getSubscription", params(("id" = Uuid, Path)),
    responses((status = 200, body = Subscription)))]
pub(super) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<axum::Json<Subscription>, Problem> {
    app.engine.permit(&who, "subscription:read").await?;
    Ok(axum::Json(
        app.engine.subscriptions().get(&who, id).await?.into(),
    ))
}

/// Deletes a subscription and its pending and dead deliveries.
#[utoipa::path(delete, path = "/v1/subscriptions/{id}", tag = "subscriptions", operation_id = "deleteSubscription", params(("id" = Uuid, Path)),
    responses((status = 204)))]
pub(super) async fn delete(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, Problem> {
    app.engine.subscriptions().unsubscribe(&who, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists the deliveries of the last 30 days, newest first.
#[utoipa::path(get, path = "/v1/subscriptions/{id}/deliveries", tag = "subscriptions", operation_id = "listDeliveries",
    params(("id" = Uuid, Path), DeliveryQuery), responses((status = 200, body = Page<DeliveryView>)))]
pub(super) async fn deliveries(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    Query(query): Query<DeliveryQuery>,
) -> Result<axum::Json<Page<DeliveryView>>, Problem> {
    app.engine.permit(&who, "subscription:read").await?;
    let limit = limit(query.limit)?;
    let before = decode(query.after.as_deref())?;
    app.engine.subscriptions().get(&who, id).await?;
    let state = query.state.map(|state| match state {
        DeliveryState::Pending => "pending",
        DeliveryState::Delivered => "delivered",
        DeliveryState::Dead => "dead",
        DeliveryState::Discarded => "discarded",
    });
    let found = deliveries::list(
        app.engine.reader(),
        who.tenant,
        id,
        state,
        before,
        i64::from(limit) + 1,
    )
    .await?;
    Ok(axum::Json(page(found, limit, |last| last.id.to_string())))
}

/// Sends dead deliveries again, and enables the subscription.
#[utoipa::path(post, path = "/v1/subscriptions/{id}/deliveries/retry", tag = "subscriptions", operation_id = "retryDeliveries",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = RetryCount)))]
pub(super) async fn retry(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    Body { .. }: Body<Empty>,
) -> Result<axum::Json<RetryCount>, Problem> {
    let Retried { count, more } = app
        .engine
        .subscriptions()
        .retry_deliveries(&who, id)
        .await?;
    let retried = count;
    Ok(axum::Json(RetryCount { retried, more }))
}

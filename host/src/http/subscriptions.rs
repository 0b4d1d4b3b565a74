//! Subscriptions of webhooks: make, list, delete, and look at what was not delivered.

use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::App;
use super::extract::{Body, Caller, Path, Query, check_id};
use super::page::{Next, Page, decode, limit, page};
use super::problem::Problem;
use super::tasks::Empty;
use crate::clock;
use crate::domain::subscription::{Patterns, SUBSCRIPTIONS_MAX, target};
use crate::engine::{Error, Identity};
use crate::store::deliveries::DeliveryView;
use crate::store::subscriptions::{NewSubscription, Subscription};

/// Before the secret, so that it is known for one where it should not be.
const SECRET_PREFIX: &str = "whsec_";

/// What to send where.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SubscriptionBody {
    /// Where to: https.
    pub url: String,
    /// Names of event types below the prefix, or families such as `task.*`; `*` for all.
    #[schema(min_items = 1, max_items = 32)]
    pub types: Vec<String>,
    /// Only of instances of this definition.
    pub definition: Option<String>,
}

/// A subscription with its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Subscribed {
    #[serde(flatten)]
    pub subscription: Subscription,
    /// Verifies signatures: the key in base64 behind `whsec_`. It is not shown again.
    pub secret: String,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum DeliveryState {
    Pending,
    Dead,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct DeliveryQuery {
    /// `pending` or `dead`; both when absent.
    #[param(inline)]
    pub state: Option<DeliveryState>,
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

/// What is sent again.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Retried {
    /// How many; at most 1000 at a time, oldest first.
    pub retried: u64,
}

/// Sends events to a URL from now on. The host makes the secret that signs them.
#[utoipa::path(post, path = "/v1/subscriptions", tag = "subscriptions", request_body = SubscriptionBody,
    responses((status = 201, body = Subscribed)))]
pub(super) async fn create(
    State(app): State<App>,
    Caller(who): Caller,
    Body { value, .. }: Body<SubscriptionBody>,
) -> Result<(StatusCode, axum::Json<Subscribed>), Problem> {
    app.engine.permit(&who, "subscription:write").await?;
    let url = target(&value.url, app.reach).map_err(|reason| invalid("/url", reason.to_owned()))?;
    let types = Patterns::new(value.types)
        .map_err(|(number, detail)| invalid(&format!("/types/{number}"), detail))?;
    if let Some(definition) = &value.definition {
        check_id("/definition", definition)?;
    }
    let new = NewSubscription {
        id: clock::new_id(),
        url: url.into(),
        types,
        definition: value.definition,
        secret: clock::random(),
    };
    let note = app.engine.note(&who.subject);
    if !app
        .engine
        .store()
        .subscribe(who.tenant, &new, &note)
        .await?
    {
        let detail = format!("a tenant has at most {SUBSCRIPTIONS_MAX} subscriptions: delete one");
        return Err(Problem::new("limit_reached", detail));
    }
    let secret = format!("{SECRET_PREFIX}{}", STANDARD.encode(new.secret));
    let subscription = read(&app, &who, new.id).await?;
    let subscribed = Subscribed {
        subscription,
        secret,
    };
    Ok((StatusCode::CREATED, axum::Json(subscribed)))
}

fn invalid(pointer: &str, detail: String) -> Problem {
    Problem::new("invalid_request", format!("{pointer}: {detail}")).at(pointer, "malformed", detail)
}

async fn read(app: &App, who: &Identity, id: Uuid) -> Result<Subscription, Problem> {
    let found = app
        .engine
        .store()
        .subscriptions(who.tenant, Some(id))
        .await?;
    found.into_iter().next().ok_or_else(|| missing(id))
}

fn missing(id: Uuid) -> Problem {
    let id = id.to_string();
    Error::NotFound {
        what: "subscription",
        id,
    }
    .into()
}

/// Lists all subscriptions, newest first.
#[utoipa::path(get, path = "/v1/subscriptions", tag = "subscriptions", responses((status = 200, body = Page<Subscription>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
) -> Result<axum::Json<Page<Subscription>>, Problem> {
    app.engine.permit(&who, "subscription:read").await?;
    let data = app.engine.store().subscriptions(who.tenant, None).await?;
    let page = Next { next: None };
    Ok(axum::Json(Page { data, page }))
}

/// A subscription, without its secret.
#[utoipa::path(get, path = "/v1/subscriptions/{id}", tag = "subscriptions", params(("id" = Uuid, Path)),
    responses((status = 200, body = Subscription)))]
pub(super) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<axum::Json<Subscription>, Problem> {
    app.engine.permit(&who, "subscription:read").await?;
    Ok(axum::Json(read(&app, &who, id).await?))
}

/// Ends a subscription, with all that was not delivered yet.
#[utoipa::path(delete, path = "/v1/subscriptions/{id}", tag = "subscriptions", params(("id" = Uuid, Path)),
    responses((status = 204)))]
pub(super) async fn delete(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, Problem> {
    app.engine.permit(&who, "subscription:write").await?;
    let note = app.engine.note(&who.subject);
    let store = app.engine.store();
    if store.unsubscribe(who.tenant, id, &note).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(missing(id))
    }
}

/// Lists what the receiver has not accepted, newest first.
#[utoipa::path(get, path = "/v1/subscriptions/{id}/deliveries", tag = "subscriptions",
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
    read(&app, &who, id).await?;
    let state = query.state.map(|state| match state {
        DeliveryState::Pending => "pending",
        DeliveryState::Dead => "dead",
    });
    let found = app
        .engine
        .store()
        .deliveries(who.tenant, id, state, before, i64::from(limit) + 1)
        .await?;
    Ok(axum::Json(page(found, limit, |last| last.id.to_string())))
}

/// Sends what was given up once more, and enables the subscription again.
#[utoipa::path(post, path = "/v1/subscriptions/{id}/deliveries/retry", tag = "subscriptions", params(("id" = Uuid, Path)),
    responses((status = 200, body = Retried)))]
pub(super) async fn retry(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    Body { .. }: Body<Empty>,
) -> Result<axum::Json<Retried>, Problem> {
    app.engine.permit(&who, "subscription:write").await?;
    let now = app.engine.clock().now();
    let retried = app
        .engine
        .store()
        .retry_deliveries(who.tenant, id, now)
        .await?;
    let retried = retried.ok_or_else(|| missing(id))?;
    Ok(axum::Json(Retried { retried }))
}

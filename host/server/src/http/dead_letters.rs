//! Events that Kafka refused permanently: list them, send them again, or discard one.

use axum::extract::State;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::extract::{Body, Caller, Path, Query};
use super::layers::without_query;
use super::page::{Page, decode, limit, page, page_or_reached};
use super::problem::Problem;
use super::task_commands::ReasonBody;
use super::view::{maybe, view};
use wrkflw_core::ids::InstanceId;
use wrkflw_core::json::whole;
use wrkflw_engine::{Error, Identity};
use wrkflw_store::dead_letters::{self, DeadLetters, Release, Released};

const READ: &str = "dead-letter:read";

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show))
        .merge(without_query(
            OpenApiRouter::new()
                .routes(routes!(retry))
                .routes(routes!(discard)),
        ))
}

view! {
    of wrkflw_store::dead_letters::ParkedEvent;
    /// An event that Kafka refused, or that waits behind such an event.
    pub(super) struct ParkedEvent {
        /// The id of zeros if the event is a checkpoint, which is about the tenant.
        #[serde(rename = "instanceId")]
        pub instance: Uuid,
        /// The number of its entry in the instance's history, or that of the checkpoint.
        pub entry: u64,
        /// The event's id, as consumers see it. None if its entry is damaged, or if it is a checkpoint.
        #[serde(rename = "eventId")]
        pub event: Option<Uuid>,
        /// The event's type, as in the history.
        #[serde(rename = "type")]
        pub kind: Option<String>,
        /// Its number among the events of its instance, as consumers see it.
        pub sequence: Option<u64>,
        /// Why it was refused, or that it waits behind a refused event.
        pub error: String,
        /// How often it was sent on its own. 0 if it only waits behind another event.
        pub attempts: u32,
        #[schema(value_type = String, format = DateTime)]
        pub parked_at: Timestamp,
    }
}

view! {
    of wrkflw_store::dead_letters::DeadLetter;
    /// The refused event behind which the events of an instance wait.
    pub(super) struct DeadLetter {
        #[serde(flatten)]
        pub event: ParkedEvent => ParkedEvent::from,
        /// How many events wait behind it, counted up to 10000.
        pub followers: u32,
    }
}

view! {
    of wrkflw_store::dead_letters::Moved;
    /// The events that went back to the outbox.
    pub(super) struct Moved {
        /// The event that was discarded. Consumers will miss its sequence.
        pub discarded: Option<ParkedEvent> => maybe,
        /// Events that are sent again.
        pub released: u32,
        /// The entry of the last released event.
        pub last: Option<u64>,
        /// Whether more events wait. If so, repeat the request.
        pub more: bool,
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

/// Which event is discarded, and why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DiscardBody {
    /// The entry of the first waiting event.
    #[serde(deserialize_with = "whole")]
    pub entry: u64,
    #[schema(format = "reason")]
    pub reason: String,
}

/// Lists the instances whose events wait behind a refused one, each with its refused event.
#[utoipa::path(get, path = "/v1/dead-letters", tag = "events", operation_id = "listDeadLetters",
    params(PageQuery), responses((status = 200, body = Page<DeadLetter>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<PageQuery>,
) -> Result<axum::Json<Page<DeadLetter>>, Problem> {
    let viewer = app.engine.viewing(&who, READ).await?;
    let limit = limit(query.limit)?;
    let after = decode(query.after.as_deref())?;
    let reader = app.engine.reader();
    let letters = dead_letters::list(reader, &viewer, after, i64::from(limit) + 1);
    let DeadLetters { found, reached } = letters.await?;
    let reached = reached.map(|instance| instance.to_string());
    let place = |last: &dead_letters::DeadLetter| last.event.instance.to_string();
    Ok(axum::Json(page_or_reached(found, limit, reached, place)))
}

/// Lists the waiting events of an instance in their order, the refused one first.
#[utoipa::path(get, path = "/v1/dead-letters/{id}", tag = "events", operation_id = "getDeadLetter",
    params(("id" = Uuid, Path), PageQuery), responses((status = 200, body = Page<ParkedEvent>)))]
pub(super) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
    Path(instance): Path<Uuid>,
    Query(query): Query<PageQuery>,
) -> Result<axum::Json<Page<ParkedEvent>>, Problem> {
    let viewer = app.engine.viewing(&who, READ).await?;
    let limit = limit(query.limit)?;
    // No history has more entries. A larger cursor would not fit the database's signed numbers.
    let after: Option<u32> = decode(query.after.as_deref())?;
    let reader = app.engine.reader();
    let found = dead_letters::parked_events(
        reader,
        &viewer,
        InstanceId(instance),
        u64::from(after.unwrap_or(0)),
        i64::from(limit) + 1,
    )
    .await?;
    if found.is_empty() && after.is_none() {
        return Err(nothing(instance));
    }
    Ok(axum::Json(page(found, limit, |last| {
        last.entry.to_string()
    })))
}

/// Sends the events of an instance again, in their order; at most 1000 at once.
#[utoipa::path(post, path = "/v1/dead-letters/{id}/retry", tag = "events", operation_id = "retryDeadLetter",
    params(("id" = Uuid, Path)), request_body = ReasonBody, responses((status = 200, body = Moved)))]
pub(super) async fn retry(
    State(app): State<App>,
    Caller(who): Caller,
    Path(instance): Path<Uuid>,
    Body { value, .. }: Body<ReasonBody>,
) -> Result<axum::Json<Moved>, Problem> {
    release(&app, &who, instance, Release::Retry, &value.reason).await
}

/// Discards the first waiting event of an instance, and sends those behind it. Consumers will miss the sequence of the
/// discarded event; the instance's history and `GET /v1/events` keep it.
#[utoipa::path(post, path = "/v1/dead-letters/{id}/discard", tag = "events", operation_id = "discardDeadLetter",
    params(("id" = Uuid, Path)), request_body = DiscardBody, responses((status = 200, body = Moved)))]
pub(super) async fn discard(
    State(app): State<App>,
    Caller(who): Caller,
    Path(instance): Path<Uuid>,
    Body { value, .. }: Body<DiscardBody>,
) -> Result<axum::Json<Moved>, Problem> {
    let entry = value.entry;
    release(
        &app,
        &who,
        instance,
        Release::Discard { entry },
        &value.reason,
    )
    .await
}

async fn release(
    app: &App,
    who: &Identity,
    instance: Uuid,
    release: Release,
    reason: &str,
) -> Result<axum::Json<Moved>, Problem> {
    let released = app
        .engine
        .dead_letters()
        .release(who, InstanceId(instance), release, reason)
        .await?;
    match released {
        Released::Done(moved) => Ok(axum::Json(moved.into())),
        Released::NotFirst(first) => {
            let detail = format!("the first waiting event is that of entry {}", first.entry);
            Err(Problem {
                conflict: serde_json::to_value(ParkedEvent::from(first)).ok(),
                ..Problem::new("not_first", detail)
            })
        }
        Released::Nothing => Err(nothing(instance)),
    }
}

fn nothing(instance: Uuid) -> Problem {
    let (what, id) = ("parked event of instance", instance.to_string());
    Error::NotFound { what, id }.into()
}

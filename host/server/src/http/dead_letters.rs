//! Events that Kafka refused for good: look at them, send them again, or give one up.

use axum::extract::State;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::App;
use super::extract::{Body, Caller, Path, Query};
use super::page::{Page, decode, limit, page};
use super::problem::Problem;
use super::task_commands::ReasonBody;
use super::view::{maybe, view};
use wrkflw_core::ids::InstanceId;
use wrkflw_core::json::whole;
use wrkflw_engine::{Error, Identity};
use wrkflw_store::dead_letters::{Release, Released};

const READ: &str = "dead-letter:read";

view! {
    of wrkflw_store::dead_letters::ParkedEvent;
    /// An event that stands still.
    pub(super) struct ParkedEvent {
        pub instance: Uuid,
        /// The number of its entry in the instance's history.
        pub entry: u64,
        /// The id under which consumers know the event; none where its entry is damaged.
        pub event: Option<Uuid>,
        /// What it tells of, as in the history.
        #[serde(rename = "type")]
        pub kind: Option<String>,
        /// Its number among the events of its instance, as consumers see it.
        pub sequence: Option<u64>,
        /// Why it was refused, or that it stands behind one that was.
        pub error: String,
        /// How often it was tried on its own; 0 where it only stands behind another.
        pub attempts: u32,
        #[schema(value_type = String, format = DateTime)]
        pub parked_at: Timestamp,
    }
}

view! {
    of wrkflw_store::dead_letters::DeadLetter;
    /// The event at which an instance's events stand still.
    pub(super) struct DeadLetter {
        #[serde(flatten)]
        pub event: ParkedEvent => ParkedEvent::from,
        /// How many stand behind it, counted up to 10000.
        pub followers: u32,
    }
}

view! {
    of wrkflw_store::dead_letters::Moved;
    /// What went back to the outbox.
    pub(super) struct Moved {
        /// The event that was given up. Consumers will miss its sequence.
        pub discarded: Option<ParkedEvent> => maybe,
        /// Events that are sent again.
        pub released: u32,
        /// The entry of the last of them.
        pub last: Option<u64>,
        /// More stand still: ask again.
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

/// Which event is given up, and why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DiscardBody {
    /// The entry of the event that stands first.
    #[serde(deserialize_with = "whole")]
    pub entry: u64,
    pub reason: String,
}

/// Lists the instances whose events stand still, each with the first of these events.
#[utoipa::path(get, path = "/v1/dead-letters", tag = "events", operation_id = "list_dead_letters",
    params(PageQuery), responses((status = 200, body = Page<DeadLetter>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<PageQuery>,
) -> Result<axum::Json<Page<DeadLetter>>, Problem> {
    app.engine.permit(&who, READ).await?;
    let limit = limit(query.limit)?;
    let after = decode(query.after.as_deref())?;
    let reader = app.engine.reader();
    let found = reader
        .dead_letters(who.tenant, after, i64::from(limit) + 1)
        .await?;
    Ok(axum::Json(page(found, limit, |last| {
        last.event.instance.to_string()
    })))
}

/// Lists the events of an instance that stand still, in their order.
#[utoipa::path(get, path = "/v1/dead-letters/{id}", tag = "events", operation_id = "show_dead_letters",
    params(("id" = Uuid, Path), PageQuery), responses((status = 200, body = Page<ParkedEvent>)))]
pub(super) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
    Path(instance): Path<Uuid>,
    Query(query): Query<PageQuery>,
) -> Result<axum::Json<Page<ParkedEvent>>, Problem> {
    app.engine.permit(&who, READ).await?;
    let limit = limit(query.limit)?;
    // Entries are numbered as the database numbers them.
    let after: Option<u32> = decode(query.after.as_deref())?;
    let reader = app.engine.reader();
    let found = reader
        .parked_events(
            who.tenant,
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
#[utoipa::path(post, path = "/v1/dead-letters/{id}/retry", tag = "events", operation_id = "retry_dead_letters",
    params(("id" = Uuid, Path)), request_body = ReasonBody, responses((status = 200, body = Moved)))]
pub(super) async fn retry(
    State(app): State<App>,
    Caller(who): Caller,
    Path(instance): Path<Uuid>,
    Body { value, .. }: Body<ReasonBody>,
) -> Result<axum::Json<Moved>, Problem> {
    release(&app, &who, instance, Release::Retry, &value.reason).await
}

/// Gives the first event of an instance up, and sends those behind it. Consumers will miss the sequence of the one
/// given up; the instance's history and `GET /v1/events` keep it.
#[utoipa::path(post, path = "/v1/dead-letters/{id}/discard", tag = "events", operation_id = "discard_dead_letter",
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
        .release(who, InstanceId(instance), release, reason)
        .await?;
    match released {
        Released::Done(moved) => Ok(axum::Json(moved.into())),
        Released::NotFirst(first) => {
            let detail = format!(
                "the event that stands first is that of entry {}",
                first.entry
            );
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

//! Events without Kafka: pages and streams of the event feed.
//!
//! All streams of a host share one task that reads the feed (`live`) and keeps the newest events of each tenant (`tail`).
//! A `reader` is one stream. `stream_limits` limits the number of streams. `deliveries` adds what became of each event, and `replay`
//! sends events again.

mod deliveries;
mod live;
mod reader;
mod replay;
mod stream_limits;
mod tail;

use std::collections::BTreeMap;
use std::convert::Infallible;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use self::deliveries::{EventDeliveries, EventPart};
use self::reader::Reader;
use self::stream_limits::{Full, HOST_MAX, PERSON_MAX, TENANT_MAX};
use super::App;
use super::extract::{Caller, Listener, Query};
use super::include::commas;
use super::large::rendered;
use super::page::{PageEnd, decode, encode, limit};
use super::problem::Problem;
use super::shapes::CloudEventShape;
use super::value_error::of_parameter;
use wrkflw_core::cloudevent::{CloudEvent, Naming};
use wrkflw_core::event_filter::EventFilter;
use wrkflw_core::event_schema::public_types;
use wrkflw_core::ids::TenantId;
use wrkflw_core::json::Json;
use wrkflw_core::subscription::Patterns;
use wrkflw_store::feed::{self, FeedCursor, FeedPage};

pub(super) use self::live::Streams;

/// The value of `after` for the position before the first event.
const EARLIEST: &str = "earliest";
/// The permission to read events.
const PERMISSION: &str = "event:read";
/// How long a client must wait before it asks again, if too many streams are open.
const RETRY_AFTER_SECONDS: u32 = 10;

/// The routes of this file and of those below it.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(stream))
        .merge(replay::routes())
}

/// Declares the query of a route that reads events: its own parameters, and those of the filter.
macro_rules! event_query {
    ($(#[$meta:meta])* $name:ident { $($own:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, Deserialize, IntoParams)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        #[into_params(rename_all = "camelCase")]
        pub(super) struct $name {
            $($own)*
            /// Only of this type, such as `task.claimed`, or of a family such as `task.*`.
            pub r#type: Option<String>,
            pub definition_key: Option<String>,
            pub entity_type: Option<String>,
            pub entity_id: Option<String>,
            pub instance_id: Option<Uuid>,
            /// Only what this person did. Blind decisions are left out.
            pub actor: Option<String>,
        }

        impl $name {
            fn filter(&mut self, naming: &Naming) -> Result<EventFilter, Problem> {
                Ok(EventFilter {
                    types: patterns(self.r#type.take(), naming)?,
                    definition_key: self.definition_key.take(),
                    entity_type: self.entity_type.take(),
                    entity_id: self.entity_id.take(),
                    instance: self.instance_id,
                    actor: self.actor.take(),
                })
            }
        }
    };
}

event_query! {
    EventQuery {
        /// The `next` of an earlier page. Default: the first event, like `earliest`.
        pub after: Option<String>,
        #[param(minimum = 1, maximum = 100)]
        pub limit: Option<u32>,
        /// Further members of each event, separated by commas. `deliveries`: whether Kafka has it, and what became of it at each webhook; this needs
        /// the permissions `dead-letter:read` and `subscription:read`.
        #[serde(default, deserialize_with = "commas")]
        #[param(value_type = Vec<EventPart>, inline, required = false, style = Form, explode = false)]
        pub include: Vec<EventPart>,
    }
}

event_query! {
    StreamQuery {
        /// The `next` of an earlier page or the id of an event, or `earliest` for all since the first event. Default: from now on.
        pub after: Option<String>,
    }
}

/// The requested types, given with or without the operator's prefix.
fn patterns(requested: Option<String>, naming: &Naming) -> Result<Option<Patterns>, Problem> {
    let Some(requested) = requested else {
        return Ok(None);
    };
    let suffix = requested.strip_prefix(&naming.event_type(""));
    let suffix = suffix.unwrap_or(&requested).to_owned();
    let unknown = |detail: &str| of_parameter("type", format!("type: {detail}"));
    let patterns = Patterns::new(vec![suffix]).map_err(|(_, detail)| unknown(&detail))?;
    if !public_types().any(|public| patterns.matches(&public.suffix())) {
        return Err(unknown(
            "the feed has no notifications; subscribe a webhook to them, or read /v1/notifications",
        ));
    }
    Ok(Some(patterns))
}

/// The position that `after` names. None without `after`.
fn position(after: Option<&str>) -> Result<Option<FeedCursor>, Problem> {
    match after {
        Some(EARLIEST | "0") => Ok(Some(FeedCursor::FIRST)),
        after => decode(after),
    }
}

/// A page of events. `next` is always present: later events follow it. Events of instances that the caller does not see are left
/// out, so a page may be short or empty before the last one.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Events {
    /// `CloudEvents`, in structured form.
    #[schema(value_type = Vec<CloudEventShape>)]
    pub data: Vec<Json>,
    pub page: PageEnd,
    /// Only with `include=deliveries`: what became of each event, by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<BTreeMap<Uuid, EventDeliveries>>,
}

/// One event of a stream.
#[derive(ToSchema)]
#[expect(dead_code, reason = "documents what `stream` sends")]
pub(super) struct StreamedEvent {
    /// For `Last-Event-ID`.
    id: String,
    /// The `CloudEvent` in structured form, as JSON text.
    #[schema(content_media_type = "application/cloudevents+json")]
    data: String,
}

/// Reads events in the order of their commits.
///
/// A page may have fewer events than `limit`, or none, although more follow: one request reads at most 1000 events
/// (with `instanceId`, of that instance alone), and ends after 4 MiB of payloads. Events that the filter or the caller's rights leave out count, too.
/// `next` follows the last event read. Repeat until it no longer changes.
#[utoipa::path(get, path = "/v1/events", tag = "events", operation_id = "listEvents", params(EventQuery), responses((status = 200, body = Events)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Query(mut query): Query<EventQuery>,
) -> Result<Response, Problem> {
    let viewer = app.engine.viewing(&who, PERMISSION).await?;
    let shows_deliveries = query.include.contains(&EventPart::Deliveries);
    if shows_deliveries {
        deliveries::permit(&app, &who).await?;
    }
    let limit = limit(query.limit)?;
    let after = position(query.after.as_deref())?;
    let filter = query.filter(&app.naming)?;
    let mut page = read(&app, who.tenant, after, limit.into(), &filter).await?;
    page.entries.retain(|event| viewer.sees(event));
    let deliveries = if shows_deliveries {
        Some(deliveries::of(&app, who.tenant, &page.entries).await?)
    } else {
        None
    };
    let payloads = page.entries.iter().map(|event| event.entry.payload.len());
    let (bytes, naming) = (payloads.sum(), app.naming.clone());
    let events = move || {
        let entries = page.entries.iter();
        let events = entries.filter_map(|one| CloudEvent::of(&one.entry, &naming).ok());
        let next = Some(encode(&page.end.to_string()));
        Events {
            data: events.map(|event| event.structured()).collect(),
            page: PageEnd::after(next),
            deliveries,
        }
    };
    rendered(&app, who.tenant, bytes, events).await
}

async fn read(
    app: &App,
    tenant: TenantId,
    after: Option<FeedCursor>,
    limit: i64,
    filter: &EventFilter,
) -> Result<FeedPage, Problem> {
    let page = feed::page(app.engine.reader(), tenant, after, limit, filter).await?;
    if page.is_astray {
        let detail =
            "the database was restored, and this event is lost; read again from the first one";
        return Err(Problem::new("cursor_expired", detail));
    }
    Ok(page)
}

/// Streams events as they are committed (server-sent events), from now on. `after` begins earlier. `Last-Event-ID` resumes
/// where a stream broke off. The first message has only an id, that of the position where the stream begins. So has a message every 15
/// seconds in which no event comes.
///
/// It has the events of instances that the caller sees at that moment. Who sees an instance later gets its earlier events from an
/// earlier cursor.
///
/// A stream ends when its token expires, or when its caller loses the permission.
#[utoipa::path(get, path = "/v1/events/stream", tag = "events", operation_id = "streamEvents", params(StreamQuery),
    responses((status = 200, content_type = "text/event-stream", body = StreamedEvent)))]
pub(super) async fn stream(
    State(app): State<App>,
    caller: Listener,
    Query(mut query): Query<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let who = &caller.who;
    let viewer = app.engine.watching(who, PERMISSION).await?;
    let last = headers
        .get("last-event-id")
        .and_then(|value| value.to_str().ok());
    let after = position(last.or(query.after.as_deref()))?;
    let filter = query.filter(&app.naming)?;
    let permit = app.streams.limits.take(who.tenant, &who.subject);
    let permit = permit.map_err(full)?;
    // The first read precedes the response, so that a wrong cursor gets a problem and not a broken stream. Without a cursor,
    // it reads only the end of the feed.
    let batch = after.map_or(0, |_| live::BATCH);
    let first = read(&app, who.tenant, after, batch, &filter).await?;
    let start = after.unwrap_or(first.horizon);
    let reader = Reader::new(app, (caller, viewer), permit, filter, (start, &first));
    let events = futures_util::stream::unfold(reader, async |mut reader| {
        let event = reader.next().await?;
        Some((Ok::<_, Infallible>(event), reader))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(events)).into_response())
}

fn full(full: Full) -> Problem {
    let (code, detail) = match full {
        Full::Person => (
            "too_many_streams",
            format!("{PERSON_MAX} event streams are open in your name already"),
        ),
        Full::Tenant => (
            "too_many_streams",
            format!("{TENANT_MAX} event streams of your tenant are open already"),
        ),
        Full::Host => (
            "unavailable",
            format!("this host streams to {HOST_MAX} readers already"),
        ),
    };
    Problem {
        retry_after: Some(RETRY_AFTER_SECONDS),
        ..Problem::new(code, detail)
    }
}

//! Events without Kafka: pages of the feed, and a stream of it.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use utoipa::{IntoParams, ToSchema};

use super::App;
use super::extract::{Caller, Query};
use super::page::{Next, decode, encode, limit};
use super::problem::Problem;
use crate::domain::cloudevent::CloudEvent;
use crate::domain::ids::TenantId;
use crate::domain::json::Json;
use crate::store::feed::{FeedCursor, FeedPage};

/// How often a stream looks for what other hosts committed.
const POLL: Duration = Duration::from_millis(500);
/// Streams at once. Each reads from the database twice a second when nothing wakes it.
const STREAMS_MAX: usize = 500;
/// When a reader may ask again who came when all streams were taken.
const RETRY_AFTER_SECONDS: u32 = 10;
/// Events that a slow reader may have waiting.
const STREAM_BUFFER: usize = 256;
/// Events read at once for a stream.
const STREAM_BATCH: i64 = 100;
/// A comment keeps intermediaries from closing a silent stream.
const HEARTBEAT: Duration = Duration::from_secs(15);

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct EventQuery {
    /// The `next` of an earlier page; from the first event when absent.
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamQuery {
    /// The `next` of an earlier page; from the first event when absent.
    pub after: Option<String>,
}

/// A page of events. `next` is always there: what comes later is found behind it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Events {
    /// `CloudEvents`, in structured form.
    #[schema(value_type = Vec<Object>)]
    pub data: Vec<Json>,
    pub page: Next,
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
#[utoipa::path(get, path = "/v1/events", tag = "events", params(EventQuery), responses((status = 200, body = Events)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<EventQuery>,
) -> Result<axum::Json<Events>, Problem> {
    app.engine.permit(&who, "event:read").await?;
    let limit = limit(query.limit)?;
    let after = decode(query.after.as_deref())?;
    let page = read(&app, who.tenant, after, limit.into()).await?;
    let data = page
        .entries
        .iter()
        .filter_map(|(_, entry)| CloudEvent::of(entry, &app.naming).ok())
        .map(|event| event.structured());
    Ok(axum::Json(Events {
        data: data.collect(),
        page: Next {
            next: Some(encode(&page.end.to_string())),
        },
    }))
}

async fn read(
    app: &App,
    tenant: TenantId,
    after: Option<FeedCursor>,
    limit: i64,
) -> Result<FeedPage, Problem> {
    let page = app.engine.store().feed(tenant, after, limit).await?;
    match after {
        Some(after) if after.epoch != page.epoch => Err(Problem::new(
            "cursor_expired",
            "the database was restored; read again from the first event",
        )),
        Some(_) | None => Ok(page),
    }
}

/// Streams events as they are committed (server-sent events). `Last-Event-ID` resumes where a stream broke off.
#[utoipa::path(get, path = "/v1/events/stream", tag = "events", params(StreamQuery),
    responses((status = 200, content_type = "text/event-stream", body = StreamedEvent)))]
pub(super) async fn stream(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    app.engine.permit(&who, "event:read").await?;
    let last = headers
        .get("last-event-id")
        .and_then(|value| value.to_str().ok());
    let after = decode(last.or(query.after.as_deref()))?;
    // The first read is made before the answer, so that a bad cursor is a problem and no broken stream.
    let first = read(&app, who.tenant, after, STREAM_BATCH).await?;
    let (sender, receiver) = mpsc::channel(STREAM_BUFFER);
    let tracker = app.tracker.clone();
    if tracker.len() >= STREAMS_MAX {
        let detail = format!("this host streams to {STREAMS_MAX} readers already");
        let retry_after = Some(RETRY_AFTER_SECONDS);
        return Err(Problem {
            retry_after,
            ..Problem::new("unavailable", detail)
        });
    }
    tracker.spawn(pump(app, who.tenant, first, sender));
    let events = Sse::new(boxed(receiver)).keep_alive(KeepAlive::new().interval(HEARTBEAT));
    Ok(([("x-accel-buffering", "no")], events).into_response())
}

fn boxed(receiver: mpsc::Receiver<Event>) -> impl Stream<Item = Result<Event, Infallible>> {
    use futures_util::StreamExt as _;
    ReceiverStream::new(receiver).map(Ok)
}

/// Reads on for as long as somebody listens.
async fn pump(app: App, tenant: TenantId, mut page: FeedPage, sender: mpsc::Sender<Event>) {
    let mut commits = app.engine.commits();
    loop {
        commits.borrow_and_update();
        for (cursor, entry) in &page.entries {
            let Ok(event) = CloudEvent::of(entry, &app.naming) else {
                continue;
            };
            let event = Event::default()
                .id(encode(&cursor.to_string()))
                .data(event.structured().as_str());
            tokio::select! {
                sent = sender.send(event) => if sent.is_err() { return },
                () = app.cancel.cancelled() => return,
            }
        }
        if page.entries.len() < usize::try_from(STREAM_BATCH).unwrap_or(usize::MAX) {
            tokio::select! {
                () = sender.closed() => return,
                () = app.cancel.cancelled() => return,
                _ = commits.changed() => {}
                () = tokio::time::sleep(POLL) => {}
            }
        }
        page = match read(&app, tenant, Some(page.end), STREAM_BATCH).await {
            Ok(page) => page,
            Err(problem) => {
                tracing::warn!(problem.detail, "an event stream ends");
                return;
            }
        };
    }
}

//! Tells an open page that something changed, by server-sent events. The page then reads the new content itself. So a stream
//! carries no content, and the read decides what the person may see.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures_util::StreamExt as _;
use serde::Deserialize;
use uuid::Uuid;

use crate::Console;
use crate::session::{Visitor, goes_on};

/// The time between checks that the session still exists.
const LOOK: Duration = Duration::from_secs(30);

pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/console/live", get(live))
}

#[derive(Deserialize)]
struct LiveQuery {
    /// Only of this instance. Without it, of all tasks.
    instance: Option<Uuid>,
}

async fn live(
    State(console): State<Console>,
    Query(query): Query<LiveQuery>,
    visitor: Visitor,
) -> Response {
    let end = session_end(console, visitor.clone());
    follow(&visitor, query.instance, end).await
}

/// Tells what happens to one instance, or to all tasks, until `end`.
pub(super) async fn follow(
    visitor: &Visitor,
    instance: Option<Uuid>,
    end: impl Future<Output = ()> + Send + 'static,
) -> Response {
    let path = match instance {
        Some(id) => format!("/v1/events/stream?instanceId={id}"),
        None => "/v1/events/stream?type=task.*".to_owned(),
    };
    let response = visitor.api.raw(&path).await;
    if !response.status().is_success() {
        // Without a body, because nothing reads it. The script tries again later.
        return response.status().into_response();
    }
    let events = response.into_body().into_data_stream();
    let messages = events.map(|chunk| {
        let next = chunk.map_or_else(|_| comment(), |chunk| message(&chunk));
        Ok::<_, Infallible>(next)
    });
    let messages = messages.take_until(Box::pin(end));
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        // Proxies that know it send each part at once.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(messages)).into_response()
}

/// The message to the page for a part of the API's stream: that something changed, or only that the stream is alive.
fn message(chunk: &[u8]) -> Bytes {
    if chunk.windows(5).any(|part| part == b"data:") {
        Bytes::from_static(b"data: changed\n\n")
    } else {
        comment()
    }
}

fn comment() -> Bytes {
    Bytes::from_static(b":\n\n")
}

/// Waits until the session has ended. An open page does not count as use of the session.
async fn session_end(console: Console, visitor: Visitor) {
    loop {
        tokio::time::sleep(LOOK).await;
        if !goes_on(&console, &visitor.session).await {
            return;
        }
    }
}

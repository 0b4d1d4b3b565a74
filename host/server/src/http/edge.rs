//! One service around all routes, for the steps that every request needs. Layers of the router would be boxed and cloned
//! for each route and request.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body as ResponseBody;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use tower::Service;
use tower_http::CompressionLevel;
use tower_http::compression::predicate::{NotForContentType, Predicate as _, SizeAbove};
use tower_http::compression::{Compression, CompressionBody};

use super::{App, admission, extract, layers, pace};

/// The routes with these steps. Cheap to clone.
#[derive(Clone)]
pub(super) struct Edge {
    routes: Router,
    app: App,
}

/// Shorter bodies are not compressed: most fit into one packet.
const COMPRESSED_BYTES_MIN: u64 = 1024;

/// Compresses the bodies of this service for clients that accept it, by gzip or zstd at the fastest level. The chunks of an event
/// stream are sent at once, so they are not compressed.
pub(super) fn compressed(
    edge: Edge,
) -> impl Service<Request, Response = CompressedResponse, Error = Infallible, Future: Send>
+ Clone
+ Send
+ Sync
+ 'static {
    let worth =
        SizeAbove::new(COMPRESSED_BYTES_MIN).and(NotForContentType::const_new("text/event-stream"));
    Compression::new(edge)
        .gzip(true)
        .zstd(true)
        .quality(CompressionLevel::Fastest)
        .compress_when(worth)
}

/// A response whose body is compressed while it is sent.
pub(super) type CompressedResponse = axum::http::Response<CompressionBody<ResponseBody>>;

impl Edge {
    pub(super) fn new(routes: Router, app: App) -> Edge {
        Edge { routes, app }
    }

    async fn answer(self, request: Request) -> Response {
        let Edge { routes, app } = self;
        layers::surround(request, |request| {
            admission::admit(&app, request, |request| guarded(routes, &app, request))
        })
        .await
    }
}

/// The steps before a route that another crate serves beside the API, such as a page: the checks of the head, a place of
/// `app.admission`, and the limit of a slow body. The caller must limit the body's size and answer a panic.
pub async fn beside(State(app): State<App>, request: Request, next: Next) -> Response {
    layers::checked(request, |request| {
        admission::admit(&app, request, |request| {
            next.run(pace::keep(app.pace, request))
        })
    })
    .await
}

/// Limits the size and the slowness of the body, and turns a panic into a response.
async fn guarded(mut routes: Router, app: &App, request: Request) -> Response {
    let answered = AssertUnwindSafe(async {
        let mut request = pace::keep(app.pace, request);
        DefaultBodyLimit::max(extract::BODY_BYTES_MAX).apply(&mut request);
        routes.call(request).await.into_response()
    });
    let answered = answered.catch_unwind().await;
    answered.unwrap_or_else(layers::panicked)
}

impl Service<Request> for Edge {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        Box::pin(self.clone().answer(request).map(Ok))
    }
}

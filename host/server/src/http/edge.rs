//! One service around all routes, for the steps that every request needs. Layers of the router would be boxed and cloned
//! for each route and request.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use tower::Service;

use super::{App, admission, extract, layers, pace};

/// The routes with these steps. Cheap to clone.
#[derive(Clone)]
pub(super) struct Edge {
    routes: Router,
    app: App,
}

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

/// Limits the size and the slowness of the body, and makes a panic a response.
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

//! The paths outside of the API: the root, the documents that describe the API, and unknown paths.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::from_fn;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use serde_json::json;

use super::problem::Problem;
use super::{App, conditional, docs, openapi, schemas};

/// The page for a path that leads nowhere.
const NOTHING: &str = r#"<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Not found - wrkflw</title></head>
<body>
<h1>There is nothing at this path</h1>
<p><a href="/">Go to the first page</a>, or read <a href="/docs">what the API has</a>.</p>
</body>
</html>
"#;
const POLICY: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Redirects a browser to the page at `/docs`, unless the console in front of the API redirects it elsewhere. A program gets the paths
/// of the documents that describe the API.
pub(super) async fn show(headers: HeaderMap) -> Response {
    if is_browser(&headers) {
        return Redirect::to("/docs").into_response();
    }
    let links = json!({
        "docs": "/docs", "openapi": "/openapi.json", "asyncapi": "/asyncapi.json", "live": "/livez", "ready": "/readyz",
    });
    super::json(links.to_string())
}

/// The documents that describe the API and its events. They do not change while the host runs.
pub(super) fn descriptions(openapi: Arc<str>) -> Router<App> {
    let tag = conditional::tag_of(openapi.as_bytes());
    // All answers share the text.
    let openapi = Bytes::copy_from_slice(openapi.as_bytes());
    let openapi = move || async move { ([(header::ETAG, tag)], super::json(openapi)) };
    Router::new()
        .route("/openapi.json", get(openapi))
        .route("/asyncapi.json", get(openapi::asyncapi))
        .route("/schemas", get(schemas::index))
        .route("/schemas/", get(schemas::index))
        .route("/schemas/v1/{file}", get(schemas::one))
        .merge(docs::routes())
        .layer(from_fn(conditional::answer))
}

/// Tells that no route has this path.
pub(super) async fn nothing(headers: HeaderMap) -> Response {
    if !is_browser(&headers) {
        return Problem::new("not_found", "there is nothing at this path").into_response();
    }
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (StatusCode::NOT_FOUND, headers, NOTHING).into_response()
}

/// Whether the sender of this request accepts a page. Browsers say so when a person opens an address.
pub fn is_browser(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let mut accepted = accepted.filter_map(|value| value.to_str().ok());
    accepted.any(|value| value.contains("text/html"))
}

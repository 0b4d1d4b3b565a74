//! The root of the API: a program gets the paths of what describes the API, and a browser is led to the page at `/docs`, unless the
//! console in front of the API leads it elsewhere.

use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde_json::json;

pub(super) async fn show(headers: HeaderMap) -> Response {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let mut accepted = accepted.filter_map(|value| value.to_str().ok());
    if accepted.any(|value| value.contains("text/html")) {
        return Redirect::to("/docs").into_response();
    }
    let links = json!({
        "docs": "/docs", "openapi": "/openapi.json", "asyncapi": "/asyncapi.json", "live": "/livez", "ready": "/readyz",
    });
    super::json(links.to_string())
}

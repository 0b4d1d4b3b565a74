//! The steps around every request: its id and trace context, the checks of its head, the rendering of problems, and the
//! headers that every response has.

use std::any::Any;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::head;
use super::newline::ended;
use super::observe::Change;
use super::problem::Problem;
use wrkflw_engine::Trace;
use wrkflw_runtime::clock;
use wrkflw_runtime::telemetry;

/// Maximum size of all headers of a request together.
const HEADER_BYTES_MAX: usize = 16 * 1024;
/// The longest request id that is accepted from a client.
const REQUEST_ID_CHARS_MAX: usize = 128;

/// Sets the id and trace of a request, checks its head, and completes its response.
pub(super) async fn surround<F: Future<Output = Response>>(
    mut request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let headers = request.headers();
    let request_id = request_id(headers);
    let path = request.uri().path().to_owned();
    let size: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    let traceparent = telemetry::traceparent(
        headers
            .get("traceparent")
            .and_then(|value| value.to_str().ok()),
    );
    let trace = Trace::new(request_id.clone(), traceparent);
    let change = Change::begin(&request, &trace);
    request.extensions_mut().insert(trace);
    let response = if size > HEADER_BYTES_MAX {
        Problem::new(
            "headers_too_large",
            format!("headers have at most {HEADER_BYTES_MAX} bytes together"),
        )
        .into_response()
    } else if let Err(problem) = head::check(&request) {
        problem.into_response()
    } else {
        next(request).await
    };
    if let Some(change) = change {
        change.end(&response);
    }
    let mut response = ended(described(response, &path, &request_id));
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        headers.insert("x-request-id", value);
    }
    guard(headers, &path);
    response
}

/// Sets headers against misuse of a response: browsers must not guess its type, and caches must not store responses of the
/// API. The next caller may be somebody else, or may have lost the permission.
fn guard(headers: &mut HeaderMap, path: &str) {
    const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
    const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    if path.starts_with("/v1/") {
        headers.insert(header::CACHE_CONTROL, NO_STORE);
    }
}

/// Refuses query parameters on routes that have none. A misspelt or misplaced one, such as `dryRun` on a route without dry
/// runs, must not be ignored.
pub(super) async fn without_query(request: Request, next: Next) -> Response {
    match request.uri().query() {
        None | Some("") => next.run(request).await,
        Some(_) => {
            let detail = "this path takes no query parameters";
            Problem::new("malformed_request", detail).into_response()
        }
    }
}

/// Renders the body of a problem, also of one that the framework returned.
fn described(mut response: Response, path: &str, request_id: &str) -> Response {
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let allow = response.headers_mut().remove(header::ALLOW);
        let mut response = problem.render(path, request_id);
        response
            .headers_mut()
            .extend(allow.map(|allow| (header::ALLOW, allow)));
        return response;
    }
    match response.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            Problem::new("too_large", "the body is too large").render(path, request_id)
        }
        _ => response,
    }
}

fn request_id(headers: &HeaderMap) -> String {
    let given = headers
        .get("x-request-id")
        .and_then(|value| value.to_str().ok());
    let plain = |id: &&str| {
        (1..=REQUEST_ID_CHARS_MAX).contains(&id.len()) && id.chars().all(|c| c.is_ascii_graphic())
    };
    given
        .filter(plain)
        .map_or_else(|| clock::new_id().to_string(), str::to_owned)
}

/// The response if a handler panicked.
pub(super) fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    tracing::error!(panic = text.unwrap_or("unknown"), "a handler panicked");
    Problem::new("internal", "the request failed; the host's log has its id").into_response()
}

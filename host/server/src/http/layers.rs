//! The steps around every request: its id and trace context, the checks of its head, the rendering of problems, and the
//! headers that every response has.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::HttpBody as _;
use axum::extract::{MatchedPath, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;

use super::App;
use super::newline::ended;
use super::observe::{Change, only_reads};
use super::problem::Problem;
use super::value_error::of_parameter;
use wrkflw_engine::Trace;
use wrkflw_runtime::clock;
use wrkflw_runtime::telemetry;

/// Maximum size of all headers of a request together.
const HEADER_BYTES_MAX: usize = 16 * 1024;
/// The longest request id that is accepted from a client.
const REQUEST_ID_CHARS_MAX: usize = 128;
/// Headers that a request may have at most once.
static ONCE: [HeaderName; 8] = [
    header::AUTHORIZATION,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::HOST,
    header::IF_MATCH,
    header::TRANSFER_ENCODING,
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("last-event-id"),
];

/// Headers on which the caller of a change relies, each with the message of an operation that does not take it.
const RELIED_ON: [(&str, &str); 2] = [
    (
        "If-Match",
        "only a command on one instance or task has a revision to match; leave If-Match out",
    ),
    (
        "Idempotency-Key",
        "a repetition of this request is not recognised by a key; leave Idempotency-Key out",
    ),
];

/// The headers that each operation takes, by its method and path.
pub(super) type Taken = Arc<BTreeMap<String, Vec<String>>>;

/// Sets the id and trace of a request, checks its head, and completes its response.
pub(super) async fn surround<F: Future<Output = Response>>(
    mut request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let headers = request.headers();
    let request_id = request_id(headers);
    let path = request.uri().path().to_owned();
    let traceparent = telemetry::traceparent(
        headers
            .get("traceparent")
            .and_then(|value| value.to_str().ok()),
    );
    let trace = Trace::new(request_id.clone(), traceparent);
    let change = Change::begin(&request, &trace);
    request.extensions_mut().insert(trace);
    let response = match check_head(&request) {
        Err(problem) => problem.into_response(),
        Ok(()) => next(request).await,
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

/// Sets headers against misuse of a response. Browsers must not guess its type. Caches must not store responses of the
/// API, because the next caller may be somebody else, or may have lost the permission.
fn guard(headers: &mut HeaderMap, path: &str) {
    const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
    const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    if path.starts_with("/v1/") {
        headers.insert(header::CACHE_CONTROL, NO_STORE);
    }
}

/// Makes these routes refuse query parameters, because they have none. A misspelt or misplaced one, such as `dryRun` on a route
/// without dry runs, must not be ignored.
pub(super) fn without_query(router: OpenApiRouter<App>) -> OpenApiRouter<App> {
    router.layer(from_fn(refuse_query))
}

async fn refuse_query(request: Request, next: Next) -> Response {
    match request.uri().query() {
        None | Some("") => next.run(request).await,
        Some(query) => {
            let name = query.split(['=', '&']).next().unwrap_or_default();
            let detail = "this path takes no query parameters";
            of_parameter(name, detail).into_response()
        }
    }
}

/// The headers that the operations of this document take.
pub(super) fn taken(document: &Value) -> Taken {
    let mut all = BTreeMap::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let headers = parameters.filter(|one| one["in"] == "header");
            let names = headers.filter_map(|one| Some(one["name"].as_str()?.to_owned()));
            let called = format!("{} {path}", method.to_uppercase());
            all.insert(called, names.collect());
        }
    }
    Arc::new(all)
}

/// Refuses `If-Match` and `Idempotency-Key` on operations that do not take them. If an operation ignored such a header, the change
/// could do what its caller wanted to prevent: replace somebody else's change, or happen twice.
pub(super) async fn refuse_untaken(
    State(taken): State<Taken>,
    request: Request,
    next: Next,
) -> Response {
    let refused = untaken(&taken, &request);
    match refused {
        Some((name, detail)) => of_parameter(name, detail).into_response(),
        None => next.run(request).await,
    }
}

fn untaken(taken: &Taken, request: &Request) -> Option<(&'static str, &'static str)> {
    let given: Vec<_> = RELIED_ON
        .into_iter()
        .filter(|(name, _)| request.headers().contains_key(*name))
        .collect();
    // Most requests have none. What is only read depends on neither.
    if given.is_empty() || only_reads(request) {
        return None;
    }
    let path = request.extensions().get::<MatchedPath>()?.as_str();
    let names = taken.get(&format!("{} {path}", request.method()))?;
    given
        .into_iter()
        .find(|(name, _)| !names.iter().any(|one| one == name))
}

/// Renders the body of a problem, also of a problem that the framework returned.
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

/// The same checks for a route that another crate serves beside the API.
pub(super) async fn checked<F: Future<Output = Response>>(
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let path = request.uri().path().to_owned();
    let request_id = request_id(request.headers());
    let mut response = match check_head(&request) {
        Err(problem) => problem.into_response(),
        Ok(()) => next(request).await,
    };
    match response.extensions_mut().remove::<Problem>() {
        Some(problem) => ended(problem.render(&path, &request_id)),
        None => response,
    }
}

/// Refuses a request with a head that is too large or ambiguous, or with a body in an encoding that this host does not decode. If a
/// header comes twice, one program reads the first value and another the last. So a proxy may have checked the other value.
fn check_head(request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    let sizes = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len());
    if sizes.sum::<usize>() > HEADER_BYTES_MAX {
        let detail = format!("headers have at most {HEADER_BYTES_MAX} bytes together");
        return Err(Problem::new("headers_too_large", detail));
    }
    // If there are as many values as names, no header is repeated.
    if headers.len() != headers.keys_len() {
        once(headers)?;
    }
    host(request.version(), headers)?;
    if request.body().is_end_stream() {
        return Ok(());
    }
    plain(headers, &header::CONTENT_ENCODING, "identity")?;
    plain(headers, &header::TRANSFER_ENCODING, "chunked")
}

fn once(headers: &HeaderMap) -> Result<(), Problem> {
    let doubled = |name: &&HeaderName| headers.get_all(*name).iter().nth(1).is_some();
    match ONCE.iter().find(doubled) {
        Some(name) => Err(malformed(format!(
            "the header {name} came more than once: send one"
        ))),
        None => Ok(()),
    }
}

/// HTTP/1.1 requires the header. The host ignores its value, but it must be a valid authority.
fn host(version: Version, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(host) = headers.get(header::HOST) else {
        return match version {
            Version::HTTP_09 | Version::HTTP_10 => Ok(()),
            _ => Err(malformed("the header host is missing".to_owned())),
        };
    };
    let names_a_place =
        |host: &str| host.is_empty() || (!host.contains('@') && host.parse::<Authority>().is_ok());
    if host.to_str().is_ok_and(names_a_place) {
        Ok(())
    } else {
        Err(malformed("the header host names no host".to_owned()))
    }
}

/// Refuses encodings of the body other than `known`.
fn plain(headers: &HeaderMap, name: &HeaderName, known: &str) -> Result<(), Problem> {
    for value in headers.get_all(name) {
        if !value
            .to_str()
            .is_ok_and(|coding| coding.trim().eq_ignore_ascii_case(known))
        {
            let detail = format!("{name} may be {known} alone: send the body as it is");
            return Err(Problem::new("unsupported_encoding", detail));
        }
    }
    Ok(())
}

fn malformed(detail: String) -> Problem {
    Problem::new("malformed_request", detail)
}

#[cfg(test)]
mod tests;

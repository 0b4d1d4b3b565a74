//! Every request for a change writes a log line and a count. This includes refused requests, aborted ones, and changes of other
//! things than instances.

use axum::body::{Body, Bytes};
use axum::http::Request;
use futures_util::stream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use wrkflw_server::http::admission::Admission;

use super::observed::{collect_lines, metric, only_line};
use super::*;

/// The count of requests without a definition that had this outcome.
async fn count(app: &TestApp, action: &str, outcome: &str) -> u64 {
    let labels = [("definition", ""), ("action", action), ("outcome", outcome)];
    metric(app, "wrkflw_transitions_total", &labels).await
}

fn request(
    host: &Host,
    user: &str,
    method: &str,
    path: &str,
    id: &str,
    body: Body,
) -> Request<Body> {
    host.request(user, method, path)
        .header("x-request-id", id)
        .header("content-type", "application/json")
        .body(body)
        .expect("a request")
}

const DECIDE: &str = "/v1/tasks/00000000-0000-7000-8000-000000000000/decide";
const UNKNOWN: &str = "/v1/tasks/00000000-0000-7000-8000-000000000000/unheard-of";
const PERSON: &str = r#"{"name":"New"}"#;

/// A request, and what is recorded of it: the caller, the method, the path, the body; status, action, outcome.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    u16,
    &'static str,
    &'static str,
);

#[rustfmt::skip]
const CASES: [Case; 6] = [
    ("author", "POST", "/v1/instances", "{", 400, "start", "validation_error"),
    ("author", "POST", "/v1/instances", r#"{"colour":1}"#, 422, "start", "validation_error"),
    ("", "POST", DECIDE, "{}", 401, "decide", "unauthenticated"),
    ("author", "POST", UNKNOWN, "{}", 404, "post", "validation_error"),
    ("author", "PUT", "/v1/people/new", PERSON, 403, "put", "forbidden"),
    ("admin", "PUT", "/v1/people/new", PERSON, 200, "put", "success"),
];

#[tokio::test]
async fn each_request_for_a_change_writes_a_line_and_a_count() {
    collect_lines();
    let app = TestApp::start().await;
    let host = app.host();
    for (number, (user, method, path, body, status, action, outcome)) in
        CASES.into_iter().enumerate()
    {
        let before = count(&app, action, outcome).await;
        let id = format!("refusals-{number}");
        let sent = request(&host, user, method, path, &id, Body::from(body));
        let answer = host.answer(sent).await;
        let is_good = answer.status == status || (status == 200 && answer.status < 300);
        assert!(is_good, "{method} {path}: {}", answer.text);
        let line = only_line(&id);
        assert_eq!(line["outcome"], outcome, "{method} {path}");
        assert_eq!(line["action"], action, "{method} {path}");
        assert!(
            line["durationMs"].is_u64() && line["traceId"].is_string(),
            "{line:?}"
        );
        let after = count(&app, action, outcome).await;
        assert!(after > before, "{method} {path}");
    }
}

#[tokio::test]
async fn overload_refusals_and_aborted_requests_write_a_line() {
    collect_lines();
    let app = TestApp::start().await;
    let host = app.admitting(Admission::new(1, 0));
    let before = count(&app, "start", "refused").await;
    // The only place belongs to a request whose body does not end.
    let (reading, read) = oneshot::channel::<()>();
    let mut reading = Some(reading);
    let endless = stream::poll_fn(move |_| {
        reading.take().map(|reading| reading.send(()));
        std::task::Poll::<Option<Result<Bytes, std::io::Error>>>::Pending
    });
    let endless = Body::from_stream(endless);
    let held = request(
        &host,
        "author",
        "POST",
        "/v1/instances",
        "refusals-held",
        endless,
    );
    let mut ownership = JoinSet::new();
    ownership.spawn({
        let host = host.clone();
        async move { host.open(held).await }
    });
    read.await
        .expect("the request has its place, and its body is read");

    let late = request(
        &host,
        "author",
        "POST",
        "/v1/instances",
        "refusals-late",
        Body::from("{}"),
    );
    host.answer(late).await.problem(503, "overloaded");
    assert_eq!(only_line("refusals-late")["outcome"], "refused");
    assert!(count(&app, "start", "refused").await > before);

    ownership.shutdown().await;
    assert_eq!(only_line("refusals-held")["outcome"], "system_error");
}

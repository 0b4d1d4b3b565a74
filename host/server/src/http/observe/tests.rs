//! Which requests are changes, and which labels they are counted under.

use super::*;

#[test]
fn a_request_that_only_reads_is_no_change() {
    for (method, path, is_change) in [
        ("GET", "/v1/instances", false),
        ("POST", "/v1/instances/search", false),
        ("POST", "/v1/names", false),
        ("POST", "/v1/instances", true),
    ] {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(axum::body::Body::empty()).expect("a request");
        let change = Change::begin(&request, &Trace::default());
        assert_eq!(change.is_some(), is_change, "{method} {path}");
    }
}

#[test]
fn what_a_caller_writes_is_no_label() {
    for (method, path, expected) in [
        (Method::POST, "/v1/instances", "start"),
        (Method::POST, "/v1/tasks/x/decide", "decide"),
        (Method::POST, "/v1/tasks/x/anything", "post"),
        (Method::POST, "/v1/instances/x/signals/PAID", "signal"),
        (Method::POST, "/v1/instances/x/signals/cancel", "signal"),
        (Method::POST, "/v1/signals", "signal"),
        (Method::PUT, "/v1/people/decided", "put"),
        (Method::PUT, "/v1/people/cancel", "put"),
        (Method::DELETE, "/", "delete"),
        (
            Method::from_bytes(b"BREW").expect("a method"),
            "/pot",
            "other",
        ),
    ] {
        assert_eq!(action(&method, path), expected, "{path}");
    }
}

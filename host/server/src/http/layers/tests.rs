//! Heads of requests that could be read in two ways.

use axum::body::Body;

use super::*;

fn met(version: Version, headers: &[(&str, &str)], body: &'static str) -> String {
    let mut request = Request::post("/v1/instances").version(version);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body)).expect("a request");
    check_head(&request).map_or_else(|problem| problem.code, |()| String::new())
}

#[test]
fn what_means_one_thing_comes_once() {
    let host = ("host", "localhost:8080");
    for name in &ONCE {
        let one = (name.as_str(), "chunked");
        let mut headers = vec![one, one];
        if *name != header::HOST {
            headers.push(host);
        }
        let code = met(Version::HTTP_11, &headers, "{}");
        assert_eq!(code, "malformed_request", "{name}");
        headers.remove(0);
        assert_eq!(met(Version::HTTP_11, &headers, "{}"), "", "{name}");
    }
    let labels = [host, ("accept", "a/b"), ("accept", "*/*")];
    assert_eq!(met(Version::HTTP_11, &labels, ""), "");
}

#[test]
fn a_host_is_named_as_the_version_demands() {
    assert_eq!(met(Version::HTTP_11, &[], ""), "malformed_request");
    assert_eq!(met(Version::HTTP_10, &[], ""), "");
    for sound in ["", "localhost", "[::1]:80", "flows.example.org:8080"] {
        assert_eq!(met(Version::HTTP_11, &[("host", sound)], ""), "", "{sound}");
    }
    for bad in ["a, b", "a b", "me@a", "http://a/", "a/b"] {
        let code = met(Version::HTTP_10, &[("host", bad)], "");
        assert_eq!(code, "malformed_request", "{bad}");
    }
}

#[test]
fn a_body_comes_as_it_is() {
    let coded = |name, value, body| met(Version::HTTP_11, &[("host", "a"), (name, value)], body);
    for coding in ["gzip", "br", "identity, gzip", "x", ""] {
        let code = coded("content-encoding", coding, "{}");
        assert_eq!(code, "unsupported_encoding", "{coding}");
        // There is nothing to undo.
        assert_eq!(coded("content-encoding", coding, ""), "", "{coding}");
    }
    assert_eq!(coded("content-encoding", "Identity", "{}"), "");
    assert_eq!(coded("transfer-encoding", "chunked", "{}"), "");
    let code = coded("transfer-encoding", "gzip, chunked", "{}");
    assert_eq!(code, "unsupported_encoding");
}

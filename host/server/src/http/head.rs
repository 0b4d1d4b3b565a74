//! Refuses ambiguous heads of requests. If a header comes twice, one program reads the first value and another the last: a
//! proxy may have checked the other one. These checks precede the admission of the request.

use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Version, header};

use super::problem::Problem;

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

/// Refuses a request with an ambiguous head, or with a body in an encoding that this host does not decode.
pub(super) fn check(request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    // As many values as names: no header is repeated.
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
mod tests {
    use axum::body::Body;

    use super::*;

    fn met(version: Version, headers: &[(&str, &str)], body: &'static str) -> String {
        let mut request = Request::post("/v1/instances").version(version);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body)).expect("a request");
        check(&request).map_or_else(|problem| problem.code, |()| String::new())
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
        let coded =
            |name, value, body| met(Version::HTTP_11, &[("host", "a"), (name, value)], body);
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
}

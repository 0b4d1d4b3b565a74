//! Forms that browsers send. A form is accepted only if this host's own page sent it: the browser names the origin, and the
//! form carries the token of the session.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, FromRequestParts as _, Request};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse as _;
use tokio::sync::{Semaphore, SemaphorePermit};

use wrkflw_server::http::admission::overloaded;

use crate::language::Words;
use crate::session::{Halt, Visitor, next_page};
use crate::{Console, pages};

/// The largest form: a comment and an input, encoded.
const FORM_BYTES_MAX: usize = 256 * 1024;
/// Limit of the fields of a form. A look-up of a field is linear.
const FIELDS_MAX: usize = 3000;
/// How long a form may take to arrive.
const FORM_TIME_MAX: Duration = Duration::from_secs(10);
/// The field with the token of the session.
pub(crate) const TOKEN: &str = "token";
/// The field with the page of a form, to return to. Forms have it if their answer may be a page under an address without a GET.
const HERE: &str = "here";

/// The fields of a form, in their order.
#[derive(Debug, Default, Clone)]
pub(crate) struct Fields(pub(crate) Vec<(String, String)>);

impl Fields {
    /// The first value of a field; empty if the form has none.
    pub(crate) fn get(&self, name: &str) -> &str {
        let mut pairs = self.0.iter();
        let found = pairs.find(|(field, _)| field == name);
        found.map_or("", |(_, value)| value)
    }

    /// All values of a field, in their order.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let pairs = self.0.iter().filter(move |(field, _)| field == name);
        pairs.map(|(_, value)| value.as_str())
    }
}

/// A form of somebody who is signed in.
pub(crate) struct Posted {
    pub(crate) visitor: Visitor,
    pub(crate) fields: Fields,
}

/// A form of somebody who may not be signed in.
pub(crate) struct Anonymous {
    pub(crate) fields: Fields,
    pub(crate) headers: HeaderMap,
}

impl FromRequest<Console> for Posted {
    type Rejection = Halt;

    async fn from_request(request: Request, console: &Console) -> Result<Posted, Halt> {
        let (mut parts, body) = request.into_parts();
        let mut visitor = Visitor::from_request_parts(&mut parts, console).await?;
        let Anonymous { fields, headers } = read(Request::from_parts(parts, body)).await?;
        if !same(fields.get(TOKEN), &visitor.token) {
            return Err(refused(&headers));
        }
        if !fields.get(HERE).is_empty() {
            next_page(fields.get(HERE)).clone_into(&mut visitor.here);
        }
        Ok(Posted { visitor, fields })
    }
}

impl FromRequest<Console> for Anonymous {
    type Rejection = Halt;

    async fn from_request(request: Request, console: &Console) -> Result<Anonymous, Halt> {
        let _place = place(&console.anonymous)?;
        read(request).await
    }
}

/// One of these places, to read the body of a request without a session. Anybody can send such a request and leave it unfinished,
/// and meanwhile it holds a place of the pages.
pub(crate) fn place(places: &Semaphore) -> Result<SemaphorePermit<'_>, Halt> {
    let place = places.try_acquire();
    place.map_err(|_| {
        let busy = overloaded("forms", "this host reads too many forms already");
        busy.into_response().into()
    })
}

async fn read(request: Request) -> Result<Anonymous, Halt> {
    let (parts, body) = request.into_parts();
    if !is_own(&parts.headers) {
        return Err(refused(&parts.headers));
    }
    Ok(Anonymous {
        fields: fields(body).await?,
        headers: parts.headers,
    })
}

/// The fields of a form, wherever it comes from.
pub(crate) async fn fields(body: Body) -> Result<Fields, Halt> {
    let body = tokio::time::timeout(FORM_TIME_MAX, to_bytes(body, FORM_BYTES_MAX)).await;
    let bytes = match body {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => return Err(StatusCode::PAYLOAD_TOO_LARGE.into_response().into()),
        Err(_) => return Err(StatusCode::REQUEST_TIMEOUT.into_response().into()),
    };
    let fields = url::form_urlencoded::parse(&bytes).into_owned();
    // Browsers end lines of texts with both characters.
    let fields = fields.map(|(name, value)| (name, value.replace("\r\n", "\n")));
    let fields: Vec<_> = fields.take(FIELDS_MAX + 1).collect();
    if fields.len() > FIELDS_MAX {
        return Err(StatusCode::PAYLOAD_TOO_LARGE.into_response().into());
    }
    Ok(Fields(fields))
}

pub(crate) fn refused(headers: &HeaderMap) -> Halt {
    pages::trouble::foreign(Words::of(headers)).into()
}

/// Whether a page of this host sent the request. Browsers send both headers with every form; a request without an origin does
/// not come from a form.
pub(crate) fn is_own(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let site = text("sec-fetch-site");
    let site = site.is_none_or(|site| site == "same-origin");
    let host = text(header::HOST.as_str());
    let origin = text(header::ORIGIN.as_str());
    let origin = origin.and_then(|origin| origin.split_once("://"));
    site && host.is_some() && origin.map(|(_, origin)| origin) == host
}

/// Compares without telling by its time how much is equal.
pub(crate) fn same(given: &str, wanted: &str) -> bool {
    let pairs = given.bytes().zip(wanted.bytes());
    let differences = pairs.fold(0, |all, (one, other)| all | (one ^ other));
    given.len() == wanted.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn own(pairs: &[(&'static str, &'static str)]) -> bool {
        let pairs = pairs.iter();
        let headers = pairs.map(|(name, value)| {
            let name = name.parse().expect("a name");
            (name, HeaderValue::from_static(value))
        });
        is_own(&headers.collect())
    }

    #[test]
    fn a_form_comes_from_this_host() {
        let host = ("host", "flows.example:8443");
        let origin = ("origin", "https://flows.example:8443");
        assert!(own(&[host, origin, ("sec-fetch-site", "same-origin")]));
        assert!(own(&[host, origin]));
        for foreign in [
            &[host][..],
            &[origin],
            &[host, ("origin", "null")],
            &[host, ("origin", "https://evil.example")],
            &[host, ("origin", "https://flows.example")],
            &[host, ("origin", "https://evil.flows.example:8443")],
            &[host, origin, ("sec-fetch-site", "cross-site")],
            &[host, origin, ("sec-fetch-site", "same-site")],
        ] {
            assert!(!own(foreign), "{foreign:?}");
        }
    }

    #[tokio::test]
    async fn a_form_has_so_many_fields() {
        let form = |count: usize| Body::from("a&".repeat(count));
        let taken = fields(form(FIELDS_MAX)).await.map_err(|_| ());
        assert_eq!(taken.map(|fields| fields.0.len()), Ok(FIELDS_MAX));
        assert!(fields(form(FIELDS_MAX + 1)).await.is_err());
    }

    #[test]
    fn tokens_are_compared_whole() {
        assert!(same("abc", "abc"));
        for other in ["", "ab", "abd", "abcd"] {
            assert!(!same(other, "abc"), "{other}");
        }
    }
}

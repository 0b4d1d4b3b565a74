//! The line feed at the end of every JSON answer, so that the prompt of a terminal is on a line of its own.
//!
//! It is added only to the body that is sent. The content for tags and stored replies does not have it.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

const LINE_FEED: Bytes = Bytes::from_static(b"\n");
const JSON: [&[u8]; 2] = [b"application/json", b"application/problem+json"];

/// Ends the body of the response with a line feed, if it is JSON.
pub(super) fn ended(mut response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if !kind.is_some_and(|kind| JSON.contains(&kind.as_bytes())) {
        return response;
    }
    lengthen(response.headers_mut());
    // The answer to a HEAD request has no body.
    if response.body().is_end_stream() {
        return response;
    }
    response.map(|body| {
        Body::new(Ended {
            body,
            rest: Some(LINE_FEED),
        })
    })
}

/// Counts the line feed in the header. At this point, only the answer to a HEAD request has this header.
fn lengthen(headers: &mut HeaderMap) {
    if let Some(length) = headers.get_mut(header::CONTENT_LENGTH)
        && let Some(bytes) = length
            .to_str()
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    {
        *length = HeaderValue::from(bytes + 1);
    }
}

/// A body with something at its end.
struct Ended {
    body: Body,
    rest: Option<Bytes>,
}

impl HttpBody for Ended {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(None) => Poll::Ready(self.rest.take().map(|rest| Ok(Frame::data(rest)))),
            other => other,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.as_ref().map_or(0, |rest| rest.len() as u64);
        let body = self.body.size_hint();
        let mut both = SizeHint::new();
        both.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            both.set_upper(upper + rest);
        }
        both
    }
}

//! Conditional reads. An answer about a single thing, or with a short list without pages, has an `ETag`. A caller who sends this
//! tag in `If-None-Match` gets 304 without a body if nothing has changed.
//!
//! The tag of an instance or a task is its revision, which `If-Match` takes. Any other tag is a weak digest of the content. The
//! host computes the answer in both cases and saves only the transfer. A tag is the same for each encoding of the answer.

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use sha2::{Digest as _, Sha256};
use utoipa::openapi::path::{ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, RefOr};
use utoipa_axum::router::OpenApiRouter;

use super::App;

/// Longer answers get no tag of their content, because its computation would occupy a thread of the runtime for long.
const TAGGED_BYTES_MAX: u64 = 128 * 1024;
/// Bytes of the digest in a tag.
const DIGEST_BYTES: usize = 16;

/// Marks a response whose content may change without a change of its tag. It is always sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Changing;

/// Makes the reads of these routes conditional, also in the document.
pub(super) fn conditional(mut router: OpenApiRouter<App>) -> OpenApiRouter<App> {
    for item in router.get_openapi_mut().paths.paths.values_mut() {
        let Some(operation) = &mut item.get else {
            continue;
        };
        let text = ObjectBuilder::new().schema_type(Type::String);
        let header = ParameterBuilder::new()
            .name("If-None-Match")
            .parameter_in(ParameterIn::Header)
            .description(Some(
                "The `ETag` of an earlier answer; 304 if it is still the same",
            ))
            .schema(Some(text));
        let parameters = operation.parameters.get_or_insert_default();
        parameters.push(RefOr::T(header.build()));
    }
    router.layer(from_fn(answer))
}

/// Answers 304 to a caller who has this version.
pub(super) async fn answer(request: Request, next: Next) -> Response {
    if request.method() != Method::GET {
        return next.run(request).await;
    }
    let held = request.headers().get(header::IF_NONE_MATCH).cloned();
    let response = next.run(request).await;
    if response.status() != StatusCode::OK {
        return response;
    }
    let response = tagged(response).await;
    if response.extensions().get::<Changing>().is_some() {
        return response;
    }
    let tag = response.headers().get(header::ETAG);
    match (held, tag) {
        (Some(held), Some(tag)) if is_held(&held, tag) => {
            (StatusCode::NOT_MODIFIED, [(header::ETAG, tag.clone())]).into_response()
        }
        _ => response,
    }
}

/// The response with a tag, if it has none and is short enough.
async fn tagged(response: Response) -> Response {
    let size = response.body().size_hint().exact();
    let is_short = size.is_some_and(|size| size <= TAGGED_BYTES_MAX);
    if response.headers().contains_key(header::ETAG) || !is_short {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    parts.headers.insert(header::ETAG, tag_of(&bytes));
    Response::from_parts(parts, Body::from(bytes))
}

/// The weak tag of this content.
pub(super) fn tag_of(content: &[u8]) -> HeaderValue {
    let digest = &Sha256::digest(content)[..DIGEST_BYTES];
    let tag = format!("W/\"{}\"", BASE64_URL_SAFE_NO_PAD.encode(digest));
    HeaderValue::from_str(&tag).expect("letters and digits are fit for a header")
}

/// Whether the caller has the content with this tag, by the weak comparison.
fn is_held(held: &HeaderValue, tag: &HeaderValue) -> bool {
    fn opaque(tag: &str) -> &str {
        tag.trim().trim_start_matches("W/")
    }
    let (Ok(held), Ok(tag)) = (held.to_str(), tag.to_str()) else {
        return false;
    };
    let mut all = held.split(',').map(opaque);
    all.any(|one| one == "*" || one == opaque(tag))
}

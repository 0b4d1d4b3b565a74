//! Pages of lists: capped limits and opaque cursors.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use std::str::FromStr;
use utoipa::ToSchema;

use super::problem::Problem;
use super::view::each;

/// Items on a page when the caller does not say.
const LIMIT_DEFAULT: u32 = 25;
/// Items on a page at the most.
pub const LIMIT_MAX: u32 = 100;

/// A page, and where the next one begins.
#[derive(Debug, Serialize, ToSchema)]
pub struct Page<T: ToSchema> {
    pub data: Vec<T>,
    pub page: Next,
}

/// Where the next page begins.
#[derive(Debug, Serialize, ToSchema)]
pub struct Next {
    /// The value of `after` for the next page; none on the last one.
    pub next: Option<String>,
}

/// How many items to read: one more than asked for tells whether there is a next page.
pub fn limit(asked: Option<u32>) -> Result<u32, Problem> {
    match asked.unwrap_or(LIMIT_DEFAULT) {
        limit @ 1..=LIMIT_MAX => Ok(limit),
        _ => Err(Problem::new(
            "malformed_request",
            format!("limit is 1 to {LIMIT_MAX}"),
        )),
    }
}

/// Makes a page that shows what was read with one item to spare.
pub fn page<R, T: From<R> + ToSchema>(
    mut read: Vec<R>,
    limit: u32,
    position: impl FnOnce(&R) -> String,
) -> Page<T> {
    let more = read.len() > limit as usize;
    read.truncate(limit as usize);
    let next = read.last().filter(|_| more).map(position);
    page_to(read, next)
}

/// Makes a page of what was read with one item to spare, where the look may have ended at a position of its own.
pub fn page_or_reached<R, T: From<R> + ToSchema>(
    read: Vec<R>,
    limit: u32,
    reached: Option<String>,
    position: impl FnOnce(&R) -> String,
) -> Page<T> {
    let mut page = page(read, limit, position);
    page.page.next = page.page.next.or(reached.as_deref().map(encode));
    page
}

/// A page of which the position that the next one begins behind is known.
pub fn page_to<R, T: From<R> + ToSchema>(read: Vec<R>, next: Option<String>) -> Page<T> {
    let next = next.map(|position| encode(&position));
    Page {
        data: each(read),
        page: Next { next },
    }
}

/// Hides a position, so that nobody builds one by hand.
pub fn encode(position: &str) -> String {
    URL_SAFE_NO_PAD.encode(position)
}

/// The position that a cursor hides.
pub fn decode<T: FromStr>(cursor: Option<&str>) -> Result<Option<T>, Problem> {
    let Some(cursor) = cursor else {
        return Ok(None);
    };
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    let position = bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .and_then(|text| text.parse().ok());
    position.map(Some).ok_or_else(|| {
        Problem::new(
            "invalid_cursor",
            "pass the cursor of an earlier page unchanged",
        )
    })
}

//! Pages of lists: capped limits and opaque cursors.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use uuid::Uuid;

use super::problem::Problem;
use super::value_error::of_parameter;
use super::view::each;
use wrkflw_core::moment;
use wrkflw_store::names::DisplayNames;

/// The default size of a page.
const LIMIT_DEFAULT: u32 = 25;
/// The maximum size of a page.
pub(crate) const LIMIT_MAX: u32 = 100;

/// A page, and where the next one begins.
#[derive(Debug, Serialize, ToSchema)]
pub struct Page<T: ToSchema> {
    pub data: Vec<T>,
    pub page: PageEnd,
    /// Only with `include=people`: the display names of the people in `data`, by id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub people: Option<BTreeMap<String, String>>,
    /// Only with `include=people`: the display names of the groups in `data`, by id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<BTreeMap<String, String>>,
}

impl<T: ToSchema> Page<T> {
    /// The page with the count of all items, if there is one.
    pub(crate) fn with_count(mut self, count: Option<Count>) -> Page<T> {
        self.page.count = count.map(|count| count.count);
        self.page.capped = count.map(|count| count.capped);
        self
    }

    /// The page with the display names, if there are any.
    pub(crate) fn with_names(mut self, names: Option<DisplayNames>) -> Page<T> {
        (self.people, self.groups) = names.map(|names| (names.people, names.groups)).unzip();
        self
    }
}

/// The end of a page: where the next one begins.
#[derive(Debug, Serialize, ToSchema)]
pub struct PageEnd {
    /// The value of `after` for the next page. None on the last page.
    pub next: Option<String>,
    /// Only with `count=true`: how many items all pages have together, at most 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Only with `count=true`: whether there are or may be more than `count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capped: Option<bool>,
}

impl PageEnd {
    /// The next page begins after this cursor.
    pub fn after(next: Option<String>) -> PageEnd {
        PageEnd {
            next,
            count: None,
            capped: None,
        }
    }
}

/// The largest count.
pub(crate) const COUNT_MAX: u32 = 1_000;

/// How many items a list has.
#[derive(Debug, Clone, Copy)]
pub struct Count {
    pub count: u32,
    /// Whether there are or may be more.
    pub capped: bool,
}

impl Count {
    /// The count of a search for more than [`COUNT_MAX`] items. `is_cut`: the search may have missed some.
    pub fn of(found: usize, is_cut: bool) -> Count {
        let count = u32::try_from(found).unwrap_or(u32::MAX);
        Count {
            count: count.min(COUNT_MAX),
            capped: is_cut || count > COUNT_MAX,
        }
    }
}

/// Checks the size of a page. Callers read one item more, which shows whether there is a next page.
pub fn limit(requested: Option<u32>) -> Result<u32, Problem> {
    match requested.unwrap_or(LIMIT_DEFAULT) {
        limit @ 1..=LIMIT_MAX => Ok(limit),
        _ => Err(of_parameter("limit", format!("limit is 1 to {LIMIT_MAX}"))),
    }
}

/// Makes a page of at most `limit` items. `read` has one more if there is a next page.
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

/// Like [`page`], for a search that may have stopped early at the position `reached`.
pub(crate) fn page_or_reached<R, T: From<R> + ToSchema>(
    read: Vec<R>,
    limit: u32,
    reached: Option<String>,
    position: impl FnOnce(&R) -> String,
) -> Page<T> {
    let mut page = page(read, limit, position);
    page.page.next = page.page.next.or(reached.as_deref().map(encode));
    page
}

/// Makes a page. The next page begins after the position `next`.
pub(crate) fn page_to<R, T: From<R> + ToSchema>(read: Vec<R>, next: Option<String>) -> Page<T> {
    let next = next.map(|position| encode(&position));
    Page {
        data: each(read),
        page: PageEnd::after(next),
        people: None,
        groups: None,
    }
}

/// Encodes a position as an opaque cursor.
pub fn encode(position: &str) -> String {
    URL_SAFE_NO_PAD.encode(position)
}

/// Decodes the position of a cursor.
pub fn decode<T: FromStr>(cursor: Option<&str>) -> Result<Option<T>, Problem> {
    let Some(cursor) = cursor else {
        return Ok(None);
    };
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    let position = bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .and_then(|text| text.parse().ok());
    position.map(Some).ok_or_else(foreign)
}

/// The problem for a cursor that no earlier page had.
pub fn foreign() -> Problem {
    let detail = "pass the cursor of an earlier page unchanged";
    Problem::new("invalid_cursor", detail).at("/after", "malformed", detail)
}

/// A position in a list that is ordered by a time, then by an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtTime(pub Timestamp, pub Uuid);

impl fmt::Display for AtTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.1)
    }
}

impl FromStr for AtTime {
    type Err = ();

    fn from_str(text: &str) -> Result<AtTime, ()> {
        let (at, id) = text.split_once(' ').ok_or(())?;
        let at = moment::parse(at).ok_or(())?;
        Ok(AtTime(at, id.parse().map_err(drop)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_ends_at_its_maximum_and_says_so() {
        for (found, is_cut, count, capped) in [
            (0, false, 0, false),
            (1_000, false, 1_000, false),
            (1_001, false, 1_000, true),
            (7, true, 7, true),
        ] {
            let of = Count::of(found, is_cut);
            assert_eq!((of.count, of.capped), (count, capped), "{found} {is_cut}");
        }
    }
}

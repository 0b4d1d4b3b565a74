//! The checkpoints of the audit: what each covers, and whether its signature is valid.

use axum::extract::Query;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;

use crate::api::with_query;
use crate::language::Words;
use crate::list::{Cell, ListQuery, Listing, Paged, Table};
use crate::session::{Answer, Visitor};
use crate::shell::page;

const ADDRESS: &str = "/console/audit/checkpoints";
const PAGE_ROWS: &str = "50";
/// Characters of a root that people compare.
const ROOT_CHARS_SHOWN: usize = 16;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Checkpoint {
    number: u64,
    first_leaf: u64,
    size: u64,
    entries_after: Option<String>,
    root: String,
    signed_at: Timestamp,
    key_id: String,
    status: String,
}

pub(super) async fn show(Query(query): Query<ListQuery>, visitor: Visitor) -> Answer {
    let w = visitor.w;
    let parameters = [("limit", PAGE_ROWS), ("after", query.after.as_str())];
    let path = with_query("/v1/checkpoints", &parameters);
    let found: Paged<Checkpoint> = visitor.get(&path).await?;
    let heading = w.t("checkpoints").into_owned();
    let columns = [
        "column-checkpoint",
        "column-when",
        "column-covers",
        "column-signature",
        "column-root",
    ];
    let rows = found.data.iter().map(|one| row(one, w)).collect();
    let table = Table::new(w, &heading, &columns, rows);
    let listing = Listing {
        about: w.t("checkpoints-about").into_owned(),
        empty: w.t("checkpoints-empty").into_owned(),
        tabs: super::tabs(&visitor, "checkpoints"),
        ..Listing::new(&visitor, "audit", heading, table).await
    };
    let listing = listing.paged(ADDRESS, &[], &query, found.page.next.as_ref());
    Ok(page(StatusCode::OK, &listing))
}

fn row(one: &Checkpoint, w: Words) -> Vec<Cell> {
    let state = w.known(&format!("checkpoint-{}", one.status));
    let state = state.map_or_else(|| one.status.clone(), std::borrow::Cow::into_owned);
    let class = match one.status.as_str() {
        "VALID" => "good",
        "UNKNOWN_KEY" => "waiting",
        _ => "bad",
    };
    let (first, last) = (one.first_leaf, one.size.saturating_sub(1));
    let leaves = [("first", w.number(first)), ("last", w.number(last))];
    let after = one.entries_after.as_deref().unwrap_or_default();
    // The cursor continues behind the earlier entries, so the oldest come first.
    let entries = with_query(super::ROOT, &[("sort", "occurredAt"), ("after", after)]);
    let root = one.root.get(..ROOT_CHARS_SHOWN).unwrap_or(&one.root);
    vec![
        Cell::text(one.number.to_string()),
        Cell::when(one.signed_at, w),
        Cell::link(w.say("checkpoint-leaves", &leaves), entries),
        Cell::badge(state, class).below(one.key_id.as_str()),
        Cell::text(root),
    ]
}

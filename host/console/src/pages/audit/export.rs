//! The entries of the audit as a file: one JSON object per line, as the API shows each, oldest first. The host reads the pages of
//! the API while it sends the file. The last line has the address of the next file, or null after the last entry.

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::IntoResponse as _;
use futures_util::StreamExt as _;
use serde_json::json;
use serde_json::value::RawValue;

use super::AuditPageQuery;
use crate::Console;
use crate::api::Trouble;
use crate::list::Paged;
use crate::session::{Answer, Visitor, while_signed_in};

pub(super) const ADDRESS: &str = "/console/audit/entries.jsonl";
/// Entries of a file.
const ENTRIES_MAX: usize = 10_000;
/// Pages of the API that one file takes. A page may have no entry that matches.
const PAGES_MAX: usize = 2_000;
const PAGE_ROWS: usize = 100;

/// A file that is being sent.
struct Export {
    console: Console,
    visitor: Visitor,
    query: AuditPageQuery,
    /// The position behind the entries so far. None: the file has ended.
    after: Option<String>,
    /// The page that comes next, if it was read already.
    ahead: Option<Paged<Box<RawValue>>>,
    entries: usize,
    pages: usize,
}

pub(super) async fn file(
    State(console): State<Console>,
    Query(query): Query<AuditPageQuery>,
    visitor: Visitor,
) -> Answer {
    let session = visitor.session.clone();
    let mut export = Export {
        console: console.clone(),
        after: Some(query.after.clone()),
        visitor,
        query,
        ahead: None,
        entries: 0,
        pages: 0,
    };
    // The first page is read before the answer begins, so that a refusal becomes a page and not a broken file.
    let first = export.page(&export.query.after).await;
    export.ahead = Some(first.map_err(|trouble| export.visitor.halt(&trouble))?);
    let lines = futures_util::stream::unfold(export, async |mut export| {
        let part = export.part().await?;
        Some((part, export))
    });
    // Layers around the answer may poll once more at its end.
    let lines = lines.fuse();
    let headers = [
        (header::CONTENT_TYPE, "application/jsonl"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"audit.jsonl\"",
        ),
    ];
    let file = while_signed_in(console, session, Body::from_stream(lines));
    Ok((headers, file).into_response())
}

impl Export {
    async fn page(&self, after: &str) -> Result<Paged<Box<RawValue>>, Trouble> {
        let rows = PAGE_ROWS.to_string();
        let path = self.query.path("occurredAt", &rows, after, self.visitor.w);
        self.visitor.api.get(&path).await
    }

    /// The next lines. None if the file has ended. An error aborts the file, so that nobody takes a part for the whole.
    async fn part(&mut self) -> Option<Result<Bytes, std::io::Error>> {
        let after = self.after.take()?;
        let page = match self.ahead.take() {
            Some(page) => page,
            // The API still answers while the host shuts down. A file would keep the host running.
            None if self.console.app.cancel.is_cancelled() => {
                let stopping = std::io::Error::other("this host is shutting down");
                return Some(Err(stopping));
            }
            None => match self.page(&after).await {
                Ok(page) => page,
                Err(trouble) => return Some(Err(std::io::Error::other(trouble.detail))),
            },
        };
        self.pages += 1;
        self.entries += page.data.len();
        let mut lines = String::new();
        for entry in &page.data {
            lines.push_str(entry.get());
            lines.push('\n');
        }
        match page.page.next {
            Some(next) if self.entries + PAGE_ROWS <= ENTRIES_MAX && self.pages < PAGES_MAX => {
                self.after = Some(next);
            }
            next => {
                let next = next.map(|after| self.query.address(ADDRESS, &after));
                lines.push_str(&json!({ "next": next }).to_string());
                lines.push('\n');
            }
        }
        Some(Ok(Bytes::from(lines)))
    }
}

//! Definitions: all of them, and the versions of one. `version` is the page of a version, `actions` has the actions on it,
//! `difference` compares two versions, `upload` is the form of a new version, and `migrate` that of a migration.

mod actions;
mod difference;
mod facts;
mod migrate;
mod upload;
mod version;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, Query};
use axum::http::StatusCode;
use axum::routing::get;
use jiff::Timestamp;
use serde::Deserialize;

use crate::Console;
use crate::api::{segment, with_query};
use crate::language::Words;
use crate::list::{Cell, Link, ListQuery, Listing, Paged, Table};
use crate::moment::Moment;
use crate::names::Names;
use crate::session::{Answer, Halt, Visitor};
use crate::shell::page;

/// The page of all definitions.
const LIST: &str = "/console/definitions";
/// Definitions on a page.
const PAGE_ROWS: &str = "100";
/// Characters of a digest that people compare.
const DIGEST_CHARS_SHOWN: usize = 12;

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route(LIST, get(list))
        .route(
            "/console/upload",
            get(upload::show)
                .post(upload::publish)
                .layer(DefaultBodyLimit::max(upload::FORM_BYTES_MAX)),
        )
        .route(
            "/console/definitions/{key}/{version}/migrate",
            get(migrate::show).post(migrate::act),
        )
        .route("/console/definitions/{key}", get(show))
        .route(
            "/console/definitions/{key}/{version}",
            get(version::show).post(actions::act),
        )
        .route(
            "/console/definitions/{key}/{version}/diagram.svg",
            get(version::diagram),
        )
}

/// A version as lists show it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    key: String,
    version: u32,
    title: String,
    active: bool,
    /// Only in lists.
    #[serde(default)]
    newest_version: u32,
    digest: String,
    sdk: Option<String>,
    wit: String,
    published_at: Timestamp,
    published_by: String,
    note: Option<String>,
    retired_at: Option<Timestamp>,
    stopped_at: Option<Timestamp>,
    /// Only in the versions of one definition.
    running: Option<i64>,
}

impl Version {
    fn title(&self) -> &str {
        if self.title.is_empty() {
            &self.key
        } else {
            &self.title
        }
    }

    fn digest(&self) -> &str {
        self.digest
            .get(..DIGEST_CHARS_SHOWN)
            .unwrap_or(&self.digest)
    }

    fn address(&self) -> String {
        address(&self.key, self.version)
    }

    /// Who published it, and when.
    fn published(&self, names: &Names, w: Words) -> Cell {
        let when = Moment::of(self.published_at, w);
        Cell::text(names.person(&self.published_by)).below(when.relative)
    }

    /// Its status: the text and the class of a badge.
    fn status(&self, w: Words) -> (String, &'static str) {
        let (id, class) = match (self.active, self.retired_at, self.stopped_at) {
            (_, _, Some(_)) => ("version-stopped", "bad"),
            (true, _, _) => ("version-active", "good"),
            (false, Some(_), _) => ("version-retired", "waiting"),
            _ => ("version-idle", ""),
        };
        (w.t(id).into_owned(), class)
    }
}

fn address(key: &str, version: u32) -> String {
    format!("/console/definitions/{}/{version}", segment(key))
}

/// The address of a state on the page of a version.
pub(super) fn state(key: &str, version: u32, name: &str) -> String {
    format!("{}#{}", address(key, version), anchor(name))
}

/// The anchor of a state on the page of a version.
fn anchor(name: &str) -> String {
    format!("state-{}", segment(name))
}

/// A definition with its newest versions. The active one may be older than these.
#[derive(Deserialize)]
struct Overview {
    active: Option<Version>,
    versions: Vec<Version>,
    running: i64,
    more: bool,
}

async fn overview(visitor: &Visitor, key: &str) -> Result<Overview, Halt> {
    visitor
        .get(&format!("/v1/definitions/{}", segment(key)))
        .await
}

/// The names of the people who published these versions, as far as the visitor may read them.
async fn authors(visitor: &Visitor, versions: &[Version]) -> Names {
    let ids = versions.iter().map(|one| one.published_by.as_str());
    Names::of_people(visitor, &ids.collect::<Vec<_>>()).await
}

/// The parameters in the address of the list.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Search {
    q: String,
    after: String,
}

async fn list(Query(Search { q, after }): Query<Search>, visitor: Visitor) -> Answer {
    let (w, q) = (visitor.w, q.trim());
    let parameters = [
        ("q", q),
        ("versions", "current"),
        ("limit", PAGE_ROWS),
        ("after", &after),
    ];
    let path = with_query("/v1/definitions", &parameters);
    let found: Paged<Version> = visitor.get(&path).await?;
    let names = authors(&visitor, &found.data).await;
    let number = |version: u32| w.with("version-number", "number", &version.to_string());
    let row = |current: &Version| {
        let key = format!("/console/definitions/{}", segment(&current.key));
        vec![
            Cell::link(current.title(), key).below(current.key.as_str()),
            if current.active {
                Cell::link(number(current.version), current.address())
            } else {
                Cell::badge(w.t("version-none"), "waiting")
            },
            Cell::link(
                number(current.newest_version),
                address(&current.key, current.newest_version),
            ),
            current.published(&names, w),
        ]
    };
    let rows = found.data.iter().map(row).collect();
    let heading = w.t("definitions").into_owned();
    let columns = [
        "column-definition",
        "column-active",
        "column-newest",
        "column-published",
    ];
    let table = Table::new(w, &heading, &columns, rows);
    let listing = Listing::new(&visitor, "definitions", heading, table).await;
    let listing = Listing {
        about: w.t("definitions-about").into_owned(),
        empty: if q.is_empty() {
            w.t("definitions-empty").into_owned()
        } else {
            w.with("search-none", "words", q)
        },
        search: Some((q.to_owned(), LIST.to_owned())),
        buttons: if listing.may(upload::PERMISSION) {
            vec![Link::to("/console/upload", w.t("upload"))]
        } else {
            Vec::new()
        },
        ..listing
    };
    let query = ListQuery { after };
    let listing = listing.paged(LIST, &[("q", q)], &query, found.page.next.as_ref());
    Ok(page(StatusCode::OK, &listing))
}

async fn show(Path(key): Path<String>, visitor: Visitor) -> Answer {
    let w = visitor.w;
    let found = overview(&visitor, &key).await?;
    let names = authors(&visitor, &found.versions).await;
    let title = found
        .versions
        .first()
        .map_or(key.as_str(), Version::title)
        .to_owned();
    let row = |version: &Version| {
        let (status, class) = version.status(w);
        vec![
            Cell::link(
                w.with("version-number", "number", &version.version.to_string()),
                version.address(),
            )
            .below(version.note.clone().unwrap_or_default()),
            if class.is_empty() {
                Cell::text(status)
            } else {
                Cell::badge(status, class)
            },
            version.published(&names, w),
            Cell::text(version.digest()),
            Cell::text(w.number(version.running.unwrap_or_default())),
        ]
    };
    let rows = found.versions.iter().map(row).collect();
    let columns = [
        "column-version",
        "column-status",
        "column-published",
        "column-component",
        "column-running",
    ];
    let table = Table::new(w, &title, &columns, rows);
    let about = if found.more {
        w.n("running-more", found.running)
    } else {
        w.n("running-all", found.running)
    };
    let listing = Listing::new(&visitor, "definitions", title, table).await;
    let listing = Listing {
        trail: vec![Link::to("/console/definitions", w.t("definitions"))],
        about: format!("{key} · {about}"),
        buttons: if listing.may(upload::PERMISSION) {
            let to = with_query("/console/upload", &[("key", &key)]);
            vec![Link::to(to, w.t("upload"))]
        } else {
            Vec::new()
        },
        ..listing
    };
    Ok(page(StatusCode::OK, &listing))
}

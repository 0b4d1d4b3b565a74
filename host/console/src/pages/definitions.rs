//! Definitions: all of them, and the versions of one. `version` is the page of a version, `actions` what may be done with it,
//! `difference` what differs between two, `upload` the form of a new one, and `migrate` that of a migration.

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
use crate::list::{Asked, Cell, Link, Listing, Paged, Table};
use crate::moment::Moment;
use crate::names::Names;
use crate::session::{Answer, Visitor};
use crate::shell::page;

/// Versions on a page of all definitions.
const PAGE_ROWS: &str = "100";
/// Characters of a digest that people compare.
const DIGEST_CHARS_SHOWN: usize = 12;

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console/definitions", get(all))
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
        .route("/console/definitions/{key}", get(one))
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

    /// How it stands: the text and the class of a badge.
    fn standing(&self, w: Words) -> (String, &'static str) {
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

/// What a version says of a state.
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

async fn overview(visitor: &Visitor, key: &str) -> Result<Overview, crate::session::Halt> {
    visitor
        .get(&format!("/v1/definitions/{}", segment(key)))
        .await
}

/// The names of those who published these versions, as far as the visitor may read them.
async fn authors(visitor: &Visitor, versions: &[Version]) -> Names {
    let ids = versions.iter().map(|one| one.published_by.as_str());
    Names::of_people(visitor, &ids.collect::<Vec<_>>()).await
}

async fn all(Query(asked): Query<Asked>, visitor: Visitor) -> Answer {
    let w = visitor.w;
    let path = with_query(
        "/v1/definitions",
        &[("limit", PAGE_ROWS), ("after", &asked.after)],
    );
    let found: Paged<Version> = visitor.get(&path).await?;
    let names = authors(&visitor, &found.data).await;
    // The list has the versions of a definition one after the other, the newest first.
    let definitions = found.data.chunk_by(|one, other| one.key == other.key);
    let row = |versions: &[Version]| {
        let newest = &versions[0];
        let active = versions.iter().find(|one| one.active);
        let key = format!("/console/definitions/{}", segment(&newest.key));
        vec![
            Cell::link(newest.title(), key).below(newest.key.as_str()),
            match active {
                Some(active) => Cell::link(
                    w.with("version-number", "number", &active.version.to_string()),
                    active.address(),
                ),
                None => Cell::badge(w.t("version-none"), "waiting"),
            },
            Cell::link(
                w.with("version-number", "number", &newest.version.to_string()),
                newest.address(),
            ),
            newest.published(&names, w),
        ]
    };
    let rows = definitions.map(row).collect();
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
        empty: w.t("definitions-empty").into_owned(),
        buttons: if listing.may(upload::PERMISSION) {
            vec![Link::to("/console/upload", w.t("upload"))]
        } else {
            Vec::new()
        },
        ..listing
    };
    let listing = listing.paged(
        "/console/definitions",
        &[],
        &asked,
        found.page.next.as_ref(),
    );
    Ok(page(StatusCode::OK, &listing))
}

async fn one(Path(key): Path<String>, visitor: Visitor) -> Answer {
    let w = visitor.w;
    let found = overview(&visitor, &key).await?;
    let names = authors(&visitor, &found.versions).await;
    let title = found
        .versions
        .first()
        .map_or(key.as_str(), Version::title)
        .to_owned();
    let row = |version: &Version| {
        let (standing, class) = version.standing(w);
        vec![
            Cell::link(
                w.with("version-number", "number", &version.version.to_string()),
                version.address(),
            )
            .below(version.note.clone().unwrap_or_default()),
            if class.is_empty() {
                Cell::text(standing)
            } else {
                Cell::badge(standing, class)
            },
            version.published(&names, w),
            Cell::text(version.digest()),
            Cell::text(w.number(version.running.unwrap_or_default())),
        ]
    };
    let rows = found.versions.iter().map(row).collect();
    let columns = [
        "column-version",
        "column-standing",
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

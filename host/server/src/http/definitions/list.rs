//! Lists of versions: of all definitions, also those with words, and of one.

use std::str::FromStr;

use axum::extract::State;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::App;
use crate::http::extract::{Caller, Path, Query};
use crate::http::include::words;
use crate::http::instances::PageQuery;
use crate::http::page::{Page, decode, limit, page};
use crate::http::problem::Problem;
use crate::http::versions::VersionSummary;
use wrkflw_core::check::names::is_name;
use wrkflw_core::ids::VersionRef;
use wrkflw_engine::{Error, Identity};
use wrkflw_store::definitions;
use wrkflw_store::definitions::list::{VersionChoice, VersionFilter};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_all))
        .routes(routes!(list))
}

/// Which versions of each definition a list has.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) enum WhichVersions {
    All,
    Current,
    Active,
}

impl From<WhichVersions> for VersionChoice {
    fn from(which: WhichVersions) -> VersionChoice {
        match which {
            WhichVersions::All => VersionChoice::All,
            WhichVersions::Current => VersionChoice::Current,
            WhichVersions::Active => VersionChoice::Active,
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct DefinitionQuery {
    /// Words in the key, title and description of the version. The last one may be the beginning of a word.
    #[param(min_length = 1, max_length = 200)]
    pub q: Option<String>,
    /// `all` (default). `active`: those that new instances take. `current`: one of each definition, the active version or, without
    /// one, the newest.
    #[param(inline)]
    pub versions: Option<WhichVersions>,
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

/// Lists the versions of all definitions, by key, newest first.
#[utoipa::path(get, path = "/v1/definitions", tag = "definitions", operation_id = "listDefinitions", params(DefinitionQuery),
    responses((status = 200, body = Page<VersionSummary>)))]
pub(in crate::http) async fn list_all(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<DefinitionQuery>,
) -> Result<axum::Json<Page<VersionSummary>>, Problem> {
    app.engine.permit(&who, "definition:read").await?;
    let words = words(query.q)?;
    let filter = VersionFilter {
        words: words.as_deref(),
        choice: query.versions.map(Into::into).unwrap_or_default(),
        ..VersionFilter::default()
    };
    let page_query = PageQuery {
        after: query.after,
        limit: query.limit,
    };
    Ok(axum::Json(versions(&app, &who, filter, &page_query).await?))
}

/// Lists the versions of one definition, newest first.
#[utoipa::path(get, path = "/v1/definitions/{key}/versions", tag = "definitions", operation_id = "listVersions",
    params(("key" = String, Path, format = "key"), PageQuery),
    responses((status = 200, body = Page<VersionSummary>)))]
pub(in crate::http) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Path(key): Path<String>,
    Query(query): Query<PageQuery>,
) -> Result<axum::Json<Page<VersionSummary>>, Problem> {
    app.engine.permit(&who, "definition:read").await?;
    let filter = VersionFilter {
        key: Some(&key),
        ..VersionFilter::default()
    };
    let found = versions(&app, &who, filter, &query).await?;
    if found.data.is_empty() && query.after.is_none() {
        let what = "definition";
        return Err(Error::NotFound { what, id: key }.into());
    }
    Ok(axum::Json(found))
}

async fn versions(
    app: &App,
    who: &Identity,
    filter: VersionFilter<'_>,
    page_query: &PageQuery,
) -> Result<Page<VersionSummary>, Problem> {
    let limit = limit(page_query.limit)?;
    let after: Option<Position> = decode(page_query.after.as_deref())?;
    let filter = VersionFilter {
        after: after
            .as_ref()
            .map(|Position(after)| (after.key.as_str(), after.version)),
        limit: i64::from(limit) + 1,
        ..filter
    };
    let found = definitions::versions(app.engine.reader(), who.tenant, filter).await?;
    Ok(page(found, limit, |last| {
        format!("{} {}", last.key, last.version)
    }))
}

/// The end of a page of versions, as in its cursor.
struct Position(VersionRef);

impl FromStr for Position {
    type Err = ();

    fn from_str(text: &str) -> Result<Position, ()> {
        let (key, version) = text.rsplit_once(' ').ok_or(())?;
        if !is_name(key) {
            return Err(());
        }
        let version = version.parse().map_err(drop)?;
        Ok(Position(VersionRef {
            key: key.to_owned(),
            version,
        }))
    }
}

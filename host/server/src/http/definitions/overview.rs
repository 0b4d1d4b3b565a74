//! A definition: its active version, its newest versions, and how many instances run.

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{VersionDetail, detail};
use crate::http::App;
use crate::http::conditional::conditional;
use crate::http::extract::{Caller, Path};
use crate::http::large::rendered;
use crate::http::layers::without_query;
use crate::http::problem::Problem;
use crate::http::versions::VersionSummary;
use wrkflw_core::ids::VersionRef;
use wrkflw_engine::Error;
use wrkflw_store::definitions::list::VersionFilter;
use wrkflw_store::definitions::{self, running};

/// How many versions are shown.
const VERSIONS_MAX: i64 = 25;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    let single = OpenApiRouter::new().routes(routes!(overview));
    without_query(conditional(single))
}

/// A version and its instances.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct VersionCount {
    #[serde(flatten)]
    pub summary: VersionSummary,
    /// Its running and suspended instances that the caller sees.
    pub running: i64,
}

/// A definition.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct DefinitionDetail {
    pub key: String,
    /// The version that new instances take. None if none is active.
    pub active: Option<VersionDetail>,
    /// The newest 25 versions, newest first.
    pub versions: Vec<VersionCount>,
    /// Running and suspended instances of all versions that the caller sees.
    pub running: i64,
    /// There are more than 10000 instances to count: the numbers may be too low.
    pub more: bool,
}

/// A definition: its active version, its newest versions, and how many instances run.
#[utoipa::path(get, path = "/v1/definitions/{key}", tag = "definitions", operation_id = "getDefinition",
    params(("key" = String, Path, format = "key")), responses((status = 200, body = DefinitionDetail)))]
pub(in crate::http) async fn overview(
    State(app): State<App>,
    Caller(who): Caller,
    Path(key): Path<String>,
) -> Result<Response, Problem> {
    let viewer = app.engine.viewing(&who, "definition:read").await?;
    let reader = app.engine.reader();
    let newest = VersionFilter {
        key: Some(&key),
        limit: VERSIONS_MAX,
        ..VersionFilter::default()
    };
    let versions = definitions::versions(reader, who.tenant, newest).await?;
    if versions.is_empty() {
        let what = "definition";
        return Err(Error::NotFound { what, id: key }.into());
    }
    let running = running::running(reader, &viewer, &key).await?;
    let (mut active, mut bytes) = (None, 0);
    if let Some(version) = running::active(reader, who.tenant, &key).await? {
        let key = key.clone();
        let (found, size) = detail(&app, &who, &VersionRef { key, version }).await?;
        (active, bytes) = (Some(found), size);
    }
    let view = move || DefinitionDetail {
        key,
        active: active.map(|make| make()),
        versions: versions
            .into_iter()
            .map(|version| VersionCount {
                running: running
                    .by_version
                    .get(&version.version)
                    .copied()
                    .unwrap_or_default(),
                summary: version.into(),
            })
            .collect(),
        running: running.by_version.values().sum(),
        more: running.more,
    };
    rendered(&app, who.tenant, bytes, view).await
}

//! Jobs of instances: those that are due next, and those that fail.

use axum::extract::State;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::extract::{Caller, Query};
use super::page::{AtTime, Page, decode, limit, page_or_reached};
use super::problem::Problem;
use super::shapes::{JobKind, MaybeVersionFields};
use super::view::view;
use wrkflw_store::jobs::failing;
use wrkflw_store::jobs::{self, Jobs, ListedJob};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

view! {
    of wrkflw_store::jobs::ListedJob;
    /// Deferred work on an instance.
    pub(super) struct JobView {
        pub id: Uuid,
        #[schema(value_type = JobKind)]
        pub kind: String,
        /// The instance that it changes.
        #[serde(rename = "instanceId")]
        pub instance: Uuid,
        /// The version of that instance. None if the instance does not exist.
        #[serde(flatten)]
        pub definition: MaybeVersionFields => MaybeVersionFields::from,
        #[schema(value_type = String, format = DateTime)]
        pub due_at: Timestamp,
        /// How often it was tried.
        pub attempts: u32,
        /// Why it failed last. None if it has not failed.
        pub error: Option<String>,
        /// When it is tried again, or when the lease of the host that runs it ends.
        #[schema(value_type = Option<String>, format = DateTime)]
        pub next_at: Option<Timestamp>,
    }
}

#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum WhichJobs {
    #[default]
    Failing,
    Due,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct JobQuery {
    /// `failing` (default): jobs that have failed and are tried again, by id. `due`: all jobs, those that are due next first.
    #[param(inline)]
    pub state: Option<WhichJobs>,
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

/// Lists jobs of instances: those that have failed, which hosts try again with increasing pauses, or those that are due next.
///
/// Jobs of instances that the caller does not see are left out, so a page may not be full. There may be more as long as `page.next`
/// is present.
#[utoipa::path(get, path = "/v1/jobs", tag = "operations", operation_id = "listJobs", params(JobQuery),
    responses((status = 200, body = Page<JobView>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<JobQuery>,
) -> Result<axum::Json<Page<JobView>>, Problem> {
    let viewer = app.engine.viewing(&who, "dead-letter:read").await?;
    let limit = limit(query.limit)?;
    let (after, wanted) = (query.after.as_deref(), i64::from(limit) + 1);
    let reader = app.engine.reader();
    Ok(axum::Json(match query.state.unwrap_or_default() {
        WhichJobs::Failing => {
            let place = |job: &ListedJob| job.id.to_string();
            let jobs = failing::list(reader, &viewer, decode(after)?, wanted);
            let Jobs { found, reached } = jobs.await?;
            page_or_reached(found, limit, reached.as_ref().map(place), place)
        }
        WhichJobs::Due => {
            let after: Option<AtTime> = decode(after)?;
            let after = after.map(|AtTime(at, id)| (at, id));
            let place = |job: &ListedJob| {
                let at = job.next_at.map_or(job.due_at, |next| next.max(job.due_at));
                AtTime(at, job.id).to_string()
            };
            let jobs = jobs::list_due(reader, &viewer, after, wanted);
            let Jobs { found, reached } = jobs.await?;
            page_or_reached(found, limit, reached.as_ref().map(place), place)
        }
    }))
}

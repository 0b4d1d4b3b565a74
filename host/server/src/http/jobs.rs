//! Failing jobs of instances, which hosts try again.

use axum::extract::State;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::App;
use super::extract::{Caller, Query};
use super::page::{Page, decode, limit, page};
use super::problem::Problem;
use super::shapes::VersionShape;
use super::view::view;
use wrkflw_core::ids::VersionRef;

view! {
    of wrkflw_store::jobs::FailingJob;
    /// A job that has failed.
    pub(super) struct JobView {
        pub id: Uuid,
        /// `deadline`, `start_child`, `cancel_child`, `child_ended`, `match_signals`, `deliver_signal`,
        /// `reassess_instance` or `call_service`.
        pub kind: String,
        /// The instance that it changes.
        pub instance: Uuid,
        /// The version of that instance. None if the instance does not exist.
        #[schema(value_type = Option<VersionShape>)]
        pub definition: Option<VersionRef>,
        #[schema(value_type = String, format = DateTime)]
        pub due_at: Timestamp,
        /// How often it was tried.
        pub attempts: u32,
        /// Why it failed last.
        pub error: String,
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
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct JobQuery {
    /// `failing` (default): jobs that have failed and are tried again.
    #[param(inline)]
    pub state: Option<WhichJobs>,
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

/// Lists jobs of instances that have failed. Hosts try them again, with increasing pauses.
#[utoipa::path(get, path = "/v1/jobs", tag = "operations", operation_id = "listJobs", params(JobQuery),
    responses((status = 200, body = Page<JobView>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<JobQuery>,
) -> Result<axum::Json<Page<JobView>>, Problem> {
    app.engine.permit(&who, "dead-letter:read").await?;
    let limit = limit(query.limit)?;
    let after = decode(query.after.as_deref())?;
    let reader = app.engine.reader();
    let found = match query.state.unwrap_or_default() {
        WhichJobs::Failing => reader.list_failing_jobs(who.tenant, after, i64::from(limit) + 1),
    };
    Ok(axum::Json(page(found.await?, limit, |last| {
        last.id.to_string()
    })))
}

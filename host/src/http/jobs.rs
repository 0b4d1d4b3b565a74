//! Jobs of instances that fail: what hosts try again, and why it does not succeed.

use axum::extract::State;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::App;
use super::extract::{Caller, Query};
use super::page::{Page, decode, limit, page};
use super::problem::Problem;
use crate::store::jobs::JobView;

#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum WhichJobs {
    #[default]
    Failing,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct JobQuery {
    /// `failing`, as by default: those that have failed and are to be tried again.
    #[param(inline)]
    pub state: Option<WhichJobs>,
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

/// Lists what hosts have failed to do for instances, and try again after ever longer pauses.
#[utoipa::path(get, path = "/v1/jobs", tag = "operations", operation_id = "list_jobs", params(JobQuery),
    responses((status = 200, body = Page<JobView>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<JobQuery>,
) -> Result<axum::Json<Page<JobView>>, Problem> {
    app.engine.permit(&who, "dead-letter:read").await?;
    let limit = limit(query.limit)?;
    let after = decode(query.after.as_deref())?;
    let store = app.engine.store();
    let found = match query.state.unwrap_or_default() {
        WhichJobs::Failing => store.list_failing_jobs(who.tenant, after, i64::from(limit) + 1),
    };
    Ok(axum::Json(page(found.await?, limit, |last| {
        last.id.to_string()
    })))
}

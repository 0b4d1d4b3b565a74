//! Who can act on an instance, now or at any moment since it began.

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::extract::{Caller, Path, Query};
use super::large::rendered;
use super::problem::Problem;
use super::shapes::{ExclusionShape, InstanceStatus, TaskStatus, VersionFields, WayShape};
use super::value_error::of_parameter;
use super::view::{each, view};
use wrkflw_core::eligibility::{Exclusion, Way};
use wrkflw_core::ids::InstanceId;
use wrkflw_core::moment;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(eligibility))
}

view! {
    of wrkflw_engine::EligibilityAt;
    /// Who could act on an instance's open tasks at a moment.
    pub(super) struct EligibilityAt {
        #[serde(rename = "instanceId")]
        pub instance: Uuid,
        #[schema(value_type = String, format = DateTime)]
        pub at: Timestamp,
        /// The instance's revision at that moment.
        pub revision: u32,
        #[schema(value_type = InstanceStatus)]
        pub status: String,
        pub tasks: Vec<TaskEligibility> => each,
        /// Whether there are more open tasks.
        pub more: bool,
    }
}

view! {
    of wrkflw_engine::TaskEligibility;
    /// Who could act on one task.
    pub(super) struct TaskEligibility {
        #[serde(rename = "taskId")]
        pub task: Uuid,
        pub state: String,
        pub label: String,
        #[schema(value_type = TaskStatus)]
        pub status: String,
        pub owner: Option<String>,
        pub eligible: Vec<AblePerson> => each,
        pub excluded: Vec<ExcludedPerson> => each,
        /// Eligible people who are not in the directory now. They may act with a token of their own, but nobody can look them up.
        pub unknown: Vec<String>,
        /// Whether there are more people, or a group has more members than are read.
        pub more: bool,
    }
}

view! {
    of wrkflw_engine::AblePerson;
    /// Somebody who could act.
    pub(super) struct AblePerson {
        pub person: String,
        /// Each way by which they may act.
        #[schema(value_type = Vec<WayShape>)]
        pub ways: Vec<Way>,
    }
}

view! {
    of wrkflw_engine::ExcludedPerson;
    /// Somebody who could not act, although the work was offered to them.
    pub(super) struct ExcludedPerson {
        pub person: String,
        /// Each reason.
        #[schema(value_type = Vec<ExclusionShape>)]
        pub exclusions: Vec<Exclusion>,
    }
}

view! {
    of wrkflw_engine::Orphan;
    /// An open task for which somebody is eligible now, and which would have nobody eligible after the change.
    pub(super) struct Orphan {
        #[serde(rename = "taskId")]
        pub task: Uuid,
        #[serde(rename = "instanceId")]
        pub instance: Uuid,
        #[serde(flatten)]
        pub definition: VersionFields => VersionFields::from,
        pub state: String,
        pub label: String,
        /// Why nobody would be eligible.
        pub why: String,
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct EligibilityQuery {
    /// The moment, which must not be in the future. Default: now.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub at: Option<Timestamp>,
}

/// Lists for each task that was open then who could act on it and how, and who could not and why.
#[utoipa::path(get, path = "/v1/instances/{id}/eligibility", tag = "instances", operation_id = "getInstanceEligibility",
    params(("id" = Uuid, Path), EligibilityQuery),
    responses((status = 200, body = EligibilityAt)))]
pub(super) async fn eligibility(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    Query(query): Query<EligibilityQuery>,
) -> Result<Response, Problem> {
    app.engine.permit(&who, "instance:read").await?;
    let now = app.engine.clock().now();
    let at = query.at.unwrap_or(now);
    if at > now {
        let detail = format!("at is in the future: the host's time is {now}");
        return Err(of_parameter("at", detail));
    }
    let eligibility = app
        .engine
        .eligibility()
        .at(&who, InstanceId(id), at)
        .await?;
    let bytes = eligibility.bytes();
    let shown = || EligibilityAt::from(eligibility);
    rendered(&app, who.tenant, bytes, shown).await
}

//! Reports that prove from the audit that rules were followed.

use axum::extract::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::extract::{Caller, Query};
use super::problem::Problem;
use super::value_error::of_parameter;
use super::view::{each, view};
use wrkflw_core::moment;
use wrkflw_store::compliance::{self, Period};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(self_approvals))
}

view! {
    of wrkflw_store::compliance::SelfApprovals;
    /// The decisions and refused attempts of a period.
    pub(super) struct FoundSelfApprovals {
        /// All decisions that were examined.
        pub decisions_examined: u64,
        /// Decisions by a requester, or on behalf of one, in a state that its version declares as own work.
        pub own_work: u64,
        /// Decisions by a requester, or on behalf of one, in any other state. Always 0, unless a rule was violated.
        pub self_approvals: u64,
        /// The newest 100 of these.
        pub findings: Vec<SelfApproval> => each,
        /// Attempts that were refused because the request was the actor's own.
        pub refused_attempts: u64,
        /// The newest 100 of these.
        pub refused: Vec<RefusedAttempt> => each,
    }
}

view! {
    of wrkflw_store::compliance::SelfApproval;
    /// A decision that nobody should have been able to make.
    pub(super) struct SelfApproval {
        pub task_id: Uuid,
        pub instance_id: Uuid,
        /// None where the decision names an instance that does not exist.
        pub definition_key: Option<String>,
        /// The version that was in force when it was made, by the audit; without an entry, that of the instance.
        pub definition_version: Option<u32>,
        /// None where the decision names a task that its instance never had.
        pub state: Option<String>,
        pub outcome: String,
        pub actor: String,
        pub on_behalf_of: Option<String>,
        pub requesters: Vec<String>,
        #[schema(value_type = String, format = DateTime)]
        pub decided_at: Timestamp,
    }
}

view! {
    of wrkflw_store::compliance::RefusedAttempt;
    /// An attempt that the host refused.
    pub(super) struct RefusedAttempt {
        pub id: Uuid,
        #[schema(value_type = String, format = DateTime)]
        pub occurred_at: Timestamp,
        pub actor: String,
        pub action: String,
        pub instance_id: Option<Uuid>,
        pub task_id: Option<Uuid>,
        pub detail: String,
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct PeriodQuery {
    /// Decided at or after. Default: ever.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub from: Option<Timestamp>,
    /// Decided before. Default: no limit, so that a decision with a time in the future is found, too.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub until: Option<Timestamp>,
    /// Only instances of this definition.
    #[serde(rename = "definitionKey")]
    pub definition: Option<String>,
}

/// The result, with the parameters of the request.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SelfApprovalReport {
    /// None: no limit.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub from: Option<Timestamp>,
    /// None: no limit.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<Timestamp>,
    #[serde(rename = "definitionKey")]
    pub definition: Option<String>,
    #[serde(flatten)]
    pub found: FoundSelfApprovals,
}

/// Examines all decisions of a period, and finds those that people made on their own requests, except own work.
#[utoipa::path(get, path = "/v1/compliance/self-approvals", tag = "compliance", operation_id = "listSelfApprovals", params(PeriodQuery),
    responses((status = 200, body = SelfApprovalReport)))]
pub(super) async fn self_approvals(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<PeriodQuery>,
) -> Result<axum::Json<SelfApprovalReport>, Problem> {
    app.engine.permit(&who, "audit:read").await?;
    let period = Period {
        from: query.from.unwrap_or(Timestamp::UNIX_EPOCH),
        to: query.until.unwrap_or(Timestamp::MAX),
        definition: query.definition.clone(),
    };
    if period.from >= period.to {
        return Err(of_parameter("from", "from must be before until"));
    }
    let found = compliance::self_approvals(app.engine.reader(), who.tenant, &period).await;
    let found = found.map_err(|error| {
        if !error.is_overlong() {
            return error.into();
        }
        let detail = "the period has more decisions than are examined at once; ask for shorter periods, one after the other";
        Problem::new("invalid_request", detail)
    })?;
    Ok(axum::Json(SelfApprovalReport {
        from: query.from,
        until: query.until,
        definition: query.definition,
        found: found.into(),
    }))
}

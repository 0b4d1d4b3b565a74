//! Proofs from the record that rules were kept.

use axum::extract::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::App;
use super::extract::{Caller, Query};
use super::problem::Problem;
use crate::domain::moment;
use crate::store::compliance::{Period, SelfApprovals};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct PeriodQuery {
    /// Decided at or after. Default: ever.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub from: Option<Timestamp>,
    /// Decided before. Default: no end, so that a decision of a moment to come shows, too.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub to: Option<Timestamp>,
    /// Only instances of this definition.
    pub definition: Option<String>,
}

/// What was found, with what was asked.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SelfApprovalReport {
    /// None for all the time before.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub from: Option<Timestamp>,
    /// None for all the time after.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub to: Option<Timestamp>,
    pub definition: Option<String>,
    #[serde(flatten)]
    pub found: SelfApprovals,
}

/// Examines all decisions of a period for those by somebody whose own request it was, own work aside.
#[utoipa::path(get, path = "/v1/compliance/self-approvals", tag = "compliance", params(PeriodQuery),
    responses((status = 200, body = SelfApprovalReport)))]
pub(super) async fn self_approvals(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<PeriodQuery>,
) -> Result<axum::Json<SelfApprovalReport>, Problem> {
    app.engine.permit(&who, "audit:read").await?;
    let period = Period {
        from: query.from.unwrap_or(Timestamp::UNIX_EPOCH),
        to: query.to.unwrap_or(Timestamp::MAX),
        definition: query.definition.clone(),
    };
    if period.from >= period.to {
        return Err(Problem::new("malformed_request", "from is before to"));
    }
    let found = app.engine.store().self_approvals(who.tenant, &period).await;
    let found = found.map_err(|error| {
        if !error.is_overlong() {
            return error.into();
        }
        let detail = "the period has more decisions than are examined at once; ask for shorter periods, one after the other";
        Problem::new("invalid_request", detail)
    })?;
    Ok(axum::Json(SelfApprovalReport {
        from: query.from,
        to: query.to,
        definition: query.definition,
        found,
    }))
}

//! The verification of one instance's audit.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::extract::{Caller, Path};
use super::layers::without_query;
use super::problem::Problem;
use super::view::{each, view};
use wrkflw_core::ids::InstanceId;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    without_query(OpenApiRouter::new().routes(routes!(verify)))
}

view! {
    of wrkflw_engine::Verification;
    /// What was verified of an instance. All is as it was recorded if `count` is 0.
    pub(super) struct VerificationView {
        pub instance_id: Uuid,
        /// Audit entries whose chain was verified, and that give the stored rows.
        pub entries: u64,
        pub decisions: u64,
        /// Delegations and their returns.
        pub delegations: u64,
        /// Valid seals of decisions, delegations and returns.
        pub seals: u64,
        /// Leaves of checkpoints that are those of the entries.
        pub leaves: u64,
        /// How many findings there are.
        pub count: u64,
        /// The first 100 findings.
        pub findings: Vec<FindingView> => each,
    }
}

/// Something that no host would have written.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FindingView {
    /// The number of the entry, if it is about one.
    pub seq: Option<u64>,
    /// A stable name for what differs.
    pub code: &'static str,
    pub detail: String,
}

impl From<wrkflw_engine::Finding> for FindingView {
    fn from(finding: wrkflw_engine::Finding) -> FindingView {
        FindingView {
            seq: finding.seq,
            code: finding.code,
            detail: finding.detail,
        }
    }
}

/// Verifies an instance: the chain of its audit entries, that they give the stored rows, the seals of its decisions and
/// delegations, and its leaves in the tree of checkpoints.
///
/// It changes nothing. Commands are not run again, and signatures of checkpoints are not verified: `wrkflw audit verify` does
/// both. A tenant has one verification at a time.
#[utoipa::path(get, path = "/v1/instances/{id}/verification", tag = "instances", operation_id = "verifyInstance", params(("id" = Uuid, Path)),
    responses((status = 200, body = VerificationView)))]
pub(super) async fn verify(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<axum::Json<VerificationView>, Problem> {
    let verified = app.engine.audit().verify(&who, InstanceId(id)).await?;
    Ok(axum::Json(verified.into()))
}

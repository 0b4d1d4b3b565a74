//! The checkpoints of the audit.

use axum::extract::State;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::extract::{Caller, Query};
use super::instances::PageQuery;
use super::page::{Page, decode, encode, limit, page_to};
use super::problem::Problem;
use wrkflw_core::ids::hex;
use wrkflw_engine::{CheckpointStatus, ListedCheckpoint};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

/// A signed root of all entries of the tenant up to one.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CheckpointView {
    /// Counts the checkpoints from 1, without gaps.
    number: u64,
    /// The first leaf that no earlier checkpoint covers.
    first_leaf: u64,
    /// How many leaves it covers: all below this number.
    size: u64,
    /// The cursor of `GET /v1/audit` behind which the entries begin that no earlier checkpoint covers. None if these are the first.
    entries_after: Option<String>,
    /// Hexadecimal SHA-256.
    root: String,
    /// The root of the checkpoint before; for the first one, that of an empty tree.
    previous_root: String,
    #[schema(value_type = String, format = DateTime)]
    signed_at: Timestamp,
    key_id: String,
    /// Ed25519, in hexadecimal digits.
    signature: String,
    status: CheckpointState,
}

/// Whether a checkpoint holds by itself.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum CheckpointState {
    /// Its signature is valid, and it continues the checkpoint before.
    Valid,
    /// The signature does not match the checkpoint.
    Invalid,
    /// This host does not know its key.
    UnknownKey,
    /// It does not continue the checkpoint before.
    OutOfOrder,
}

impl From<CheckpointStatus> for CheckpointState {
    fn from(status: CheckpointStatus) -> CheckpointState {
        match status {
            CheckpointStatus::Valid => CheckpointState::Valid,
            CheckpointStatus::Invalid => CheckpointState::Invalid,
            CheckpointStatus::UnknownKey => CheckpointState::UnknownKey,
            CheckpointStatus::OutOfOrder => CheckpointState::OutOfOrder,
        }
    }
}

impl From<ListedCheckpoint> for CheckpointView {
    fn from(listed: ListedCheckpoint) -> CheckpointView {
        let (one, first) = (listed.checkpoint, listed.first_leaf);
        CheckpointView {
            number: one.number,
            first_leaf: first,
            size: one.size,
            entries_after: first.checked_sub(1).map(|last| encode(&last.to_string())),
            root: hex(&one.root),
            previous_root: hex(&one.previous_root),
            signed_at: one.signed_at,
            key_id: one.key_id,
            signature: hex(&one.signature),
            status: listed.status.into(),
        }
    }
}

/// Lists the checkpoints of the audit, newest first, and verifies the signature of each with the keys of this host. The trees are not
/// computed again: `wrkflw audit verify` does that.
#[utoipa::path(get, path = "/v1/checkpoints", tag = "compliance", operation_id = "listCheckpoints", params(PageQuery),
    responses((status = 200, body = Page<CheckpointView>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<PageQuery>,
) -> Result<axum::Json<Page<CheckpointView>>, Problem> {
    let limit = limit(query.limit)?;
    // Numbers of checkpoints fit.
    let before: Option<u32> = decode(query.after.as_deref())?;
    let (found, more) = app.engine.checkpoints().list(&who, before, limit).await?;
    let last = found.last().filter(|_| more);
    let next = last.map(|last| last.checkpoint.number.to_string());
    Ok(axum::Json(page_to(found, next)))
}

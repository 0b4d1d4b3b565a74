//! The audit for auditors: entries of one instance or of the whole tenant, filtered by actor, type and time.

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::extract::{Caller, Path, Query};
use super::large::rendered;
use super::page::{Page, PageEnd, decode, foreign, limit, page_to};
use super::problem::Problem;
use super::shapes::AuditStream;
use super::value_error::of_parameter;
use super::view::view;
use wrkflw_core::ids::InstanceId;
use wrkflw_core::json::Json;
use wrkflw_core::moment;
use wrkflw_engine::Error;
use wrkflw_store::audit::{self, AuditFilter};
use wrkflw_store::feed;

/// All entries are later.
const EARLIEST: Timestamp = Timestamp::UNIX_EPOCH;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(audit))
        .routes(routes!(entries))
}

view! {
    of wrkflw_store::audit::AuditRow;
    /// One entry, with everything that its hash covers.
    pub(super) struct AuditRow {
        pub seq: u64,
        pub id: Uuid,
        pub r#type: String,
        pub revision: u32,
        pub command_id: Uuid,
        /// None for the host itself.
        pub actor: Option<String>,
        pub task_id: Option<Uuid>,
        #[schema(value_type = Object)]
        pub payload: Json,
        #[schema(value_type = Option<Object>)]
        pub evidence: Option<Json>,
        /// Hexadecimal.
        pub salt: String,
        #[schema(value_type = String, format = DateTime)]
        pub occurred_at: Timestamp,
        /// Hexadecimal SHA-256.
        pub hash: String,
        pub event_seq: Option<u64>,
    }
}

view! {
    of wrkflw_store::audit::PlacedRow;
    /// An entry of a tenant, with the stream that it is in and its place in the tree.
    pub(super) struct PlacedRow {
        #[schema(value_type = AuditStream)]
        pub stream: String,
        /// The id of the instance, if it is the stream of an instance.
        pub stream_id: Uuid,
        pub leaf: u64,
        #[serde(flatten)]
        pub entry: AuditRow => AuditRow::from,
    }
}

/// A page of the entries of a tenant, and how far the list goes.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuditEntries {
    pub data: Vec<PlacedRow>,
    pub page: PageEnd,
    /// When the last checkpoint was signed. Entries that it does not cover are on no page. None: no checkpoint is signed, so the
    /// list is empty whatever happened.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_checkpoint_at: Option<Timestamp>,
}

/// The order of a list of audit entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
pub(super) enum AuditSort {
    #[serde(rename = "occurredAt")]
    Oldest,
    #[serde(rename = "-occurredAt")]
    Newest,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditQuery {
    /// Only what this person did.
    pub actor: Option<String>,
    /// Only entries of this type, such as `DECISION_RECORDED`.
    pub r#type: Option<String>,
    /// Only what happened at or after this.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub from: Option<Timestamp>,
    /// Only what happened before this.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub until: Option<Timestamp>,
    /// `occurredAt` (default): the oldest first. `-occurredAt`: the newest first.
    #[param(inline)]
    pub sort: Option<AuditSort>,
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

impl AuditQuery {
    /// The filter, the cursor and the limit.
    fn read(self) -> Result<(AuditFilter, Option<u64>, u32), Problem> {
        if self
            .from
            .zip(self.until)
            .is_some_and(|(from, until)| from >= until)
        {
            return Err(of_parameter("from", "from must be before until"));
        }
        let after: Option<i64> = decode(self.after.as_deref())?;
        let after = after.map(|position| u64::try_from(position).map_err(|_| foreign()));
        let filter = AuditFilter {
            actor: self.actor,
            kind: self.r#type,
            // No entry is older, and the database does not accept all earlier years.
            from: self.from.filter(|from| *from > EARLIEST),
            until: self.until.map(|until| until.max(EARLIEST)),
            newest_first: self.sort == Some(AuditSort::Newest),
        };
        Ok((filter, after.transpose()?, limit(self.limit)?))
    }
}

/// The audit entries of an instance, the oldest or the newest first.
///
/// A page may have fewer entries than asked for, even none. There may be more as long as `page.next` is present.
#[utoipa::path(get, path = "/v1/instances/{id}/audit", tag = "instances", operation_id = "getInstanceAudit", params(("id" = Uuid, Path), AuditQuery),
    responses((status = 200, body = Page<AuditRow>)))]
pub(super) async fn audit(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    Query(query): Query<AuditQuery>,
) -> Result<Response, Problem> {
    app.engine.permit(&who, "audit:read").await?;
    let (filter, after, limit) = query.read()?;
    let (reader, instance) = (app.engine.reader(), InstanceId(id));
    let found = audit::of_instance(reader, who.tenant, instance, &filter, (after, limit)).await?;
    if found.rows.is_empty() && !feed::knows_instance(reader, who.tenant, id).await? {
        return Err(Error::NotFound {
            what: "instance",
            id: id.to_string(),
        }
        .into());
    }
    let next = found.next.map(|seq| seq.to_string());
    let bytes = found.rows.iter().map(audit::AuditRow::bytes).sum();
    let page = || -> Page<AuditRow> { page_to(found.rows, next) };
    rendered(&app, who.tenant, bytes, page).await
}

/// All entries of the tenant that a checkpoint covers, the oldest or the newest first: of instances, definitions, the directory and operation.
///
/// If hosts sign checkpoints, an entry appears here some seconds after it was written. `lastCheckpointAt` says whether they do. A page may have fewer entries than
/// asked for, even none. There may be more as long as `page.next` is present.
#[utoipa::path(get, path = "/v1/audit", tag = "compliance", operation_id = "listAuditEntries", params(AuditQuery),
    responses((status = 200, body = AuditEntries)))]
pub(super) async fn entries(
    State(app): State<App>,
    Caller(who): Caller,
    Query(query): Query<AuditQuery>,
) -> Result<Response, Problem> {
    app.engine.permit(&who, "audit:read").await?;
    let (filter, after, limit) = query.read()?;
    let reader = app.engine.reader();
    let (found, last_checkpoint_at) =
        audit::of_tenant(reader, who.tenant, &filter, (after, limit)).await?;
    let next = found.next.map(|leaf| leaf.to_string());
    let bytes = found.rows.iter().map(|row| row.entry.bytes()).sum();
    let page = move || {
        let Page { data, page, .. } = page_to(found.rows, next);
        AuditEntries {
            data,
            page,
            last_checkpoint_at,
        }
    };
    rendered(&app, who.tenant, bytes, page).await
}

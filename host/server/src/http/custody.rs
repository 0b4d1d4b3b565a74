//! The chain of custody: every decision and delegation about an entity or in an instance, ordered by time.
//!
//! JSON has pages, and the data to verify the hashes of entries without this host. To verify a seal, its key is needed. CSV is for
//! people: one file, which is streamed page by page, so its length costs no memory. A failure aborts the transfer, so that nobody
//! takes a part for the whole.

use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream::try_unfold;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::extract::{Listener, Path, Query};
use super::large::marked;
use super::page::{LIMIT_MAX, Page, decode, limit, page_to};
use super::problem::Problem;
use super::value_error::of_parameter;
use super::view::{maybe, view};
use super::{App, csv};
use wrkflw_core::ids::InstanceId;
use wrkflw_core::instance::Entity;
use wrkflw_engine::validation::check_id;
use wrkflw_engine::{Error, Identity};
use wrkflw_store::custody::{CustodyCursor, CustodyQuestion};
use wrkflw_store::entities;
use wrkflw_store::viewer::Viewer;

/// Maximum number of pages in one file.
const PAGES_MAX: u32 = 10_000;
/// The permission to export.
const PERMISSION: &str = "audit:read";

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(of_entity))
        .routes(routes!(of_instance))
}

view! {
    of wrkflw_engine::CustodyRecord;
    /// One decision, delegation or return of a delegated task, as its entry in the audit tells it.
    pub(super) struct CustodyRecord {
        pub instance_id: Uuid,
        pub definition_key: String,
        /// The version that was in force.
        pub definition_version: u32,
        pub entity_type: String,
        pub entity_id: String,
        /// Who started the instance.
        pub initiator: String,
        /// Whose request it is.
        pub requesters: Vec<String>,
        pub task_id: Option<Uuid>,
        pub action: CustodyAction => CustodyAction::from,
        /// `state`, `outcome`, `comment` and `onBehalfOf` are of decisions only. None where the entry was made unreadable.
        pub state: Option<String>,
        pub outcome: Option<String>,
        pub actor: Option<String>,
        pub on_behalf_of: Option<String>,
        pub comment: Option<String>,
        /// `previousOwner` and `owner` are of delegations and returns only. None where the entry was made unreadable.
        pub previous_owner: Option<String>,
        pub owner: Option<String>,
        /// Of a delegation.
        pub reason: Option<String>,
        #[schema(value_type = String, format = DateTime)]
        pub occurred_at: Timestamp,
        /// None where the row of the decision or of the seal is gone.
        pub signature: Option<Signature> => maybe,
        pub entry: ChainLink => ChainLink::from,
    }
}

view! {
    of wrkflw_engine::Signature;
    /// The HMAC-SHA256 of a decision, a delegation or a return.
    pub(super) struct Signature {
        pub key_id: String,
        pub mac_version: i16,
        /// Hexadecimal.
        pub mac: String,
        pub status: SealStatus => SealStatus::from,
    }
}

view! {
    of wrkflw_engine::ChainLink;
    /// An entry with all inputs of its hash. Of the evidence it has the digest.
    pub(super) struct ChainLink {
        pub seq: u64,
        pub id: Uuid,
        pub r#type: String,
        pub revision: u32,
        pub command_id: Uuid,
        pub actor: Option<String>,
        pub task_id: Option<Uuid>,
        #[schema(value_type = String, format = DateTime)]
        pub occurred_at: Timestamp,
        pub event_seq: Option<u64>,
        /// The text that the hash covers, as it is stored.
        pub payload: String,
        /// Hexadecimal, as the rest.
        pub salt: String,
        /// SHA-256 of the salt and the evidence; none where the entry has no evidence.
        pub evidence_digest: Option<String>,
        /// Of the entry before; none where that is missing.
        pub previous_hash: Option<String>,
        pub hash: String,
    }
}

/// What a record of the chain of custody is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum CustodyAction {
    Decide,
    Delegate,
    /// A delegate gave the task back.
    Resolve,
}

impl From<wrkflw_engine::CustodyAction> for CustodyAction {
    fn from(action: wrkflw_engine::CustodyAction) -> CustodyAction {
        match action {
            wrkflw_engine::CustodyAction::Decide => CustodyAction::Decide,
            wrkflw_engine::CustodyAction::Delegate => CustodyAction::Delegate,
            wrkflw_engine::CustodyAction::Resolve => CustodyAction::Resolve,
        }
    }
}

/// What this host finds when it computes the seal again.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum SealStatus {
    Valid,
    /// The seal does not fit the entry, or the entry cannot be read any more.
    Invalid,
    /// This host has no key of that name.
    UnknownKey,
    /// This host does not know seals of that version.
    UnknownVersion,
}

impl From<wrkflw_engine::SealStatus> for SealStatus {
    fn from(status: wrkflw_engine::SealStatus) -> SealStatus {
        match status {
            wrkflw_engine::SealStatus::Valid => SealStatus::Valid,
            wrkflw_engine::SealStatus::Invalid => SealStatus::Invalid,
            wrkflw_engine::SealStatus::UnknownKey => SealStatus::UnknownKey,
            wrkflw_engine::SealStatus::UnknownVersion => SealStatus::UnknownVersion,
        }
    }
}

/// The columns of the CSV file.
const COLUMNS: [&str; 26] = [
    "occurred_at",
    "instance_id",
    "definition",
    "definition_version",
    "entity_type",
    "entity_id",
    "state",
    "task_id",
    "action",
    "outcome",
    "actor",
    "on_behalf_of",
    "comment",
    "previous_owner",
    "owner",
    "reason",
    "initiator",
    "requesters",
    "entry_id",
    "seq",
    "hash",
    "previous_hash",
    "key_id",
    "mac_version",
    "mac",
    "seal",
];

/// How the export is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum Format {
    /// Pages, with all that a verifier needs.
    #[default]
    Json,
    /// One file (RFC 4180). What a spreadsheet could read as a formula has an apostrophe before it.
    Csv,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct CustodyQuery {
    /// `json` (default), in pages, or `csv`, as one file.
    #[serde(default)]
    #[param(inline)]
    pub format: Format,
    /// Only those of this definition.
    #[serde(rename = "definitionKey")]
    pub definition: Option<String>,
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

/// Exports every decision and delegation about an entity, oldest first, with its audit entry and signature.
#[utoipa::path(get, path = "/v1/entities/{type}/{id}/custody", tag = "entities", operation_id = "getEntityCustody",
    params(("type" = String, Path, format = "name"), ("id" = String, Path, format = "name"), CustodyQuery),
    responses((status = 200, content((Page<CustodyRecord> = "application/json"), (String = "text/csv")))))]
pub(super) async fn of_entity(
    State(app): State<App>,
    caller: Listener,
    Path((kind, id)): Path<(String, String)>,
    Query(query): Query<CustodyQuery>,
) -> Result<Response, Problem> {
    app.engine.permit(&caller.who, PERMISSION).await?;
    check_id("/type", &kind)?;
    check_id("/id", &id)?;
    export(app, caller, (Entity { kind, id }, None), query).await
}

/// Exports every decision and delegation of an instance, oldest first, with its audit entry and signature.
#[utoipa::path(get, path = "/v1/instances/{id}/custody", tag = "instances", operation_id = "getInstanceCustody",
    params(("id" = Uuid, Path), CustodyQuery),
    responses((status = 200, content((Page<CustodyRecord> = "application/json"), (String = "text/csv")))))]
pub(super) async fn of_instance(
    State(app): State<App>,
    caller: Listener,
    Path(id): Path<Uuid>,
    Query(query): Query<CustodyQuery>,
) -> Result<Response, Problem> {
    app.engine.permit(&caller.who, PERMISSION).await?;
    let instance = InstanceId(id);
    let entity = entities::of_instance(
        app.engine.reader(),
        &Viewer::all(caller.who.tenant),
        instance,
    )
    .await?;
    let entity = entity.ok_or_else(|| Error::NotFound {
        what: "instance",
        id: id.to_string(),
    })?;
    export(app, caller, (entity, Some(instance)), query).await
}

async fn export(
    app: App,
    caller: Listener,
    (entity, instance): (Entity, Option<InstanceId>),
    query: CustodyQuery,
) -> Result<Response, Problem> {
    let whole = query.format == Format::Csv;
    if whole && (query.after.is_some() || query.limit.is_some()) {
        let detail = "csv is the whole export as one file; leave after and limit out";
        return Err(of_parameter("format", detail));
    }
    let limit = limit(if whole { Some(LIMIT_MAX) } else { query.limit })?;
    let question = CustodyQuestion {
        entity,
        instance,
        definition: query.definition,
        after: decode(query.after.as_deref())?,
        limit,
    };
    if whole {
        let first = Part::read(&app, &caller.who, &question, csv::record(COLUMNS)).await?;
        return Ok(file(app, caller, question, first));
    }
    let text = |data: Vec<wrkflw_engine::CustodyRecord>, next: Option<CustodyCursor>| {
        let page: Page<CustodyRecord> = page_to(data, next.map(|last| last.to_string()));
        serde_json::to_string(&page).expect("records serialise")
    };
    let page = app
        .engine
        .audit()
        .custody(&caller.who, &question, text)
        .await?;
    Ok(marked(page, caller.who.tenant))
}

/// A part of a file, and where the next one begins.
struct Part {
    text: String,
    next: Option<CustodyCursor>,
}

impl Part {
    async fn read(
        app: &App,
        who: &Identity,
        question: &CustodyQuestion,
        head: String,
    ) -> Result<Part, Error> {
        let part = |records: Vec<wrkflw_engine::CustodyRecord>, next| Part {
            text: std::iter::once(head)
                .chain(records.iter().map(line))
                .collect(),
            next,
        };
        app.engine.audit().custody(who, question, part).await
    }
}

/// The rest of a file that is being written.
struct Rest {
    app: App,
    caller: Listener,
    question: CustodyQuestion,
    part: Option<Part>,
    pages: u32,
}

fn file(app: App, caller: Listener, question: CustodyQuestion, first: Part) -> Response {
    let rest = Rest {
        app,
        caller,
        question,
        part: Some(first),
        pages: 0,
    };
    let lines = try_unfold(rest, async |mut rest| {
        let Some(part) = rest.part.take() else {
            return Ok(None);
        };
        rest.pages += 1;
        if let Some(last) = part.next {
            if rest.pages == PAGES_MAX {
                tracing::error!(
                    "an export of custody has more than {PAGES_MAX} pages and was aborted: its reader can page through the JSON instead"
                );
                return Err(std::io::Error::other("too long for one file"));
            }
            rest.question.after = Some(last);
            // A client may read the file slowly, so its permission is checked again for each page.
            let may_still = rest.caller.may_still(&rest.app, PERMISSION).await;
            may_still.map_err(|problem| std::io::Error::other(problem.detail))?;
            let next = Part::read(&rest.app, &rest.caller.who, &rest.question, String::new()).await;
            rest.part = Some(next.map_err(|error| {
                tracing::error!(%error, "an export of the chain of custody was aborted");
                std::io::Error::other(error)
            })?);
        }
        Ok(Some((part.text, rest)))
    });
    let headers = [
        (
            header::CONTENT_TYPE,
            "text/csv; charset=utf-8; header=present",
        ),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"custody.csv\"",
        ),
    ];
    (headers, Body::from_stream(lines)).into_response()
}

fn line(record: &wrkflw_engine::CustodyRecord) -> String {
    let entry = &record.entry;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let seal = record.signature.as_ref();
    let cells = [
        record.occurred_at.to_string(),
        record.instance_id.to_string(),
        record.definition_key.clone(),
        record.definition_version.to_string(),
        record.entity_type.clone(),
        record.entity_id.clone(),
        text(&record.state),
        record.task_id.map(|id| id.to_string()).unwrap_or_default(),
        record.action.name().to_owned(),
        text(&record.outcome),
        text(&record.actor),
        text(&record.on_behalf_of),
        text(&record.comment),
        text(&record.previous_owner),
        text(&record.owner),
        text(&record.reason),
        record.initiator.clone(),
        record.requesters.join("; "),
        entry.id.to_string(),
        entry.seq.to_string(),
        entry.hash.clone(),
        text(&entry.previous_hash),
        seal.map(|seal| seal.key_id.clone()).unwrap_or_default(),
        seal.map(|seal| seal.mac_version.to_string())
            .unwrap_or_default(),
        seal.map(|seal| seal.mac.clone()).unwrap_or_default(),
        seal.map_or("missing", |seal| seal.status.name()).to_owned(),
    ];
    assert_eq!(cells.len(), COLUMNS.len());
    csv::record(cells.iter().map(String::as_str))
}

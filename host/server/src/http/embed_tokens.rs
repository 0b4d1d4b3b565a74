//! Tokens by which a product's page shows one instance to the person of the product's session.

use std::time::Duration;

use axum::extract::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::extract::{Body, Caller, malformed};
use super::layers::without_query;
use super::problem::Problem;
use wrkflw_core::ids::InstanceId;
use wrkflw_core::instance::Entity;
use wrkflw_engine::{EMBEDDING_MAX, EmbedTarget, EmbeddingScope, NewEmbedding};

/// Minutes of a token whose request names none.
const MINUTES: u32 = 10;
const MINUTES_MAX: u64 = EMBEDDING_MAX.as_secs() / 60;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    without_query(OpenApiRouter::new().routes(routes!(create)))
}

/// What the page may do.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum EmbedScope {
    /// Show the instance.
    #[default]
    Read,
    /// Show it, and let the person decide its tasks.
    Decide,
}

/// For whom, for what and for which page a token is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EmbedTokenBody {
    /// The person of the product's session.
    #[schema(format = "name")]
    pub subject: String,
    /// The roles of the person. The caller's own roles permit all that these permit.
    #[schema(max_items = 64)]
    pub roles: Vec<String>,
    /// The instance. Either this, or type and id of its entity.
    pub instance_id: Option<Uuid>,
    /// With `entityId`: the last instance about this entity that the person sees.
    #[schema(format = "name")]
    pub entity_type: Option<String>,
    #[schema(format = "name")]
    pub entity_id: Option<String>,
    /// The origin of the page, as browsers write it. Browsers refuse the token's answers to any other page.
    #[schema(max_length = 300, example = "https://documents.example")]
    pub origin: String,
    #[serde(default)]
    pub scope: EmbedScope,
    /// How long the token is valid.
    #[serde(default = "minutes")]
    #[schema(minimum = 1, maximum = 60, default = 10)]
    pub minutes: u32,
}

fn minutes() -> u32 {
    MINUTES
}

/// An embed token.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EmbedToken {
    /// For `<wrkflw-instance>` alone: no operation of the API takes it.
    pub token: String,
    pub instance_id: Uuid,
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
    pub scope: EmbedScope,
}

fn target(body: &EmbedTokenBody) -> Result<EmbedTarget, Problem> {
    match (body.instance_id, &body.entity_type, &body.entity_id) {
        (Some(id), None, None) => Ok(EmbedTarget::Instance(InstanceId(id))),
        (None, Some(kind), Some(id)) => Ok(EmbedTarget::Entity(Entity {
            kind: kind.clone(),
            id: id.clone(),
        })),
        _ => Err(malformed(
            "/instanceId",
            "name either instanceId, or entityType and entityId",
        )),
    }
}

/// Exchanges the person of a product's session for a token by which a page of the product shows them one instance, in the element
/// `<wrkflw-instance>`. The caller is the product's server; it needs the permission `embed:issue`, and lends no permission that it does
/// not have. Answers 404 if the person does not see the instance. Nothing is stored: the token ends by its time.
#[utoipa::path(post, path = "/v1/embed-tokens", tag = "directory", operation_id = "createEmbedToken", request_body = EmbedTokenBody,
    responses((status = 200, body = EmbedToken)))]
pub(super) async fn create(
    State(app): State<App>,
    Caller(who): Caller,
    Body { value, .. }: Body<EmbedTokenBody>,
) -> Result<axum::Json<EmbedToken>, Problem> {
    let target = target(&value)?;
    let minutes = u64::from(value.minutes);
    if !(1..=MINUTES_MAX).contains(&minutes) {
        let detail = format!("1 to {MINUTES_MAX} minutes");
        return Err(malformed("/minutes", &detail));
    }
    let new = NewEmbedding {
        subject: value.subject,
        roles: value.roles,
        target,
        origin: value.origin,
        scope: match value.scope {
            EmbedScope::Read => EmbeddingScope::Read,
            EmbedScope::Decide => EmbeddingScope::Decide,
        },
        valid: Duration::from_mins(minutes),
    };
    let (embedding, token) = app.engine.embeddings().issue(&who, new).await?;
    Ok(axum::Json(EmbedToken {
        token,
        instance_id: embedding.instance,
        expires_at: embedding.until(),
        scope: value.scope,
    }))
}

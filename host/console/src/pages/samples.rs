//! A sample product of a host for development: a page for each of its documents, in which `<wrkflw-instance>` shows the instance about
//! it. `docs/embedding.md` has the page of a real product. Its server requests tokens from the API; here the host plays both roles.

use std::time::Duration;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::json;

use wrkflw_core::instance::Entity;
use wrkflw_engine::{EmbedTarget, EmbeddingScope, NewEmbedding};
use wrkflw_server::http::auth::Claims;

use crate::language::Words;
use crate::posted::Anonymous;
use crate::shell::{Shell, page};
use crate::{Console, DemoPerson, SampleDocument, assets};

/// The issuer of the tokens, and its role. In a real installation, this is a server of the product.
const ISSUER: &str = "sample-product";
const ISSUER_ROLE: &str = "product";
/// The role of all people in the product.
const ROLE: &str = "user";
/// Short, so that a page that stays open shows how tokens are renewed.
const TOKEN_VALID: Duration = Duration::from_mins(5);

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/samples", get(list))
        .route("/samples/tokens", post(token))
        .route("/samples/{type}", get(show))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SamplesQuery {
    /// The person of the product's session.
    person: String,
}

#[derive(Template)]
#[template(path = "sample.html")]
struct Page<'a> {
    shell: Shell,
    documents: &'a [SampleDocument],
    document: Option<&'a SampleDocument>,
    people: &'a [DemoPerson],
    person: &'a str,
    element: &'static str,
}

async fn list(state: State<Console>, query: Query<SamplesQuery>, headers: HeaderMap) -> Response {
    shown(&state, None, &query, Words::of(&headers))
}

async fn show(
    state: State<Console>,
    Path(kind): Path<String>,
    query: Query<SamplesQuery>,
    headers: HeaderMap,
) -> Response {
    shown(&state, Some(&kind), &query, Words::of(&headers))
}

fn shown(console: &Console, kind: Option<&str>, query: &SamplesQuery, w: Words) -> Response {
    let documents = console.samples;
    let document = kind.map(|kind| documents.iter().find(|one| one.entity_type == kind));
    if documents.is_empty() || matches!(document, Some(None)) {
        return super::trouble::nothing(w);
    }
    let document = document.flatten();
    let person = console.demo.iter().find(|one| one.id == query.person);
    let title = match document {
        Some(document) => format!("{} {}", document.entity_id, document.title),
        None => w.t("samples").into_owned(),
    };
    let template = Page {
        shell: Shell::plain(w, title),
        documents,
        document,
        people: &console.demo,
        person: person.map_or("reviewer", |person| person.id.as_str()),
        element: assets::ELEMENT_PATH,
    };
    page(StatusCode::OK, &template)
}

/// Plays the part of a product's server: it knows who is signed in to the product, and requests an embed token for this person.
async fn token(
    State(console): State<Console>,
    Query(query): Query<SamplesQuery>,
    Anonymous { fields, headers }: Anonymous,
) -> Response {
    let named = |id: &str| console.demo.iter().find(|one| one.id == id);
    let document = console.samples.iter().find(|one| {
        let entity = format!("{}/{}", one.entity_type, one.entity_id);
        entity == fields.get("entity")
    });
    let origin = headers.get(header::ORIGIN);
    let origin = origin.and_then(|origin| origin.to_str().ok());
    let (Some(person), Some(document), Some(origin)) = (named(&query.person), document, origin)
    else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let new = NewEmbedding {
        subject: person.id.clone(),
        roles: vec![ROLE.to_owned()],
        target: EmbedTarget::Entity(Entity {
            kind: document.entity_type.to_owned(),
            id: document.entity_id.to_owned(),
        }),
        origin: origin.to_owned(),
        scope: EmbeddingScope::Decide,
        valid: TOKEN_VALID,
    };
    let issuer = Claims {
        subject: ISSUER.to_owned(),
        tenant: person.tenant.clone(),
        roles: vec![ISSUER_ROLE.to_owned()],
    };
    let issuer = match console.app.identity(issuer).await {
        Ok(issuer) => issuer,
        Err(problem) => return problem.into_response(),
    };
    match console.app.engine.embeddings().issue(&issuer, new).await {
        Ok((_, token)) => axum::Json(json!({ "token": token })).into_response(),
        Err(error) => {
            tracing::warn!(%error, "the sample product gets no embed token");
            StatusCode::FORBIDDEN.into_response()
        }
    }
}

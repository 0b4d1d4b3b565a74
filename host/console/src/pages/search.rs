//! Finding instances, people and flows by words.

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::routing::get;
use serde::Deserialize;
use uuid::Uuid;

use crate::Console;
use crate::api::with_query;
use crate::form::Person;
use crate::session::{Answer, Visitor};
use crate::shell::{Shell, page};

/// Results of each kind.
const FOUND_MAX: &str = "20";

pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/console/search", get(show))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Asked {
    q: String,
}

#[derive(Deserialize)]
struct List<T> {
    data: Vec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Instance {
    id: Uuid,
    status: String,
    outcome: Option<String>,
    entity_type: String,
    entity_id: String,
    definition_key: String,
    title: Option<String>,
}

struct Found {
    id: Uuid,
    title: String,
    entity: String,
    flow: String,
    status: String,
}

#[derive(Template)]
#[template(path = "search.html")]
struct Page {
    shell: Shell,
    q: String,
    instances: Vec<Found>,
    people: Vec<Person>,
}

async fn show(Query(asked): Query<Asked>, visitor: Visitor) -> Answer {
    let w = visitor.w;
    let q = asked.q.trim().to_owned();
    let (mut instances, mut people) = (Vec::new(), Vec::new());
    if !q.is_empty() {
        let parameters = [("q", q.as_str()), ("limit", FOUND_MAX)];
        let found: List<Instance> = visitor
            .get(&with_query("/v1/instances", &parameters))
            .await?;
        instances = found.data;
        // Who may not read the directory finds instances all the same.
        let path = with_query("/v1/people", &parameters);
        let found = visitor.api.get::<List<Person>>(&path).await;
        people = found.map_or_else(|_| Vec::new(), |found| found.data);
    }
    let found = instances.into_iter().map(|one| {
        let entity = format!("{} {}", one.entity_type, one.entity_id);
        let status = w.known(&format!("status-{}", one.status.to_lowercase()));
        let status = status.map_or(one.status, std::borrow::Cow::into_owned);
        Found {
            id: one.id,
            title: one.title.unwrap_or_else(|| entity.clone()),
            entity,
            flow: one.definition_key,
            status: one.outcome.unwrap_or(status),
        }
    });
    let template = Page {
        instances: found.collect(),
        people,
        q,
        shell: Shell::of(&visitor, "search", w.t("search").into_owned()).await,
    };
    Ok(page(StatusCode::OK, &template))
}

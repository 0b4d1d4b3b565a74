//! Starting an instance: the flows, and the form of a flow by the schema of its data. The preview shows who will get the work.

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use axum::routing::get;
use serde::Deserialize;
use serde_json::Value;

use wrkflw_core::json::Node;

use crate::Console;
use crate::api::{segment, with_query};
use crate::data::Done;
use crate::fields::{self, Field};
use crate::form::{self, Form, Preview};
use crate::language::Words;
use crate::list::Paged;
use crate::names::Names;
use crate::posted::{Fields, Posted};
use crate::session::{Answer, Halt, Visitor};
use crate::shell::{Shell, page};

/// Flows on a page.
const PAGE_ROWS: &str = "50";

pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/console/start", get(show).post(start))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StartQuery {
    definition: String,
    q: String,
    after: String,
}

#[derive(Deserialize)]
struct Flow {
    key: String,
    title: String,
}

#[derive(Deserialize)]
struct Definition {
    active: Option<Version>,
}

#[derive(Deserialize)]
struct Version {
    graph: Graph,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Graph {
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    data_schema: Option<Value>,
}

#[derive(Template)]
#[template(path = "start.html")]
struct Start {
    shell: Shell,
    q: String,
    flows: Vec<Flow>,
    first: Option<String>,
    next: Option<String>,
    form: Option<Form>,
}

impl Start {
    /// Whether the page has a search: there are more flows than it shows, or these are search results.
    fn is_searched(&self) -> bool {
        !self.q.is_empty() || self.first.is_some() || self.next.is_some()
    }
}

async fn show(Query(query): Query<StartQuery>, visitor: Visitor) -> Answer {
    if query.definition.is_empty() {
        return choice(&visitor, &query).await;
    }
    let graph = graph(&visitor, &query.definition).await?;
    let form = form_of(&visitor, &query.definition, &graph, &Fields::default());
    render(&visitor, form, StatusCode::OK).await
}

/// The page without a flow.
async fn blank(visitor: &Visitor) -> Start {
    let title = visitor.w.t("start").into_owned();
    Start {
        shell: Shell::of(visitor, "start", title).await,
        q: String::new(),
        flows: Vec::new(),
        first: None,
        next: None,
        form: None,
    }
}

/// The flows of which one is chosen.
async fn choice(visitor: &Visitor, query: &StartQuery) -> Answer {
    let q = query.q.trim();
    let parameters = [
        ("q", q),
        ("versions", "active"),
        ("limit", PAGE_ROWS),
        ("after", &query.after),
    ];
    let path = with_query("/v1/definitions", &parameters);
    let found: Paged<Flow> = visitor.get(&path).await?;
    let at = |after: &str| with_query("/console/start", &[("q", q), ("after", after)]);
    let template = Start {
        q: q.to_owned(),
        flows: found.data,
        first: (!query.after.is_empty()).then(|| at("")),
        next: found.page.next.map(|next| at(&next)),
        ..blank(visitor).await
    };
    Ok(page(StatusCode::OK, &template))
}

async fn render(visitor: &Visitor, form: Form, status: StatusCode) -> Answer {
    let template = Start {
        form: Some(form),
        ..blank(visitor).await
    };
    Ok(page(status, &template))
}

async fn graph(visitor: &Visitor, key: &str) -> Result<Graph, Halt> {
    let path = format!("/v1/definitions/{}", segment(key));
    let definition: Definition = visitor.get(&path).await?;
    match definition.active {
        Some(version) => Ok(version.graph),
        None => Err(Redirect::to("/console/start").into_response().into()),
    }
}

/// The entity comes first, then the data.
fn form_of(visitor: &Visitor, key: &str, graph: &Graph, filled: &Fields) -> Form {
    let about =
        |name: &str, id: &str| Field::named(name, visitor.w.t(id).into_owned(), "text", filled);
    let mut fields = vec![
        about("entityType", "start-entity-type"),
        about("entityId", "start-entity-id"),
    ];
    if let Some(schema) = &graph.data_schema {
        fields.extend(fields::of(schema, filled, "/data"));
    }
    Form {
        description: graph.description.clone(),
        hidden: vec![("definition", key.to_owned())],
        fields,
        ..Form::new(
            graph.title.clone(),
            "/console/start#act".to_owned(),
            "/console/start".to_owned(),
        )
        .with_key_of(filled)
    }
}

fn body(key: &str, graph: &Graph, filled: &Fields, w: Words) -> Node {
    let data = graph.data_schema.as_ref();
    let data = data.map(|schema| ("data", fields::input(schema, filled, w)));
    let texts = [
        ("definitionKey", key),
        ("entityType", filled.get("entityType").trim()),
        ("entityId", filled.get("entityId").trim()),
    ];
    let texts = texts.map(|(name, text)| (name, Node::String(text.to_owned())));
    let members = texts.into_iter().chain(data);
    Node::Object(
        members
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

#[derive(Deserialize)]
struct Started {
    instance: StartedInstance,
}

#[derive(Deserialize)]
struct StartedInstance {
    id: uuid::Uuid,
}

async fn start(Posted { visitor, fields }: Posted) -> Answer {
    let key = fields.get("definition");
    let graph = graph(&visitor, key).await?;
    let body = body(key, &graph, &fields, visitor.w);
    let mut form = form_of(&visitor, key, &graph, &fields);
    let names = Names::default();
    if form::is_confirmed(&fields, &body) {
        let started = visitor
            .api
            .post::<Started>("/v1/instances", &body, form::key(&fields))
            .await;
        match started {
            Ok(started) => {
                let to = format!(
                    "/console/instances/{}?done=instance-start",
                    started.instance.id
                );
                return Ok(Redirect::to(&to).into_response());
            }
            Err(trouble) => {
                form.refuse(&trouble, names, &visitor).await;
                return render(&visitor, form, trouble.status()).await;
            }
        }
    }
    let done = visitor
        .api
        .post::<Done>("/v1/instances?dryRun=true", &body, None)
        .await;
    match done {
        Ok(done) => {
            let preview = Preview::of(&done, &[], names, &visitor).await;
            form.foresee(&done, preview, &body);
            render(&visitor, form, StatusCode::OK).await
        }
        Err(trouble) => {
            form.refuse(&trouble, names, &visitor).await;
            render(&visitor, form, trouble.status()).await
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::Json;
    use axum::routing::post;
    use serde_json::json;

    use super::*;

    const KEY: &str = "01900000-0000-7000-8000-000000000007";

    /// The status and the page of a confirmed form whose start the API refuses.
    async fn refused(status: StatusCode, code: &'static str) -> (StatusCode, String) {
        let definition = || async { Json(json!({ "active": { "graph": { "title": "Plan" } } })) };
        let refuse = move || async move {
            let problem = json!({ "status": status.as_u16(), "code": code, "detail": "no" });
            (status, Json(problem))
        };
        let api = Router::new()
            .route("/v1/definitions/plan", get(definition))
            .route("/v1/instances", post(refuse));
        let pairs = [
            ("definition", "plan"),
            ("entityType", "plan"),
            ("entityId", "7"),
            ("key", KEY),
            ("step", "confirm"),
        ];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut fields = Fields(pairs.into());
        let graph: Graph = serde_json::from_value(json!({ "title": "Plan" })).expect("a graph");
        let w = Words::named("en").expect("English");
        let seen = form::preview_digests(&body("plan", &graph, &fields, w), &json!([]));
        fields.0.push(("seen".to_owned(), seen));
        let visitor = Visitor::of_routes(api);
        let answer = start(Posted { visitor, fields }).await;
        let answer = answer.unwrap_or_else(Halt::into_response);
        let status = answer.status();
        let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await;
        let page = String::from_utf8(bytes.expect("a page").into()).expect("a text");
        (status, page)
    }

    #[tokio::test]
    async fn a_form_keeps_its_key_when_it_is_not_known_whether_it_was_done() {
        let (status, page) = refused(StatusCode::SERVICE_UNAVAILABLE, "busy").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(
            page.contains(&format!("name=\"key\" value=\"{KEY}\"")),
            "{page}"
        );
    }

    #[tokio::test]
    async fn a_form_whose_key_is_of_something_else_gets_another_one() {
        let code = "idempotency_key_reused";
        let (status, page) = refused(StatusCode::UNPROCESSABLE_ENTITY, code).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(page.contains("name=\"key\""), "{page}");
        assert!(!page.contains(KEY), "{page}");
        assert!(page.contains("sent before with something else"), "{page}");
    }
}

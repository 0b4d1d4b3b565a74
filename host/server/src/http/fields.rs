//! The query parameter `fields` of lists with pages: their items have only the members that it names.
//!
//! The lists of tasks and instances take `fields` themselves, because a search by `POST` takes it, too; see [`super::include::Fields`].
//! For all other lists, this module cuts the answer. It knows the members of their items from the document of the API.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::App;
use super::include::unknown_field;
use super::large::Large;
use super::problem::Problem;
use super::value_error::of_parameter;

const NAME: &str = "fields";

/// The members of the items of each list, by its path.
pub(super) type Lists = Arc<BTreeMap<String, BTreeSet<String>>>;

/// Adds the parameter to the lists of the document that have pages and do not take it themselves, with the members of their items.
pub(super) fn declare(document: &mut Value) -> Lists {
    let mut lists = BTreeMap::new();
    let schemas = document["components"]["schemas"].clone();
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (path, operations) in paths {
        let Some(parameters) = operations["get"]["parameters"].as_array() else {
            continue;
        };
        let takes = |name: &str| parameters.iter().any(|one| one["name"] == name);
        if !takes("after") || takes(NAME) {
            continue;
        }
        let answer =
            &operations["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        let page = members(answer, &schemas);
        let Some(items) = page
            .get("data")
            .map(|data| members(&data["items"], &schemas))
        else {
            continue;
        };
        lists.insert(path.clone(), items.into_keys().collect());
        if let Some(parameters) = operations["get"]["parameters"].as_array_mut() {
            parameters.push(json!({
                "name": NAME, "in": "query", "required": false, "style": "form", "explode": false,
                "description": "The members that each item of the answer has, separated by commas. Without it, all.",
                "schema": { "type": "array", "items": { "type": "string" } },
            }));
        }
    }
    Arc::new(lists)
}

/// The members that a schema declares, with those of the schemas in its `allOf`.
fn members<'a>(schema: &'a Value, schemas: &'a Value) -> BTreeMap<String, &'a Value> {
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next())
    {
        return members(&schemas[name], schemas);
    }
    let parts = schema["allOf"].as_array().into_iter().flatten();
    let mut all: BTreeMap<_, _> = parts.flat_map(|part| members(part, schemas)).collect();
    let own = schema["properties"].as_object().into_iter().flatten();
    all.extend(own.map(|(name, schema)| (name.clone(), schema)));
    all
}

/// Cuts the items of a list.
pub(super) async fn pick(
    State((app, lists)): State<(App, Lists)>,
    mut request: Request,
    next: Next,
) -> Response {
    let query = request.uri().query().unwrap_or_default();
    // Most requests have no `fields`.
    if !query.contains(NAME) {
        return next.run(request).await;
    }
    let (members, others) = taken(query);
    let path = request.extensions().get::<MatchedPath>();
    let known = path.and_then(|path| lists.get(path.as_str()));
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    let (Some(known), false, true) = (known, members.is_empty(), is_read) else {
        return next.run(request).await;
    };
    // Once it is known that the caller may read the list.
    let refused = members.iter().find(|name| !known.contains(*name));
    let refused = refused.map(|unknown| unknown_field(unknown, known));
    match other_query(request.uri(), &others) {
        Some(uri) => *request.uri_mut() = uri,
        None => return StatusCode::BAD_REQUEST.into_response(),
    }
    let has_body = request.method() == Method::GET;
    let mut response = next.run(request).await;
    if response.status() != StatusCode::OK {
        return response;
    }
    if let Some(refused) = refused {
        return refused.into_response();
    }
    let kind = response.headers().get(header::CONTENT_TYPE);
    if kind.is_none_or(|kind| kind != "application/json") {
        return of_parameter(NAME, "only a page of JSON has fields").into_response();
    }
    response.headers_mut().remove(header::CONTENT_LENGTH);
    if has_body {
        cut(&app, response, members).await
    } else {
        response
    }
}

/// The page with these members of its items.
async fn cut(app: &App, page: Response, members: BTreeSet<String>) -> Response {
    let (parts, body) = page.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let rewrite = move || rewritten(&bytes, &members);
    let text = match parts.extensions.get() {
        Some(&Large(tenant)) => app.engine.offload().run(tenant, rewrite).await,
        None => Ok(rewrite()),
    };
    match text {
        Ok(text) => Response::from_parts(parts, Body::from(text)),
        Err(error) => Problem::from(error).into_response(),
    }
}

/// The values of `fields` in a query, and its other parameters.
fn taken(query: &str) -> (BTreeSet<String>, String) {
    let is_taken = |pair: &&str| pair.split_once('=').is_some_and(|(name, _)| name == NAME);
    let (taken, others): (Vec<&str>, Vec<&str>) = query.split('&').partition(is_taken);
    let mut members = BTreeSet::new();
    for (_, names) in taken
        .iter()
        .flat_map(|pair| form_urlencoded::parse(pair.as_bytes()))
    {
        members.extend(names.split(',').map(str::to_owned));
    }
    (members, others.join("&"))
}

/// The same address with another query.
fn other_query(uri: &Uri, query: &str) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    let path = format!("{}?{query}", uri.path());
    parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
    Uri::from_parts(parts).ok()
}

/// The text of the page with these members of its items. The values are copied as they are encoded.
pub(super) fn rewritten(page: &[u8], members: &BTreeSet<String>) -> String {
    let mut page: BTreeMap<&str, &RawValue> = serde_json::from_slice(page).expect("a page");
    let items = page["data"].get();
    let mut items: Vec<BTreeMap<&str, &RawValue>> = serde_json::from_str(items).expect("its items");
    for item in &mut items {
        item.retain(|name, _| members.contains(*name));
    }
    let items = serde_json::value::to_raw_value(&items).expect("items serialise");
    page.insert("data", &items);
    serde_json::to_string(&page).expect("a page serialises")
}

//! The JSON Schemas of events, and an index of them.

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

use super::problem::Problem;
use super::{App, json};

use crate::asyncapi;
use wrkflw_core::event_schema::SCHEMA_VERSION;

/// All event types with the addresses of their schemas, sorted by name.
pub(super) async fn index(State(app): State<App>) -> Response {
    let types = asyncapi::types().into_iter().map(|(suffix, description)| {
        let name = app.naming.event_type(&suffix);
        json!({
            "type": name,
            "version": SCHEMA_VERSION,
            "description": description,
            "dataschema": app.naming.schema_url(&name),
        })
    });
    json(json!({"data": types.collect::<Vec<_>>()}).to_string())
}

/// The JSON Schema of one event type. The `dataschema` of events links to it.
pub(super) async fn one(State(app): State<App>, Path(file): Path<String>) -> Response {
    let suffix = file
        .strip_suffix(".json")
        .and_then(|name| name.strip_prefix(app.naming.prefix.as_str()));
    let schema = suffix
        .and_then(|suffix| suffix.strip_prefix('.'))
        .and_then(asyncapi::schema);
    let Some(mut schema) = schema else {
        let detail = format!("there is no event type {file}: see /schemas/ for all");
        return Problem::new("not_found", detail).into_response();
    };
    let name = file.trim_end_matches(".json");
    schema["$id"] = json!(app.naming.schema_url(name));
    json(schema.to_string())
}

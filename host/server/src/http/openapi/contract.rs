//! The parts of the document that all operations share: the statuses of responses, their headers, and the patterns of
//! texts.
//!
//! This module changes the finished document, so that no handler has to repeat facts that follow from its path, method and
//! parameters. A client can check all of them, and the tests do.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::super::problem::CODES;
use wrkflw_core::check::names::NAME_CHARS_MAX as KEY_CHARS_MAX;

/// Any text that PostgreSQL can store.
const TEXT: &str = "^[^\\u0000]*$";
/// The id of a person, a group or an entity.
const NAME: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$";
const NAME_CHARS_MAX: usize = 200;
/// The key of a definition, the name of a calendar, a state or a trigger.
const KEY: &str = "^[A-Za-z_][A-Za-z0-9_.-]{0,254}$";
/// A revision in quotes, or any.
const IF_MATCH: &str = "^(\\*|\"[0-9]{1,10}\")$";
const IDEMPOTENCY_KEY: &str =
    "^(\"[ !#-~]{1,255}\"|[!#-+\\--~]|[!#-+\\--~][ !#-+\\--~]{0,253}[!#-+\\--~])$";
/// At least one visible character.
const REASON: &str = "^[^\\u0000]*\\S[^\\u0000]*$";
/// Fields of bodies whose values match [`NAME`].
const NAME_FIELDS: [&str; 7] = [
    "correlation",
    "entityId",
    "entityType",
    "manager",
    "name",
    "substitute",
    "to",
];

/// Completes the document in place.
pub(super) fn tighten(document: &mut Value) {
    let mut bodies = BTreeSet::new();
    if let Some(paths) = document["paths"].as_object_mut() {
        for (path, item) in paths {
            for (method, operation) in item.as_object_mut().into_iter().flatten() {
                references(&operation["requestBody"], &mut bodies);
                parameters(operation);
                answers(path, method, operation);
            }
        }
    }
    let components = &mut document["components"];
    components["responses"] = problems();
    components["headers"] = headers();
    let mut seen = BTreeSet::new();
    while let Some(name) = bodies.pop_first() {
        if seen.insert(name.clone()) {
            let schema = &mut components["schemas"][&name];
            fields(schema);
            references(schema, &mut bodies);
        }
    }
}

/// Collects the schemas to which this refers.
fn references(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            let name = members.get("$ref").and_then(Value::as_str);
            names.extend(name.and_then(|name| Some(name.rsplit_once('/')?.1.to_owned())));
            members
                .values()
                .for_each(|member| references(member, names));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn parameters(operation: &mut Value) {
    for parameter in operation["parameters"].as_array_mut().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default().to_owned();
        let place = parameter["in"].as_str().unwrap_or_default().to_owned();
        whole(&mut parameter["schema"]);
        let Some(schema) = open_text(&mut parameter["schema"]) else {
            continue;
        };
        match (place.as_str(), name.as_str()) {
            ("path", "key" | "name") => bound(schema, KEY, 1, KEY_CHARS_MAX),
            ("path", _) => bound(schema, NAME, 1, NAME_CHARS_MAX),
            // A cursor depends on its list, so there is no pattern.
            ("query", "after") | ("header", "Last-Event-ID") => {
                schema.insert("format".to_owned(), json!("cursor"));
            }
            ("header", "If-Match") => {
                pattern(schema, IF_MATCH);
                schema.insert("examples".to_owned(), json!(["\"3\""]));
            }
            ("header", "Idempotency-Key") => pattern(schema, IDEMPOTENCY_KEY),
            _ => pattern(schema, TEXT),
        }
    }
}

/// The fields of a request's body.
fn fields(schema: &mut Value) {
    for (name, field) in schema["properties"].as_object_mut().into_iter().flatten() {
        let field = if field["type"] == "array" {
            &mut field["items"]
        } else {
            field
        };
        whole(field);
        let Some(schema) = open_text(field) else {
            continue;
        };
        match name.as_str() {
            "definition" | "definitionKey" | "state" => bound(schema, KEY, 1, KEY_CHARS_MAX),
            "id" => bound(schema, NAME, 1, NAME_CHARS_MAX),
            "reason" => bound(schema, REASON, 1, 2_000),
            name if NAME_FIELDS.contains(&name) => bound(schema, NAME, 1, NAME_CHARS_MAX),
            _ => pattern(schema, TEXT),
        }
    }
}

/// Sets the maximum of unsigned integers.
fn whole(schema: &mut Value) {
    if schema["type"] == "integer" && schema["minimum"] == 0 && schema["maximum"].is_null() {
        schema["maximum"] = json!(u32::MAX);
    }
}

/// The schema, if it is of texts without further rules.
fn open_text(schema: &mut Value) -> Option<&mut Map<String, Value>> {
    let is_text = match &schema["type"] {
        Value::String(one) => one == "string",
        Value::Array(several) => several.iter().any(|one| one == "string"),
        _ => false,
    };
    let schema = schema.as_object_mut()?;
    let is_open = ["enum", "format", "pattern"]
        .iter()
        .all(|keyword| !schema.contains_key(*keyword));
    (is_text && is_open).then_some(schema)
}

fn pattern(schema: &mut Map<String, Value>, pattern: &str) {
    schema.insert("pattern".to_owned(), json!(pattern));
}

fn bound(schema: &mut Map<String, Value>, text: &str, min: usize, max: usize) {
    pattern(schema, text);
    schema.insert("minLength".to_owned(), json!(min));
    schema.insert("maxLength".to_owned(), json!(max));
}

/// Adds the headers of an operation's successes, and its other statuses, each with a shared description.
fn answers(path: &str, method: &str, operation: &mut Value) {
    let statuses = statuses(path, method, operation);
    let Some(answers) = operation["responses"].as_object_mut() else {
        return;
    };
    for (status, answer) in answers.iter_mut() {
        let shows_instance = ["Changed", "Started", "InstanceView", "TaskDetail"]
            .iter()
            .any(|shown| names(&answer["content"], shown));
        let mut headers = json!({ "X-Request-Id": header("X-Request-Id") });
        if shows_instance {
            headers["ETag"] = header("ETag");
        }
        if status == "201"
            && (path.ends_with("/instances")
                || path.ends_with("/restart")
                || path.ends_with("/migrations"))
        {
            headers["Location"] = header("Location");
        }
        answer["headers"] = headers;
    }
    for status in statuses {
        let reference = format!("#/components/responses/Problem{status}");
        answers
            .entry(status.to_string())
            .or_insert_with(|| json!({ "$ref": reference }));
    }
}

fn header(name: &str) -> Value {
    json!({ "$ref": format!("#/components/headers/{name}") })
}

fn names(content: &Value, schema: &str) -> bool {
    content["application/json"]["schema"]["$ref"] == format!("#/components/schemas/{schema}")
}

fn statuses(path: &str, method: &str, operation: &Value) -> BTreeSet<u16> {
    let mut statuses = BTreeSet::from([431]);
    if !path.starts_with("/v1/") {
        return statuses;
    }
    statuses.extend([400, 401, 403, 500, 503]);
    let has = |name: &str| {
        let parameters = operation["parameters"].as_array();
        parameters.is_some_and(|all| all.iter().any(|one| one["name"] == name))
    };
    if path.contains('{') || method == "post" {
        statuses.insert(404);
    }
    if method == "post" || method == "put" {
        statuses.extend([409, 413, 415, 422, 424]);
    }
    // A route with dry runs is checked like a command, whatever its method.
    if has("dryRun") {
        statuses.extend([409, 422, 424]);
    }
    if has("If-Match") {
        statuses.insert(412);
    }
    // Attributes are compared with the declarations of definitions, and a report may be too long.
    if has("attribute.NAME") || path.starts_with("/v1/compliance/") {
        statuses.insert(422);
    }
    // An id in a path must be in normal form.
    let is_text = |one: &Value| one["in"] == "path" && one["schema"]["pattern"].is_string();
    if operation["parameters"]
        .as_array()
        .is_some_and(|all| all.iter().any(is_text))
    {
        statuses.insert(422);
    }
    // These routes call flow logic.
    if path.ends_with("/actions") || path.ends_with("/eligibility") {
        statuses.insert(424);
    }
    if path.starts_with("/v1/events") {
        statuses.insert(410);
    }
    if path == "/v1/events/stream" {
        statuses.insert(429);
    }
    statuses
}

/// The problems of each status.
fn problems() -> Value {
    let mut by_status: BTreeMap<u16, Vec<_>> = BTreeMap::new();
    for (code, status, title) in CODES {
        by_status.entry(*status).or_default().push((code, title));
    }
    let mut responses = Map::new();
    for (status, codes) in by_status {
        let lines: Vec<_> = codes
            .iter()
            .map(|(code, title)| format!("`{code}`: {title}."))
            .collect();
        let codes: Vec<_> = codes.iter().map(|(code, _)| code).collect();
        let mut headers = json!({ "X-Request-Id": header("X-Request-Id") });
        match status {
            401 => headers["WWW-Authenticate"] = header("WWW-Authenticate"),
            405 => headers["Allow"] = header("Allow"),
            429 | 503 => headers["Retry-After"] = header("Retry-After"),
            _ => {}
        }
        let schema = json!({ "allOf": [
            { "$ref": "#/components/schemas/Problem" },
            { "type": "object", "properties": { "status": { "const": status }, "code": { "enum": codes } } },
        ] });
        let response = json!({
            "description": lines.join(" "),
            "headers": headers,
            "content": { "application/problem+json": { "schema": schema } },
        });
        responses.insert(format!("Problem{status}"), response);
    }
    Value::Object(responses)
}

/// The headers of responses.
fn headers() -> Value {
    let text = |description: &str, pattern: &str| json!({ "description": description, "required": true, "schema": { "type": "string", "pattern": pattern } });
    json!({
        "Allow": text("The methods that the path takes", "^[A-Z]+(, ?[A-Z]+)*$"),
        "ETag": text("The instance's revision in quotes, for `If-Match`", "^\"[0-9]+\"$"),
        "Location": text("The path of the new resource", "^/v1/"),
        "Retry-After": { "description": "Seconds after which to try again", "required": true,
            "schema": { "type": "integer", "minimum": 1 } },
        "WWW-Authenticate": text("What was wrong with the token", "^Bearer realm=\"wrkflw\""),
        "X-Request-Id": text("The client's id of the request, or one made by the host; the log has it", "^[!-~]{1,128}$"),
    })
}

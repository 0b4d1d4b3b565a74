//! The parts of the document that all operations share: the problems of responses, their headers, and the patterns of
//! texts.
//!
//! This module changes the finished document, so that no handler has to repeat facts that follow from its path, method and
//! parameters. Clients can check all of these facts, and the tests check them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::super::problem::CODES;
use super::problems;
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
/// At least one visible character. The host trims U+0085, which `\s` of ECMAScript does not match.
const REASON: &str = "^[^\\u0000]*[^\\u0000\\s\\u0085][^\\u0000]*$";
const REASON_CHARS_MAX: usize = 2_000;
/// The kinds of texts in a path or in a field of a body, by their `format`, each with its pattern and its longest value. A field
/// without a format takes any text.
const TEXTS: [(&str, &str, usize); 3] = [
    ("name", NAME, NAME_CHARS_MAX),
    ("key", KEY, KEY_CHARS_MAX),
    ("reason", REASON, REASON_CHARS_MAX),
];

/// Completes the document in place.
pub(super) fn tighten(document: &mut Value) {
    open_objects(document);
    let mut bodies = BTreeSet::new();
    if let Some(paths) = document["paths"].as_object_mut() {
        for (path, item) in paths {
            for (method, operation) in item.as_object_mut().into_iter().flatten() {
                body(operation);
                references(&operation["requestBody"], &mut bodies);
                parameters(operation);
                answers(path, method, operation);
            }
        }
    }
    let components = &mut document["components"];
    components["responses"] = shared();
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

/// Declares that each object without declared members may have any. Otherwise a generator of TypeScript takes it for an empty object.
fn open_objects(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let is_object = has_type(members.get("type"), "object");
            let is_open = ["properties", "additionalProperties", "propertyNames"]
                .iter()
                .all(|keyword| !members.contains_key(*keyword));
            if is_object && is_open {
                members.insert("additionalProperties".to_owned(), json!(true));
            }
            members.values_mut().for_each(open_objects);
        }
        Value::Array(items) => items.iter_mut().for_each(open_objects),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Declares that an optional body, if there is one, is an object and never null.
fn body(operation: &mut Value) {
    let schema = operation.pointer_mut("/requestBody/content/application~1json/schema");
    let Some(schema) = schema else { return };
    let null = json!({ "type": "null" });
    let either = schema["oneOf"].as_array().cloned().unwrap_or_default();
    if let [one, other] = &either[..]
        && other == &null
    {
        *schema = one.clone();
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
        if declared(&mut parameter["schema"]) {
            continue;
        }
        let Some(schema) = open_text(&mut parameter["schema"]) else {
            continue;
        };
        match (place.as_str(), name.as_str()) {
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
    // An index would add the member to a schema without it, such as an enumeration.
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (_, field) in properties.into_iter().flatten() {
        value(field);
    }
}

/// A value of a request's body, with the items of a list, and the keys and values of a map.
fn value(schema: &mut Value) {
    for part in ["items", "propertyNames", "additionalProperties"] {
        if let Some(part) = schema.get_mut(part).filter(|part| part.is_object()) {
            value(part);
        }
    }
    whole(schema);
    if !declared(schema)
        && let Some(schema) = open_text(schema)
    {
        pattern(schema, TEXT);
    }
}

/// Replaces a `format` of `TEXTS` by its rules. Returns whether there was one.
fn declared(schema: &mut Value) -> bool {
    let format = schema["format"].as_str().unwrap_or_default();
    let known = TEXTS.iter().find(|(name, ..)| *name == format);
    let (Some((_, text, max)), Some(schema)) = (known, schema.as_object_mut()) else {
        return false;
    };
    schema.remove("format");
    bound(schema, text, 1, *max);
    true
}

/// Sets the maximum of unsigned integers.
fn whole(schema: &mut Value) {
    let is_integer = has_type(schema.get("type"), "integer");
    if is_integer && schema["minimum"] == 0 && schema["maximum"].is_null() {
        schema["maximum"] = json!(u32::MAX);
    }
}

/// Whether this `type` of a schema has the type, alone or among others.
fn has_type(types: Option<&Value>, wanted: &str) -> bool {
    match types {
        Some(Value::String(one)) => one == wanted,
        Some(Value::Array(several)) => several.iter().any(|one| one == wanted),
        _ => false,
    }
}

/// The schema, if it is of texts without further rules.
fn open_text(schema: &mut Value) -> Option<&mut Map<String, Value>> {
    let is_text = has_type(schema.get("type"), "string");
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

/// Adds the headers and descriptions of an operation's successes, and a response for each status of its problems: the shared
/// one, with the operation's own codes as its description.
fn answers(path: &str, method: &str, operation: &mut Value) {
    let of_statuses = by_status(|code| problems::codes(path, method, operation).contains(code));
    let parameters = operation["parameters"].as_array();
    let takes =
        |name: &str| parameters.is_some_and(|all| all.iter().any(|one| one["name"] == name));
    let (is_conditional, is_preferred) = (takes("If-None-Match"), takes("Prefer"));
    let Some(answers) = operation["responses"].as_object_mut() else {
        return;
    };
    for (status, answer) in answers.iter_mut() {
        success(path, status, answer);
        if is_preferred {
            commanded(path, answer);
        }
    }
    if is_conditional {
        let tag = match path {
            "/v1/instances/{id}" | "/v1/tasks/{id}" => "ETag",
            _ => "WeakETag",
        };
        answers["200"]["headers"]["ETag"] = header(tag);
        let not_modified = json!({
            "description": "the caller has this version; there is no body",
            "headers": { "X-Request-Id": header("X-Request-Id"), "ETag": header(tag) },
        });
        answers.insert("304".to_owned(), not_modified);
    }
    for (status, description) in of_statuses {
        let reference = format!("#/components/responses/Problem{status}");
        answers
            .entry(status.to_string())
            .or_insert_with(|| json!({ "$ref": reference, "description": description }));
    }
}

fn success(path: &str, status: &str, answer: &mut Value) {
    let shows_instance = [
        "CommandAnswer",
        "MigrationAnswer",
        "InstanceDetail",
        "TaskDetail",
    ]
    .iter()
    .any(|shown| names(&answer["content"], shown));
    let mut headers = json!({ "X-Request-Id": header("X-Request-Id") });
    if shows_instance {
        headers["ETag"] = header("ETag");
    }
    let begins = ["/instances", "/restart", "/migrations", "/cancellations"];
    if status == "201" && begins.iter().any(|end| path.ends_with(end)) {
        headers["Location"] = header("Location");
    }
    answer["headers"] = headers;
    // OpenAPI demands a description of each response.
    if answer["description"].as_str().is_none_or(str::is_empty) {
        answer["description"] = json!(match status {
            "201" => "created",
            "204" => "done; there is no body",
            "503" => "not ready",
            _ => "done",
        });
    }
}

/// The headers that the answer to a command may have.
fn commanded(path: &str, answer: &mut Value) {
    let headers = &mut answer["headers"];
    for name in ["Preference-Applied", "Idempotency-Replayed"] {
        headers[name] = header(name);
    }
    if path == "/v1/signals/{signal}" {
        headers["Location"] = header("SignalLocation");
    }
}

fn header(name: &str) -> Value {
    json!({ "$ref": format!("#/components/headers/{name}") })
}

fn names(content: &Value, schema: &str) -> bool {
    content["application/json"]["schema"]["$ref"] == format!("#/components/schemas/{schema}")
}

/// The statuses of these codes, and a description with the codes of each.
fn by_status(is_wanted: impl Fn(&str) -> bool) -> BTreeMap<u16, String> {
    let mut statuses: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for (code, status, title) in CODES.iter().filter(|(code, ..)| is_wanted(code)) {
        let line = format!("`{code}`: {title}.");
        statuses.entry(*status).or_default().push(line);
    }
    let joined = |(status, lines): (u16, Vec<String>)| (status, lines.join(" "));
    statuses.into_iter().map(joined).collect()
}

/// The responses with problems, by status. The schema does not list the codes as an enumeration, because a client must
/// accept codes of later releases.
fn shared() -> Value {
    let response = |(status, description): (u16, String)| {
        let mut headers = json!({ "X-Request-Id": header("X-Request-Id") });
        match status {
            401 => headers["WWW-Authenticate"] = header("WWW-Authenticate"),
            405 => headers["Allow"] = header("Allow"),
            429 | 503 => headers["Retry-After"] = header("Retry-After"),
            _ => {}
        }
        let schema = json!({ "$ref": "#/components/schemas/Problem" });
        let response = json!({
            "description": description,
            "headers": headers,
            "content": { "application/problem+json": { "schema": schema } },
        });
        (format!("Problem{status}"), response)
    };
    let statuses = by_status(|_| true).into_iter();
    Value::Object(statuses.map(response).collect())
}

/// The headers of responses.
fn headers() -> Value {
    let optional = |description: &str, pattern: &str| json!({ "description": description, "schema": { "type": "string", "pattern": pattern } });
    let text = |description: &str, pattern: &str| json!({ "description": description, "required": true, "schema": { "type": "string", "pattern": pattern } });
    json!({
        "Allow": text("The methods that the path takes", "^[A-Z]+(, ?[A-Z]+)*$"),
        "ETag": text("The instance's revision in quotes, for `If-Match`", "^\"[0-9]+\"$"),
        "WeakETag": optional("A weak tag of the content, for `If-None-Match`. An answer of more than 128 KiB has none", "^W/\"[!#-~]+\"$"),
        "Idempotency-Replayed": optional("There if an earlier request with the key had this answer", "^true$"),
        "Location": text("The path of the new resource", "^/v1/"),
        "SignalLocation": optional("The path of the status of the signal, if the host has it", "^/v1/signals/"),
        "Preference-Applied": optional("The preference of the request that the answer follows", "^return=(minimal|representation)$"),
        "Retry-After": { "description": "Seconds after which to try again", "required": true,
            "schema": { "type": "integer", "minimum": 1 } },
        "WWW-Authenticate": text("What was wrong with the token", "^Bearer realm=\"wrkflw\""),
        "X-Request-Id": text("The client's id of the request, or one made by the host; the log has it", "^[!-~]{1,128}$"),
    })
}

//! Ids must be in Unicode's normal form C. Otherwise two ids that look equal could be different. Names are ASCII.
//!
//! The texts of requests come from the OpenAPI document, so that none is forgotten. Ids in flows and settings are tested where
//! they are parsed.

use std::collections::BTreeMap;

use wrkflw_core::check::names::NAME_RULE;

use super::*;

/// `é` as two characters, which is not the normal form.
const OTHER: &str = "Rene\u{301}";
const OTHER_IN_PATH: &str = "Rene%CC%81";
const RULE: &str = "in Unicode's normal form C";
const SOME_ID: &str = "01900000-0000-7000-8000-000000000000";

/// The kind of a text in a body.
#[derive(PartialEq, Eq)]
enum Text {
    /// An id that somebody chose.
    Id,
    /// The key of a definition.
    Key,
    /// A text for people.
    Prose,
    /// A key, a state, a trigger or an outcome: letters, digits and a few signs of ASCII.
    Name,
    /// The value of a filter. In another form it matches nothing.
    Sought,
    /// A time, a URL or a list of types, each with its own syntax.
    Form,
}
use Text::{Form, Id, Key, Name, Prose, Sought};

/// Every text of every body.
const TEXTS: &[(&str, &str, Text)] = &[
    ("post /v1/cancellations", "/definitionKey", Key),
    ("post /v1/cancellations", "/filter/entityId", Sought),
    ("post /v1/cancellations", "/filter/entityType", Sought),
    ("post /v1/cancellations", "/filter/initiator", Sought),
    ("post /v1/cancellations", "/filter/state", Sought),
    ("post /v1/cancellations", "/reason", Prose),
    ("post /v1/dead-letters/{id}/discard", "/reason", Prose),
    ("post /v1/dead-letters/{id}/retry", "/reason", Prose),
    (
        "post /v1/definitions/{key}/versions/{version}/stop",
        "/reason",
        Prose,
    ),
    ("post /v1/embed-tokens", "/entityId", Id),
    ("post /v1/embed-tokens", "/entityType", Id),
    ("post /v1/embed-tokens", "/origin", Form),
    ("post /v1/embed-tokens", "/roles/*", Name),
    ("post /v1/embed-tokens", "/subject", Id),
    ("post /v1/events/replay", "/after", Form),
    ("post /v1/events/replay", "/reason", Prose),
    ("post /v1/events/replay", "/until", Form),
    ("post /v1/instances", "/definitionKey", Name),
    ("post /v1/instances", "/entityId", Id),
    ("post /v1/instances", "/entityType", Id),
    ("post /v1/instances/search", "/after", Form),
    ("post /v1/instances/search", "/attributes/*/name", Sought),
    ("post /v1/instances/search", "/definitionKey", Sought),
    ("post /v1/instances/search", "/entityId", Sought),
    ("post /v1/instances/search", "/entityType", Sought),
    ("post /v1/instances/search", "/everOwner", Sought),
    ("post /v1/instances/search", "/fields/*", Sought),
    ("post /v1/instances/search", "/initiator", Sought),
    ("post /v1/instances/search", "/owner", Sought),
    ("post /v1/instances/search", "/q", Sought),
    ("post /v1/instances/search", "/state", Sought),
    ("post /v1/instances/{id}/cancel", "/reason", Prose),
    ("post /v1/instances/{id}/comment", "/comment", Prose),
    ("post /v1/instances/{id}/comment", "/mentions/*", Name),
    ("post /v1/instances/{id}/migrate", "/states/*", Name),
    ("post /v1/instances/{id}/signals/{trigger}", "/id", Id),
    ("post /v1/instances/{id}/suspend", "/reason", Prose),
    ("post /v1/migrations", "/definitionKey", Key),
    ("post /v1/migrations", "/filter/entityId", Sought),
    ("post /v1/migrations", "/filter/entityType", Sought),
    ("post /v1/migrations", "/filter/initiator", Sought),
    ("post /v1/migrations", "/filter/state", Sought),
    ("post /v1/migrations", "/states/*", Name),
    ("post /v1/names", "/groups/*", Sought),
    ("post /v1/names", "/people/*", Sought),
    ("post /v1/people/{id}/absences", "/definitionKey", Key),
    ("post /v1/people/{id}/absences", "/substitute", Id),
    ("post /v1/signals/{signal}", "/correlation", Id),
    ("post /v1/signals/{signal}", "/definitionKey", Key),
    ("post /v1/signals/{signal}", "/id", Id),
    ("post /v1/subscriptions", "/definitionKey", Key),
    ("post /v1/subscriptions", "/types/*", Form),
    ("post /v1/subscriptions", "/url", Form),
    (
        "post /v1/subscriptions/{id}/deliveries/{delivery}/discard",
        "/reason",
        Prose,
    ),
    ("post /v1/tasks/bulk", "/comment", Prose),
    ("post /v1/tasks/bulk", "/filter/definitionKey", Sought),
    ("post /v1/tasks/bulk", "/filter/entityId", Sought),
    ("post /v1/tasks/bulk", "/filter/entityType", Sought),
    ("post /v1/tasks/bulk", "/filter/label", Sought),
    ("post /v1/tasks/bulk", "/filter/owner", Sought),
    ("post /v1/tasks/bulk", "/filter/q", Sought),
    ("post /v1/tasks/bulk", "/filter/state", Sought),
    ("post /v1/tasks/bulk", "/outcome", Name),
    ("post /v1/tasks/bulk", "/reason", Prose),
    ("post /v1/tasks/bulk", "/to", Id),
    ("post /v1/tasks/{id}/decide", "/comment", Prose),
    ("post /v1/tasks/{id}/decide", "/outcome", Name),
    ("post /v1/tasks/{id}/delegate", "/reason", Prose),
    ("post /v1/tasks/{id}/delegate", "/to", Id),
    ("post /v1/tasks/{id}/reassign", "/reason", Prose),
    ("post /v1/tasks/{id}/reassign", "/to", Id),
    ("post /v1/tasks/{id}/reset", "/reason", Prose),
    ("post /v1/tasks/{id}/suspend", "/reason", Prose),
    ("put /v1/calendars/{name}", "/exceptions/*/*/from", Form),
    ("put /v1/calendars/{name}", "/exceptions/*/*/until", Form),
    ("put /v1/calendars/{name}", "/holidays/*", Form),
    ("put /v1/calendars/{name}", "/hours/*/*/from", Form),
    ("put /v1/calendars/{name}", "/hours/*/*/until", Form),
    ("put /v1/calendars/{name}", "/timeZone", Form),
    ("put /v1/groups/{id}", "/name", Prose),
    ("put /v1/me/preferences", "/language", Form),
    ("put /v1/me/preferences", "/timeZone", Form),
    ("put /v1/me/views/{id}", "/name", Prose),
    ("put /v1/me/views/{id}", "/query", Form),
    ("put /v1/people/{id}", "/name", Prose),
    ("put /v1/people/{id}/manager", "/manager", Id),
    ("put /v1/roles/{id}", "/permissions/*", Name),
    ("put /v1/tasks/{id}/draft", "/comment", Prose),
];

/// A valid body of each operation that takes an id.
fn body(operation: &str) -> Value {
    match operation {
        "post /v1/cancellations" => {
            json!({ "definitionKey": "document-approval", "version": 1, "filter": {}, "reason": "Why." })
        }
        "post /v1/embed-tokens" => {
            json!({ "subject": "reviewer", "roles": ["user"], "entityType": "document", "entityId": "doc-1", "origin": "https://documents.example" })
        }
        "post /v1/events/replay" => json!({ "after": "earliest", "reason": "Why." }),
        "post /v1/instances" => {
            json!({ "definitionKey": "document-approval", "entityType": "document", "entityId": "doc-1", "data": { "title": "A plan" } })
        }
        "post /v1/instances/{id}/signals/{trigger}" => json!({ "id": "s-1" }),
        "post /v1/migrations" => {
            json!({ "definitionKey": "document-approval", "fromVersion": 1, "version": 2 })
        }
        "post /v1/people/{id}/absences" => {
            json!({ "substitute": "reviewer2", "from": "2100-01-01T00:00:00Z", "until": "2100-01-20T00:00:00Z" })
        }
        "post /v1/signals/{signal}" => json!({ "correlation": "order 7", "id": "s-1" }),
        "post /v1/subscriptions" => json!({ "url": "https://example.org/hook", "types": ["*"] }),
        "post /v1/tasks/bulk" => {
            json!({ "action": "reassign", "taskIds": [SOME_ID], "to": "reviewer", "reason": "Why." })
        }
        "post /v1/tasks/{id}/delegate" | "post /v1/tasks/{id}/reassign" => {
            json!({ "to": "reviewer", "reason": "Why." })
        }
        "put /v1/people/{id}/manager" => json!({ "manager": "approver" }),
        _ => panic!("{operation} takes an id, and has no body here"),
    }
}

/// The OpenAPI document, whose references can be resolved.
pub(super) struct Document(Value);

impl Document {
    pub(super) fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(reference) => {
                let place = reference.strip_prefix('#').expect("within");
                self.0.pointer(place).expect("a schema")
            }
            None => schema,
        }
    }

    /// Operations by their `method /path`.
    pub(super) fn operations(&self) -> impl Iterator<Item = (String, &Value)> {
        let paths = self.0["paths"].as_object().expect("paths");
        paths.iter().flat_map(|(path, item)| {
            let methods = item.as_object().expect("methods").iter();
            methods.map(move |(method, operation)| (format!("{method} {path}"), operation))
        })
    }

    /// The schema of a member of the body of an operation.
    fn member(&self, operation: &str, place: &str) -> &Value {
        let mut operations = self.operations();
        let found = operations.find(|(one, _)| one == operation);
        let (_, about) = found.expect("an operation");
        let body = &about["requestBody"]["content"]["application/json"]["schema"];
        place
            .split('/')
            .skip(1)
            .fold(self.resolved(body), |schema, name| {
                self.resolved(&schema["properties"][name])
            })
    }

    /// Adds the JSON Pointers of free texts below a schema to `found`.
    fn texts(&self, schema: &Value, place: &str, found: &mut Vec<String>) {
        let schema = self.resolved(schema);
        for several in ["oneOf", "anyOf", "allOf"] {
            for one in schema[several].as_array().into_iter().flatten() {
                self.texts(one, place, found);
            }
        }
        if is_text(schema) {
            found.push(place.to_owned());
        }
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            self.texts(member, &format!("{place}/{name}"), found);
        }
        for each in ["items", "additionalProperties"] {
            if schema[each].is_object() {
                self.texts(&schema[each], &format!("{place}/*"), found);
            }
        }
    }
}

/// Whether any text is allowed: no enumeration, no UUID, no time.
fn is_text(schema: &Value) -> bool {
    let is = |kind: &Value| kind == "string";
    let text = is(&schema["type"])
        || schema["type"]
            .as_array()
            .is_some_and(|kinds| kinds.iter().any(is));
    let format = schema["format"].as_str().unwrap_or_default();
    text && schema["enum"].is_null() && !["uuid", "date-time"].contains(&format)
}

pub(super) async fn document(app: &TestApp) -> Document {
    Document(app.get("", "/openapi.json").await.expect(200))
}

pub(super) async fn send(app: &TestApp, operation: &str, path: &str, body: &Value) -> Answer {
    let (method, _) = operation.split_once(' ').expect("a method");
    let body = (method != "get" && method != "delete").then(|| body.clone());
    let host = app.host();
    host.send("admin", &method.to_uppercase(), path, &[], body)
        .await
}

#[track_caller]
fn refused(operation: &str, answer: Answer, pointer: &str, rule: &str) {
    assert_eq!(answer.status, 422, "{operation} {pointer}: {}", answer.text);
    let problem = answer.problem(422, "invalid_request");
    let found = (
        &problem["errors"][0]["pointer"],
        &problem["errors"][0]["detail"],
    );
    assert_eq!(found, (&json!(pointer), &json!(rule)), "{operation}");
}

#[tokio::test]
async fn every_text_of_a_body_has_one_form_or_is_no_id() {
    let app = TestApp::start().await;
    let document = document(&app).await;
    let mut found = Vec::new();
    for (name, operation) in document.operations() {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let mut texts = Vec::new();
        document.texts(schema, "", &mut texts);
        found.extend(texts.into_iter().map(|place| (name.clone(), place)));
    }
    found.sort();
    let known = TEXTS.iter();
    let known: Vec<_> = known
        .map(|(operation, place, _)| ((*operation).to_owned(), (*place).to_owned()))
        .collect();
    assert_eq!(found, known, "TEXTS does not say what these are");
    for (operation, place, text) in TEXTS {
        // The document describes the form of each id and key by the type of its field.
        let beginning = match text {
            Id => "^[^\\u0000-",
            Key => "^[A-Za-z_]",
            Form | Name | Prose | Sought => continue,
        };
        let member = document.member(operation, place);
        let pattern = member["pattern"].as_str().unwrap_or_default();
        assert!(
            pattern.starts_with(beginning) && member["maxLength"].is_number(),
            "{operation} {place}: {member}"
        );
    }
    let before = rows(&app).await;
    let mut tried = 0;
    for (operation, place, text) in TEXTS {
        let rule = match text {
            Id => RULE,
            Key => NAME_RULE,
            Form | Name | Prose | Sought => continue,
        };
        let mut body = body(operation);
        let member = place.strip_prefix('/').expect("a member of the body");
        body[member] = json!(OTHER);
        let (_, path) = operation.split_once(' ').expect("a path");
        let path = filled(path, |name| {
            ["person", "signal", "trigger"]
                .contains(&name)
                .then_some("PAID")
        });
        refused(
            operation,
            send(&app, operation, &path, &body).await,
            place,
            rule,
        );
        tried += 1;
    }
    assert!(tried > 10, "{tried} ids");
    assert_eq!(rows(&app).await, before);
}

/// The path with a value for each parameter.
pub(super) fn filled(path: &str, of: impl Fn(&str) -> Option<&'static str>) -> String {
    let parts = path.split('/').map(|part| {
        let name = part
            .strip_prefix('{')
            .and_then(|part| part.split('}').next());
        name.map_or(part, |name| of(name).unwrap_or(SOME_ID))
    });
    parts.collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn every_text_in_a_path_has_one_form() {
    let app = TestApp::start().await;
    let document = document(&app).await;
    let before = rows(&app).await;
    let mut tried = BTreeMap::new();
    for (operation, about) in document.operations() {
        let (_, path) = operation.split_once(' ').expect("a path");
        let parameters = about["parameters"].as_array();
        for parameter in parameters.into_iter().flatten() {
            let name = parameter["name"].as_str().expect("a name");
            if parameter["in"] != "path" || !is_text(document.resolved(&parameter["schema"])) {
                continue;
            }
            // The beginning of an id has a rule of its own.
            if name == "prefix" {
                continue;
            }
            let path = filled(path, |part| match part {
                _ if part == name => Some(OTHER_IN_PATH),
                "version" => Some("1"),
                _ => None,
            });
            let answer = send(&app, &operation, &path, &json!({})).await;
            refused(&operation, answer, &format!("/{name}"), RULE);
            *tried.entry(name.to_owned()).or_insert(0) += 1;
        }
    }
    let names: Vec<_> = tried.keys().map(String::as_str).collect();
    let known = ["id", "key", "name", "person", "signal", "trigger", "type"];
    assert_eq!(names, known, "{tried:?}");
    assert_eq!(rows(&app).await, before);
}

/// An idempotency key is ASCII, so it has one form.
#[tokio::test]
async fn an_idempotency_key_is_ascii() {
    let app = TestApp::start().await;
    let host = app.host();
    let request = host.request("author", "POST", "/v1/instances");
    let key = axum::http::HeaderValue::from_bytes(OTHER.as_bytes()).expect("bytes");
    let request = request
        .header("idempotency-key", key)
        .header("content-type", "application/json")
        .body(Body::from(body("post /v1/instances").to_string()));
    let answer = host.answer(request.expect("a request")).await;
    answer.problem(400, "malformed_request");
}

/// A name in any usual style works in the path, the lists, the history and the diagram.
#[tokio::test]
async fn names_may_have_any_usual_style() {
    const KEY: &str = "com.example.workflows.order-processing";
    let app = TestApp::empty().await;
    let config = json!({ "state": "PENDING_REVIEW" });
    let published = app.publish(KEY, guests::committee(), &config).await;
    published.expect(201);
    let version = format!("/v1/definitions/{KEY}/versions/1");
    let activate = format!("{version}/activate");
    app.post("admin", &activate, json!({})).await.expect(200);
    let body = json!({
        "definitionKey": KEY, "entityType": "case", "entityId": "1",
        "data": { "assign": { "offers": [{ "users": ["approver"] }] } },
    });
    let started = app.post("author", "/v1/instances", body).await.started();
    let task = task_of(&started);
    let listed = format!("/v1/tasks?view=available&definitionKey={KEY}&state=PENDING_REVIEW");
    let listed = app.get("approver", &listed).await.expect(200);
    assert_eq!(listed["data"][0]["id"], json!(task));
    let history = format!(
        "/v1/instances/{}/history",
        started["id"].as_str().expect("an id")
    );
    let history = app.get("author", &history).await;
    assert!(history.text.contains("PENDING_REVIEW"), "{}", history.text);
    let drawn = app.get("admin", &format!("{version}/diagram.svg")).await;
    assert!(drawn.text.contains("PENDING_REVIEW"), "{}", drawn.text);
}

//! The OpenAPI document is valid, describes every route, and equals the committed file.

use std::collections::BTreeSet;
use std::path::Path;

use wrkflw_core::event::reasons;
use wrkflw_server::http::extract::SEVERAL;

use super::*;

const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];
/// Every route of the document.
const ROUTES: &[&str] = &[
    "post /v1/definitions/{key}/versions",
    "get /v1/definitions",
    "get /v1/definitions/{key}/versions",
    "get /v1/definitions/{key}",
    "get /v1/definitions/{key}/versions/{version}",
    "post /v1/definitions/{key}/versions/{version}/activate",
    "post /v1/definitions/{key}/versions/{version}/retire",
    "post /v1/definitions/{key}/versions/{version}/reinstate",
    "post /v1/definitions/{key}/versions/{version}/stop",
    "post /v1/definitions/{key}/versions/{version}/resume",
    "post /v1/cancellations",
    "get /v1/jobs",
    "get /v1/series",
    "get /v1/refusals",
    "get /v1/hosts",
    "get /v1/definitions/{key}/versions/{version}/diagram.svg",
    "post /v1/instances",
    "get /v1/instances",
    "post /v1/instances/search",
    "get /v1/instances/{id}",
    "get /v1/instances/{id}/history",
    "get /v1/instances/{id}/audit",
    "get /v1/instances/{id}/changes",
    "get /v1/instances/{id}/custody",
    "get /v1/instances/{id}/verification",
    "get /v1/instances/{id}/actions",
    "get /v1/instances/{id}/diagram.svg",
    "get /v1/instances/{id}/eligibility",
    "post /v1/instances/{id}/comment",
    "get /v1/instances/{id}/comments",
    "get /v1/instances/{id}/signals",
    "post /v1/instances/{id}/cancel",
    "post /v1/instances/{id}/suspend",
    "post /v1/instances/{id}/resume",
    "post /v1/instances/{id}/restart",
    "post /v1/instances/{id}/migrate",
    "post /v1/migrations",
    "get /v1/dead-letters",
    "get /v1/dead-letters/{id}",
    "post /v1/dead-letters/{id}/retry",
    "post /v1/dead-letters/{id}/discard",
    "get /v1/operations",
    "get /v1/operations/{id}",
    "get /v1/operations/{id}/items",
    "post /v1/operations/{id}/stop",
    "post /v1/instances/{id}/signals/{trigger}",
    "post /v1/signals/{signal}",
    "get /v1/entities/{type}/{id}/history",
    "get /v1/entities/{type}/{id}/custody",
    "get /v1/audit",
    "get /v1/checkpoints",
    "get /v1/compliance/self-approvals",
    "get /v1/tasks",
    "get /v1/tasks/{id}",
    "post /v1/tasks/{id}/claim",
    "post /v1/tasks/{id}/release",
    "post /v1/tasks/{id}/decide",
    "post /v1/tasks/{id}/delegate",
    "post /v1/tasks/{id}/resolve",
    "post /v1/tasks/{id}/suspend",
    "post /v1/tasks/{id}/resume",
    "post /v1/tasks/{id}/reassign",
    "post /v1/tasks/{id}/reset",
    "post /v1/tasks/bulk",
    "get /v1/events",
    "get /v1/events/stream",
    "get /v1/me",
    "get /v1/me/preferences",
    "put /v1/me/preferences",
    "get /v1/me/sessions",
    "delete /v1/me/sessions/{id}",
    "get /v1/me/views",
    "put /v1/me/views/{id}",
    "delete /v1/me/views/{id}",
    "get /v1/tasks/{id}/draft",
    "put /v1/tasks/{id}/draft",
    "post /v1/embed-tokens",
    "get /v1/ids/{prefix}",
    "get /v1/roles",
    "get /v1/roles/{id}",
    "put /v1/roles/{id}",
    "get /v1/people",
    "post /v1/names",
    "post /v1/events/replay",
    "get /v1/people/{id}",
    "put /v1/people/{id}",
    "put /v1/people/{id}/manager",
    "delete /v1/people/{id}/manager",
    "get /v1/people/{id}/absences",
    "post /v1/people/{id}/absences",
    "delete /v1/people/{id}/absences/{absence}",
    "get /v1/groups",
    "get /v1/groups/{id}",
    "put /v1/groups/{id}",
    "put /v1/groups/{id}/members/{person}",
    "delete /v1/groups/{id}/members/{person}",
    "get /v1/calendars",
    "get /v1/calendars/{name}",
    "put /v1/calendars/{name}",
    "delete /v1/calendars/{name}",
    "get /v1/signals/{signal}",
    "get /v1/notifications",
    "post /v1/notifications/{id}/read",
    "post /v1/subscriptions",
    "get /v1/subscriptions",
    "get /v1/subscriptions/{id}",
    "delete /v1/subscriptions/{id}",
    "get /v1/subscriptions/{id}/deliveries",
    "post /v1/subscriptions/{id}/deliveries/retry",
    "post /v1/subscriptions/{id}/test",
    "get /v1/subscriptions/{id}/deliveries/{delivery}/attempts",
    "post /v1/subscriptions/{id}/deliveries/{delivery}/retry",
    "post /v1/subscriptions/{id}/deliveries/{delivery}/discard",
    "get /livez",
    "get /readyz",
    "get /metrics",
];

/// One operation of the document.
pub(crate) struct Operation {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(super) described: Value,
}

impl Operation {
    pub(super) fn has_parameter(&self, name: &str) -> bool {
        let parameters = self.described["parameters"].as_array();
        parameters.is_some_and(|all| all.iter().any(|one| one["name"] == name))
    }
}

pub(super) async fn document(app: &TestApp) -> Value {
    app.get("", "/openapi.json").await.expect(200)
}

/// All operations below `/v1/`.
pub(crate) async fn operations(app: &TestApp) -> Vec<Operation> {
    let all = all_operations(&document(app).await);
    all.into_iter()
        .filter(|one| one.path.starts_with("/v1/"))
        .collect()
}

fn all_operations(document: &Value) -> Vec<Operation> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, described) in item.as_object().expect("operations") {
            assert!(METHODS.contains(&method.as_str()), "{method} {path}");
            let (method, path, described) = (method.clone(), path.clone(), described.clone());
            found.push(Operation {
                method,
                path,
                described,
            });
        }
    }
    found
}

#[tokio::test]
async fn every_route_is_described_and_no_other() {
    let app = TestApp::empty().await;
    let described: BTreeSet<String> = all_operations(&document(&app).await)
        .iter()
        .map(|one| format!("{} {}", one.method, one.path))
        .collect();
    let expected: BTreeSet<String> = ROUTES.iter().map(ToString::to_string).collect();
    assert_eq!(described, expected);
}

/// Every operation that the configuration of the contract test names exists.
#[test]
fn exceptions_of_the_contract_test_name_operations() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/schemathesis/config.toml");
    let config = std::fs::read_to_string(file).expect("a configuration");
    let rules = config.lines().filter(|line| !line.starts_with('#'));
    let quoted = rules.flat_map(|line| line.split('"').skip(1).step_by(2));
    let mut named = 0;
    for operation in quoted {
        let method = operation.split(' ').next().unwrap_or_default();
        if METHODS.contains(&method.to_ascii_lowercase().as_str()) {
            let route = operation.replacen(method, &method.to_ascii_lowercase(), 1);
            assert!(
                ROUTES.contains(&route.as_str()),
                "{operation} is no operation"
            );
            named += 1;
        }
    }
    assert!(named > 10, "{named} names are read");
}

/// Calls `visit` for every object in the document.
fn walk(value: &Value, visit: &mut dyn FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            visit(members);
            members.values().for_each(|member| walk(member, visit));
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn the_document_is_sound_openapi() {
    let app = TestApp::empty().await;
    let document = document(&app).await;
    assert!(
        document["openapi"]
            .as_str()
            .expect("a version")
            .starts_with("3.1.")
    );
    assert!(document["info"]["title"].is_string() && document["info"]["version"].is_string());
    // Generated Python code has a variable for each, and type checkers would mix up the two.
    for (name, schema) in document["components"]["schemas"]
        .as_object()
        .expect("schemas")
    {
        walk(schema, &mut |part| {
            let members = part.get("properties").and_then(Value::as_object);
            let mut members = members.into_iter().flatten();
            let same = members.find(|(member, _)| member.eq_ignore_ascii_case(name));
            assert!(same.is_none(), "{name} has a member of its own name");
        });
    }
    walk(&document, &mut |object| {
        assert!(
            object.get("properties").is_none_or(Value::is_object),
            "{object:?}"
        );
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').expect("a local reference");
            assert!(
                document.pointer(pointer).is_some(),
                "{reference} leads nowhere"
            );
        }
    });
    let mut ids = BTreeSet::new();
    for operation in all_operations(&document) {
        let (described, name) = (
            &operation.described,
            format!("{} {}", operation.method, operation.path),
        );
        let id = described["operationId"].as_str().expect("an id").to_owned();
        assert!(
            ids.insert(id.clone()),
            "{name}: {id} stands for another operation, too"
        );
        assert!(described["summary"].is_string(), "{name} has no summary");
        let success = described["responses"]
            .as_object()
            .expect("responses")
            .keys();
        assert!(
            success.into_iter().any(|status| status.starts_with('2')),
            "{name}"
        );
        let is_open = !operation.path.starts_with("/v1/");
        assert_eq!(described["security"] == json!([{}]), is_open, "{name}");
        answered(&document, &operation, &name);
        placed(&operation, &name);
    }
}

/// Every status is listed, without a `default`. Every problem code belongs to the status under which it is listed.
fn answered(document: &Value, operation: &Operation, name: &str) {
    let responses = operation.described["responses"].as_object();
    let responses = responses.expect("responses");
    assert!(!responses.contains_key("default"), "{name}");
    if operation.path.starts_with("/v1/") {
        for status in ["400", "401", "403", "431", "500", "503"] {
            assert!(responses.contains_key(status), "{name}: {status}");
        }
    }
    for (status, response) in responses {
        let description = response["description"].as_str().expect("a description");
        let reference = response["$ref"].as_str();
        let found = reference.map_or(response, |pointer| {
            document.pointer(&pointer[1..]).expect("a response")
        });
        assert!(found["headers"]["X-Request-Id"].is_object(), "{name}");
        // The codes of this operation.
        let codes = description.split('`').skip(1).step_by(2);
        for code in codes.filter(|_| reference.is_some()) {
            let known = wrkflw_server::http::problem::CODES.iter();
            let at: Vec<_> = known.filter(|(known, ..)| code == *known).collect();
            assert_eq!(at.len(), 1, "{name}: {code}");
            assert_eq!(&at[0].1.to_string(), status, "{name}: {code}");
        }
    }
}

/// Every parameter occurs once, and its location (path, query or header) is right. A path parameter has a description.
fn placed(operation: &Operation, name: &str) {
    let parameters = operation.described["parameters"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let mut seen = BTreeSet::new();
    for parameter in &parameters {
        let called = parameter["name"].as_str().expect("a name");
        let place = parameter["in"].as_str().expect("a place");
        assert!(seen.insert((called, place)), "{name}: {called} twice");
        let in_path = operation.path.contains(&format!("{{{called}}}"));
        assert_eq!(place == "path", in_path, "{name}: {called}");
        let schema = &parameter["schema"];
        let is_open = schema["maximum"].is_null()
            && schema["maxLength"].is_null()
            && schema["format"] != "uuid";
        assert!(!in_path || !is_open, "{name}: {called}: any text?");
        // Clients may give these several times, so each must be an array.
        assert_eq!(
            schema["type"] == "array",
            place == "query" && SEVERAL.contains(&called),
            "{name}: {called}"
        );
        let headers = [
            "Idempotency-Key",
            "If-Match",
            "If-None-Match",
            "Last-Event-ID",
            "Prefer",
        ];
        assert_eq!(
            place == "header",
            headers.contains(&called),
            "{name}: {called}"
        );
        assert_eq!(parameter["required"] == true, in_path, "{name}: {called}");
    }
    let in_path = operation.path.matches('{').count();
    assert_eq!(
        seen.iter().filter(|(_, place)| *place == "path").count(),
        in_path,
        "{name}"
    );
}

#[tokio::test]
async fn every_problem_code_is_documented() {
    let app = TestApp::empty().await;
    let document = document(&app).await;
    let text = document["info"]["description"]
        .as_str()
        .expect("a description");
    for (code, status, _) in wrkflw_server::http::problem::CODES {
        assert!(text.contains(&format!("`{code}` ({status})")), "{code}");
    }
}

#[tokio::test]
async fn an_idempotency_key_has_the_described_form() {
    let app = TestApp::empty().await;
    let mut for_good = BTreeSet::new();
    for operation in operations(&app).await {
        let id = operation.described["operationId"].as_str().expect("an id");
        let parameters = operation.described["parameters"].as_array();
        let mut parameters = parameters.into_iter().flatten();
        let Some(key) = parameters.find(|one| one["name"] == "Idempotency-Key") else {
            continue;
        };
        assert_ne!(id, "activateVersion", "it reads none");
        let description = key["description"].as_str().expect("a description");
        if !description.contains("24 hours") {
            assert!(description.contains("for good"), "{id}: {description}");
            for_good.insert(id.to_owned());
        }
    }
    let expected = ["cancelInstances", "createAbsence", "migrateInstances"];
    assert_eq!(for_good, BTreeSet::from(expected.map(str::to_owned)));
}

/// Every change of the API also changes the committed file, which reviewers read.
#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test command says whether to write the file anew"
)]
async fn the_document_is_the_committed_one() {
    let app = TestApp::empty().await;
    let served = app.get("", "/openapi.json").await.text;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("api/openapi.json");
    if std::env::var("UPDATE").is_ok_and(|update| update == "1") {
        std::fs::write(&file, &served).expect("the file can be written");
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = served
        .lines()
        .zip(committed.lines())
        .position(|(served, committed)| served != committed);
    assert!(
        served == committed,
        "the API differs from {} at line {}. If that is intended, run the tests with UPDATE=1 and commit the file.",
        file.display(),
        differs.unwrap_or_else(|| served.lines().count().min(committed.lines().count())) + 1,
    );
}

/// Enumerations of the document have the values of the core and of the event schemas.
#[tokio::test]
async fn enumerations_are_those_of_the_core_and_of_events() {
    let app = TestApp::empty().await;
    let document = document(&app).await;
    let index = app.get("", "/schemas/").await.expect(200);
    let urls = index["data"].as_array().expect("types").iter();
    let urls: Vec<_> = urls
        .map(|one| one["dataschema"].as_str().expect("a URL").to_owned())
        .collect();
    for (shape, values, event, member) in [
        (
            "EscalationReason",
            reasons::ESCALATIONS,
            "task.escalated",
            "/reason",
        ),
        (
            "TaskCancelReason",
            reasons::CANCELLATIONS,
            "task.cancelled",
            "/reason",
        ),
        (
            "CandidateType",
            &["user", "group", "member"],
            "task.rerouted",
            "/candidates/items/properties/type",
        ),
    ] {
        let of_api = &document["components"]["schemas"][shape]["enum"];
        let ours: BTreeSet<&str> = of_api
            .as_array()
            .expect("an enumeration")
            .iter()
            .map(|value| value.as_str().expect("a text"))
            .collect();
        assert_eq!(ours, values.iter().copied().collect(), "{shape}");
        let end = format!(".{event}.json");
        let url = urls.iter().find(|url| url.ends_with(&end));
        let url = url.unwrap_or_else(|| panic!("no schema of {event}"));
        let path = &url[url.find("/schemas/").expect("a path")..];
        let schema = app.get("", path).await.expect(200);
        let of_event = schema["properties"].pointer(member).expect("a member");
        let of_event: BTreeSet<&str> = of_event["enum"]
            .as_array()
            .expect("an enumeration")
            .iter()
            .map(|value| value.as_str().expect("a text"))
            .collect();
        assert_eq!(of_event, ours, "{event}");
    }
    // Each field that was a plain text uses its enumeration.
    for (object, member, shape) in [
        ("EscalationView", "reason", "EscalationReason"),
        ("TaskView", "cancelReason", "TaskCancelReason"),
        ("CloudEventShape", "authtype", "AuthType"),
    ] {
        let member = &document["components"]["schemas"][object]["properties"][member];
        let reference = format!("#/components/schemas/{shape}");
        assert!(
            member.to_string().contains(&reference),
            "{object}: {member}"
        );
    }
}

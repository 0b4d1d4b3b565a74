//! A malformed parameter of a path or a query is refused with its pointer and a message of the API. Covers every parameter of
//! every operation in the OpenAPI document.

use super::spelling::{Document, document, filled, send};
use super::*;

/// Messages of libraries, which a caller would not understand.
const FOREIGN: &[&str] = &[
    "UUID",
    "parse",
    "serial",
    "Failed",
    "digit found",
    "variant",
    "field",
    "expected",
    "`",
];

/// The permitted values of a parameter, an invalid value, and words of the message.
struct Kind {
    name: &'static str,
    wrong: &'static str,
    words: Vec<String>,
}

/// The values of an enumeration, or the format and type, wherever the schema has them.
fn leaves(document: &Document, schema: &Value, found: &mut Vec<(String, String)>) {
    let schema = document.resolved(schema);
    for value in schema["enum"].as_array().into_iter().flatten() {
        if let Some(value) = value.as_str() {
            found.push(("enum".to_owned(), value.to_owned()));
        }
    }
    for several in ["oneOf", "anyOf", "allOf"] {
        for one in schema[several].as_array().into_iter().flatten() {
            leaves(document, one, found);
        }
    }
    if schema["items"].is_object() {
        leaves(document, &schema["items"], found);
    }
    let format = schema["format"].as_str().unwrap_or_default();
    let kinds = match &schema["type"] {
        Value::Array(several) => several.clone(),
        one => vec![one.clone()],
    };
    let kinds = kinds.iter().filter_map(Value::as_str);
    found.extend(kinds.map(|kind| (kind.to_owned(), format.to_owned())));
}

fn kind(document: &Document, schema: &Value) -> Option<Kind> {
    let mut found = Vec::new();
    leaves(document, schema, &mut found);
    let is = |kind: &str, format: &str| {
        let mut found = found.iter();
        found.any(|(one, of)| one == kind && (format.is_empty() || of == format))
    };
    let of = |name, wrong, words: &[&str]| {
        let words = words.iter().map(ToString::to_string).collect();
        Some(Kind { name, wrong, words })
    };
    if is("enum", "") {
        let values = found.iter().filter(|(kind, _)| kind == "enum");
        let words = values.map(|(_, value)| value.clone()).collect();
        return Some(Kind {
            name: "enum",
            wrong: "nothing-such",
            words,
        });
    }
    if is("string", "uuid") {
        return of("uuid", "zz", &["an id has 32 hexadecimal digits"]);
    }
    if is("string", "date-time") {
        return of("time", "noon", &["a time such as 2026-01-31T12:00:00Z"]);
    }
    if is("integer", "") {
        return of("integer", "many", &["must be a whole number"]);
    }
    if is("boolean", "") {
        return of("boolean", "perhaps", &["must be true or false"]);
    }
    None
}

#[track_caller]
fn refused(operation: &str, name: &str, answer: Answer, kind: &Kind, place: &str) {
    let (status, code) = match place {
        "path" => (404, "not_found"),
        _ => (400, "malformed_request"),
    };
    let problem = answer.problem(status, code);
    let error = &problem["errors"][0];
    assert_eq!(
        error["pointer"],
        format!("/{name}"),
        "{operation}: {problem}"
    );
    let detail = error["detail"].as_str().expect("a detail");
    for words in &kind.words {
        assert!(detail.contains(words), "{operation} {name}: {detail}");
    }
    let whole = problem["detail"].as_str().expect("a detail");
    for foreign in FOREIGN {
        assert!(!whole.contains(foreign), "{operation} {name}: {whole}");
    }
}

#[tokio::test]
async fn every_malformed_parameter_is_named_in_a_message_of_the_api() {
    let app = TestApp::start().await;
    let document = document(&app).await;
    let mut tried = std::collections::BTreeMap::new();
    for (operation, about) in document.operations() {
        let (_, path) = operation.split_once(' ').expect("a path");
        for parameter in about["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().expect("a name");
            let place = parameter["in"].as_str().expect("a place");
            let Some(kind) = kind(&document, &parameter["schema"]) else {
                continue;
            };
            let wrong = (place == "path").then_some(kind.wrong);
            let path = filled(path, |part| match part {
                _ if part == name => wrong,
                "version" => Some("1"),
                _ => None,
            });
            let path = match place {
                "path" => path,
                "query" => format!("{path}?{name}={}", kind.wrong),
                _ => continue,
            };
            let answer = send(&app, &operation, &path, &json!({})).await;
            refused(&operation, name, answer, &kind, place);
            *tried.entry((place.to_owned(), kind.name)).or_insert(0) += 1;
        }
    }
    let tried: Vec<_> = tried
        .iter()
        .map(|((place, kind), _)| format!("{place} {kind}"))
        .collect();
    let all = [
        "path integer",
        "path uuid",
        "query boolean",
        "query enum",
        "query integer",
        "query time",
        "query uuid",
    ];
    assert_eq!(tried, all);
}

/// Above all `dryRun`, which would otherwise be ignored.
#[tokio::test]
async fn an_operation_without_query_parameters_refuses_any() {
    let app = TestApp::start().await;
    let document = document(&app).await;
    let mut tried = 0;
    for (operation, about) in document.operations() {
        let (_, path) = operation.split_once(' ').expect("a path");
        let parameters = about["parameters"].as_array();
        let mut parameters = parameters.into_iter().flatten();
        if !path.starts_with("/v1/") || parameters.any(|one| one["in"] == "query") {
            continue;
        }
        let path = filled(path, |part| (part == "version").then_some("1"));
        let path = format!("{path}?dryRun=true");
        let answer = send(&app, &operation, &path, &json!({})).await;
        assert_eq!(answer.status, 400, "{operation}: {}", answer.text);
        let problem = answer.problem(400, "malformed_request");
        assert_eq!(problem["errors"][0]["pointer"], "/dryRun", "{operation}");
        tried += 1;
    }
    assert!(tried > 30, "{tried}");
}

/// A request with a wrong query, the code of the problem, the pointer, and the beginning of the detail.
const FAULTS: &[(&str, &str, &str, &str)] = &[
    (
        "/v1/instances?staus=RUNNING",
        "malformed_request",
        "/staus",
        "staus is unknown here; known: ",
    ),
    (
        "/v1/instances?state=A&state=B",
        "malformed_request",
        "/state",
        "state is given twice",
    ),
    (
        "/v1/instances?limit=0",
        "malformed_request",
        "/limit",
        "limit is 1 to 100",
    ),
    (
        "/v1/instances?limit=99999999999",
        "malformed_request",
        "/limit",
        "is too large a number",
    ),
    (
        "/v1/tasks?minPriority=-99999",
        "malformed_request",
        "/minPriority",
        "is too small a number",
    ),
    (
        "/v1/instances?after=x",
        "invalid_cursor",
        "/after",
        "pass the cursor of an earlier page unchanged",
    ),
    (
        "/v1/instances?q=%00",
        "malformed_request",
        "/q",
        "a query parameter has a NUL in it",
    ),
    (
        "/v1/instances?fields=nothing",
        "malformed_request",
        "/fields",
        "fields: nothing is none of ",
    ),
    (
        "/v1/tasks?outcome=APPROVE",
        "malformed_request",
        "/outcome",
        "outcome needs status=",
    ),
    (
        "/v1/me?dryRun=true",
        "malformed_request",
        "/dryRun",
        "this path takes no query parameters",
    ),
    (
        "/v1/series?stepSeconds=61",
        "malformed_request",
        "/stepSeconds",
        "stepSeconds is a multiple of 60",
    ),
];

#[tokio::test]
async fn other_errors_of_a_query_are_reported_too() {
    let app = TestApp::start().await;
    for (path, code, pointer, detail) in FAULTS {
        let problem = app.get("admin", path).await.problem(400, code);
        let error = &problem["errors"][0];
        assert_eq!(error["pointer"], *pointer, "{path}: {problem}");
        let found = error["detail"].as_str().expect("a detail");
        assert!(found.starts_with(detail), "{path}: {found}");
    }
    let attribute = app.get("admin", "/v1/instances?attribute.a/b=eq:1").await;
    let problem = attribute.problem(422, "invalid_request");
    assert_eq!(problem["errors"][0]["pointer"], "/attribute.a~1b");
}

#[tokio::test]
async fn a_body_that_is_no_json_is_refused_with_line_and_column() {
    let app = TestApp::start().await;
    for (text, place) in [
        (
            "{\n  \"entityId\": tru\n}",
            "an unexpected character (line 2, column 15)",
        ),
        (
            "{\"entityId\": \"1\",}",
            "an unexpected character (line 1, column 18)",
        ),
        ("{", "the text ends too early (line 1, column 2)"),
    ] {
        let answer = raw(
            &app.host(),
            "author",
            ("POST", "/v1/instances"),
            "application/json",
            text.as_bytes(),
        )
        .await;
        let problem = answer.problem(400, "malformed_json");
        assert_eq!(problem["errors"][0]["detail"], place, "{text}");
        assert_eq!(problem["detail"], format!("the body has {place}"));
    }
}

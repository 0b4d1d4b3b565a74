//! The examples of the OpenAPI document: this test sends the requests and records the responses.
//!
//! Ids, times and digests are replaced by fixed ones, so that the file changes only with the API. `UPDATE=1` writes the file. The
//! server must be compiled again to have it in the document.

mod steps;

use std::collections::BTreeMap;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use wrkflw_runtime::clock::Clock;

use super::openapi::{Operation, document, operations};
use super::*;
use crate::support::documented;

const FILE: &str = "../host/server/src/http/openapi/examples.json";
/// The longest example.
const EXAMPLE_BYTES_MAX: usize = 12_000;
/// The prefix of ids in the file. Their number follows.
const ID: &str = "01a20d00-0000-7000-8000-";
const ID_BYTES: usize = 36;
/// Times this close to the present belong to the run, such as the expiry of a signal.
const NEAR: SignedDuration = SignedDuration::from_hours(24 * 400);

/// Sends requests and records the first success of each operation.
struct Recorder {
    app: TestApp,
    operations: Vec<Operation>,
    recorded: BTreeMap<String, Value>,
    /// The ids of the run, in the order of their first occurrence.
    ids: Vec<String>,
    /// The values that later steps use as `$name`.
    names: BTreeMap<String, String>,
}

impl Recorder {
    async fn start() -> Recorder {
        let app = TestApp::start().await;
        let operations = operations(&app).await;
        Recorder {
            app,
            operations,
            recorded: BTreeMap::new(),
            ids: Vec::new(),
            names: BTreeMap::new(),
        }
    }

    /// Sends a request without preferences, which must succeed. Stores values of the response by `kept`: `name=/pointer`.
    async fn ask(&mut self, (user, line, body, kept): (&str, &str, &str, &str)) {
        let (line, body) = (self.filled(line), self.filled(body));
        let (method, path) = line.split_once(' ').expect("a method and a path");
        let host = self.app.host();
        let mut request = host.request(user, method, path);
        request.headers_mut().expect("headers").remove("prefer");
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        let request = request.body(Body::from(body.clone())).expect("a request");
        let answer = host.answer(request).await;
        assert!(answer.status < 300, "{line}: {}", answer.text);
        let body = serde_json::from_str(&body).unwrap_or(Value::Null);
        self.record(method, path, &body, &answer);
        for one in kept.split_whitespace() {
            let (name, pointer) = one.split_once('=').expect("a name and a pointer");
            let value = answer.body.pointer(pointer).and_then(Value::as_str);
            let value = value.unwrap_or_else(|| panic!("{line}: no {pointer} in {}", answer.text));
            self.names.insert(format!("${name}"), value.to_owned());
        }
    }

    /// The text with the known names replaced.
    fn filled(&self, text: &str) -> String {
        let fill = |text: String, (name, value): (&String, &String)| text.replace(name, value);
        self.names.iter().rev().fold(text.to_owned(), fill)
    }

    fn record(&mut self, method: &str, path: &str, body: &Value, answer: &Answer) {
        let path = path.split('?').next().unwrap_or_default();
        let id = documented::id(method, path).to_owned();
        if self.recorded.contains_key(&id) || answer.body.is_null() {
            return;
        }
        let mut example = json!({ "status": answer.status.to_string(), "response": answer.body });
        if !body.is_null() {
            example["request"] = body.clone();
        }
        self.steady(&mut example);
        let bytes = example.to_string().len();
        assert!(bytes < EXAMPLE_BYTES_MAX, "{id}: {bytes} bytes");
        self.recorded.insert(id, example);
    }

    /// Replaces what differs between runs.
    fn steady(&mut self, value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.remove("traceparent");
                for (name, member) in members {
                    match (name.as_str(), &member) {
                        ("next", Value::String(_)) => *member = json!("MDFhMjBkMDA"),
                        ("secret", _) => *member = json!("whsec_c2VjcmV0"),
                        ("token", Value::String(_)) => {
                            *member = json!("eyJ0ZW5hbnQiOiJkZWZhdWx0In0.a2V5.bWFj");
                        }
                        // The cost of a call depends on the machine and on the compiler of the flow.
                        ("fuel" | "micros", Value::Number(_)) => *member = json!(1_000),
                        _ => self.steady(member),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.steady(item)),
            Value::String(text) => self.steady_text(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn steady_text(&mut self, text: &mut String) {
        let is_digest = text.len() >= 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let words: Vec<&str> = text.split(' ').map(steady_word).collect();
        *text = words.join(" ");
        if is_digest {
            *text = "0f".repeat(text.len() / 2);
        } else {
            let found: Vec<String> = (0..text.len())
                .filter_map(|at| text.get(at..at + ID_BYTES))
                .filter(|part| part.contains('-') && uuid::Uuid::try_parse(part).is_ok())
                .map(str::to_owned)
                .collect();
            for id in found {
                let number = self.ids.iter().position(|known| *known == id);
                let number = number.unwrap_or_else(|| {
                    self.ids.push(id.clone());
                    self.ids.len() - 1
                });
                *text = text.replace(&id, &format!("{ID}{number:012x}"));
            }
        }
    }
}

/// A fixed time in place of one of the run.
fn steady_word(word: &str) -> &str {
    let at = word.parse::<Timestamp>().ok();
    let is_near = |at: Timestamp| at.duration_since(Clock::System.now()).abs() < NEAR;
    if at.is_some_and(is_near) {
        "2026-01-05T09:00:00Z"
    } else {
        word
    }
}

fn id_of(operation: &Operation) -> String {
    let id = operation.described["operationId"].as_str();
    id.expect("an id").to_owned()
}

/// Whether the operation responds with JSON.
fn answers_json(operation: &Operation) -> bool {
    let responses = operation.described["responses"].as_object();
    let is_json = |(status, response): (&String, &Value)| {
        status.starts_with('2') && response["content"]["application/json"].is_object()
    };
    responses.expect("responses").iter().any(is_json)
}

/// Validates a value against a schema of the document.
fn check(what: &str, document: &Value, described: &Value, value: &Value) {
    let mut schema = described["content"]["application/json"]["schema"].clone();
    schema["components"] = document["components"].clone();
    let errors: Vec<String> = jsonschema::validator_for(&schema)
        .expect("a schema")
        .iter_errors(value)
        .map(|error| format!("{error} at {}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what}: {errors:?}");
}

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test command says whether to write the file anew"
)]
async fn every_operation_has_a_recorded_example_that_fits_its_schema() {
    let mut recorder = Recorder::start().await;
    steps::take(&mut recorder).await;
    let document = document(&recorder.app).await;
    for operation in &recorder.operations {
        let id = id_of(operation);
        let example = recorder.recorded.get(&id);
        assert_eq!(example.is_some(), answers_json(operation), "{id}");
        let Some(example) = example else {
            continue;
        };
        let status = example["status"].as_str().expect("a status");
        let described = &operation.described["responses"][status];
        check(&id, &document, described, &example["response"]);
        let body = &operation.described["requestBody"];
        let has_body = body["content"]["application/json"].is_object();
        assert_eq!(has_body, example["request"].is_object(), "{id}");
        if has_body {
            check(&id, &document, body, &example["request"]);
        }
    }
    let examples = recorder.recorded.iter();
    let lines: Vec<_> = examples
        .map(|(id, example)| format!("{}: {example}", json!(id)))
        .collect();
    let rendered = format!("{{\n{}\n}}\n", lines.join(",\n"));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    if std::env::var("UPDATE").is_ok_and(|update| update == "1") {
        std::fs::write(&file, &rendered).expect("the file can be written");
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    let mut pairs = rendered.lines().zip(committed.lines());
    let differs = pairs.find(|(rendered, committed)| rendered != committed);
    assert!(
        rendered == committed,
        "the examples differ from {FILE}. If that is intended, run the tests with UPDATE=1, build anew, and commit it: {differs:?}"
    );
}

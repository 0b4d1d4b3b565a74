//! Every command writes one log line and one count, whatever its outcome.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use wrkflw::sample::DOCUMENT_APPROVAL;
use wrkflw_runtime::telemetry::COMMAND_TARGET;

use super::*;

const TIMEOUT: Duration = Duration::from_secs(20);
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// The log lines of all commands of this process.
static LINES: Mutex<Vec<serde_json::Map<String, Value>>> = Mutex::new(Vec::new());

struct Collector;

impl<S: Subscriber> Layer<S> for Collector {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == COMMAND_TARGET {
            let mut fields = Fields::default();
            event.record(&mut fields);
            LINES.lock().expect("no test panics here").push(fields.0);
        }
    }
}

#[derive(Default)]
struct Fields(serde_json::Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0
            .insert(field.name().into(), json!(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().into(), json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().into(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().into(), json!(value));
    }
}

pub(super) fn collect_lines() {
    static COLLECTING: OnceLock<()> = OnceLock::new();
    COLLECTING.get_or_init(|| {
        let subscriber = tracing_subscriber::registry().with(Collector);
        tracing::subscriber::set_global_default(subscriber).expect("the only one");
    });
}

/// The only line of the request.
#[track_caller]
pub(super) fn only_line(request_id: &str) -> serde_json::Map<String, Value> {
    let lines = LINES.lock().expect("no test panics here");
    let found: Vec<_> = lines
        .iter()
        .filter(|line| line.get("requestId").is_some_and(|id| id == request_id))
        .collect();
    assert_eq!(found.len(), 1, "{request_id}: {found:?}");
    found[0].clone()
}

/// The only line of a command, after a check that it has all required fields.
#[track_caller]
fn line(request_id: &str) -> serde_json::Map<String, Value> {
    let line = only_line(request_id);
    for field in [
        "action", "actor", "outcome", "traceId", "from", "to", "tenant",
    ] {
        assert!(line[field].is_string(), "{request_id}: {field} in {line:?}");
    }
    assert!(line["durationMs"].is_u64(), "{line:?}");
    line
}

/// The value of a metric with exactly these labels.
pub(super) async fn metric(app: &TestApp, name: &str, labels: &[(&str, &str)]) -> u64 {
    let text = app.get("", "/metrics").await.text;
    let labels: Vec<_> = labels
        .iter()
        .map(|(label, value)| format!("{label}=\"{value}\""))
        .collect();
    let sample = format!("{name}{{{}}} ", labels.join(","));
    let found = text.lines().find_map(|line| line.strip_prefix(&sample));
    found.map_or(0, |value| value.parse().expect("a number"))
}

/// The commands of one test, with names of their own.
struct Watched {
    app: TestApp,
    /// The key of the definition, and the prefix of every request id.
    name: &'static str,
}

impl Watched {
    async fn new(name: &'static str, component: &[u8]) -> Watched {
        collect_lines();
        let app = TestApp::empty().await;
        app.publish(name, component, &json!({})).await.expect(201);
        let path = format!("/v1/definitions/{name}/versions/1/activate");
        app.post("admin", &path, json!({})).await.expect(200);
        Watched { app, name }
    }

    fn start_body(&self, entity: &str) -> Value {
        json!({
            "definitionKey": self.name, "entityType": "document", "entityId": entity, "data": { "title": "A plan" },
        })
    }

    async fn send(&self, host: &Host, id: &str, user: &str, path: &str, body: Value) -> Answer {
        let traceparent = format!("00-{TRACE}-b7ad6b7169203331-01");
        let headers = [("x-request-id", id), ("traceparent", traceparent.as_str())];
        host.send(user, "POST", path, &headers, Some(body)).await
    }

    /// Sends a command whose line and count must have this `outcome`.
    async fn ends(
        &self,
        user: &str,
        path: &str,
        body: Value,
        outcome: &str,
    ) -> (Answer, serde_json::Map<String, Value>) {
        let action = match path.rsplit('/').next() {
            Some("instances") => "start",
            Some(last) => last,
            None => "",
        };
        let labels = |definition| {
            [
                ("definition", definition),
                ("action", action),
                ("outcome", outcome),
            ]
        };
        let total = "wrkflw_transitions_total";
        let before = metric(&self.app, total, &labels(self.name)).await;
        let id = format!("{}-{}", self.name, next_number());
        let answer = self.send(&self.app.host(), &id, user, path, body).await;
        let line = line(&id);
        let found = (
            &line["outcome"],
            &line["action"],
            &line["actor"],
            &line["traceId"],
        );
        assert_eq!(
            found,
            (&json!(outcome), &json!(action), &json!(user), &json!(TRACE)),
            "{}",
            answer.text
        );
        let is_known = line.get("version").is_some();
        assert_eq!(line.get("error").is_some(), answer.status >= 400);
        let after = metric(&self.app, total, &labels(self.name)).await;
        assert_eq!(after - before, u64::from(is_known), "{line:?}");
        (answer, line)
    }
}

/// Unique in this process.
fn next_number() -> u32 {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// A start with each outcome. Returns the instance of the successful one.
async fn starts(watched: &Watched) -> Value {
    let start = |entity| watched.start_body(entity);
    let path = "/v1/instances";
    let (started, line) = watched
        .ends("author", path, start("doc-1"), "success")
        .await;
    let instance = started.started();
    for (field, value) in [
        ("instance", instance["id"].clone()),
        ("definition", json!("observed")),
        ("version", json!(1)),
        ("from", json!("")),
        ("to", json!("Submitted")),
    ] {
        assert_eq!(line[field], value, "{field}");
    }
    assert!(line["fuel"].as_u64().expect("a number") > 0);

    let mut untitled = start("doc-2");
    untitled["data"] = json!({});
    let mut unknown = start("doc-2");
    unknown["definitionKey"] = json!("nothing");
    for (user, body, outcome) in [
        ("author", start("doc-1"), "conflict"),
        ("outsider", start("doc-2"), "forbidden"),
        ("author", untitled, "validation_error"),
        ("author", unknown, "validation_error"),
    ] {
        watched.ends(user, path, body, outcome).await;
    }
    instance
}

/// Commands that leave the instance in its state.
async fn work_without_a_step(watched: &Watched, id: &str, task: &str) {
    let path = |what: &str| format!("/v1/tasks/{task}/{what}");
    let nobodys = format!("/v1/tasks/{id}/claim");
    let cancel = format!("/v1/instances/{id}/cancel");
    let (approve, reject) = (
        json!({ "outcome": "APPROVE" }),
        json!({ "outcome": "REJECT" }),
    );
    let reason = json!({ "reason": "withdrawn" });
    for (user, path, body, outcome) in [
        ("outsider", path("claim"), json!({}), "forbidden"),
        ("outsider", path("decide"), approve, "forbidden"),
        ("reviewer", nobodys, json!({}), "validation_error"),
        ("reviewer", path("claim"), json!({}), "success"),
        ("reviewer2", path("claim"), json!({}), "conflict"),
        ("reviewer2", path("release"), json!({}), "forbidden"),
        ("reviewer", path("release"), json!({}), "success"),
        ("reviewer", path("claim"), json!({}), "success"),
        ("reviewer", path("decide"), reject, "validation_error"),
        ("reviewer", cancel, reason, "forbidden"),
    ] {
        let (_, line) = watched.ends(user, &path, body, outcome).await;
        if line.contains_key("version") {
            let found = (&line["instance"], &line["from"], &line["to"]);
            let still = json!("Submitted");
            assert_eq!(found, (&json!(id), &still, &still));
        }
    }
}

/// The latency of each command is measured together with its count.
async fn latency_is_counted_along(watched: &Watched) {
    for action in ["start", "claim", "release", "decide", "cancel"] {
        let by = [("definition", "observed"), ("action", action)];
        let mut counted = 0;
        for outcome in ["success", "conflict", "forbidden", "validation_error"] {
            let labels = [by[0], by[1], ("outcome", outcome)];
            counted += metric(&watched.app, "wrkflw_transitions_total", &labels).await;
        }
        let name = "wrkflw_transition_duration_seconds_count";
        let timed = metric(&watched.app, name, &by).await;
        assert_eq!((counted, counted > 0), (timed, true), "{action}");
    }
}

#[tokio::test]
async fn each_outcome_of_each_command_is_logged_and_counted() {
    let watched = Watched::new("observed", DOCUMENT_APPROVAL).await;
    let instance = starts(&watched).await;
    let (id, task) = (instance["id"].as_str().expect("an id"), task_of(&instance));
    work_without_a_step(&watched, id, &task).await;

    let (decide, release) = (
        format!("/v1/tasks/{task}/decide"),
        format!("/v1/tasks/{task}/release"),
    );
    let cancel = format!("/v1/instances/{id}/cancel");
    let nothing = format!("/v1/instances/{task}/cancel");
    let (approve, reason) = (
        json!({ "outcome": "APPROVE" }),
        json!({ "reason": "withdrawn" }),
    );
    for (user, path, body, outcome, way) in [
        (
            "reviewer",
            &decide,
            &approve,
            "success",
            "Submitted-FinalReview",
        ),
        (
            "reviewer",
            &decide,
            &approve,
            "conflict",
            "FinalReview-FinalReview",
        ),
        (
            "reviewer",
            &release,
            &json!({}),
            "conflict",
            "FinalReview-FinalReview",
        ),
        (
            "admin",
            &cancel,
            &reason,
            "success",
            "FinalReview-FinalReview",
        ),
        ("admin", &cancel, &reason, "conflict", "-"),
        ("admin", &nothing, &reason, "validation_error", "-"),
    ] {
        let (_, line) = watched.ends(user, path, body.clone(), outcome).await;
        let text = |field: &str| line[field].as_str().expect("text").to_owned();
        assert_eq!(format!("{}-{}", text("from"), text("to")), way, "{path}");
    }
    latency_is_counted_along(&watched).await;
}

#[tokio::test]
async fn a_reassessment_is_logged_if_it_changed_something() {
    let watched = Watched::new("observed-again", DOCUMENT_APPROVAL).await;
    let app = &watched.app;
    let _worker = app.timers();
    let body = watched.start_body("r-1");
    app.post("author", "/v1/instances", body).await.expect(201);
    let by = [
        ("definition", "observed-again"),
        ("action", "reassessment"),
        ("outcome", "success"),
    ];
    let member = |person: &str| format!("/v1/groups/reviewers/members/{person}");
    app.put("admin", &member("approver"), json!({}))
        .await
        .expect(200);
    soon(async || metric(app, "wrkflw_transitions_total", &by).await > 0).await;
    assert_eq!(reassessments_in_log(), 0, "nothing changed");
    for person in ["approver", "reviewer", "reviewer2"] {
        delete(app, "admin", &member(person)).await.expect(200);
    }
    // Nobody is eligible in this state any more.
    soon(async || reassessments_in_log() > 0).await;
}

async fn soon(mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            crate::support::pause().await;
        }
    };
    let waited = tokio::time::timeout(TIMEOUT, waiting).await;
    waited.expect("it comes");
}

fn reassessments_in_log() -> usize {
    let lines = LINES.lock().expect("no test panics here");
    let is_one = |line: &&serde_json::Map<String, Value>| {
        line.get("action")
            .is_some_and(|action| action == "reassessment")
            && line.get("definition") == Some(&json!("observed-again"))
    };
    lines.iter().filter(is_one).count()
}

#[tokio::test]
async fn failing_logic_is_a_logic_error() {
    let watched = Watched::new("observed-hostile", guests::hostile()).await;
    let mut body = watched.start_body("t-1");
    let (started, _) = watched
        .ends("author", "/v1/instances", body.clone(), "success")
        .await;
    let task = claimed(&watched.app, "reviewer", &started.started()).await;
    let decide = format!("/v1/tasks/{task}/decide");
    for behaviour in ["trap", "spin", "huge"] {
        let body = json!({ "outcome": "GO", "input": { "behaviour": behaviour } });
        let (answer, line) = watched.ends("reviewer", &decide, body, "logic_error").await;
        assert_eq!(
            (answer.status, &line["from"], &line["to"]),
            (424, &json!("Work"), &json!("Work"))
        );
    }
    for (behaviour, outcome) in [("unfit", "validation_error"), ("refuse", "conflict")] {
        let refused = json!({ "outcome": "GO", "input": { "behaviour": behaviour } });
        watched.ends("reviewer", &decide, refused, outcome).await;
    }
    body["entityId"] = json!("t-2");
    body["data"] = json!({ "behaviour": "trap", "function": "enter" });
    watched
        .ends("author", "/v1/instances", body, "logic_error")
        .await;
}

#[tokio::test]
async fn an_unreachable_database_is_a_system_error() {
    let watched = Watched::new("observed-alone", DOCUMENT_APPROVAL).await;
    let app = &watched.app;
    let started = app
        .post("author", "/v1/instances", watched.start_body("doc-1"))
        .await
        .started();
    let (id, task) = (started["id"].as_str().expect("an id"), task_of(&started));
    let short = Duration::from_millis(50);
    let (host, engine) = app.beside_with_engine(app.database.url(), short).await;
    // The host must know the tenant to reach the command.
    host.send("admin", "GET", "/v1/instances", &[], None)
        .await
        .expect(200);
    engine.reader().close().await;
    for (action, path, body) in [
        (
            "start",
            "/v1/instances".to_owned(),
            watched.start_body("doc-2"),
        ),
        ("claim", format!("/v1/tasks/{task}/claim"), json!({})),
        ("release", format!("/v1/tasks/{task}/release"), json!({})),
        (
            "decide",
            format!("/v1/tasks/{task}/decide"),
            json!({ "outcome": "APPROVE" }),
        ),
        (
            "cancel",
            format!("/v1/instances/{id}/cancel"),
            json!({ "reason": "withdrawn" }),
        ),
    ] {
        let labels = [
            ("definition", ""),
            ("action", action),
            ("outcome", "system_error"),
        ];
        let before = metric(app, "wrkflw_transitions_total", &labels).await;
        let request_id = format!("observed-alone-{action}");
        let answer = watched.send(&host, &request_id, "admin", &path, body).await;
        assert!(answer.headers.contains_key("retry-after"));
        answer.problem(503, "unavailable");
        let line = line(&request_id);
        assert_eq!(
            (&line["outcome"], &line["action"]),
            (&json!("system_error"), &json!(action))
        );
        assert!(metric(app, "wrkflw_transitions_total", &labels).await > before);
    }
    host.send("", "GET", "/livez", &[], None).await;
    assert_eq!(host.send("", "GET", "/readyz", &[], None).await.status, 503);
}

#[tokio::test]
async fn a_caller_who_disconnects_leaves_a_line() {
    let watched = Watched::new("observed-gone", DOCUMENT_APPROVAL).await;
    let app = &watched.app;
    let started = app
        .post("author", "/v1/instances", watched.start_body("doc-1"))
        .await
        .started();
    let claim = format!("/v1/tasks/{}/claim", task_of(&started));
    let mut lock = app
        .database
        .admin_pool()
        .begin()
        .await
        .expect("a transaction");
    sqlx::query("select from instance for update")
        .execute(&mut *lock)
        .await
        .expect("a lock");
    let host = app.host();
    let sending = watched.send(&host, "observed-gone-1", "reviewer", &claim, json!({}));
    let given_up = tokio::time::timeout(Duration::from_millis(300), sending).await;
    assert!(given_up.is_err(), "the commit waits for the lock");
    assert_eq!(line("observed-gone-1")["outcome"], "system_error");
    lock.rollback().await.expect("a rollback");
}

#[tokio::test]
async fn the_trace_of_a_request_continues_in_its_events() {
    let watched = Watched::new("observed-trace", DOCUMENT_APPROVAL).await;
    let (started, line) = watched
        .ends(
            "author",
            "/v1/instances",
            watched.start_body("doc-1"),
            "success",
        )
        .await;
    let started = started.expect(201);
    for event in started["events"].as_array().expect("events") {
        let traceparent = event["traceparent"].as_str().expect("a context");
        assert_eq!(traceparent.split('-').nth(1), line["traceId"].as_str());
    }
    let stored = "select distinct traceparent from audit_entry where event_seq is not null";
    let stored: Vec<String> = sqlx::query_scalar(stored)
        .fetch_all(watched.app.database.admin_pool())
        .await
        .expect("entries");
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0], started["events"][0]["traceparent"]);
    assert!(
        stored[0].starts_with(&format!("00-{TRACE}-")) && !stored[0].contains("b7ad6b7169203331")
    );
}

//! Service states over HTTP, with a real HTTP server as the service: its requests, and the effects of good, bad, late and hostile
//! replies.

mod hosts;
mod late;

use std::sync::Arc;
use std::time::Instant;

use jiff::SignedDuration;
use serde_json::{Value, json};
use wrkflw_engine::Engine;
use wrkflw_engine::services::Services;

use super::*;
use crate::support::app::{Timers, task_of};
use crate::support::machine::{KEY, Machine, Says, TOKEN};

/// A host that knows the machine, and its worker.
struct Setting {
    app: TestApp,
    machine: Machine,
    timers: Timers,
}

impl Setting {
    async fn new() -> Setting {
        let machine = Machine::start().await;
        let app = serving(fixture().await, machine.services(Services::CALLS_MAX)).await;
        let timers = app.timers();
        Setting {
            app,
            machine,
            timers,
        }
    }

    /// Starts an instance that calls the service with these settings.
    async fn ask(&self, entity: &str, ask: Value) -> String {
        begin(&self.app, entity, json!({ "first": "Ask", "ask": ask })).await
    }

    /// What the flow got once the call is over.
    async fn result(&self, instance: &str) -> Value {
        let is_over = |shown: &Value| shown["data"]["asked"].is_object();
        let shown = until(&self.app, instance, is_over).await;
        shown["data"]["asked"].clone()
    }

    async fn ends(self, instances: &[&str]) {
        settled(&self.app).await;
        self.timers.stop().await;
        for instance in instances {
            proven(&self.app, instance).await;
        }
    }
}

/// The same host with these services.
async fn serving(app: TestApp, services: Services) -> TestApp {
    let engine = app.engine_with_clock(Clock::System).await.serving(services);
    let store = app.store().clone();
    app.with_engine(store, engine)
}

/// The same host so many seconds later.
async fn later(app: &TestApp, services: Services, seconds: i64) -> Engine {
    let later = app.engine.clock().now() + SignedDuration::from_secs(seconds);
    let clock = Clock::Manual(Arc::new(later.as_millisecond().into()));
    app.engine_with_clock(clock).await.serving(services)
}

/// Sends a command as an operator.
async fn act(app: &TestApp, instance: &str, action: &str, body: Value) {
    let path = format!("/v1/instances/{instance}/{action}");
    app.post("admin", &path, body).await.expect(200);
}

fn state<'a>(shown: &'a Value, name: &str) -> &'a Value {
    let states = shown["states"].as_array().expect("states");
    let found = states.iter().find(|state| state["name"] == name);
    found.unwrap_or_else(|| panic!("no state {name} in {shown}"))
}

/// The event of the reply, which has the trace of the attempt.
fn answered_in_trace<'a>(events: &'a [Value], instance: &str) -> &'a Value {
    let answered = events
        .iter()
        .find(|event| event["type"] == "dev.wrkflw.service.answered");
    let answered = answered.expect("an event");
    let traceparent = answered["traceparent"].as_str().expect("a trace");
    assert_eq!(traceparent.split('-').nth(1), instance.split('-').nth(1));
    answered
}

#[tokio::test]
async fn a_service_is_called_and_its_reply_moves_the_instance() {
    let mut setting = Setting::new().await;
    let instance = setting.ask("7", json!({})).await;
    let request = setting.machine.next().await;
    let path = format!("/v1/instances/{instance}/history");
    let shown = until_status(&setting.app, &instance, "COMPLETED").await;
    assert_eq!(shown["outcome"], "DONE");
    let expected = json!({
        "service": "machine", "attempts": 1, "model": "scorer", "modelVersion": "7", "output": { "score": 0.5 }
    });
    assert_eq!(shown["data"]["asked"], expected);
    let history = setting.app.get("admin", &path).await.expect(200);
    let states = history["data"].as_array().expect("states");
    let left = states.iter().find(|state| state["name"] == "Ask");
    let left = left.expect("the state");
    assert_eq!(
        left["call"],
        json!({
            "service": "machine", "status": "ANSWERED", "attempts": 1, "attemptsMax": 1, "model": "scorer", "modelVersion": "7"
        })
    );
    let body = json!({
        "tenant": "default", "instanceId": instance, "stateId": left["id"], "service": "machine", "attempt": 1,
        "request": { "about": "7" }
    });
    assert_eq!(request.body, body);
    assert_eq!(request.header("idempotency-key"), left["id"]);
    assert_eq!(request.header("authorization"), format!("Bearer {TOKEN}"));
    assert_eq!(request.header("content-type"), "application/json");
    assert!(request.is_signed_by(KEY));
    let events = setting.app.events().await;
    let answered = answered_in_trace(&events, request.header("traceparent"));
    assert_eq!(answered["data"]["result"]["model"], "scorer");
    let requested = events
        .iter()
        .find(|event| event["type"] == "dev.wrkflw.service.requested");
    assert_eq!(requested.expect("an event")["data"]["service"], "machine");
    let entered = events
        .iter()
        .filter(|event| event["type"] == "dev.wrkflw.state.entered");
    let calls = entered.map(|event| event["data"]["state"]["call"].clone());
    assert!(
        calls.clone().all(|call| call.is_null()),
        "a request is not public"
    );
    assert_eq!(setting.machine.rest().len(), 0);
    setting.ends(&[&instance]).await;
}

/// Attempts change the instance without a new revision. So an instance with an open call is always sent in full, with the `ETag`
/// for commands.
#[tokio::test]
async fn an_instance_with_an_open_call_has_its_revision_as_tag() {
    let machine = Machine::start().await;
    // No worker makes the call.
    let app = serving(fixture().await, machine.services(Services::CALLS_MAX)).await;
    let data = json!({ "first": "Ask", "ask": { "retries": [1] } });
    let instance = begin(&app, "1", data).await;
    let path = format!("/v1/instances/{instance}");
    let first = app.get("admin", &path).await;
    assert_eq!(first.body["states"][0]["call"]["status"], "OPEN");
    let tag = format!("\"{}\"", first.body["revision"]);
    assert_eq!(first.headers["etag"], tag);
    let (host, held) = (app.host(), [("if-none-match", tag.as_str())]);
    let again = host.send("admin", "GET", &path, &held, None).await;
    assert_eq!((again.status, &again.text), (200, &first.text));
    assert_eq!(again.headers["etag"], tag);
    let suspend = format!("{path}/suspend");
    let (body, held) = (
        json!({ "reason": "for a while" }),
        [("if-match", tag.as_str())],
    );
    let suspended = host.send("admin", "POST", &suspend, &held, Some(body));
    suspended.await.expect(200);
}

#[tokio::test]
async fn attempts_that_fail_are_repeated_under_one_key_until_one_succeeds() {
    let mut setting = Setting::new().await;
    let misfit = Says::Reply(json!({ "output": { "score": "high" } }));
    setting.machine.says([
        Says::status(500),
        misfit,
        Says::status(429),
        Says::score(0.9),
    ]);
    let instance = setting.ask("1", json!({ "retries": [1, 1, 1, 1] })).await;
    let result = setting.result(&instance).await;
    assert_eq!(
        (&result["attempts"], &result["output"]["score"]),
        (&json!(4), &json!(0.9))
    );
    let requests = setting.machine.rest();
    let attempts: Vec<_> = requests
        .iter()
        .map(|one| one.body["attempt"].clone())
        .collect();
    assert_eq!(attempts, [1, 2, 3, 4]);
    let mut keys: Vec<_> = requests
        .iter()
        .map(|one| one.header("idempotency-key"))
        .collect();
    keys.dedup();
    assert_eq!(keys.len(), 1);
    setting.ends(&[&instance]).await;
}

#[tokio::test]
async fn people_take_over_after_the_last_attempt_has_failed() {
    let setting = Setting::new().await;
    setting.machine.says([
        Says::status(503),
        Says::Status(503, &[("retry-after", "1")], String::new()),
        Says::status(500),
    ]);
    let instance = setting.ask("1", json!({ "retries": [2, 1] })).await;
    // Operators see the call while it waits.
    let waits = |shown: &Value| shown["states"][0]["call"]["error"].is_string();
    let shown = until(&setting.app, &instance, waits).await;
    let call = &state(&shown, "Ask")["call"];
    assert_eq!(
        (&call["service"], &call["status"], &call["attemptsMax"]),
        (&json!("machine"), &json!("OPEN"), &json!(3))
    );
    assert_eq!(call["error"], "the service answered 503");
    assert!(call["attempts"].as_u64().expect("a count") >= 1 && call["nextAttemptAt"].is_string());
    let jobs = setting.app.get("admin", "/v1/jobs").await.expect(200);
    let job = &jobs["data"][0];
    assert_eq!(
        (&job["kind"], &job["instanceId"]),
        (&json!("call_service"), &json!(instance)),
        "{jobs}"
    );
    let result = setting.result(&instance).await;
    assert_eq!(
        (&result["attempts"], &result["error"]),
        (&json!(3), &json!("the service answered 500"))
    );
    let manual = shown_in(&setting.app, &instance, "Work").await;
    let path = format!("/v1/tasks/{}/decide", task_of(&manual));
    let decided = setting
        .app
        .post("reviewer", &path, json!({ "outcome": "GO" }))
        .await;
    decided.expect(200);
    assert_eq!(
        audited(&setting.app, &instance, "SERVICE_FAILED")
            .await
            .len(),
        1
    );
    setting.ends(&[&instance]).await;
}

/// The instance, once it is in this state.
async fn shown_in(app: &TestApp, instance: &str, name: &str) -> Value {
    until(app, instance, |shown| shown["states"][0]["name"] == name).await
}

#[tokio::test]
async fn a_permanently_refused_request_is_not_repeated() {
    let mut setting = Setting::new().await;
    setting.machine.says([Says::status(422)]);
    let instance = setting.ask("1", json!({ "retries": [1, 1, 1] })).await;
    let result = setting.result(&instance).await;
    assert_eq!(
        (&result["attempts"], &result["error"]),
        (&json!(1), &json!("the service answered 422"))
    );
    assert_eq!(setting.machine.rest().len(), 1);
    setting.ends(&[&instance]).await;
}

/// Each attempt ends within its timeout, and its error is short plain text.
#[tokio::test]
async fn a_hostile_service_is_a_failed_attempt() {
    let mut setting = Setting::new().await;
    let huge = "x".repeat(10 << 20);
    let elsewhere: &[_] = &[("location", "http://127.0.0.1:9/")];
    for (name, says, error) in [
        ("silent", Says::Nothing, "no answer within 1 s"),
        ("slow", Says::Slow, "no answer within 1 s"),
        ("endless", Says::Endless, "more than 131072 bytes"),
        (
            "huge",
            Says::Status(500, &[], huge),
            "the service answered 500",
        ),
        (
            "redirecting",
            Says::Status(307, elsewhere, String::new()),
            "the service answered 307",
        ),
        ("wordless", Says::status(204), "the reply has"),
        ("wrong", Says::Reply(json!([])), "not as agreed"),
        (
            "large",
            Says::Reply(json!({ "output": { "score": 1, "why": "y".repeat(70 << 10) } })),
            "longer than 65536 bytes",
        ),
    ] {
        setting.machine.says([says]);
        let begun = Instant::now();
        // Only responses that take too long must be aborted soon, also on a busy machine.
        let timeout = if error.starts_with("no answer") {
            1
        } else {
            30
        };
        let instance = setting.ask(name, json!({ "timeout": timeout })).await;
        let result = setting.result(&instance).await;
        let message = result["error"].as_str().expect("an error");
        assert!(
            message.contains(error) && message.len() < 300,
            "{name}: {message}"
        );
        assert!(begun.elapsed() < TIMEOUT, "{name}");
        assert_eq!(setting.machine.rest().len(), 1, "{name}");
        proven(&setting.app, &instance).await;
    }
    setting.ends(&[]).await;
}

#[tokio::test]
async fn a_deadline_ends_a_call_that_takes_too_long() {
    let mut setting = Setting::new().await;
    setting
        .machine
        .says([Says::Gated(json!({ "output": { "score": 1 } }))]);
    let instance = setting.ask("1", json!({ "late": 1, "timeout": 60 })).await;
    setting.machine.next().await;
    // The deadline of the instance does not wait for the call in flight.
    shown_in(&setting.app, &instance, "Work").await;
    assert_eq!(counted(&setting.app, "select count(*) from job").await, 0);
    // The reply comes too late: it is recorded without further effect.
    setting.machine.open(1);
    let recorded = async {
        loop {
            let found = audited(&setting.app, &instance, "TRIGGER_REFUSED").await;
            if let Some(refused) = found.into_iter().next() {
                return refused;
            }
            crate::support::pause().await;
        }
    };
    let refused = tokio::time::timeout(TIMEOUT, recorded)
        .await
        .expect("in time");
    assert_eq!(
        (&refused["code"], &refused["trigger"]),
        (&json!("too_late"), &json!("ANSWERED"))
    );
    let shown = shown(&setting.app, &instance).await;
    assert_eq!(
        (&shown["status"], &shown["data"]["asked"]),
        (&json!("RUNNING"), &Value::Null)
    );
    setting.ends(&[&instance]).await;
}

/// The state has two jobs: the call, and the search for buffered signals.
#[tokio::test]
async fn a_correlated_signal_ends_a_call_also_if_it_came_before() {
    let setting = Setting::new().await;
    let gated = || Says::Gated(json!({ "output": { "score": 1 } }));
    setting.machine.says([gated(), gated()]);
    let send = async |key: &str| {
        let body = json!({ "correlation": key, "id": key });
        setting.app.post("author", "/v1/signals/LEAVE", body).await
    };
    let begin_call = async |entity: &str, key: &str| {
        let one = json!({ "trigger": "LEAVE", "correlation": key, "buffered": true });
        let data = json!({ "timeout": 60, "subscriptions": [one] });
        setting.ask(entity, data).await
    };
    let started = begin_call("1", "order 1").await;
    let state = shown(&setting.app, &started).await["states"][0].clone();
    assert_eq!(state["subscriptions"][0]["correlation"], "order 1");
    let taken = send("order 1").await.expect(200);
    assert_eq!(taken["instance"]["states"][0]["name"], "Work");
    send("order 2").await.expect(202);
    let late = begin_call("2", "order 2").await;
    shown_in(&setting.app, &late, "Work").await;
    setting.machine.open(2);
    setting.ends(&[&started, &late]).await;
}

#[tokio::test]
async fn a_reply_to_an_ended_instance_is_dropped() {
    let mut setting = Setting::new().await;
    setting
        .machine
        .says([Says::Gated(json!({ "output": { "score": 1 } }))]);
    let instance = setting.ask("1", json!({})).await;
    setting.machine.next().await;
    act(
        &setting.app,
        &instance,
        "cancel",
        json!({ "reason": "over" }),
    )
    .await;
    setting.machine.open(1);
    // Another call shows that the worker has finished the first.
    let other = setting.ask("2", json!({})).await;
    until_status(&setting.app, &other, "COMPLETED").await;
    let shown = shown(&setting.app, &instance).await;
    assert_eq!(shown["status"], "CANCELLED");
    setting.ends(&[&instance, &other]).await;
}

#[tokio::test]
async fn nobody_can_send_the_result_of_a_call_as_a_signal() {
    let mut setting = Setting::new().await;
    setting
        .machine
        .says([Says::Gated(json!({ "output": { "score": 1 } }))]);
    let instance = setting.ask("1", json!({ "stays": true })).await;
    setting.machine.next().await;
    for trigger in ["ANSWERED", "UNANSWERED"] {
        let sent = signal(
            &setting.app,
            &instance,
            trigger,
            json!({ "input": { "score": 9 } }),
        )
        .await;
        sent.problem(422, "invalid_input");
    }
    setting.machine.open(1);
    setting.result(&instance).await;
    let shown = shown_in(&setting.app, &instance, "Ask").await;
    assert_eq!(state(&shown, "Ask")["call"]["status"], "ANSWERED");
    signal(&setting.app, &instance, "LEAVE", json!({}))
        .await
        .expect(200);
    shown_in(&setting.app, &instance, "Work").await;
    setting.ends(&[&instance]).await;
}

#[tokio::test]
async fn unknown_services_are_reported_before_they_are_called() {
    let setting = Setting::new().await;
    let app = &setting.app;
    let config = json!({ "services": ["machine", "oracle"] });
    let published = app
        .publish("subflows", subflows(), &config)
        .await
        .expect(201);
    let warnings = json!([{ "kind": "service", "name": "oracle", "pointer": "/services/1", "message": "this host has no service oracle" }]);
    assert_eq!(published["warnings"], warnings);
    let path = "/v1/definitions/subflows/versions/2/activate";
    let refused = app.post("admin", path, json!({})).await;
    let problem = refused.problem(409, "unknown_names");
    assert!(problem.to_string().contains("oracle"), "{problem}");
    app.post("admin", path, json!({ "force": true }))
        .await
        .expect(200);
    // A call of a service that this host does not know waits, and operators see it.
    let instance = setting.ask("1", json!({ "service": "oracle" })).await;
    let timers = app.timers();
    let listed = async {
        loop {
            let jobs = app.get("admin", "/v1/jobs").await.expect(200);
            if jobs["data"][0]["error"].is_string() {
                return jobs["data"][0].clone();
            }
            crate::support::pause().await;
        }
    };
    let job = tokio::time::timeout(TIMEOUT, listed)
        .await
        .expect("in time");
    assert_eq!(
        (&job["kind"], &job["instanceId"]),
        (&json!("call_service"), &json!(instance))
    );
    assert!(
        job["error"]
            .as_str()
            .expect("an error")
            .contains("no service oracle;"),
        "{job}"
    );
    signal(app, &instance, "LEAVE", json!({})).await.expect(200);
    timers.stop().await;
    setting.ends(&[&instance]).await;
}

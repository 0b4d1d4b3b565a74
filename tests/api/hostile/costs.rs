//! Expensive computations that flows and callers request from the host itself. They are refused if the worst case takes long. The
//! most expensive permitted ones run on threads other than those that answer requests.

use std::future::Future;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use wrkflw_core::json::Json;
use wrkflw_core::schema::Schema;

use super::*;

/// Concurrent callers, each of which repeats its request.
const ATTACKERS: usize = 4;
/// The number of a neighbour's requests in a measurement.
const ASKED: usize = 25;
const TRIALS: usize = 3;
/// The longest permitted time of a neighbour's request. On the shared threads, one of these documents alone blocked an
/// unoptimised build for many seconds.
const LIVE_MAX: Duration = Duration::from_millis(700);
const DECIDED_MAX: Duration = Duration::from_secs(2);

/// Patterns with exponential automata, each a little longer than the one before.
fn exploding(count: usize, length: usize) -> Value {
    let pattern = |number| json!({ "pattern": format!("a[ab]{{{}}}c", length + number) });
    json!({ "type": "object", "properties": { "text": { "allOf": (0..count).map(pattern).collect::<Vec<_>>() } } })
}

/// The most expensive permitted one.
fn dearest() -> String {
    let fits = |length: &usize| Schema::admit(&Json::of(&exploding(1, *length))).is_ok();
    let lengths: Vec<_> = (1..2_000).collect();
    let fitting = lengths.partition_point(fits);
    assert!((1..lengths.len()).contains(&fitting), "some fit, not all");
    exploding(1, lengths[fitting - 1]).to_string()
}

/// A text for which the regex engine never has all states in its cache.
fn text() -> String {
    let mut state = 12_345_u64;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state.is_multiple_of(2) { 'a' } else { 'b' }
    };
    (0..60_000).map(|_| letter()).collect()
}

/// Publishes the hostile guest with this config, and activates it.
async fn hostile_with(app: &TestApp, config: Value) {
    let published = app.publish("hostile", guests::hostile(), &config).await;
    let version = &published.expect(201)["version"];
    let path = format!("/v1/definitions/hostile/versions/{version}/activate");
    app.post("admin", &path, json!({})).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_with_an_expensive_worst_case_is_refused_at_publishing() {
    let app = TestApp::empty().await;
    for attack in [
        exploding(10, 1_500),
        exploding(100, 1_500),
        json!({ "items": { "enum": (0..2_000).map(|n| json!([n])).collect::<Vec<_>>() } }),
    ] {
        let config = json!({ "schema": attack.to_string() });
        let answer = app.publish("hostile", guests::hostile(), &config).await;
        assert_eq!(answer.status, 422, "{}", answer.text);
        assert!(answer.text.contains("schema_invalid"), "{}", answer.text);
        is_tame(&answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_schema_with_an_expensive_worst_case_is_refused_at_publishing() {
    let app = TestApp::empty().await;
    let config = json!({ "input": exploding(10, 1_500).to_string() });
    let answer = app.publish("hostile", guests::hostile(), &config).await;
    assert_eq!(answer.status, 422, "{}", answer.text);
    for part in ["input_schema_invalid", "Work/GO", "could take"] {
        assert!(answer.text.contains(part), "{part}: {}", answer.text);
    }
}

/// The maximum of these times.
async fn longest<F: Future<Output = ()>>(mut send: impl FnMut() -> F) -> Duration {
    let mut longest = Duration::ZERO;
    for _ in 0..ASKED {
        let begun = Instant::now();
        send().await;
        longest = longest.max(begun.elapsed());
    }
    longest
}

/// The longest time of `/livez`, and the longest time of a dry run of this task's decision.
async fn neighbour(app: &TestApp, fixture: &str) -> (Duration, Duration) {
    let (host, neighbour, fixture) = (app.host(), app.host(), fixture.to_owned());
    let mut live = JoinSet::new();
    live.spawn(longest(move || {
        let host = host.clone();
        async move {
            host.send("author", "GET", "/livez", &[], None)
                .await
                .expect(200);
        }
    }));
    let mut decided = JoinSet::new();
    decided.spawn(longest(move || {
        let (host, fixture) = (neighbour.clone(), fixture.clone());
        async move {
            let approve = Some(json!({ "outcome": "APPROVE" }));
            host.send("reviewer", "POST", &fixture, &[], approve)
                .await
                .expect(200);
        }
    }));
    let live = live.join_next().await.expect("it was begun");
    let decided = decided.join_next().await.expect("it was begun");
    (live.expect("answers"), decided.expect("answers"))
}

/// Method, path and body of a request.
type Asked = (&'static str, String, Option<Value>);

/// Repeats these requests from several callers, and measures `/livez` and a neighbour's decisions meanwhile.
async fn delays_nobody(app: &TestApp, what: &str, requests: &[Asked]) {
    let start = app
        .post("author", "/v1/instances", approval_start(what))
        .await
        .started();
    let fixture = format!(
        "/v1/tasks/{}/decide?dryRun=true",
        claimed(app, "reviewer", &start).await
    );
    let mut figures = Vec::new();
    for _ in 0..TRIALS {
        let mut attackers: JoinSet<()> = JoinSet::new();
        for (method, path, body) in requests.iter().cycle().take(ATTACKERS).cloned() {
            let host = app.host();
            attackers.spawn(async move {
                // Requests of one tenant run one after the other. Those that wait too long are refused.
                loop {
                    let answer = host
                        .send("reviewer", method, &path, &[], body.clone())
                        .await;
                    assert!([200, 422, 503].contains(&answer.status), "{}", answer.text);
                }
            });
        }
        let took = neighbour(app, &fixture).await;
        while let Some(ended) = attackers.try_join_next() {
            ended.expect("every attack has an answer");
        }
        bombs::print(&format!(
            "{what}: /livez {:?}, a decision {:?} at the longest",
            took.0, took.1
        ));
        if took.0 < LIVE_MAX && took.1 < DECIDED_MAX {
            return;
        }
        figures.push(took);
    }
    panic!("{what} held others up in each of {TRIALS} trials: {figures:?}");
}

fn dry_start(data: Value) -> [Asked; 1] {
    [(
        "POST",
        "/v1/instances?dryRun=true".to_owned(),
        Some(hostile_start("t-1", data)),
    )]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_at_the_limit_of_their_schema_delay_nobody() {
    let app = TestApp::empty().await;
    app.with_approval().await;
    hostile_with(&app, json!({ "schema": dearest() })).await;
    delays_nobody(&app, "data", &dry_start(json!({ "text": text() }))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn input_at_the_limit_of_its_schema_delays_nobody() {
    let app = TestApp::empty().await;
    app.with_approval().await;
    hostile_with(&app, json!({ "input": dearest() })).await;
    let decide = json!({ "outcome": "GO", "input": { "text": text() } });
    // Each caller has an instance of their own, because commands on one instance run one after the other.
    let mut requests = Vec::new();
    for number in 0..ATTACKERS {
        let body = hostile_start(&format!("t-{number}"), json!({}));
        let instance = app.post("author", "/v1/instances", body).await.started();
        let task = claimed(&app, "reviewer", &instance).await;
        let path = format!("/v1/tasks/{task}/decide?dryRun=true");
        requests.push(("POST", path, Some(decide.clone())));
    }
    delays_nobody(&app, "input", &requests).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_and_diagrams_at_their_limits_delay_nobody() {
    let app = TestApp::empty().await;
    app.with_approval().await;
    let config = json!({ "behaviour": "tangled", "function": "describe" });
    let published = app.publish("hostile", guests::hostile(), &config).await;
    let version = published.expect(201)["version"].clone();
    let path = format!("/v1/definitions/hostile/versions/{version}/diagram.svg");
    let drawing = app.get("author", &path).await;
    assert!(
        drawing.text.contains("<path"),
        "it is drawn, not told in words"
    );
    delays_nobody(&app, "drawing", &[("GET", path, None)]).await;
    // As many members as a body may have, in reverse order.
    let members: Vec<_> = (0..14_000)
        .rev()
        .map(|number| (format!("{number:05}x"), json!([0])))
        .collect();
    let members: serde_json::Map<_, _> = members.into_iter().collect();
    let large = dry_start(Value::Object(members));
    delays_nobody(&app, "body", &large).await;
}

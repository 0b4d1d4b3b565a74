//! Misbehaving flow logic gets an error with its name, writes nothing, and delays nobody else.
//!
//! This file uses a guest in Rust that does what its input says. `raw` tests what only handwritten code can do, `uploads` and
//! `bombs` components that are never published, and `neighbours` the delay of others. `docs/sandbox.md` lists the cases.

mod bombs;
mod costs;
pub(super) mod neighbours;
mod raw;
mod uploads;

use wrkflw_runtime::telemetry;

use super::*;

const BUDGET: &str = "logic_budget_exceeded";
const FAULT: &str = "logic_fault";
const OUTPUT: &str = "logic_output_too_large";

/// Checks that the text is short, and that neither a terminal nor a log would interpret it.
#[track_caller]
fn is_tame(text: &str) {
    assert!(
        text.len() < 4_000,
        "{} bytes: {}…",
        text.len(),
        &text[..200]
    );
    // Every response ends with a line feed.
    let text = text.strip_suffix('\n').unwrap_or(text);
    let unfit = |character: &char| character.is_control() || *character == '\u{202e}';
    assert!(!text.chars().any(|character| unfit(&character)), "{text:?}");
}

/// Checks that the problem names the flow and the function that failed.
#[track_caller]
fn names_the_culprit(answer: Answer, code: &str, function: &str, digest: &str) {
    let problem = answer.problem(424, code);
    let detail = problem["detail"].as_str().expect("a detail");
    for named in ["hostile version 1", digest, function] {
        assert!(detail.contains(named), "{named} is not named in {detail}");
    }
    is_tame(detail);
}

/// A summary of everything stored: the number of rows of each table, and a digest over all values.
async fn stored(app: &TestApp) -> BTreeMap<String, (i64, String)> {
    let pool = app.database.admin_pool();
    let digests: Vec<_> = rows(app)
        .await
        .into_keys()
        .map(|table| {
            format!(
                "select '{table}', count(*), md5(coalesce(string_agg(t::text, '|' order by t::text), '')) from \"{table}\" t"
            )
        })
        .collect();
    let digests = sqlx::query_as(AssertSqlSafe(digests.join(" union all ")));
    let digests: Vec<(String, i64, String)> = digests.fetch_all(pool).await.expect("digests");
    let by_table = |(table, count, digest)| (table, (count, digest));
    digests.into_iter().map(by_table).collect()
}

async fn digest(app: &TestApp) -> String {
    let shown = app
        .get("author", "/v1/definitions/hostile/versions/1")
        .await;
    shown.expect(200)["digest"]
        .as_str()
        .expect("a digest")
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_whose_logic_fails_is_not_made() {
    let app = TestApp::empty().await;
    with_hostile(&app).await;
    let body = hostile_start("t-1", json!({}));
    let instance = app.post("author", "/v1/instances", body).await.started();
    let decide = format!(
        "/v1/tasks/{}/decide",
        claimed(&app, "reviewer", &instance).await
    );
    let (digest, before) = (digest(&app).await, stored(&app).await);
    for (behaviour, function, code) in [
        ("spin", "transition", BUDGET),
        ("crawl", "transition", BUDGET),
        ("grow", "transition", BUDGET),
        ("allocate", "transition", BUDGET),
        ("fill", "transition", BUDGET),
        ("backtrack", "transition", BUDGET),
        ("nested", "transition", FAULT),
        ("recurse", "transition", FAULT),
        ("trap", "transition", FAULT),
        ("huge", "transition", OUTPUT),
        ("large", "transition", OUTPUT),
        ("million_notes", "transition", BUDGET),
        ("flood", "transition", OUTPUT),
        ("many_notes", "transition", FAULT),
        ("many_events", "transition", FAULT),
        ("foreign_topic", "transition", FAULT),
        ("cancel_unknown", "transition", FAULT),
        ("sermon", "transition", FAULT),
        ("escaped_target", "transition", FAULT),
        ("endless_target", "transition", FAULT),
        ("undeclared_target", "transition", FAULT),
        ("unknown_attribute", "transition", FAULT),
        ("break_schema", "transition", FAULT),
        ("broken_json", "transition", FAULT),
        ("bad_decimal", "transition", FAULT),
        ("not_finite", "transition", FAULT),
        ("bad_timestamp", "transition", FAULT),
        ("nul", "transition", FAULT),
        ("extended", "transition", FAULT),
    ] {
        let input = json!({ "behaviour": behaviour, "function": function });
        let body = json!({ "outcome": "GO", "input": input });
        let answer = app.post("reviewer", &decide, body).await;
        assert_eq!(answer.status, 424, "{behaviour}: {}", answer.text);
        names_the_culprit(answer, code, function, &digest);
        assert_eq!(stored(&app).await, before, "{behaviour}");
    }
    // The same task can be decided as soon as its logic behaves.
    let body = json!({ "outcome": "GO" });
    let done = app.post("reviewer", &decide, body).await.expect(200);
    assert_eq!(
        (&done["instance"]["outcome"], &done["instance"]["revision"]),
        (&json!("DONE"), &json!(3))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_whose_logic_fails_leaves_nothing() {
    let app = TestApp::empty().await;
    with_hostile(&app).await;
    let (digest, before) = (digest(&app).await, stored(&app).await);
    for (behaviour, function, code) in [
        ("spin", "start", BUDGET),
        ("allocate", "start", BUDGET),
        ("nested", "start", FAULT),
        ("trap", "start", FAULT),
        ("sermon", "start", FAULT),
        ("spin", "enter", BUDGET),
        ("trap", "enter", FAULT),
        ("recurse", "enter", FAULT),
        ("allocate", "enter", BUDGET),
        ("fill", "enter", BUDGET),
        ("offer_nobody", "enter", FAULT),
        ("many_offers", "enter", FAULT),
        ("give_up", "enter", FAULT),
        ("no_work", "enter", FAULT),
        ("more_work", "enter", FAULT),
        ("other_work", "enter", FAULT),
        ("service_work", "enter", FAULT),
        ("extended", "enter", FAULT),
        ("extended_offer", "enter", FAULT),
    ] {
        let body = hostile_start(
            "t-1",
            json!({ "behaviour": behaviour, "function": function }),
        );
        let key = ("idempotency-key", behaviour);
        let answer = app
            .host()
            .send("author", "POST", "/v1/instances", &[key], Some(body))
            .await;
        names_the_culprit(answer, code, function, &digest);
        assert_eq!(stored(&app).await, before, "{behaviour} in {function}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_by_enter_is_returned_to_the_starter() {
    let app = TestApp::empty().await;
    with_hostile(&app).await;
    let before = stored(&app).await;
    for (behaviour, status, code) in [("deny", 403, "forbidden"), ("refuse", 409, "refused_now")] {
        let data = json!({ "behaviour": behaviour, "function": "enter" });
        let body = hostile_start("t-1", data);
        let answer = app.post("author", "/v1/instances", body).await;
        let problem = answer.problem(status, code);
        assert_eq!(problem["reason"], "unwanted", "{problem}");
        assert_eq!(problem["detail"], "the input asked to be refused");
        let after = stored(&app).await;
        for table in ["instance", "task", "outbox_event", "audit_entry"] {
            assert_eq!(after[table], before[table], "{behaviour}: {table}");
        }
    }
}

/// The value of the first metric with this name and these labels.
fn metric(name: &str) -> f64 {
    let text = telemetry::metrics().expect("metrics").render();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0.0, |value| value.trim().parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fuel_of_failed_calls_is_measured() {
    const BUDGET_OF_TRANSITION: f64 = 1e8;
    let app = TestApp::empty().await;
    telemetry::metrics().expect("metrics");
    let component = guests::hostile();
    app.publish("measured", component, &json!({}))
        .await
        .expect(201);
    app.post(
        "admin",
        "/v1/definitions/measured/versions/1/activate",
        json!({}),
    )
    .await
    .expect(200);
    let body =
        json!({ "definitionKey": "measured", "entityType": "thing", "entityId": "t", "data": {} });
    let instance = app.post("author", "/v1/instances", body).await.started();
    let decide = format!(
        "/v1/tasks/{}/decide",
        claimed(&app, "reviewer", &instance).await
    );
    let body = json!({ "outcome": "GO", "input": { "behaviour": "trap" } });
    app.post("reviewer", &decide, body)
        .await
        .problem(424, FAULT);
    let labels = r#"{definition="measured",function="transition"}"#;
    let failed = r#"{definition="measured",function="transition",code="logic_fault"}"#;
    for (name, at_least) in [
        (format!("wrkflw_guest_duration_seconds_count{labels}"), 1.0),
        (format!("wrkflw_guest_fuel_count{labels}"), 1.0),
        // The remaining fuel after a trap is not reliable, so all of it counts as used.
        (
            format!("wrkflw_guest_fuel_sum{labels}"),
            BUDGET_OF_TRANSITION,
        ),
        (format!("wrkflw_guest_failures_total{failed}"), 1.0),
    ] {
        let value = metric(&name);
        assert!((value - at_least).abs() < f64::EPSILON, "{name} is {value}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waste_within_the_limits_affects_the_guest_alone() {
    let app = TestApp::empty().await;
    with_hostile(&app).await;
    let refused = || metric(r#"wrkflw_guest_growth_refused_total{what="memory"} "#);
    let before = refused();
    for (number, behaviour) in ["hoard", "touch", "nan", "remember"]
        .into_iter()
        .enumerate()
    {
        let body = hostile_start(&format!("t-{number}"), json!({}));
        let instance = app.post("author", "/v1/instances", body).await.started();
        let input = json!({ "behaviour": behaviour });
        let done = app
            .decided(
                "reviewer",
                &instance,
                json!({ "outcome": "GO", "input": input }),
            )
            .await;
        assert_eq!(done["outcome"], "DONE", "{behaviour}");
    }
    // The guest requested more memory than permitted, and went on after the refusal. A metric shows this.
    assert!(refused() > before);
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_a_guest_are_only_text() {
    let app = TestApp::empty().await;
    with_hostile(&app).await;
    let body = hostile_start(
        "t-1",
        json!({ "behaviour": "escapes", "function": "start" }),
    );
    let before = rows(&app).await["instance"];
    let answer = app.post("author", "/v1/instances", body).await;
    // In JSON, no byte is anything but text. Every response ends with a line feed.
    let text = answer.text.trim_end_matches('\n');
    assert!(!text.chars().any(char::is_control), "{}", answer.text);
    let problem = answer.problem(403, "forbidden");
    let reason = problem["reason"].as_str().expect("a code");
    assert!(reason.starts_with("\u{1b}[2J"), "{reason:?}");
    // The refusal is recorded as an attempt. It has no other effect.
    assert_eq!(rows(&app).await["instance"], before);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_graph_is_described_once() {
    let app = TestApp::empty().await;
    let changing = json!({ "behaviour": "changing", "function": "describe" });
    for (status, created) in [(201, true), (200, false)] {
        let published = app.publish("changing", guests::hostile(), &changing).await;
        assert_eq!(published.expect(status)["created"], created);
    }
    let shown = app
        .get("author", "/v1/definitions/changing/versions/1")
        .await
        .expect(200);
    // Each call counted from zero, so no call shares memory with another.
    assert_eq!(shown["graph"]["states"][0]["title"], "Work 0");
}

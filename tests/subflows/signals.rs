//! Signals sent to an instance: taken, buffered, refused, and counted once.

use serde_json::{Value, json};
use tokio::task::JoinSet;
use wrkflw_runtime::clock::Clock;

use super::*;
use crate::support::app::{Timers, task_of};

fn early() -> Value {
    json!({ "first": "Work", "wait": { "bufferSignals": true } })
}

/// Claims and decides the open task.
async fn go(app: &TestApp, instance: &str) -> Value {
    let shown = shown(app, instance).await;
    let body = json!({ "outcome": "GO" });
    app.decided("reviewer", &shown, body).await
}

#[tokio::test]
async fn a_signal_moves_a_waiting_state_and_counts_once() {
    let app = fixture().await;
    let subflow = begin(&app, "1", json!({})).await;
    let body = json!({ "id": "p-1", "input": { "amount": 1.50 } });
    let answer = signal(&app, &subflow, "PAID", body.clone()).await;
    assert_eq!(answer.headers["etag"], "\"2\"");
    let done = answer.expect(200);
    assert_eq!(done["instance"]["outcome"], "DONE");
    assert_eq!(done["events"][0]["type"], "dev.wrkflw.signal.received");
    // A repetition gets the same answer, also after the end.
    let again = signal(&app, &subflow, "PAID", body).await.expect(200);
    assert_eq!(
        (&again["instance"], &again["events"]),
        (&done["instance"], &json!([]))
    );
    let received = audited(&app, &subflow, "SIGNAL_RECEIVED").await;
    assert_eq!(received.len(), 1);
    assert_eq!(received[0]["sender"]["id"], "author");
    proven(&app, &subflow).await;
}

/// A repetition is not refused because of later changes.
#[tokio::test]
async fn a_repeated_signal_counts_once_whatever_has_changed_since() {
    let app = fixture().await;
    let subflow = begin(&app, "1", json!({})).await;
    let path = format!("/v1/instances/{subflow}/signals/PAID");
    let send = async || {
        let (revision, body) = ([("if-match", "\"1\"")], json!({ "id": "p-1" }));
        let host = app.host();
        host.send("author", "POST", &path, &revision, Some(body))
            .await
    };
    let done = send().await.expect(200);
    assert_eq!(done["instance"]["revision"], 2);
    let again = send().await.expect(200);
    assert_eq!(
        (&again["instance"], &again["events"]),
        (&done["instance"], &json!([]))
    );
    let stop = "/v1/definitions/subflows/versions/1/stop";
    let reason = json!({ "reason": "it starts itself in a circle" });
    app.post("admin", stop, reason).await.expect(200);
    let stopped = send().await.expect(200);
    assert_eq!(
        (&stopped["result"], &stopped["instance"]["revision"]),
        (&json!("unchanged"), &json!(2))
    );
    assert_eq!(audited(&app, &subflow, "SIGNAL_RECEIVED").await.len(), 1);
    proven(&app, &subflow).await;
}

/// Each signal without an id is a new one, unless the request repeats an idempotency key.
#[tokio::test]
async fn a_signal_without_an_id_is_identified_by_its_key() {
    let app = fixture().await;
    let subflow = begin(&app, "1", json!({ "payments": 9 })).await;
    let path = format!("/v1/instances/{subflow}/signals/PAID");
    let host = app.host();
    for (key, paid, replayed) in [("k-1", 1, false), ("k-1", 1, true), ("k-2", 2, false)] {
        let headers = [("idempotency-key", key)];
        let body = Some(json!({ "input": { "amount": 1 } }));
        let answer = host.send("author", "POST", &path, &headers, body).await;
        assert_eq!(
            answer.headers.contains_key("idempotency-replayed"),
            replayed
        );
        assert_eq!(answer.expect(200)["instance"]["data"]["paid"], paid);
    }
    proven(&app, &subflow).await;
}

#[tokio::test]
async fn a_signal_is_buffered_for_a_state_that_takes_buffered_ones() {
    let app = fixture().await;
    let subflow = begin(&app, "1", early()).await;
    for events in [1, 0] {
        let kept = signal(&app, &subflow, "PAID", json!({ "id": "p-1" })).await;
        let kept = kept.expect(202);
        assert_eq!(kept["events"].as_array().map(Vec::len), Some(events));
    }
    let done = go(&app, &subflow).await;
    assert_eq!(
        (&done["outcome"], &done["data"]["paid"]),
        (&json!("DONE"), &json!(1))
    );
    proven(&app, &subflow).await;
}

#[tokio::test]
async fn a_buffered_signal_is_dropped_by_a_state_that_takes_none() {
    let app = fixture().await;
    let subflow = begin(&app, "1", json!({ "first": "Work" })).await;
    signal(&app, &subflow, "PAID", json!({ "id": "p-1" }))
        .await
        .expect(202);
    let waiting = go(&app, &subflow).await;
    assert_eq!(
        (&waiting["states"][0]["name"], &waiting["status"]),
        (&json!("Wait"), &json!("RUNNING"))
    );
    assert_eq!(audited(&app, &subflow, "SIGNAL_TAKEN").await.len(), 1);
    signal(&app, &subflow, "PAID", json!({})).await.expect(200);
    proven(&app, &subflow).await;
}

#[tokio::test]
async fn a_refused_buffered_signal_is_recorded_and_the_next_one_counts() {
    let app = fixture().await;
    let subflow = begin(&app, "1", early()).await;
    for refuse in [true, false] {
        let body = json!({ "input": { "refuse": refuse } });
        signal(&app, &subflow, "PAID", body).await.expect(202);
    }
    assert_eq!(go(&app, &subflow).await["outcome"], "DONE");
    let refused = audited(&app, &subflow, "TRIGGER_REFUSED").await;
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0]["code"], "refused");
    proven(&app, &subflow).await;
}

#[tokio::test]
async fn of_twenty_equal_signals_at_two_hosts_one_counts() {
    let app = fixture().await;
    let second = app.beside().await;
    for (entity, data) in [
        ("waiting", json!({ "payments": 3 })),
        (
            "early",
            json!({ "first": "Work", "payments": 3, "wait": { "bufferSignals": true } }),
        ),
    ] {
        let subflow = begin(&app, entity, data).await;
        let mut sending = JoinSet::new();
        for number in 0..20 {
            let host = if number % 2 == 0 {
                app.host()
            } else {
                second.clone()
            };
            let path = format!("/v1/instances/{subflow}/signals/PAID");
            sending.spawn(async move {
                let body = json!({ "id": "the same" });
                host.send("author", "POST", &path, &[], Some(body)).await
            });
        }
        let answers = sending.join_all().await;
        assert!(
            answers.iter().all(|answer| answer.status < 300),
            "{answers:?}"
        );
        let effective = answers
            .iter()
            .filter(|answer| answer.body["events"] != json!([]));
        assert_eq!(effective.count(), 1);
        if entity == "early" {
            go(&app, &subflow).await;
        }
        let shown = shown(&app, &subflow).await;
        assert_eq!(
            (&shown["data"]["paid"], &shown["status"]),
            (&json!(1), &json!("RUNNING"))
        );
        assert_eq!(audited(&app, &subflow, "SIGNAL_RECEIVED").await.len(), 1);
        proven(&app, &subflow).await;
    }
}

#[tokio::test]
async fn an_invalid_signal_is_refused() {
    let app = fixture().await;
    let subflow = begin(&app, "1", json!({})).await;
    let unknown = signal(&app, &subflow, "GO", json!({})).await;
    let unknown = unknown.problem(422, "invalid_input");
    assert_eq!(unknown["errors"][0]["code"], "unknown_signal");
    assert!(
        unknown["detail"]
            .as_str()
            .is_some_and(|text| text.contains("LEAVE, PAID, WITHDRAW"))
    );
    for body in [json!({ "id": "" }), json!({ "id": "x".repeat(201) })] {
        signal(&app, &subflow, "PAID", body)
            .await
            .problem(422, "invalid_request");
    }
    let refused = signal(
        &app,
        &subflow,
        "PAID",
        json!({ "input": { "refuse": true } }),
    )
    .await;
    assert_eq!(refused.problem(403, "forbidden")["reason"], "refused");
    let path = format!("/v1/instances/{subflow}/signals/PAID");
    let nobody = format!("Bearer {}", app.host().token_of("nobody", "default", &[]));
    let headers = [("authorization", nobody.as_str())];
    let sent = app
        .host()
        .send("", "POST", &path, &headers, Some(json!({})))
        .await;
    sent.problem(403, "permission_missing");
    let stale = [("if-match", "\"9\"")];
    let sent = app
        .host()
        .send("author", "POST", &path, &stale, Some(json!({})))
        .await;
    sent.problem(412, "stale_revision");
    let dry = format!("{path}?dryRun=true");
    let would = app
        .post("author", &dry, json!({ "id": "p-1" }))
        .await
        .expect(200);
    assert_eq!(would["instance"]["outcome"], "DONE");
    assert_eq!(shown(&app, &subflow).await["revision"], 1);
    let command = |name: &str| format!("/v1/instances/{subflow}/{name}");
    let reason = json!({ "reason": "an audit" });
    app.post("admin", &command("suspend"), reason.clone())
        .await
        .expect(200);
    signal(&app, &subflow, "PAID", json!({}))
        .await
        .problem(409, "instance_suspended");
    app.post("admin", &command("cancel"), reason)
        .await
        .expect(200);
    signal(&app, &subflow, "PAID", json!({}))
        .await
        .problem(409, "instance_ended");
}

#[tokio::test]
async fn buffered_signals_are_limited() {
    let app = fixture().await;
    let subflow = begin(&app, "1", early()).await;
    for _ in 0..100 {
        signal(&app, &subflow, "PAID", json!({})).await.expect(202);
    }
    signal(&app, &subflow, "PAID", json!({}))
        .await
        .problem(409, "limit_reached");
    proven(&app, &subflow).await;
}

#[tokio::test]
async fn actions_name_the_signals_that_apply_and_why_the_rest_do_not() {
    let app = fixture().await;
    let subflow = begin(&app, "1", early()).await;
    let listed = async |user: &str| {
        let path = format!("/v1/instances/{subflow}/actions");
        let listed = app.get(user, &path).await.expect(200);
        let actions = listed["actions"].as_array().expect("actions").clone();
        let signals = actions
            .into_iter()
            .filter(|action| action["action"] == "signal");
        signals.collect::<Vec<_>>()
    };
    let signals = listed("author").await;
    assert_eq!(signals.len(), 1, "{signals:?}");
    assert_eq!(
        (&signals[0]["trigger"], &signals[0]["allowed"]),
        (&json!("WITHDRAW"), &json!(true))
    );
    sqlx::query("delete from role_permission where permission = 'instance:signal'")
        .execute(app.database.admin_pool())
        .await
        .expect("a change");
    let refused = listed("author").await;
    assert_eq!(refused[0]["refusal"]["code"], "permission_missing");
}

/// A requester withdraws the request while others work on it.
#[tokio::test]
async fn work_is_withdrawn_by_a_signal() {
    let app = fixture().await;
    let subflow = begin(&app, "1", early()).await;
    let task = task_of(&shown(&app, &subflow).await);
    let claim = format!("/v1/tasks/{task}/claim");
    app.post("reviewer", &claim, json!({})).await.expect(200);
    let gone = signal(&app, &subflow, "WITHDRAW", json!({}))
        .await
        .expect(200);
    assert_eq!(gone["instance"]["outcome"], "DROPPED");
    let body = json!({ "outcome": "GO" });
    let decide = format!("/v1/tasks/{task}/decide");
    app.post("reviewer", &decide, body)
        .await
        .problem(409, "task_taken");
    proven(&app, &subflow).await;
}

#[tokio::test]
async fn a_deadline_ends_a_wait() {
    let app = fixture().await;
    let subflow = begin(&app, "1", json!({ "wait": { "late": 60 } })).await;
    let now = app.engine.clock().now().as_millisecond();
    let clock = Clock::Manual(std::sync::Arc::new((now + 90_000).into()));
    let engine = app.engine_with_clock(clock).await;
    let timers = Timers::start(&engine, std::sync::Arc::new(engine.clone()));
    let done = until_status(&app, &subflow, "COMPLETED").await;
    assert_eq!(done["outcome"], "DONE");
    timers.stop().await;
    proven(&app, &subflow).await;
}

/// The sender of a buffered signal must not be able to make the decisions of others fail.
#[tokio::test]
async fn a_buffered_signal_over_which_flow_logic_fails_is_recorded() {
    let app = fixture().await;
    let subflow = begin(&app, "1", early()).await;
    for (id, refuse) in [("p-1", json!("badly")), ("p-2", json!(false))] {
        let body = json!({ "id": id, "input": { "refuse": refuse } });
        signal(&app, &subflow, "PAID", body).await.expect(202);
    }
    assert_eq!(go(&app, &subflow).await["outcome"], "DONE");
    let refused = audited(&app, &subflow, "TRIGGER_REFUSED").await;
    let codes: Vec<_> = refused.iter().map(|payload| &payload["code"]).collect();
    assert_eq!(codes, ["logic_fault"]);
    proven(&app, &subflow).await;
}

/// Each buffered signal runs flow logic while the sender of the command waits. So a command takes only a few of them.
#[tokio::test]
async fn a_job_takes_the_buffered_signals_that_a_command_leaves() {
    let app = fixture().await;
    let data = json!({ "first": "Work", "payments": 40, "wait": { "bufferSignals": true } });
    let subflow = begin(&app, "1", data).await;
    for number in 1..=40 {
        let body = json!({ "id": format!("p-{number}"), "input": {} });
        signal(&app, &subflow, "PAID", body).await.expect(202);
    }
    assert_eq!(go(&app, &subflow).await["data"]["paid"], 16);
    let timers = app.timers();
    let done = until_status(&app, &subflow, "COMPLETED").await;
    settled(&app).await;
    timers.stop().await;
    assert_eq!(done["data"]["paid"], 40);
    proven(&app, &subflow).await;
}

//! Child instances: each child starts once, its end is reported once, and the end of a parent reaches its grandchildren.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use wrkflw_runtime::clock::Clock;

use super::*;
use crate::support::app::task_of;

fn child(entity: &str, data: Value) -> Value {
    json!({ "entity": entity, "data": data, "onEnd": "ENDED" })
}

fn parent(children: &[Value]) -> Value {
    json!({ "wait": { "children": children } })
}

async fn cancel(app: &TestApp, instance: &str) {
    let path = format!("/v1/instances/{instance}/cancel");
    let body = json!({ "reason": "no longer needed" });
    app.post("admin", &path, body).await.expect(200);
}

#[tokio::test]
async fn two_hosts_start_each_child_once_and_take_back_each_end_once() {
    let app = fixture().await;
    let (_, engine) = app.beside_with_engine(app.database.url(), TIMEOUT).await;
    let timers = [
        app.timers(),
        Timers::start(&engine, std::sync::Arc::new(engine.clone())),
    ];
    let entities = ["a", "b", "c"];
    let wanted = entities.map(|entity| child(entity, json!({})));
    let subflow = begin(&app, "1", parent(&wanted)).await;
    let started = children(&app, &subflow, 3).await;
    let state_instance = &shown(&app, &subflow).await["states"][0];
    let named: Vec<_> = state_instance["children"]
        .as_array()
        .expect("children")
        .iter()
        .map(id)
        .collect();
    assert_eq!(named, started);
    for one in &started {
        let shown = shown(&app, one).await;
        assert_eq!(
            (&shown["parentId"], &shown["initiator"]),
            (&json!(subflow), &json!("author"))
        );
        assert_eq!(shown["requesters"], json!(["author"]));
        signal(&app, one, "PAID", json!({})).await.expect(200);
    }
    let done = until_status(&app, &subflow, "COMPLETED").await;
    settled(&app).await;
    let ends = done["data"]["ends"].as_object().expect("ends");
    assert_eq!(ends.len(), 3);
    assert!(
        ends.values()
            .all(|end| *end == json!({ "outcome": "DONE", "version": 1, "data": { "paid": 1 } }))
    );
    assert_eq!(audited(&app, &subflow, "CHILD_ENDED").await.len(), 3);
    for timers in timers {
        timers.stop().await;
    }
    for instance in started.iter().chain([&subflow]) {
        proven(&app, instance).await;
    }
}

#[tokio::test]
async fn a_child_that_can_never_start_has_ended_for_its_parent() {
    let app = fixture().await;
    let timers = app.timers();
    begin(&app, "taken", json!({})).await;
    let mut stranger = child("a", json!({}));
    stranger["key"] = json!("nowhere");
    let wanted = [
        stranger,
        child("b", json!({ "refuse": true })),
        child("c", json!({ "first": 5 })),
        child("taken", json!({})),
    ];
    let subflow = begin(&app, "1", parent(&wanted)).await;
    until_status(&app, &subflow, "COMPLETED").await;
    let ended = audited(&app, &subflow, "CHILD_ENDED").await;
    let mut reasons: Vec<_> = ended
        .iter()
        .map(|end| {
            assert_eq!(
                (&end["outcome"], &end["version"]),
                (&json!("NOT_STARTED"), &Value::Null)
            );
            end["reason"].as_str().expect("a reason")
        })
        .collect();
    reasons.sort_unstable();
    assert_eq!(reasons[0], "as it was asked to");
    assert!(
        reasons[1].contains("already runs about this entity"),
        "{reasons:?}"
    );
    assert!(
        reasons[2].contains("is not accepted: /data/first"),
        "{reasons:?}"
    );
    assert_eq!(reasons[3], "there is no definition nowhere");
    children(&app, &subflow, 0).await;
    settled(&app).await;
    timers.stop().await;
    proven(&app, &subflow).await;
}

#[tokio::test]
async fn cancelling_reaches_grandchildren() {
    let app = fixture().await;
    let timers = app.timers();
    let inner = parent(&[child("grandchild", json!({}))]);
    let subflow = begin(&app, "1", parent(&[child("child", inner)])).await;
    let middle = children(&app, &subflow, 1).await.remove(0);
    let last = children(&app, &middle, 1).await.remove(0);
    cancel(&app, &subflow).await;
    for instance in [&middle, &last] {
        let gone = until_status(&app, instance, "CANCELLED").await;
        let cancelled = json!({ "reason": "parent left the state", "by": "wrkflw:host" });
        assert_eq!(gone["cancelled"], cancelled);
    }
    settled(&app).await;
    timers.stop().await;
    for instance in [&subflow, &middle, &last] {
        proven(&app, instance).await;
    }
}

/// The reason is that of the flow's deadline; the children end as with any cancellation.
#[tokio::test]
async fn a_deadline_that_cancels_reaches_grandchildren() {
    let now = Arc::new(AtomicI64::new(Clock::System.now().as_millisecond()));
    let app = fixture_at(Clock::Manual(now.clone())).await;
    let timers = app.timers();
    let inner = parent(&[child("grandchild", json!({}))]);
    let mut data = parent(&[child("child", inner)]);
    data["wait"]["late"] = json!(60);
    data["wait"]["cancel"] = json!("the money did not come");
    let subflow = begin(&app, "1", data).await;
    let middle = children(&app, &subflow, 1).await.remove(0);
    let last = children(&app, &middle, 1).await.remove(0);
    now.fetch_add(60_000, Ordering::SeqCst);
    app.engine.wake_workers();
    let gone = until_status(&app, &subflow, "CANCELLED").await;
    let cancelled = json!({ "reason": "the money did not come", "by": "wrkflw:host" });
    assert_eq!(gone["cancelled"], cancelled);
    for instance in [&middle, &last] {
        until_status(&app, instance, "CANCELLED").await;
    }
    settled(&app).await;
    timers.stop().await;
    for instance in [&subflow, &middle, &last] {
        proven(&app, instance).await;
    }
}

/// They are found like instances with tasks.
#[tokio::test]
async fn instances_that_wait_are_found_by_when_they_are_due() {
    let now = Arc::new(AtomicI64::new(Clock::System.now().as_millisecond()));
    let app = fixture_at(Clock::Manual(now)).await;
    let begun = app.engine.clock().now();
    let late = begin(
        &app,
        "1",
        json!({ "wait": { "late": 60, "correlation": "1" } }),
    )
    .await;
    begin(&app, "2", json!({ "wait": { "correlation": "2" } })).await;
    for (seconds, expected) in [(59, vec![]), (61, vec![&late])] {
        let due = begun + jiff::SignedDuration::from_secs(seconds);
        let path = format!("/v1/instances?dueBefore={due}");
        let page = app.get("author", &path).await.expect(200);
        let listed = page["data"].as_array().expect("a list").iter();
        let found: Vec<_> = listed
            .map(|one| one["id"].as_str().expect("an id"))
            .collect();
        assert_eq!(found, expected, "{seconds}");
    }
}

/// By another transition out of the state, or by the end of the instance.
#[tokio::test]
async fn leaving_the_state_cancels_its_children() {
    for trigger in ["LEAVE", "PAID"] {
        let app = fixture().await;
        let timers = app.timers();
        let subflow = begin(&app, "1", parent(&[child("child", json!({}))])).await;
        let one = children(&app, &subflow, 1).await.remove(0);
        signal(&app, &subflow, trigger, json!({})).await.expect(200);
        until_status(&app, &one, "CANCELLED").await;
        settled(&app).await;
        // The parent has left the state, so the end of its child has no effect on it.
        assert_eq!(
            audited(&app, &subflow, "CHILD_ENDED").await,
            [] as [Value; 0]
        );
        timers.stop().await;
        proven(&app, &one).await;
    }
}

#[tokio::test]
async fn the_nesting_of_children_is_limited() {
    let app = fixture().await;
    let timers = app.timers();
    let mut data = json!({});
    for level in (1..10).rev() {
        data = parent(&[child(&format!("level {level}"), data)]);
    }
    let subflow = begin(&app, "level 0", data).await;
    until_status(&app, &subflow, "COMPLETED").await;
    assert_eq!(counted(&app, "select count(*) from instance").await, 8);
    settled(&app).await;
    timers.stop().await;
}

/// The requester of the parent must not decide in its child.
#[tokio::test]
async fn nobody_approves_their_own_request_through_a_child() {
    let app = fixture().await;
    let timers = app.timers();
    let subflow = begin(
        &app,
        "1",
        parent(&[child("child", json!({ "first": "Work" }))]),
    )
    .await;
    let one = children(&app, &subflow, 1).await.remove(0);
    let task = task_of(&shown(&app, &one).await);
    let claim = format!("/v1/tasks/{task}/claim");
    let refused = app.post("author", &claim, json!({})).await;
    assert_eq!(refused.problem(403, "forbidden")["reason"], "own_request");
    app.post("reviewer", &claim, json!({})).await.expect(200);
    timers.stop().await;
}

#[tokio::test]
async fn the_end_of_a_cancelled_child_comes_back() {
    let app = fixture().await;
    let timers = app.timers();
    let subflow = begin(&app, "1", parent(&[child("child", json!({}))])).await;
    let one = children(&app, &subflow, 1).await.remove(0);
    cancel(&app, &one).await;
    let done = until_status(&app, &subflow, "COMPLETED").await;
    assert_eq!(done["data"]["ends"][&one]["outcome"], "CANCELLED");
    settled(&app).await;
    timers.stop().await;
    proven(&app, &subflow).await;
}

/// A child about an entity of which a sole instance runs cannot start: its parent learns why.
#[tokio::test]
async fn a_child_about_a_taken_entity_is_not_started() {
    let app = fixture().await;
    let versions = [
        json!({ "sole": true }),
        json!({ "sole": true, "observers": [] }),
    ];
    for (number, config) in versions.iter().enumerate() {
        app.publish("sole", subflows(), config).await.expect(201);
        let path = format!("/v1/definitions/sole/versions/{}/activate", number + 1);
        app.post("admin", &path, json!({})).await.expect(200);
        let entity = format!("taken-{number}");
        let body = json!({
            "definitionKey": "sole", "entityType": "errand", "entityId": entity, "data": { "first": "Work" },
        });
        let running = id(&app.post("author", "/v1/instances", body).await.started());
        let timers = app.timers();
        let data = parent(&[child(&entity, json!({}))]);
        let subflow = begin(&app, &number.to_string(), data).await;
        until_status(&app, &subflow, "COMPLETED").await;
        let ended = &audited(&app, &subflow, "CHILD_ENDED").await[0];
        assert!(ended.to_string().contains("NOT_STARTED"), "{ended}");
        // Not everybody who sees the parent sees a restricted instance.
        let is_named = ended.to_string().contains(&running);
        assert_eq!(is_named, number == 0, "{ended}");
        timers.stop().await;
        proven(&app, &subflow).await;
    }
}

/// A detached child goes on after its parent has ended, even if it starts only then. Its end is reported to nobody.
#[tokio::test]
async fn detached_children_outlive_their_parent() {
    let app = fixture().await;
    let detached = |entity: &str| {
        let mut detached = child(entity, json!({}));
        detached["detached"] = json!(true);
        detached
    };
    for (number, is_begun) in [("1", true), ("2", false)] {
        let wanted = [
            detached(&format!("d{number}")),
            child(&format!("a{number}"), json!({})),
        ];
        let subflow = begin(&app, number, parent(&wanted)).await;
        if is_begun {
            let timers = app.timers();
            children(&app, &subflow, 2).await;
            settled(&app).await;
            timers.stop().await;
        }
        signal(&app, &subflow, "PAID", json!({})).await.expect(200);
        let ended = shown(&app, &subflow).await;
        assert_eq!(ended["outcome"], "DONE");
        let timers = app.timers();
        settled(&app).await;
        let all = children(&app, &subflow, if is_begun { 2 } else { 1 }).await;
        let mut ends = Vec::new();
        for one in &all {
            let one = shown(&app, one).await;
            ends.push((one["entityId"].clone(), one["status"].clone()));
        }
        ends.sort_by_key(|(entity, _)| entity.to_string());
        let lasts = (json!(format!("d{number}")), json!("RUNNING"));
        let stopped = (json!(format!("a{number}")), json!("CANCELLED"));
        if is_begun {
            assert_eq!(ends, [stopped, lasts]);
        } else {
            assert_eq!(ends, [lasts]);
        }
        for one in &all {
            let one = shown(&app, one).await;
            assert_eq!(
                (&one["parentId"], &one["requesters"]),
                (&json!(subflow), &json!(["author"]))
            );
            if one["status"] == "RUNNING" {
                signal(&app, one["id"].as_str().expect("an id"), "PAID", json!({}))
                    .await
                    .expect(200);
            }
        }
        settled(&app).await;
        timers.stop().await;
        assert_eq!(shown(&app, &subflow).await, ended);
        for one in all.iter().chain([&subflow]) {
            proven(&app, one).await;
        }
    }
}

/// A signal that was buffered lets the state be left in the commit that enters it. Only its detached child starts.
#[tokio::test]
async fn the_detached_child_of_a_state_that_is_left_at_once_starts() {
    let app = fixture().await;
    let timers = app.timers();
    let mut detached = child("d", json!({}));
    detached["detached"] = json!(true);
    let mut data = parent(&[detached, child("a", json!({}))]);
    data["first"] = json!("Work");
    data["wait"]["bufferSignals"] = json!(true);
    let subflow = begin(&app, "1", data).await;
    signal(&app, &subflow, "PAID", json!({})).await.expect(202);
    let working = shown(&app, &subflow).await;
    let body = json!({ "outcome": "GO" });
    let done = app.decided("reviewer", &working, body).await;
    assert_eq!(done["outcome"], "DONE");
    settled(&app).await;
    let one = children(&app, &subflow, 1).await.remove(0);
    let started = shown(&app, &one).await;
    assert_eq!(
        (&started["entityId"], &started["status"]),
        (&json!("d"), &json!("RUNNING"))
    );
    timers.stop().await;
    for instance in [&subflow, &one] {
        proven(&app, instance).await;
    }
}

/// The end of a detached child is reported as long as its parent waits.
#[tokio::test]
async fn a_detached_child_that_is_waited_for_moves_its_parent() {
    let app = fixture().await;
    let timers = app.timers();
    let mut detached = child("d", json!({}));
    detached["detached"] = json!(true);
    let subflow = begin(&app, "1", parent(&[detached])).await;
    let one = children(&app, &subflow, 1).await.remove(0);
    let found = &shown(&app, &subflow).await["states"][0]["children"][0];
    assert_eq!(
        (&found["id"], &found["detached"]),
        (&json!(one), &json!(true))
    );
    signal(&app, &one, "PAID", json!({})).await.expect(200);
    until_status(&app, &subflow, "COMPLETED").await;
    settled(&app).await;
    timers.stop().await;
    proven(&app, &subflow).await;
}

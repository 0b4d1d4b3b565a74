//! Nobody is eligible: the fallbacks, the unassignable state, and how it recovers when the directory changes.

use super::*;
use crate::api::notifications::{notifier, settings};
use crate::support::app::task_of;
use wrkflw_engine::job_handlers::look_again;
use wrkflw_store::directory::tenants;

/// The instance once `is_so` holds. Commits of this host wake the loop.
pub(super) async fn becoming(
    app: &TestApp,
    instance: &Value,
    is_so: impl Fn(&Value) -> bool,
) -> Value {
    let mut commits = app.engine.commits();
    loop {
        let now = shown(app, instance).await;
        if is_so(&now) {
            return now;
        }
        let change = tokio::time::timeout(std::time::Duration::from_mins(1), commits.changed());
        let waited = change
            .await
            .unwrap_or_else(|_| panic!("it stays as it is: {now}"));
        waited.expect("the engine runs");
    }
}

fn since(instance: &Value) -> &Value {
    &instance["states"][0]["unassignableSince"]
}

async fn listed(app: &TestApp, filter: &str) -> Vec<String> {
    let path = format!("/v1/instances?{filter}");
    let page = app.get("admin", &path).await.expect(200);
    let lines = page["data"].as_array().expect("data").iter();
    lines.map(|line| id(line).to_owned()).collect()
}

/// The value in `/metrics`.
async fn unassignable_total(app: &TestApp) -> u64 {
    let text = app.get("", "/metrics").await.text;
    let line = text
        .lines()
        .find(|line| line.starts_with("wrkflw_states_unassignable_total "));
    let value = line.and_then(|line| line.split(' ').nth(1));
    value.map_or(0, |value| value.parse().expect("a number"))
}

#[tokio::test]
async fn an_empty_group_goes_to_the_manager_then_the_fallback_group() {
    let app = chambers().await;
    group(&app, "bench").await;
    let data =
        json!({ "assign": { "offers": [{ "groups": ["bench"] }], "fallback": "approvers" } });
    let instance = vote(&app, "without-manager", data.clone()).await;
    let steps = async |instance: &Value| {
        let entries = audited(&app, instance, "TASK_REROUTED").await;
        entries
            .iter()
            .map(|entry| entry["step"].as_str().expect("a step").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (steps(&instance).await, since(&instance)),
        (vec!["fallback".to_owned()], &Value::Null)
    );
    let claim = format!("/v1/tasks/{}/claim", task_of(&instance));
    app.post("reviewer", &claim, json!({}))
        .await
        .problem(403, "forbidden");
    app.post("approver", &claim, json!({})).await.expect(200);

    manager(&app, "author", "reviewer").await;
    let instance = vote(&app, "with-manager", data).await;
    assert_eq!(steps(&instance).await, ["manager"]);
    let claim = format!("/v1/tasks/{}/claim", task_of(&instance));
    app.post("approver", &claim, json!({}))
        .await
        .problem(403, "forbidden");
    app.post("reviewer", &claim, json!({})).await.expect(200);
}

#[tokio::test]
async fn an_automatic_change_of_candidates_is_published_as_an_escalation() {
    let app = chambers().await;
    let _working = notifier(&app, settings(&[]));
    group(&app, "bench").await;
    let data =
        json!({ "assign": { "offers": [{ "groups": ["bench"] }], "fallback": "approvers" } });
    let instance = vote(&app, "too few", data).await;
    let candidates = |groups: &[&str]| {
        let all = groups.iter();
        json!(
            all.map(|id| json!({ "type": "group", "id": id }))
                .collect::<Vec<_>>()
        )
    };
    let (from, to) = (candidates(&["bench"]), candidates(&["bench", "approvers"]));
    let task = task_of(&instance);
    let escalated = audited(&app, &instance, "TASK_ESCALATED").await;
    let [escalated] = escalated.as_slice() else {
        panic!("{escalated:?}");
    };
    assert_eq!(
        (&escalated["reason"], &escalated["from"], &escalated["to"]),
        (&json!("too_few_eligible"), &from, &to)
    );
    let events = app.events().await;
    let mut events = events.iter();
    let event = events.find(|event| event["type"] == "dev.wrkflw.task.escalated");
    let event = &event.expect("an event")["data"];
    assert_eq!(
        (
            &event["reason"],
            &event["previousCandidates"],
            &event["candidates"]
        ),
        (&json!("too_few_eligible"), &from, &to)
    );
    let path = format!("/v1/instances/{}/history", id(&instance));
    let history = app.get("author", &path).await.expect(200);
    let shown = &history["data"][0]["escalations"][0];
    assert_eq!(
        (
            &shown["reason"],
            &shown["taskId"],
            &shown["previousCandidates"],
            &shown["candidates"]
        ),
        (&json!("too_few_eligible"), &json!(task), &from, &to)
    );
    let notification = async {
        loop {
            let page = app.get("approver", "/v1/notifications").await.expect(200);
            if let [one] = page["data"].as_array().expect("data").as_slice() {
                return one.clone();
            }
            crate::support::pause().await;
        }
    };
    let notification = tokio::time::timeout(TIMEOUT, notification).await;
    let notification = notification.expect("the fallback group is notified");
    assert_eq!(
        (
            &notification["kind"],
            &notification["recipient"],
            &notification["taskId"]
        ),
        (&json!("ESCALATION"), &json!("approvers"), &json!(task))
    );
}

#[tokio::test]
async fn an_unassignable_state_recovers_with_the_first_member() {
    let app = chambers().await;
    group(&app, "bench").await;
    let counted = unassignable_total(&app).await;
    let offers = json!([{ "groups": ["bench"] }]);
    let body = json!({
        "definitionKey": "committee", "entityType": "motion", "entityId": "stuck",
        "data": { "assign": { "offers": offers } },
    });
    let answer = app.post("author", "/v1/instances", body).await.expect(201);
    let stuck = answer["instance"].clone();
    assert!(since(&stuck).is_string(), "{stuck}");
    assert_eq!(stuck["status"], "RUNNING");
    let events = answer["events"].as_array().expect("events").iter();
    let types: Vec<_> = events.map(|event| &event["type"]).collect();
    assert!(
        types.contains(&&json!("dev.wrkflw.state.unassignable")),
        "{types:?}"
    );
    assert!(unassignable_total(&app).await > counted);
    let nobody = vote(&app, "nobody", json!({ "assign": {} })).await;
    assert_eq!(
        (&tasks(&nobody)[0]["label"], since(&nobody).is_string()),
        (&json!("The vote"), true)
    );
    let fine = vote(
        &app,
        "fine",
        json!({ "assign": { "offers": [{ "users": ["approver"] }] } }),
    )
    .await;
    assert_eq!(
        listed(&app, "unassignable=true").await,
        [id(&nobody), id(&stuck)]
    );
    assert_eq!(
        listed(&app, "unassignable=true&limit=1").await,
        [id(&nobody)]
    );
    assert_eq!(listed(&app, "unassignable=false").await, [id(&fine)]);

    let timers = app.timers();
    member(&app, "bench", "benny").await;
    let healed = becoming(&app, &stuck, |instance| since(instance).is_null()).await;
    assert_eq!(listed(&app, "unassignable=true").await, [id(&nobody)]);
    let entries = audited(&app, &stuck, "STATE_ASSIGNABLE").await;
    assert_eq!(entries.len(), 1);
    // A manager of the initiator who is entered later counts, too.
    manager(&app, "author", "approver").await;
    let found = becoming(&app, &nobody, |instance| since(instance).is_null()).await;
    assert_eq!(
        tasks(&found)[0]["candidates"],
        json!([{ "type": "user", "id": "approver" }])
    );
    let claim = format!("/v1/tasks/{}/claim", task_of(&healed));
    app.post("benny", &claim, json!({})).await.expect(200);
    timers.stop().await;
}

#[tokio::test]
async fn the_last_member_leaves_and_an_owner_loses_a_task_that_they_may_not_have() {
    let app = chambers().await;
    group(&app, "bench").await;
    for person in ["benny", "betty"] {
        member(&app, "bench", person).await;
    }
    let offers = json!([{ "groups": ["bench"] }]);
    let instance = vote(&app, "left", json!({ "assign": { "offers": offers } })).await;
    let claim = format!("/v1/tasks/{}/claim", task_of(&instance));
    app.post("benny", &claim, json!({})).await.expect(200);
    let timers = app.timers();
    leave(&app, "bench", "benny").await;
    let released = becoming(&app, &instance, |now| tasks(now)[0]["status"] == "PENDING").await;
    assert!(since(&released).is_null(), "betty is left");
    let entries = audited(&app, &instance, "TASK_RELEASED").await;
    assert_eq!(
        (&entries[0]["owner"], &entries[0]["reason"]),
        (&json!("benny"), &json!("lost_eligibility"))
    );
    leave(&app, "bench", "betty").await;
    let stuck = becoming(&app, &instance, |now| since(now).is_string()).await;
    assert_eq!(stuck["status"], "RUNNING");
    member(&app, "bench", "betty").await;
    becoming(&app, &instance, |now| since(now).is_null()).await;
    timers.stop().await;
}

#[tokio::test]
async fn a_reassessment_without_changes_leaves_no_trace() {
    let app = chambers().await;
    let offers = json!([{ "groups": ["reviewers"] }]);
    let instance = vote(&app, "calm", json!({ "assign": { "offers": offers } })).await;
    let tenant = tenants::find(app.store(), "default")
        .await
        .expect("an answer")
        .expect("a tenant");
    let id: uuid::Uuid = id(&instance).parse().expect("an id");
    let looked = look_again(&app.engine, tenant, wrkflw_core::ids::InstanceId(id));
    looked.await.expect("a look");
    assert_eq!(
        shown(&app, &instance).await["revision"],
        instance["revision"]
    );
    let gone = wrkflw_core::ids::InstanceId(wrkflw_runtime::clock::new_id());
    look_again(&app.engine, tenant, gone)
        .await
        .expect("nothing to look at");
}

#[tokio::test]
async fn the_short_response_to_a_start_shows_an_unassignable_state() {
    let app = chambers().await;
    for (entity, users, is_told) in [
        ("short", json!([]), true),
        ("short-fine", json!(["approver"]), false),
    ] {
        let data = json!({ "assign": { "offers": [{ "users": users }] } });
        let body = json!({
            "definitionKey": "committee", "entityType": "motion", "entityId": entity, "data": data,
        });
        let short = [("prefer", "return=minimal")];
        let host = app.host();
        let started = host.send("author", "POST", "/v1/instances", &short, Some(body));
        let started = started.await.started();
        assert_eq!(since(&started).is_string(), is_told, "{started}");
    }
}

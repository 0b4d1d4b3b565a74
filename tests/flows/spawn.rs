//! A state that goes on while branches begin beside it.

use super::*;
use crate::support::guests::branches;

fn here(instance: &Value) -> Vec<&str> {
    let states = instance["states"].as_array().expect("states").iter();
    states
        .map(|state| state["name"].as_str().expect("a name"))
        .collect()
}

/// The task of the first active state of this name.
fn task_in<'a>(instance: &'a Value, name: &str) -> &'a Value {
    let mut states = instance["states"].as_array().expect("states").iter();
    let state = states.find(|state| state["name"] == name);
    &state.expect("an active state")["tasks"][0]
}

async fn branch(app: &TestApp, data: Value) -> Value {
    offer(app, "branches", branches(), json!({})).await;
    let body = json!({
        "definitionKey": "branches", "entityType": "walk", "entityId": "1", "data": data,
    });
    app.post("admin", "/v1/instances", body).await.started()
}

/// A non-interrupting deadline: the reminder is a branch beside the work, which its owner keeps. The join waits for both.
#[tokio::test]
async fn a_deadline_begins_a_reminder_beside_the_work() {
    let time = Time::begin();
    let app = TestApp::empty_at(time.clock()).await;
    let instance = branch(&app, json!({ "late": 3600 })).await;
    let timers = app.timers();
    let work = task_in(&instance, "A").clone();
    claim(&app, "reviewer", &work).await;
    time.work(&app, &[&app.engine], 3600).await;
    let late = shown(&app, &instance).await;
    assert_eq!(here(&late).len(), 9, "{late}");
    assert_eq!(task_in(&late, "A")["status"], "CLAIMED");
    assert_eq!(late["states"][8]["name"], "Reminder");
    assert_eq!(
        late["states"][8]["predecessorIds"][0],
        late["states"][0]["id"]
    );
    assert_eq!(late["states"][8]["forkIds"], late["states"][0]["forkIds"]);
    let continued = audited(&app, &instance, "STATE_CONTINUED").await;
    assert_eq!(continued[0]["to"], json!(["Reminder"]));

    time.work(&app, &[&app.engine], 3600).await;
    timers.stop().await;
    let twice = shown(&app, &instance).await;
    assert_eq!(here(&twice)[8..], ["Reminder", "Reminder"]);
    let path = format!("/v1/instances/{}/diagram.svg", id(&instance));
    let drawn = app.host().send("admin", "GET", &path, &[], None).await;
    assert_eq!(drawn.status, 200);
    assert!(drawn.text.contains("Reminder"), "{}", drawn.text);

    // The owner's dry run predicts the effect of the real decision.
    let path = format!("/v1/tasks/{}/decide", id(&work));
    let go = json!({ "outcome": "GO" });
    let trial = format!("{path}?dryRun=true");
    let tried = app.post("reviewer", &trial, go.clone()).await;
    let tried = tried.expect(200)["instance"].clone();
    app.post("reviewer", &path, go).await.expect(200);
    let gone = shown(&app, &instance).await;
    assert_eq!(here(&tried), here(&gone));
    for name in ["B", "C", "D", "E", "F", "G", "H"] {
        decide(
            &app,
            "reviewer",
            task_in(&gone, name),
            json!({ "outcome": "GO" }),
        )
        .await;
    }
    let left = shown(&app, &instance).await;
    assert_eq!(here(&left), ["Reminder", "Reminder"], "the join waits");
    for outcome in ["GO", "END"] {
        let left = shown(&app, &instance).await;
        decide(
            &app,
            "reviewer",
            task_in(&left, "Reminder"),
            json!({ "outcome": outcome }),
        )
        .await;
    }
    let met = shown(&app, &instance).await;
    assert_eq!(here(&met), ["Meet"]);
    assert_eq!(
        met["states"][0]["predecessorIds"].as_array().map(Vec::len),
        Some(9)
    );
    decide(
        &app,
        "reviewer",
        task_in(&met, "Meet"),
        json!({ "outcome": "GO" }),
    )
    .await;
    prove_all(&app).await;
}

/// The deadline of one branch cancels the others, too.
#[tokio::test]
async fn a_deadline_of_one_branch_cancels_all_of_them() {
    let time = Time::begin();
    let app = TestApp::empty_at(time.clock()).await;
    let instance = branch(&app, json!({ "cancel": 3600, "late": 2400 })).await;
    let timers = app.timers();
    claim(&app, "reviewer", task_in(&instance, "C")).await;
    time.work(&app, &[&app.engine], 2400).await;
    assert_eq!(here(&shown(&app, &instance).await).len(), 9);
    time.work(&app, &[&app.engine], 1200).await;
    timers.stop().await;

    let ended = shown(&app, &instance).await;
    assert_eq!(ended["status"], "CANCELLED");
    assert_eq!(ended["cancelled"]["reason"], "B took too long");
    assert_eq!(ended["cancelled"]["by"], "wrkflw:host");
    assert_eq!(here(&ended), [""; 0]);
    let passed = audited(&app, &instance, "DEADLINE_PASSED").await;
    let cancelled = audited(&app, &instance, "FLOW_CANCELLED").await;
    let last = passed.last().expect("a deadline");
    for name in ["deadline", "state"] {
        assert_eq!(cancelled[0][name], last[name]);
    }
    let tasks = audited(&app, &instance, "TASK_CANCELLED").await;
    assert_eq!(tasks.len(), 9);
    let path = format!("/v1/instances/{}/history", id(&instance));
    let history = app.get("admin", &path).await.expect(200);
    assert!(history.to_string().contains("\"CANCEL\""), "{history}");
    let jobs = sqlx::query_scalar::<_, i64>("select count(*) from job");
    let jobs = jobs.fetch_one(app.database.admin_pool()).await;
    assert_eq!(jobs.expect("a count"), 0);
    let path = format!("/v1/tasks/{}/decide", id(task_in(&instance, "C")));
    let late = app.post("reviewer", &path, json!({ "outcome": "GO" }));
    assert_eq!(late.await.status, 409);
    prove_all(&app).await;
}

fn keys(instance: &Value) -> Vec<&str> {
    let states = instance["states"].as_array().expect("states").iter();
    states.filter_map(|state| state["key"].as_str()).collect()
}

/// The task of the item with this key.
fn task_of<'a>(instance: &'a Value, key: &str) -> &'a Value {
    let mut states = instance["states"].as_array().expect("states").iter();
    let state = states.find(|state| state["key"] == key);
    &state.expect("an item at work")["tasks"][0]
}

/// Decides the items one after the other. The join waits for the last one.
async fn finish_items(app: &TestApp, instance: &Value) {
    for (person, key) in [
        ("reviewer", "bolt"),
        ("approver", "washer"),
        ("approver", "nut"),
    ] {
        let here = shown(app, instance).await;
        assert_eq!(
            here["waiting"].as_array().map(Vec::len),
            Some(usize::from(key != "bolt"))
        );
        decide(app, person, task_of(&here, key), json!({ "outcome": "GO" })).await;
    }
}

/// Consumers see the key of an item, but not its data.
async fn published_without_data(app: &TestApp) {
    let is_published = async {
        loop {
            let events = app.get("admin", "/v1/events?limit=100").await.expect(200);
            let events = events.to_string();
            if events.contains("\"key\":\"washer\"") {
                return events;
            }
            crate::support::pause().await;
        }
    };
    let events = tokio::time::timeout(TIMEOUT, is_published).await;
    let events = events.expect("an event of the item");
    assert!(!events.contains("\"group\":\"approvers\""), "{events}");
}

/// One branch per item, offered to the group in its data. Further items begin while these are in progress.
#[tokio::test]
async fn every_item_has_a_branch_and_the_join_waits_for_all() {
    let app = TestApp::empty().await;
    let items = json!([
        { "id": "bolt", "group": "reviewers" },
        { "id": "nut", "group": "approvers" },
    ]);
    let instance = branch(&app, json!({ "items": items })).await;
    assert_eq!(keys(&instance), ["bolt", "nut"]);
    assert_eq!(instance["states"][1]["data"]["group"], "approvers");
    assert_eq!(
        instance["states"][0]["forkIds"],
        instance["states"][1]["forkIds"]
    );
    let path = format!("/v1/tasks/{}/claim", id(task_of(&instance, "nut")));
    app.post("reviewer", &path, json!({})).await.expect(403);

    let path = format!("/v1/instances/{}/signals/MORE", id(&instance));
    let more = |items: Value, name: &str| json!({ "id": name, "input": { "items": items } });
    let washer = json!([{ "id": "washer", "group": "approvers" }]);
    let sent = app
        .post("admin", &path, more(washer.clone(), "first"))
        .await;
    sent.expect(200);
    let shown_now = shown(&app, &instance).await;
    assert_eq!(keys(&shown_now), ["bolt", "nut", "washer"]);
    // The same item again is a fault of the flow, and changes nothing.
    let again = app.post("admin", &path, more(washer, "second")).await;
    let problem = again.problem(424, "logic_fault");
    let detail = problem["detail"].as_str().expect("a detail");
    assert!(
        detail.contains("Item is active already with the key \"washer\""),
        "{detail}"
    );
    assert_eq!(shown(&app, &instance).await, shown_now);

    finish_items(&app, &instance).await;
    let met = shown(&app, &instance).await;
    assert_eq!(here(&met), ["Meet"]);
    assert_eq!(
        met["states"][0]["predecessorIds"].as_array().map(Vec::len),
        Some(3)
    );
    let path = format!("/v1/instances/{}/history", id(&instance));
    let history = app.get("admin", &path).await.expect(200);
    let text = history.to_string();
    for key in ["bolt", "nut", "washer"] {
        assert!(
            text.contains(&format!("\"key\":\"{key}\"")),
            "{key} is missing in {text}"
        );
    }
    published_without_data(&app).await;
    decide(
        &app,
        "reviewer",
        task_in(&met, "Meet"),
        json!({ "outcome": "GO" }),
    )
    .await;
    prove_all(&app).await;
}

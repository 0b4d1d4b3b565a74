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
    app.post("admin", "/v1/instances", body).await.expect(201)
}

/// A non-interrupting deadline: the reminder stands beside the work, which its owner keeps, and the join waits for both.
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
        late["states"][8]["predecessors"][0],
        late["states"][0]["id"]
    );
    assert_eq!(late["states"][8]["forks"], late["states"][0]["forks"]);
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

    // The dry run of the owner says what the real decision then does.
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
        met["states"][0]["predecessors"].as_array().map(Vec::len),
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

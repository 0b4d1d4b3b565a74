//! Display texts: the title and the summary of an instance, descriptions, and names of priorities.

use super::*;
use crate::api::notifications::{notifier, settings};

fn config() -> Value {
    json!({
        "instanceTitle": "Motion {entityId}: {/subject}", "instanceSummary": "{/votes} votes so far",
        "priorities": [{ "name": "normal", "atLeast": 0 }, { "name": "urgent", "atLeast": 100 }],
    })
}

/// A vote of three reviewers about a subject, with this priority.
async fn motion(app: &TestApp, priority: u32) -> Value {
    let offer = json!({ "groups": ["reviewers"] });
    let data = json!({
        "subject": "the\tbudget", "votes": 0,
        "assign": { "offers": [offer, offer, offer], "needed": 2, "priority": priority },
    });
    vote(app, "m-1", data).await
}

async fn chambers_with_words() -> TestApp {
    let app = TestApp::empty().await;
    offer(&app, "committee", committee(), config()).await;
    app
}

fn ballot(votes: u32) -> Value {
    json!({ "outcome": "YES", "input": { "data": { "votes": votes } } })
}

/// The data of the published events of this type.
async fn published(app: &TestApp, kind: &str) -> Vec<Value> {
    let events = app.events().await;
    let kind = format!("dev.wrkflw.{kind}");
    let data = events
        .into_iter()
        .filter(|event| event["type"] == *kind)
        .map(|event| event["data"].clone());
    data.collect()
}

#[tokio::test]
async fn lists_and_events_show_titles_summaries_and_priorities() {
    let app = chambers_with_words().await;
    let instance = motion(&app, 120).await;
    let title = json!("Motion m-1: the budget");
    let summary = json!("0 votes so far");
    let of_task = |listed: &Value| {
        let task = &listed["data"][0];
        [
            &task["instanceTitle"],
            &task["instanceSummary"],
            &task["priority"],
            &task["priorityName"],
        ]
        .map(Value::clone)
    };
    let shown_task = [title.clone(), summary.clone(), json!(120), json!("urgent")];
    let path = "/v1/tasks?view=available";
    let listed = app.get("reviewer", path).await.expect(200);
    assert_eq!(of_task(&listed), shown_task);
    for path in ["/v1/instances", "/v1/entities/motion/m-1/history"] {
        let listed = app.get("admin", path).await.expect(200);
        let line = &listed["data"][0];
        assert_eq!((&line["title"], &line["summary"]), (&title, &summary));
    }
    let view = shown(&app, &instance).await;
    assert_eq!((&view["title"], &view["summary"]), (&title, &summary));
    let state = &view["states"][0];
    assert_eq!(state["description"], "The vote: what is done.");
    assert_eq!(state["priorityName"], "urgent");
    let task = format!("/v1/tasks/{}", id(&tasks(&instance)[0]));
    let detail = app.get("reviewer", &task).await.expect(200);
    assert_eq!(
        detail["state"],
        json!({
            "id": state["id"], "name": "Vote", "title": "The vote", "description": "The vote: what is done.",
            "priority": 120, "priorityName": "urgent",
        })
    );
    let started = published(&app, "flow.started").await;
    assert_eq!(
        (&started[0]["instanceTitle"], &started[0]["instanceSummary"]),
        (&title, &summary)
    );
    let entered = published(&app, "state.entered").await;
    assert_eq!(entered[0]["state"]["priorityName"], "urgent");
    let path = format!("/v1/instances/{}/diagram.svg", id(&instance));
    let drawn = app.host().send("admin", "GET", &path, &[], None).await;
    assert!(
        drawn.text.contains("Committee: states and the path"),
        "{}",
        drawn.text
    );
    assert!(
        drawn.text.contains("Vote: The vote: what is done."),
        "{}",
        drawn.text
    );
    let versions = app.get("admin", "/v1/definitions").await.expect(200);
    assert_eq!(versions["data"][0]["title"], "Committee");
    prove_all(&app).await;
}

#[tokio::test]
async fn a_change_of_the_data_changes_title_and_summary() {
    let app = chambers_with_words().await;
    let instance = motion(&app, 0).await;
    let open = tasks(&instance).clone();
    decide(&app, "reviewer", &open[0], ballot(0)).await;
    assert_eq!(published(&app, "flow.retitled").await, Vec::<Value>::new());
    let path = format!("/v1/tasks/{}/decide?dryRun=true", id(&open[1]));
    let tried = app.post("reviewer2", &path, ballot(1)).await.expect(200);
    assert_eq!(tried["instance"]["summary"], "1 votes so far");
    decide(&app, "reviewer2", &open[1], ballot(1)).await;
    let after = shown(&app, &instance).await;
    assert_eq!(after["outcome"], "APPROVED");
    assert_eq!(after["summary"], "1 votes so far");
    let retitled = published(&app, "flow.retitled").await;
    assert_eq!(retitled.len(), 1);
    let now = (
        &retitled[0]["instanceTitle"],
        &retitled[0]["instanceSummary"],
    );
    let title = json!("Motion m-1: the budget");
    assert_eq!(now, (&title, &json!("1 votes so far")));
    let before = (
        &retitled[0]["previousTitle"],
        &retitled[0]["previousSummary"],
    );
    assert_eq!(before, (&title, &json!("0 votes so far")));
    // Earlier events keep their texts.
    let started = published(&app, "flow.started").await;
    assert_eq!(started[0]["instanceSummary"], "0 votes so far");
    prove_all(&app).await;
}

#[tokio::test]
async fn a_migration_changes_title_summary_and_the_names_of_priorities() {
    let app = chambers_with_words().await;
    let instance = motion(&app, 120).await;
    let config =
        json!({ "instanceTitle": "{/subject}", "priorities": [{ "name": "soon", "atLeast": 1 }] });
    app.publish("committee", committee(), &config)
        .await
        .expect(201);
    let path = format!("/v1/instances/{}/migrate", id(&instance));
    let migrated = app.post("admin", &path, json!({ "version": 2 })).await;
    migrated.expect(200);
    let after = shown(&app, &instance).await;
    assert_eq!(after["title"], "the budget");
    assert_eq!(after.get("summary"), None);
    assert_eq!(after["states"][0]["priorityName"], "soon");
    let retitled = published(&app, "flow.retitled").await;
    assert_eq!(retitled[0]["instanceTitle"], "the budget");
    assert_eq!(retitled[0].get("instanceSummary"), None);
    assert_eq!(retitled[0]["definitionVersion"], 2);
    prove_all(&app).await;
}

#[tokio::test]
async fn a_notification_shows_the_title() {
    let app = chambers_with_words().await;
    let _working = notifier(&app, settings(&[]));
    let started = motion(&app, 120).await;
    let notification = async {
        loop {
            let page = app.get("reviewer", "/v1/notifications").await.expect(200);
            if let Some(first) = page["data"].get(0) {
                return first.clone();
            }
            crate::support::pause().await;
        }
    };
    let notification = tokio::time::timeout(TIMEOUT, notification).await;
    let notification = notification.expect("a notification");
    assert_eq!(notification["instanceTitle"], "Motion m-1: the budget");
    assert_eq!(notification["instanceSummary"], "0 votes so far");
    assert_eq!(notification["definitionKey"], "committee");
    assert_eq!(notification["definitionVersion"], 1);
    assert_eq!(notification["state"], started["states"][0]["name"]);
    assert_eq!(notification["stateTitle"], started["states"][0]["title"]);
    assert_eq!(notification["priority"], 120);
    assert_eq!(notification["priorityName"], "urgent");
}

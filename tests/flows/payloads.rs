//! The payloads of events for consumers: names and titles, earlier values, and the public fields of an input only.

use super::*;
use crate::api::notifications;
use crate::events::consumer::{Consumer, Received};
use crate::faults::dead_letters;
use crate::support::receiver::Receiver;

const DECIDED: &str = "dev.wrkflw.decision.recorded";

/// YES requires an amount, which is public, and a remark, which is not.
async fn chambers_with_a_form() -> TestApp {
    let app = TestApp::empty().await;
    let input = json!({
        "type": "object",
        "properties": { "amount": { "type": "number", "x-public": true }, "remark": { "type": "string" }, "data": {} },
    });
    let config = json!({
        "instanceTitle": "Motion {entityId}",
        "transitions": { "YES": { "input": input } },
    });
    offer(&app, "committee", committee(), config).await;
    app
}

async fn published(app: &TestApp, kind: &str) -> Vec<Value> {
    let kind = format!("dev.wrkflw.{kind}");
    let events = app.events().await.into_iter();
    let data = events.filter(|event| event["type"] == *kind);
    data.map(|event| event["data"].clone()).collect()
}

#[tokio::test]
async fn a_decision_publishes_the_public_fields_of_its_input_and_the_changes() {
    let app = chambers_with_a_form().await;
    let offers =
        json!({ "assign": { "offers": [{ "owner": "reviewer", "label": "Vote on it" }] } });
    let instance = vote(&app, "m-1", offers).await;
    let task = tasks(&instance)[0].clone();
    let input = json!({ "amount": 7, "remark": "between us", "data": { "votes": { "yes": 1 } } });
    let decision = json!({ "outcome": "YES", "input": input });
    let path = format!("/v1/tasks/{}/decide", id(&task));
    let prefer = [("prefer", "return=representation")];
    let answer = app
        .host()
        .send("reviewer", "POST", &path, &prefer, Some(decision))
        .await;
    let answered = answer.expect(200)["events"].clone();

    let recorded = published(&app, "decision.recorded").await;
    assert_eq!(recorded[0]["input"], json!({ "amount": 7 }));
    for (member, value) in [
        ("instanceId", &instance["id"]),
        ("instanceTitle", &json!("Motion m-1")),
        ("stateId", &instance["states"][0]["id"]),
        ("stateName", &json!("Vote")),
        ("stateTitle", &json!("The vote")),
        ("taskId", &task["id"]),
        ("taskTitle", &task["label"]),
        ("definitionKey", &json!("committee")),
        ("definitionTitle", &json!("Committee")),
        ("entityType", &json!("motion")),
        ("entityId", &json!("m-1")),
        ("actor", &json!("reviewer")),
    ] {
        assert_eq!(recorded[0][member], *value, "{member}");
    }
    let moved = published(&app, "state.transitioned").await;
    assert_eq!(moved[0]["dataPointers"], json!(["/votes/yes"]));
    let started = published(&app, "flow.started").await;
    assert_eq!(started[0]["dataPointers"], json!(["/assign/offers"]));
    let all = app.events().await;
    for secret in ["between us", "\"votes\":", "forks", "choices"] {
        assert!(!json!(all).to_string().contains(secret), "{secret}");
    }
    // The response to the command has the same events.
    let of_command = &all[all.len() - answered.as_array().expect("events").len()..];
    assert_eq!(answered, json!(of_command));
}

/// A record in binary mode as one document: its headers are the attributes, and its value is the data.
fn document(record: &Received) -> Value {
    let mut document = json!({
        "data": record.value, "datacontenttype": record.headers["content-type"],
    });
    for (name, value) in &record.headers {
        if let Some(attribute) = name.strip_prefix("ce_") {
            document[attribute] = json!(value);
        }
    }
    document
}

#[tokio::test]
async fn a_decision_is_the_same_event_in_the_response_feed_webhook_and_kafka() {
    let app = chambers_with_a_form().await;
    let mut hook = Receiver::start().await;
    let subscription = json!({ "url": hook.url, "types": ["decision.recorded"] });
    let created = app.post("admin", "/v1/subscriptions", subscription).await;
    created.expect(201);
    let _working = notifications::notifier(&app, notifications::settings(&[]));
    let kafka = dead_letters::settings(&app);
    let _sending = dead_letters::send(&app, &kafka);
    let offers = json!({ "assign": { "offers": [{ "owner": "reviewer" }] } });
    let instance = vote(&app, "m-1", offers).await;
    let path = format!("/v1/tasks/{}/decide", id(&tasks(&instance)[0]));
    let input = json!({ "amount": 7, "remark": "between us" });
    let decision = json!({ "outcome": "YES", "comment": "So be it.", "input": input });
    let answer = app.post("reviewer", &path, decision).await.expect(200);

    let is_decided = |event: &&Value| event["type"] == DECIDED;
    let answered = answer["events"].as_array().expect("events").iter();
    let decided: Vec<_> = answered.filter(is_decided).collect();
    assert_eq!(decided.len(), 1, "{answer}");
    let answered = decided[0];
    assert_eq!(answered["subject"], instance["id"]);
    assert_eq!(answered["data"]["input"], json!({ "amount": 7 }));
    let fed = app.events().await;
    let fed: Vec<_> = fed.iter().filter(is_decided).collect();
    assert_eq!(fed, [answered]);
    assert_eq!(hook.next().await.body, *answered);
    let mut consumer = Consumer::of(&kafka.brokers, &kafka.topic).await;
    let is_sent = |record: &&Received| record.headers["ce_type"] == DECIDED;
    consumer
        .receive_until(|received| received.iter().any(|record| is_sent(&record)))
        .await;
    let sent = consumer.received.iter().find(is_sent);
    assert_eq!(document(sent.expect("it is sent")), *answered);
}

#[tokio::test]
async fn every_event_satisfies_its_schema_and_the_index_has_all_schemas() {
    let app = chambers_with_a_form().await;
    let instance = vote(
        &app,
        "m-1",
        json!({ "assign": { "offers": [{ "groups": ["reviewers"] }] } }),
    )
    .await;
    decide(
        &app,
        "reviewer",
        &tasks(&instance)[0],
        json!({ "outcome": "YES" }),
    )
    .await;
    let index = app.get("", "/schemas/").await.expect(200);
    assert_eq!(app.get("", "/schemas").await.expect(200), index);
    let listed = index["data"].as_array().expect("types");
    let base = "http://localhost:8080";
    for event in app.events().await {
        let named = listed.iter().find(|one| one["type"] == event["type"]);
        let named = named.unwrap_or_else(|| panic!("no {}", event["type"]));
        assert_eq!(named["dataschema"], event["dataschema"]);
        let url = event["dataschema"].as_str().expect("a URL");
        let path = url.strip_prefix(base).expect("ours");
        let schema = app.get("", path).await.expect(200);
        assert_eq!(schema["$id"], url);
        assert!(jsonschema::is_valid(&schema, &event["data"]), "{event}");
    }
    for one in listed {
        let url = one["dataschema"].as_str().expect("a URL");
        let path = url.strip_prefix(base).expect("ours");
        if !path.contains('{') {
            app.get("", path).await.expect(200);
        }
    }
    let types: Vec<_> = listed
        .iter()
        .map(|one| one["type"].as_str().expect("a type"))
        .collect();
    assert!(types.is_sorted());
    for kind in [
        "audit.checkpoint",
        "notification.assignment_created",
        "custom.{name}",
        "task.claimed",
    ] {
        assert!(
            types.contains(&format!("dev.wrkflw.{kind}").as_str()),
            "{kind}"
        );
    }
}

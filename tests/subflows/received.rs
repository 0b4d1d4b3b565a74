//! The list of the signals that an instance has received.

use serde_json::{Value, json};

use super::*;

async fn listed(app: &TestApp, subflow: &str, query: &str) -> Value {
    let path = format!("/v1/instances/{subflow}/signals{query}");
    app.get("author", &path).await.expect(200)
}

fn ids(page: &Value) -> Vec<&Value> {
    let signals = page["data"].as_array().expect("data").iter();
    signals.map(|one| &one["id"]).collect()
}

#[tokio::test]
async fn an_instance_lists_the_signals_that_it_received_newest_first() {
    let app = fixture().await;
    let wait = json!({ "correlation": "order 7", "bufferSignals": false });
    let subflow = begin(&app, "1", json!({ "payments": 9, "wait": wait })).await;
    assert_eq!(listed(&app, &subflow, "").await["data"], json!([]));
    let direct = json!({ "id": "p-1", "input": { "amount": 1 } });
    let taken = signal(&app, &subflow, "PAID", direct.clone()).await;
    let taken = taken.expect(200);
    // A repeated signal is not stored twice, and a refused one is not stored.
    signal(&app, &subflow, "PAID", direct).await.expect(200);
    signal(&app, &subflow, "JUNK", json!({ "id": "p-9" }))
        .await
        .problem(422, "invalid_input");
    let by_key = json!({ "correlation": "order 7", "id": "p-2", "input": { "amount": 2 } });
    let sent = app.post("reviewer", "/v1/signals/PAID", by_key).await;
    sent.expect(200);

    let all = listed(&app, &subflow, "").await;
    assert_eq!(ids(&all), ["p-2", "p-1"], "{all}");
    let [newest, oldest] = all["data"].as_array().expect("data").as_slice() else {
        panic!("{all}");
    };
    assert_eq!(newest["sender"], "reviewer");
    assert_eq!(
        (&oldest["sender"], &oldest["trigger"]),
        (&json!("author"), &json!("PAID"))
    );
    assert_eq!(oldest["eventId"], taken["events"][0]["id"]);
    assert_eq!(oldest["receivedAt"], taken["events"][0]["time"]);
    let state = &shown(&app, &subflow).await["states"][0]["id"];
    assert_eq!((&newest["stateId"], &oldest["stateId"]), (state, state));

    let first = listed(&app, &subflow, "?limit=1").await;
    assert_eq!(ids(&first), ["p-2"]);
    let next = first["page"]["next"].as_str().expect("a second page");
    let second = listed(&app, &subflow, &format!("?limit=1&after={next}")).await;
    assert_eq!(ids(&second), ["p-1"]);
    assert_eq!(second["page"]["next"], Value::Null);
    let nowhere = "/v1/instances/01a20416-5f62-7350-986a-13b0f0477285/signals";
    app.get("author", nowhere).await.problem(404, "not_found");
}

#[tokio::test]
async fn a_buffered_signal_has_no_state_instance() {
    let app = fixture().await;
    let subflow = begin(&app, "1", json!({ "first": "Work" })).await;
    let early = json!({ "id": "p-1", "input": { "amount": 1 } });
    signal(&app, &subflow, "PAID", early).await.expect(202);
    let all = listed(&app, &subflow, "").await;
    assert_eq!(ids(&all), ["p-1"]);
    assert_eq!(all["data"][0]["stateId"], Value::Null);
}

#[tokio::test]
async fn an_unreadable_signal_is_listed_without_its_payload() {
    let app = fixture().await;
    let subflow = begin(&app, "1", json!({ "first": "Work" })).await;
    let early = json!({ "id": "p-1", "input": { "amount": 1 } });
    signal(&app, &subflow, "PAID", early).await.expect(202);
    let erased = "set session_replication_role = replica;
        update audit_entry set payload = '' where type = 'SIGNAL_RECEIVED'; reset session_replication_role";
    sqlx::raw_sql(erased)
        .execute(app.database.admin_pool())
        .await
        .expect("an update");
    let all = listed(&app, &subflow, "").await;
    let [one] = all["data"].as_array().expect("data").as_slice() else {
        panic!("{all}");
    };
    assert_eq!((&one["id"], &one["trigger"]), (&Value::Null, &Value::Null));
    assert_eq!(one["sender"], "author");
}

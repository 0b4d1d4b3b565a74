//! Long texts: padding gives no advantage, and no text stops an instance.

use super::*;
use crate::support::guests::purchase_approval;

/// The size of the padding of each decision. Flow logic could not get several of this size in full.
const PADDING: usize = 60_000;
const VOTERS: usize = 30;

fn voter(number: usize) -> String {
    format!("voter-{number:03}")
}

/// The limits of a document for an input and its comment.
fn padded(outcome: &str, padding: usize) -> Value {
    let comment = "c".repeat(padding.min(16_000));
    json!({ "outcome": outcome, "comment": comment, "input": { "costCentre": "4711", "padding": "x".repeat(padding) } })
}

/// A manager who is also in finance approves with this much padding. Returns the next state.
async fn approved_by_manager(app: &TestApp, entity: &str, padding: usize) -> Value {
    let data = json!({ "amount": 60, "currency": "EUR", "supplier": "Desks Ltd" });
    let body = json!({
        "definitionKey": "purchase-approval", "entityType": "purchase", "entityId": entity, "data": data,
    });
    let instance = app.post("ann", "/v1/instances", body).await.started();
    let task = tasks(&instance)[0].clone();
    assert_eq!(task["candidates"][0]["id"], "meg");
    let decided = decide(app, "meg", &task, padded("APPROVE", padding)).await;
    assert_eq!(decided["states"][0]["name"], "Finance", "{decided}");
    decided
}

#[tokio::test]
async fn padding_buys_no_second_vote() {
    let app = TestApp::empty().await;
    let finance = ["fay", "finn", "flora", "fred", "meg"];
    let config = json!({ "finance": finance });
    group(&app, "finance-office").await;
    group(&app, "cfo").await;
    for person in ["ann", "meg"].into_iter().chain(finance) {
        let path = format!("/v1/people/{person}");
        let put = app.put("admin", &path, json!({ "name": person }));
        put.await.expect(200);
    }
    manager(&app, "ann", "meg").await;
    offer(&app, "purchase-approval", purchase_approval(), config).await;
    for (entity, padding) in [("plain", 0), ("padded", PADDING)] {
        let instance = approved_by_manager(&app, entity, padding).await;
        let offered = tasks(&instance).iter();
        let first: Vec<_> = offered.map(|task| &task["candidates"][0]["id"]).collect();
        assert_eq!(first, ["fay", "finn", "flora", "fred"], "{entity}");
        // Texts that flow logic did not get are still visible to people.
        let path = format!("/v1/instances/{}/actions", id(&instance));
        let explained = app.get("fay", &path).await.expect(200);
        let omitted = json!({ "texts": usize::from(padding > 0), "states": 0, "actions": 0 });
        assert_eq!(explained["omitted"], omitted, "{entity}");
    }
    prove_all(&app).await;
}

#[tokio::test]
async fn padded_votes_stop_no_vote() {
    let app = chambers().await;
    let offers: Vec<_> = (0..VOTERS)
        .map(|number| json!({ "users": [voter(number)] }))
        .collect();
    let assign = json!({ "offers": offers, "needed": VOTERS });
    let instance = vote(&app, "padded", json!({ "assign": assign })).await;
    for (number, task) in tasks(&instance).iter().enumerate() {
        let (user, path) = (voter(number), format!("/v1/tasks/{}/decide", id(task)));
        claim(&app, &user, task).await;
        let refused = app.post(&user, &path, padded("YES", PADDING)).await;
        let problem = refused.problem(422, "invalid_input");
        let error = &problem["errors"][0];
        assert_eq!(error["pointer"], "/input", "{problem}");
        let detail = error["detail"].as_str().expect("a detail");
        assert!(detail.contains("at most"), "{detail}");
        let vote = app.post(&user, &path, padded("YES", 1_000)).await;
        let status = if number + 1 < VOTERS {
            "RUNNING"
        } else {
            "COMPLETED"
        };
        assert_eq!(vote.expect(200)["instance"]["status"], status);
    }
    prove_all(&app).await;
}

/// More open tasks than one response explains.
#[tokio::test]
async fn a_response_counts_the_actions_that_it_leaves_out() {
    const TASKS: usize = 110;
    // An owner may release, delegate, reassign, reset and suspend, and has the flow's own YES, NO and MORE.
    const ACTIONS: usize = 8 * TASKS;
    let app = chambers().await;
    let assign = json!({ "offers": vec![json!({ "owner": "ann" }); TASKS], "needed": TASKS });
    let instance = vote(&app, "large", json!({ "assign": assign })).await;
    let path = format!("/v1/instances/{}/actions", id(&instance));
    let explained = app.get("ann", &path).await.expect(200);
    let actions = explained["actions"].as_array().expect("actions").iter();
    let count = actions
        .filter(|action| action["taskId"].is_string())
        .count();
    assert!(count < ACTIONS, "{count}");
    assert_eq!(explained["omitted"]["actions"], json!(ACTIONS - count));
}

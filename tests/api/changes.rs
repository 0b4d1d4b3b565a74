//! The changes of an instance's data by each step, with the values before and after.

use super::*;

/// A committee whose votes may patch the data.
async fn committee() -> TestApp {
    let app = TestApp::empty().await;
    let input = json!({ "type": "object", "properties": { "data": {} } });
    let config = json!({ "transitions": { "YES": { "input": input } } });
    app.publish("committee", guests::committee(), &config)
        .await
        .expect(201);
    let path = "/v1/definitions/committee/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
    app
}

/// A vote of two people, with a sum and a remark in the data.
async fn motion(app: &TestApp) -> Value {
    let offers = json!([{ "owner": "reviewer" }, { "owner": "approver" }]);
    let data = json!({
        "assign": { "offers": offers, "needed": 2 }, "sum": 1, "remark": { "by": "ann", "why": null },
    });
    let body = json!({
        "definitionKey": "committee", "entityType": "motion", "entityId": "m-1", "data": data,
    });
    app.post("author", "/v1/instances", body).await.started()
}

async fn vote(app: &TestApp, instance: &Value, place: usize, patch: Value) {
    let task = &instance["states"][0]["tasks"][place];
    let owner = task["owner"].as_str().expect("an owner");
    let address = format!("/v1/tasks/{}/decide", task["id"].as_str().expect("an id"));
    let body = json!({ "outcome": "YES", "input": { "data": patch } });
    app.post(owner, &address, body).await.expect(200);
}

fn path(instance: &Value, query: &str) -> String {
    let id = instance["id"].as_str().expect("an id");
    format!("/v1/instances/{id}/changes{query}")
}

#[tokio::test]
async fn each_step_has_the_values_before_and_after() {
    let app = committee().await;
    let instance = motion(&app).await;
    let patch = json!({ "sum": 2.5, "remark": { "by": null, "lines": [1, 2] } });
    vote(&app, &instance, 0, patch).await;
    vote(
        &app,
        &instance,
        1,
        json!({ "sum": 2.5, "remark": { "lines": [] } }),
    )
    .await;
    let page = app.get("author", &path(&instance, "")).await.expect(200);
    let steps = page["data"].as_array().expect("steps");
    let listed: Vec<_> = steps
        .iter()
        .map(|step| (&step["trigger"], &step["state"], &step["actor"]))
        .collect();
    let (vote, none) = (json!("Vote"), Value::Null);
    let trigger = |place: usize| &steps[place]["trigger"];
    assert!(trigger(1).is_string() && trigger(2).is_string(), "{page}");
    assert_eq!(
        listed,
        [
            (&none, &none, &json!("author")),
            (trigger(1), &vote, &json!("reviewer")),
            (trigger(2), &vote, &json!("approver")),
        ]
    );
    let start = steps[0]["changes"].as_array().expect("changes");
    assert!(
        start.contains(&json!({ "pointer": "/sum", "after": 1 })),
        "{page}"
    );
    assert!(start.iter().all(|one| one.get("before").is_none()));
    assert_eq!(
        steps[1]["changes"],
        json!([
            { "pointer": "/remark/by", "before": "ann" },
            { "pointer": "/remark/lines", "after": [1, 2] },
            { "pointer": "/sum", "before": 1, "after": 2.5 },
        ])
    );
    // Setting the same value is no change.
    assert_eq!(
        steps[2]["changes"],
        json!([{ "pointer": "/remark/lines", "before": [1, 2], "after": [] }])
    );
    // The last values of the steps are the present data.
    let id = instance["id"].as_str().expect("an id");
    let shown = app.get("author", &format!("/v1/instances/{id}")).await;
    let data = &shown.expect(200)["data"];
    assert_eq!(data.pointer("/sum"), Some(&json!(2.5)));
    assert_eq!(data.pointer("/remark/lines"), Some(&json!([])));
}

#[tokio::test]
async fn pages_of_changes_continue_where_the_last_one_ended() {
    let app = committee().await;
    let instance = motion(&app).await;
    vote(&app, &instance, 0, json!({ "sum": 2 })).await;
    let whole = app.get("author", &path(&instance, "")).await.expect(200);
    assert_eq!(whole["page"]["next"], Value::Null);
    let (mut steps, mut after) = (Vec::new(), String::new());
    for _ in 0..3 {
        let page = app
            .get("author", &path(&instance, &format!("?limit=1{after}")))
            .await
            .expect(200);
        steps.extend(page["data"].as_array().expect("steps").clone());
        match page["page"]["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(json!(steps), whole["data"]);
    assert_eq!(steps.len(), 2);
}

#[tokio::test]
async fn changes_are_shown_to_those_who_see_the_instance() {
    let app = committee().await;
    let instance = motion(&app).await;
    let none = "/v1/instances/00000000-0000-0000-0000-000000000001/changes";
    app.get("author", none).await.problem(404, "not_found");
    grant(&app, "watcher", &["event:read"]).await;
    let host = app.host();
    let (name, token) = bearer(&host, "ann", "default", &["watcher"]);
    let headers = [(name, token.as_str())];
    let path = path(&instance, "");
    let refused = host.send("", "GET", &path, &headers, None);
    refused.await.problem(403, "permission_missing");
}

/// Such a page is rendered on another thread, and so are its selected fields.
#[tokio::test]
async fn a_large_page_has_the_requested_fields() {
    const REMARK_CHARS: usize = 50_000;
    let app = committee().await;
    let instance = motion(&app).await;
    for (place, text) in ["a", "b"].into_iter().enumerate() {
        let patch = json!({ "remark": text.repeat(REMARK_CHARS) });
        vote(&app, &instance, place, patch).await;
    }
    let whole = app.get("author", &path(&instance, "")).await;
    assert!(whole.text.len() > 3 * REMARK_CHARS, "{}", whole.text.len());
    let whole = whole.expect(200);
    let cut = path(&instance, "?fields=actor,trigger");
    let cut = app.get("author", &cut).await.expect(200);
    let steps = whole["data"].as_array().expect("steps").iter();
    let short: Vec<_> = steps
        .map(|step| json!({ "actor": step["actor"], "trigger": step["trigger"] }))
        .collect();
    assert_eq!(cut["data"], json!(short));
}

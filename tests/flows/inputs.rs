//! What transitions declare about their input: titles and forms for people, the comment rule, and the schema of decisions and
//! signals.

use super::*;
use crate::support::guests::order_handling;

fn amount() -> Value {
    json!({
        "type": "object", "required": ["amount"],
        "properties": { "amount": { "type": "number", "maximum": 100 } },
    })
}

/// YES requires an amount and a comment; NO permits no comment.
async fn app_with_inputs() -> TestApp {
    let app = TestApp::empty().await;
    let transitions = json!({
        "YES": {
            "title": "Approve", "description": "The motion is carried.", "condition": "At most 100.",
            "input": amount(), "comment": "required",
        },
        "NO": { "comment": "none" },
    });
    offer(
        &app,
        "committee",
        committee(),
        json!({ "transitions": transitions }),
    )
    .await;
    app
}

fn owned() -> Value {
    json!({ "assign": { "offers": [{ "owner": "reviewer" }] } })
}

#[track_caller]
fn pointers(problem: &Value) -> Vec<&str> {
    let errors = problem["errors"].as_array().expect("errors").iter();
    errors
        .map(|error| error["pointer"].as_str().expect("a pointer"))
        .collect()
}

#[tokio::test]
async fn a_task_shows_its_outcomes() {
    let app = app_with_inputs().await;
    let instance = vote(&app, "shown", owned()).await;
    let task = id(&tasks(&instance)[0]);
    let path = format!("/v1/tasks/{task}");
    let shown = app.get("reviewer", &path).await.expect(200);
    assert_eq!(
        shown["outcomes"][0],
        json!({
            "outcome": "YES", "title": "Approve", "comment": "required", "needsInput": true,
            "required": ["/comment", "/input/amount"],
            "description": "The motion is carried.", "condition": "At most 100.", "input": amount(),
        })
    );
    let outcomes = shown["outcomes"].as_array().expect("outcomes").iter();
    let named: Vec<_> = outcomes.map(|one| &one["outcome"]).collect();
    assert_eq!(
        named,
        ["YES", "NO", "MORE"],
        "and not what a deadline fires"
    );
    let listed = app.get("reviewer", "/v1/tasks").await.expect(200);
    let no = json!({ "outcome": "NO", "title": "NO", "comment": "none", "needsInput": false, "required": [] });
    assert_eq!(listed["data"][0]["outcomes"][1], no);
    let path = "/v1/definitions/committee/versions/1";
    let version = app.get("admin", path).await.expect(200);
    let transition = &version["graph"]["transitions"][0];
    assert_eq!(
        (
            &transition["title"],
            &transition["input"],
            &transition["comment"]
        ),
        (&json!("Approve"), &amount(), &json!("required"))
    );
    let path = "/v1/definitions/committee/versions/1/diagram.svg";
    let diagram = app.get("admin", path).await.text;
    assert!(
        diagram.contains("<title>YES: At most 100.</title>"),
        "{diagram}"
    );
}

#[tokio::test]
async fn a_decision_satisfies_the_rules_of_its_outcome() {
    let app = app_with_inputs().await;
    let instance = vote(&app, "asked", owned()).await;
    let path = format!("/v1/tasks/{}/decide", id(&tasks(&instance)[0]));
    let decide = async |body: Value| app.post("reviewer", &path, body).await;
    for (body, expected) in [
        (
            json!({ "outcome": "YES" }),
            &["/comment", "/input/amount"][..],
        ),
        (
            json!({ "outcome": "YES", "comment": " ", "input": { "amount": 1 } }),
            &["/comment"],
        ),
        (
            json!({ "outcome": "YES", "comment": "Fine.", "input": { "amount": "much" } }),
            &["/input/amount"],
        ),
        (
            json!({ "outcome": "YES", "comment": "Fine.", "input": { "amount": 101 } }),
            &["/input/amount"],
        ),
        (
            json!({ "outcome": "NO", "comment": "Never." }),
            &["/comment"],
        ),
    ] {
        let problem = decide(body.clone()).await.problem(422, "invalid_input");
        assert_eq!(pointers(&problem), expected, "{body}");
    }
    let body = json!({ "outcome": "YES", "comment": "Fine.", "input": { "amount": 100 } });
    let ended = decide(body).await.expect(200);
    assert_eq!(ended["instance"]["outcome"], "APPROVED");
}

/// Actions list what is still required, and flow logic is called although nothing is filled in yet.
#[tokio::test]
async fn actions_show_the_requirements_of_an_outcome() {
    let app = app_with_inputs().await;
    let instance = vote(&app, "buttons", owned()).await;
    let path = format!("/v1/instances/{}/actions", id(&instance));
    let shown = app.get("reviewer", &path).await.expect(200);
    let actions = shown["actions"].as_array().expect("actions");
    let action = |outcome: &str| {
        let found = actions.iter().find(|action| action["outcome"] == outcome);
        found.expect("an action")
    };
    let yes = action("YES");
    let fields: Vec<_> = yes["required"].as_array().into_iter().flatten().collect();
    let fields: Vec<_> = fields.into_iter().map(|one| &one["pointer"]).collect();
    assert_eq!(
        (&yes["allowed"], &yes["title"], fields),
        (
            &json!(true),
            &json!("Approve"),
            vec![&json!("/input/amount"), &json!("/comment")]
        )
    );
    assert_eq!(
        (&action("NO")["allowed"], action("NO").get("required")),
        (&json!(true), None)
    );
}

#[tokio::test]
async fn definitions_with_invalid_rules_are_refused() {
    let app = TestApp::empty().await;
    for (transition, code) in [
        (
            json!({ "LATE": { "comment": "required" } }),
            "comment_without_decision",
        ),
        (json!({ "LATE": { "input": {} } }), "input_without_sender"),
        (
            json!({ "YES": { "input": { "type": "thing" } } }),
            "input_schema_invalid",
        ),
        (
            json!({ "YES": { "title": "two\nlines" } }),
            "title_malformed",
        ),
        (
            json!({ "YES": { "description": "\u{7}" } }),
            "description_malformed",
        ),
        (
            json!({ "YES": { "condition": "x".repeat(1_001) } }),
            "condition_malformed",
        ),
        (
            json!({ "YES": { "input": { "description": "x".repeat(16_400) } } }),
            "too_large",
        ),
    ] {
        let config = json!({ "transitions": transition });
        let answer = app.publish("committee", committee(), &config).await;
        assert_eq!(answer.status, 422, "{}", answer.text);
        assert!(answer.text.contains(code), "{code}: {}", answer.text);
    }
}

/// The payload of a signal, taken at once or buffered.
#[tokio::test]
async fn a_signal_satisfies_the_schema_of_its_transition() {
    let app = TestApp::empty().await;
    offer(&app, "order-handling", order_handling(), json!({})).await;
    let data = json!({
        "customer": "Lamps Inc", "total": 10, "weight": 1.5, "express": false, "inAdvance": true,
        "shipBy": "2099-01-12T17:00:00Z", "lines": ["1 bulb"],
    });
    let body = json!({
        "definitionKey": "order-handling", "entityType": "order", "entityId": "o-1", "data": data,
    });
    let instance = app.post("author", "/v1/instances", body).await.started();
    let path = format!("/v1/instances/{}/signals/PAID", id(&instance));
    let signal = async |number: u32, input: Value| {
        let body = json!({ "id": format!("s-{number}"), "input": input });
        app.post("author", &path, body).await
    };
    let early = signal(1, json!({ "reference": 7 })).await;
    let problem = early.problem(422, "invalid_input");
    assert_eq!(pointers(&problem), ["/input/reference"]);
    let early = signal(2, json!({ "reference": "R 7" })).await;
    early.expect(202);
}

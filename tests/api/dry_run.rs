//! A dry run answers as the command would, and writes nothing.

use super::*;

/// A request that is sent as a dry run and then for real.
struct Step<'a> {
    user: &'a str,
    path: String,
    body: Value,
    headers: Vec<(&'a str, &'a str)>,
}

fn step(user: &str, path: String, body: Value) -> Step<'_> {
    let headers = Vec::new();
    Step {
        user,
        path,
        body,
        headers,
    }
}

/// Both responses, after a check that the dry run wrote no row.
async fn both(app: &TestApp, step: &Step<'_>) -> (Answer, Answer) {
    let before = rows(app).await;
    let send = async |path: &str| {
        let body = Some(step.body.clone());
        app.host()
            .send(step.user, "POST", path, &step.headers, body)
            .await
    };
    let dry = send(&format!("{}?dryRun=true", step.path)).await;
    assert_eq!(rows(app).await, before, "{} wrote", step.path);
    (dry, send(&step.path).await)
}

/// Executes the step. Returns the response of the real run, which must equal that of the dry run.
async fn succeeds(app: &TestApp, step: &Step<'_>) -> Value {
    let (dry, real) = both(app, step).await;
    assert_eq!(dry.status, 200, "{}", dry.text);
    assert_eq!(dry.headers.get("etag"), real.headers.get("etag"));
    let answer = dry.expect(200);
    assert_eq!(
        (&answer["dryRun"], &real.body["dryRun"]),
        (&json!(true), &json!(false))
    );
    assert!(!answer["events"].as_array().expect("events").is_empty());
    assert_eq!(blurred(&answer), blurred(&real.body), "{}", step.path);
    real.body
}

/// The step is refused in both runs with this code. Returns the problem.
async fn refused(app: &TestApp, step: &Step<'_>, code: &str) -> Value {
    let (dry, real) = both(app, step).await;
    assert_eq!(dry.status, real.status, "{} {}", dry.text, real.text);
    assert_eq!(real.body["code"], code, "{}", real.text);
    let (mut dry, mut real) = (dry.body, real.body);
    for problem in [&mut dry, &mut real] {
        assert!(problem["requestId"].is_string());
        problem["requestId"] = Value::Null;
    }
    assert_eq!(dry, real);
    real
}

#[tokio::test]
async fn every_dry_run_predicts_its_command() {
    let app = TestApp::start().await;
    let start = step("author", "/v1/instances".into(), approval_start("doc-1"));
    let started = succeeds(&app, &start).await;
    let id = started["instance"]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let mut instance = started["instance"].clone();
    let approve = json!({ "outcome": "APPROVE" });
    let reject = json!({ "outcome": "REJECT", "comment": "too short" });
    let submit = json!({ "outcome": "SUBMIT", "input": { "note": "longer now" } });
    for (user, what, body) in [
        ("reviewer", "claim", json!({})),
        ("reviewer", "release", json!({})),
        ("reviewer2", "claim", json!({})),
        ("reviewer2", "decide", reject),
        ("author", "claim", json!({})),
        ("author", "decide", submit),
        ("reviewer", "claim", json!({})),
        ("reviewer", "decide", approve.clone()),
        ("approver", "claim", json!({})),
        ("approver", "decide", approve),
    ] {
        let path = format!("/v1/tasks/{}/{what}", task_of(&instance));
        instance = succeeds(&app, &step(user, path, body)).await["instance"].clone();
    }
    assert_eq!(instance["outcome"], "APPROVED");

    let second = app.started("doc-2").await;
    let cancel = format!(
        "/v1/instances/{}/cancel",
        second["id"].as_str().expect("an id")
    );
    assert_ne!(second["id"], id);
    let body = json!({ "reason": "withdrawn" });
    let cancelled = succeeds(&app, &step("admin", cancel, body)).await;
    assert_eq!(cancelled["instance"]["status"], "CANCELLED");
}

#[tokio::test]
async fn every_refusal_is_told_too() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let (id, task) = (instance["id"].as_str().expect("an id"), task_of(&instance));
    let claim = || format!("/v1/tasks/{task}/claim");
    let decide = || format!("/v1/tasks/{task}/decide");
    let cancel = || format!("/v1/instances/{id}/cancel");
    let start = || "/v1/instances".to_owned();
    let approve = || json!({ "outcome": "APPROVE" });
    let untitled = json!({
        "definitionKey": "document-approval", "entityType": "document", "entityId": "doc-9", "data": {},
    });
    for (user, path, body, code) in [
        ("outsider", start(), approval_start("doc-2"), "forbidden"),
        (
            "author",
            start(),
            approval_start("doc-1"),
            "already_running",
        ),
        ("author", start(), untitled, "invalid_input"),
        (
            "author",
            start(),
            json!({ "entityId": "doc-3" }),
            "invalid_request",
        ),
        ("author", claim(), json!({}), "forbidden"),
        ("outsider", claim(), json!({}), "forbidden"),
        ("author", decide(), approve(), "forbidden"),
        (
            "reviewer",
            cancel(),
            json!({ "reason": "why not" }),
            "permission_missing",
        ),
        (
            "admin",
            cancel(),
            json!({ "reason": " " }),
            "invalid_request",
        ),
        (
            "reviewer",
            format!("/v1/tasks/{id}/claim"),
            json!({}),
            "not_found",
        ),
    ] {
        refused(&app, &step(user, path, body), code).await;
    }
}

#[tokio::test]
async fn dry_runs_predict_refusals_of_claimed_and_ended_work() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let task = claimed(&app, "reviewer", &instance).await;
    let claim = format!("/v1/tasks/{task}/claim");
    let decide = || format!("/v1/tasks/{task}/decide");
    let id = instance["id"].as_str().expect("an id");
    let cancel = || format!("/v1/instances/{id}/cancel");
    let approve = || json!({ "outcome": "APPROVE" });
    let reason = || json!({ "reason": "withdrawn" });
    for (user, body, code) in [
        ("reviewer", json!({ "outcome": "REJECT" }), "invalid_input"),
        ("reviewer", json!({ "outcome": "MAYBE" }), "invalid_input"),
        ("reviewer2", approve(), "forbidden"),
    ] {
        refused(&app, &step(user, decide(), body), code).await;
    }
    refused(&app, &step("reviewer2", claim, json!({})), "task_taken").await;
    let stale = Step {
        headers: vec![("if-match", "\"1\"")],
        ..step("reviewer", decide(), approve())
    };
    refused(&app, &stale, "stale_revision").await;
    app.post("reviewer", &decide(), approve()).await.expect(200);
    refused(&app, &step("reviewer", decide(), approve()), "task_taken").await;
    app.post("admin", &cancel(), reason()).await.expect(200);
    let again = step("admin", cancel(), reason());
    refused(&app, &again, "instance_ended").await;
}

#[tokio::test]
async fn flow_logic_gives_dry_runs_and_real_runs_the_same_answer() {
    let app = TestApp::empty().await;
    with_hostile(&app).await;
    let body = hostile_start("t-1", json!({}));
    let instance = app.post("author", "/v1/instances", body).await.started();
    let decide = format!(
        "/v1/tasks/{}/decide",
        claimed(&app, "reviewer", &instance).await
    );
    for (behaviour, function, code) in [
        ("deny", "transition", "forbidden"),
        ("invalid", "transition", "invalid_input"),
        ("refuse", "transition", "refused_now"),
        ("unfit", "transition", "invalid_input"),
        ("give_up", "transition", "logic_fault"),
        ("trap", "transition", "logic_fault"),
        ("spin", "transition", "logic_budget_exceeded"),
        ("huge", "transition", "logic_output_too_large"),
    ] {
        let input = json!({ "behaviour": behaviour, "function": function });
        let body = json!({ "outcome": "GO", "input": input });
        let problem = refused(&app, &step("reviewer", decide.clone(), body), code).await;
        let field = (code == "invalid_input").then_some("/input/behaviour");
        assert_eq!(
            problem["errors"][0]["pointer"].as_str(),
            field,
            "{behaviour}"
        );
    }
}

#[tokio::test]
async fn the_parameter_dry_run_is_true_or_false() {
    let app = TestApp::start().await;
    let before = rows(&app).await;
    for query in [
        "dryRun",
        "dryRun=",
        "dryRun=yes",
        "dryRun=1",
        "dryrun=true",
        "dry_run=true",
        "dryRun=true&dryRun=false",
        "x=1",
    ] {
        let path = format!("/v1/instances?{query}");
        let answer = app.post("author", &path, approval_start("doc-1")).await;
        answer.problem(400, "malformed_request");
    }
    assert_eq!(rows(&app).await, before);
    // Requests without dry runs refuse the parameter.
    for path in [
        "/v1/definitions/document-approval/versions/1/retire?dryRun=true",
        "/v1/groups/authors?dryRun=true",
    ] {
        let method = if path.contains("groups") {
            "PUT"
        } else {
            "POST"
        };
        let body = json!({});
        app.host()
            .send("admin", method, path, &[], Some(body))
            .await
            .problem(400, "malformed_request");
    }
    let path = "/v1/instances?dryRun=false";
    app.post("author", path, approval_start("doc-1"))
        .await
        .expect(201);
}

//! The report that nobody decided on their own request. It is computed from rows, including forged ones.

use super::*;

const REPORT: &str = "/v1/compliance/self-approvals";

async fn report(app: &TestApp, query: &str) -> Value {
    app.get("admin", &format!("{REPORT}{query}"))
        .await
        .expect(200)
}

/// The counts of examined decisions, own work, self-approvals and refused attempts.
fn counts(report: &Value) -> [u64; 4] {
    [
        "decisionsExamined",
        "ownWork",
        "selfApprovals",
        "refusedAttempts",
    ]
    .map(|member| report[member].as_u64().expect(member))
}

/// An instance that was rejected, reworked by the author and approved.
async fn reworked(app: &TestApp, entity: &str) -> Value {
    let instance = app.started(entity).await;
    let rejection = json!({ "outcome": "REJECT", "comment": "too short" });
    let instance = app.decided("reviewer", &instance, rejection).await;
    let instance = app
        .decided("author", &instance, json!({ "outcome": "SUBMIT" }))
        .await;
    app.decided("reviewer2", &instance, json!({ "outcome": "APPROVE" }))
        .await
}

/// Inserts a decision of the instance's open task directly into the database.
async fn forge(
    app: &TestApp,
    instance: &Value,
    actor: &str,
    for_whom: Option<&str>,
    at: &str,
) -> String {
    let task = task_of(instance);
    let sql = "insert into decision select tenant_id, $1::uuid, $2::uuid, 'APPROVE', $3, $4, null, '{}', $5::timestamptz, 'test', 1, ''
        from instance where id = $2::uuid";
    sqlx::query(sql)
        .bind(&task)
        .bind(instance["id"].as_str())
        .bind(actor)
        .bind(for_whom)
        .bind(at)
        .execute(app.database.admin_pool())
        .await
        .expect("a forged decision");
    task
}

#[tokio::test]
async fn own_work_is_no_self_approval_and_refused_attempts_are_counted() {
    let app = TestApp::start().await;
    assert_eq!(counts(&report(&app, "").await), [0, 0, 0, 0]);
    reworked(&app, "doc-1").await;
    let second = reworked(&app, "doc-2").await;
    let third = app.started("doc-3").await;
    // The author is a reviewer, but may not review her own request.
    let path = format!("/v1/tasks/{}/claim", task_of(&third));
    for _ in 0..2 {
        app.post("author", &path, json!({}))
            .await
            .problem(403, "forbidden");
    }
    // A refusal for another reason is not counted.
    let path = format!("/v1/tasks/{}/claim", task_of(&second));
    app.post("reviewer", &path, json!({}))
        .await
        .problem(403, "forbidden");

    let found = report(&app, "").await;
    assert_eq!(counts(&found), [6, 2, 0, 2]);
    assert_eq!(found["findings"], json!([]));
    let refused = &found["refused"];
    assert_eq!(refused.as_array().map(Vec::len), Some(2));
    assert_eq!(
        (
            &refused[0]["actor"],
            &refused[0]["action"],
            &refused[0]["taskId"]
        ),
        (&json!("author"), &json!("claim"), &json!(task_of(&third)))
    );
    assert_eq!(
        counts(&report(&app, "?definitionKey=document-approval").await),
        [6, 2, 0, 2]
    );
    assert_eq!(
        counts(&report(&app, "?definitionKey=another").await),
        [0, 0, 0, 0]
    );
    assert_eq!(
        counts(&report(&app, "?until=2020-01-01T00:00:00Z").await),
        [0, 0, 0, 0]
    );
    assert_eq!(
        counts(&report(&app, "?from=2099-01-01T00:00:00Z").await),
        [0, 0, 0, 0]
    );
    let backwards = format!("{REPORT}?from=2025-01-01T00:00:00Z&until=2024-01-01T00:00:00Z");
    app.get("admin", &backwards)
        .await
        .problem(400, "malformed_request");
    app.get("author", REPORT)
        .await
        .problem(403, "permission_missing");
}

#[tokio::test]
async fn a_forged_decision_is_found_in_its_period() {
    let app = TestApp::start().await;
    reworked(&app, "doc-1").await;
    let (own, for_own, honest) = (
        app.started("doc-2").await,
        app.started("doc-3").await,
        app.started("doc-4").await,
    );
    let own = forge(&app, &own, "author", None, "2031-01-01T00:00:00Z").await;
    let for_own = forge(
        &app,
        &for_own,
        "reviewer",
        Some("author"),
        "2032-01-01T00:00:00Z",
    )
    .await;
    forge(
        &app,
        &honest,
        "reviewer",
        Some("reviewer2"),
        "2032-01-01T00:00:00Z",
    )
    .await;

    let found = report(&app, "").await;
    assert_eq!(counts(&found), [6, 1, 2, 0]);
    let tasks: Vec<_> = [&found["findings"][0], &found["findings"][1]]
        .map(|finding| finding["taskId"].clone())
        .into();
    assert_eq!(tasks, [for_own, own.clone()], "newest first");
    let finding = &found["findings"][1];
    assert_eq!(
        (
            &finding["state"],
            &finding["actor"],
            &finding["requesters"],
            &finding["definitionVersion"]
        ),
        (
            &json!("Submitted"),
            &json!("author"),
            &json!(["author"]),
            &json!(1)
        )
    );
    assert_eq!(found["findings"][0]["onBehalfOf"], "author");
    let before = report(&app, "?until=2031-01-01T00:00:00Z").await;
    assert_eq!(counts(&before), [3, 1, 0, 0]);
    let that_year = report(
        &app,
        "?from=2031-01-01T00:00:00Z&until=2032-01-01T00:00:00Z",
    )
    .await;
    assert_eq!(counts(&that_year), [1, 0, 1, 0]);
    assert_eq!(that_year["findings"][0]["taskId"], json!(own));
    // A decision that is forged to look like own work is found: its state comes from the task, not from the decision.
    let unknown = "insert into decision select tenant_id, gen_random_uuid(), instance_id, outcome, actor, on_behalf_of, comment, input,
        decided_at, key_id, mac_version, mac from decision where outcome = 'SUBMIT'";
    sql(&app, unknown).await;
    let found = report(&app, "").await;
    assert_eq!(counts(&found), [7, 1, 3, 0]);
    assert_eq!(found["findings"][2]["state"], Value::Null);
}

/// Comments and inputs by people are not taken for states that the host recorded.
#[tokio::test]
async fn a_comment_or_input_cannot_make_a_state_own_work() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let tail = r#"","stateName":"ReworkRequested","task":"00000000-0000-0000-0000-000000000000","type":"DECISION_RECORDED"}"#;
    let approval = json!({ "outcome": "APPROVE", "comment": tail, "input": { "stateName": "ReworkRequested" } });
    app.decided("reviewer", &instance, approval).await;
    // The decision is changed as if the author had made it.
    sql(
        &app,
        "set session_replication_role = replica; update decision set actor = 'author'; reset session_replication_role",
    )
    .await;
    let found = report(&app, "").await;
    assert_eq!(counts(&found), [1, 0, 1, 0]);
    assert_eq!(found["findings"][0]["state"], "Submitted");
}

/// The graph of the decision's own version counts, not that of a version to which the instance was migrated later.
#[tokio::test]
async fn own_work_is_determined_by_the_version_of_the_decision() {
    let app = TestApp::start().await;
    reworked(&app, "doc-1").await;
    sql(
        &app,
        "insert into definition_version select tenant_id, key, 2, digest, config, '\\x02', replace(graph, '\"ownWork\":true', '\"ownWork\":false'),
            sdk, wit, published_at, published_by, retired_at, retired_by from definition_version where key = 'document-approval';
         update instance set definition_version = 2",
    )
    .await;
    assert_eq!(counts(&report(&app, "").await), [3, 1, 0, 0]);
    sql(
        &app,
        "set session_replication_role = replica;
         update audit_entry set evidence = regexp_replace(evidence, '\"version\":1}$', '\"version\":2}');
         reset session_replication_role",
    )
    .await;
    let found = report(&app, "").await;
    assert_eq!(
        counts(&found),
        [3, 0, 1, 0],
        "the graph of version 2 has no state of own work"
    );
    assert_eq!(found["findings"][0]["definitionVersion"], 2);
}

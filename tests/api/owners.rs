//! Owners in lists of instances and tasks, and in states; and the other filters of tasks.

use super::*;

/// The ids of a list's first page.
async fn ids(app: &TestApp, path: &str) -> Vec<Value> {
    let page = app.get("admin", path).await.expect(200);
    let items = page["data"].as_array().expect("data");
    items.iter().map(|item| item["id"].clone()).collect()
}

#[tokio::test]
async fn owners_are_found_as_long_as_they_own() {
    let app = TestApp::start().await;
    let (first, second) = (app.started("doc-1").await, app.started("doc-2").await);
    app.started("doc-3").await;
    claimed(&app, "reviewer", &first).await;
    claimed(&app, "reviewer", &second).await;
    let (instances, tasks) = (
        "/v1/instances?owner=reviewer",
        "/v1/tasks?view=all&owner=reviewer",
    );
    assert_eq!(
        ids(&app, instances).await,
        [second["id"].clone(), first["id"].clone()]
    );
    assert_eq!(
        ids(&app, tasks).await,
        [json!(task_of(&first)), json!(task_of(&second))]
    );
    let narrowed = format!("{instances}&entityId=doc-1&status=RUNNING");
    assert_eq!(ids(&app, &narrowed).await, [first["id"].clone()]);
    for nobody in [
        "/v1/instances?owner=author",
        "/v1/tasks?view=all&owner=author",
        "/v1/tasks?owner=reviewer",
    ] {
        assert_eq!(ids(&app, nobody).await, [json!(null); 0], "{nobody}");
    }
    // One task is released, the other one decided. Nobody owns either now.
    let release = format!("/v1/tasks/{}/release", task_of(&first));
    app.post("reviewer", &release, json!({})).await.expect(200);
    assert_eq!(ids(&app, instances).await, [second["id"].clone()]);
    let decide = format!("/v1/tasks/{}/decide", task_of(&second));
    app.post("reviewer", &decide, json!({ "outcome": "APPROVE" }))
        .await
        .expect(200);
    assert_eq!(ids(&app, instances).await, [json!(null); 0]);
    assert_eq!(ids(&app, tasks).await, [json!(null); 0]);
}

#[tokio::test]
async fn pages_of_an_owners_instances_miss_none() {
    let app = TestApp::start().await;
    let mut expected = Vec::new();
    for number in 0..5 {
        let instance = app.started(&format!("doc-{number}")).await;
        claimed(&app, "reviewer", &instance).await;
        app.started(&format!("other-{number}")).await;
        expected.insert(0, instance["id"].clone());
    }
    let (mut found, mut after) = (Vec::new(), String::new());
    while found.len() < 10 {
        let path = format!("/v1/instances?owner=reviewer&limit=2{after}");
        let page = app.get("admin", &path).await.expect(200);
        found.extend(
            page["data"]
                .as_array()
                .expect("data")
                .iter()
                .map(|line| line["id"].clone()),
        );
        let Some(next) = page["page"]["next"].as_str() else {
            break;
        };
        after = format!("&after={next}");
    }
    assert_eq!(found, expected);
}

#[tokio::test]
async fn states_show_present_and_past_owners_of_tasks() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    assert_eq!(instance["states"][0]["owners"], json!([]));
    let path = format!("/v1/instances/{}", instance["id"].as_str().expect("an id"));
    claimed(&app, "reviewer", &instance).await;
    let shown = app.get("author", &path).await.expect(200);
    assert_eq!(shown["states"][0]["owners"], json!(["reviewer"]));
    // A second and a third task of the state instance, as if several people worked on it.
    sql(
        &app,
        "insert into task (tenant_id, id, instance_id, state_id, ordinal, label, status, owner, candidates, created_at, claimed_at)
        select tenant_id, gen_random_uuid(), instance_id, state_id, n, label, status,
            case n when 1 then 'zoe' else owner end, candidates, created_at, claimed_at
        from task, generate_series(1, 2) n",
    )
    .await;
    let shown = app.get("author", &path).await.expect(200);
    assert_eq!(shown["states"][0]["owners"], json!(["reviewer", "zoe"]));
    sql(&app, "delete from task where ordinal > 0").await;
    let decide = format!("/v1/tasks/{}/decide", task_of(&instance));
    app.post("reviewer", &decide, json!({ "outcome": "APPROVE" }))
        .await
        .expect(200);
    let history = app
        .get("author", &format!("{path}/history"))
        .await
        .expect(200);
    let (before, now) = (&history["data"][0], &history["data"][1]);
    assert_eq!(
        (&before["owners"], &now["owners"]),
        (&json!(["reviewer"]), &json!([]))
    );
    // How each state instance began and ended.
    assert_eq!(
        (&before["caller"], &before["enteredTrigger"]),
        (&json!("author"), &json!(null))
    );
    assert_eq!(
        (&now["caller"], &now["enteredTrigger"]),
        (&json!("reviewer"), &json!("APPROVE"))
    );
    assert_eq!(before["left"]["at"], now["enteredAt"]);
    assert_eq!((&now["dueAt"], now.get("left")), (&json!(null), None));
}

#[tokio::test]
async fn tasks_are_found_by_label_priority_due_date_and_suspension() {
    let app = TestApp::start().await;
    for entity in ["doc-1", "doc-2", "doc-3"] {
        app.started(entity).await;
    }
    sql(
        &app,
        "update task t set label = i.entity_id from instance i where i.id = t.instance_id;
        update state_instance s set priority = right(i.entity_id, 1)::smallint, due_at = '2026-01-03T00:00:00Z'
        from instance i where i.id = s.instance_id and i.entity_id <> 'doc-3';
        update task set due_at = '2026-01-01T00:00:00Z' where label = 'doc-1';
        update task set suspended = '{\"by\":\"ann\",\"at\":\"2026-01-01T00:00:00Z\"}' where label = 'doc-3'",
    )
    .await;
    let labels = async |query: &str| -> Vec<String> {
        let path = format!("/v1/tasks?view=all&{query}");
        let page = app.get("admin", &path).await.expect(200);
        let tasks = page["data"].as_array().expect("data");
        tasks
            .iter()
            .map(|task| task["label"].as_str().expect("a label").to_owned())
            .collect()
    };
    for (query, expected) in [
        ("label=doc-2", vec!["doc-2"]),
        ("label=doc", vec![]),
        ("minPriority=1", vec!["doc-1", "doc-2"]),
        ("minPriority=2", vec!["doc-2"]),
        ("minPriority=0", vec!["doc-1", "doc-2", "doc-3"]),
        ("dueBefore=2026-01-01T00:00:00Z", vec![]),
        ("dueBefore=2026-01-02T00:00:00Z", vec!["doc-1"]),
        ("dueBefore=2026-01-04T00:00:00Z", vec!["doc-1", "doc-2"]),
        ("suspended=true", vec!["doc-3"]),
        ("suspended=false", vec!["doc-1", "doc-2"]),
        ("suspended=true&minPriority=1", vec![]),
        (
            "dueBefore=2026-01-04T00:00:00Z&minPriority=2",
            vec!["doc-2"],
        ),
    ] {
        assert_eq!(labels(query).await, expected, "{query}");
    }
    let due = app
        .get("admin", "/v1/tasks?view=all&label=doc-1")
        .await
        .expect(200);
    assert_eq!(due["data"][0]["dueAt"], "2026-01-01T00:00:00Z");
    for wrong in [
        "minPriority=high",
        "minPriority=70000",
        "dueBefore=tomorrow",
        "min_priority=1",
        "suspended=yes",
    ] {
        let answer = app.get("admin", &format!("/v1/tasks?{wrong}")).await;
        answer.problem(400, "malformed_request");
    }
}

#[tokio::test]
async fn a_diagram_shows_who_works_in_an_active_state() {
    let app = TestApp::start().await;
    let instance = app.started("drawn").await;
    let path = format!(
        "/v1/instances/{}/diagram.svg",
        instance["id"].as_str().expect("an id")
    );
    let open = app.get("author", &path).await.text;
    assert!(open.contains(">for reviewers</text>"), "{open}");
    let claim = format!("/v1/tasks/{}/claim", task_of(&instance));
    app.post("reviewer", &claim, json!({})).await.expect(200);
    let owned = app.get("author", &path).await.text;
    assert!(owned.contains(">with reviewer</text>"), "{owned}");
    assert!(!owned.contains(">for reviewers</text>"), "{owned}");
}

//! Filters and orders of the lists of tasks and instances: groups, entities, deadlines, words, and ended work.

mod bounds;

use super::inboxes::tasks;
use super::*;
use crate::support::app::neighbour::Neighbour;
use wrkflw_server::http::document;

/// The ids of a page.
async fn ids(app: &TestApp, user: &str, path: &str) -> Vec<Value> {
    let page = app.get(user, path).await.expect(200);
    let items = page["data"].as_array().expect("data");
    items.iter().map(|item| item["id"].clone()).collect()
}

/// An instance of the committee with these offers.
async fn committee(app: &TestApp, entity: &str, assign: Value) -> Value {
    let start = json!({
        "definitionKey": "committee", "entityType": "thing", "entityId": entity, "data": { "assign": assign },
    });
    app.post("author", "/v1/instances", start).await.started()
}

async fn with_committee() -> TestApp {
    let app = TestApp::start().await;
    app.publish("committee", guests::committee(), &json!({}))
        .await
        .expect(201);
    let path = "/v1/definitions/committee/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
    app
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of requests and responses")]
async fn tasks_are_found_by_group_entity_and_deadline() {
    let app = with_committee().await;
    let due = |hours: u32| json!([{ "after": hours * 3600, "do": "remind" }]);
    let document = app.started("doc-1").await;
    let own = committee(
        &app,
        "own",
        json!({ "offers": [{ "users": ["reviewer"], "deadlines": due(9) }], "needed": 1 }),
    )
    .await;
    let state =
        json!({ "offers": [{ "groups": ["reviewers"] }], "needed": 1, "deadlines": due(3) });
    let state = committee(&app, "state", state).await;
    let soon = json!({ "offers": [{ "groups": ["reviewers"], "deadlines": due(1) }], "needed": 1 });
    let soon = committee(&app, "soon", soon).await;
    let of = |instance: &Value| json!(task_of(instance));
    let (document, own, state, soon) = (of(&document), of(&own), of(&state), of(&soon));
    let within = |hours: i64| {
        let at = app.engine.clock().now() + jiff::SignedDuration::from_hours(hours);
        format!("dueBefore={at}")
    };
    for (query, expected) in [
        (
            "view=available".to_owned(),
            vec![&document, &own, &state, &soon],
        ),
        ("view=groups".to_owned(), vec![&document, &state, &soon]),
        (
            "view=groups&entityType=thing".to_owned(),
            vec![&state, &soon],
        ),
        (
            "view=all&entityType=thing&entityId=own".to_owned(),
            vec![&own],
        ),
        (
            "view=all&entityType=document&entityId=own".to_owned(),
            vec![],
        ),
        ("view=mine&entityType=thing&entityId=own".to_owned(), vec![]),
        (
            "view=all&status=PENDING&entityType=document".to_owned(),
            vec![&document],
        ),
        ("view=all&status=CLAIMED".to_owned(), vec![]),
        (format!("view=all&{}", within(2)), vec![&soon]),
        (format!("view=available&{}", within(4)), vec![&state, &soon]),
        ("view=all&sort=dueAt".to_owned(), vec![&soon, &state, &own]),
        (
            "view=available&sort=dueAt".to_owned(),
            vec![&soon, &state, &own],
        ),
        (
            format!("view=groups&sort=dueAt&{}", within(4)),
            vec![&soon, &state],
        ),
        ("view=mine&sort=dueAt".to_owned(), vec![]),
    ] {
        let found = ids(&app, "reviewer", &format!("/v1/tasks?{query}")).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    // Page by page in the order of deadlines, with the same result as in one page.
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let path =
            format!("/v1/tasks?view=all&sort=dueAt&limit=1&count=true&fields=id,dueAt{after}");
        let page = app.get("reviewer", &path).await.expect(200);
        assert_eq!(
            (&page["page"]["count"], &page["page"]["capped"]),
            (&json!(3), &json!(false))
        );
        let task = page["data"][0].as_object().expect("a task");
        assert_eq!(task.keys().collect::<Vec<_>>(), ["dueAt", "id"]);
        found.push(task["id"].clone());
        match page["page"]["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(found, [soon, state, own]);
    for wrong in [
        "entityId=own",
        "sort=dueat",
        "sort=-endedAt",
        "outcome=GO",
        "endedFrom=2026-01-01T00:00:00Z",
        "fields=id,name",
        "fields=",
        "status=COMPLETED&sort=dueAt",
        "status=COMPLETED&view=all",
        "status=CANCELLED&view=available",
        "status=COMPLETED&owner=author",
        "count=1",
    ] {
        let answer = app.get("reviewer", &format!("/v1/tasks?{wrong}")).await;
        answer.problem(400, "malformed_request");
    }
    let page = app
        .get("reviewer", "/v1/tasks?view=all&limit=1")
        .await
        .expect(200);
    let cursor = page["page"]["next"].as_str().expect("a cursor");
    let elsewhere = format!("/v1/tasks?view=all&sort=dueAt&after={cursor}");
    app.get("reviewer", &elsewhere)
        .await
        .problem(400, "invalid_cursor");
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of requests and responses")]
async fn ended_tasks_are_found_by_owner_outcome_and_time() {
    let app = TestApp::start().await;
    let (first, second, third) = (
        app.started("doc-1").await,
        app.started("doc-2").await,
        app.started("doc-3").await,
    );
    let reject = json!({ "outcome": "REJECT", "comment": "Too short" });
    app.decided("reviewer", &second, reject).await;
    let between = app.engine.clock().now();
    app.decided("reviewer", &first, json!({ "outcome": "APPROVE" }))
        .await;
    claimed(&app, "reviewer", &third).await;
    let cancel = format!(
        "/v1/instances/{}/cancel",
        third["id"].as_str().expect("an id")
    );
    app.post("admin", &cancel, json!({ "reason": "withdrawn" }))
        .await
        .expect(200);
    let of = |instance: &Value| json!(task_of(instance));
    let (approved, rejected, cancelled) = (of(&first), of(&second), of(&third));
    for (user, query, expected) in [
        (
            "reviewer",
            "status=COMPLETED".to_owned(),
            vec![&approved, &rejected],
        ),
        ("reviewer", "status=CANCELLED".to_owned(), vec![&cancelled]),
        (
            "admin",
            "view=all&owner=reviewer&status=COMPLETED".to_owned(),
            vec![&approved, &rejected],
        ),
        (
            "admin",
            "view=all&owner=reviewer2&status=COMPLETED".to_owned(),
            vec![],
        ),
        ("admin", "status=COMPLETED".to_owned(), vec![]),
        (
            "reviewer",
            "status=COMPLETED&outcome=REJECT".to_owned(),
            vec![&rejected],
        ),
        (
            "reviewer",
            format!("status=COMPLETED&endedFrom={between}"),
            vec![&approved],
        ),
        (
            "reviewer",
            format!("status=COMPLETED&endedUntil={between}"),
            vec![&rejected],
        ),
        (
            "reviewer",
            "status=COMPLETED&sort=-endedAt&entityType=document&entityId=doc-2".to_owned(),
            vec![&rejected],
        ),
    ] {
        let found = ids(&app, user, &format!("/v1/tasks?{query}")).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    let path = "/v1/tasks?status=COMPLETED&limit=1&include=actions,people";
    let page = app.get("reviewer", path).await.expect(200);
    let task = &page["data"][0];
    assert_eq!(
        (&task["outcome"], &task["outcomes"]),
        (&json!("APPROVE"), &json!([]))
    );
    assert!(
        task["endedAt"].is_string() && task["actions"].is_null(),
        "{task}"
    );
    let next = page["page"]["next"].as_str().expect("a cursor");
    assert_eq!(
        ids(&app, "reviewer", &format!("{path}&after={next}")).await,
        [rejected]
    );

    // An instance shows its owners, past and present, and is found by them.
    let path = format!("/v1/instances/{}", first["id"].as_str().expect("an id"));
    let shown = app.get("author", &path).await.expect(200);
    assert_eq!(
        (&shown["owners"], &shown["pastOwners"]),
        (&json!([]), &json!(["reviewer"]))
    );
    let all = ids(&app, "admin", "/v1/instances?everOwner=reviewer").await;
    assert_eq!(
        all,
        [
            third["id"].clone(),
            second["id"].clone(),
            first["id"].clone()
        ]
    );
    assert_eq!(
        ids(&app, "admin", "/v1/instances?everOwner=reviewer2").await,
        [json!(null); 0]
    );
    assert_eq!(
        ids(&app, "admin", "/v1/instances?owner=reviewer").await,
        [json!(null); 0]
    );
}

/// During a blind state, no list shows who has decided.
#[tokio::test]
async fn a_blind_decision_is_not_listed_before_its_state_ends() {
    let app = with_committee().await;
    let offers = json!([{ "users": ["reviewer"] }, { "users": ["approver"] }]);
    let instance = committee(
        &app,
        "secret",
        json!({ "offers": offers, "needed": 2, "blind": true }),
    )
    .await;
    let task = instance["states"][0]["tasks"][0]["id"]
        .as_str()
        .expect("an id");
    let outcome =
        tasks(&app, "reviewer", "view=available").await[0]["outcomes"][0]["outcome"].clone();
    let decide = format!("/v1/tasks/{task}/decide");
    app.post("reviewer", &decide, json!({ "outcome": outcome }))
        .await
        .expect(200);
    let others = "/v1/tasks?view=all&owner=reviewer&status=COMPLETED";
    assert_eq!(ids(&app, "approver", others).await, [json!(null); 0]);
    assert_eq!(
        ids(&app, "reviewer", "/v1/tasks?status=COMPLETED").await,
        [json!(task)]
    );
    let path = format!("/v1/instances/{}", instance["id"].as_str().expect("an id"));
    let shown = app.get("approver", &path).await.expect(200);
    assert_eq!(
        (&shown["pastOwners"], &shown["people"]["reviewer"]),
        (&json!([]), &Value::Null)
    );
    let found = "/v1/instances?everOwner=reviewer";
    assert_eq!(ids(&app, "approver", found).await, [json!(null); 0]);
    assert_eq!(ids(&app, "reviewer", found).await, [instance["id"].clone()]);
}

#[tokio::test]
async fn late_and_inactive_instances_are_found() {
    let app = with_committee().await;
    let deadline = json!([{ "after": 3600, "do": "remind" }]);
    let of_task =
        json!({ "offers": [{ "groups": ["reviewers"], "deadlines": deadline }], "needed": 1 });
    let of_task = committee(&app, "task", of_task).await;
    let of_state =
        json!({ "offers": [{ "groups": ["reviewers"] }], "needed": 1, "deadlines": deadline });
    let of_state = committee(&app, "state", of_state).await;
    let between = app.engine.clock().now();
    let fresh = app.started("doc-1").await;
    claimed(&app, "reviewer", &of_task).await;
    let soon = app.engine.clock().now() + jiff::SignedDuration::from_hours(2);
    let now = app.engine.clock().now();
    for (query, expected) in [
        (format!("dueBefore={soon}"), vec![&of_state, &of_task]),
        (format!("dueBefore={now}"), vec![]),
        (format!("updatedBefore={between}"), vec![&of_state]),
        (
            format!("updatedBefore={between}&status=RUNNING"),
            vec![&of_state],
        ),
        (format!("updatedBefore={between}&status=CANCELLED"), vec![]),
        (
            format!("updatedBefore={soon}&status=RUNNING"),
            vec![&fresh, &of_state, &of_task],
        ),
    ] {
        let found = ids(&app, "admin", &format!("/v1/instances?{query}")).await;
        let expected: Vec<_> = expected.iter().map(|one| one["id"].clone()).collect();
        assert_eq!(found, expected, "{query}");
    }
    let oldest = |filter: &str| format!("/v1/instances?sort=startedAt&limit=2{filter}");
    for filter in [
        "",
        "&entityType=thing",
        &format!("&updatedBefore={soon}&status=RUNNING"),
    ] {
        let page = app.get("admin", &oldest(filter)).await.expect(200);
        assert_eq!(
            (&page["data"][0]["id"], &page["data"][1]["id"]),
            (&of_task["id"], &of_state["id"]),
            "{filter}"
        );
        let next = page["page"]["next"]
            .as_str()
            .map(|next| format!("{filter}&after={next}"));
        let rest = match next {
            Some(next) => ids(&app, "admin", &oldest(&next)).await,
            None => Vec::new(),
        };
        let expected: &[Value] = if filter == "&entityType=thing" {
            &[]
        } else {
            &[fresh["id"].clone()]
        };
        assert_eq!(rest, expected, "{filter}");
    }
    let path = "/v1/instances?status=RUNNING&count=true&fields=title,id&limit=1";
    let page = app.get("admin", path).await.expect(200);
    assert_eq!(
        (&page["page"]["count"], &page["page"]["capped"]),
        (&json!(3), &json!(false))
    );
    assert_eq!(
        page["data"],
        json!([{ "id": fresh["id"], "title": "A plan" }])
    );
    let answer = app.get("admin", "/v1/instances?fields=names").await;
    answer.problem(400, "malformed_request");
}

#[tokio::test]
async fn work_is_found_by_words() {
    let app = with_committee().await;
    let start = |entity: &str, title: &str| {
        json!({
            "definitionKey": "document-approval", "entityType": "document", "entityId": entity, "data": { "title": title },
        })
    };
    let mut started = Vec::new();
    for (entity, title) in [
        ("doc-17", "Budget of the north"),
        ("doc-18", "Budget 17, south"),
        ("b", "Ends'n:odds & \\ 100%"),
        ("größe", "Übersicht"),
    ] {
        started.push(
            app.post("author", "/v1/instances", start(entity, title))
                .await
                .started(),
        );
    }
    let attribute = "insert into attribute (tenant_id, instance_id, name, type, text_value)
        select tenant_id, id, 'port', 'text', 'Old Harbour' from instance where entity_id = 'b'";
    sql(&app, attribute).await;
    // Words of a neighbour tenant are not found.
    Neighbour::of(&app).await.start("doc-17").await;
    for (q, expected) in [
        ("budget", vec![1, 0]),
        ("BUD", vec![1, 0]),
        ("17", vec![1, 0]),
        ("17%20budget%20south", vec![1]),
        ("doc-17", vec![1, 0]),
        ("doc-17%20north", vec![0]),
        ("harb", vec![2]),
        ("harbour%20odds", vec![]),
        ("plan", vec![]),
        ("udget", vec![]),
        ("budget%20west", vec![]),
        ("odds%20100%25", vec![2]),
        ("%27n%20:*%20%7C%20budget", vec![]),
        ("bud%2017", vec![]),
        ("budget%201", vec![1, 0]),
        ("gr%C3%B6", vec![3]),
        ("%C3%9Cbersicht", vec![3]),
    ] {
        let found = ids(&app, "author", &format!("/v1/instances?q={q}")).await;
        let instances: Vec<_> = expected
            .iter()
            .map(|place| started[*place]["id"].clone())
            .collect();
        assert_eq!(found, instances, "{q}");
        let found = ids(&app, "reviewer", &format!("/v1/tasks?view=available&q={q}")).await;
        let tasks = expected
            .iter()
            .rev()
            .map(|place| json!(task_of(&started[*place])));
        assert_eq!(found, tasks.collect::<Vec<_>>(), "{q}");
    }
    for wrong in ["q=", "q=%20-%20", &format!("q={}", "x".repeat(201))] {
        for list in ["instances", "tasks"] {
            let answer = app.get("author", &format!("/v1/{list}?{wrong}")).await;
            answer.problem(400, "malformed_request");
        }
    }
    app.decided("reviewer", &started[0], json!({ "outcome": "APPROVE" }))
        .await;
    let done = ids(&app, "reviewer", "/v1/tasks?status=COMPLETED&q=north").await;
    assert_eq!(done, [json!(task_of(&started[0]))]);
}

/// Every paged list of the OpenAPI document.
#[tokio::test]
async fn items_of_any_list_have_the_requested_members() {
    let app = TestApp::start().await;
    claimed(&app, "reviewer", &app.started("doc-1").await).await;
    // All of them are in the feed now.
    app.events().await;
    let document: Value = serde_json::from_str(document()).expect("JSON");
    let mut seen = 0;
    for (path, operations) in document["paths"].as_object().expect("paths") {
        let parameters = operations["get"]["parameters"].as_array();
        let takes = |name: &str| {
            let mut parameters = parameters.into_iter().flatten();
            parameters.any(|one| one["name"] == name)
        };
        if path.contains('{') || !takes("limit") {
            continue;
        }
        assert!(takes("fields"), "{path}");
        let whole = app.get("admin", path).await.expect(200);
        let unknown = app.get("admin", &format!("{path}?fields=nothing")).await;
        unknown.problem(400, "malformed_request");
        let stranger = app.get("", &format!("{path}?fields=nothing")).await;
        stranger.problem(401, "token_missing");
        let Some(first) = whole["data"].get(0) else {
            continue;
        };
        let names: Vec<_> = first.as_object().expect("an item").keys().take(2).collect();
        let address = format!("{path}?limit=1&fields={}%2C{}", names[0], names[1]);
        let cut = app.get("admin", &address).await.expect(200);
        let expected = json!({ names[0]: first[names[0]], names[1]: first[names[1]] });
        assert_eq!(cut["data"], json!([expected]), "{path}");
        let head = app.host().send("admin", "HEAD", &address, &[], None).await;
        assert_eq!((head.status, &*head.text), (200, ""), "{path}");
        let others = |page: &Value| {
            page.as_object()
                .expect("a page")
                .keys()
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(others(&cut), others(&whole), "{path}");
        seen += 1;
    }
    assert!(seen >= 5, "{seen} lists with items");
    // A file cannot select members.
    let custody = "/v1/entities/document/doc-1/custody?format=csv";
    assert_eq!(app.get("admin", custody).await.status, 200);
    let cut = app.get("admin", &format!("{custody}&fields=actor")).await;
    cut.problem(400, "malformed_request");
}

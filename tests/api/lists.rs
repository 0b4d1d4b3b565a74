//! Lists: filters, pages, and whose tasks are shown to whom.

use std::collections::BTreeSet;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};

use super::openapi::operations;
use super::*;

/// The ids of a list's first page.
async fn ids(app: &TestApp, user: &str, path: &str) -> Vec<String> {
    let page = app.get(user, path).await.expect(200);
    let items = page["data"].as_array().expect("data");
    items
        .iter()
        .map(|item| item["id"].as_str().expect("an id").to_owned())
        .collect()
}

fn id(instance: &Value) -> String {
    instance["id"].as_str().expect("an id").to_owned()
}

/// A bulk operation with the id of the instance, and a parked event of it.
async fn listed_by_that_id(app: &TestApp) {
    let of_that_id = "insert into bulk_operation
        (tenant_id, id, action, settings, requested_by, roles, created_at, total, more)
        select tenant_id, id, 'migrate', '{}', 'admin', '[]', started_at, 0, false from instance";
    sql(app, of_that_id).await;
    let parked = "insert into dead_letter (tenant_id, instance_id, seq, partition, pos, error, attempts, parked_at)
        select tenant_id, id, 1, 0, 1, 'too large', 1, started_at from instance";
    sql(app, parked).await;
}

/// Every paged list.
const LISTS: [&str; 24] = [
    "/v1/audit",
    "/v1/checkpoints",
    "/v1/dead-letters",
    "/v1/dead-letters/{id}",
    "/v1/definitions",
    "/v1/definitions/{key}/versions",
    "/v1/entities/{type}/{id}/custody",
    "/v1/entities/{type}/{id}/history",
    "/v1/events",
    "/v1/groups",
    "/v1/instances",
    "/v1/instances/{id}/audit",
    "/v1/instances/{id}/changes",
    "/v1/instances/{id}/comments",
    "/v1/instances/{id}/custody",
    "/v1/instances/{id}/signals",
    "/v1/jobs",
    "/v1/notifications",
    "/v1/operations",
    "/v1/operations/{id}/items",
    "/v1/people",
    "/v1/refusals",
    "/v1/subscriptions/{id}/deliveries",
    "/v1/tasks",
];

#[tokio::test]
async fn every_list_limits_its_pages_and_refuses_foreign_cursors() {
    let app = TestApp::start().await;
    let instance = id(&app.started("doc-1").await);
    let body = json!({ "url": "http://127.0.0.1:9/", "types": ["*"] });
    let subscription = id(&app
        .post("admin", "/v1/subscriptions", body)
        .await
        .expect(201));
    listed_by_that_id(&app).await;
    let mut lists = BTreeSet::new();
    for operation in operations(&app).await {
        if !operation.has_parameter("limit") {
            continue;
        }
        let path = operation
            .path
            .replace(
                "subscriptions/{id}",
                &format!("subscriptions/{subscription}"),
            )
            .replace("{key}", "document-approval")
            .replace("{type}", "document")
            .replace("{id}", &instance);
        for limit in ["0", "101", "-1", "many", "4294967296", ""] {
            let answer = app.get("admin", &format!("{path}?limit={limit}")).await;
            answer.problem(400, "malformed_request");
        }
        // A cursor that is not base64, one that is not text, and one without a position. Lists of the directory begin after an
        // id, which may be any text.
        let is_by_name = ["/v1/people", "/v1/groups"].contains(&&*path);
        let cursors = ["***", "_w", "", "bm8tcG9zaXRpb24"];
        for cursor in &cursors[..cursors.len() - usize::from(is_by_name)] {
            let answer = app.get("admin", &format!("{path}?after={cursor}")).await;
            answer.problem(400, "invalid_cursor");
        }
        let page = app
            .get("admin", &format!("{path}?limit=100"))
            .await
            .expect(200);
        assert!(
            page["data"].is_array() && page["page"].is_object(),
            "{path}"
        );
        app.get("admin", &format!("{path}?colour=red"))
            .await
            .problem(400, "malformed_request");
        let twice = app.get("admin", &format!("{path}?limit=1&limit=2")).await;
        twice.problem(400, "malformed_request");
        lists.insert(operation.path);
    }
    assert_eq!(lists, LISTS.map(str::to_owned).into());
}

#[tokio::test]
async fn instances_are_found_by_each_filter() {
    let app = TestApp::start().await;
    with_hostile(&app).await;
    let first = app.started("doc-1").await;
    let second = app.started("doc-2").await;
    let second = app
        .decided("reviewer", &second, json!({ "outcome": "APPROVE" }))
        .await;
    let third = app.started("doc-3").await;
    let cancel = format!("/v1/instances/{}/cancel", id(&third));
    app.post("admin", &cancel, json!({ "reason": "withdrawn" }))
        .await
        .expect(200);
    let body = hostile_start("t-1", json!({}));
    let fourth = app.post("approver", "/v1/instances", body).await.started();
    let (a, b, c, d) = (id(&first), id(&second), id(&third), id(&fourth));
    let from = fourth["startedAt"].as_str().expect("a time");

    for (filter, expected) in [
        (String::new(), vec![&d, &c, &b, &a]),
        ("definitionKey=document-approval".into(), vec![&c, &b, &a]),
        ("definitionKey=hostile".into(), vec![&d]),
        ("definitionKey=none".into(), vec![]),
        ("status=RUNNING".into(), vec![&d, &b, &a]),
        ("status=CANCELLED".into(), vec![&c]),
        ("status=COMPLETED".into(), vec![]),
        ("state=Submitted".into(), vec![&a]),
        ("state=FinalReview".into(), vec![&b]),
        ("state=Work&status=RUNNING".into(), vec![&d]),
        ("entityType=document".into(), vec![&c, &b, &a]),
        ("entityType=document&entityId=doc-2".into(), vec![&b]),
        ("entityId=doc-1".into(), vec![&a]),
        ("initiator=approver".into(), vec![&d]),
        ("initiator=author&definitionKey=hostile".into(), vec![]),
        (format!("from={from}"), vec![&d]),
        (format!("until={from}"), vec![&c, &b, &a]),
        (
            "from=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z".into(),
            vec![],
        ),
    ] {
        let found = ids(&app, "author", &format!("/v1/instances?{filter}")).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{filter}");
    }
    for wrong in [
        "status=running",
        "status=",
        "from=yesterday",
        "to=5",
        "state=a%00b",
        "entity=doc-1",
    ] {
        let answer = app.get("author", &format!("/v1/instances?{wrong}")).await;
        answer.problem(400, "malformed_request");
    }
    let shown = app
        .get("author", "/v1/instances?entityId=doc-2")
        .await
        .expect(200);
    assert_eq!(shown["data"][0]["states"], json!(["FinalReview"]));
}

/// Reads page after page. Adds something new before each.
async fn read_all(app: &TestApp, path: &str, user: &str, limit: usize) -> Vec<String> {
    let (mut found, mut after) = (Vec::new(), String::new());
    for round in 0.. {
        assert!(round < 20, "the pages do not end");
        let page = app
            .get(user, &format!("{path}limit={limit}{after}"))
            .await
            .expect(200);
        let items = page["data"].as_array().expect("data");
        assert!(items.len() <= limit);
        found.extend(
            items
                .iter()
                .map(|item| item["id"].as_str().expect("an id").to_owned()),
        );
        let Some(next) = page["page"]["next"].as_str() else {
            break;
        };
        after = format!("&after={next}");
        app.started(&format!("meanwhile-{}-{round}", path.len()))
            .await;
    }
    found
}

#[tokio::test]
async fn pages_of_instances_do_not_shift_while_others_start() {
    let app = TestApp::start().await;
    let mut expected = Vec::new();
    for number in 0..7 {
        expected.push(id(&app.started(&format!("doc-{number}")).await));
    }
    expected.reverse();
    assert_eq!(
        read_all(&app, "/v1/instances?", "author", 3).await,
        expected
    );
}

#[tokio::test]
async fn pages_of_tasks_end_with_the_newest() {
    let app = TestApp::start().await;
    let mut expected = Vec::new();
    for number in 0..7 {
        expected.push(task_of(&app.started(&format!("doc-{number}")).await));
    }
    let found = read_all(&app, "/v1/tasks?view=available&", "reviewer", 3).await;
    assert_eq!(found[..7], expected);
    assert_eq!(found.len(), found.iter().collect::<BTreeSet<_>>().len());
}

#[tokio::test]
async fn a_rare_match_is_found_behind_many_tasks_that_do_not_match() {
    let app = TestApp::start().await;
    let first = id(&app.started("doc-1").await);
    // Copies of it with lower ids, more than two steps of the list read.
    let copies = "insert into instance
        select (jsonb_populate_record(i, jsonb_build_object('id', c.id, 'entity_id', c.n))).*
        from instance i, (select n, lpad(n::text, 32, '0')::uuid as id from generate_series(1, 700) n) c;
        insert into state_instance
        select (jsonb_populate_record(s, jsonb_build_object('id', c.id, 'instance_id', c.id, 'name', 'Elsewhere'))).*
        from state_instance s, (select lpad(n::text, 32, '0')::uuid as id from generate_series(1, 700) n) c;
        insert into task
        select (jsonb_populate_record(t, jsonb_build_object('id', c.id, 'instance_id', c.id, 'state_id', c.id))).*
        from task t, (select lpad(n::text, 32, '0')::uuid as id from generate_series(1, 700) n) c;
        insert into task_candidate select tenant_id, kind, principal, c.id
        from task_candidate, (select lpad(n::text, 32, '0')::uuid as id from generate_series(1, 700) n) c";
    for statement in copies.split(';') {
        sql(&app, statement).await;
    }
    // The state filter uses the index of state instances. Filters for labels and suspensions only use the steps.
    let odd = r#"update task set label = 'odd', suspended = '{"by":"ann","at":"2026-01-01T00:00:00Z"}'
        where id::text not like '0000%'"#;
    sql(&app, odd).await;
    for (view, filter) in ["available", "all"].into_iter().flat_map(|view| {
        ["state=Submitted", "label=odd", "suspended=true"].map(|filter| (view, filter))
    }) {
        let path = format!("/v1/tasks?view={view}&{filter}");
        let page = app.get("reviewer", &path).await.expect(200);
        let found: Vec<_> = page["data"].as_array().expect("data").iter().collect();
        assert_eq!(found.len(), 1, "{page}");
        assert_eq!(found[0]["instanceId"], first);
        assert!(page["page"]["next"].is_null(), "{page}");
    }
    for view in ["available", "all"] {
        let path = format!("/v1/tasks?view={view}&");
        let all = read_all(&app, &path, "reviewer", 100).await;
        let copies = all.iter().filter(|task| task.starts_with("0000"));
        let distinct: BTreeSet<_> = copies.clone().collect();
        assert_eq!((copies.count(), distinct.len()), (700, 700), "{view}");
    }
}

#[tokio::test]
async fn each_view_shows_its_tasks() {
    let app = TestApp::start().await;
    let first = app.started("doc-1").await;
    let task = task_of(&first);
    let (mine, available, all) = (
        "/v1/tasks",
        "/v1/tasks?view=available",
        "/v1/tasks?view=all",
    );
    assert_eq!(ids(&app, "reviewer", mine).await, [""; 0]);
    assert_eq!(
        *ids(&app, "reviewer", available).await,
        *std::slice::from_ref(&task)
    );
    assert_eq!(ids(&app, "approver", available).await, [""; 0]);
    assert_eq!(
        ids(&app, "approver", all).await,
        std::slice::from_ref(&task)
    );
    // The author is a reviewer, but may not review her own request.
    assert_eq!(ids(&app, "author", available).await, [""; 0]);
    let refused = app
        .post("author", &format!("/v1/tasks/{task}/claim"), json!({}))
        .await;
    assert_eq!(refused.problem(403, "forbidden")["reason"], "own_request");

    claimed(&app, "reviewer", &first).await;
    assert_eq!(
        ids(&app, "reviewer", mine).await,
        std::slice::from_ref(&task)
    );
    assert_eq!(
        ids(&app, "reviewer", "/v1/tasks?view=mine").await,
        std::slice::from_ref(&task)
    );
    for user in ["reviewer", "reviewer2"] {
        assert_eq!(ids(&app, user, available).await, [""; 0]);
    }
    assert_eq!(
        ids(&app, "reviewer2", all).await,
        std::slice::from_ref(&task)
    );
    app.post("reviewer", &format!("/v1/tasks/{task}/release"), json!({}))
        .await
        .expect(200);
    assert_eq!(
        ids(&app, "reviewer2", available).await,
        std::slice::from_ref(&task)
    );

    // Nobody can work on a decided task, and rework belongs to the author.
    let reject = json!({ "outcome": "REJECT", "comment": "too short" });
    let rework = app.decided("reviewer2", &first, reject).await;
    assert_eq!(ids(&app, "reviewer2", all).await, [task_of(&rework)]);
    assert_eq!(ids(&app, "author", available).await, [task_of(&rework)]);
    assert_eq!(ids(&app, "reviewer", available).await, [""; 0]);
}

#[tokio::test]
async fn tasks_are_found_by_state_and_definition() {
    let app = TestApp::start().await;
    let first = app.started("doc-1").await;
    let approve = json!({ "outcome": "APPROVE" });
    let first = app.decided("reviewer", &first, approve).await;
    let second = app.started("doc-2").await;
    for (filter, expected) in [
        ("state=FinalReview", vec![task_of(&first)]),
        ("state=Submitted", vec![task_of(&second)]),
        (
            "definitionKey=document-approval",
            vec![task_of(&first), task_of(&second)],
        ),
        ("definitionKey=none", vec![]),
    ] {
        let found = ids(&app, "admin", &format!("/v1/tasks?view=all&{filter}")).await;
        assert_eq!(
            found.iter().collect::<BTreeSet<_>>(),
            expected.iter().collect(),
            "{filter}"
        );
    }
    app.get("admin", "/v1/tasks?view=others")
        .await
        .problem(400, "malformed_request");
}

#[tokio::test]
async fn the_audit_of_an_instance_comes_in_pages() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    app.decided("reviewer", &instance, json!({ "outcome": "APPROVE" }))
        .await;
    let path = format!("/v1/instances/{}/audit", id(&instance));
    let whole = app.get("admin", &path).await.expect(200);
    let whole = whole["data"].as_array().expect("entries").clone();
    let seqs: Vec<_> = whole
        .iter()
        .map(|entry| entry["seq"].as_u64().expect("a number"))
        .collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    let (mut pages, mut after) = (Vec::new(), String::new());
    loop {
        let page = app
            .get("admin", &format!("{path}?limit=2{after}"))
            .await
            .expect(200);
        pages.extend(page["data"].as_array().expect("entries").clone());
        let Some(next) = page["page"]["next"].as_str() else {
            break;
        };
        after = format!("&after={next}");
    }
    assert_eq!(pages, whole);
    app.get("author", &path)
        .await
        .problem(403, "permission_missing");
}

/// The parser accepts a time in the year -9000, and the database does not.
#[tokio::test]
async fn a_cursor_with_a_time_that_the_database_does_not_accept_is_refused() {
    let app = TestApp::empty().await;
    let id = uuid::Uuid::nil();
    let text = format!("-009000-01-01T00:00:00Z {id}");
    let microseconds = format!("-346000000000000000.1.{id}");
    for (list, position) in [
        ("/v1/refusals?", &text),
        ("/v1/operations?", &text),
        ("/v1/jobs?state=due&", &text),
        ("/v1/tasks?view=all&sort=dueAt&", &text),
        ("/v1/entities/document/doc-1/custody?", &microseconds),
    ] {
        let cursor = BASE64_URL_SAFE_NO_PAD.encode(position);
        let answer = app.get("admin", &format!("{list}after={cursor}")).await;
        answer.problem(400, "invalid_cursor");
    }
    // A period without refusals is valid.
    let years = "from=0001-01-01T00:00:00Z&until=0002-01-01T00:00:00Z";
    let none = app.get("admin", &format!("/v1/refusals?{years}")).await;
    assert_eq!(none.expect(200)["data"], json!([]));
}

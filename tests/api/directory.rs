//! The caller, roles, and ids by their beginning.

use super::people::{absent_during, known, managed, member};
use super::*;
use crate::audit::verify::everything;
use wrkflw::sample::DOCUMENT_APPROVAL;
use wrkflw_core::ids::TenantId;
use wrkflw_store::reassessments;

#[tokio::test]
async fn a_caller_reads_who_they_are() {
    let app = TestApp::empty().await;
    known(&app, &["boss", "sub"]).await;
    managed(&app, "author", "boss").await;
    absent_during(&app, ("author", "sub", None), (-1, 24)).await;
    absent_during(
        &app,
        ("reviewer", "author", Some("document-approval")),
        (-1, 24),
    )
    .await;
    absent_during(&app, ("approver", "author", None), (24, 48)).await;
    let me = app.get("author", "/v1/me").await.expect(200);
    for (member, expected) in [
        ("id", json!("author")),
        ("name", json!("author")),
        ("tenant", json!("default")),
        ("roles", json!(["user"])),
        ("groups", json!(["authors", "reviewers"])),
        ("manager", json!("boss")),
    ] {
        assert_eq!(me[member], expected, "{member}");
    }
    let permissions = me["permissions"].as_array().expect("permissions");
    assert!(
        permissions.contains(&json!("task:act")) && !permissions.contains(&json!("role:write"))
    );
    assert_eq!(me["absences"].as_array().map(Vec::len), Some(1));
    assert_eq!(me["absences"][0]["substitute"], "sub");
    // An absence that has not begun has no effect.
    assert_eq!(me["standsInFor"].as_array().map(Vec::len), Some(1));
    assert_eq!(me["standsInFor"][0]["person"], "reviewer");

    let host = app.host();
    let token = format!("Bearer {}", host.token_of("stranger", "default", &[]));
    let headers = [("authorization", token.as_str())];
    let me = host
        .send("", "GET", "/v1/me", &headers, None)
        .await
        .expect(200);
    assert_eq!(
        (&me["name"], &me["permissions"], &me["groups"]),
        (&Value::Null, &json!([]), &json!([]))
    );
}

#[tokio::test]
async fn reading_and_setting_roles_needs_a_permission() {
    let app = TestApp::empty().await;
    let listed = app.get("admin", "/v1/roles").await.expect(200);
    let ids: Vec<_> = listed["data"]
        .as_array()
        .expect("data")
        .iter()
        .map(|one| &one["id"])
        .collect();
    assert_eq!(ids, ["admin", "user"]);
    for (method, path) in [
        ("GET", "/v1/roles"),
        ("GET", "/v1/roles/user"),
        ("PUT", "/v1/roles/user"),
    ] {
        let body = (method == "PUT").then(|| json!({ "permissions": ["role:write"] }));
        let refused = app.host().send("author", method, path, &[], body).await;
        refused.problem(403, "permission_missing");
    }
}

#[tokio::test]
async fn a_changed_role_is_audited_and_has_effect_at_once() {
    let app = TestApp::empty().await;
    let before = app.get("admin", "/v1/roles/user").await.expect(200);
    let body = json!({ "permissions": ["role:read", "expense:approve", "role:read"] });
    let put = app
        .put("admin", "/v1/roles/user", body.clone())
        .await
        .expect(200);
    assert_eq!(
        put["role"],
        json!({ "id": "user", "permissions": ["expense:approve", "role:read"] })
    );
    assert_eq!(
        app.get("author", "/v1/roles/user").await.expect(200),
        put["role"]
    );
    app.get("author", "/v1/people")
        .await
        .problem(403, "permission_missing");
    let kept = rows(&app).await;
    // Setting the same permissions is no change.
    app.put("admin", "/v1/roles/user", body).await.expect(200);
    assert_eq!(rows(&app).await, kept);
    let (kinds, payload) = directory_entries(&app, 1).await;
    assert_eq!(kinds, ["ROLE_PUT"]);
    assert_eq!(
        payload,
        json!({ "role": "user", "permissions": ["expense:approve", "role:read"] })
    );
    let again = json!({ "permissions": before["permissions"] });
    let dry = app
        .put("admin", "/v1/roles/user?dryRun=true", again.clone())
        .await
        .expect(200);
    assert_eq!(
        dry,
        json!({ "result": "changed", "role": before, "before": put["role"], "dryRun": true })
    );
    let last = json!({ "permissions": [] });
    app.put("admin", "/v1/roles/admin?dryRun=true", last)
        .await
        .problem(422, "invalid_request");
    assert_eq!(rows(&app).await, kept);
    app.put("admin", "/v1/roles/user", again).await.expect(200);
    app.put(
        "admin",
        "/v1/roles/gone",
        json!({ "permissions": ["task:act"] }),
    )
    .await
    .expect(200);
    app.put("admin", "/v1/roles/gone", json!({ "permissions": [] }))
        .await
        .expect(200);
    app.get("admin", "/v1/roles/gone")
        .await
        .problem(404, "not_found");
    assert_eq!(everything(&app).await.1, []);
    sql(
        &app,
        "delete from role_permission where role = 'user' and permission = 'task:act'",
    )
    .await;
    let codes: Vec<_> = everything(&app)
        .await
        .1
        .iter()
        .map(|finding| finding.code)
        .collect();
    assert_eq!(codes, ["role_permission"]);
}

#[tokio::test]
async fn changes_of_roles_are_checked() {
    let app = TestApp::empty().await;
    for (role, body, pointer, code) in [
        (
            "user",
            json!({ "permissions": ["task:acts"] }),
            "/permissions/0",
            "unknown_permission",
        ),
        (
            "user",
            json!({ "permissions": ["x:y", "nonsense"] }),
            "/permissions/1",
            "malformed",
        ),
        (
            "admin",
            json!({ "permissions": ["task:act"] }),
            "/permissions",
            "last_role_writer",
        ),
        (
            "admin",
            json!({ "permissions": [] }),
            "/permissions",
            "last_role_writer",
        ),
    ] {
        let path = format!("/v1/roles/{role}");
        let problem = app
            .put("admin", &path, body)
            .await
            .problem(422, "invalid_request");
        let error = &problem["errors"][0];
        assert_eq!(
            (&error["pointer"], &error["code"]),
            (&json!(pointer), &json!(code))
        );
    }
    let alike = app
        .put(
            "admin",
            "/v1/roles/user",
            json!({ "permissions": ["task:acts"] }),
        )
        .await;
    let problem = alike.problem(422, "invalid_request");
    let detail = problem["errors"][0]["detail"].as_str().expect("a detail");
    assert!(
        detail.contains("task:act, task:assign, task:read"),
        "{detail}"
    );
}

#[tokio::test]
async fn some_role_may_always_change_roles_and_their_number_is_limited() {
    let app = TestApp::empty().await;
    // Another role may be the one that changes roles.
    let writer = json!({ "permissions": ["role:write"] });
    app.put("admin", "/v1/roles/keeper", writer)
        .await
        .expect(200);
    app.put(
        "admin",
        "/v1/roles/admin",
        json!({ "permissions": ["role:read"] }),
    )
    .await
    .expect(200);
    sql(
        &app,
        "insert into role_permission select t.id, 'r' || n, 'task:act' from tenant t, generate_series(1, 97) as n
         where t.name = 'default'",
    )
    .await;
    sql(&app, "insert into role_permission select id, 'admin', 'role:write' from tenant where name = 'default'").await;
    let full = app
        .put(
            "admin",
            "/v1/roles/one-more",
            json!({ "permissions": ["task:act"] }),
        )
        .await;
    assert_eq!(
        full.problem(422, "invalid_request")["errors"][0]["code"],
        "too_many"
    );
}

#[tokio::test]
async fn a_definition_shows_its_active_version_and_the_number_of_running_instances() {
    let app = TestApp::start().await;
    let path = "/v1/definitions/document-approval";
    let shown = app.get("author", path).await.expect(200);
    assert_eq!(
        (&shown["key"], &shown["running"]),
        (&json!("document-approval"), &json!(0))
    );
    let detail = app
        .get("author", &format!("{path}/versions/1"))
        .await
        .expect(200);
    assert_eq!(shown["active"], detail);
    let first = app.started("doc-1").await;
    app.started("doc-2").await;
    let config = json!({ "reviewers": "approvers" });
    app.publish("document-approval", DOCUMENT_APPROVAL, &config)
        .await
        .expect(201);
    let cancel = format!(
        "/v1/instances/{}/cancel",
        first["id"].as_str().expect("an id")
    );
    app.post("admin", &cancel, json!({ "reason": "over" }))
        .await
        .expect(200);
    let shown = app.get("author", path).await.expect(200);
    let versions: Vec<_> = shown["versions"]
        .as_array()
        .expect("versions")
        .iter()
        .map(|one| {
            (
                one["version"].clone(),
                one["active"].clone(),
                one["running"].clone(),
            )
        })
        .collect();
    let expected = [
        (json!(2), json!(false), json!(0)),
        (json!(1), json!(true), json!(1)),
    ];
    assert_eq!(versions, expected);
    assert_eq!(
        (&shown["running"], &shown["more"]),
        (&json!(1), &json!(false))
    );
    app.get("author", "/v1/definitions/nothing")
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn an_id_is_found_by_its_beginning() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let (id, task) = (instance["id"].as_str().expect("an id"), task_of(&instance));
    let found = app
        .get("author", &format!("/v1/ids/{id}"))
        .await
        .expect(200);
    let one = &found["data"][0];
    assert_eq!(found["data"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&one["kind"], &one["id"], &one["entityId"]),
        (&json!("instance"), &json!(id), &json!("doc-1"))
    );
    let found = app
        .get("author", &format!("/v1/ids/{}", &task[..20]))
        .await
        .expect(200);
    let of_task = found["data"].as_array().expect("data").iter();
    let tasks: Vec<_> = of_task.filter(|one| one["kind"] == "task").collect();
    assert_eq!(tasks.len(), 1);
    assert_eq!(
        (&tasks[0]["id"], &tasks[0]["instanceId"]),
        (&json!(task), &json!(id))
    );
    for entity in 0..12 {
        app.started(&format!("more-{entity}")).await;
    }
    // A long list is cut off.
    let found = app
        .get("author", &format!("/v1/ids/{}", &id[..4]))
        .await
        .expect(200);
    assert_eq!(found["data"].as_array().map(Vec::len), Some(10));
    app.get("author", "/v1/ids/ffffffff")
        .await
        .problem(404, "not_found");
    for wrong in ["01", "nonsense", "01a2%00"] {
        assert!(app.get("author", &format!("/v1/ids/{wrong}")).await.status >= 400);
    }
    app.get("author", "/v1/ids/xyz1")
        .await
        .problem(422, "invalid_request");
}

#[tokio::test]
async fn jobs_are_listed_in_the_order_in_which_they_are_due() {
    let app = TestApp::start().await;
    app.started("doc-1").await;
    sql(
        &app,
        "insert into job (tenant_id, id, kind, instance_id, due_at, payload, attempts, last_error, lease_until)
         select i.tenant_id, gen_random_uuid(), case when n % 2 = 0 then 'start_child' else 'deadline' end, i.id,
             '2100-01-01'::timestamptz + n * interval '1 day', '{}', n % 2, case when n = 3 then 'broken' end,
             case when n = 3 then '2099-01-01'::timestamptz end
         from instance i, generate_series(1, 5) as n",
    )
    .await;
    let (mut due, mut next) = (Vec::new(), String::new());
    loop {
        let page = app
            .get("admin", &format!("/v1/jobs?state=due&limit=2{next}"))
            .await
            .expect(200);
        due.extend(page["data"].as_array().expect("data").clone());
        match page["page"]["next"].as_str() {
            Some(cursor) => next = format!("&after={cursor}"),
            None => break,
        }
    }
    let days: Vec<_> = due.iter().map(|job| &job["dueAt"]).collect();
    assert_eq!(days.len(), 5);
    assert!(days.is_sorted_by_key(|day| day.as_str()), "{days:?}");
    let errors: Vec<_> = due.iter().map(|job| job["error"].as_str()).collect();
    assert_eq!(errors, [None, None, Some("broken"), None, None]);
    let failing = app.get("admin", "/v1/jobs").await.expect(200);
    assert_eq!(failing["data"].as_array().map(Vec::len), Some(1));
    app.get("author", "/v1/jobs?state=due")
        .await
        .problem(403, "permission_missing");
}

#[tokio::test]
async fn operations_are_listed_newest_first() {
    let app = TestApp::start().await;
    app.started("doc-1").await;
    let mut begun = Vec::new();
    for number in 0..3 {
        let reason = json!({ "definitionKey": "document-approval", "version": 1, "reason": format!("no {number}") });
        let made = app.post("admin", "/v1/cancellations", reason).await;
        begun.push(made.expect(201)["id"].clone());
    }
    begun.reverse();
    let (mut ids, mut next) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/operations?limit=2{next}");
        let page = app.get("author", &path).await.expect(200);
        let data = page["data"].as_array().expect("data").iter();
        ids.extend(data.map(|one| one["id"].clone()));
        match page["page"]["next"].as_str() {
            Some(cursor) => next = format!("&after={cursor}"),
            None => break,
        }
    }
    assert_eq!(ids, begun);
}

/// Adds members one after the other, as an import does.
#[tokio::test]
async fn changes_of_a_group_share_a_reassessment_that_has_not_begun() {
    let app = TestApp::empty().await;
    sql(&app, "delete from reassessment").await;
    for person in ["p1", "p2", "p3"] {
        member(&app, "approvers", person).await;
    }
    let of_group = async || {
        let all = reassessments(&app).await.into_iter();
        all.filter(|(whose, _)| whose == "group approvers").count()
    };
    assert_eq!((of_group().await, reassessments(&app).await.len()), (1, 4));
    // Its time is that of the last change.
    let newest = "select kind from reassessment where created_at = (select max(created_at) from reassessment) order by kind";
    let newest: Vec<String> = sqlx::query_scalar(newest)
        .fetch_all(app.database.admin_pool())
        .await
        .expect("kinds");
    assert_eq!(newest, ["group", "user"]);
    // A worker that has claimed it may have read the members before the next change.
    let now = app.engine.clock().now();
    let until = now + jiff::SignedDuration::from_mins(1);
    let store = app.store();
    let begun = reassessments::claim(store, now, until, 10, TenantId(0))
        .await
        .expect("a claim");
    assert_eq!(begun.len(), 4);
    member(&app, "approvers", "p4").await;
    assert_eq!(of_group().await, 2);
}

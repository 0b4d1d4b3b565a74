//! Dry runs of changes of the directory show which open tasks nobody could do afterwards, and write nothing.

use super::*;

const MEMBER: &str = "/v1/groups/reviewers/members/";

async fn preview(app: &TestApp, method: &str, path: &str) -> Value {
    let before = rows(app).await;
    let path = format!("{path}?dryRun=true");
    let answer = app.host().send("admin", method, &path, &[], None).await;
    let answer = answer.expect(200);
    assert_eq!(rows(app).await, before, "{path} wrote");
    assert_eq!(answer["dryRun"], true);
    answer
}

/// The preview of the leave of `reviewer`, after `reviewer2` has left: nobody else can review for the author.
async fn last_leave(app: &TestApp) -> Value {
    delete(app, "admin", &format!("{MEMBER}reviewer2"))
        .await
        .expect(200);
    preview(app, "DELETE", &format!("{MEMBER}reviewer")).await
}

#[tokio::test]
async fn the_last_member_who_leaves_orphans_tasks() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    // The author is a reviewer, too, but may not review their own document.
    let reviewer2 = format!("{MEMBER}reviewer2");
    assert_eq!(
        preview(&app, "DELETE", &reviewer2).await["orphans"],
        json!([])
    );
    let answer = last_leave(&app).await;
    let task = &instance["states"][0]["tasks"][0];
    let expected = json!([{
        "taskId": task["id"], "instanceId": instance["id"],
        "definitionKey": "document-approval", "definitionVersion": 1,
        "state": instance["states"][0]["name"], "label": task["label"],
        "why": "author requested the instance",
    }]);
    assert_eq!(
        (&answer["orphans"], &answer["more"]),
        (&expected, &json!(false))
    );
    // A task that nobody could do before is not caused by this change.
    let reviewer = format!("{MEMBER}reviewer");
    delete(&app, "admin", &reviewer).await.expect(200);
    let author = preview(&app, "DELETE", &format!("{MEMBER}author")).await;
    assert_eq!(author["orphans"], json!([]));
    assert_eq!(preview(&app, "PUT", &reviewer).await["orphans"], json!([]));
    let nobody = format!("{MEMBER}nobody?dryRun=true");
    delete(&app, "admin", &nobody)
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn an_owner_who_leaves_orphans_their_task() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    claimed(&app, "reviewer", &instance).await;
    let answer = preview(&app, "DELETE", &format!("{MEMBER}reviewer")).await;
    let why = answer["orphans"][0]["why"].as_str().expect("a reason");
    assert!(
        why.contains("reviewer has the task and is no longer a candidate"),
        "{why}"
    );
    let answer = preview(&app, "DELETE", &format!("{MEMBER}reviewer2")).await;
    assert_eq!(answer["orphans"], json!([]));
}

#[tokio::test]
async fn the_end_of_an_absence_orphans_the_tasks_of_the_substitute() {
    let app = TestApp::start().await;
    app.put("admin", "/v1/people/sub", json!({ "name": "Sub" }))
        .await
        .expect(200);
    let path = "/v1/people/reviewer/absences";
    let body = json!({
        "substitute": "sub", "from": "2020-01-01T00:00:00Z", "until": app.engine.clock().now() + jiff::SignedDuration::from_hours(2),
    });
    app.post("reviewer", path, body.clone())
        .await
        .problem(422, "invalid_request");
    let mut body = body;
    body["from"] = json!(app.engine.clock().now());
    let added = app.post("reviewer", path, body).await.expect(201);
    app.started("doc-1").await;
    sql(
        &app,
        "update task set status = 'CLAIMED', owner = 'sub', claimed_at = now(), ownership = '{\"onBehalfOf\":\"reviewer\"}'",
    )
    .await;
    let one = format!("{path}/{}", added["absence"]["id"].as_str().expect("an id"));
    let answer = preview(&app, "DELETE", &one).await;
    assert_eq!(answer["orphans"].as_array().expect("orphans").len(), 1);
    // During the absence, the substitute has the groups of the absent person.
    let answer = preview(&app, "DELETE", &format!("{MEMBER}reviewer2")).await;
    assert_eq!(answer["orphans"], json!([]));
    let answer = preview(&app, "DELETE", &format!("{MEMBER}reviewer")).await;
    assert_eq!(answer["orphans"].as_array().expect("orphans").len(), 1);
    // A task that was given to the substitute themselves is kept.
    sql(&app, "update task set ownership = '{\"assigned\":true}'").await;
    let answer = preview(&app, "DELETE", &one).await;
    assert_eq!(answer["orphans"], json!([]));
}

/// An offer to a manager is made to that person, who keeps it.
#[tokio::test]
async fn a_change_of_managers_orphans_nothing() {
    let app = TestApp::empty().await;
    app.publish("committee", guests::committee(), &json!({}))
        .await
        .expect(201);
    let activate = "/v1/definitions/committee/versions/1/activate";
    app.post("admin", activate, json!({})).await.expect(200);
    let path = "/v1/people/author/manager";
    let body = json!({ "manager": "approver" });
    app.put("admin", path, body).await.expect(200);
    let body = json!({
        "definitionKey": "committee", "entityType": "case", "entityId": "1",
        "data": { "assign": { "offers": [{ "managersOf": ["author"] }] } },
    });
    let started = app.post("author", "/v1/instances", body).await.started();
    let task = task_of(&started);
    let answer = preview(&app, "DELETE", path).await;
    assert_eq!(answer["orphans"], json!([]));
    delete(&app, "admin", path).await.expect(200);
    let claim = format!("/v1/tasks/{task}/claim");
    app.post("approver", &claim, json!({})).await.expect(200);
    let other = format!("{path}?dryRun=true");
    let body = json!({ "manager": "nobody" });
    assert_eq!(
        fault(app.put("admin", &other, body).await).1,
        "unknown_person"
    );
}

#[tokio::test]
async fn a_list_of_orphans_is_limited() {
    let app = TestApp::start().await;
    app.started("doc-1").await;
    // A thousand more tasks like it.
    sql(
        &app,
        "create function pg_temp.other(id uuid, n int) returns uuid immutable language sql as $$ select md5(id::text || n)::uuid $$;
         insert into instance select (jsonb_populate_record(i, jsonb_build_object('id', pg_temp.other(i.id, n), 'entity_id', 'copy-' || n))).*
         from instance i, generate_series(1, 1000) n;
         insert into state_instance select (jsonb_populate_record(s, jsonb_build_object('instance_id', pg_temp.other(s.instance_id, n), 'id', pg_temp.other(s.id, n)))).*
         from state_instance s, generate_series(1, 1000) n;
         insert into task select (jsonb_populate_record(t, jsonb_build_object('instance_id', pg_temp.other(t.instance_id, n), 'state_id', pg_temp.other(t.state_id, n), 'id', pg_temp.other(t.id, n)))).*
         from task t, generate_series(1, 1000) n;
         insert into task_candidate select c.tenant_id, c.kind, c.principal, pg_temp.other(c.task_id, n) from task_candidate c, generate_series(1, 1000) n",
    )
    .await;
    let answer = last_leave(&app).await;
    let orphans = answer["orphans"].as_array().expect("orphans");
    assert_eq!((orphans.len(), &answer["more"]), (200, &json!(true)));
    // All of them are checked, in batches, without a gap.
    let answer = preview(&app, "DELETE", &format!("{MEMBER}author")).await;
    assert_eq!(
        (&answer["orphans"], &answer["more"]),
        (&json!([]), &json!(false))
    );
}

/// First come more than two pages of tasks that others can do.
#[tokio::test]
async fn an_orphan_is_found_behind_many_other_tasks() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let orphan = &instance["states"][0]["tasks"][0]["id"];
    sql(
        &app,
        "create temporary table copy as select lpad(to_hex(n), 32, '0')::uuid as id from generate_series(1, 1100) n;
        insert into task
        select (jsonb_populate_record(t, jsonb_build_object('id', c.id, 'candidates', (t.candidates::jsonb || '[{\"type\":\"user\",\"id\":\"admin\"}]')::text))).*
        from task t, copy c where t.id not in (select id from copy);
        insert into task_candidate select t.tenant_id, 'group', 'reviewers', c.id from copy c join task t on t.id = c.id",
    )
    .await;
    let answer = last_leave(&app).await;
    let orphans = answer["orphans"].as_array().expect("orphans");
    assert_eq!(orphans.len(), 1, "{answer}");
    assert_eq!(
        (&orphans[0]["taskId"], &answer["more"]),
        (orphan, &json!(false))
    );
}

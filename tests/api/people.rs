//! People with substitutes and managers, inserted directly into the database; stored refusals; and names.

use super::*;

/// Inserts these people.
pub(super) async fn known(app: &TestApp, people: &[&str]) {
    for person in people {
        let path = format!("/v1/people/{person}");
        let named = app.put("admin", &path, json!({ "name": person })).await;
        named.expect(200);
    }
}

pub(super) async fn member(app: &TestApp, group: &str, person: &str) {
    known(app, &[person]).await;
    let path = format!("/v1/groups/{group}/members/{person}");
    app.put("admin", &path, json!({})).await.expect(200);
}

/// From an hour ago, for a day: `substitute` may act for `person`, in work of one definition or of all.
pub(super) async fn absent(
    app: &TestApp,
    person: &str,
    substitute: &str,
    definition: Option<&str>,
) {
    absent_during(app, (person, substitute, definition), (-1, 24)).await;
}

/// The same, between these hours from now.
pub(super) async fn absent_during(
    app: &TestApp,
    (person, substitute, definition): (&str, &str, Option<&str>),
    (from, until): (i32, i32),
) {
    let absence = "insert into absence
            (tenant_id, id, person_id, substitute_id, definition_key, active_from, active_until, created_at, created_by)
        select id, gen_random_uuid(), $1, $2, $3, now() + make_interval(hours => $4), now() + make_interval(hours => $5),
            now(), $1 from tenant where name = 'default'";
    sqlx::query(absence)
        .bind(person)
        .bind(substitute)
        .bind(definition)
        .bind(from)
        .bind(until)
        .execute(app.database.admin_pool())
        .await
        .expect("an absence");
}

/// Ends every absence.
pub(super) async fn all_back(app: &TestApp) {
    sql(app, "update absence set ended_at = now()").await;
}

pub(super) async fn managed(app: &TestApp, person: &str, manager: &str) {
    let sql = "insert into manager (tenant_id, person_id, manager_id, valid_from)
        select id, $1, $2, now() from tenant where name = 'default'";
    sqlx::query(sql)
        .bind(person)
        .bind(manager)
        .execute(app.database.admin_pool())
        .await
        .expect("a manager");
}

/// Sends a command about a task.
pub(super) async fn post_action(
    app: &TestApp,
    user: &str,
    task: &str,
    what: &str,
    body: Value,
) -> Answer {
    let path = format!("/v1/tasks/{task}/{what}");
    app.post(user, &path, body).await
}

/// The ids of a view of a person's inbox, each with the person they act for.
pub(super) async fn inbox(app: &TestApp, user: &str, view: &str) -> Vec<(String, Value)> {
    let page = app.get(user, &format!("/v1/tasks?view={view}")).await;
    let page = page.expect(200);
    let tasks = page["data"].as_array().expect("data").iter();
    let id = |task: &Value| task["id"].as_str().expect("an id").to_owned();
    tasks
        .map(|task| (id(task), task["onBehalfOf"].clone()))
        .collect()
}

/// How often this refusal of this person was recorded.
pub(super) async fn refused(app: &TestApp, actor: &str, task: Option<&str>, code: &str) -> i64 {
    let count = "select count(*) from refused_attempt
        where actor = $1 and task_id is not distinct from $2::uuid and code = $3";
    sqlx::query_scalar(count)
        .bind(actor)
        .bind(task.map(|task| uuid::Uuid::parse_str(task).expect("an id")))
        .bind(code)
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count")
}

/// The same name in two Unicode forms would be two people.
#[tokio::test]
async fn an_id_has_one_spelling() {
    let app = TestApp::start().await;
    known(&app, &["Ren%C3%A9"]).await;
    let named = json!({ "name": "Ren\u{e9}" });
    for path in ["/v1/people/Rene%CC%81", "/v1/groups/Rene%CC%81"] {
        let problem = app.put("admin", path, named.clone()).await;
        let problem = problem.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], "/id");
    }
    // Display names may have any form.
    let spelt = json!({ "name": "Rene\u{301}" });
    app.put("admin", "/v1/people/rene", spelt).await.expect(200);
    let body = json!({
        "definitionKey": "document-approval", "entityType": "document", "entityId": "Rene\u{301}", "data": { "title": "A plan" },
    });
    let problem = app.post("author", "/v1/instances", body).await;
    let problem = problem.problem(422, "invalid_request");
    assert_eq!(problem["errors"][0]["pointer"], "/entityId");
}

#[tokio::test]
async fn many_names_are_looked_up_in_one_request() {
    let app = TestApp::start().await;
    let put = async |path: &str, name: &str| {
        let body = json!({ "name": name });
        app.put("admin", path, body).await.expect(200);
    };
    put("/v1/people/u%2C%201", "Marah").await;
    put("/v1/groups/author", "Not the person").await;
    let body =
        json!({ "people": ["u, 1", "author", "author", "nobody"], "groups": ["author", "u, 1"] });
    let found = app.post("author", "/v1/names", body).await.expect(200);
    let author = &app.get("author", "/v1/people/author").await.expect(200)["name"];
    let names = json!({
        "people": { "author": author, "u, 1": "Marah" }, "groups": { "author": "Not the person" },
    });
    assert_eq!(found, names);
    let none = app.post("author", "/v1/names", json!({})).await.expect(200);
    assert_eq!(none, json!({ "people": {}, "groups": {} }));
    for kind in ["people", "groups"] {
        let most = json!({ kind: vec!["author"; 200] });
        app.post("author", "/v1/names", most).await.expect(200);
        let more = json!({ kind: vec!["author"; 201] });
        let refused = app.post("author", "/v1/names", more).await;
        let problem = refused.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], json!(format!("/{kind}")));
    }
}

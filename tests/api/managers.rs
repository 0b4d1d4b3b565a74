//! Managers: stored with their periods, and without cycles.

use futures_util::future::join;

use super::*;

/// The body that sets a manager.
fn by(manager: &str) -> Value {
    json!({ "manager": manager })
}

fn path(person: &str) -> String {
    format!("/v1/people/{person}/manager")
}

/// `person manager` of each period, oldest first, with a star if it lasts.
async fn periods(app: &TestApp) -> Vec<String> {
    let rows =
        "select person_id || ' ' || manager_id || case when valid_to is null then '*' else '' end
        from manager order by valid_from, valid_to nulls last";
    sqlx::query_scalar(rows)
        .fetch_all(app.database.admin_pool())
        .await
        .expect("periods")
}

#[tokio::test]
async fn a_manager_is_shown_and_replaced_and_every_period_is_stored() {
    let app = TestApp::empty().await;
    sql(&app, "delete from reassessment").await;
    let shown = app.get("author", "/v1/people/author").await.expect(200);
    assert_eq!(shown["manager"], Value::Null);
    let put = app.put("admin", &path("author"), by("reviewer")).await;
    assert_eq!(put.expect(200)["person"]["manager"], "reviewer");
    let (kinds, payload) = directory_entries(&app, 1).await;
    assert_eq!(kinds, ["MANAGER_PUT"]);
    assert_eq!(
        payload,
        json!({ "person": "author", "manager": "reviewer" })
    );
    let put = app.put("admin", &path("author"), by("approver")).await;
    assert_eq!(put.expect(200)["person"]["manager"], "approver");
    let before = rows(&app).await;
    // Setting the same manager is no change.
    let put = app.put("admin", &path("author"), by("approver")).await;
    put.expect(200);
    assert_eq!(rows(&app).await, before);
    let gone = delete(&app, "admin", &path("author")).await.expect(200);
    assert_eq!(gone["person"]["manager"], Value::Null);
    delete(&app, "admin", &path("author")).await.expect(200);
    assert_eq!(periods(&app).await, ["author reviewer", "author approver"]);
    // One entry, because the period had not begun.
    assert_eq!(reassessments(&app).await, [("user author".to_owned(), 0)]);
    let (kinds, _) = directory_entries(&app, 3).await;
    assert_eq!(kinds, ["MANAGER_PUT"; 3]);
}

#[tokio::test]
async fn nobody_is_above_themselves() {
    let app = TestApp::empty().await;
    let put =
        async |person: &str, manager: &str| app.put("admin", &path(person), by(manager)).await;
    let at = |code: &str| ("/manager".to_owned(), code.to_owned());
    assert_eq!(fault(put("author", "author").await), at("oneself"));
    assert_eq!(fault(put("author", "nobody").await), at("unknown_person"));
    put("nobody", "author").await.problem(404, "not_found");
    put("author", "reviewer").await.expect(200);
    put("reviewer", "reviewer2").await.expect(200);
    put("reviewer2", "approver").await.expect(200);
    let before = rows(&app).await;
    let refused = put("approver", "author").await;
    assert_eq!(
        refused.body["detail"],
        "a circle of managers: approver -> author -> reviewer -> reviewer2 -> approver"
    );
    assert_eq!(fault(refused), at("circle"));
    assert_eq!(fault(put("reviewer", "author").await), at("circle"));
    assert_eq!(rows(&app).await, before);
    // Without one of them there is no cycle.
    delete(&app, "admin", &path("reviewer")).await.expect(200);
    put("approver", "author").await.expect(200);
    let refused = app.put("author", &path("author"), by("approver")).await;
    let problem = refused.problem(403, "permission_missing");
    assert_eq!(problem["reason"], "directory:write");
}

#[tokio::test]
async fn of_two_changes_that_would_close_a_cycle_one_succeeds() {
    let app = TestApp::empty().await;
    let other = app.beside().await;
    let (one, two) = (path("author"), path("reviewer"));
    for _ in 0..10 {
        let (first, second) = join(
            app.put("admin", &one, by("reviewer")),
            other.send("admin", "PUT", &two, &[], Some(by("author"))),
        )
        .await;
        let mut statuses = [first.status, second.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 422], "{} {}", first.text, second.text);
        delete(&app, "admin", &one).await.expect(200);
        delete(&app, "admin", &two).await.expect(200);
    }
}

#[tokio::test]
async fn a_dry_run_is_checked_and_writes_nothing() {
    let app = TestApp::empty().await;
    app.put("admin", &path("author"), by("reviewer"))
        .await
        .expect(200);
    let before = rows(&app).await;
    let dry = |person: &str| format!("{}?dryRun=true", path(person));
    let answer = app.put("admin", &dry("author"), by("approver")).await;
    assert_eq!(
        answer.expect(200),
        json!({ "result": "changed", "dryRun": true, "orphans": [], "more": false })
    );
    delete(&app, "admin", &dry("author")).await.expect(200);
    let refused = app.put("admin", &dry("reviewer"), by("author")).await;
    assert_eq!(fault(refused).1, "circle");
    assert_eq!(rows(&app).await, before);
    let shown = app.get("author", "/v1/people/author").await.expect(200);
    assert_eq!(shown["manager"], "reviewer");
    let misspelt = format!("{}?dryrun=true", path("author"));
    let refused = app.put("admin", &misspelt, by("approver")).await;
    refused.problem(400, "malformed_request");
}

#[tokio::test]
async fn reserved_names_of_the_host_are_refused() {
    let app = TestApp::start().await;
    let name = json!({ "name": "The host" });
    let put = app.put("admin", "/v1/people/wrkflw:host", name).await;
    let problem = put.problem(422, "invalid_request");
    assert_eq!(problem["errors"][0]["pointer"], "/id", "{problem}");
    let manager = json!({ "manager": "wrkflw:host" });
    let put = app.put("admin", "/v1/people/author/manager", manager).await;
    let problem = put.problem(422, "invalid_request");
    assert_eq!(problem["errors"][0]["pointer"], "/manager", "{problem}");
}

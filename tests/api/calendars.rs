//! Working calendars: created, read, listed, deleted and audited.

use super::*;
use crate::support::plug::{count, within};

/// Mondays from nine to five.
pub(super) fn office() -> Value {
    json!({ "timeZone": "Europe/Berlin", "hours": { "monday": [{ "from": "09:00", "until": "17:00" }] } })
}

async fn delete(app: &TestApp, user: &str, name: &str) -> Answer {
    let path = format!("/v1/calendars/{name}");
    app.host().send(user, "DELETE", &path, &[], None).await
}

/// Type, sequence number and payload of each entry about calendars.
async fn recorded(app: &TestApp) -> Vec<(String, i64, Value)> {
    sqlx::query_as(
        "select type, seq, payload::jsonb from audit_entry
        where stream_kind = 'directory' and type like 'CALENDAR%' order by seq",
    )
    .fetch_all(app.database.admin_pool())
    .await
    .expect("entries")
}

#[tokio::test]
async fn a_calendar_is_put_read_replaced_and_deleted() {
    let app = TestApp::empty().await;
    let path = "/v1/calendars/office";
    app.get("author", path).await.problem(404, "not_found");
    let mut put = app.put("admin", path, office()).await.expect(200);
    assert!(put["updatedAt"].is_string());
    assert_eq!(app.get("author", path).await.expect(200), put);
    let mut expected = office();
    expected["name"] = json!("office");
    expected["updatedAt"] = put["updatedAt"].take();
    put["updatedAt"] = expected["updatedAt"].clone();
    assert_eq!(put, expected);

    let mut other = office();
    other["timeZone"] = json!("america/new_york");
    other["holidays"] = json!(["2026-12-25"]);
    other["exceptions"] = json!({ "2026-12-24": [{ "from": "09:00", "until": "12:00" }] });
    let replaced = app.put("admin", path, other.clone()).await.expect(200);
    assert_eq!(replaced["timeZone"], "America/New_York");
    assert_eq!(replaced["exceptions"], other["exceptions"]);

    app.put("admin", "/v1/calendars/a-first", office())
        .await
        .expect(200);
    let list = app.get("author", "/v1/calendars").await.expect(200);
    let listed: Vec<_> = list["data"]
        .as_array()
        .expect("a page")
        .iter()
        .map(|one| (one["name"].as_str(), one["timeZone"].as_str()))
        .collect();
    let expected = [
        (Some("a-first"), Some("Europe/Berlin")),
        (Some("office"), Some("America/New_York")),
    ];
    assert_eq!(listed, expected);
    assert_eq!(list["page"]["next"], Value::Null);

    assert_eq!(delete(&app, "admin", "office").await.status, 204);
    delete(&app, "admin", "office")
        .await
        .problem(404, "not_found");
    app.get("author", path).await.problem(404, "not_found");
}

/// Without the calendar, instances could not enter some states of these versions.
#[tokio::test]
async fn a_used_calendar_is_deleted_only_by_force() {
    let app = TestApp::empty().await;
    let put = async |name: &str| {
        let path = format!("/v1/calendars/{name}");
        app.put("admin", &path, office()).await.expect(200);
    };
    let activate = async |version: u32| {
        let path = format!("/v1/definitions/vote/versions/{version}/activate");
        app.post("admin", &path, json!({})).await.expect(200);
    };
    let users = async || {
        let refused = delete(&app, "admin", "office").await;
        let problem = refused.problem(409, "calendar_used");
        let users = problem["errors"].as_array().expect("errors").iter();
        let users = users.map(|user| {
            assert_eq!(user["pointer"], "/force", "{user}");
            assert_eq!(user["code"], "used_by_version", "{user}");
            user["detail"].as_str().expect("text").to_owned()
        });
        users.collect::<Vec<_>>()
    };
    put("office").await;
    put("home").await;
    let one = json!({ "calendars": ["office"] });
    let published = app.publish("vote", guests::committee(), &one).await;
    published.expect(201);
    activate(1).await;
    assert_eq!(users().await, ["version 1 of vote uses it"]);
    assert_eq!(delete(&app, "admin", "home").await.status, 204);
    assert_eq!(delete(&app, "admin", "home").await.status, 404);
    let data = json!({ "assign": { "offers": [{ "users": ["reviewer"] }] } });
    let start = json!({
        "definitionKey": "vote", "entityType": "motion", "entityId": "m-1", "data": data,
    });
    let instance = app.post("author", "/v1/instances", start).await.started();
    let without = app.publish("vote", guests::committee(), &json!({})).await;
    without.expect(201);
    activate(2).await;
    assert_eq!(users().await, ["version 1 of vote uses it"]);
    assert_eq!(recorded(&app).await.len(), 3, "a refusal leaves nothing");
    let path = format!(
        "/v1/instances/{}/cancel",
        instance["id"].as_str().expect("an id")
    );
    let cancel = app.post("admin", &path, json!({ "reason": "enough" }));
    cancel.await.expect(200);
    assert_eq!(delete(&app, "admin", "office").await.status, 204);
    put("office").await;
    activate(1).await;
    assert_eq!(users().await, ["version 1 of vote uses it"]);
    let forced = delete(&app, "admin", "office?force=true").await;
    assert_eq!(forced.status, 204, "{}", forced.text);
}

#[tokio::test]
async fn every_change_is_audited_and_nothing_else() {
    let app = TestApp::empty().await;
    let path = "/v1/calendars/office";
    app.put("admin", path, office()).await.expect(200);
    // These three requests change nothing.
    app.put("admin", path, office()).await.expect(200);
    app.put("admin", path, json!({})).await;
    delete(&app, "admin", "another").await;
    let mut other = office();
    other["timeZone"] = json!("UTC");
    app.put("admin", path, other.clone()).await.expect(200);
    delete(&app, "admin", "office").await;
    let recorded = recorded(&app).await;
    let first = recorded[0].1;
    let expected = [
        (
            "CALENDAR_PUT".to_owned(),
            first,
            json!({ "calendar": "office", "settings": office() }),
        ),
        (
            "CALENDAR_PUT".to_owned(),
            first + 1,
            json!({ "calendar": "office", "settings": other }),
        ),
        (
            "CALENDAR_DELETED".to_owned(),
            first + 2,
            json!({ "calendar": "office" }),
        ),
    ];
    assert_eq!(recorded, expected);
}

#[tokio::test]
async fn changes_of_calendars_need_the_permission_to_write_the_directory() {
    let app = TestApp::empty().await;
    let path = "/v1/calendars/office";
    let refused = app.put("author", path, office()).await;
    assert_eq!(
        refused.problem(403, "permission_missing")["reason"],
        "directory:write"
    );
    app.put("admin", path, office()).await.expect(200);
    let refused = delete(&app, "author", "office").await;
    assert_eq!(
        refused.problem(403, "permission_missing")["reason"],
        "directory:write"
    );
    app.get("author", path).await.expect(200);
}

#[tokio::test]
async fn invalid_calendars_are_refused_with_pointers() {
    let app = TestApp::empty().await;
    let mut settings = office();
    settings["timeZone"] = json!("Mars/Olympus");
    settings["hours"]["monday"][0]["until"] = json!("5 pm");
    settings["holidays"] = json!(["Christmas"]);
    let problem = app.put("admin", "/v1/calendars/office", settings).await;
    let problem = problem.problem(422, "invalid_request");
    let errors: Vec<_> = problem["errors"]
        .as_array()
        .expect("errors")
        .iter()
        .map(|error| (error["pointer"].as_str(), error["code"].as_str()))
        .collect();
    let expected = [
        (Some("/timeZone"), Some("unknown_time_zone")),
        (Some("/hours/monday/0/until"), Some("malformed")),
        (Some("/holidays/0"), Some("malformed")),
    ];
    assert_eq!(errors, expected);
    for name in ["9to5", "an%20office", &"o".repeat(256)] {
        let path = format!("/v1/calendars/{name}");
        let refused = app.put("admin", &path, office()).await;
        let problem = refused.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], "/name", "{name}");
    }
    let listed = app.get("admin", "/v1/calendars").await.expect(200);
    assert_eq!(listed["data"], json!([]));
}

/// A put and a deletion of a calendar lock the directory's stream first. Otherwise they could deadlock.
#[tokio::test]
async fn a_deletion_locks_in_the_same_order_as_a_put() {
    const STREAMS: &str = "select count(*) from (
        select from audit_stream where stream_kind = 'directory' and tenant_id = (select id from tenant where name = 'default')
        for update skip locked) s";
    let app = TestApp::empty().await;
    let path = "/v1/calendars/office";
    app.put("admin", path, office()).await.expect(200);
    assert_eq!(count(&app.database, STREAMS).await, 1);
    // The deletion waits for this row.
    let held = app.database.admin_pool().begin().await;
    let mut held = held.expect("a transaction");
    let lock = "select from calendar for update";
    sqlx::query(lock).execute(&mut *held).await.expect("a lock");
    let watching = async {
        let waits = "select count(*) from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'";
        while count(&app.database, waits).await == 0 {
            crate::support::pause().await;
        }
        let free = count(&app.database, STREAMS).await;
        held.commit().await.expect("a commit");
        free
    };
    let both = async { tokio::join!(delete(&app, "admin", "office"), watching) };
    let (deleted, free) = within(both).await;
    assert_eq!(deleted.status, 204, "{}", deleted.text);
    assert_eq!(free, 0, "the deletion has not locked the stream");
    assert_eq!(recorded(&app).await.len(), 2);
}

#[tokio::test]
async fn a_tenant_has_at_most_a_hundred_calendars() {
    let app = TestApp::empty().await;
    sql(
        &app,
        "insert into calendar select t.id, 'c' || n, '{\"hours\":{\"monday\":[{\"from\":\"09:00\",\"to\":\"10:00\"}]},\"timeZone\":\"UTC\"}', now()
        from tenant t, generate_series(1, 99) n where t.name = 'default'",
    )
    .await;
    // Each of the two would be the hundredth.
    let (one, other) = tokio::join!(
        app.put("admin", "/v1/calendars/one", office()),
        app.put("admin", "/v1/calendars/other", office())
    );
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 422], "{} {}", one.text, other.text);
    let refused = app.put("admin", "/v1/calendars/more", office()).await;
    let problem = refused.problem(422, "invalid_request");
    assert_eq!(problem["errors"][0]["code"], "too_many");
    // An existing calendar can still be replaced.
    app.put("admin", "/v1/calendars/c7", office())
        .await
        .expect(200);
    assert_eq!(recorded(&app).await.len(), 2);
}

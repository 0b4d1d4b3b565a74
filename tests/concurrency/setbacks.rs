//! A database that was set back, by a fail-over that lost commits or by a restore of a backup. Cached rows of the lost history
//! must not be taken for new rows with the same numbers.

use super::*;
use crate::support::app::task_of;
use crate::support::guests::committee;

/// The tables to restore, in the order of their foreign keys.
const TABLES: &[&str] = &[
    "tenant",
    "person",
    "\"group\"",
    "membership",
    "reassessment",
    "manager",
    "definition",
    "definition_version",
    "audit_stream",
    "audit_entry",
    "outbox_event",
    "instance",
    "state_instance",
    "task",
    "task_candidate",
];

/// A saved state that the database can be set back to.
struct Snapshot<'a>(&'a TestApp);

impl Snapshot<'_> {
    async fn of(app: &TestApp) -> Snapshot<'_> {
        let snapshot = Snapshot(app);
        let kept = |table: &&str| {
            format!(
                "create table kept_{} as table {table};",
                table.trim_matches('"')
            )
        };
        snapshot.run(TABLES.iter().map(kept).collect()).await;
        snapshot
    }

    async fn set_back(self) {
        let back = |table: &&str| {
            let kept = table.trim_matches('"');
            format!(
                "delete from {table}; insert into {table} overriding system value table kept_{kept};"
            )
        };
        let back: String = TABLES.iter().map(back).collect();
        // Without triggers.
        let sql = format!("begin; set local session_replication_role = replica; {back} commit");
        self.run(sql).await;
    }

    async fn run(&self, sql: String) {
        let pool = self.0.database.admin_pool();
        let ran = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(pool).await;
        ran.expect("statements");
    }
}

async fn join(host: &Host, person: &str) {
    let path = format!("/v1/groups/reviewers/members/{person}");
    let put = host.send("admin", "PUT", &path, &[], Some(json!({})));
    put.await.expect(200);
}

async fn claim(host: &Host, who: &str, task: &str) -> Answer {
    let path = format!("/v1/tasks/{task}/claim");
    host.send(who, "POST", &path, &[], Some(json!({}))).await
}

#[tokio::test]
async fn a_membership_of_a_lost_change_has_no_effect() {
    let app = TestApp::start().await;
    let (here, there) = (app.host(), app.beside().await);
    for person in ["outsider", "other"] {
        let path = format!("/v1/people/{person}");
        let body = json!({ "name": person });
        app.put("admin", &path, body).await.expect(200);
    }
    let snapshot = Snapshot::of(&app).await;
    join(&here, "outsider").await;
    let lost = task_of(&app.started("doc-1").await);
    claim(&here, "outsider", &lost).await.expect(200);
    snapshot.set_back().await;

    // The same number of changes as before, but other ones.
    join(&there, "other").await;
    let task = task_of(&app.started("doc-2").await);
    let refused = claim(&here, "outsider", &task).await;
    assert_eq!(
        refused.problem(403, "forbidden")["reason"],
        "not_a_candidate"
    );
    claim(&here, "other", &task).await.expect(200);
}

/// Starts a vote, and returns the candidates.
async fn voters(app: &TestApp, entity: &str, offer: Value) -> Vec<String> {
    let body = json!({
        "definitionKey": "committee", "entityType": "motion", "entityId": entity,
        "data": { "assign": { "offers": [offer], "needed": 1 } },
    });
    let started = app.post("author", "/v1/instances", body).await.started();
    let candidates = started["states"][0]["tasks"][0]["candidates"].clone();
    let candidates = candidates.as_array().expect("candidates").iter();
    candidates
        .map(|candidate| candidate["id"].as_str().expect("an id").to_owned())
        .collect()
}

/// Publishes the next version and makes it the active one.
async fn publish(app: &TestApp, config: Value) {
    let published = app.publish("committee", committee(), &config).await;
    let version = published.expect(201)["version"].clone();
    let path = format!("/v1/definitions/committee/versions/{version}/activate");
    app.post("admin", &path, json!({})).await.expect(200);
}

#[tokio::test]
async fn a_version_number_of_a_lost_version_stands_for_the_new_one() {
    let app = TestApp::empty().await;
    publish(&app, json!({ "group": "authors" })).await;
    let snapshot = Snapshot::of(&app).await;
    publish(&app, json!({ "group": "approvers" })).await;
    assert_eq!(voters(&app, "m-1", json!({})).await, ["approvers"]);
    snapshot.set_back().await;
    publish(&app, json!({ "group": "reviewers" })).await;
    // Both for a start, and for a command on a loaded instance.
    assert_eq!(voters(&app, "m-2", json!({})).await, ["reviewers"]);
}

#[tokio::test]
async fn a_lost_version_that_a_host_has_cached_refuses_no_start() {
    let app = TestApp::empty().await;
    publish(&app, json!({ "group": "authors" })).await;
    let snapshot = Snapshot::of(&app).await;
    publish(&app, json!({ "group": "approvers" })).await;
    let (here, there) = (app.host(), app.beside().await);
    let start = async |host: &Host, entity: &str| {
        let body = json!({
            "definitionKey": "committee", "entityType": "motion", "entityId": entity,
            "data": { "assign": { "offers": [{}], "needed": 1 } },
        });
        let headers = [("idempotency-key", entity)];
        let path = "/v1/instances";
        let started = host.send("author", "POST", path, &headers, Some(body));
        started.await.expect(201)
    };
    start(&here, "m-1").await;
    // The repeated reply leaves the number of the active version in the cache of the other host, and not the version.
    start(&there, "m-1").await;
    snapshot.set_back().await;
    start(&there, "m-2").await;
}

#[tokio::test]
async fn a_directory_changed_by_hand_is_read_again() {
    let app = TestApp::empty().await;
    publish(&app, json!({})).await;
    let boss = json!({ "manager": "reviewer" });
    let path = "/v1/people/author/manager";
    app.put("admin", path, boss).await.expect(200);
    let offer = || json!({ "managersOf": ["author"] });
    assert_eq!(voters(&app, "m-1", offer()).await, ["reviewer"]);
    let repair = "update manager set manager_id = 'approver'";
    let repaired = sqlx::raw_sql(repair).execute(app.database.admin_pool());
    repaired.await.expect("a repair");
    assert_eq!(voters(&app, "m-2", offer()).await, ["approver"]);
}

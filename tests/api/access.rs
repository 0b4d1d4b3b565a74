//! Deny by default: without a token, without a role, from another tenant, and for readers without access.

use wrkflw_server::http::auth::{AuthSettings, Secret};

use super::calendars::office;
use super::openapi::{Operation, operations};
use super::problems::signed;
use super::*;
use crate::support::app::{ADMIN, SECRET};
use wrkflw_store::directory::tenants;

/// Values for the parameters of a path that refer to existing things.
pub(crate) struct World {
    pub(crate) app: TestApp,
    pub(crate) instance: String,
    pub(crate) task: String,
    subscription: String,
    notification: String,
}

/// The id of a saved view.
const VIEW: &str = "00000000-0000-7000-8000-000000000001";

impl World {
    pub(crate) async fn new() -> World {
        let app = TestApp::start().await;
        app.put("admin", "/v1/calendars/office", office())
            .await
            .expect(200);
        let instance = app.started("doc-1").await;
        let task = task_of(&instance);
        let instance = instance["id"].as_str().expect("an id").to_owned();
        let body = json!({ "url": "http://127.0.0.1:9/", "types": ["*"] });
        let subscription = app
            .post("admin", "/v1/subscriptions", body)
            .await
            .expect(201);
        let subscription = subscription["id"].as_str().expect("an id").to_owned();
        let notification = "insert into notification
            (tenant_id, id, kind, recipient_kind, recipient, instance_id, event_id, created_at)
            select tenant_id, id, 'STATUS_CHANGED', 'user', 'author', id, id, started_at from instance";
        sql(&app, notification).await;
        let operation = "insert into bulk_operation
            (tenant_id, id, action, settings, requested_by, roles, created_at, total, more, done, ended_at)
            select tenant_id, id, 'cancel', '{}', 'admin', '[]', started_at, 1, false, 1, started_at from instance";
        sql(&app, operation).await;
        World {
            notification: instance.clone(),
            app,
            instance,
            task,
            subscription,
        }
    }

    /// The path with parameters of existing things.
    pub(crate) fn path(&self, operation: &Operation) -> String {
        let path = &operation.path;
        let id = match path.split('/').nth(2) {
            // People choose the ids of their saved views, and views belong to no instance.
            Some("me") if path.starts_with("/v1/me/views") => VIEW,
            // The other person's operation has the id of the instance.
            Some("instances" | "operations" | "dead-letters" | "me") => &self.instance,
            Some("tasks") => &self.task,
            Some("subscriptions") => &self.subscription,
            Some("notifications") => &self.notification,
            Some("people") => "author",
            Some("entities") => "doc-1",
            Some("roles") => "user",
            _ => "authors",
        };
        let path = path
            .replace("{id}", id)
            .replace("{type}", "document")
            .replace("{name}", "office")
            .replace("{key}", "document-approval");
        let path = path.replace("{prefix}", &self.instance);
        let path = path.replace("{version}", "1").replace("{person}", "author");
        // No signal has this id, and no flow this trigger.
        let path = path.replace("{signal}", &self.instance);
        let path = path.replace("{delivery}", &self.instance);
        path.replace("{absence}", &self.instance)
    }

    /// The path with the id of a missing thing of the same kind, and what was replaced.
    pub(crate) fn missing(&self, operation: &Operation) -> (String, Vec<(String, String)>) {
        const NOBODY: &str = "00000000-0000-7000-8000-000000000000";
        let ids = [&self.instance, &self.task, &self.subscription];
        let replaced: Vec<_> = ids
            .into_iter()
            .map(|id| (id.clone(), NOBODY.to_owned()))
            .chain([
                ("user".to_owned(), "norole".to_owned()),
                ("authors".to_owned(), "nogroup".to_owned()),
                ("author".to_owned(), "nobody".to_owned()),
                ("doc-1".to_owned(), "nothing".to_owned()),
                ("office".to_owned(), "nowhere".to_owned()),
                ("document-approval".to_owned(), "noflow".to_owned()),
            ])
            .collect();
        let segments = self.path(operation);
        let segments = segments.split('/').map(|segment| {
            let found = replaced.iter().find(|(there, _)| there == segment);
            found.map_or(segment, |(_, missing)| missing)
        });
        (segments.collect::<Vec<_>>().join("/"), replaced)
    }

    /// A body that the operation accepts.
    pub(crate) fn body(&self, operation: &Operation) -> Option<Value> {
        operation.described.get("requestBody")?;
        let last = operation.path.rsplit('/').next().expect("a segment");
        Some(match (last, operation.method.as_str()) {
            ("instances", _) => approval_start("doc-2"),
            ("subscriptions", _) => json!({ "url": "http://127.0.0.1:9/", "types": ["*"] }),
            ("{signal}", _) => {
                json!({ "correlation": "order 7", "id": "p-1" })
            }
            ("decide", _) => json!({ "outcome": "APPROVE" }),
            ("preferences", _) => json!({ "mutedNotifications": ["MENTION"] }),
            ("draft", _) => json!({ "comment": "So far" }),
            ("embed-tokens", _) => json!({
                "subject": "reviewer", "roles": ["admin"], "instanceId": self.instance, "origin": "https://documents.example",
            }),
            ("comment", _) => json!({ "comment": "Why so long?" }),
            ("migrate", _) => json!({ "version": 1 }),
            ("migrations", _) => {
                json!({ "definitionKey": "document-approval", "fromVersion": 1, "version": 2 })
            }
            ("cancellations", _) => json!({
                "definitionKey": "document-approval", "version": 1, "reason": "no longer needed",
            }),
            ("names", _) => json!({ "people": ["author"], "groups": ["authors"] }),
            ("bulk", _) => json!({ "action": "claim", "taskIds": [self.task] }),
            ("replay", _) => json!({ "after": "earliest", "reason": "the index was lost" }),
            ("discard", _) if operation.path.contains("deliveries") => {
                json!({ "reason": "given up" })
            }
            ("discard", _) => json!({ "entry": 1, "reason": "given up" }),
            ("retry", _) => json!({ "reason": "there is room now" }),
            ("cancel" | "suspend" | "reset" | "stop", _) => json!({ "reason": "no longer needed" }),
            ("delegate" | "reassign", _) => json!({ "to": "approver", "reason": "away" }),
            ("{name}", "put") => office(),
            ("manager", _) => json!({ "manager": "reviewer" }),
            ("absences", _) => json!({
                "substitute": "reviewer", "from": "2100-01-01T00:00:00Z", "until": "2100-02-01T00:00:00Z",
            }),
            ("{id}", "put") if operation.path.starts_with("/v1/me/views") => {
                json!({ "name": "Urgent", "query": "minPriority=50" })
            }
            ("{id}", "put") if operation.path.starts_with("/v1/roles") => {
                json!({ "permissions": ["task:act"] })
            }
            (_, "put") => json!({ "name": "A name" }),
            _ => json!({}),
        })
    }

    async fn send(&self, operation: &Operation, headers: &[(&str, &str)]) -> Answer {
        let (method, path) = (operation.method.to_uppercase(), self.path(operation));
        let host = self.app.host();
        host.send("", &method, &path, headers, self.body(operation))
            .await
    }
}

#[tokio::test]
async fn every_route_needs_a_token() {
    let world = World::new().await;
    let before = rows(&world.app).await;
    let operations = operations(&world.app).await;
    assert!(operations.len() > 25);
    for operation in operations {
        let name = format!("{} {}", operation.method, operation.path);
        let answer = world.send(&operation, &[]).await;
        let challenge = answer.headers.get("www-authenticate").expect("a challenge");
        assert!(
            challenge.to_str().expect("text").starts_with("Bearer"),
            "{name}"
        );
        answer.problem(401, "token_missing");
    }
    assert_eq!(rows(&world.app).await, before);
}

#[tokio::test]
async fn every_route_needs_a_role() {
    let world = World::new().await;
    let before = rows(&world.app).await;
    let (name, token) = bearer(&world.app.host(), "author", "default", &[]);
    let (_, unknown) = bearer(&world.app.host(), "author", "default", &["no-such-role"]);
    let mut commands = 0;
    for operation in operations(&world.app).await {
        // Everybody may read who they are.
        if operation.path.starts_with("/v1/me") {
            continue;
        }
        // A signal by correlation has no target yet. A bulk request is refused before its first command.
        let is_command = ![
            "/v1/people",
            "/v1/groups",
            "/v1/roles",
            "/v1/signals",
            "/v1/migrations",
            "/v1/cancellations",
            "/v1/tasks/bulk",
        ]
        .iter()
        .any(|other| operation.path.starts_with(other) || operation.path.ends_with("/activate"));
        commands += i64::from(is_command && operation.has_parameter("dryRun"));
        for token in [&token, &unknown] {
            let problem = world.send(&operation, &[(name, token)]).await;
            let problem = problem.problem(403, "permission_missing");
            let permission = problem["reason"].as_str().expect("a permission");
            assert!(ADMIN.contains(&permission), "{permission}");
        }
    }
    let after = rows(&world.app).await;
    // Refused commands are stored separately. Nothing else is stored.
    assert_eq!(
        after["refused_attempt"],
        before["refused_attempt"] + 2 * commands
    );
    let others = |rows: &BTreeMap<String, i64>| {
        let others = rows.iter().filter(|(table, _)| *table != "refused_attempt");
        others
            .map(|(table, count)| (table.clone(), *count))
            .collect::<Vec<_>>()
    };
    assert_eq!(others(&after), others(&before));
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "each route has its own response")]
async fn another_tenant_sees_nothing() {
    let world = World::new().await;
    let app = &world.app;
    let roles = BTreeMap::from([("admin", ADMIN)]);
    let store = app.store();
    tenants::ensure_tenant(store, "other", &roles, app.engine.clock().now())
        .await
        .expect("a tenant");
    let host = app.host();
    let (name, token) = bearer(&host, "author", "other", &["admin"]);
    let headers = [(name, token.as_str())];
    let before = rows(app).await;
    let mut lists = 0;
    for operation in operations(app).await {
        let called = format!("{} {}", operation.method, operation.path);
        let named_by_caller = ["{id}", "{name}"]
            .iter()
            .any(|end| operation.path.ends_with(end));
        let makes_its_own = operation.method == "put" && named_by_caller;
        // Routes for everybody: who they are, and what their tenant permits.
        let of_its_own = operation.path.starts_with("/v1/me")
            || ["/v1/roles", "/v1/roles/{id}"].contains(&&*operation.path);
        if makes_its_own || of_its_own || operation.path.ends_with("/stream") {
            continue;
        }
        let answer = match operation.path.as_str() {
            "/v1/definitions/{key}/versions"
            | "/v1/subscriptions"
            | "/v1/signals/{signal}"
            | "/v1/events/replay"
                if operation.method == "post" =>
            {
                continue;
            }
            _ => world.send(&operation, &headers).await,
        };
        let of_entity = operation.path.starts_with("/v1/entities/");
        if operation.path.starts_with("/v1/compliance/") {
            let report = answer.expect(200);
            assert_eq!(report["decisionsExamined"], 0, "{called}");
            assert_eq!(report["refusedAttempts"], 0, "{called}");
        } else if operation.path == "/v1/series" {
            for line in answer.expect(200)["data"].as_array().expect("series") {
                for line in line["lines"].as_array().expect("lines") {
                    assert_eq!(line["total"], 0, "{called}");
                }
            }
        } else if operation.path == "/v1/names" {
            let names = answer.expect(200);
            assert_eq!(names, json!({ "people": {}, "groups": {} }), "{called}");
        } else if operation.path == "/v1/tasks/bulk" {
            let results = answer.expect(200);
            assert_eq!(results["results"][0]["code"], "not_found", "{called}");
        } else if operation.path.contains('{') && !of_entity
            || [
                "/v1/instances",
                "/v1/migrations",
                "/v1/cancellations",
                "/v1/embed-tokens",
            ]
            .contains(&&*operation.path)
                && operation.method == "post"
        {
            answer.problem(404, "not_found");
        } else {
            let page = answer.expect(200);
            assert_eq!(page["data"], json!([]), "{called}");
            lists += 1;
        }
    }
    assert_eq!(lists, 19);
    for view in ["mine", "available", "all"] {
        let path = format!("/v1/tasks?view={view}");
        let tasks = host.send("", "GET", &path, &headers, None).await;
        assert_eq!(tasks.expect(200)["data"], json!([]));
    }
    let filter = "/v1/instances?definitionKey=document-approval&initiator=author&entityId=doc-1";
    let found = host
        .send("", "GET", filter, &headers, None)
        .await
        .expect(200);
    assert_eq!(found["data"], json!([]));
    assert_eq!(rows(app).await, before);

    // A name of one tenant is free in another.
    let put = host.send(
        "",
        "PUT",
        "/v1/people/author",
        &headers,
        Some(json!({ "name": "Another" })),
    );
    assert_eq!(put.await.expect(200)["person"]["groups"], json!([]));
    let kept = app.get("author", "/v1/people/author").await.expect(200);
    assert_eq!(
        (&kept["name"], kept["groups"].as_array().map(Vec::len)),
        (&json!("author"), Some(2))
    );
}

#[tokio::test]
async fn groups_come_from_the_database_and_not_from_the_token() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let claim = format!("/v1/tasks/{}/claim", task_of(&instance));
    let host = app.host();
    // A role with the name of a group makes nobody a member of the group.
    let (name, token) = bearer(&host, "outsider", "default", &["user", "reviewers"]);
    let refused = host
        .send("", "POST", &claim, &[(name, &token)], Some(json!({})))
        .await;
    assert_eq!(
        refused.problem(403, "forbidden")["reason"],
        "not_a_candidate"
    );
    // A membership has effect from the next request on, until it ends.
    app.put("admin", "/v1/people/outsider", json!({ "name": "Olga" }))
        .await
        .expect(200);
    let member = "/v1/groups/reviewers/members/outsider";
    app.put("admin", member, json!({})).await.expect(200);
    app.post("outsider", &format!("{claim}?dryRun=true"), json!({}))
        .await
        .expect(200);
    host.send("admin", "DELETE", member, &[], None)
        .await
        .expect(200);
    let refused = app.post("outsider", &claim, json!({})).await;
    assert_eq!(
        refused.problem(403, "forbidden")["reason"],
        "not_a_candidate"
    );
}

/// If a host serves a single tenant, tokens need not name it.
#[tokio::test]
async fn a_single_tenant_needs_no_claim_in_tokens() {
    let app = TestApp::start().await;
    let started = app.started("doc-1").await;
    let nameless = json!({ "sub": "author", "roles": ["user"], "exp": 4_000_000_000_u64 });
    let headers = [("authorization", signed(&nameless, SECRET))];
    let headers = headers
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let strict = app.host();
    let refused = strict
        .send("", "GET", "/v1/instances", &headers, None)
        .await;
    refused.problem(401, "token_claim_invalid");
    let single = app.guarded_by(&AuthSettings {
        hs256_secret: Some(Secret::new(SECRET)),
        default_tenant: Some("default".into()),
        ..AuthSettings::default()
    });
    let listed = single
        .send("", "GET", "/v1/instances", &headers, None)
        .await;
    assert_eq!(listed.expect(200)["data"][0]["id"], started["id"]);
    // A claim still counts where there is one.
    let other = bearer(&app.host(), "author", "nowhere", &["user"]);
    let other = [(other.0, other.1.as_str())];
    let refused = single.send("", "GET", "/v1/instances", &other, None).await;
    refused.problem(403, "unknown_tenant");
}

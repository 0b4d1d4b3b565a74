//! Every route of the OpenAPI document, called with every permission but those to see all instances and to read the audit. Unseen
//! things must look like missing ones.

use serde_json::{Value, json};

use crate::api::access::World;
use crate::api::openapi::{Operation, operations};
use crate::api::{bearer, grant, sql};
use crate::support::app::{ADMIN, Answer, Host, TestApp};

/// Restricts the instances of this world to the people who started them.
const RESTRICTED: &str = "update instance set observers = '{}';
    update task set restricted = true;
    update definition_version set restricted = true;
    insert into participant (tenant_id, instance_id, kind, principal) select tenant_id, id, 'user', initiator from instance;
    insert into dead_letter (tenant_id, instance_id, seq, partition, pos, error, attempts, parked_at)
    select tenant_id, stream_id, seq, 0, pos, 'too large', 1, now() from audit_entry where stream_kind = 'instance';
    insert into notification (tenant_id, id, kind, recipient_kind, recipient, instance_id, event_id, created_at)
    select tenant_id, gen_random_uuid(), 'STATUS_CHANGED', 'user', 'spy', id, id, started_at from instance;
    insert into job (tenant_id, id, kind, instance_id, due_at, payload, last_error)
    select tenant_id, id, 'deadline', id, now() + interval '1 day', '{}', 'no' from instance";

/// The text without its timestamps.
fn timeless(body: &Value) -> String {
    let text = body.to_string();
    let words = text.split_inclusive(['"', ' ']);
    words
        .filter(|word| {
            let bare = word.trim_end_matches(['"', ' ']);
            bare.parse::<jiff::Timestamp>().is_err()
        })
        .collect()
}

/// How a route protects unseen instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeps {
    /// The route names an instance, or a part of one. It answers 404, as for a missing one.
    AsMissing,
    /// The route names no instance, and its response contains no unseen one.
    LeavesOut,
    /// The route needs the permission to read the audit, and then shows all.
    ByAudit,
    /// The route is for operators of the tenant, whatever instance it shows: a subscription and its deliveries.
    ByOperator,
    /// The route acts on all instances, which needs the permission to see all.
    NeedsAll,
    /// Another test in the parent of this file calls the route.
    Elsewhere,
}

/// Every operation of the document. The author of a new one must decide here what it may show.
fn keeps(operation: &str) -> Option<Keeps> {
    Some(match operation {
        "getInstance"
        | "getInstanceActions"
        | "cancelInstance"
        | "getInstanceDiagram"
        | "getInstanceEligibility"
        | "getInstanceHistory"
        | "migrateInstance"
        | "restartInstance"
        | "resumeInstance"
        | "signalInstance"
        | "suspendInstance"
        | "getTask"
        | "claimTask"
        | "decideTask"
        | "delegateTask"
        | "reassignTask"
        | "releaseTask"
        | "resetTask"
        | "resolveTask"
        | "resumeTask"
        | "suspendTask"
        | "findIds"
        | "getDeadLetter"
        | "discardDeadLetter"
        | "retryDeadLetter"
        | "getOperation"
        | "listOperationItems"
        | "stopOperation"
        | "markNotificationRead"
        | "commentOnInstance"
        | "listComments"
        | "listDataChanges"
        | "listSignals"
        | "deleteSession"
        | "getDraft"
        | "putDraft"
        | "deleteAbsence" => Keeps::AsMissing,
        "listInstances" | "searchInstances" | "startInstance" | "listTasks" | "bulkTasks"
        | "listEvents" | "listNotifications" | "listJobs" | "listDeadLetters"
        | "listOperations" | "getEntityHistory" | "cancelInstances" | "migrateInstances"
        | "getMe" | "listDefinitions" | "getDefinition" | "listVersions" | "publishVersion"
        | "getVersion" | "activateVersion" | "getVersionDiagram" | "reinstateVersion"
        | "resumeVersion" | "retireVersion" | "stopVersion" | "listCalendars" | "getCalendar"
        | "putCalendar" | "deleteCalendar" | "listGroups" | "getGroup" | "putGroup"
        | "putGroupMember" | "deleteGroupMember" | "listPeople" | "getPerson" | "putPerson"
        | "findNames" | "listAbsences" | "createAbsence" | "putManager" | "deleteManager"
        | "listRoles" | "getRole" | "putRole" | "getSeries" | "listHosts" | "listRefusals"
        | "getPreferences" | "putPreferences" | "listSessions" | "listSavedViews"
        | "putSavedView" | "deleteSavedView" => Keeps::LeavesOut,
        "listAuditEntries" | "listCheckpoints" | "listSelfApprovals" | "getEntityCustody"
        | "getInstanceAudit" | "getInstanceCustody" | "verifyInstance" => Keeps::ByAudit,
        "listSubscriptions"
        | "createSubscription"
        | "deleteSubscription"
        | "getSubscription"
        | "listDeliveries"
        | "retryDeliveries"
        | "listDeliveryAttempts"
        | "discardDelivery"
        | "retryDelivery"
        | "testSubscription" => Keeps::ByOperator,
        "replayEvents" => Keeps::NeedsAll,
        "streamEvents" | "getSignal" | "sendSignal" | "createEmbedToken" => Keeps::Elsewhere,
        _ => return None,
    })
}

/// Further forms of lists. Each must look as if there were no instance.
const FORMS: &[&str] = &[
    "/v1/instances?count=true&include=people,attributes,ahead",
    "/v1/instances?count=true&q=doc",
    "/v1/instances?count=true&fields=id,title",
    "/v1/instances?count=true&sort=startedAt",
    "/v1/instances?count=true&definitionKey=document-approval",
    "/v1/instances?count=true&status=RUNNING",
    "/v1/instances?count=true&state=Review",
    "/v1/instances?count=true&entityType=document&entityId=doc-1",
    "/v1/instances?count=true&initiator=author",
    "/v1/instances?count=true&everOwner=reviewer",
    "/v1/instances?count=true&updatedBefore=2100-01-01T00:00:00Z",
    "/v1/instances?count=true&status=RUNNING&updatedBefore=2100-01-01T00:00:00Z",
    "/v1/instances?count=true&dueBefore=2100-01-01T00:00:00Z",
    "/v1/tasks?count=true&view=all&include=people,actions,outcomes",
    "/v1/tasks?count=true&view=all&q=doc",
    "/v1/tasks?count=true&view=all&fields=id,instanceTitle",
    "/v1/tasks?count=true&view=all&sort=dueAt",
    "/v1/tasks?count=true&view=all&state=Review",
    "/v1/tasks?count=true&view=all&entityType=document&entityId=doc-1",
    "/v1/tasks?count=true&view=all&dueBefore=2100-01-01T00:00:00Z",
    "/v1/tasks?count=true&view=all&owner=reviewer",
    "/v1/tasks?count=true&view=all&owner=reviewer&status=COMPLETED",
    "/v1/tasks?count=true&view=mine",
    "/v1/tasks?count=true&view=available",
    "/v1/tasks?count=true&view=groups",
    "/v1/events?type=task.*",
    "/v1/events?actor=author",
    "/v1/events?include=deliveries",
    "/v1/events?entityType=document&entityId=doc-1",
    "/v1/jobs?state=due",
    "/v1/jobs?state=failing",
    "/v1/dead-letters",
    "/v1/operations",
    "/v1/notifications",
    "/v1/entities/document/doc-1/history",
];

/// The calls of one caller without access.
struct Walk {
    world: World,
    host: Host,
    token: String,
}

impl Walk {
    async fn new() -> Walk {
        let world = World::new().await;
        for statement in RESTRICTED.split(';') {
            sql(&world.app, Box::leak(statement.to_owned().into_boxed_str())).await;
        }
        let but = ["instance:read-all", "audit:read"];
        let all = ADMIN.iter().copied();
        let all: Vec<_> = all.filter(|permission| !but.contains(permission)).collect();
        grant(&world.app, "spy", &all).await;
        let (_, token) = bearer(&world.app.host(), "spy", "default", &["spy"]);
        // The first host has cached the instance in its earlier state.
        let host = world.app.beside().await;
        Walk { world, host, token }
    }

    async fn call(&self, operation: &Operation, path: &str) -> Answer {
        let (method, body) = (operation.method.to_uppercase(), self.world.body(operation));
        self.send(&method, path, body).await
    }

    async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let headers = [("authorization", self.token.as_str())];
        self.host.send("", method, path, &headers, body).await
    }

    /// A route that names a part of the instance answers as for a missing one.
    async fn as_missing(&self, operation: &Operation, path: &str, answer: Answer) {
        let (world, called) = (&self.world, &operation.path);
        let names_an_instance = path.contains(&world.instance) || path.contains(&world.task);
        assert!(names_an_instance, "{called}");
        let (nowhere, replaced) = world.missing(operation);
        let nothing = self.call(operation, &nowhere).await;
        assert_eq!(answer.status, 404, "{called}: {}", answer.text);
        let (mut found, mut expected) = (answer.body.clone(), nothing.body);
        for text in [&mut found, &mut expected] {
            text.as_object_mut().expect("a problem").remove("requestId");
            text.as_object_mut().expect("a problem").remove("instance");
        }
        let (mut found, mut expected) = (timeless(&found), timeless(&expected));
        for (there, missing) in &replaced {
            found = found.replace(there, "ID");
            expected = expected.replace(missing, "ID");
        }
        assert_eq!((nothing.status, &found), (404, &expected), "{called}");
    }

    /// A route that names no instance does not show the unseen one.
    fn leaves_out(&self, name: &str, answer: &Answer) {
        assert!(answer.status < 500, "{name}: {}", answer.text);
        if name == "getDefinition" {
            assert_eq!(answer.body["running"], 0, "{}", answer.text);
        }
        // A bulk command repeats the given id, and answers as for a missing one.
        if name == "bulkTasks" {
            let code = &answer.body["results"][0]["code"];
            assert_eq!(code, "not_found", "{}", answer.text);
            return;
        }
        for secret in [&self.world.instance, &self.world.task] {
            let is_named = answer.text.contains(secret);
            assert!(!is_named, "{name} names {secret}: {}", answer.text);
        }
    }
}

#[tokio::test]
async fn no_route_reveals_an_unseen_instance() {
    let walk = Walk::new().await;
    for operation in operations(&walk.world.app).await {
        let name = operation.described["operationId"].as_str().expect("an id");
        let keeps =
            keeps(name).unwrap_or_else(|| panic!("{name}: say in `keeps` who sees what it shows"));
        if keeps == Keeps::Elsewhere {
            continue;
        }
        let path = walk.world.path(&operation);
        let answer = walk.call(&operation, &path).await;
        match keeps {
            Keeps::AsMissing => walk.as_missing(&operation, &path, answer).await,
            Keeps::LeavesOut => walk.leaves_out(name, &answer),
            Keeps::ByAudit | Keeps::NeedsAll => {
                answer.problem(403, "permission_missing");
            }
            Keeps::ByOperator => assert!(answer.status < 500, "{name}: {}", answer.text),
            Keeps::Elsewhere => unreachable!("the operation was left out"),
        }
    }
    for form in FORMS {
        // The instances that these calls start are about another entity, and everybody sees them. Operations belong to their
        // callers.
        let page = walk.send("GET", form, None).await.expect(200);
        let all = page["data"].as_array().expect("data");
        let own = |one: &Value| one.to_string().contains("doc-2") || one["requestedBy"] == "spy";
        let others = all.iter().filter(|one| !own(one));
        assert_eq!(others.count(), 0, "{form}: {page}");
        assert!(!page.to_string().contains("doc-1"), "{form}: {page}");
        if let Some(count) = page["page"]["count"].as_u64() {
            assert_eq!(count, all.len() as u64, "{form}: {page}");
        }
    }
    let instance = &walk.world.instance;
    let replay = json!({ "after": "earliest", "instanceId": instance, "reason": "curious" });
    let replayed = walk.send("POST", "/v1/events/replay", Some(replay));
    replayed.await.problem(404, "not_found");
    // With one more permission the same caller sees all of it.
    grant(&walk.world.app, "spy", &["instance:read-all"]).await;
    let path = format!("/v1/instances/{instance}");
    walk.send("GET", &path, None).await.expect(200);
}

/// In a table about instances, a reader finds only rows about seen ones. A new table needs the policy, or a reason in this list.
#[tokio::test]
async fn every_table_about_instances_shows_only_rows_about_seen_ones() {
    let app = TestApp::empty().await;
    let open: Vec<String> = sqlx::query_scalar(
        "select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid
         where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not a.attisdropped
           and a.attname in ('instance_id', 'stream_id') and has_any_column_privilege('wrkflw_reader', c.oid, 'select')
           and not exists (
               select from pg_policy p where p.polrelid = c.oid and p.polname = 'visible' and not p.polpermissive
           )
         order by c.relname",
    )
    .fetch_all(app.database.admin_pool())
    .await
    .expect("the catalogue");
    // The policies look up the participants. Streams and leaves contain hashes, which only the audit shows.
    assert_eq!(open, ["audit_leaf", "audit_stream", "participant"]);
}

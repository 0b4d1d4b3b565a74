//! Requests with each filter and part of lists, beyond what the operations without parameters cover.

use crate::api::access::World;
use crate::api::sql;
use crate::support::app::Host;

/// Requests as a person who may not see every instance, for statements that differ then.
pub(super) async fn restricted(world: &World, host: &Host) {
    let takes_part = "insert into participant (tenant_id, instance_id, kind, principal)
        select tenant_id, id, 'user', 'author' from instance";
    let restrict = "update definition_version set restricted = true";
    for statement in [takes_part, restrict] {
        sql(&world.app, statement).await;
    }
    for path in [
        "/v1/definitions/document-approval",
        "/v1/entities/document/doc-1/history",
    ] {
        host.send("author", "GET", path, &[], None)
            .await
            .expect(200);
    }
}

/// Paths with their queries.
pub(super) const FURTHER: &[&str] = &[
    "/v1/tasks?view=all",
    "/v1/tasks?view=available",
    "/v1/tasks?view=mine",
    "/v1/tasks?view=all&state=Submitted",
    "/v1/tasks?view=all&include=actions,people",
    "/v1/tasks?view=groups&q=plan",
    "/v1/tasks?view=all&entityType=document&entityId=doc-1",
    "/v1/tasks?view=all&sort=dueAt",
    "/v1/tasks?view=mine&sort=dueAt",
    "/v1/tasks?view=all&dueBefore=2100-01-01T00:00:00Z",
    "/v1/tasks?view=all&status=COMPLETED&owner=reviewer",
    "/v1/instances?include=people&q=plan",
    "/v1/instances?status=RUNNING&updatedBefore=2100-01-01T00:00:00Z&dueBefore=2100-01-01T00:00:00Z",
    "/v1/instances?everOwner=reviewer&sort=startedAt",
    "/v1/instances?definitionKey=document-approval",
    "/v1/instances?status=RUNNING&initiator=author",
    "/v1/instances?attribute.title=A%20plan&include=attributes",
    "/v1/definitions/document-approval/versions",
    "/v1/definitions?q=document&versions=active",
    "/v1/jobs?state=due",
    "/v1/refusals?reason=own_request",
    "/v1/people?q=auth",
    "/v1/people?group=reviewers",
    "/v1/audit?from=2026-01-01T00:00:00Z",
    "/v1/events?limit=100&include=deliveries",
    "/v1/entities/document/doc-7/custody",
    "/v1/entities/document/doc-1/history",
    "/v1/entities/document/doc-1/custody",
];

/// Statements that find nothing in this world: whether more than the twenty thousand entries of one read follow, attempts of webhooks,
/// changed titles, calls of services, and entries without leaves. The size of a table covers all tenants.
pub(super) const FAR: &[&str] = &[
    "select at as \"at: Time\", status, duration_ms, error from webhook_attempt",
    "select e.place as \"place!\", m.type as \"kind!\", m.payload as \"payload!\"",
    "select id, attempts, last_error, greatest(due_at, lease_until) as \"next_at!: Time\" from job",
    "select reltuples >= 10000 as",
    "with taken as (",
    "select seq from audit_entry\n            where tenant_id = $1 and stream_kind = 'instance' and stream_id = $2 and seq = $3",
];

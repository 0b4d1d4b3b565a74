//! Lists with each of their filters and parts, and what no operation without parameters asks for.

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
    "/v1/jobs?state=due",
    "/v1/people?q=auth",
    "/v1/audit?from=2026-01-01T00:00:00Z",
    "/v1/entities/document/doc-7/custody",
    "/v1/entities/document/doc-1/history",
    "/v1/entities/document/doc-1/custody",
];

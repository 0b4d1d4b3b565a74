//! The requests of the examples, in their order.

use super::Recorder;
use crate::api::{sessions, sql};
use crate::support::guests;
use serde_json::{Value, json};

/// The caller, the request, its body, and the values for later steps: `name=/pointer`, which later steps use as `$name`.
type Step = (&'static str, &'static str, &'static str, &'static str);

const DIRECTORY: &[Step] = &[
    ("author", "GET /v1/me", "", ""),
    ("admin", "PUT /v1/people/mara", r#"{"name": "Mara"}"#, ""),
    (
        "admin",
        "PUT /v1/people/author/manager",
        r#"{"manager": "mara"}"#,
        "",
    ),
    ("admin", "GET /v1/people/author", "", ""),
    ("admin", "GET /v1/people?limit=2", "", ""),
    (
        "author",
        "POST /v1/names",
        r#"{"people": ["mara", "author"], "groups": ["reviewers"]}"#,
        "",
    ),
    ("admin", "DELETE /v1/people/author/manager", "", ""),
    (
        "admin",
        "PUT /v1/groups/finance",
        r#"{"name": "Finance"}"#,
        "",
    ),
    ("admin", "PUT /v1/groups/finance/members/mara", "", ""),
    ("admin", "GET /v1/groups/finance", "", ""),
    ("admin", "GET /v1/groups", "", ""),
    ("admin", "DELETE /v1/groups/finance/members/mara", "", ""),
    (
        "admin",
        "PUT /v1/roles/auditor",
        r#"{"permissions": ["audit:read", "instance:read"]}"#,
        "",
    ),
    ("admin", "GET /v1/roles/auditor", "", ""),
    ("admin", "GET /v1/roles", "", ""),
    (
        "reviewer",
        "POST /v1/people/reviewer/absences",
        r#"{"substitute": "reviewer2", "from": "2100-01-01T00:00:00Z", "until": "2100-01-15T00:00:00Z"}"#,
        "absence=/absence/id",
    ),
    ("reviewer", "GET /v1/people/reviewer/absences", "", ""),
    (
        "reviewer",
        "DELETE /v1/people/reviewer/absences/$absence",
        "",
        "",
    ),
    (
        "admin",
        "PUT /v1/calendars/office",
        r#"{"timeZone": "Europe/Berlin", "hours": {"monday": [{"from": "09:00", "until": "17:00"}]}, "holidays": ["2026-12-25"]}"#,
        "",
    ),
    ("admin", "GET /v1/calendars/office", "", ""),
    ("admin", "GET /v1/calendars", "", ""),
];

/// Version 2 of the definition is published before these steps.
const VERSIONS: &[Step] = &[
    ("admin", "GET /v1/definitions?limit=1", "", ""),
    ("admin", "GET /v1/definitions/document-approval", "", ""),
    (
        "admin",
        "GET /v1/definitions/document-approval/versions?limit=1",
        "",
        "",
    ),
    (
        "admin",
        "GET /v1/definitions/document-approval/versions/1",
        "",
        "",
    ),
    (
        "admin",
        "POST /v1/definitions/document-approval/versions/1/activate",
        r#"{"force": false}"#,
        "",
    ),
    (
        "admin",
        "POST /v1/definitions/document-approval/versions/2/retire",
        "",
        "",
    ),
    (
        "admin",
        "POST /v1/definitions/document-approval/versions/2/reinstate",
        "",
        "",
    ),
    (
        "admin",
        "POST /v1/definitions/document-approval/versions/2/stop",
        r#"{"reason": "it goes in circles"}"#,
        "",
    ),
    (
        "admin",
        "POST /v1/definitions/document-approval/versions/2/resume",
        "",
        "",
    ),
];

const APPROVAL: &[Step] = &[
    (
        "author",
        "POST /v1/instances",
        r#"{"definitionKey": "document-approval", "entityType": "document", "entityId": "doc-1", "data": {"title": "A plan"}}"#,
        "instance=/instance/id task=/instance/states/0/tasks/0/id",
    ),
    ("reviewer", "GET /v1/tasks?view=available&limit=1", "", ""),
    ("reviewer", "GET /v1/tasks/$task", "", ""),
    ("reviewer", "POST /v1/tasks/$task/claim", "", ""),
    (
        "reviewer",
        "PUT /v1/tasks/$task/draft",
        r#"{"comment": "The sum is"}"#,
        "",
    ),
    ("reviewer", "GET /v1/tasks/$task/draft", "", ""),
    (
        "admin",
        "POST /v1/embed-tokens",
        r#"{"subject": "reviewer", "roles": ["user"], "instanceId": "$instance", "origin": "https://documents.example", "scope": "decide"}"#,
        "",
    ),
    ("reviewer", "POST /v1/tasks/$task/release", "", ""),
    ("reviewer", "POST /v1/tasks/$task/claim", "", ""),
    (
        "reviewer",
        "POST /v1/tasks/$task/delegate",
        r#"{"to": "mara", "reason": "your field"}"#,
        "",
    ),
    ("mara", "POST /v1/tasks/$task/resolve", "", ""),
    (
        "reviewer",
        "POST /v1/tasks/$task/suspend",
        r#"{"reason": "a question is open"}"#,
        "",
    ),
    ("reviewer", "POST /v1/tasks/$task/resume", "", ""),
    (
        "admin",
        "POST /v1/tasks/$task/reset",
        r#"{"reason": "on holiday"}"#,
        "",
    ),
    (
        "admin",
        "POST /v1/tasks/$task/reassign",
        r#"{"to": "reviewer2", "reason": "knows it best"}"#,
        "",
    ),
    ("reviewer2", "GET /v1/instances/$instance/actions", "", ""),
    ("admin", "GET /v1/instances/$instance/eligibility", "", ""),
    (
        "reviewer2",
        "POST /v1/instances/$instance/comment",
        r#"{"comment": "The sum on page 3 is new.", "mentions": ["mara"]}"#,
        "",
    ),
    (
        "reviewer2",
        "POST /v1/tasks/$task/decide",
        r#"{"outcome": "APPROVE", "comment": "Well done."}"#,
        "last=/instance/states/0/tasks/0/id",
    ),
    (
        "approver",
        "POST /v1/tasks/bulk",
        r#"{"action": "claim", "taskIds": ["$last"]}"#,
        "",
    ),
    (
        "approver",
        "POST /v1/tasks/$last/decide",
        r#"{"outcome": "APPROVE"}"#,
        "",
    ),
];

const READS: &[Step] = &[
    ("admin", "GET /v1/instances?limit=1", "", ""),
    (
        "author",
        "POST /v1/instances/search",
        r#"{"definitionKey": "document-approval", "status": "COMPLETED", "limit": 1}"#,
        "",
    ),
    ("admin", "GET /v1/instances/$instance", "", ""),
    ("admin", "GET /v1/instances/$instance/history", "", ""),
    ("admin", "GET /v1/instances/$instance/comments", "", ""),
    ("admin", "GET /v1/instances/$instance/audit?limit=1", "", ""),
    (
        "author",
        "GET /v1/instances/$instance/changes?limit=1",
        "",
        "",
    ),
    (
        "admin",
        "GET /v1/instances/$instance/custody?limit=1",
        "",
        "",
    ),
    ("admin", "GET /v1/instances/$instance/verification", "", ""),
    ("admin", "GET /v1/entities/document/doc-1/history", "", ""),
    (
        "admin",
        "GET /v1/entities/document/doc-1/custody?limit=1",
        "",
        "",
    ),
    ("admin", "GET /v1/ids/$instance", "", ""),
    ("admin", "GET /v1/events?limit=1&after=earliest", "", ""),
    ("admin", "GET /v1/audit?limit=1", "", ""),
    ("admin", "GET /v1/checkpoints?limit=1", "", ""),
    ("admin", "GET /v1/jobs", "", ""),
    ("admin", "GET /v1/refusals?limit=1", "", ""),
    (
        "admin",
        "GET /v1/series?name=refusals&from=2030-01-31T08:00:00Z&until=2030-01-31T09:00:00Z&stepSeconds=900",
        "",
        "",
    ),
    ("admin", "GET /v1/hosts", "", ""),
    ("admin", "GET /v1/compliance/self-approvals", "", ""),
    ("author", "GET /v1/notifications?limit=1", "", ""),
    (
        "author",
        "PUT /v1/me/preferences",
        r#"{"mutedNotifications": ["STATUS_CHANGED"]}"#,
        "",
    ),
    ("author", "GET /v1/me/preferences", "", ""),
    ("admin", "GET /v1/me/sessions", "", ""),
    (
        "author",
        "PUT /v1/me/views/$instance",
        r#"{"name": "Urgent", "query": "view=available&minPriority=50", "default": true}"#,
        "",
    ),
    ("author", "GET /v1/me/views", "", ""),
    ("author", "DELETE /v1/me/views/$instance", "", ""),
];

const OPERATIONS: &[Step] = &[
    (
        "author",
        "POST /v1/instances",
        r#"{"definitionKey": "document-approval", "entityType": "document", "entityId": "doc-2", "data": {"title": "A plan"}}"#,
        "other=/instance/id",
    ),
    (
        "admin",
        "POST /v1/instances/$other/suspend",
        r#"{"reason": "a question is open"}"#,
        "",
    ),
    ("admin", "POST /v1/instances/$other/resume", "", ""),
    (
        "admin",
        "POST /v1/instances/$other/migrate",
        r#"{"version": 2}"#,
        "",
    ),
    (
        "admin",
        "POST /v1/instances/$other/cancel",
        r#"{"reason": "withdrawn"}"#,
        "",
    ),
    (
        "author",
        "POST /v1/instances/$other/restart",
        r#"{"data": {"title": "A better plan"}}"#,
        "",
    ),
    (
        "admin",
        "POST /v1/migrations",
        r#"{"definitionKey": "document-approval", "fromVersion": 1, "version": 2}"#,
        "operation=/id",
    ),
    ("admin", "GET /v1/operations/$operation", "", ""),
    ("admin", "GET /v1/operations", "", ""),
    ("admin", "GET /v1/operations/$operation/items", "", ""),
    ("admin", "POST /v1/operations/$operation/stop", "", ""),
    (
        "admin",
        "POST /v1/cancellations",
        r#"{"definitionKey": "document-approval", "version": 1, "reason": "no longer needed"}"#,
        "",
    ),
];

/// An instance of `subflows` waits for the trigger.
const SIGNALS: &[Step] = &[
    (
        "author",
        "POST /v1/instances",
        r#"{"definitionKey": "subflows", "entityType": "errand", "entityId": "e-1",
            "data": {"wait": {"subscriptions": [{"trigger": "PAID", "correlation": "order 7"}]}}}"#,
        "errand=/instance/id",
    ),
    (
        "author",
        "POST /v1/signals/PAID",
        r#"{"correlation": "order 8", "id": "payment-1", "input": {"amount": 100}}"#,
        "signal=/signal/signalId",
    ),
    ("author", "GET /v1/signals/$signal", "", ""),
    (
        "author",
        "POST /v1/instances/$errand/signals/PAID",
        r#"{"id": "payment-2", "input": {"amount": 100}}"#,
        "",
    ),
    ("author", "GET /v1/instances/$errand/signals", "", ""),
];

const SUBSCRIPTIONS: &[Step] = &[
    (
        "admin",
        "POST /v1/subscriptions",
        r#"{"url": "https://example.org/hook", "types": ["task.*"]}"#,
        "subscription=/id",
    ),
    ("admin", "GET /v1/subscriptions", "", ""),
    ("admin", "GET /v1/subscriptions/$subscription", "", ""),
    (
        "admin",
        "POST /v1/subscriptions/$subscription/test",
        "",
        "delivery=/id",
    ),
    (
        "admin",
        "GET /v1/subscriptions/$subscription/deliveries",
        "",
        "",
    ),
    (
        "admin",
        "GET /v1/subscriptions/$subscription/deliveries/$delivery/attempts",
        "",
        "",
    ),
    (
        "admin",
        "POST /v1/subscriptions/$subscription/deliveries/retry",
        "",
        "",
    ),
];

/// Replays events that were sent.
const REPLAY: Step = (
    "admin",
    "POST /v1/events/replay",
    r#"{"after": "earliest", "instanceId": "$instance", "reason": "a consumer was repaired"}"#,
    "",
);

/// An event of each instance is parked before these steps.
const DEAD_LETTERS: &[Step] = &[
    ("admin", "GET /v1/dead-letters?limit=1", "", ""),
    ("admin", "GET /v1/dead-letters/$instance", "", ""),
    (
        "admin",
        "POST /v1/dead-letters/$instance/discard",
        r#"{"entry": 1, "reason": "no consumer reads it"}"#,
        "",
    ),
    (
        "admin",
        "POST /v1/dead-letters/$other/retry",
        r#"{"reason": "the limit was raised"}"#,
        "",
    ),
];
const PARK: &str = "insert into dead_letter (tenant_id, instance_id, seq, partition, pos, error, attempts, parked_at)
    select tenant_id, id, 1, 0, 1, 'too large', 1, now() from instance where entity_id in ('doc-1', 'doc-2')";

async fn published(recorder: &mut Recorder, key: &str, component: &[u8], config: &Value) {
    let published = recorder.app.publish(key, component, config).await;
    let path = format!("/v1/definitions/{key}/versions");
    recorder.record("POST", &path, &Value::Null, &published);
}

/// Sends all requests.
pub(super) async fn take(recorder: &mut Recorder) {
    let config = json!({ "rejectionNeedsComment": false });
    let sample = wrkflw::sample::DOCUMENT_APPROVAL;
    published(recorder, "document-approval", sample, &config).await;
    published(recorder, "subflows", guests::subflows(), &json!({})).await;
    let active = "/v1/definitions/subflows/versions/1/activate";
    let activated = recorder.app.post("admin", active, json!({})).await;
    activated.expect(200);
    sessions::begun_and_found(&recorder.app, &recorder.app.engine).await;
    for steps in [
        DIRECTORY,
        VERSIONS,
        APPROVAL,
        READS,
        OPERATIONS,
        SIGNALS,
        SUBSCRIPTIONS,
    ] {
        // Waits until the feed has all events.
        recorder.app.events().await;
        for step in steps {
            recorder.ask(*step).await;
        }
    }
    sql(&recorder.app, "delete from outbox_event").await;
    recorder.ask(REPLAY).await;
    sql(&recorder.app, PARK).await;
    for step in DEAD_LETTERS {
        recorder.ask(*step).await;
    }
}

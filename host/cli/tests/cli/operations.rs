//! Every operation of the API has a command, or a reason here why it has none.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::usage::leaves;

/// The operations by id, each with a command that uses it, or the reason why there is none.
const OPERATIONS: &[(&str, Result<&str, &str>)] = &[
    ("activateVersion", Ok("definition activate")),
    ("bulkTasks", Ok("task bulk")),
    ("cancelInstance", Ok("instance cancel")),
    ("cancelInstances", Ok("operation cancel")),
    ("claimTask", Ok("task claim")),
    ("commentOnInstance", Ok("instance comment")),
    ("createAbsence", Ok("absence add")),
    ("createEmbedToken", Ok("embed-token")),
    ("createSubscription", Ok("subscription create")),
    ("decideTask", Ok("task decide")),
    ("delegateTask", Ok("task delegate")),
    ("deleteAbsence", Ok("absence end")),
    ("deleteCalendar", Ok("calendar delete")),
    ("deleteGroupMember", Ok("group remove")),
    ("deleteManager", Ok("person manager")),
    ("deleteSavedView", Ok("saved-view delete")),
    ("deleteSession", Ok("session end")),
    ("deleteSubscription", Ok("subscription delete")),
    ("discardDeadLetter", Ok("dead-letter discard")),
    ("discardDelivery", Ok("subscription discard")),
    ("findIds", Ok("instance show")),
    ("findNames", Ok("person names")),
    ("getCalendar", Ok("calendar show")),
    ("getDeadLetter", Ok("dead-letter retry")),
    ("getDefinition", Ok("definition show")),
    ("getDraft", Ok("task draft")),
    ("getEntityCustody", Ok("entity custody")),
    ("getEntityHistory", Ok("entity history")),
    ("getGroup", Ok("group show")),
    ("getInstance", Ok("instance show")),
    ("getInstanceActions", Ok("instance actions")),
    ("getInstanceAudit", Ok("instance audit")),
    ("getInstanceCustody", Ok("instance custody")),
    ("getInstanceDiagram", Ok("instance diagram")),
    ("getInstanceEligibility", Ok("instance eligibility")),
    ("getInstanceHistory", Ok("instance history")),
    (
        "getLiveness",
        Err("a probe of a supervisor, which has no token"),
    ),
    ("getMe", Ok("me")),
    ("getMetrics", Err("Prometheus reads it")),
    ("getOperation", Ok("operation show")),
    ("getPerson", Ok("person show")),
    ("getPreferences", Ok("notification muted")),
    (
        "getReadiness",
        Err("a probe of a load balancer, which has no token"),
    ),
    ("getRole", Ok("role show")),
    ("getSeries", Ok("series list")),
    ("getSignal", Ok("signal show")),
    ("getSubscription", Ok("subscription show")),
    ("getTask", Ok("task show")),
    ("getVersion", Ok("definition show")),
    ("getVersionDiagram", Ok("definition diagram")),
    ("listAbsences", Ok("absence list")),
    ("listAuditEntries", Ok("audit list")),
    ("listCalendars", Ok("calendar list")),
    ("listCheckpoints", Ok("audit checkpoints")),
    ("listComments", Ok("instance comments")),
    ("listDataChanges", Ok("instance changes")),
    ("listDeadLetters", Ok("dead-letter list")),
    ("listDefinitions", Ok("definition list")),
    ("listDeliveries", Ok("subscription deliveries")),
    ("listDeliveryAttempts", Ok("subscription attempts")),
    ("listEvents", Ok("events tail")),
    ("listGroups", Ok("group list")),
    ("listHosts", Ok("host list")),
    ("listInstances", Ok("instance list")),
    ("listJobs", Ok("job list")),
    ("listNotifications", Ok("notification list")),
    ("listOperationItems", Ok("operation items")),
    ("listOperations", Ok("operation list")),
    ("listPeople", Ok("person list")),
    ("listRefusals", Ok("refusal list")),
    ("listRoles", Ok("role list")),
    ("listSavedViews", Ok("saved-view list")),
    ("listSelfApprovals", Ok("audit self-approvals")),
    ("listSessions", Ok("session list")),
    ("listSignals", Ok("signal list")),
    ("listSubscriptions", Ok("subscription list")),
    ("listTasks", Ok("task list")),
    ("listVersions", Ok("definition list")),
    ("markNotificationRead", Ok("notification read")),
    ("migrateInstance", Ok("instance migrate")),
    ("migrateInstances", Ok("operation migrate")),
    ("publishVersion", Ok("definition publish")),
    ("putCalendar", Ok("calendar set")),
    ("putDraft", Ok("task draft")),
    ("putGroup", Ok("group set")),
    ("putGroupMember", Ok("group add")),
    ("putManager", Ok("person manager")),
    ("putPerson", Ok("person set")),
    ("putPreferences", Ok("notification mute")),
    ("putRole", Ok("role set")),
    ("putSavedView", Ok("saved-view save")),
    ("reassignTask", Ok("task reassign")),
    ("reinstateVersion", Ok("definition reinstate")),
    ("releaseTask", Ok("task release")),
    ("replayEvents", Ok("events replay")),
    ("resetTask", Ok("task reset")),
    ("resolveTask", Ok("task resolve")),
    ("restartInstance", Ok("instance restart")),
    ("resumeInstance", Ok("instance resume")),
    ("resumeTask", Ok("task resume")),
    ("resumeVersion", Ok("definition resume")),
    ("retireVersion", Ok("definition retire")),
    ("retryDeadLetter", Ok("dead-letter retry")),
    ("retryDeliveries", Ok("subscription retry")),
    ("retryDelivery", Ok("subscription retry")),
    (
        "searchInstances",
        Err("`instance list` finds the same by the query"),
    ),
    ("sendSignal", Ok("signal send")),
    ("signalInstance", Ok("instance signal")),
    ("startInstance", Ok("instance start")),
    ("stopOperation", Ok("operation stop")),
    ("stopVersion", Ok("definition stop")),
    ("streamEvents", Ok("events tail")),
    ("suspendInstance", Ok("instance suspend")),
    ("suspendTask", Ok("task suspend")),
    ("testSubscription", Ok("subscription test")),
    ("verifyInstance", Ok("instance verify")),
];
/// The OpenAPI document, which another test compares with the routes.
const DOCUMENT: &str = include_str!("../../../../tests/api/openapi.json");

#[test]
fn every_operation_of_the_api_has_a_command_or_a_reason() {
    let document: Value = serde_json::from_str(DOCUMENT).expect("JSON");
    let paths = document["paths"].as_object().expect("paths").values();
    let operations = paths.flat_map(|path| path.as_object().expect("operations").values());
    let operations: BTreeSet<&str> = operations
        .map(|operation| operation["operationId"].as_str().expect("an id"))
        .collect();
    let known: BTreeSet<&str> = OPERATIONS.iter().map(|(id, _)| *id).collect();
    assert_eq!(known.len(), OPERATIONS.len(), "one is there twice");
    let without: Vec<_> = operations.difference(&known).collect();
    assert!(without.is_empty(), "no command uses {without:?}");
    let gone: Vec<_> = known.difference(&operations).collect();
    assert!(gone.is_empty(), "the API has no {gone:?}");
    let commands: BTreeSet<String> = leaves(&wrkflw::cli::command())
        .iter()
        .map(|path| path[1..].join(" "))
        .collect();
    for (id, reached) in OPERATIONS {
        if let Ok(command) = reached {
            // Some commands have three words, such as `task bulk claim`.
            let begins = format!("{command} ");
            let is_one = |one: &String| one == command || one.starts_with(&begins);
            assert!(commands.iter().any(is_one), "{id}: {command}");
        }
    }
}

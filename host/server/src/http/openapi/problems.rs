//! The problems that each operation may answer with.
//!
//! [`codes`] lists them, by the parts that the operation takes and by its id. The tests compare every problem that they get with this list.

use std::collections::BTreeSet;

use serde_json::Value;

/// Of every operation below `/v1/`: the caller is not known, or the host cannot serve now.
const OF_EVERY: &[&str] = &[
    "malformed_request",
    "token_missing",
    "token_malformed",
    "token_expired",
    "token_not_yet_valid",
    "token_untrusted",
    "token_claim_invalid",
    "token_keys_unavailable",
    "unknown_tenant",
    "headers_too_large",
    "internal",
    "overloaded",
    "unavailable",
];
/// Of operations that need a permission: all except those on the caller's own settings and data.
const OF_PERMITTED: &[&str] = &["permission_missing"];
/// Of operations with a body.
const OF_BODIES: &[&str] = &[
    "malformed_json",
    "request_timeout",
    "too_large",
    "unsupported_media_type",
    "unsupported_encoding",
    "invalid_request",
];
/// Of operations that call flow logic.
const OF_LOGIC: &[&str] = &[
    "logic_budget_exceeded",
    "logic_fault",
    "logic_output_too_large",
];
/// Of commands on an instance, besides those of flow logic.
const OF_COMMANDS: &[&str] = &[
    "forbidden",
    "instance_ended",
    "version_stopped",
    "limit_reached",
    "busy",
];
/// Of commands that fire a transition.
const OF_TRANSITIONS: &[&str] = &["refused_now", "invalid_input", "instance_suspended"];
/// Of commands that start an instance.
const OF_STARTS: &[&str] = &["already_running", "no_active_version"];
/// Of commands on a task.
const OF_TASKS: &[&str] = &["task_taken", "task_suspended", "instance_suspended"];
/// Of signals.
const OF_SIGNALS: &[&str] = &["signal_id_reused"];
/// Of commands that name a version.
const OF_VERSIONS: &[&str] = &["version_retired", "version_stopped"];
/// Of commands on many instances.
const OF_MANY: &[&str] = &["not_found", "too_many_operations", "invalid_input"];

/// The codes of the problems of an operation.
pub(super) fn codes(path: &str, method: &str, operation: &Value) -> BTreeSet<&'static str> {
    if !path.starts_with("/v1/") {
        return BTreeSet::from(["headers_too_large"]);
    }
    let parameters = operation["parameters"].as_array();
    let any = |is: &dyn Fn(&Value) -> bool| parameters.is_some_and(|all| all.iter().any(is));
    let has = |name: &str| any(&|one| one["name"] == name);
    let mut parts = vec![OF_EVERY];
    let mut add_if = |applies: bool, codes| {
        if applies {
            parts.push(codes);
        }
    };
    let is_own = path == "/v1/me" || path.starts_with("/v1/me/");
    add_if(!is_own, OF_PERMITTED);
    add_if(path.contains('{'), &["not_found"]);
    add_if(has("after"), &["invalid_cursor"]);
    add_if(method == "post" || method == "put", OF_BODIES);
    add_if(has("Idempotency-Key"), &["idempotency_key_reused"]);
    // An id in a path must be in normal form.
    let is_text = |one: &Value| one["in"] == "path" && one["schema"]["pattern"].is_string();
    add_if(any(&is_text), &["invalid_request"]);
    // A command on one instance.
    add_if(has("If-Match"), &["stale_revision"]);
    let id = operation["operationId"].as_str().unwrap_or_default();
    // A comment asks no logic, and is taken in every state of the instance.
    let is_comment = id == "commentOnInstance";
    add_if(has("If-Match") && !is_comment, OF_COMMANDS);
    add_if(has("If-Match") && !is_comment, OF_LOGIC);
    parts.extend(of_operation(id));
    parts.into_iter().flatten().copied().collect()
}

/// The codes that do not follow from the parts that the operation takes.
fn of_operation(id: &str) -> &'static [&'static [&'static str]] {
    match id {
        "startInstance" => &[
            OF_COMMANDS,
            OF_LOGIC,
            OF_TRANSITIONS,
            OF_STARTS,
            &["not_found"],
        ],
        "restartInstance" => &[OF_TRANSITIONS, OF_STARTS, &["instance_running"]],
        "migrateInstance" => &[
            OF_VERSIONS,
            &[
                "invalid_input",
                "nobody_left",
                "instance_suspended",
                "already_running",
            ],
        ],
        "commentOnInstance" => &[&["invalid_input", "limit_reached", "busy"]],
        "suspendInstance" => &[&["instance_suspended"]],
        "resumeInstance" => &[&["not_suspended"]],
        "sendSignal" => &[OF_COMMANDS, OF_LOGIC, OF_TRANSITIONS, OF_SIGNALS],
        "signalInstance" => &[OF_TRANSITIONS, OF_SIGNALS],
        "decideTask" => &[OF_TASKS, OF_TRANSITIONS],
        "claimTask" => &[OF_TASKS, &["refused_now"]],
        "releaseTask" => &[OF_TASKS],
        "delegateTask" => &[OF_TASKS, &["invalid_input", "delegations_exhausted"]],
        "resolveTask" => &[OF_TASKS, &["not_delegated"]],
        "reassignTask" | "suspendTask" => &[OF_TASKS, &["invalid_input"]],
        "resetTask" => &[OF_TASKS, &["not_claimed"]],
        "resumeTask" => &[&["task_taken", "instance_suspended", "not_suspended"]],
        "getInstanceActions" => &[OF_LOGIC],
        "getInstanceEligibility" => &[OF_LOGIC, &["invalid_input"]],
        "listDataChanges" => &[&["invalid_input"]],
        "publishVersion" => &[&["unpublishable", "limit_reached"], OF_LOGIC],
        "activateVersion" => &[OF_VERSIONS, &["forbidden", "unknown_names"]],
        "deleteCalendar" => &[&["calendar_used"]],
        "stopVersion" | "createSubscription" | "testSubscription" | "putSavedView" => {
            &[&["limit_reached"]]
        }
        // The instance is named in the body.
        "createEmbedToken" => &[&["not_found"]],
        "migrateInstances" => &[OF_VERSIONS, OF_MANY],
        "cancelInstances" => &[OF_MANY],
        "retryDeadLetter" | "discardDeadLetter" => &[&["not_first"]],
        "discardDelivery" => &[&["delivery_ended"]],
        "listEvents" => &[&["cursor_expired"]],
        "replayEvents" => &[&["cursor_expired", "invalid_cursor", "not_found"]],
        "streamEvents" => &[&["cursor_expired", "too_many_streams"]],
        "listInstances" | "listSelfApprovals" => &[&["invalid_request"]],
        "searchInstances" => &[&["invalid_cursor"]],
        _ => &[],
    }
}

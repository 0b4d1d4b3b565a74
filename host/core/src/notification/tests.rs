//! The table of recipients by event, and the ids of notifications.

use super::*;
use crate::event_schema::public_types;
use crate::ids::VersionRef;
use crate::instance::Entity;

const STATE: Uuid = Uuid::from_u128(7);
const TASK: Uuid = Uuid::from_u128(8);

fn entry(kind: &str, payload: &Value) -> PublicEntry {
    PublicEntry {
        tenant: "acme".into(),
        instance: InstanceId(Uuid::from_u128(1)),
        id: "019a0000-1111-7222-8333-444455556666"
            .parse()
            .expect("an id"),
        kind: kind.into(),
        payload: payload.to_string(),
        event_seq: 1,
        occurred_at: Timestamp::UNIX_EPOCH,
        actor: Some("ada".into()),
        definition: VersionRef {
            key: "approval".into(),
            version: 1,
        },
        entity: Entity {
            kind: "invoice".into(),
            id: "i".into(),
        },
        traceparent: None,
        revision: 1,
        context: crate::event::EventContext::default(),
    }
}

/// `kind:recipient` of each, in order.
#[track_caller]
fn check(kind: &str, payload: Value, expected: &[&str]) {
    let requesters = ["ina".to_owned(), "paul".to_owned()];
    let notifications = of(&entry(kind, &payload), &requesters).expect("a sound payload");
    let listed: Vec<String> = notifications
        .iter()
        .map(|one| {
            let (recipient, kind) = (&one.recipient, one.kind.name());
            format!("{kind} {}:{}", recipient.kind(), recipient.id())
        })
        .collect();
    assert_eq!(listed, expected, "{kind} {payload}");
}

fn offered(candidates: Value) -> Value {
    json!({"state": STATE, "task": {"id": TASK, "status": "PENDING", "candidates": candidates}})
}

#[test]
fn work_is_told_to_those_it_waits_for() {
    let both = json!([{"type": "group", "id": "finance"}, {"type": "user", "id": "ben"}]);
    check(
        "TASK_CREATED",
        offered(both.clone()),
        &[
            "ASSIGNMENT_CREATED user:ben",
            "ASSIGNMENT_CREATED group:finance",
        ],
    );
    let twice = json!([{"type": "user", "id": "ben"}, {"type": "user", "id": "ben"}]);
    check(
        "TASK_CREATED",
        offered(twice),
        &["ASSIGNMENT_CREATED user:ben"],
    );
    let unknown = json!([{"type": "managerOf", "id": "ben"}, {"type": "robot", "id": "r"}]);
    check("TASK_CREATED", offered(unknown), &[]);
    let mut owned = offered(both);
    owned["task"]["status"] = json!("CLAIMED");
    owned["task"]["owner"] = json!("eve");
    check("TASK_CREATED", owned, &["ASSIGNMENT_CREATED user:eve"]);
    let rerouted =
        json!({"task": TASK, "state": STATE, "candidates": [{"type": "user", "id": "eve"}]});
    check("TASK_REROUTED", rerouted, &["ASSIGNMENT_CREATED user:eve"]);
    for kind in ["TASK_REASSIGNED", "TASK_DELEGATED", "TASK_RESOLVED"] {
        let moved =
            json!({"task": TASK, "state": STATE, "from": "ben", "to": "eve", "reason": "ill"});
        check(kind, moved, &["ASSIGNMENT_CREATED user:eve"]);
    }
}

#[test]
fn deadlines_are_told_to_those_who_had_the_work() {
    let recipients = json!([{"type": "user", "id": "ben"}, {"type": "group", "id": "finance"}]);
    check(
        "TASK_REMINDED",
        json!({"state": STATE, "recipients": recipients, "dueAt": "2026-01-02T03:04:05Z"}),
        &["TIMEOUT_WARNING user:ben", "TIMEOUT_WARNING group:finance"],
    );
    for from in [json!(["ben"]), json!([{"type": "user", "id": "ben"}])] {
        let escalated = json!({"state": STATE, "count": 1, "from": from});
        check("TASK_ESCALATED", escalated, &["ESCALATION user:ben"]);
    }
}

#[test]
fn changes_of_the_status_are_told_to_the_requesters() {
    let both = ["STATUS_CHANGED user:ina", "STATUS_CHANGED user:paul"];
    // Not each decision: of a vote of many, nobody wants that many.
    check(
        "DECISION_RECORDED",
        json!({"task": TASK, "state": STATE, "outcome": "APPROVE"}),
        &[],
    );
    check("FLOW_SUSPENDED", json!({"reason": "audit"}), &both);
    check("FLOW_RESUMED", json!({}), &both);
    check("FLOW_COMPLETED", json!({"outcome": "APPROVED"}), &both);
    check("FLOW_CANCELLED", json!({"reason": "withdrawn"}), &both);
}

#[test]
fn an_escalation_is_told_to_those_who_get_the_work_or_lose_it() {
    let (ben, eve) = (
        json!({"type": "user", "id": "ben"}),
        json!({"type": "user", "id": "eve"}),
    );
    let escalated = json!({"state": STATE, "task": TASK, "reason": "too_few_eligible", "from": [ben], "to": [ben, eve]});
    check("TASK_ESCALATED", escalated, &["ESCALATION user:eve"]);
    // Its candidates change with an event that does not tell them again.
    for step in ["manager", "fallback"] {
        let rerouted = json!({"state": STATE, "task": TASK, "step": step, "candidates": [eve]});
        check("TASK_REROUTED", rerouted, &[]);
    }
}

#[test]
fn a_comment_is_told_to_those_whom_it_mentions() {
    let comment = json!({"comment": "@eve, please", "mentions": ["ben", "dee"]});
    check(
        "FLOW_COMMENTED",
        comment,
        &["MENTION user:ben", "MENTION user:dee"],
    );
    let alone = json!({"comment": "Hm.", "mentions": []});
    check("FLOW_COMMENTED", alone, &[]);
}

#[test]
fn whoever_acts_is_not_told_of_it() {
    let comment = json!({"comment": "Hm.", "mentions": ["ada", "ben"]});
    check("FLOW_COMMENTED", comment, &["MENTION user:ben"]);
    let notifications = of(&entry("FLOW_CANCELLED", &json!({})), &["ada".to_owned()]);
    assert_eq!(notifications.expect("a sound payload"), []);
}

#[test]
fn other_events_and_missing_members_are_told_to_nobody() {
    for kind in ["FLOW_STARTED", "TASK_CLAIMED", "CUSTOM", "SOMETHING_NEW"] {
        check(kind, json!({"to": "eve", "from": ["ben"]}), &[]);
    }
    for kind in [
        "TASK_CREATED",
        "TASK_REROUTED",
        "TASK_REASSIGNED",
        "TASK_DELEGATED",
        "TASK_REMINDED",
        "TASK_ESCALATED",
    ] {
        check(kind, json!({}), &[]);
        check(
            kind,
            json!({"task": 1, "to": {}, "recipients": "", "from": {"id": 1}}),
            &[],
        );
    }
    assert!(
        of(
            &PublicEntry {
                payload: "{".into(),
                ..entry("TASK_CREATED", &json!({}))
            },
            &[]
        )
        .is_err()
    );
}

#[test]
fn the_types_that_tell_are_all_of_them() {
    let telling: Vec<&str> = public_types()
        .map(|event_type| event_type.kind)
        .filter(|kind| recipients(kind, &Value::Null, &[]).is_some())
        .collect();
    let (found, listed) = (BTreeSet::from_iter(telling), BTreeSet::from(EVENT_TYPES));
    assert_eq!(found, listed);
}

#[test]
fn a_notification_names_what_it_is_about() {
    let reminded = json!({
        "state": STATE, "task": TASK, "dueAt": "2026-01-02T03:04:05Z", "recipients": [{"type": "user", "id": "ben"}],
    });
    let notifications = of(&entry("TASK_REMINDED", &reminded), &[]).expect("a sound payload");
    assert_eq!(
        (notifications[0].state, notifications[0].task),
        (Some(STATE), Some(TASK))
    );
    let due: Timestamp = "2026-01-02T03:04:05Z".parse().expect("a time");
    assert_eq!(notifications[0].due_at, Some(due));
    let mut created = offered(json!([{"type": "user", "id": "ben"}]));
    created["task"]["dueAt"] = json!("2026-01-02T03:04:05Z");
    let notifications = of(&entry("TASK_CREATED", &created), &[]).expect("a sound payload");
    assert_eq!(
        (notifications[0].state, notifications[0].task),
        (Some(STATE), Some(TASK))
    );
    assert_eq!(notifications[0].due_at, Some(due));
}

#[test]
fn the_id_is_that_of_event_and_recipient() {
    let event = entry("FLOW_COMPLETED", &json!({})).id;
    let user = Recipient::User("ben".into());
    let one = id(event, Kind::StatusChanged, &user);
    assert_eq!(one, id(event, Kind::StatusChanged, &user));
    assert_ne!(one, id(event, Kind::AssignmentCreated, &user));
    assert_ne!(
        one,
        id(event, Kind::StatusChanged, &Recipient::Group("ben".into()))
    );
    assert_ne!(
        one,
        id(
            Uuid::from_u128(event.as_u128() + 1),
            Kind::StatusChanged,
            &user
        )
    );
    assert_eq!(one.as_bytes()[..6], event.as_bytes()[..6]);
    assert_eq!(
        (one.get_version_num(), one.get_variant()),
        (8, uuid::Variant::RFC4122)
    );
}

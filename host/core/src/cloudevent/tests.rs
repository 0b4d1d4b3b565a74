//! Events in both modes; their data is compared with an implementation that uses a JSON tree.

use proptest::prelude::*;

use super::*;
use crate::json::tests::any_json;

fn entry(kind: &str, payload: &str) -> PublicEntry {
    PublicEntry {
        tenant: "acme & co".into(),
        instance: InstanceId(Uuid::from_u128(1)),
        id: Uuid::from_u128(2),
        kind: kind.into(),
        payload: payload.into(),
        event_seq: 7,
        occurred_at: "2026-01-02T03:04:05.000678Z".parse().expect("a timestamp"),
        actor: Some("ada".into()),
        definition: VersionRef {
            key: "approval".into(),
            version: 3,
        },
        entity: Entity {
            kind: "invoice".into(),
            id: "i-1".into(),
        },
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        revision: 4,
        context: EventContext::default(),
    }
}

fn event(entry: &PublicEntry) -> CloudEvent {
    CloudEvent::of(entry, &Naming::default()).expect("a sound payload")
}

#[test]
fn structured_mode_is_one_document_with_all_attributes() {
    let claimed = entry(
        "TASK_CLAIMED",
        r#"{"owner":"ada","state":"00000000-0000-0000-0000-00000000000b","task":"00000000-0000-0000-0000-00000000000a","type":"TASK_CLAIMED"}"#,
    );
    let expected = json!({
        "specversion": "1.0",
        "id": "00000000-0000-0000-0000-000000000002",
        "source": "/acme%20%26%20co/instances/00000000-0000-0000-0000-000000000001",
        "type": "dev.wrkflw.task.claimed",
        "subject": "00000000-0000-0000-0000-000000000001",
        "time": "2026-01-02T03:04:05.000678Z",
        "datacontenttype": "application/json",
        "dataschema": "http://localhost:8080/schemas/v1/dev.wrkflw.task.claimed.json",
        "partitionkey": "00000000-0000-0000-0000-000000000001",
        "sequence": "00000000000000000007",
        "authtype": "user",
        "authid": "ada",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "data": {
            "taskId": "00000000-0000-0000-0000-00000000000a",
            "stateId": "00000000-0000-0000-0000-00000000000b",
            "owner": "ada", "actor": "ada", "revision": 4,
            "instanceId": "00000000-0000-0000-0000-000000000001",
            "definitionKey": "approval", "definitionVersion": 3,
            "entityType": "invoice", "entityId": "i-1",
        },
    });
    assert_eq!(event(&claimed).structured().value(), expected);
}

#[test]
fn binary_mode_has_a_header_for_each_attribute_and_none_for_the_content_type() {
    let mut completed = entry(
        "FLOW_COMPLETED",
        r#"{"type":"FLOW_COMPLETED","outcome":"APPROVED"}"#,
    );
    completed.actor = None;
    completed.traceparent = None;
    let event = event(&completed);
    let headers: Vec<(String, &str)> = event.binary_headers().collect();
    let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "content-type",
            "ce_specversion",
            "ce_id",
            "ce_source",
            "ce_type",
            "ce_subject",
            "ce_time",
            "ce_dataschema",
            "ce_partitionkey",
            "ce_sequence",
            "ce_authtype",
        ]
    );
    assert_eq!(headers[0].1, "application/json");
    assert_eq!(event.attribute("authtype"), Some("system"));
}

#[test]
fn a_flows_own_event_is_named_by_it_and_keeps_its_data_to_the_letter() {
    let custom = entry(
        CUSTOM,
        r#"{"type":"CUSTOM","name":"stamped","data":{"sum":1e2}}"#,
    );
    let event = event(&custom);
    assert_eq!(event.attribute("type"), Some("dev.wrkflw.custom.stamped"));
    assert!(
        event.data.as_str().contains(r#""data":{"sum":1e2}"#),
        "{}",
        event.data
    );
}

#[test]
fn what_is_confidential_stays_behind() {
    let decided = entry(
        "DECISION_RECORDED",
        r#"{"type":"DECISION_RECORDED","task":"t","input":{"salary":1},"outcome":"APPROVE"}"#,
    );
    assert!(!event(&decided).structured().as_str().contains("salary"));
    let started = entry(
        "FLOW_STARTED",
        r#"{"type":"FLOW_STARTED","data":{"salary":1}}"#,
    );
    assert!(
        !event(&started)
            .structured()
            .as_str()
            .contains("\"salary\":")
    );
}

#[test]
fn a_notification_is_an_event_that_its_schema_describes() {
    let mut created = entry(
        "TASK_CREATED",
        r#"{"state":"00000000-0000-0000-0000-000000000007","stateName":"Review","task":{"candidates":[{"id":"ben","type":"user"}],"id":"00000000-0000-0000-0000-000000000008","label":"Read it"}}"#,
    );
    created.context.labels.title = Some("Invoice 7".into());
    let notifications = crate::notification::of(&created, &[]).expect("a sound payload");
    let event = CloudEvent::notification(&notifications[0], &created, &Naming::default());
    let event = event.expect("a sound payload");
    let structured = event.structured().value();
    assert_eq!(
        structured["type"],
        "dev.wrkflw.notification.assignment_created"
    );
    assert_eq!(structured["id"], notifications[0].id.to_string());
    assert_eq!(event.attribute("sequence"), None);
    let data = &structured["data"];
    assert_eq!(data["taskId"], "00000000-0000-0000-0000-000000000008");
    assert_eq!(
        (&data["taskTitle"], &data["stateName"]),
        (&json!("Read it"), &json!("Review"))
    );
    assert_eq!(data["instanceTitle"], "Invoice 7");
    assert_eq!(data.get("instanceSummary"), None);
    assert_eq!(data["recipient"], json!({"type": "user", "id": "ben"}));
    let schema = crate::notification::schema("notification.assignment_created").expect("a schema");
    assert!(jsonschema::is_valid(&schema, data), "{structured}");
    assert_eq!(crate::notification::schema("notification.other"), None);
}

#[test]
fn a_damaged_payload_is_an_error_and_no_panic() {
    assert!(CloudEvent::of(&entry("TASK_CLAIMED", "{"), &Naming::default()).is_err());
}

proptest! {
    #[test]
    fn whatever_is_stored_the_data_have_declared_members_only(
        members in prop::collection::btree_map(
            prop_oneof![
                "[a-z\"]{1,3}",
                prop::sample::select(vec![
                    "type", "data", "input", "sender", "task", "state", "definition", "entity", "revision", "stateName",
                ]).prop_map(str::to_owned),
            ],
            prop_oneof![
                any_json(),
                prop::collection::btree_map(
                    prop::sample::select(vec!["data", "children", "key", "id", "label", "more"]), any_json(), 0..4,
                ).prop_map(|members| json!(members)),
            ],
            0..8,
        ),
        has_actor in any::<bool>(),
    ) {
        let mut entry = entry("TASK_CREATED", Json::of(&members).as_str());
        entry.actor = entry.actor.filter(|_| has_actor);
        let event = event(&entry);
        let data = event.data.value();
        let names = data.as_object().expect("an object").keys();
        let schema = crate::event_schema::EventType::by_suffix("task.created").expect("a type").schema();
        for name in names {
            prop_assert!(schema["properties"].get(name).is_some(), "{name} in {data}");
        }
        if let Some(task) = data.get("task").and_then(|task| task.as_object()) {
            for name in task.keys() {
                prop_assert!(schema["properties"]["task"]["properties"].get(name).is_some(), "{name} in {data}");
            }
        }
        let structured = event.structured();
        prop_assert_eq!(Json::stored(structured.as_str()), Ok(structured.clone()));
    }
}

#[test]
fn a_blind_decision_says_neither_who_made_it_nor_how() {
    let payload = r#"{"blind":true,"comment":"between us","input":{},"onBehalfOf":"eve","outcome":"NO","state":"00000000-0000-0000-0000-00000000000b","stateName":"Vote","task":"00000000-0000-0000-0000-00000000000a","type":"DECISION_RECORDED"}"#;
    let event = event(&entry("DECISION_RECORDED", payload));
    let data = event.data.value();
    for member in ["actor", "outcome", "comment", "onBehalfOf"] {
        assert!(data[member].is_null(), "{member}: {data}");
    }
    let task = json!("00000000-0000-0000-0000-00000000000a");
    assert_eq!((&data["blind"], &data["taskId"]), (&json!(true), &task));
    assert_eq!(event.attribute("authtype"), Some("unknown"));
    assert_eq!(event.attribute("authid"), None);
}

/// In the payload, the attributes come before the member `blind`, by which they are hidden.
#[test]
fn what_a_blind_decision_did_is_told_without_the_decision() {
    let continued = |blind: &str| {
        let payload = format!(
            r#"{{"attributes":[{{"name":"n","value":{{"type":"text","value":"x"}}}}],{blind}"data":{{"count":1}},"notes":[{{"code":"counted","message":"1 of 2"}}],"state":"00000000-0000-0000-0000-00000000000b","to":["Advice"],"trigger":"ASK","type":"STATE_CONTINUED"}}"#
        );
        event(&entry("STATE_CONTINUED", &payload))
    };
    let hidden = continued(r#""blind":true,"#);
    let data = hidden.data.value();
    for member in ["actor", "trigger", "notes"] {
        assert!(data[member].is_null(), "{member}: {data}");
    }
    assert_eq!(
        (&data["blind"], &data["to"], &data["dataPointers"]),
        (&json!(true), &json!(["Advice"]), &json!(["/count"]))
    );
    assert_eq!(hidden.attribute("authtype"), Some("unknown"));
    assert_eq!(hidden.attribute("authid"), None);
    let shown = continued("");
    let data = shown.data.value();
    assert_eq!(
        (&data["actor"], &data["trigger"], &data["notes"][0]["code"]),
        (&json!("ada"), &json!("ASK"), &json!("counted"))
    );
    assert_eq!(shown.attribute("authid"), Some("ada"));
}

#[test]
fn a_state_that_a_blind_decision_begins_or_cancels_hides_it() {
    let entered = r#"{"blind":true,"state":{"enteredTrigger":"ASK","id":"00000000-0000-0000-0000-00000000000b","name":"Advice","subscriptions":[{"buffered":true,"trigger":"PAID"}]},"type":"STATE_ENTERED"}"#;
    let cancelled = r#"{"blind":true,"name":"Advice","state":"00000000-0000-0000-0000-00000000000b","trigger":"ASK","type":"STATE_CANCELLED"}"#;
    for (kind, payload) in [("STATE_ENTERED", entered), ("STATE_CANCELLED", cancelled)] {
        let event = event(&entry(kind, payload));
        let data = event.data.value();
        assert!(!event.data.as_str().contains("ASK"), "{data}");
        assert_eq!(
            (&data["blind"], &data["stateName"], data.get("actor")),
            (&json!(true), &json!("Advice"), None)
        );
        assert_eq!(event.attribute("authtype"), Some("unknown"));
        if kind == "STATE_ENTERED" {
            assert_eq!(data["state"]["subscriptions"][0]["trigger"], "PAID");
        }
    }
}

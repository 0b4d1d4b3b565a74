//! The proofs can fail: a later change is detected, whoever made it.

use serde_json::{Value, json};
use sqlx::Row as _;
use uuid::Uuid;
use wrkflw_core::ids::{InstanceId, TaskId, TenantId};
use wrkflw_core::instance::Decision;
use wrkflw_core::json::Json;
use wrkflw_engine::Identity;

use super::replay::{altered, much_later, replay};
use super::stream::{broken_at, commands, entries, fold};
use crate::support::app::TestApp;
use wrkflw_store::directory::tenants;

pub(super) async fn tenant_of(app: &TestApp) -> TenantId {
    let tenant = tenants::find(app.store(), "default").await;
    tenant.expect("a query").expect("a tenant")
}

/// An instance with a rejection, a rework and an approval.
async fn approved(app: &TestApp) -> InstanceId {
    let instance = app.started("doc-1").await;
    let rejection = json!({ "outcome": "REJECT", "comment": "too short", "input": { "pages": 2 } });
    let instance = app.decided("reviewer", &instance, rejection).await;
    let instance = app
        .decided("author", &instance, json!({ "outcome": "SUBMIT" }))
        .await;
    let instance = app
        .decided("reviewer2", &instance, json!({ "outcome": "APPROVE" }))
        .await;
    let instance = app
        .decided("approver", &instance, json!({ "outcome": "APPROVE" }))
        .await;
    InstanceId(
        instance["id"]
            .as_str()
            .and_then(|id| id.parse().ok())
            .expect("an id"),
    )
}

#[tokio::test]
async fn a_change_without_triggers_is_detected_by_the_chain() {
    let app = TestApp::start().await;
    let id = approved(&app).await;
    let pool = app.database.admin_pool();
    assert_eq!(broken_at(&entries(pool, id).await), None);
    for change in [
        "update audit_entry set payload = replace(payload, 'too short', 'too long') where type = 'DECISION_RECORDED'",
        "update audit_entry set evidence = replace(evidence, 'reviewer', 'approver') where evidence is not null",
        "update audit_entry set actor = 'outsider' where seq = 7",
        "update audit_entry set occurred_at = occurred_at - interval '1 day' where seq = 7",
        "update audit_entry set salt = substring(sha256(salt) for 16) where seq = 7",
        "update audit_entry set event_seq = null where seq = 7",
        "delete from audit_entry where seq = 7",
        "update audit_entry set seq = 1008 where seq = 7; update audit_entry set seq = 7 where seq = 8;
         update audit_entry set seq = 8 where seq = 1008",
    ] {
        // Rolled back, so that the next change applies to an intact chain.
        let mut transaction = pool.begin().await.expect("a transaction");
        for sql in ["alter table audit_entry disable trigger all", change] {
            sqlx::raw_sql(sql).execute(&mut *transaction).await.expect(sql);
        }
        assert!(broken_at(&entries(&mut *transaction, id).await).is_some(), "{change}");
        transaction.rollback().await.expect("a rollback");
    }
}

#[tokio::test]
async fn a_changed_fact_of_the_evidence_is_detected_by_the_replay() {
    let app = TestApp::start().await;
    let id = approved(&app).await;
    let tenant = tenant_of(&app).await;
    let entries = entries(app.database.admin_pool(), id).await;
    let commands: Vec<_> = commands(&entries).collect();
    // The rejection by the reviewer: start, claim, decision.
    let before = fold(None, &[commands[0], commands[1]].concat());
    let rejection = commands[2];
    replay(&app.engine, tenant, before.clone(), rejection)
        .await
        .expect("the same again");
    for (pointer, value) in other_facts() {
        let mut command = rejection.to_vec();
        command[0] = altered(&command[0], pointer, value);
        let again = replay(&app.engine, tenant, before.clone(), &command).await;
        assert!(again.is_err(), "a change of {pointer} was not noticed");
    }
}

/// Pointers into the evidence, with values that differ from the recorded ones.
fn other_facts() -> [(&'static str, Value); 15] {
    [
        ("/now", json!(much_later())),
        ("/actor/id", json!("reviewer2")),
        ("/actor/groups", json!(["authors"])),
        ("/command/outcome", json!("APPROVE")),
        ("/command/comment", Value::Null),
        ("/command/input", json!({ "pages": 3 })),
        ("/component", json!("00")),
        ("/config", json!("00")),
        ("/profile", json!("00")),
        ("/id", json!(Uuid::nil())),
        ("/made/0", json!(Uuid::nil())),
        ("/evaluations/0/asked", json!("00")),
        ("/evaluations/0/fuel", json!(1)),
        (
            "/evaluations/0/answer/answer/Ok/notes",
            json!([{ "code": "else", "message": "Otherwise." }]),
        ),
        ("/evaluations/1/asked", json!("00")),
    ]
}

#[tokio::test]
async fn the_seal_covers_all_parts_of_a_decision() {
    let app = TestApp::start().await;
    let id = approved(&app).await;
    let tenant = tenant_of(&app).await;
    let who = Identity {
        tenant,
        tenant_name: "default".into(),
        subject: "admin".into(),
        roles: vec![],
        embedded_by: None,
    };
    let instance = app
        .engine
        .read(&who, id)
        .await
        .expect("an instance")
        .instance;
    let sql = "select task_id, key_id, mac_version, mac from decision order by decided_at, task_id";
    let rows = sqlx::query(sql)
        .fetch_all(app.database.admin_pool())
        .await
        .expect("decisions");
    assert_eq!(rows.len(), 4);
    let seals = app.engine.seals();
    for row in rows {
        let (task, key, mac) = (
            TaskId(row.get("task_id")),
            row.get::<String, _>("key_id"),
            row.get::<Vec<u8>, _>("mac"),
        );
        assert_eq!(row.get::<i16, _>("mac_version"), 1);
        let sealed = instance
            .task(task)
            .and_then(|task| task.decision())
            .expect("a decision");
        let verifies = |tenant: &str, instance, task, decision: &Decision| {
            seals
                .mac(&key, tenant, instance, task, decision)
                .expect("the key is known")
                .as_slice()
                == mac
        };
        assert!(verifies("default", id, task, sealed));
        assert!(!verifies("another", id, task, sealed));
        assert!(!verifies("default", InstanceId(Uuid::nil()), task, sealed));
        assert!(!verifies("default", id, TaskId(Uuid::nil()), sealed));
        let changes: [fn(&mut Decision); 6] = [
            |decision| decision.outcome.push('X'),
            |decision| decision.actor.push('x'),
            |decision| decision.on_behalf_of = Some(String::new()),
            |decision| {
                decision.comment =
                    Some(format!("{}!", decision.comment.clone().unwrap_or_default()));
            },
            |decision| decision.input = Json::parse(r#"{"pages":3}"#).expect("JSON"),
            |decision| decision.decided_at = much_later(),
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut decision = sealed.clone();
            change(&mut decision);
            assert!(
                !verifies("default", id, task, &decision),
                "change {number} of {sealed:?}"
            );
        }
        assert!(seals.mac("another", "default", id, task, sealed).is_none());
    }
}

//! Verification without replay: unchanged rows have no findings, and every manual change is a finding.

use std::collections::BTreeMap;

use serde_json::json;
use sqlx::{AssertSqlSafe, Executor as _};
use uuid::Uuid;
use wrkflw_audit::keys::CheckpointKeys;
use wrkflw_audit::record::rows::Which;
use wrkflw_audit::seal::SealKeys;
use wrkflw_audit::verify::{Finding, How, VerifiedCounts, Verifier};
use wrkflw_core::audit::{Entry, Head};
use wrkflw_core::ids::InstanceId;
use wrkflw_core::instance::Entity;
use wrkflw_core::json::Json;

use super::stream::entries;
use crate::support::app::{TestApp, task_of};

/// The tables that the tests change by hand.
const TABLES: [&str; 5] = [
    "audit_entry",
    "audit_stream",
    "decision",
    "instance",
    "task",
];

pub(super) async fn verify(
    app: &TestApp,
    seals: Option<&SealKeys>,
    tenant: Option<&str>,
    which: &Which,
) -> (VerifiedCounts, Vec<Finding>) {
    let mut findings = Vec::new();
    let how = How {
        seals,
        replayer: None,
        keys: &CheckpointKeys::default(),
        kept: &[],
    };
    let verifier = Verifier::new(app.engine.reader(), how, |finding| findings.push(finding));
    let tally = verifier.run(tenant, which).await.expect("a pass");
    assert_eq!(tally.findings, findings.len() as u64);
    (tally, findings)
}

pub(crate) async fn everything(app: &TestApp) -> (VerifiedCounts, Vec<Finding>) {
    verify(app, Some(app.engine.seals()), None, &Which::All).await
}

/// Each finding as `stream kind: code entry`.
pub(super) fn brief(findings: &[Finding]) -> Vec<String> {
    let brief = |finding: &Finding| {
        let seq = finding.seq.map(|seq| format!(" {seq}")).unwrap_or_default();
        format!("{}: {}{seq}", finding.stream, finding.code)
    };
    findings.iter().map(brief).collect()
}

pub(super) fn id(instance: &serde_json::Value) -> InstanceId {
    let id = instance["id"].as_str().expect("an id");
    InstanceId(id.parse().expect("an id"))
}

/// An instance that was rejected, reworked and approved twice. The fourth decision ends it.
pub(super) async fn approved(app: &TestApp, entity: &str) -> InstanceId {
    let instance = app.started(entity).await;
    let rejection = json!({ "outcome": "REJECT", "comment": "too short", "input": { "pages": 2 } });
    let instance = app.decided("reviewer", &instance, rejection).await;
    let submission = json!({ "outcome": "SUBMIT" });
    let instance = app.decided("author", &instance, submission).await;
    let approval = json!({ "outcome": "APPROVE" });
    let instance = app.decided("reviewer2", &instance, approval.clone()).await;
    id(&app.decided("approver", &instance, approval).await)
}

/// Runs a statement as superuser, with triggers off.
pub(super) async fn behind(app: &TestApp, sql: &str) {
    let mut connection = app
        .database
        .admin_pool()
        .acquire()
        .await
        .expect("a connection");
    let sql =
        format!("set session_replication_role = replica; {sql}; reset session_replication_role");
    let done = connection.execute(AssertSqlSafe(sql.as_str())).await;
    done.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

async fn back_up(app: &TestApp) {
    for table in TABLES {
        behind(app, &format!("create table kept_{table} as table {table}")).await;
    }
}

async fn restore(app: &TestApp) {
    for table in TABLES {
        let sql = format!("truncate {table}; insert into {table} table kept_{table}");
        behind(app, &sql).await;
    }
}

#[tokio::test]
async fn unchanged_rows_have_no_findings() {
    let app = TestApp::start().await;
    approved(&app, "doc-1").await;
    let running = app.started("doc-2").await;
    let cancelled = app.started("doc-3").await;
    let path = format!("/v1/instances/{}/cancel", id(&cancelled));
    app.post("admin", &path, json!({ "reason": "no longer needed" }))
        .await
        .expect(200);
    let path = format!("/v1/tasks/{}/claim", task_of(&running));
    app.post("reviewer", &path, json!({})).await.expect(200);

    let (tally, findings) = everything(&app).await;
    assert_eq!(findings, []);
    // Three instances, the definition, the directory.
    assert_eq!((tally.streams, tally.instances), (5, 3));
    assert_eq!((tally.decisions, tally.seals), (4, 4));
    let stored: i64 = sqlx::query_scalar("select count(*) from audit_entry")
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count");
    assert_eq!(tally.entries, stored.cast_unsigned());
}

/// A statement, and the findings that it must cause.
type Change = (&'static str, Vec<&'static str>);

fn changes_of_entries() -> Vec<Change> {
    vec![
        (
            "update audit_entry set payload = replace(payload, 'too short', 'too long') where type = 'DECISION_RECORDED'",
            vec!["instance: hash 5", "instance: decision 5"],
        ),
        (
            "update audit_entry set evidence = replace(evidence, 'reviewer', 'approver') where seq = 5 and stream_kind = 'instance'",
            vec!["instance: hash 5"],
        ),
        (
            "update audit_entry set salt = substring(salt for 15) where seq = 6 and stream_kind = 'instance'",
            vec!["instance: malformed 6", "instance: fold"],
        ),
        (
            "update audit_entry set payload = '{' where seq = 4 and stream_kind = 'instance'",
            vec!["instance: hash 4", "instance: payload 4", "instance: fold"],
        ),
        (
            "delete from audit_entry where seq = 4 and stream_kind = 'instance'",
            vec![
                "instance: gap 5",
                "instance: fold 5",
                "instance: fold",
                "outbox: outbox",
            ],
        ),
        (
            "delete from audit_entry where stream_kind = 'instance' and seq = (select max(seq) from audit_entry where stream_kind = 'instance')",
            vec![
                "instance: head LAST-1",
                "instance: head LAST-1",
                "instance: instance",
                "instance: instance",
                "instance: instance",
                "instance: state",
                "instance: state",
                "instance: state",
                "outbox: outbox",
            ],
        ),
    ]
}

fn changes_of_decisions() -> Vec<Change> {
    vec![
        (
            "update decision set comment = 'too long' where outcome = 'REJECT'",
            vec!["instance: decision 5", "instance: seal 5"],
        ),
        (
            "update decision set outcome = 'APPROVE' where outcome = 'REJECT'",
            vec!["instance: decision 5", "instance: seal 5"],
        ),
        (
            "update decision set on_behalf_of = 'approver' where outcome = 'REJECT'",
            vec!["instance: decision 5", "instance: seal 5"],
        ),
        (
            "update decision set input = '{\"pages\":3}', decided_at = decided_at - interval '1 day' where outcome = 'REJECT'",
            vec!["instance: decision 5", "instance: decision 5", "instance: seal 5"],
        ),
        (
            "update decision set mac = sha256(mac) where outcome = 'REJECT'",
            vec!["instance: seal 5"],
        ),
        (
            "update decision set mac_version = 9 where outcome = 'REJECT'",
            vec!["instance: seal_version 5"],
        ),
        (
            "update decision set key_id = 'gone' where outcome = 'REJECT'",
            vec!["instance: seal_key 5"],
        ),
        (
            "delete from decision where outcome = 'REJECT'",
            vec!["instance: decision_missing 5"],
        ),
        (
            "insert into decision select tenant_id, gen_random_uuid(), instance_id, outcome, actor, on_behalf_of, comment, input, decided_at,
                 key_id, mac_version, mac from decision where outcome = 'REJECT'",
            vec!["instance: decision_unrecorded"],
        ),
    ]
}

fn changes_of_the_rest() -> Vec<Change> {
    vec![
        (
            "update instance set status = 'CANCELLED', requesters = '{nobody}'",
            vec!["instance: instance", "instance: instance"],
        ),
        (
            "update instance set revision = revision + 1",
            vec!["instance: instance"],
        ),
        (
            "update instance set data = '{}'",
            vec!["instance: instance"],
        ),
        (
            "update instance set event_seq = 1",
            vec!["instance: head LAST"],
        ),
        (
            "update instance set audit_head = sha256(audit_head)",
            vec!["instance: head LAST"],
        ),
        (
            "delete from instance",
            vec!["instance: head_missing"; 1]
                .into_iter()
                .chain(["instance: decision_unrecorded"; 4])
                .collect(),
        ),
        (
            "update task set owner = 'author' where owner = 'approver'",
            vec!["instance: task"],
        ),
        (
            "update audit_entry set actor = 'somebody' where stream_kind = 'definition' and seq = 1",
            vec!["definition: hash 1", "definition: version"],
        ),
        (
            "delete from audit_entry where stream_kind = 'directory' and seq = 2",
            vec!["directory: gap 3", "directory: group"],
        ),
        (
            "update audit_stream set head = sha256(head) where stream_kind = 'definition'",
            vec!["definition: head 2"],
        ),
        (
            "delete from audit_stream where stream_kind = 'directory'",
            vec!["directory: head_missing"],
        ),
    ]
}

#[tokio::test]
async fn every_change_is_named_with_its_entry() {
    let app = TestApp::start().await;
    let id = approved(&app, "doc-1").await;
    let last = entries(app.database.admin_pool(), id).await.len();
    let numbered = |text: &&str| {
        let text = text.replace("LAST-1", &(last - 1).to_string());
        text.replace("LAST", &last.to_string())
    };
    back_up(&app).await;
    let changes = [
        changes_of_entries(),
        changes_of_decisions(),
        changes_of_the_rest(),
    ];
    for (change, expected) in changes.concat() {
        behind(&app, change).await;
        let (_, findings) = everything(&app).await;
        let expected: Vec<String> = expected.iter().map(numbered).collect();
        assert_eq!(brief(&findings), expected, "{change}\n{findings:#?}");
        restore(&app).await;
    }
    assert_eq!(everything(&app).await.1, []);
}

/// The entries after `change`, with recomputed hashes.
pub(super) fn forged(entries: &[Entry], change: impl Fn(&mut Entry)) -> Vec<Entry> {
    let stream = entries[0].stream;
    let mut head = Head::genesis(stream);
    let again = entries.iter().map(|entry| {
        let mut entry = entry.clone();
        change(&mut entry);
        head.append(stream, entry.draft)
    });
    again.collect()
}

#[tokio::test]
async fn an_intruder_who_forges_the_whole_chain_lacks_the_key() {
    let app = TestApp::start().await;
    let id = approved(&app, "doc-1").await;
    let pool = app.database.admin_pool();
    let forged = forged(&entries(pool, id).await, |entry| {
        let text = entry
            .draft
            .payload
            .as_str()
            .replace("too short", "splendid!");
        entry.draft.payload = Json::parse(&text).expect("JSON");
    });
    for entry in &forged {
        behind(
            &app,
            &format!(
                "update audit_entry set payload = '{}', hash = '\\x{}' where stream_id = '{id}' and seq = {}",
                entry.draft.payload.as_str().replace('\'', "''"),
                wrkflw_core::ids::hex(&entry.hash),
                entry.seq
            ),
        )
        .await;
    }
    let head = wrkflw_core::ids::hex(&forged.last().expect("entries").hash);
    behind(
        &app,
        &format!("update instance set audit_head = '\\x{head}'"),
    )
    .await;
    behind(
        &app,
        "update decision set comment = 'splendid!' where comment = 'too short'",
    )
    .await;
    let (_, findings) = everything(&app).await;
    assert_eq!(brief(&findings), ["instance: seal 5"]);
    let (tally, findings) = verify(&app, None, None, &Which::All).await;
    assert_eq!(
        (tally.seals, findings),
        (0, vec![]),
        "nothing else shows it"
    );
}

fn keys(current: &str, all: &[(&str, u8)]) -> SealKeys {
    let named = all
        .iter()
        .map(|(name, byte)| ((*name).to_owned(), vec![*byte; 32]));
    SealKeys::new(current, named.collect::<BTreeMap<_, _>>()).expect("keys")
}

#[tokio::test]
async fn keys_are_rotated_and_old_ones_still_verify() {
    let app = TestApp::start().await;
    let before = app.started("doc-1").await;
    let before = app
        .decided("reviewer", &before, json!({ "outcome": "APPROVE" }))
        .await;
    // A second host has a newer key in first place, and the old one.
    let both = keys("newer", &[("newer", 9), ("test", 7)]);
    let (host, engine) = app.beside_sealing(both.clone()).await;
    let task = task_of(&before);
    for (action, body) in [
        ("claim", json!({})),
        ("decide", json!({ "outcome": "APPROVE" })),
    ] {
        let path = format!("/v1/tasks/{task}/{action}");
        host.send("approver", "POST", &path, &[], Some(body))
            .await
            .expect(200);
    }
    let (tally, findings) = verify(&app, Some(engine.seals()), None, &Which::All).await;
    assert_eq!((tally.decisions, tally.seals, findings), (2, 2, vec![]));

    // Without the old key, its seal cannot be verified, which is a finding.
    let (tally, findings) = verify(
        &app,
        Some(&keys("newer", &[("newer", 9)])),
        None,
        &Which::All,
    )
    .await;
    assert_eq!((tally.decisions, tally.seals), (2, 1));
    assert_eq!(brief(&findings), ["instance: seal_key 5"]);
    let detail = &findings[0].detail;
    assert!(detail.starts_with("no key named test"), "{detail}");
    // A different key with the same name does not verify the seal.
    let false_key = keys("newer", &[("newer", 9), ("test", 8)]);
    let (_, findings) = verify(&app, Some(&false_key), None, &Which::All).await;
    assert_eq!(brief(&findings), ["instance: seal 5"]);
    // The chain of custody contains the status of each seal.
    let path = "/v1/entities/document/doc-1/custody";
    let statuses = |body: &serde_json::Value| {
        let data = body["data"].as_array().expect("data").clone();
        let status =
            |one: &serde_json::Value| one["signature"]["status"].as_str().map(str::to_owned);
        data.iter().filter_map(status).collect::<Vec<_>>()
    };
    let seen_by_both = host.send("admin", "GET", path, &[], None).await.expect(200);
    assert_eq!(statuses(&seen_by_both), ["VALID", "VALID"]);
    let seen_by_older = app.get("admin", path).await.expect(200);
    assert_eq!(statuses(&seen_by_older), ["VALID", "UNKNOWN_KEY"]);
}

#[tokio::test]
async fn a_part_can_be_verified_alone() {
    let app = TestApp::start().await;
    let (first, second) = (approved(&app, "doc-1").await, approved(&app, "doc-2").await);
    let sql = format!("update decision set comment = 'x' where instance_id = '{second}'");
    behind(&app, &sql).await;
    let seals = Some(app.engine.seals());
    let about = |id: &str| {
        Which::About(Entity {
            kind: "document".into(),
            id: id.into(),
        })
    };
    for (tenant, which, streams, findings) in [
        (None, Which::One(first), 1, 0),
        (None, Which::One(second), 1, 8),
        (None, about("doc-1"), 1, 0),
        (Some("default"), about("doc-2"), 1, 8),
        (Some("default"), Which::All, 4, 8),
        (Some("other"), Which::All, 0, 0),
        (None, about("doc-3"), 0, 0),
        (None, Which::One(InstanceId(Uuid::nil())), 0, 0),
    ] {
        let (tally, _) = verify(&app, seals, tenant, &which).await;
        assert_eq!(
            (tally.streams, tally.findings),
            (streams, findings),
            "{tenant:?} {which:?}"
        );
    }
    // An instance without its row is still found by its entries.
    behind(&app, "delete from instance").await;
    let (_, findings) = verify(&app, seals, None, &Which::One(first)).await;
    assert_eq!(brief(&findings), ["instance: head_missing"]);
}

/// There are more instances than a page has, and hosts continue to write. Neither causes a finding.
#[tokio::test]
async fn instances_change_while_they_are_verified() {
    let app = TestApp::start().await;
    for number in 0..55 {
        app.started(&format!("doc-{number}")).await;
    }
    let busy = async {
        for number in 100..120 {
            approved(&app, &format!("doc-{number}")).await;
        }
    };
    let watching = async {
        let mut passes = Vec::new();
        for _ in 0..8 {
            let (tally, findings) = everything(&app).await;
            assert_eq!(findings, []);
            passes.push(tally);
        }
        passes
    };
    let ((), passes) = tokio::join!(busy, watching);
    assert!(passes[0].instances >= 55, "{passes:?}");
    let (tally, findings) = everything(&app).await;
    assert_eq!(
        (tally.instances, tally.decisions, findings),
        (75, 80, vec![])
    );
    assert!(
        passes.iter().any(|pass| pass.entries < tally.entries),
        "it was verified meanwhile"
    );
}

//! Signed checkpoints: every entry is a leaf of a tree, whichever host signs. A kept checkpoint shows changes that the database
//! alone cannot show.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use wrkflw_audit::keys::CheckpointKeys;
use wrkflw_audit::record::rows::Which;
use wrkflw_audit::verify::{Finding, How, VerifiedCounts, Verifier};
use wrkflw_core::checkpoint::Checkpoint;
use wrkflw_core::cloudevent::{CloudEvent, Naming, Public};
use wrkflw_engine::Engine;
use wrkflw_engine::checkpoint::{Checkpointer, Look};
use wrkflw_store::outbox::ClaimStart;

use super::verify::{approved, behind};
use crate::support::app::{TestApp, task_of};
use crate::support::plans::explained;

/// The longest time for which transactions of other tests on the same server delay entries.
pub(super) const SETTLES_WITHIN: Duration = Duration::from_mins(1);

pub(crate) fn keys(named: &[(&str, u8)]) -> CheckpointKeys {
    let secret: Vec<_> = named
        .iter()
        .map(|(name, byte)| ((*name).to_owned(), [*byte; 32]))
        .collect();
    CheckpointKeys::new(&secret, &[]).expect("keys")
}

pub(super) fn checkpointer(engine: &Engine, keys: &CheckpointKeys) -> Checkpointer {
    Checkpointer::new(engine, Arc::new(keys.clone())).expect("a key that signs")
}

/// Signs until there are no new entries.
pub(crate) async fn sign(engine: &Engine, keys: &CheckpointKeys) -> u32 {
    let (checkpointer, deadline) = (checkpointer(engine, keys), Instant::now() + SETTLES_WITHIN);
    let mut signed = 0;
    loop {
        match checkpointer.look().await.expect("a look") {
            Look::Idle => return signed,
            Look::Signed { checkpoints, .. } => signed += checkpoints,
            Look::Elsewhere => {}
        }
        assert!(Instant::now() < deadline, "entries do not settle");
        crate::support::pause().await;
    }
}

pub(super) async fn verify(
    app: &TestApp,
    keys: &CheckpointKeys,
    kept: &[Checkpoint],
) -> (VerifiedCounts, Vec<Finding>) {
    verify_of(app, None, keys, kept).await
}

async fn verify_of(
    app: &TestApp,
    tenant: Option<&str>,
    keys: &CheckpointKeys,
    kept: &[Checkpoint],
) -> (VerifiedCounts, Vec<Finding>) {
    let mut findings = Vec::new();
    let how = How {
        seals: Some(app.engine.seals()),
        replayer: None,
        keys,
        kept,
    };
    let verifier = Verifier::new(app.engine.reader(), how, |finding| findings.push(finding));
    let tally = verifier.run(tenant, &Which::All).await.expect("a pass");
    (tally, findings)
}

/// Each finding as its code, its subject and its number.
fn codes(findings: &[Finding]) -> BTreeSet<String> {
    let brief = |finding: &Finding| {
        let seq = finding.seq.map(|seq| format!(" {seq}")).unwrap_or_default();
        format!("{}: {}{seq}", finding.stream, finding.code)
    };
    findings.iter().map(brief).collect()
}

pub(super) async fn count(app: &TestApp, sql: &'static str) -> u64 {
    let count: i64 = sqlx::query_scalar(sql)
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count");
    count.cast_unsigned()
}

/// The checkpoints that a consumer of events has kept.
async fn published(app: &TestApp) -> Vec<Checkpoint> {
    let mut kept = Vec::new();
    let outbox = app.store().outbox();
    for _ in 0..16 {
        let Some(claim) = outbox
            .claim(ClaimStart::Everything, &BTreeMap::new())
            .await
            .expect("a claim")
        else {
            break;
        };
        for event in &claim.events {
            if let Ok(Public::Checkpoint(checkpoint)) = &event.entry {
                kept.push(checkpoint.clone());
            }
        }
        let settlement = wrkflw_store::outbox::Settlement {
            acknowledged: claim.events.iter().map(|event| event.pos).collect(),
            ..Default::default()
        };
        claim.settle(settlement).await.expect("settled");
    }
    kept.sort_by_key(|checkpoint| checkpoint.number);
    kept
}

#[tokio::test]
async fn every_entry_becomes_a_leaf_and_every_root_is_published() {
    let app = TestApp::start().await;
    let (first, both) = (keys(&[("one", 1)]), keys(&[("two", 2), ("one", 1)]));
    approved(&app, "doc-1").await;
    let instance = app.started("doc-2").await;
    let signed = sign(&app.engine, &first).await;
    assert!(signed > 0);
    let claim = format!("/v1/tasks/{}/claim", task_of(&instance));
    app.post("outsider", &claim, json!({}))
        .await
        .problem(403, "forbidden");
    approved(&app, "doc-3").await;
    // The key is changed. The host keeps the old one, to verify its last checkpoint.
    let signed = signed + sign(&app.engine, &both).await;
    assert_eq!(sign(&app.engine, &both).await, 0, "nothing is new");
    let (tally, findings) = verify(&app, &both, &[]).await;
    assert_eq!(findings, []);
    let refused = count(&app, "select count(*) from refused_attempt").await;
    assert_eq!(refused, 1);
    assert_eq!(tally.leaves, tally.entries + refused);
    let signed = u64::from(signed);
    assert_eq!((tally.checkpoints, tally.signatures), (signed, signed));

    let kept = published(&app).await;
    let numbers: Vec<_> = kept.iter().map(|kept| kept.number).collect();
    assert_eq!(numbers, (1..=signed).collect::<Vec<_>>());
    let last = kept.last().expect("checkpoints");
    assert_eq!((last.size, last.key_id.as_str()), (tally.leaves, "two"));
    assert_eq!(verify(&app, &both, &kept).await.1, []);
    let event = CloudEvent::public(&Public::Checkpoint(last.clone()), &Naming::default());
    let event = event.expect("an event").structured().value();
    assert_eq!(event["type"], "dev.wrkflw.audit.checkpoint");
    assert_eq!(event["source"], "/default/audit");
    assert_eq!(event["sequence"], format!("{signed:020}"));
    assert_eq!(
        serde_json::from_value::<Checkpoint>(event["data"].clone()).expect("data"),
        *last
    );
    // A verifier with only the newer key cannot verify the older signature.
    let (tally, findings) = verify(&app, &keys(&[("two", 2)]), &[]).await;
    let older = kept.iter().filter(|kept| kept.key_id == "one");
    let expected = older.map(|kept| format!("checkpoint: signature_key {}", kept.number));
    assert_eq!(codes(&findings), expected.collect());
    assert_eq!(tally.signatures + findings.len() as u64, signed);
}

/// An entry of a slow transaction has a lower position than entries that were signed long ago.
#[tokio::test]
async fn late_commits_are_not_skipped() {
    let app = TestApp::start().await;
    let keys = keys(&[("one", 1)]);
    sign(&app.engine, &keys).await;
    let mut late = PgConnection::connect(app.database.url())
        .await
        .expect("a connection");
    let mut late = late.begin().await.expect("a transaction");
    let copy =
        "insert into refused_attempt (tenant_id, id, occurred_at, actor, action, code, detail)
        values (1, gen_random_uuid(), now(), 'ann', 'claim', 'forbidden', 'late')";
    sqlx::query(copy).execute(&mut *late).await.expect("a row");
    app.started("doc-1").await;
    let signer = checkpointer(&app.engine, &keys);
    for _ in 0..5 {
        let look = signer.look().await.expect("a look");
        assert!(
            matches!(look, Look::Signed { checkpoints: 0, .. }),
            "{look:?}: something was signed over a transaction that has not ended"
        );
    }
    late.commit().await.expect("it commits at last");
    assert!(sign(&app.engine, &keys).await > 0);
    let (tally, findings) = verify(&app, &keys, &[]).await;
    assert_eq!(findings, []);
    assert_eq!(tally.leaves, tally.entries + 1);
}

#[tokio::test]
async fn of_several_hosts_one_signs_at_a_time() {
    let app = TestApp::start().await;
    let keys = keys(&[("one", 1)]);
    let busy = async {
        for number in 0..12 {
            approved(&app, &format!("doc-{number}")).await;
        }
    };
    let signing = async {
        let mut signed = 0;
        for _ in 0..40 {
            let signers: Vec<_> = (0..3).map(|_| checkpointer(&app.engine, &keys)).collect();
            let looks =
                futures_util::future::join_all(signers.iter().map(Checkpointer::look)).await;
            for look in looks {
                if let Look::Signed { checkpoints, .. } = look.expect("a look") {
                    signed += checkpoints;
                }
            }
        }
        signed
    };
    let ((), signed) = tokio::join!(busy, signing);
    let signed = signed + sign(&app.engine, &keys).await;
    let (tally, findings) = verify(&app, &keys, &[]).await;
    assert_eq!(findings, []);
    assert_eq!(tally.checkpoints, u64::from(signed));
    assert_eq!(tally.leaves, tally.entries);
}

/// Counts missing events as published. An intruder with all rights would do this after removing a part of the past with its heads,
/// leaves and checkpoints. Then the database looks as if it had been set back as a whole.
const COUNTED_ANEW: &str =
    "update outbox_partition set settled = settled + missing_events() where partition = 0";

#[tokio::test]
async fn a_removed_past_is_detected_by_a_kept_checkpoint() {
    let app = TestApp::start().await;
    let keys = keys(&[("one", 1)]);
    approved(&app, "doc-1").await;
    sign(&app.engine, &keys).await;
    let earlier = published(&app).await.pop().expect("a checkpoint");
    let gone = approved(&app, "doc-2").await;
    sign(&app.engine, &keys).await;
    let kept = published(&app).await.pop().expect("a checkpoint");
    let everything = format!(
        "delete from audit_entry where stream_id = '{gone}'; delete from instance where id = '{gone}';
         delete from decision where instance_id = '{gone}'; delete from task where instance_id = '{gone}';
         delete from state_instance where instance_id = '{gone}'; {COUNTED_ANEW}"
    );
    behind(&app, &everything).await;
    // The leaves still contain the instance.
    let (_, findings) = verify(&app, &keys, &[]).await;
    assert!(
        findings
            .iter()
            .all(|it| it.code == "entry_missing" && it.id == gone.0),
        "{findings:?}"
    );
    assert!(!findings.is_empty());
    let log = format!(
        "delete from audit_leaf where leaf >= {size}; delete from checkpoint where number > {number};
         {COUNTED_ANEW}",
        size = earlier.size,
        number = earlier.number
    );
    behind(&app, &log).await;
    assert_eq!(
        verify(&app, &keys, &[]).await.1,
        [],
        "nothing in the database shows it"
    );
    let (_, findings) = verify(&app, &keys, &[earlier.clone(), kept.clone()]).await;
    assert_eq!(
        codes(&findings),
        [format!("checkpoint: rewound {}", kept.number)].into()
    );
    // A different past of the same length is detected, too, even if the signer's key was stolen.
    behind(&app, "update checkpoint_cursor set pos = pos").await;
    for number in 0..kept.size - earlier.size {
        let sql = format!(
            "insert into refused_attempt (tenant_id, id, occurred_at, actor, action, code, detail)
             values (1, gen_random_uuid(), now(), 'ann', 'claim', 'forbidden', 'n{number}')"
        );
        behind(&app, &sql).await;
    }
    sign(&app.engine, &keys).await;
    assert_eq!(verify(&app, &keys, &[]).await.1, []);
    let (_, findings) = verify(&app, &keys, std::slice::from_ref(&kept)).await;
    assert_eq!(
        codes(&findings),
        [format!("checkpoint: kept {}", kept.number)].into()
    );
    // An invented checkpoint is not accepted.
    let mut made_up = kept;
    made_up.size = 1;
    let (_, findings) = verify(&app, &keys, &[made_up]).await;
    assert!(
        codes(&findings)
            .iter()
            .any(|code| code.contains(": signature ")),
        "{findings:?}"
    );
}

#[tokio::test]
async fn a_removed_tenant_is_detected_by_a_kept_checkpoint() {
    let app = TestApp::start().await;
    let keys = keys(&[("one", 1)]);
    approved(&app, "doc-1").await;
    sign(&app.engine, &keys).await;
    let kept = published(&app).await;
    let of_others = Checkpoint {
        tenant: "other".into(),
        ..kept.last().expect("a checkpoint").clone()
    };
    behind(&app, "delete from tenant").await;
    let gone: BTreeSet<_> = kept
        .iter()
        .map(|kept| format!("checkpoint: rewound {}", kept.number))
        .collect();
    for (tenant, expected) in [
        (Some("default"), gone.clone()),
        (Some("acme"), BTreeSet::new()),
    ] {
        let (_, findings) = verify_of(&app, tenant, &keys, &kept).await;
        assert_eq!(codes(&findings), expected, "{tenant:?}");
    }
    let (_, findings) = verify_of(&app, None, &keys, &kept).await;
    assert!(codes(&findings).is_superset(&gone), "{findings:?}");
    // Its signature is verified like any other.
    let (_, findings) = verify_of(&app, Some("other"), &keys, &[of_others]).await;
    let number = kept.len();
    let expected = ["rewound", "signature"].map(|code| format!("checkpoint: {code} {number}"));
    assert_eq!(codes(&findings), expected.into());
}

/// New entries are found without reading old ones.
#[tokio::test]
async fn new_entries_are_found_by_position() {
    let app = TestApp::start().await;
    let filled = "insert into audit_entry (tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, payload,
            salt, occurred_at, hash)
        select 1, 'operation', gen_random_uuid(), 1, gen_random_uuid(), 'X', 1, gen_random_uuid(), repeat('x', 300),
            '', now(), '' from generate_series(1, 60000)";
    let pool = app.database.admin_pool();
    sqlx::query(filled)
        .execute(pool)
        .await
        .expect("many entries");
    sqlx::query("vacuum analyze audit_entry")
        .execute(pool)
        .await
        .expect("statistics");
    let begin = "select tenant_id, stream_kind, stream_id, seq, hash, xid";
    let node = explained(&app.database, begin, "(50000, 50100)").await;
    let text = node.to_string();
    assert!(text.contains("audit_entry_pos"), "{text}");
    // A plan that is disabled costs 1e10 more up to PostgreSQL 17, and is marked from 18 on.
    let cost = node["Total Cost"].as_f64().expect("a cost");
    assert!(cost < 1e10, "{text}");
    assert!(!text.contains(r#""Disabled":true"#), "{text}");
    let blocks =
        ["Shared Hit Blocks", "Shared Read Blocks"].map(|name| node[name].as_u64().unwrap_or(0));
    let all = count(&app, "select pg_relation_size('audit_entry') / 8192").await;
    assert!(
        blocks.iter().sum::<u64>() * 10 < all,
        "{blocks:?} of {all}: {text}"
    );
    let filled = wrkflw_store::checkpoints::POSITIONS_MAX;
    assert!(filled < 60_000, "one pass takes a part");
}

/// The response of `GET /v1/checkpoints`, newest first.
async fn listed(app: &TestApp) -> Vec<Value> {
    let page = app.get("admin", "/v1/checkpoints?limit=100").await;
    page.expect(200)["data"].as_array().expect("data").clone()
}

fn states(listed: &[Value]) -> Vec<&str> {
    let states = listed.iter();
    states
        .map(|one| one["status"].as_str().expect("a status"))
        .collect()
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story of a list")]
async fn auditors_list_checkpoints_with_their_entries_and_signatures() {
    let app = TestApp::start().await;
    let (first, second) = (keys(&[("one", 1)]), keys(&[("two", 2), ("one", 1)]));
    approved(&app, "doc-1").await;
    sign(&app.engine, &first).await;
    approved(&app, "doc-2").await;
    sign(&app.engine, &second).await;
    let unknown = listed(&app).await;
    let count = unknown.len();
    assert!(count >= 2, "{unknown:?}");
    assert_eq!(
        states(&unknown),
        vec!["UNKNOWN_KEY"; count],
        "this host has no key"
    );

    let app = app.knowing(second).await;
    let all = listed(&app).await;
    assert_eq!(states(&all), vec!["VALID"; count]);
    let kept = published(&app).await;
    for (one, kept) in all.iter().rev().zip(&kept) {
        let signature = wrkflw_core::ids::hex(&kept.signature);
        assert_eq!(
            (
                &one["number"],
                &one["size"],
                &one["keyId"],
                &one["signature"]
            ),
            (
                &json!(kept.number),
                &json!(kept.size),
                &json!(kept.key_id),
                &json!(signature)
            )
        );
    }
    // The entries of the newest checkpoint begin after its cursor.
    let newest = &all[0];
    let after = newest["entriesAfter"].as_str().expect("a cursor");
    let path = format!("/v1/audit?limit=1&after={after}");
    let entries = app.get("admin", &path).await.expect(200);
    assert_eq!(entries["data"][0]["leaf"], newest["firstLeaf"]);
    let oldest = all.last().expect("a checkpoint");
    assert_eq!(
        (&oldest["firstLeaf"], &oldest["entriesAfter"]),
        (&json!(0), &Value::Null)
    );
    // Pages continue where the last one ended.
    let page = app
        .get("admin", "/v1/checkpoints?limit=1")
        .await
        .expect(200);
    assert_eq!(page["data"][0], all[0]);
    let next = page["page"]["next"].as_str().expect("a cursor");
    let path = format!("/v1/checkpoints?limit=1&after={next}");
    let page = app.get("admin", &path).await.expect(200);
    assert_eq!(page["data"][0], all[1]);
    app.get("author", "/v1/checkpoints")
        .await
        .problem(403, "permission_missing");

    // Directly in the database, a checkpoint is changed, and one is deleted.
    let change = "set session_replication_role = replica;
        update checkpoint set signed_at = signed_at + interval '1 second' where number = 1";
    crate::api::sql(&app, change).await;
    let last = listed(&app).await;
    assert_eq!(
        last.last().map(|one| &one["status"]),
        Some(&json!("INVALID"))
    );
    let remove = "set session_replication_role = replica; delete from checkpoint where number = 1";
    crate::api::sql(&app, remove).await;
    let last = listed(&app).await;
    assert_eq!(
        last.last().map(|one| &one["status"]),
        Some(&json!("OUT_OF_ORDER"))
    );
}

//! A tenant whose last checkpoint is not the one that was signed.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::json;
use wrkflw_engine::checkpoint::{Checkpointer, Look};

use super::checkpoints::{SETTLES_WITHIN, checkpointer, count, keys, sign, verify};
use super::verify::{approved, behind};
use crate::support::app::TestApp;
use wrkflw_store::directory::tenants;

/// The leaves of all tenants but the first.
const OTHERS: &str = "select sum(leaves_in(digests))::bigint from audit_leaf where tenant_id <> 1";

/// Inserts refused attempts of a tenant.
async fn refused(app: &TestApp, tenant: &str, count: u32) {
    let copy = format!(
        "insert into refused_attempt (tenant_id, id, occurred_at, actor, action, code, detail)
        select id, gen_random_uuid(), now(), 'ann', 'claim', 'forbidden', 'x' from tenant, generate_series(1, {count})
        where name = '{tenant}'"
    );
    behind(app, &copy).await;
}

/// Signs until the other tenants have this many leaves.
async fn others_go_on(app: &TestApp, signer: &Checkpointer, leaves: u64) {
    let deadline = Instant::now() + SETTLES_WITHIN;
    while count(app, OTHERS).await < leaves {
        signer.look().await.expect("a look");
        assert!(Instant::now() < deadline, "the others wait");
        crate::support::pause().await;
    }
}

/// Other tenants are not delayed. When the checkpoint is restored, the waiting entries become leaves.
#[tokio::test]
async fn a_changed_tree_is_not_signed() {
    let app = TestApp::start().await;
    let keys = keys(&[("one", 1)]);
    approved(&app, "doc-1").await;
    let (store, roles) = (app.store(), BTreeMap::new());
    let other = tenants::ensure_tenant(store, "other", &roles, app.engine.clock().now());
    other.await.expect("a tenant");
    sign(&app.engine, &keys).await;
    let kept = "create table kept_one as select * from checkpoint where tenant_id = 1";
    behind(&app, kept).await;
    let kept = "create table kept_leaves as select * from audit_leaf where tenant_id = 1";
    behind(&app, kept).await;
    let own = "select count(*) from audit_leaf where tenant_id = 1 and seq >= 0";
    let (before, mut at_others) = (count(&app, own).await, count(&app, OTHERS).await);
    let signer = checkpointer(&app.engine, &keys);
    for change in [
        "update checkpoint set size = size + 1 where tenant_id = 1",
        "update checkpoint set root = sha256(root) where tenant_id = 1",
        "update checkpoint set key_id = 'gone' where tenant_id = 1",
        "update checkpoint set frontier = substring(frontier for length(frontier) - 32) || sha256(frontier) where tenant_id = 1",
        "update checkpoint set size = -9223372036854775808 where tenant_id = 1",
        "delete from checkpoint where tenant_id = 1",
        // Leaves behind the tree: a digest of the last run, a run without a digest, and one with the largest number.
        "update audit_leaf set digests = digests || sha256('') where leaf = (select max(leaf) from audit_leaf where tenant_id = 1)
            and tenant_id = 1",
        "insert into audit_leaf select 1, max(size), 'instance', gen_random_uuid(), -1, '' from kept_one",
        "insert into audit_leaf values (1, 9223372036854775807, 'instance', gen_random_uuid(), -1, sha256(''))",
    ] {
        let whole = "delete from checkpoint where tenant_id = 1; insert into checkpoint table kept_one;
            delete from audit_leaf where tenant_id = 1; insert into audit_leaf table kept_leaves";
        behind(&app, &format!("{whole}; {change}")).await;
        app.started(&format!("doc-{}", wrkflw_runtime::clock::new_id()))
            .await;
        refused(&app, "other", 1).await;
        at_others += 1;
        others_go_on(&app, &signer, at_others).await;
        // A second pass finds the same.
        let look = signer.look().await.expect("a look");
        assert!(matches!(look, Look::Signed { held: 1, .. }), "{look:?}");
        assert_eq!(count(&app, own).await, before, "{change}");
    }
    let whole = "delete from audit_leaf where tenant_id = 1; insert into audit_leaf table kept_leaves; delete from checkpoint where tenant_id = 1";
    behind(&app, whole).await;
    // More than one pass adds.
    refused(&app, "default", 12_000).await;
    refused(&app, "other", 1).await;
    others_go_on(&app, &signer, at_others + 1).await;
    behind(&app, "insert into checkpoint table kept_one").await;
    let stranger = checkpointer(&app.engine, &self::keys(&[("other", 9)]));
    let error = stranger.look().await.expect_err("an unknown key");
    assert!(
        error.to_string().contains("keep it in checkpoint_keys"),
        "{error}"
    );
    let look = signer.look().await.expect("a look");
    let goes_on = matches!(
        look,
        Look::Signed {
            checkpoints: 1..,
            held: 1,
            is_cut: true
        }
    );
    assert!(goes_on, "{look:?}");
    assert!(count(&app, own).await > before);
    assert!(sign(&app.engine, &keys).await > 0);
    let (tally, findings) = verify(&app, &keys, &[]).await;
    assert_eq!(findings, []);
    // A refused attempt is a leaf, but no entry.
    assert_eq!(tally.leaves, tally.entries + 12_010);
    let held = "select count(*) from tenant where checkpoint_pos is not null";
    assert_eq!(count(&app, held).await, 0);
}

/// Somebody has added a row that the next entry of an instance would need.
#[tokio::test]
async fn a_leaf_in_the_way_holds_its_tenant_alone() {
    let app = TestApp::start().await;
    let keys = keys(&[("one", 1)]);
    let instance = app.started("doc-1").await;
    let id = instance["id"].as_str().expect("an id");
    let (store, roles) = (app.store(), BTreeMap::new());
    let other = tenants::ensure_tenant(store, "other", &roles, app.engine.clock().now());
    other.await.expect("a tenant");
    sign(&app.engine, &keys).await;
    let in_the_way = format!(
        "insert into audit_leaf select 1, max(leaf) + 1, 'instance', '{id}', 4, sha256('') from audit_leaf where tenant_id = 1 and stream_id = '{id}'"
    );
    behind(&app, &in_the_way).await;
    let comment = json!({ "comment": "Why so long?" });
    let path = format!("/v1/instances/{id}/comment");
    app.post("reviewer", &path, comment).await.expect(200);
    let seq = "select max(seq) from audit_entry where stream_kind = 'instance'";
    assert_eq!(count(&app, seq).await, 4);
    refused(&app, "other", 1).await;
    let at_others = count(&app, OTHERS).await + 1;
    let signer = checkpointer(&app.engine, &keys);
    others_go_on(&app, &signer, at_others).await;
    let look = signer.look().await.expect("a look");
    assert!(matches!(look, Look::Signed { held: 1, .. }), "{look:?}");
    behind(&app, "delete from audit_leaf where digests = sha256('')").await;
    assert!(sign(&app.engine, &keys).await > 0);
    assert_eq!(verify(&app, &keys, &[]).await.1, []);
}

/// Even a host that has known no key of a checkpoint before reports it.
#[tokio::test]
async fn a_missing_key_delays_no_other_tenant() {
    let app = TestApp::start().await;
    let keys = keys(&[("one", 1)]);
    let (store, roles) = (app.store(), BTreeMap::new());
    let other = tenants::ensure_tenant(store, "other", &roles, app.engine.clock().now());
    other.await.expect("a tenant");
    sign(&app.engine, &keys).await;
    let renamed = "update checkpoint set key_id = 'gone' where tenant_id = 1";
    behind(&app, renamed).await;
    refused(&app, "default", 1).await;
    let own = "select sum(leaves_in(digests))::bigint from audit_leaf where tenant_id = 1";
    let (before, at_others) = (count(&app, own).await, count(&app, OTHERS).await);
    let host = checkpointer(&app.engine, &keys);
    let deadline = Instant::now() + SETTLES_WITHIN;
    while host.look().await.is_ok() {
        assert!(Instant::now() < deadline, "the missing key is not reported");
        crate::support::pause().await;
    }
    refused(&app, "other", 1).await;
    while count(&app, OTHERS).await == at_others {
        // It fails until the entry of the other tenant has settled.
        drop(host.look().await);
        assert!(Instant::now() < deadline, "the other waits");
        crate::support::pause().await;
    }
    let look = host.look().await.expect("a look");
    assert!(matches!(look, Look::Signed { held: 1, .. }), "{look:?}");
    assert_eq!(count(&app, own).await, before);
    let restored = "update checkpoint set key_id = 'one' where tenant_id = 1";
    behind(&app, restored).await;
    assert!(sign(&app.engine, &keys).await > 0);
    assert_eq!(verify(&app, &keys, &[]).await.1, []);
    assert_eq!(count(&app, own).await, before + 1);
}

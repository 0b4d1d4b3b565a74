//! Rows that an intruder inserts by hand, one by one; and rows from before entries recorded them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;
use wrkflw_audit::record::Record as _;
use wrkflw_audit::verify::Finding;
use wrkflw_store::outbox::{ClaimStart, Outbox, Parked, Settlement};

use super::super::checkpoints::{keys, sign};
use super::super::verify::{approved, behind, brief, everything};
use super::{history, restore};
use crate::support::app::TestApp;
use wrkflw_store::directory::tenants;

/// Rows by which an intruder could approve other people's work, or hide it afterwards.
const BY_HAND: [(&str, &str, &str); 24] = [
    (
        "membership",
        "membership",
        "insert into membership select id, 'outsider', 'approvers', now() from tenant",
    ),
    (
        "membership",
        "membership",
        "update membership set valid_to = null, group_id = 'approvers' where person_id = 'author' and group_id = 'authors'",
    ),
    (
        "manager",
        "manager",
        "insert into manager select id, 'author', 'outsider', now() from tenant",
    ),
    (
        "absence",
        "absence",
        "insert into absence select id, gen_random_uuid(), 'approver', 'outsider', null, now() - interval '1 day', now() + interval '1 day', now(), 'approver' from tenant",
    ),
    (
        "role_permission",
        "role_permission",
        "insert into role_permission select id, 'user', 'task:assign' from tenant",
    ),
    (
        "attribute",
        "attribute",
        "update attribute set text_value = 'US' where name = 'region'",
    ),
    (
        "attribute",
        "attribute",
        "update attribute set float_value = 0.75 where name = 'score'",
    ),
    (
        "state",
        "state_instance",
        "update state_instance set left_actor = 'approver' where left_at is not null and left_actor = 'reviewer'",
    ),
    (
        "task",
        "task",
        "update task set candidates = '[{\"type\":\"user\",\"id\":\"outsider\"}]' where status = 'COMPLETED'",
    ),
    (
        "candidate",
        "task_candidate",
        "insert into task_candidate select tenant_id, 'user', 'outsider', id from task where status = 'COMPLETED'",
    ),
    (
        "candidate",
        "task_candidate",
        "insert into task_candidate select tenant_id, 'user', 'outsider', id from task where status = 'CLAIMED'",
    ),
    (
        "signal_subscription",
        "signal_subscription",
        "insert into signal_subscription select tenant_id, 'order 8', trigger, entered_at, state_id, instance_id from signal_subscription",
    ),
    (
        "definition",
        "definition",
        "update definition set active_version = 2 where key = 'document-approval'",
    ),
    (
        "version",
        "definition_version",
        "update definition_version set graph = replace(graph, '\"initiators\":[', '\"initiators\":[\"outsiders\",')",
    ),
    (
        "version",
        "definition_version",
        "update definition_version set graph = replace(graph, 'Final review', 'Rubber stamp')",
    ),
    (
        "definition",
        "definition",
        "insert into definition select tenant_id, 'made-up', gen_random_uuid(), 1, 1, created_at from definition where key = 'document-approval'",
    ),
    (
        "version",
        "definition_version",
        "insert into definition_version select tenant_id, 'made-up', version, digest, config, config_digest, graph, sdk, wit, published_at, published_by
        from definition_version where key = 'document-approval' and version = 1",
    ),
    (
        "declaration",
        "attribute_declaration",
        "insert into attribute_declaration select distinct tenant_id, name, 'made-up', type from attribute_declaration",
    ),
    (
        "operation",
        "bulk_operation",
        "insert into bulk_operation select tenant_id, gen_random_uuid(), action, settings, requested_by, roles, created_at, total, more from bulk_operation",
    ),
    (
        "engine_profile",
        "engine_profile",
        "update engine_profile set profile = replace(profile, 'canonical', 'any')",
    ),
    (
        "subscription",
        "subscription",
        "update subscription set url = 'https://elsewhere.example/'",
    ),
    (
        "calendar",
        "calendar",
        "update calendar set settings = replace(settings, 'Berlin', 'Paris')",
    ),
    (
        "reply",
        "idempotency_key",
        "update idempotency_key set body = replace(body, 'CLAIMED', 'PENDING')",
    ),
    (
        "reply",
        "idempotency_key",
        "insert into idempotency_key select tenant_id, principal, 'k-2', fingerprint, status, body, headers, command_id, created_at
        from idempotency_key",
    ),
];

#[tokio::test]
async fn inserted_rows_are_found() {
    let (app, ..) = history().await;
    assert_eq!(everything(&app).await.1, []);
    let tables: BTreeSet<&str> = BY_HAND.iter().map(|(_, table, _)| *table).collect();
    for table in tables {
        behind(
            &app,
            &format!("create table \"kept_{table}\" as table \"{table}\""),
        )
        .await;
    }
    for (code, table, change) in BY_HAND {
        behind(&app, change).await;
        let (_, findings) = everything(&app).await;
        let found = |finding: &Finding| {
            finding.code == code && finding.detail.starts_with(&format!("{table} ("))
        };
        assert!(findings.iter().any(found), "{change}: {findings:#?}");
        restore(&app, table).await;
    }
    assert_eq!(everything(&app).await.1, []);
}

/// Verification reads pages by ids and numbers. It begins with the lowest possible ones, which no host generates.
#[tokio::test]
async fn the_lowest_ids_hide_nothing() {
    let app = TestApp::start().await;
    approved(&app, "doc-1").await;
    sign(&app.engine, &keys(&[("one", 1)])).await;
    let nil = Uuid::nil();
    let copied = |table: &str, id: &str| {
        let copy = format!(
            "insert into {table} select (jsonb_populate_record(r, '{{\"{id}\": \"{nil}\"}}')).* from {table} r limit 1"
        );
        (copy, format!("delete from {table} where {id} = '{nil}'"))
    };
    let unlogged = format!(
        "insert into refused_attempt (tenant_id, id, occurred_at, actor, action, code, detail, pos)
            values (1, '{nil}', now(), 'ann', 'claim', 'forbidden', 'none', 1);
        insert into audit_leaf values (1, -1, 'refused', '{nil}', 0, '')"
    );
    let logged_again = "delete from refused_attempt; delete from audit_leaf where leaf < 0";
    let tenant = |id: i32| {
        let insert = format!(
            "insert into tenant (id, name, created_at) overriding system value values ({id}, 'moved', now())"
        );
        (insert, "delete from tenant where name = 'moved'".to_owned())
    };
    for ((change, undo), expected) in [
        (copied("instance", "id"), "instance: head 0"),
        (
            copied("decision", "task_id"),
            "instance: decision_unrecorded",
        ),
        ((unlogged, logged_again.to_owned()), "refused: unlogged 0"),
        (tenant(-1), "directory: tenant"),
        (tenant(i32::MIN), "directory: tenant"),
    ] {
        behind(&app, &change).await;
        let found = brief(&everything(&app).await.1);
        assert!(found.iter().any(|it| it == expected), "{change}: {found:?}");
        behind(&app, &undo).await;
    }
    assert_eq!(everything(&app).await.1, []);
}

/// A database of a release without entries about tenants: the permissions of roles are recorded once, in their present state.
#[tokio::test]
async fn permissions_of_roles_are_recorded_if_no_entry_has_them() {
    let app = TestApp::empty().await;
    let store = app.store();
    let now = app.engine.clock().now();
    let earlier = "insert into tenant (name, created_at) values ('earlier', '2025-01-01');
        insert into role_permission select id, 'user', 'task:act' from tenant where name = 'earlier'";
    behind(&app, earlier).await;
    let (_, findings) = everything(&app).await;
    let codes: Vec<_> = findings.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["role_permission", "tenant"], "{findings:#?}");
    for _ in 0..2 {
        tenants::record_tenants(store, now).await.expect("recorded");
        assert_eq!(everything(&app).await.1, []);
    }
    let payloads: Vec<Value> =
        sqlx::query_scalar("select payload::jsonb from audit_entry where type = 'TENANT_RECORDED'")
            .fetch_all(app.database.admin_pool())
            .await
            .expect("entries");
    assert_eq!(payloads.len(), 1, "{payloads:?}");
    assert_eq!(payloads[0]["roles"], json!({ "user": ["task:act"] }));
}

/// Publishes all waiting events, as if the broker acknowledged them. On request, the last event is refused.
async fn publish(outbox: &Outbox, refuse: bool) {
    while let Some(claim) = outbox
        .claim(ClaimStart::Everything, &BTreeMap::new())
        .await
        .expect("a claim")
    {
        let mut acknowledged: Vec<_> = claim.events.iter().map(|event| event.pos).collect();
        let refused = acknowledged.pop_if(|_| refuse).map(|pos| Parked {
            pos,
            error: "too large".to_owned(),
            attempts: 3,
        });
        let settlement = Settlement {
            acknowledged,
            parked: refused.into_iter().collect(),
            floor: None,
        };
        claim.settle(settlement).await.expect("settled");
    }
}

#[tokio::test]
async fn the_deletion_of_an_event_from_the_outbox_is_found() {
    let app = TestApp::start().await;
    let outbox = app.store().outbox();
    let parked = app.started("doc-1").await;
    assert_eq!(everything(&app).await.1, [], "all wait");
    publish(&outbox, true).await;
    assert_eq!(everything(&app).await.1, [], "one is parked");
    let path = format!("/v1/dead-letters/{}", parked["id"].as_str().expect("an id"));
    let listed = app.get("admin", &path).await.expect(200);
    let body = json!({ "entry": listed["data"][0]["entry"], "reason": "Nobody reads it." });
    let discarded = app.post("admin", &format!("{path}/discard"), body).await;
    discarded.expect(200);
    assert_eq!(everything(&app).await.1, [], "it is given up");
    app.started("doc-2").await;
    let one = "delete from outbox_event where pos = (select min(pos) from outbox_event)";
    behind(&app, one).await;
    for _ in 0..2 {
        let (_, findings) = everything(&app).await;
        assert_eq!(brief(&findings), ["outbox: outbox"]);
        let detail = &findings[0].detail;
        assert!(detail.ends_with("nor settled: 1"), "{detail}");
        // The finding remains after the others have been published.
        publish(&outbox, false).await;
    }
}

/// The count reads all entries of all tenants. In a large installation that takes longer than a query of the API may.
#[tokio::test]
async fn the_count_of_events_has_the_time_limit_of_a_snapshot() {
    let app = TestApp::empty().await;
    let counts_its_limit = "create or replace function missing_events() returns bigint language sql stable security definer
        as $$ select setting::bigint from pg_settings where name = 'statement_timeout' $$";
    behind(&app, counts_its_limit).await;
    let reader = app.engine.reader();
    assert_eq!(
        reader.missing_events().await.expect("a count"),
        0,
        "no limit"
    );
    let somebody_waits = reader.limiting_snapshots(Duration::from_secs(7));
    let limit = somebody_waits.missing_events().await.expect("a count");
    assert_eq!(limit, 7000);
}

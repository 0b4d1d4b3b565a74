//! The four roles of the database, and the rules of its schema: what the host cannot do even if its code is wrong.

use std::collections::BTreeSet;

use serde_json::json;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _};

use wrkflw::sample::DOCUMENT_APPROVAL;

use crate::support::app::{TestApp, task_of};

/// Rows are never changed or deleted.
const APPEND_ONLY: [&str; 6] = [
    "audit_entry",
    "audit_leaf",
    "checkpoint",
    "decision",
    "delegation_seal",
    "refused_attempt",
];
/// Tables that determine who may do what. Each change of them changes the access mark.
const COUNTED: [&str; 6] = [
    "absence",
    "calendar",
    "manager",
    "membership",
    "person",
    "role_permission",
];
/// These changes change it as well: another version is active, or a version is stopped.
const CHANGE_COUNTED: [&str; 2] = ["definition_changed", "definition_version_changed"];
/// Processed in its own order, across all tenants.
const NOT_BY_TENANT: [&str; 1] = ["outbox_event"];
/// All privileges of these kinds that the roles have: the role, the kind, the tables.
const GRANTS: [(&str, &str, &[&str]); 5] = [
    (
        "relay",
        "select",
        &[
            "audit_entry",
            "checkpoint",
            "dead_letter",
            "definition_version",
            "instance",
            "outbox_event",
            "outbox_partition",
            "state_instance",
            "task",
            "tenant",
        ],
    ),
    ("relay", "insert", &["dead_letter"]),
    ("relay", "update", &["outbox_partition"]),
    ("relay", "delete", &["outbox_event"]),
    (
        "writer",
        "delete",
        &[
            "attribute",
            "bulk_item",
            "calendar",
            "dead_letter",
            "descendant_place",
            "draft",
            "host",
            "idempotency_key",
            "job",
            "muted_notification",
            "notification",
            "reassessment",
            "role_permission",
            "saved_view",
            "series_point",
            "session",
            "signal",
            "signal_inbox",
            "signal_subscription",
            "subscription",
            "task_candidate",
            "webhook_attempt",
            "webhook_delivery",
        ],
    ),
];
/// Rows that the notifier would write.
const TOLD: &str = "
    insert into notification (tenant_id, id, kind, recipient_kind, recipient, instance_id, event_id, created_at)
    select tenant_id, id, 'STATUS_CHANGED', 'user', initiator, id, id, started_at from instance;
    insert into muted_notification (tenant_id, person_id, kind) select tenant_id, initiator, 'MENTION' from instance;
    insert into subscription (tenant_id, id, url, types, secret, active, created_at, created_by)
    select tenant_id, id, 'https://example.org/', '{*}', '', true, started_at, 'admin' from instance;
    insert into webhook_delivery
    (tenant_id, subscription_id, message_id, notifies, instance_id, seq, created_at, due_at)
    select tenant_id, id, id, false, id, 1, started_at, started_at from instance";
const INSUFFICIENT_PRIVILEGE: &str = "42501";
const RESTRICT_VIOLATION: &str = "23001";

/// A service with a row in every table that has tenants and that readers may read.
async fn used() -> TestApp {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let instance = app
        .decided("reviewer", &instance, json!({ "outcome": "APPROVE" }))
        .await;
    let claim = format!("/v1/tasks/{}/claim", task_of(&instance));
    app.post("outsider", &claim, json!({}))
        .await
        .problem(403, "forbidden");
    let delegate = claim.replace("/claim", "/delegate");
    app.post("approver", &claim, json!({})).await.expect(200);
    let to = json!({ "to": "reviewer2", "reason": "away" });
    app.post("approver", &delegate, to).await.expect(200);
    let manager = json!({ "manager": "approver" });
    app.put("admin", "/v1/people/reviewer/manager", manager)
        .await
        .expect(200);
    let absence = json!({
        "substitute": "reviewer2", "from": "2100-01-01T00:00:00Z", "until": "2100-02-01T00:00:00Z",
    });
    app.post("reviewer", "/v1/people/reviewer/absences", absence)
        .await
        .expect(201);
    let rest = "insert into attribute (tenant_id, instance_id, name, type, text_value)
        select tenant_id, id, 'title', 'text', 'A plan' from instance;
        insert into attribute_declaration select tenant_id, 'title', definition_key, 'text' from instance;
        insert into calendar select tenant_id, 'office', '{}', started_at from instance;
        insert into dead_letter (tenant_id, instance_id, seq, partition, pos, error, attempts, parked_at)
        select tenant_id, id, 1, 0, 1, 'refused', 3, started_at from instance;
        insert into job (tenant_id, id, kind, instance_id, due_at, payload)
        select tenant_id, id, 'deadline', id, started_at, '{}' from instance;
        insert into descendant_count select tenant_id, id, 1 from instance;
        insert into descendant_place select tenant_id, id, id from instance;
        insert into audit_leaf select tenant_id, 0, 'instance', id, 1, audit_head from instance;
        insert into checkpoint select tenant_id, 1, 1, audit_head, audit_head, started_at, 'k', '', '' from instance;
        insert into webhook_attempt select tenant_id, id, id, started_at, 200, 1, null from instance;
        insert into signal select tenant_id, id, 's-1', started_at from instance;
        insert into session (tenant_id, id, secret_digest, person, roles, client, created_at, used_at, expires_at)
        select tenant_id, id, '', 'author', '{user}', '', started_at, started_at, started_at from instance;
        insert into preference select tenant_id, 'author', 'de', null, null from instance;
        insert into series_point select tenant_id, 'starts', started_at, 1, '', 1 from instance;
        insert into saved_view select tenant_id, 'author', id, 'Mine', 'view=mine', true from instance;
        insert into draft select tenant_id, 'author', id, 'So', started_at from instance;
        insert into signal_subscription select tenant_id, 'c-1', 'GO', started_at, id, id from instance;
        insert into signal_inbox (tenant_id, correlation, signal_id, trigger, input, sender, received_at)
        select tenant_id, 'c-1', 's-1', 'GO', '{}', '{}', started_at from instance";
    sqlx::raw_sql(rest)
        .execute(app.database.admin_pool())
        .await
        .expect("the rest");
    let many = json!({ "definitionKey": "document-approval", "fromVersion": 1, "version": 2 });
    let config = json!({ "reviewers": "approvers" });
    app.publish("document-approval", DOCUMENT_APPROVAL, &config)
        .await
        .expect(201);
    app.post("admin", "/v1/migrations", many).await.expect(201);
    sqlx::raw_sql(TOLD)
        .execute(app.database.admin_pool())
        .await
        .expect("notifications and webhooks");
    app
}

async fn connection(app: &TestApp, role: &str) -> PgConnection {
    let mut connection = PgConnection::connect(app.database.url())
        .await
        .expect("a connection");
    execute(&mut connection, &format!("set role {role}"))
        .await
        .expect("a role");
    connection
}

/// Executes a statement and rolls it back. Returns its SQLSTATE if it failed.
async fn attempt(connection: &mut PgConnection, sql: &str) -> Result<(), String> {
    let mut transaction = connection.begin().await.expect("a transaction");
    let done = execute(&mut transaction, sql).await;
    transaction.rollback().await.expect("a rollback");
    done
}

async fn execute(connection: &mut PgConnection, sql: &str) -> Result<(), String> {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(connection)
        .await;
    let state = |error: sqlx::Error| {
        error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code)
            .map(Into::into)
    };
    done.map(drop)
        .map_err(|error| state(error).unwrap_or_default())
}

async fn names(app: &TestApp, sql: &'static str) -> BTreeSet<String> {
    let names: Vec<String> = sqlx::query_scalar(sql)
        .fetch_all(app.database.admin_pool())
        .await
        .expect("names");
    names.into_iter().collect()
}

async fn tenant_tables(app: &TestApp) -> BTreeSet<String> {
    let tables = names(
        app,
        "select table_name::text from information_schema.columns where table_schema = 'public' and column_name = 'tenant_id'",
    )
    .await;
    assert!(tables.len() > 15, "{tables:?}");
    tables
}

#[tokio::test]
async fn nobody_changes_append_only_tables() {
    let app = used().await;
    let mut writer = connection(&app, "wrkflw_writer").await;
    let mut owner = connection(&app, "wrkflw_owner").await;
    let mut superuser = connection(&app, "none").await;
    for table in APPEND_ONLY {
        for change in [
            format!("update {table} set tenant_id = tenant_id"),
            format!("update {table} set tenant_id = 0 where false"),
            format!("delete from {table}"),
            format!("truncate {table}"),
        ] {
            assert_eq!(
                attempt(&mut writer, &change).await,
                Err(INSUFFICIENT_PRIVILEGE.into()),
                "{change}"
            );
            assert_eq!(
                attempt(&mut owner, &change).await,
                Err(RESTRICT_VIOLATION.into()),
                "{change}"
            );
            assert_eq!(
                attempt(&mut superuser, &change).await,
                Err(RESTRICT_VIOLATION.into()),
                "{change}"
            );
            // An intruder would have to do this. The chain detects it.
            let disarmed = format!("alter table {table} disable trigger all; {change}");
            assert_eq!(attempt(&mut superuser, &disarmed).await, Ok(()), "{change}");
            assert_eq!(
                attempt(&mut writer, &disarmed).await,
                Err(INSUFFICIENT_PRIVILEGE.into()),
                "{change}"
            );
        }
    }
}

#[tokio::test]
async fn the_reader_sees_one_tenant() {
    let app = used().await;
    let mut reader = connection(&app, "wrkflw_reader").await;
    // The copied rows belong to instances that their tenant does not have.
    let part = "insert into participant select tenant_id, id, 'user', initiator from instance";
    let part = sqlx::query(part).execute(app.database.admin_pool());
    part.await.expect("a participant");
    let mut seen = 0;
    for table in tenant_tables(&app).await {
        let count = format!("select from \"{table}\"");
        if attempt(&mut reader, &count).await == Err(INSUFFICIENT_PRIVILEGE.into()) {
            continue;
        }
        let copy = app.database.shadow(&table, 99).await;
        sqlx::raw_sql(AssertSqlSafe(copy))
            .execute(app.database.admin_pool())
            .await
            .expect(&table);
        for (tenant, expected) in [
            ("", None),
            ("1", Some(vec![1])),
            ("99", Some(vec![99])),
            ("2", None),
        ] {
            let set = sqlx::query("select set_config('wrkflw.tenant', $1, false)").bind(tenant);
            set.execute(&mut reader).await.expect("a setting");
            let tenants = format!("select array_agg(distinct tenant_id) from \"{table}\"");
            let tenants = sqlx::query_scalar::<_, Option<Vec<i32>>>(AssertSqlSafe(tenants));
            assert_eq!(
                tenants.fetch_one(&mut reader).await.expect("tenants"),
                expected,
                "{table} under {tenant:?}"
            );
        }
        seen += 1;
    }
    assert!(seen >= 14, "{seen} tables");
    // Nothing is visible if the setting was never made.
    let mut fresh = connection(&app, "wrkflw_reader").await;
    let count: i64 = sqlx::query_scalar("select count(*) from instance")
        .fetch_one(&mut fresh)
        .await
        .expect("a count");
    assert_eq!(count, 0);
}

#[tokio::test]
async fn each_role_may_only_do_its_own_work() {
    let app = TestApp::empty().await;
    let granted = names(
        &app,
        "select r.role || ' ' || p.privilege || ' ' || c.relname::text
         from pg_class c, unnest(array['reader', 'relay', 'writer']) r (role),
              unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger']) p (privilege)
         where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and has_table_privilege('wrkflw_' || r.role, c.oid, p.privilege)",
    )
    .await;
    let of = |role: &str, privileges: &[&str]| -> BTreeSet<&str> {
        let held = granted
            .iter()
            .filter_map(|grant| grant.strip_prefix(role)?.strip_prefix(' ')?.split_once(' '));
        held.filter(|(privilege, _)| privileges.contains(privilege))
            .map(|(_, table)| table)
            .collect()
    };
    assert_eq!(
        of(
            "reader",
            &[
                "insert",
                "update",
                "delete",
                "truncate",
                "references",
                "trigger"
            ]
        ),
        BTreeSet::new()
    );
    // Column privileges on subscriptions: all columns but the secret.
    for secret in ["idempotency_key", "subscription", "notifier_cursor"] {
        assert!(!of("reader", &["select"]).contains(secret), "{secret}");
    }
    for (role, privilege, tables) in GRANTS {
        let tables: BTreeSet<_> = tables.iter().copied().collect();
        assert_eq!(of(role, &[privilege]), tables, "{role} {privilege}");
    }
    assert_eq!(
        of("writer", &["truncate", "references", "trigger"]),
        BTreeSet::new()
    );
    for table in APPEND_ONLY
        .into_iter()
        .chain(["component", "engine_profile", "outbox_event"])
    {
        assert!(
            !of("writer", &["update", "delete"]).contains(table),
            "{table}"
        );
    }
    let mut relay = connection(&app, "wrkflw_relay").await;
    assert_eq!(
        attempt(&mut relay, "select from person").await,
        Err(INSUFFICIENT_PRIVILEGE.into())
    );
}

#[tokio::test]
async fn the_host_runs_as_these_roles() {
    let app = TestApp::start().await;
    let pool = app.database.admin_pool();
    let instance = app.started("doc-1").await;
    let audit = format!(
        "/v1/instances/{}/audit",
        instance["id"].as_str().expect("an id")
    );
    let claim = format!("/v1/tasks/{}/claim", task_of(&instance));
    // The login is a superuser, who bypasses all privileges. A refusal proves that the session has taken on the role.
    for (role, table) in [
        ("wrkflw_reader", "audit_entry"),
        ("wrkflw_writer", "instance"),
        ("wrkflw_relay", "outbox_partition"),
    ] {
        let requests = async || {
            let read = app.get("admin", &audit).await.status;
            let write = app
                .post("reviewer", &format!("{claim}?dryRun=true"), json!({}))
                .await
                .status;
            let relay = app.store().outbox().backlog().await.is_ok();
            (read, write, relay)
        };
        assert_eq!(requests().await, (200, 200, true));
        let change =
            |verb: &str, way: &str| AssertSqlSafe(format!("{verb} select on {table} {way} {role}"));
        sqlx::raw_sql(change("revoke", "from"))
            .execute(pool)
            .await
            .expect("a revocation");
        let expected = match role {
            "wrkflw_reader" => (500, 200, true),
            "wrkflw_writer" => (200, 500, true),
            _ => (200, 200, false),
        };
        assert_eq!(requests().await, expected, "{role}");
        sqlx::raw_sql(change("grant", "to"))
            .execute(pool)
            .await
            .expect("a grant");
    }
}

#[tokio::test]
async fn the_schema_keeps_its_rules() {
    let app = TestApp::empty().await;
    let tenants = tenant_tables(&app).await;
    let secured = names(
        &app,
        "select relname::text from pg_class where relkind = 'r' and relrowsecurity",
    )
    .await;
    assert_eq!(
        tenants, secured,
        "tables of a tenant, and tables with row-level security"
    );
    let without = names(
        &app,
        "select c.relname::text from pg_class c where relkind = 'r' and relrowsecurity and not exists (
             select from pg_policy p where p.polrelid = c.oid and 'wrkflw_reader'::regrole = any(p.polroles))",
    )
    .await;
    assert_eq!(
        without,
        BTreeSet::new(),
        "tables without a policy for the reader"
    );
    let foreign = names(
        &app,
        "select conname::text from pg_constraint where contype = 'f'",
    )
    .await;
    assert_eq!(foreign, BTreeSet::new(), "foreign keys");
    let triggers = names(
        &app,
        "select tgname::text from pg_trigger where not tgisinternal",
    )
    .await;
    let kept = APPEND_ONLY
        .iter()
        .map(|table| format!("{table}_append_only"));
    let counted = COUNTED
        .iter()
        .flat_map(|table| ["added", "changed", "removed"].map(|done| format!("{table}_{done}")));
    let counted = counted.chain(CHANGE_COUNTED.map(str::to_owned));
    assert_eq!(triggers, kept.chain(counted).collect());
    let first_columns = names(
        &app,
        "select c.relname || ' ' || a.attname from pg_class c join pg_index i on i.indrelid = c.oid and i.indisprimary
         join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
         where c.relnamespace = 'public'::regnamespace",
    )
    .await;
    for table in tenants
        .iter()
        .filter(|table| !NOT_BY_TENANT.contains(&table.as_str()))
    {
        assert!(
            first_columns.contains(&format!("{table} tenant_id")),
            "the primary key of {table}"
        );
    }
    let owners = names(
        &app,
        "select distinct rolname::text from pg_class c join pg_roles r on r.oid = c.relowner
         where c.relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> '_sqlx_migrations'",
    )
    .await;
    assert_eq!(owners, BTreeSet::from(["wrkflw_owner".to_owned()]));
    let logins = names(&app, "select rolname::text from pg_roles where rolname like 'wrkflw\\_%' and (rolcanlogin or rolsuper or rolbypassrls)").await;
    assert_eq!(
        logins,
        BTreeSet::new(),
        "roles that may more than their grants"
    );
}

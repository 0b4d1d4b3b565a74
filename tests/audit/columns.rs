//! Findings of `audit verify` for every column of the database, and for rows that are inserted by hand into tables of
//! permissions.

mod by_hand;
mod not_promised;
mod proven;
mod reasons;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use sqlx::{AssertSqlSafe, Row as _};
use wrkflw_audit::verify::Finding;

use self::not_promised::NOT_PROMISED;
use self::proven::{PROVEN, UNNAMED};
use super::tampering;
use super::verify::{approved, behind, everything, id};
use crate::api::{hostile_start, with_hostile};
use crate::support::app::{TestApp, task_of};
use crate::support::guests::subflows;

const DOCS: &str = include_str!("../../docs/audit.md");

/// The columns of all tables, as `table.column`, each with its type and whether it may be null.
async fn columns(app: &TestApp) -> BTreeMap<String, (String, bool)> {
    let sql = "select table_name || '.' || column_name,
            case when data_type in ('ARRAY', 'USER-DEFINED') then udt_name else data_type end::text, is_nullable = 'YES'
        from information_schema.columns where table_schema = 'public' and table_name not like '\\_sqlx%'
            and table_name not like 'kept\\_%'";
    let rows = sqlx::query(sql).fetch_all(app.database.admin_pool()).await;
    let column = |row: sqlx::postgres::PgRow| (row.get(0), (row.get(1), row.get(2)));
    rows.expect("columns").into_iter().map(column).collect()
}

#[tokio::test]
async fn every_column_is_proven_or_listed_with_a_reason() {
    let app = TestApp::start().await;
    let named = PROVEN
        .iter()
        .chain(NOT_PROMISED.iter().map(|(name, _)| name));
    let listed: Vec<&str> = named.copied().collect();
    let all: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(listed.len(), all.len(), "a column is in the lists twice");
    let columns = columns(&app).await;
    let there: BTreeSet<&str> = columns.keys().map(String::as_str).collect();
    let unlisted: Vec<_> = there.difference(&all).collect();
    let gone: Vec<_> = all.difference(&there).collect();
    assert!(
        unlisted.is_empty() && gone.is_empty(),
        "tests/audit/columns/ says nothing about {unlisted:?}, and names {gone:?}, which are not there"
    );
    assert!(PROVEN.is_sorted(), "{PROVEN:?}");
    assert!(NOT_PROMISED.is_sorted_by_key(|(name, _)| name));
}

/// The part of the documentation about unproven columns: a line for each reason of a table.
fn documented() -> String {
    let mut reasons: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (name, reason) in NOT_PROMISED {
        let (table, column) = name.split_once('.').expect("a table and a column");
        reasons.entry((table, reason)).or_default().push(column);
    }
    let proven = |table: &str| {
        PROVEN
            .iter()
            .any(|name| name.split_once('.').is_some_and(|(of, _)| of == table))
    };
    let line = |((table, reason), columns): ((&str, &str), Vec<&str>)| {
        let of_table = NOT_PROMISED
            .iter()
            .filter(|(name, _)| name.split_once('.').is_some_and(|(of, _)| of == table));
        let whole = !proven(table) && of_table.count() == columns.len();
        let columns = if whole {
            "all".to_owned()
        } else {
            format!("`{}`", columns.join("`, `"))
        };
        format!("| `{table}` | {columns} | {reason} |\n")
    };
    reasons.into_iter().map(line).collect()
}

#[test]
fn the_documentation_lists_the_unproven_columns() {
    let documented = documented();
    assert!(
        DOCS.contains(&documented),
        "docs/audit.md does not have these lines:\n{documented}"
    );
}

/// Creates rows of every proven kind. Returns the ids of an ended instance and of a running one.
async fn history() -> (TestApp, String, String) {
    let app = TestApp::start().await;
    let completed = approved(&app, "doc-1").await.to_string();
    let open = app.started("doc-2").await;
    let claim = format!("/v1/tasks/{}/claim", task_of(&open));
    let keyed = [("idempotency-key", "k-1")];
    let host = app.host();
    host.send("reviewer", "POST", &claim, &keyed, Some(json!({})))
        .await
        .expect(200);
    with_hostile(&app).await;
    let started = app.post("author", "/v1/instances", hostile_start("t-1", json!({})));
    let started = started.await.started();
    let decision = json!({ "outcome": "GO", "input": { "behaviour": "attributes" } });
    app.decided("reviewer", &started, decision).await;
    let manager = json!({ "manager": "approver" });
    app.put("admin", "/v1/people/reviewer/manager", manager)
        .await
        .expect(200);
    let absence = |month: u8| {
        json!({ "substitute": "reviewer2", "from": format!("2100-{month:02}-01T00:00:00Z"),
            "until": format!("2100-{month:02}-20T00:00:00Z") })
    };
    let path = "/v1/people/reviewer/absences";
    let ended = app.post("reviewer", path, absence(1)).await.expect(201);
    let path_of_it = format!("{path}/{}", ended["absence"]["id"].as_str().expect("an id"));
    let host = app.host();
    host.send("reviewer", "DELETE", &path_of_it, &[], None)
        .await
        .expect(200);
    app.post("reviewer", path, absence(2)).await.expect(201);
    let calendar = json!({ "timeZone": "Europe/Berlin", "hours": { "monday": [{ "from": "09:00", "until": "17:00" }] } });
    app.put("admin", "/v1/calendars/office", calendar)
        .await
        .expect(200);
    let subscription = json!({ "url": "https://example.org/hook", "types": ["*"] });
    app.post("admin", "/v1/subscriptions", subscription)
        .await
        .expect(201);
    app.publish(
        "document-approval",
        wrkflw::sample::DOCUMENT_APPROVAL,
        &json!({ "reviewers": "approvers" }),
    )
    .await
    .expect(201);
    let published = app.publish("subflows", subflows(), &json!({})).await;
    published.expect(201);
    let activation = "/v1/definitions/subflows/versions/1/activate";
    app.post("admin", activation, json!({})).await.expect(200);
    let errand = json!({ "definitionKey": "subflows", "entityType": "errand", "entityId": "1", "data": {
        "wait": { "subscriptions": [{ "trigger": "PAID", "correlation": "order 7" }] } } });
    app.post("author", "/v1/instances", errand).await.started();
    let many = json!({ "definitionKey": "document-approval", "fromVersion": 1, "version": 2 });
    app.post("admin", "/v1/migrations", many).await.expect(201);
    (app, completed, id(&open).to_string())
}

/// A row to change.
struct Victim {
    row: String,
    /// How a finding names it: its id, or the values of its key.
    named: String,
}

impl Victim {
    fn of(row: impl Into<String>, named: &str) -> Self {
        let (row, named) = (row.into(), named.to_owned());
        Self { row, named }
    }

    fn by_id(id: &str) -> Self {
        Self::of(format!("id = '{id}'"), id)
    }
}

async fn text(app: &TestApp, sql: &str) -> String {
    let text = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
    text.fetch_one(app.database.admin_pool())
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The rows whose keys are known beforehand.
fn known() -> [(&'static str, Victim); 11] {
    [
        (
            "attribute",
            Victim::of("name = 'amount'", r#"name "amount""#),
        ),
        (
            "attribute_declaration",
            Victim::of("name = 'amount'", r#"name "amount""#),
        ),
        ("calendar", Victim::of("name = 'office'", "office")),
        (
            "definition_version",
            Victim::of(
                "key = 'document-approval' and version = 1",
                r#"key "document-approval", version 1"#,
            ),
        ),
        ("group", Victim::by_id("reviewers")),
        (
            "manager",
            Victim::of("person_id = 'reviewer'", r#"person_id "reviewer""#),
        ),
        (
            "membership",
            Victim::of(
                "person_id = 'approver'",
                r#"person_id "approver", group_id "approvers""#,
            ),
        ),
        (
            "outbox_partition",
            Victim::of("partition = 0", "all partitions"),
        ),
        ("person", Victim::by_id("reviewer2")),
        (
            "role_permission",
            Victim::of(
                "role = 'user' and permission = 'task:act'",
                r#"role "user", permission "task:act""#,
            ),
        ),
        ("tenant", Victim::of("true", "tenant (id")),
    ]
}

/// One row of each table with a proven column, besides the tables of the audit itself.
async fn victims(app: &TestApp, completed: &str, open: &str) -> BTreeMap<&'static str, Victim> {
    let claimed = text(app, "select id::text from task where status = 'CLAIMED'").await;
    let decided = format!("select min(id::text) from task where instance_id = '{completed}'");
    let decided = text(app, &decided).await;
    let entered = format!("select id::text from state_instance where instance_id = '{open}'");
    let entered = text(app, &entered).await;
    let subscribed = text(app, "select state_id::text from signal_subscription").await;
    let definition = text(
        app,
        "select id::text from definition where key = 'document-approval'",
    )
    .await;
    let absence = text(app, "select id::text from absence where ended_at is null").await;
    let subscription = text(app, "select id::text from subscription").await;
    let operation = text(app, "select id::text from bulk_operation").await;
    let component = text(app, "select encode(digest, 'hex') from definition_version where key = 'document-approval' and version = 1").await;
    let profile = text(app, "select encode(digest, 'hex') from engine_profile").await;
    let repeated = text(app, "select command_id::text from idempotency_key").await;
    let by_id = Victim::by_id;
    let mut victims = BTreeMap::from(known());
    victims.extend([
        ("absence", by_id(&absence)),
        ("bulk_item", Victim::of("true", &operation)),
        ("bulk_operation", by_id(&operation)),
        (
            "component",
            Victim::of(format!("digest = '\\x{component}'"), &component),
        ),
        (
            "definition",
            Victim::of(format!("id = '{definition}'"), "document-approval"),
        ),
        ("engine_profile", Victim::of("true", &profile)),
        ("idempotency_key", Victim::of("key = 'k-1'", &repeated)),
        ("instance", by_id(open)),
        (
            "signal_subscription",
            Victim::of(format!("state_id = '{subscribed}'"), &subscribed),
        ),
        ("state_instance", by_id(&entered)),
        ("subscription", by_id(&subscription)),
        ("task", by_id(&decided)),
        (
            "task_candidate",
            Victim::of(format!("task_id = '{claimed}'"), &claimed),
        ),
    ]);
    victims
}

/// An expression for another value of a column.
fn others(column: &str, (kind, nullable): &(String, bool)) -> Vec<String> {
    let name = column.split_once('.').map_or(column, |(_, name)| name);
    let quoted = format!("\"{name}\"");
    let other = match kind.as_str() {
        _ if column == "tenant.id" => return vec!["default".into()],
        "boolean" => format!("not coalesce({quoted}, true)"),
        "numeric" | "double precision" => format!("coalesce({quoted} + 1, 1)"),
        "_text" => format!("array_append({quoted}, 'x')"),
        "_uuid" => format!("array_append({quoted}, gen_random_uuid())"),
        "timestamp with time zone" => {
            format!("coalesce({quoted} + interval '1 microsecond', '2026-01-01')")
        }
        "bytea" => format!(
            "set_byte(coalesce({quoted}, '\\x00'), 0, get_byte(coalesce({quoted}, '\\x01'), 0) # 1)"
        ),
        kind => tampering::other(&quoted, kind),
    };
    let gone = format!("case when {quoted} is null then {other} end");
    if *nullable {
        vec![other, gone]
    } else {
        vec![other]
    }
}

fn names(finding: &Finding, table: &str, victim: &Victim) -> bool {
    let tables = [table.to_owned(), format!("{table} (")];
    let of_table = finding.detail.starts_with(&tables[1])
        // Columns that were compared since the first release have findings with a code of their own.
        || matches!((table, finding.code), ("instance", "instance" | "head" | "head_missing") | ("task", "task" | "decision_unrecorded"))
        || (table == "instance" && finding.code == "instance");
    of_table && (finding.detail.contains(&victim.named) || finding.id.to_string() == victim.named)
}

/// Whether the finding says that this column of its row is wrong.
fn tells(finding: &Finding, column: &str) -> bool {
    let detail = finding.detail.as_str();
    let text = detail.split_once("): ").map_or(detail, |(_, text)| text);
    let rest = text.strip_prefix(column).unwrap_or_default();
    rest.starts_with(" is ") || rest.starts_with(" of task ")
}

/// The findings that name the changed row.
async fn found(app: &TestApp, table: &str, change: &str, victim: &Victim) -> Vec<Finding> {
    behind(app, change).await;
    let (_, mut findings) = everything(app).await;
    assert!(
        findings.iter().any(|finding| names(finding, table, victim)),
        "{change}: {table} and {:?} are not named in {findings:#?}",
        victim.named
    );
    findings.retain(|finding| names(finding, table, victim));
    findings
}

#[tokio::test]
async fn a_change_of_every_proven_column_is_found_and_named() {
    let (app, completed, open) = history().await;
    assert_eq!(everything(&app).await.1, []);
    let columns = columns(&app).await;
    // An intruder with access to the database would remove such constraints first.
    let rules = "do $$ declare one record; begin
        for one in select conrelid::regclass as name, conname from pg_constraint
            where contype = 'c' and connamespace = 'public'::regnamespace
        loop execute format('alter table %s drop constraint %I', one.name, one.conname); end loop; end $$";
    behind(&app, rules).await;
    let (mut victims, mut changed) = (victims(&app, &completed, &open).await, 0);
    for table in victims.keys() {
        behind(
            &app,
            &format!("create table \"kept_{table}\" as table \"{table}\""),
        )
        .await;
    }
    let (mut unmet, mut unnamed) = (BTreeSet::<&str>::new(), BTreeSet::<&str>::new());
    for column in PROVEN {
        let (table, name) = column.split_once('.').expect("a table and a column");
        if tampering::TABLES.contains(&table) {
            continue;
        }
        let Some(victim) = victims.get(table) else {
            unmet.insert(table);
            continue;
        };
        for value in others(column, &columns[*column]) {
            let change = format!(
                "update \"{table}\" set \"{name}\" = {value} where {}",
                victim.row
            );
            let findings = found(&app, table, &change, victim).await;
            if !findings.iter().any(|finding| tells(finding, name)) {
                unnamed.insert(*column);
            }
            restore(&app, table).await;
            changed += 1;
        }
    }
    assert_eq!(unmet, BTreeSet::new(), "no row of these is changed");
    let expected: BTreeSet<&str> = UNNAMED.iter().copied().collect();
    assert_eq!(unnamed, expected, "no finding names these columns");
    assert!(changed > 100, "{changed} changes");
    // Deleted rows are found, too.
    for (table, victim) in &mut victims {
        if matches!(
            *table,
            "tenant" | "bulk_item" | "idempotency_key" | "outbox_partition"
        ) {
            continue;
        }
        let change = format!("delete from \"{table}\" where {}", victim.row);
        found(&app, table, &change, victim).await;
        restore(&app, table).await;
    }
    assert_eq!(everything(&app).await.1, []);
}

async fn restore(app: &TestApp, table: &str) {
    let generated = if table == "attribute" {
        "tenant_id, instance_id, name, type, text_value, boolean_value, decimal_value, float_value, timestamp_value, bytes_value"
    } else {
        "*"
    };
    let into = if generated == "*" {
        String::new()
    } else {
        format!("({generated})")
    };
    let identity = if table == "tenant" {
        "overriding system value"
    } else {
        ""
    };
    let sql = format!(
        "truncate \"{table}\"; insert into \"{table}\" {into} {identity} select {generated} from \"kept_{table}\""
    );
    behind(app, &sql).await;
}

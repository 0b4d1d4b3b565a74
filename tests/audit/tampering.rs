//! A superuser changes every column of every table of the audit, deletes rows and swaps rows. Each change is found, and the
//! report names the entry. The test reads the columns from the database, so that a new one cannot be forgotten.

use serde_json::json;
use sqlx::{AssertSqlSafe, Row as _};
use wrkflw_audit::record::rows::Which;
use wrkflw_audit::verify::Finding;
use wrkflw_core::ids::InstanceId;

use super::checkpoints::{keys, sign, verify};
use super::verify::{approved, behind, brief};
use crate::support::app::{TestApp, task_of};

/// The tables of the audit.
pub(super) const TABLES: [&str; 7] = [
    "audit_entry",
    "audit_leaf",
    "audit_stream",
    "checkpoint",
    "decision",
    "delegation_seal",
    "refused_attempt",
];

/// Stores each leaf in a row of its own, so that a change of a row concerns one leaf.
const ONE_A_ROW: &str = "with run as (delete from audit_leaf returning *)
    insert into audit_leaf select r.tenant_id, l.leaf, r.stream_kind, r.stream_id, l.seq, l.digest
    from run r cross join lateral leaves_of_run(r.leaf, r.seq, r.digests) l";

/// A row to change, and what the report must name: the kind and id of a stream, and an entry.
struct Victim {
    table: &'static str,
    row: String,
    /// The report must name one of these.
    named: Vec<Named>,
}

/// A stream's kind and id, and an entry of it.
type Named = (String, String, Option<u64>);

/// Three instances, a refusal, a delegation and three checkpoints.
async fn history() -> (TestApp, String) {
    let app = TestApp::start().await;
    let keys = keys(&[("one", 1)]);
    let id = approved(&app, "doc-1").await.to_string();
    sign(&app.engine, &keys).await;
    let open = app.started("doc-2").await;
    let claim = format!("/v1/tasks/{}/claim", task_of(&open));
    app.post("outsider", &claim, json!({}))
        .await
        .problem(403, "forbidden");
    app.post("reviewer", &claim, json!({})).await.expect(200);
    let delegate = format!("/v1/tasks/{}/delegate", task_of(&open));
    let to = json!({ "to": "reviewer2", "reason": "away" });
    app.post("reviewer", &delegate, to).await.expect(200);
    sign(&app.engine, &keys).await;
    approved(&app, "doc-3").await;
    sign(&app.engine, &keys).await;
    behind(&app, ONE_A_ROW).await;
    for table in TABLES {
        behind(&app, &format!("create table kept_{table} as table {table}")).await;
    }
    assert_eq!(verify(&app, &keys, &[]).await.1, []);
    (app, id)
}

async fn text(app: &TestApp, sql: &str) -> String {
    let text = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
    text.fetch_one(app.database.admin_pool())
        .await
        .expect("a text")
}

async fn restore(app: &TestApp, table: &str) {
    behind(
        app,
        &format!("truncate {table}; insert into {table} table kept_{table}"),
    )
    .await;
}

async fn victims(app: &TestApp, id: &str) -> Vec<Victim> {
    let one = |kind: &str, id: &str, seq| vec![(kind.to_owned(), id.to_owned(), seq)];
    let leaf = format!("select leaf::text from audit_leaf where stream_id = '{id}' and seq = 5");
    let leaf = text(app, &leaf).await.parse().expect("a leaf");
    let entry = format!("stream_id = '{id}' and seq = 5");
    let definition = text(app, "select id::text from definition").await;
    let refused = text(app, "select id::text from refused_attempt").await;
    let delegated = text(app, "select instance_id::text from delegation_seal").await;
    let sealed = text(app, "select seq::text from delegation_seal").await;
    let sealed = sealed.parse().expect("a number");
    let nobody = uuid::Uuid::nil().to_string();
    vec![
        Victim {
            table: "audit_entry",
            row: entry.clone(),
            named: one("instance", id, Some(5)),
        },
        // A private entry of a stream without an instance.
        Victim {
            table: "audit_entry",
            row: format!("stream_id = '{definition}' and seq = 2"),
            named: one("definition", &definition, Some(2)),
        },
        // The finding names the entry, or the position of its leaf.
        Victim {
            table: "audit_leaf",
            row: entry,
            named: [
                one("instance", id, Some(5)),
                one("leaf", &nobody, Some(leaf)),
            ]
            .concat(),
        },
        Victim {
            table: "audit_stream",
            row: format!("stream_id = '{definition}'"),
            named: one("definition", &definition, None),
        },
        Victim {
            table: "checkpoint",
            row: "number = 2".into(),
            named: one("checkpoint", &nobody, None),
        },
        Victim {
            table: "decision",
            row: format!("instance_id = '{id}' and outcome = 'REJECT'"),
            named: one("instance", id, Some(5)),
        },
        Victim {
            table: "delegation_seal",
            row: "true".into(),
            named: one("instance", &delegated, Some(sealed)),
        },
        Victim {
            table: "refused_attempt",
            row: format!("id = '{refused}'"),
            named: one("refused", &refused, Some(0)),
        },
    ]
}

/// An expression for another value of this type.
pub(super) fn other(column: &str, kind: &str) -> String {
    match (column, kind) {
        ("stream_kind", _) => {
            "case stream_kind when 'operation' then 'directory' else 'operation' end".into()
        }
        (_, "text") => format!("coalesce({column} || 'x', 'x')"),
        (_, "uuid") => "gen_random_uuid()".into(),
        (_, "integer" | "bigint") => format!("coalesce({column} + 100000, 1)"),
        (_, "smallint") => format!("{column} + 1"),
        (_, "timestamp with time zone") => format!("{column} + interval '1 microsecond'"),
        (_, "bytea") => format!("set_byte({column}, 0, get_byte({column}, 0) # 1)"),
        (_, "xid8") => format!("((({column}::text)::bigint + 1)::text)::xid8"),
        (column, kind) => panic!("say what another {kind} is: {column}"),
    }
}

fn names(finding: &Finding, (kind, id, seq): &Named) -> bool {
    finding.stream == *kind
        && finding.id.to_string() == *id
        && (seq.is_none() || finding.seq == *seq)
}

async fn found(app: &TestApp, change: &str, victim: &Victim) {
    behind(app, change).await;
    let (_, findings) = verify(app, &keys(&[("one", 1)]), &[]).await;
    assert!(
        findings
            .iter()
            .any(|finding| victim.named.iter().any(|named| names(finding, named))),
        "{change}: {:?} is not named in {findings:#?}",
        victim.named
    );
}

#[tokio::test]
async fn a_change_of_every_column_is_found_and_named() {
    let (app, id) = history().await;
    let mut changed = 0;
    for victim in victims(&app, &id).await {
        let Victim { table, row, .. } = &victim;
        let sql = "select column_name::text, case when data_type = 'USER-DEFINED' then udt_name else data_type end::text, is_nullable = 'YES'
            from information_schema.columns where table_schema = 'public' and table_name = $1";
        let columns = sqlx::query(sql)
            .bind(table)
            .fetch_all(app.database.admin_pool());
        for column in columns.await.expect("columns") {
            let (name, kind): (String, String) = (column.get(0), column.get(1));
            let mut values = vec![other(&name, &kind)];
            if column.get(2) {
                values.push(format!("case when {name} is null then {} end", values[0]));
            }
            for value in values {
                let change = format!("update {table} set {name} = {value} where {row}");
                found(&app, &change, &victim).await;
                restore(&app, table).await;
                changed += 1;
            }
        }
    }
    assert!(changed > 60, "{changed} columns");
    assert_eq!(verify(&app, &keys(&[("one", 1)]), &[]).await.1, []);
}

#[tokio::test]
async fn deleted_and_swapped_rows_are_found_and_named() {
    let (app, id) = history().await;
    for victim in victims(&app, &id).await {
        let Victim { table, row, .. } = &victim;
        found(&app, &format!("delete from {table} where {row}"), &victim).await;
        restore(&app, table).await;
    }
    let of = |kind: &str, id: &str, seq| (kind.to_owned(), id.to_owned(), Some(seq));
    let nobody = uuid::Uuid::nil().to_string();
    let swap = |table: &str, column: &str, rest: &str, (one, other): (u64, u64)| {
        format!(
            "update {table} set {column} = -1 where {rest} and {column} = {one};
             update {table} set {column} = {one} where {rest} and {column} = {other};
             update {table} set {column} = {other} where {rest} and {column} = -1"
        )
    };
    let last = text(&app, "select max(number)::text from checkpoint").await;
    let last: u64 = last.parse().expect("a number");
    let of_instance = format!("stream_id = '{id}'");
    for (table, change, named) in [
        (
            "audit_entry",
            swap("audit_entry", "seq", &of_instance, (6, 7)),
            of("instance", &id, 6),
        ),
        (
            "audit_leaf",
            swap("audit_leaf", "leaf", "true", (3, 4)),
            of("checkpoint", &nobody, 1),
        ),
        (
            "checkpoint",
            swap("checkpoint", "number", "true", (2, 3)),
            of("checkpoint", &nobody, 2),
        ),
        // The last rows of every table.
        (
            "checkpoint",
            "delete from checkpoint where number = (select max(number) from checkpoint)".to_owned(),
            of("checkpoint", &nobody, last - 1),
        ),
        (
            "audit_entry",
            format!("delete from audit_entry where {of_instance} and seq >= 8"),
            of("instance", &id, 8),
        ),
    ] {
        let (row, named) = (String::new(), vec![named]);
        let victim = Victim { table, row, named };
        found(&app, &change, &victim).await;
        restore(&app, victim.table).await;
    }
}

/// Leaves of consecutive entries share a row.
#[tokio::test]
async fn a_changed_run_of_leaves_is_found() {
    let app = TestApp::start().await;
    let keys = keys(&[("one", 1)]);
    let id = approved(&app, "doc-1").await;
    sign(&app.engine, &keys).await;
    let longest = "select max(leaves_in(digests))::text from audit_leaf";
    let longest: u64 = text(&app, longest).await.parse().expect("a number");
    assert!(longest > 3, "{longest} leaves");
    behind(&app, "create table kept_audit_leaf as table audit_leaf").await;
    for set in [
        "digests = substring(digests for octet_length(digests) - 32)",
        "digests = substring(digests for octet_length(digests) - 1)",
        "digests = substring(digests from 33)",
        "digests = substring(digests from 33) || substring(digests for 32)",
        "digests = digests || substring(digests for 32)",
        r"digests = digests || '\x00'",
        r"digests = '\x'",
        "seq = -1, digests = sha256('') || sha256('') || digests",
    ] {
        let change = format!("update audit_leaf set {set} where stream_id = '{id}'");
        behind(&app, &change).await;
        for which in [Which::One(id), Which::All] {
            let (_, findings) = super::verify::verify(&app, None, None, &which).await;
            let is_named = findings.iter().any(|finding| finding.id == id.0);
            assert!(is_named, "{set}, {which:?}: {findings:#?}");
        }
        assert_ne!(verify(&app, &keys, &[]).await.1, [], "{set}");
        restore(&app, "audit_leaf").await;
    }
    assert_eq!(verify(&app, &keys, &[]).await.1, []);
}

/// Runs that overlap others, that are far behind the last one, or whose numbers cannot be.
#[tokio::test]
async fn an_added_run_of_leaves_is_found() {
    let app = TestApp::start().await;
    let keys = keys(&[("one", 1)]);
    let id = approved(&app, "doc-1").await;
    sign(&app.engine, &keys).await;
    behind(&app, ONE_A_ROW).await;
    behind(&app, "create table kept_audit_leaf as table audit_leaf").await;
    let size = text(&app, "select max(size)::text from checkpoint").await;
    // The second and the third leaf of the instance share a row, which alone is no finding.
    let within = format!("select (min(leaf) + 2)::text from audit_leaf where stream_id = '{id}'");
    let within = text(&app, &within).await;
    let joined = format!(
        "update audit_leaf set digests = digests || (select digests from audit_leaf where leaf = {within}) where leaf = {within} - 1;
        delete from audit_leaf where leaf = {within}"
    );
    behind(&app, &joined).await;
    assert_eq!(verify(&app, &keys, &[]).await.1, []);
    restore(&app, "audit_leaf").await;
    for (leaf, seq, digests) in [
        (within.as_str(), "1000", "sha256('')"),
        ("6000", "1000", "sha256('')"),
        ("9223372036854775807", "1000", "sha256('')"),
        (size.as_str(), "1000", "''"),
        (
            size.as_str(),
            "9223372036854775807",
            "sha256('') || sha256('')",
        ),
    ] {
        behind(&app, &joined).await;
        let values = format!("1, {leaf}, 'instance', '{id}', {seq}, {digests}");
        behind(&app, &format!("insert into audit_leaf values ({values})")).await;
        let (_, findings) = verify(&app, &keys, &[]).await;
        let of_tree = |finding: &Finding| ["leaf_gap", "checkpoint_end"].contains(&finding.code);
        assert!(findings.iter().any(of_tree), "{values}: {findings:#?}");
        let (_, findings) = super::verify::verify(&app, None, None, &Which::One(id)).await;
        assert_ne!(findings, [], "{values}");
        restore(&app, "audit_leaf").await;
    }
    assert_eq!(verify(&app, &keys, &[]).await.1, []);
}

/// The position of signing was set back into a run.
#[tokio::test]
async fn an_entry_with_two_leaves_is_found() {
    let app = TestApp::start().await;
    let keys = keys(&[("one", 1)]);
    let id = approved(&app, "doc-1").await;
    sign(&app.engine, &keys).await;
    let back = "update checkpoint_cursor set pos = (select max(pos) - 2 from audit_entry)";
    behind(&app, back).await;
    sign(&app.engine, &keys).await;
    for which in [Which::One(id), Which::All] {
        let (_, findings) = super::verify::verify(&app, None, None, &which).await;
        let mut listed = brief(&findings);
        listed.sort();
        let last = text(
            &app,
            "select max(seq)::text from audit_entry where stream_kind = 'instance'",
        )
        .await;
        let last: u64 = last.parse().expect("a number");
        let twice = [last - 1, last].map(|seq| format!("instance: leaf_twice {seq}"));
        assert!(
            twice.iter().any(|one| listed.contains(one)),
            "{which:?}: {listed:?}"
        );
    }
}

/// Entries that are not leaves yet do not need one.
#[tokio::test]
async fn deleted_leaves_are_found_in_the_verification_of_their_instance() {
    let (app, id) = history().await;
    let late = approved(&app, "doc-4").await;
    let id = InstanceId(id.parse().expect("an id"));
    for which in [id, late].map(Which::One) {
        let (_, findings) = super::verify::verify(&app, None, None, &which).await;
        assert_eq!(findings, [], "{which:?}");
    }
    let delete = format!("delete from audit_leaf where stream_id = '{id}' and seq in (2, 5)");
    behind(&app, &delete).await;
    let (_, findings) = super::verify::verify(&app, None, None, &Which::One(id)).await;
    let mut listed = brief(&findings);
    listed.sort();
    assert_eq!(listed, ["instance: unlogged 2", "instance: unlogged 5"]);
    behind(&app, "delete from audit_leaf").await;
    let (tally, findings) = super::verify::verify(&app, None, None, &Which::One(id)).await;
    assert_eq!(findings.len() as u64, tally.entries, "{findings:#?}");
    let (_, findings) = super::verify::verify(&app, None, None, &Which::One(late)).await;
    assert_eq!(findings, [], "its entries are no leaves yet");
}

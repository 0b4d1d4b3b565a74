//! The isolation of tenants by the database itself, whatever the statements say.
//!
//! The host's statements are recorded with their parameters, and sent again by a connection of another tenant. The result must be
//! the one that it would get if the first tenant had no rows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use wrkflw_audit::record::Record as _;
use wrkflw_core::command::SignalKey;
use wrkflw_core::ids::{InstanceId, TenantId, VersionRef};

use super::TIMEOUT;
use super::furniture;
use super::questions::{FAR, FURTHER, restricted};
use super::recorder::{Recorder, Replay, Statement};
use super::statements;
use crate::api::access::World;
use crate::api::blurred;
use crate::api::openapi::operations;
use crate::api::sessions;
use crate::support::app::{ADMIN, Host, TestApp, task_of};
use wrkflw_store::directory::tenants;
use wrkflw_store::feed;
use wrkflw_store::jobs::calls;
use wrkflw_store::past;
use wrkflw_store::receipts;

/// Texts in functions of the store that use the reader's connections.
const READS: [&str; 3] = [".reading(", ".looking(", "&self.reader"];

/// Requests everything that can be read, with all permissions.
async fn read_all(world: &World, host: &Host) {
    let moment = "at=2100-01-01T00:00:00Z";
    let mut paths: Vec<_> = FURTHER.iter().map(ToString::to_string).collect();
    paths.push(format!(
        "/v1/instances/{}/eligibility?{moment}",
        world.instance
    ));
    paths.push(format!("/v1/instances/{}?{moment}", world.instance));
    for operation in operations(&world.app).await {
        if operation.method == "get" && !operation.path.ends_with("/stream") {
            paths.push(world.path(&operation));
        }
    }
    for user in ["admin", "author", "reviewer"] {
        for path in &paths {
            let answer = host.send(user, "GET", path, &[], None).await;
            assert!(answer.status < 500, "{path}: {}", answer.text);
        }
    }
    let begun = host.send("admin", "GET", "/v1/events?limit=1", &[], None);
    let begun = begun.await.expect(200);
    let next = begun["page"]["next"].as_str().expect("a cursor");
    let on = format!("/v1/events?after={next}");
    host.send("admin", "GET", &on, &[], None).await.expect(200);
    let absences = "/v1/people/reviewer/absences";
    let absence = json!({
        "substitute": "reviewer2", "from": "2100-01-01T00:00:00Z", "until": "2100-02-01T00:00:00Z",
    });
    let dry = format!("{absences}?dryRun=true");
    host.send("reviewer", "POST", &dry, &[], Some(absence.clone()))
        .await
        .expect(200);
    host.send("reviewer", "POST", absences, &[], Some(absence))
        .await
        .expect(201);
    host.send("reviewer", "GET", absences, &[], None)
        .await
        .expect(200);
    let manager = "/v1/people/reviewer/manager?dryRun=true";
    let to = json!({ "manager": "author" });
    host.send("admin", "PUT", manager, &[], Some(to))
        .await
        .expect(200);
    let activate = "/v1/definitions/document-approval/versions/2/activate?dryRun=true";
    host.send("admin", "POST", activate, &[], Some(json!({})))
        .await
        .expect(200);
    let many = json!({ "definitionKey": "document-approval", "fromVersion": 1, "version": 2 });
    let begun = host.send("admin", "POST", "/v1/migrations", &[], Some(many));
    let begun = begun.await.expect(201);
    let items = format!(
        "/v1/operations/{}/items",
        begun["id"].as_str().expect("an id")
    );
    host.send("admin", "GET", &items, &[], None)
        .await
        .expect(200);
}

/// The statements in the sources that run on the reader's connections.
fn of_readers() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/store/src");
    let mut functions = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("sources") {
            let path = entry.expect("a file").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&path).expect("text");
                // A private function is read with the public one before it, which calls it.
                let bodies = text.split("\npub").flat_map(|part| part.split("\n    pub"));
                functions.extend(bodies.map(|body| (folder.clone(), body.to_owned())));
            }
        }
    }
    functions.retain(|(_, body)| READS.iter().any(|how| body.contains(how)));
    let reads = |sql: &String| {
        functions.iter().any(|(folder, body)| {
            body.contains(&format!("{sql}\""))
                || body
                    .split('"')
                    .filter(|word| Path::new(word).extension().is_some_and(|end| end == "sql"))
                    .any(|name| {
                        let file = name.rsplit('/').next().unwrap_or_default();
                        std::fs::read_to_string(folder.join(file)).is_ok_and(|text| text == *sql)
                    })
        })
    };
    statements::all().into_iter().filter(reads).collect()
}

/// Whether the statement reads rows of tenants, or only the position of the feed, a tenant's name or a component.
fn touches(sql: &str, tables: &BTreeSet<String>) -> bool {
    let mut words = sql.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| tables.contains(word))
        || sql.contains("attribute_holders")
        || sql.contains("kept_replies")
        || sql.contains("word_holders")
        || sql.contains("versions_with_words")
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenant_reads_nothing_with_the_same_statements() {
    let world = World::new().await;
    let app = &world.app;
    let (store, now) = (app.store(), app.engine.clock().now());
    let roles = BTreeMap::from([("admin", ADMIN)]);
    tenants::ensure_tenant(store, "other", &roles, now)
        .await
        .expect("a tenant");
    let recorder = Recorder::start(app.database.url()).await;
    let (host, engine) = app.beside_with_engine(recorder.url(), TIMEOUT).await;
    let instance = app.started("doc-7").await;
    app.decided("reviewer", &instance, json!({ "outcome": "APPROVE" }))
        .await;
    let held = app.started("doc-8").await;
    let claim = format!("/v1/tasks/{}/claim", task_of(&held));
    app.post("reviewer", &claim, json!({})).await.expect(200);
    furniture::furnish(&world).await;
    sessions::begun_and_found(app, &engine).await;
    read_all(&world, &host).await;
    restricted(&world, &host).await;
    let decided = instance["id"].as_str().expect("an id");
    let history = format!("/v1/instances/{decided}/history");
    host.send("admin", "GET", &history, &[], None)
        .await
        .expect(200);
    let id = world.instance.parse().expect("an id");
    let version = VersionRef {
        key: "document-approval".into(),
        version: 1,
    };
    let published = engine.reader().recorded_version(TenantId(1), &version);
    assert!(published.await.expect("an answer").is_some());
    let known = feed::knows_instance(engine.reader(), TenantId(1), id).await;
    assert!(known.expect("an answer"), "the first tenant is number 1");
    let (viewer, one) = (TenantId(1).into(), InstanceId(id));
    let is_seen = engine.reader().sees(&viewer, one).await;
    assert!(is_seen.expect("an answer"));
    // Comments are counted only if there could be too many entries.
    let moves = past::moves(engine.reader(), &viewer, one, 10_000).await;
    assert!(moves.expect("an answer").omitted);
    let key = SignalKey {
        trigger: "PAID".into(),
        id: "1".into(),
        correlation: None,
        state: None,
    };
    let reception =
        receipts::reception(engine.reader(), TenantId(1), InstanceId(id), "author", &key);
    assert_eq!(reception.await.expect("an answer"), Some(Some(id)));
    let calls = calls::of_instance(engine.reader(), TenantId(1), InstanceId(id));
    assert!(calls.await.expect("an answer").is_empty());
    let tables = statements::tables(app).await;
    let mut sent = recorder.statements();
    let reads = |role: &str| ["wrkflw_reader", "wrkflw_viewer"].contains(&role);
    sent.retain(|statement| reads(&statement.role) && touches(&statement.sql, &tables));
    let seen: BTreeSet<_> = sent.iter().map(|statement| statement.sql.clone()).collect();
    let read = of_readers();
    assert!(read.len() >= 25, "{} statements in the sources", read.len());
    let missing: Vec<_> = read
        .into_iter()
        .filter(|sql| touches(sql, &tables) && !seen.contains(sql))
        .collect();
    assert!(
        missing.is_empty(),
        "{} reading statements were never sent: {missing:#?}",
        missing.len()
    );
    assert!(seen.len() >= 25, "{} statements", seen.len());
    compare(app, &sent, &tables).await;
}

/// Sends each statement as the first tenant, as the other tenant, and as the other tenant while the first has no rows.
async fn compare(app: &TestApp, sent: &[Statement], tables: &BTreeSet<String>) {
    furniture::record(app).await;
    let tenant = async |name: &'static str| -> i32 {
        let id = sqlx::query_scalar("select id from tenant where name = $1").bind(name);
        id.fetch_one(app.database.admin_pool())
            .await
            .expect("a tenant")
    };
    let (first, other) = (tenant("default").await, tenant("other").await);
    let replay = async |tenant: i32, before: &str| {
        let mut replay = Replay::connect(app.database.url()).await;
        replay.run(before).await;
        replay.run("set local role wrkflw_reader").await;
        replay
            .run(&format!(
                "select set_config('wrkflw.tenant', '{tenant}', true)"
            ))
            .await;
        let mut answers = Vec::new();
        for statement in sent {
            answers.push(replay.send(statement).await);
        }
        answers
    };
    let deletes: Vec<_> = tables
        .iter()
        .map(|table| format!("delete from \"{table}\" where tenant_id = {first};"))
        .collect();
    let emptied = format!(
        "begin; set local session_replication_role = replica; {}",
        deletes.join(" ")
    );
    let own = replay(first, "begin").await;
    let foreign = replay(other, "begin").await;
    let without = replay(other, &emptied).await;
    let mut telling: BTreeMap<&str, bool> = BTreeMap::new();
    for (number, statement) in sent.iter().enumerate() {
        assert_eq!(
            foreign[number], without[number],
            "another tenant sees something with {statement:?}"
        );
        *telling.entry(&statement.sql).or_default() |= own[number] != without[number];
    }
    // A statement that finds nothing for its own tenant would prove nothing.
    let mute: Vec<_> = telling
        .iter()
        .filter(|(_, tells)| !**tells)
        .map(|(sql, _)| *sql)
        .filter(|sql| !FAR.iter().any(|begin| sql.starts_with(begin)))
        .collect();
    assert!(
        mute.is_empty(),
        "{} statements found nothing in their own tenant: {mute:#?}",
        mute.len()
    );
}

/// Each row of a tenant, as text.
async fn rows_of(
    app: &TestApp,
    tables: &BTreeSet<String>,
    tenant: i32,
) -> BTreeMap<String, Vec<String>> {
    let mut rows = BTreeMap::new();
    for table in tables {
        let sql =
            format!("select t::text from \"{table}\" t where tenant_id = {tenant} order by 1");
        let found = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(app.database.admin_pool());
        rows.insert(table.clone(), found.await.expect("rows"));
    }
    rows
}

/// The rows of the second tenant have the same ids as those of the first. A join without the tenant would find both.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_with_the_same_ids_is_neither_read_nor_changed() {
    const SHADOW: i32 = 99;
    let (world, alone) = (World::new().await, World::new().await);
    let app = &world.app;
    let tables = statements::tables(app).await;
    let mut copies = vec!["set session_replication_role = replica".to_owned()];
    for table in tables
        .iter()
        .filter(|table| !["outbox_event", "notifier_cursor"].contains(&table.as_str()))
    {
        copies.push(app.database.shadow(table, SHADOW).await);
    }
    copies.push("set session_replication_role = origin".to_owned());
    sqlx::raw_sql(AssertSqlSafe(copies.join(";")))
        .execute(app.database.admin_pool())
        .await
        .expect("a shadow");
    let before = rows_of(app, &tables, SHADOW).await;
    let filled = before.values().filter(|rows| !rows.is_empty()).count();
    assert!(filled >= 15, "{filled} tables have rows");
    let (beside_a_shadow, by_itself) = (worked(&world).await, worked(&alone).await);
    for (beside, alone) in beside_a_shadow.iter().zip(&by_itself) {
        assert_eq!(beside, alone, "a response contains rows of the shadow");
    }
    assert_eq!(beside_a_shadow.len(), by_itself.len());
    assert_eq!(
        rows_of(app, &tables, SHADOW).await,
        before,
        "rows of the shadow were changed"
    );
}

/// Runs all commands on the world's instance. Returns the structure of all responses.
async fn worked(world: &World) -> Vec<String> {
    let (app, mut shapes) = (&world.app, Vec::new());
    let on_task = |what: &str| format!("/v1/tasks/{}/{what}", world.task);
    let on_instance = |what: &str| format!("/v1/instances/{}/{what}", world.instance);
    let reason = || json!({ "reason": "as agreed" });
    let comment = || json!({ "comment": "Hm." });
    let to = |person: &str| json!({ "to": person, "reason": "away" });
    let steps = [
        ("reviewer", on_task("claim"), json!({})),
        ("reviewer", on_task("delegate"), to("reviewer2")),
        ("reviewer2", on_task("resolve"), json!({})),
        ("admin", on_task("reassign"), to("reviewer2")),
        ("admin", on_task("reset"), reason()),
        ("reviewer", on_task("claim"), json!({})),
        ("reviewer", on_task("suspend"), reason()),
        ("reviewer", on_task("resume"), json!({})),
        ("reviewer", on_task("release"), json!({})),
        ("reviewer", on_instance("comment"), comment()),
        ("admin", on_instance("suspend"), reason()),
        ("admin", on_instance("resume"), json!({})),
        ("reviewer", on_task("claim"), json!({})),
        (
            "reviewer",
            on_task("decide"),
            json!({ "outcome": "APPROVE" }),
        ),
        ("admin", on_instance("cancel"), reason()),
        ("author", on_instance("restart"), json!({})),
    ];
    for (user, path, body) in steps {
        let answer = app.post(user, &path, body).await;
        assert!(answer.status < 300, "{path}: {}", answer.text);
        shapes.push(shape(&blurred(&answer.body)));
    }
    for user in ["admin", "author", "reviewer"] {
        for operation in operations(app).await {
            // How far the feed reaches depends on the transactions of the whole server, including those of other tests.
            let is_feed = operation.path.starts_with("/v1/events");
            if operation.method == "get" && !is_feed {
                let path = world.path(&operation);
                let answer = app.get(user, &path).await;
                shapes.push(format!(
                    "{} {} {}",
                    operation.path,
                    answer.status,
                    shape(&blurred(&answer.body))
                ));
            }
        }
    }
    shapes
}

/// The value with each text and number replaced by its type.
fn shape(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<_> = members
                .iter()
                // A cursor contains transaction ids, which differ in each database.
                .map(|(name, value)| match name.as_str() {
                    "next" if value.is_string() => "next:cursor".to_owned(),
                    "micros" => "micros:some".to_owned(),
                    _ => format!("{name}:{}", shape(value)),
                })
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(shape).collect();
            format!("[{}]", items.join(","))
        }
        Value::String(text) if text.len() < 30 => text.clone(),
        Value::String(_) => "text".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::Null => "null".to_owned(),
    }
}

#[tokio::test]
async fn every_table_of_a_tenant_shows_its_reader_one_tenant() {
    let app = TestApp::empty().await;
    let policies: Vec<(String, Option<String>)> = sqlx::query_as(
        "select c.relname::text, (
             select string_agg(pg_get_expr(p.polqual, p.polrelid), ' or ') from pg_policy p
             where p.polrelid = c.oid and p.polpermissive and ('wrkflw_reader'::regrole = any(p.polroles) or 0::oid = any(p.polroles)))
         from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped
         where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')",
    )
    .fetch_all(app.database.admin_pool())
    .await
    .expect("the catalogue");
    assert!(policies.len() > 25, "{} tables", policies.len());
    for (table, policy) in policies {
        let policy = policy.unwrap_or_default();
        assert_eq!(
            policy,
            "(tenant_id = (NULLIF(current_setting('wrkflw.tenant'::text, true), ''::text))::integer)",
            "{table}"
        );
    }
    // No function runs with other rights than those of its caller, and no view bypasses the policies.
    let past: Vec<String> = sqlx::query_scalar(
        "select proname::text from pg_proc where pronamespace = 'public'::regnamespace and prosecdef
         union all select relname::text from pg_class
         where relnamespace = 'public'::regnamespace and relkind in ('v', 'm') and not coalesce(reloptions::text like '%security_invoker=true%', false)
         order by 1",
    )
    .fetch_all(app.database.admin_pool())
    .await
    .expect("the catalogue");
    // There are exceptions. Three are for the sake of an index, and one returns digests of rows that the reader must not see: all
    // take the tenant from the same setting. The others return no row: one begins a history, one returns a number of all tenants
    // together.
    assert_eq!(
        past,
        [
            "attribute_holders",
            "begin_history",
            "kept_replies",
            "missing_events",
            "versions_with_words",
            "word_holders"
        ]
    );
}

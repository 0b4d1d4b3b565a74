//! The plans of the writer's frequent statements on a database without statistics: only by keys. Such a plan is cached until the
//! tables are analysed, even if they have grown much by then.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection};

use wrkflw_store::commit::common;

use crate::support::app::TestApp;

const LOAD: &str = include_str!("../../host/store/src/load.sql");
const COMMIT: &str = include_str!("../../host/store/src/commit/commit.sql");
const CLAIM: &str = include_str!("../../host/store/src/jobs/claim.sql");
const JOBS: &str = include_str!("../../host/store/src/jobs.rs");
const STOPS: &str = include_str!("../../host/store/src/definitions/stops.rs");
const NOTIFIER: &str = include_str!("../../host/store/src/notifier.rs");
const FEED: &str = include_str!("../../host/store/src/feed.rs");
const DESCRIBED: &str = include_str!("../../host/store/src/described.rs");
/// Indexes that are read by the tenant alone, or as a whole. Each has few rows: the tenant's own row, its stopped versions (a hundred at
/// most), or one row for each restore of the database.
const SMALL: [&str; 3] = [
    "tenant_pkey",
    "definition_version_stopped",
    "feed_epoch_pkey",
];
/// Tables of which all rows are read: a row for each tenant.
const WHOLE: [&str; 1] = ["notifier_cursor"];
/// Some hundred instances, each with entries, a task and jobs. The planner estimates their number by the size of the tables.
const GROWN: &str = "
    insert into instance (
        tenant_id, id, definition_key, definition_version, revision, status, entity_type, entity_id, initiator, requesters, data,
        started_at, updated_at, audit_seq, audit_head, event_seq, state_instances, sole)
    select 1, gen_random_uuid(), 'swarm', 1, 1, 'RUNNING', 'document', n::text, 'author', '{author}', '{}', now(), now(), 1, sha256(''), 1, 1, false
    from generate_series(1, 600) n;
    insert into audit_entry (
        tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, payload, salt, occurred_at, hash, event_seq)
    select 1, 'instance', id, n, gen_random_uuid(), 'FLOW_STARTED', 1, gen_random_uuid(), '{}', '', now(), sha256(''), n
    from instance, generate_series(1, 4) n where definition_key = 'swarm';
    insert into task (tenant_id, id, instance_id, state_id, ordinal, label, status, candidates, created_at)
    select 1, gen_random_uuid(), id, gen_random_uuid(), 0, '', 'PENDING', '[]', now() from instance where definition_key = 'swarm';
    insert into job (tenant_id, id, instance_id, kind, due_at, payload)
    select 1, gen_random_uuid(), id, 'deadline', now(), '{}' from instance, generate_series(1, 4) where definition_key = 'swarm'";

/// The settings of the writer's connections.
const SETTINGS: &str =
    "set role wrkflw_writer; set jit = off; set plan_cache_mode = force_generic_plan;
    set enable_seqscan = off; set enable_bitmapscan = off; set enable_hashjoin = off; set enable_mergejoin = off";

/// The generic plan.
async fn plan(connection: &mut PgConnection, name: &str, statement: &str) -> Value {
    let numbers = statement.split('$').skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit());
        rest[..end.unwrap_or(rest.len())].parse::<usize>().ok()
    });
    let parameters = numbers.max().expect("parameters");
    let prepared = format!("{SETTINGS}; prepare {name} as {statement}");
    sqlx::raw_sql(AssertSqlSafe(prepared))
        .execute(&mut *connection)
        .await
        .expect("prepared");
    let values = vec!["null"; parameters].join(", ");
    let explain = format!("explain (format json) execute {name}({values})");
    let plan = sqlx::query_scalar(AssertSqlSafe(explain)).fetch_one(connection);
    plan.await.expect("a plan")
}

/// All nodes of a plan.
fn nodes(plan: &Value) -> Vec<&Value> {
    let children: Vec<&Value> = match plan {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    };
    let below = children.into_iter().flat_map(nodes);
    let own = plan.get("Node Type").map(|_| plan);
    own.into_iter().chain(below).collect()
}

/// The columns that a condition such as `((a = $1) AND (ROW(b, c) > ROW(d.b, d.c)))` compares. Of an expression, its beginning.
fn compared(condition: &str) -> BTreeSet<String> {
    let parts = condition.split(" AND ");
    parts
        .map(|part| part.trim_start_matches('(').trim_start_matches("ROW("))
        .filter_map(|part| part.split([' ', ',']).next())
        .filter(|column| !column.is_empty())
        .map(|column| column.trim_matches('"').to_owned())
        .collect()
}

/// The statement in a source file of the store that begins so.
fn statement<'a>(source: &'a str, beginning: &str) -> &'a str {
    let from = source.find(beginning).expect("the statement");
    let rest = &source[from..];
    let ends = ["\"#,\n", "\",\n"].map(|end| rest.find(end));
    &rest[..ends.into_iter().flatten().min().expect("its end")]
}

#[tokio::test]
async fn a_database_without_statistics_is_read_by_keys() {
    let app = TestApp::start().await;
    let mut connection = app.database.admin_pool().acquire().await.expect("idle");
    let indexes: Vec<(String, Vec<String>)> = sqlx::query_as(
        "select c.relname::text, array_agg(
            substring(pg_get_indexdef(x.indexrelid, place, true) from '[^(\\s][^,\\s]*') order by place)
        from pg_index x join pg_class c on c.oid = x.indexrelid cross join generate_series(1, x.indnkeyatts) place
        group by c.relname",
    )
    .fetch_all(&mut *connection)
    .await
    .expect("indexes");
    let indexes: HashMap<_, _> = indexes.into_iter().collect();
    let common = common(COMMIT);
    let statements = [
        ("load", LOAD, 10),
        ("commit", COMMIT, 8),
        ("common", &common, 5),
        ("claim", CLAIM, 8),
        ("settle", statement(JOBS, "with ended as"), 6),
        ("hold", statement(STOPS, "with page as"), 3),
        (
            "cursor",
            statement(NOTIFIER, "select c.tenant_id, c.epoch"),
            2,
        ),
        ("feed", statement(FEED, "select e.epoch as"), 5),
        ("names", statement(DESCRIBED, "select s.name as"), 2),
    ];
    for (size, grow) in [("empty", ""), ("grown", GROWN)] {
        let grow = format!("reset role; {grow}");
        let grown = sqlx::raw_sql(AssertSqlSafe(grow)).execute(&mut *connection);
        grown.await.expect("rows");
        for (name, statement, least) in statements {
            let plan = plan(&mut connection, &format!("{name}_{size}"), statement).await;
            let scans = nodes(&plan)
                .into_iter()
                .filter(|node| is_by_key(node, &indexes).expect(name))
                .count();
            assert!(scans >= least, "{name} has {scans} scans only: {plan}");
        }
    }
}

/// The planner takes a table that was analysed while it was empty for empty. An operator may have analysed a new database.
#[tokio::test]
async fn a_load_reads_no_table_as_a_whole_after_an_early_analysis() {
    let app = TestApp::start().await;
    let mut connection = app.database.admin_pool().acquire().await.expect("idle");
    let analysed = sqlx::raw_sql("analyze").execute(&mut *connection);
    analysed.await.expect("statistics");
    let plan = plan(&mut connection, "load", LOAD).await;
    let nodes = nodes(&plan);
    let scans = nodes
        .iter()
        .filter(|node| node["Relation Name"].is_string());
    let whole: Vec<_> = scans
        .filter(|node| !node["Index Cond"].is_string())
        .collect();
    assert!(whole.is_empty(), "{whole:#?}");
}

/// Whether the node finds rows by the first columns of an index. The error says what it reads otherwise.
fn is_by_key(node: &Value, indexes: &HashMap<String, Vec<String>>) -> Result<bool, String> {
    let kind = node["Node Type"].as_str().expect("a type");
    let table = node["Relation Name"].as_str().unwrap_or_default();
    if kind.contains("Bitmap") || kind.contains("Seq Scan") && !WHOLE.contains(&table) {
        return Err(format!("reads all of {node}"));
    }
    let Some(index) = node["Index Name"].as_str() else {
        return Ok(false);
    };
    let condition = node["Index Cond"].as_str().unwrap_or_default();
    let compared = compared(condition);
    let columns = &indexes[index];
    let key: BTreeSet<_> = columns.iter().take(compared.len()).cloned().collect();
    // By the tenant alone, too much would be found.
    let is_narrow = compared.len() >= 2 || SMALL.contains(&index);
    if is_narrow && compared == key {
        return Ok(true);
    }
    Err(format!("finds rows by {index} where {condition}"))
}

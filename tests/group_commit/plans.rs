//! The plans of a command's statements on a database without statistics: only by keys. Such a plan is cached until the tables are
//! analysed, even if they have grown much by then.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection};

use wrkflw_store::commit::common;

use crate::support::app::TestApp;

const LOAD: &str = include_str!("../../host/store/src/load.sql");
const COMMIT: &str = include_str!("../../host/store/src/commit/commit.sql");

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

/// The columns that a condition such as `((a = $1) AND (b > c.d))` compares.
fn compared(condition: &str) -> BTreeSet<String> {
    let parts = condition.split(" AND ");
    parts
        .filter_map(|part| part.trim_start_matches('(').split(' ').next())
        .map(|column| column.trim_matches('"').to_owned())
        .collect()
}

#[tokio::test]
async fn a_database_without_statistics_is_read_by_keys() {
    let app = TestApp::start().await;
    let mut connection = app.database.admin_pool().acquire().await.expect("idle");
    let indexes: Vec<(String, Vec<String>)> = sqlx::query_as(
        "select c.relname::text, array_agg(a.attname::text order by k.place)
        from pg_index x join pg_class c on c.oid = x.indexrelid
        cross join unnest(x.indkey) with ordinality k (number, place)
        join pg_attribute a on a.attrelid = x.indrelid and a.attnum = k.number
        group by c.relname",
    )
    .fetch_all(&mut *connection)
    .await
    .expect("indexes");
    let indexes: HashMap<_, _> = indexes.into_iter().collect();
    for (name, statement, least) in [
        ("load", LOAD, 10),
        ("commit", COMMIT, 8),
        ("common", &common(COMMIT), 5),
    ] {
        let plan = plan(&mut connection, name, statement).await;
        let mut scans = 0;
        for node in nodes(&plan) {
            let kind = node["Node Type"].as_str().expect("a type");
            assert!(!kind.contains("Seq Scan"), "{name} reads all of {node}");
            assert!(!kind.contains("Bitmap"), "{name} collects rows of {node}");
            let Some(index) = node["Index Name"].as_str() else {
                continue;
            };
            scans += 1;
            let condition = node["Index Cond"].as_str().unwrap_or_default();
            let compared = compared(condition);
            let key: BTreeSet<_> = indexes[index]
                .iter()
                .take(compared.len())
                .cloned()
                .collect();
            // The tenant alone identifies only its own row; otherwise too much would be read. The index of stopped versions is an
            // exception: a tenant has a hundred of these at most.
            let is_narrow = compared.len() >= 2
                || ["tenant_pkey", "definition_version_stopped"].contains(&index);
            assert!(
                is_narrow && compared == key,
                "{name} finds rows by {index} where {condition}"
            );
        }
        assert!(scans >= least, "{name} has {scans} scans only: {plan}");
    }
}

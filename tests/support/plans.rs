//! The plans of the host's statements, on data of a test.

use serde_json::Value;
use sqlx::AssertSqlSafe;

use super::postgres::TestDatabase;

/// The settings of the writer's planner.
const WRITER: &str = "set role wrkflw_writer; set plan_cache_mode = force_generic_plan; set enable_seqscan = off; set enable_bitmapscan = off;
    set enable_hashjoin = off; set enable_mergejoin = off; set jit = off; deallocate all;";
/// The settings of the reader's planner.
const READER: &str = "set role wrkflw_reader; set wrkflw.tenant = '1'; set plan_cache_mode = force_custom_plan; set jit = off; deallocate all;";

/// The plan of a statement of the host, executed as the writer, and the pages that it read.
pub(crate) async fn explained(database: &TestDatabase, beginning: &str, arguments: &str) -> Value {
    explained_with(database, WRITER, beginning, arguments).await
}

/// The plan of a query of the host, executed as the reader.
pub(crate) async fn explained_query(
    database: &TestDatabase,
    beginning: &str,
    arguments: &str,
) -> Value {
    explained_with(database, READER, beginning, arguments).await
}

/// The plan of a query that the reader plans once for a connection, in one of its roles.
pub(crate) async fn explained_once(
    database: &TestDatabase,
    role: &str,
    beginning: &str,
    arguments: &str,
) -> Value {
    let settings = format!(
        "set role {role}; set wrkflw.tenant = '1'; set wrkflw.viewer = 'somebody'; set plan_cache_mode = force_generic_plan;
        set enable_seqscan = off; set enable_bitmapscan = off; set max_parallel_workers_per_gather = 0; set jit = off; deallocate all;"
    );
    explained_with(database, &settings, beginning, arguments).await
}

/// The same for a tenant, with all kinds of plans.
pub(crate) async fn explained_to_reader(
    database: &TestDatabase,
    tenant: i32,
    beginning: &str,
    arguments: &str,
) -> Value {
    // The first call of a function in a session reads the catalogue to plan its statements.
    let settings = format!(
        "set role wrkflw_reader; set wrkflw.tenant = {tenant}; set plan_cache_mode = force_custom_plan; set jit = off;
        set enable_seqscan = on; set enable_bitmapscan = on; set enable_hashjoin = on; set enable_mergejoin = on; deallocate all;
        select word_holders('nothing', 1);"
    );
    explained_with(database, &settings, beginning, arguments).await
}

async fn explained_with(
    database: &TestDatabase,
    settings: &str,
    beginning: &str,
    arguments: &str,
) -> Value {
    let files = [
        "lookups.rs",
        "jobs.rs",
        "jobs/claims.rs",
        "jobs/claim.sql",
        "bulk/settle.sql",
        "instances.sql",
        "instances/narrow.rs",
        "tasks.sql",
        "tasks/sources.rs",
        "viewer/due.sql",
        "viewer/visible.rs",
        "feed.rs",
        "deliveries.rs",
        "audit.rs",
        "checkpoints.rs",
        "reassessments.rs",
    ];
    let file = files.map(|name| {
        let path = format!("{}/../host/store/src/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).expect("the store's source") + "\"#"
    });
    let file = file.concat();
    let from = file.find(beginning).expect("the statement");
    let length = file[from..].find("\"#").expect("its end");
    let statement = &file[from..from + length];
    let mut connection = database.admin_pool().acquire().await.expect("a connection");
    let prepared = format!("{settings} prepare looked as {statement};");
    sqlx::raw_sql(AssertSqlSafe(prepared))
        .execute(&mut *connection)
        .await
        .expect("a statement");
    let explain = format!("explain (analyze, buffers, format json) execute looked{arguments}");
    let plan: Value = sqlx::query_scalar(AssertSqlSafe(explain))
        .persistent(false)
        .fetch_one(&mut *connection)
        .await
        .expect("a plan");
    sqlx::raw_sql("reset role; reset all; deallocate all")
        .execute(&mut *connection)
        .await
        .expect("an end");
    plan[0]["Plan"].clone()
}

/// The pages that a plan read.
pub(crate) fn pages(plan: &Value) -> i64 {
    let of = |name: &str| plan[name].as_i64().expect("a count");
    of("Shared Hit Blocks") + of("Shared Read Blocks")
}

/// The indexes of the plan, each with its condition.
pub(crate) fn index_searches(plan: &Value) -> Vec<String> {
    let own = match (plan["Index Name"].as_str(), plan["Index Cond"].as_str()) {
        (Some(index), Some(condition)) => Some(format!("{index} {condition}")),
        _ => None,
    };
    let below = plan["Plans"].as_array().into_iter().flatten();
    own.into_iter()
        .chain(below.flat_map(index_searches))
        .collect()
}

/// The kinds of its nodes, with their indexes.
pub(crate) fn nodes(plan: &Value) -> Vec<String> {
    let own = [&plan["Node Type"], &plan["Index Name"]]
        .map(|value| value.as_str().unwrap_or_default())
        .join(" ");
    let below = plan["Plans"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(nodes);
    std::iter::once(own).chain(below).collect()
}

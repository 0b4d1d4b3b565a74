//! The schema after all migrations equals the committed file, so that author and reviewer see each change.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Executor as _, SqlSafeStr as _};
use wrkflw_store::Store;

use crate::structure::queries;
use crate::support::own_postgres::client;
use crate::support::postgres::{TestDatabase, database};

/// The header of the file.
const HEADER: &str = "-- What the migrations make, as pg_dump tells it. All belongs to wrkflw_owner where nothing else is said.\n";
/// Lines about the dump and its session, and the owner of everything.
const LEFT_OUT: [&str; 4] = ["--", "\\", "SET ", "SELECT pg_catalog.set_config("];
const OWNED: &str = " OWNER TO wrkflw_owner;";
/// The first lines of statements with several lines.
const LONG: [&str; 2] = ["CREATE FUNCTION ", "CREATE TABLE "];
/// A server without lz4 has none of these.
const COMPRESSION: &str = " SET COMPRESSION lz4;";

/// A dump without the differences between servers and releases.
fn normalised(dump: &str) -> String {
    let lines = dump.lines().filter(|line| {
        let left_out = LEFT_OUT.iter().any(|start| line.starts_with(start));
        !line.is_empty() && !left_out && !line.ends_with(OWNED)
    });
    lines.fold(HEADER.to_owned(), |text, line| {
        let begins = LONG.iter().any(|start| line.starts_with(start));
        text + if begins { "\n" } else { "" } + line + "\n"
    })
}

async fn compresses(database: &TestDatabase) -> bool {
    let sql =
        "select 'lz4' = any(enumvals) from pg_settings where name = 'default_toast_compression'";
    let found = sqlx::query_scalar(sql).fetch_one(database.admin_pool());
    found.await.expect("a setting")
}

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test command says whether to write the file anew"
)]
async fn the_schema_is_the_committed_one() {
    let database = database(async |url: &str| Store::migrate(url).await).await;
    // The table of the migration library belongs to the login.
    let arguments = ["--schema-only", "--exclude-table=_sqlx_migrations", "-d"];
    let dump = client("pg_dump", &[&arguments[..], &[database.url()]].concat()).await;
    let rendered = normalised(&dump);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schema.sql");
    if std::env::var("UPDATE").is_ok_and(|update| update == "1") {
        std::fs::write(&file, &rendered).expect("the file can be written");
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    let lz4 = compresses(&database).await;
    let expected: Vec<_> = committed
        .lines()
        .filter(|line| lz4 || !line.ends_with(COMPRESSION))
        .collect();
    let rendered: Vec<_> = rendered.lines().collect();
    let differs = rendered
        .iter()
        .zip(&expected)
        .position(|(one, other)| one != other);
    assert!(
        rendered == expected,
        "the schema differs from {} at line {}. If that is intended, run the tests with UPDATE=1 and commit the file.",
        file.display(),
        differs.unwrap_or_else(|| rendered.len().min(expected.len())) + 1,
    );
}

/// The columns of tables that are never null, as `table.column`.
async fn never_null(database: &TestDatabase) -> BTreeSet<String> {
    let sql = "select attrelid::regclass || '.' || attname from pg_attribute where attnotnull";
    let found = sqlx::query_scalar(sql).fetch_all(database.admin_pool());
    let found: Vec<String> = found.await.expect("the catalogue");
    found.into_iter().collect()
}

/// The first difference between the compiled description of a query and the database. Nullability is compared only for columns of
/// tables, because that of an outer join depends on the plan.
fn outdated(compiled: &Value, described: &Value, never_null: &BTreeSet<String>) -> Option<String> {
    for part in ["columns", "parameters"] {
        let (compiled, described) = (&compiled[part], &described[part]);
        if compiled != described {
            return Some(format!("{part}: {compiled} is {described}"));
        }
    }
    let columns = compiled["columns"].as_array().into_iter().flatten();
    let nullable = compiled["nullable"].as_array().into_iter().flatten();
    columns.zip(nullable).find_map(|(column, nullable)| {
        let origin = &column["origin"]["Table"];
        let name = |part: &str| origin[part].as_str().map(str::to_owned);
        let column = format!("{}.{}", name("table")?, name("name")?);
        let is_outdated = *nullable == false && !never_null.contains(&column);
        is_outdated.then(|| format!("{column} may be null"))
    })
}

/// The queries are compiled with the descriptions in `.sqlx`.
#[tokio::test]
async fn the_database_agrees_with_each_compiled_query() {
    let database = database(async |url: &str| Store::migrate(url).await).await;
    let (queries, never_null) = (queries::all(), never_null(&database).await);
    assert!(queries.len() > 300, "only {} queries", queries.len());
    let mut found = Vec::new();
    for query in &queries {
        let text = queries::text(query);
        let sql = AssertSqlSafe(text.to_owned()).into_sql_str();
        let described = database.admin_pool().describe(sql).await;
        let differs = match described {
            Ok(described) => {
                let described = serde_json::to_value(described).expect("JSON");
                outdated(&query["describe"], &described, &never_null)
            }
            Err(error) => Some(error.to_string()),
        };
        found.extend(differs.map(|differs| format!("{differs}: {text}")));
    }
    assert!(
        found.is_empty(),
        "run 'make sqlx' and commit .sqlx: {found:#?}"
    );
}

#[test]
fn an_outdated_query_is_found() {
    let query = |column: &str, kind: &str, nullable: bool| {
        let origin = json!({ "Table": { "table": "task", "name": column } });
        json!({ "columns": [{ "origin": origin }], "parameters": [kind], "nullable": [nullable] })
    };
    let never_null = BTreeSet::from(["task.id".to_owned()]);
    let is_outdated = |compiled, described| outdated(&compiled, &described, &never_null).is_some();
    assert!(!is_outdated(
        query("id", "Int8", false),
        query("id", "Int8", true)
    ));
    assert!(!is_outdated(
        query("owner", "Int8", true),
        query("owner", "Int8", true)
    ));
    assert!(is_outdated(
        query("owner", "Int8", false),
        query("owner", "Int8", true)
    ));
    assert!(is_outdated(
        query("id", "Int8", false),
        query("id", "Text", false)
    ));
    assert!(is_outdated(
        query("id", "Int8", false),
        query("key", "Int8", false)
    ));
}

#[test]
fn a_dump_is_normalised() {
    let dump = "--\n-- PostgreSQL database dump\n--\n\n\\restrict abc\n\nSET lock_timeout = 0;\n
SELECT pg_catalog.set_config('search_path', '', false);\nCREATE FUNCTION public.f() RETURNS void
    SET search_path TO 'public'\n    AS $$\nbegin\n    -- Why.\nend $$;\n\n
ALTER FUNCTION public.f() OWNER TO wrkflw_owner;\nALTER TABLE public.t OWNER TO postgres;\n\\unrestrict abc\n";
    let expected = "\nCREATE FUNCTION public.f() RETURNS void\n    SET search_path TO 'public'\n    AS $$\nbegin\n    -- Why.\nend $$;
ALTER TABLE public.t OWNER TO postgres;\n";
    assert_eq!(normalised(dump), HEADER.to_owned() + expected);
}

//! A separate database for each test.
//!
//! The first test migrates a template. Every test gets a copy of it, which takes a few dozen milliseconds and is dropped with its
//! [`TestDatabase`]. The template's name contains a digest of the migrations, so a server that outlives a run can be used by the
//! next run at once.

use std::fmt::{Display, Write as _};
use std::fs;
use std::path::Path;
use std::thread;

use sha2::{Digest as _, Sha256};
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::sync::OnceCell;

/// The variable with the URL of a server on which tests may create databases and roles.
const SERVER: &str = "WRKFLW_TEST_DATABASE_URL";
/// The advisory lock for making the template. Any number that nothing else uses.
const TEMPLATE_LOCK: i64 = 0x7772_6b66;
/// Connections of the test itself, besides those of its hosts.
const CONNECTIONS_MAX: u32 = 5;

/// A migrated database that is dropped with this value.
#[derive(Debug)]
pub(crate) struct TestDatabase {
    name: String,
    url: String,
    pool: PgPool,
}

/// Makes a database. `migrate` migrates the database at the given URL and leaves no connection open. It is called once for each
/// state of `migrations/`.
pub(crate) async fn database<E: Display>(
    migrate: impl AsyncFnOnce(&str) -> Result<(), E>,
) -> TestDatabase {
    static TEMPLATE: OnceCell<String> = OnceCell::const_new();

    wrkflw_fault::under_test();
    let template = TEMPLATE.get_or_init(async || template(migrate).await).await;
    let name = format!("wrkflw_test_{}", super::unique());
    let mut server = connect().await;
    execute(
        &mut server,
        format!("create database {name} template {template}"),
    )
    .await;
    server
        .close()
        .await
        .expect("the server closes a connection");
    let url = with_database(&server_url(), &name);
    let mut copy = PgConnection::connect(&url).await.expect("it was created");
    // A copy would count as a new history of the database.
    let same = "update feed_epoch set server = server_here()";
    execute(&mut copy, same.to_owned()).await;
    copy.close().await.expect("the server closes a connection");
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .connect_lazy(&url);
    TestDatabase {
        pool: pool.expect("the server's URL was used before"),
        name,
        url,
    }
}

impl TestDatabase {
    /// The URL of this database, for its superuser.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A name that is unique on the server.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Connections as the superuser, which bypass the host.
    pub(crate) fn admin_pool(&self) -> &PgPool {
        &self.pool
    }

    /// A statement that copies each row of a table to another tenant. The tenant is no part of the key of the outbox: its copies are
    /// at positions that no event has.
    pub(crate) async fn shadow(&self, table: &str, tenant: i32) -> String {
        // Generated columns cannot be written.
        let sql =
            "select string_agg(quote_ident(column_name), ', ') from information_schema.columns
            where table_schema = 'public' and table_name = $1 and is_generated = 'NEVER'";
        let found = sqlx::query_scalar(sql).bind(table).fetch_one(&self.pool);
        let columns: String = found.await.expect("columns");
        let position = match table {
            "outbox_event" => ", 'pos', -t.pos",
            _ => "",
        };
        format!(
            "insert into \"{table}\" ({columns}) select {columns} from (
                select (jsonb_populate_record(t, jsonb_build_object('tenant_id', {tenant}{position}))).* from \"{table}\" t
            ) copy"
        )
    }
}

impl Drop for TestDatabase {
    /// On a separate thread, because the test's runtime cannot be awaited here. Its messages go to the test's output: a database
    /// that could not be dropped fails no test.
    fn drop(&mut self) {
        let sql = format!("drop database if exists {} with (force)", self.name);
        let dropping = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async {
                let mut server = PgConnection::connect(&server_url())
                    .await
                    .map_err(std::io::Error::other)?;
                sqlx::raw_sql(AssertSqlSafe(sql))
                    .execute(&mut server)
                    .await
                    .map_err(std::io::Error::other)
            })
        });
        if !matches!(dropping.join(), Ok(Ok(_))) {
            eprintln!("the database {} could not be dropped", self.name);
        }
    }
}

/// Makes the template, unless an earlier run has. Returns its name.
async fn template<E: Display>(migrate: impl AsyncFnOnce(&str) -> Result<(), E>) -> String {
    let name = format!("wrkflw_template_{}", digest_of_migrations());
    let mut server = connect().await;
    // Another process waits here until the template is made. The lock ends with the connection.
    execute(
        &mut server,
        format!("select pg_advisory_lock({TEMPLATE_LOCK})"),
    )
    .await;
    let finished = format!(
        "select exists (select from pg_database where datname = '{name}' and datistemplate)"
    );
    let finished: bool = sqlx::query_scalar(AssertSqlSafe(finished))
        .fetch_one(&mut server)
        .await
        .expect("the catalogue can be read");
    if !finished {
        execute(
            &mut server,
            format!("drop database if exists {name} with (force)"),
        )
        .await;
        execute(&mut server, format!("create database {name}")).await;
        let migrated = migrate(&with_database(&server_url(), &name)).await;
        migrated.unwrap_or_else(|error| panic!("the migrations do not apply: {error}"));
        execute(
            &mut server,
            format!("alter database {name} is_template true"),
        )
        .await;
    }
    server
        .close()
        .await
        .expect("the server closes a connection");
    name
}

fn digest_of_migrations() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("the repository has migrations")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    files.sort();
    let mut digest = Sha256::new();
    for file in files.iter().filter(|file| file.is_file()) {
        digest.update(file.file_name().expect("it is a file").as_encoded_bytes());
        digest.update(fs::read(file).expect("a migration can be read"));
    }
    digest.finalize()[..8]
        .iter()
        .fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a String takes every write");
            text
        })
}

async fn connect() -> PgConnection {
    let url = server_url();
    PgConnection::connect(&url)
        .await
        .unwrap_or_else(|error| panic!("cannot connect to {SERVER}={url}: {error}"))
}

async fn execute(server: &mut PgConnection, sql: String) {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.clone()))
        .execute(server)
        .await;
    done.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test command names its servers in the environment"
)]
fn server_url() -> String {
    std::env::var(SERVER).unwrap_or_else(|_| {
        panic!("{SERVER} is not set: run `make test`, which starts PostgreSQL for the tests")
    })
}

/// Replaces the name of the database, which is the path of the URL.
fn with_database(url: &str, name: &str) -> String {
    let (address, query) = url
        .split_once('?')
        .map_or((url, String::new()), |(address, query)| {
            (address, format!("?{query}"))
        });
    let (scheme, rest) = address
        .split_once("://")
        .unwrap_or_else(|| panic!("{SERVER} is not a URL: {url}"));
    let authority = rest.split('/').next().unwrap_or_default();
    format!("{scheme}://{authority}/{name}{query}")
}

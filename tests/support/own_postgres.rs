//! A test's own PostgreSQL, which can crash and restart, and keeps what it acknowledged.

use std::path::{Path, PathBuf};
use std::process::{Command as StdCommand, Stdio};
use std::{env, fs};

use sqlx::postgres::{PgPool, PgPoolOptions};
use tokio::process::Command;

/// Connections of the test itself.
const CONNECTIONS_MAX: u32 = 4;

/// A server that ends with the test, even if the test is killed.
#[derive(Debug)]
pub(crate) struct OwnPostgres {
    dir: PathBuf,
    url: String,
    pool: PgPool,
}

impl OwnPostgres {
    /// Starts an empty server that syncs to disk before it acknowledges a commit.
    pub(crate) async fn start() -> OwnPostgres {
        let dir = env::temp_dir().join(format!("wpg-{}", super::unique()));
        let url = run(&dir, "start").await;
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS_MAX)
            .connect_lazy(&url)
            .expect("the script prints a URL");
        OwnPostgres { dir, url, pool }
    }

    /// The URL for its superuser, by its socket.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The file of its socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.join(".s.PGSQL.5432")
    }

    /// Connections as the superuser, not through a proxy.
    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Kills all processes at once, without closing connections, as a crash does.
    pub(crate) async fn kill(&self) {
        run(&self.dir, "stop").await;
    }

    /// Restarts it at the same address, where it recovers.
    pub(crate) async fn start_again(&self) {
        run(&self.dir, "start").await;
    }

    /// Crashes, and continues on another timeline, as a standby does that is promoted.
    pub(crate) async fn fail_over(&self) {
        self.stand_by().await;
        self.promote().await;
    }

    /// Crashes, and continues as a standby.
    pub(crate) async fn stand_by(&self) {
        self.kill().await;
        fs::write(self.dir.join("data/standby.signal"), "").expect("a file in the data's folder");
        self.start_again().await;
    }

    pub(crate) async fn promote(&self) {
        let promoted: bool = sqlx::query_scalar("select pg_promote()")
            .fetch_one(&self.pool)
            .await
            .expect("a session");
        assert!(promoted, "it did not take over in time");
    }

    /// Loads a database, of this server or another one, into a new one of this name, by `pg_dump` and `pg_restore`. Returns its URL.
    pub(crate) async fn restore(&self, from: &str, name: &str) -> String {
        let create = sqlx::AssertSqlSafe(format!("create database {name}"));
        let created = sqlx::raw_sql(create).execute(&self.pool).await;
        created.expect("a database");
        let into = self.url.replacen("/postgres?", &format!("/{name}?"), 1);
        self.load(from, &into, &[]).await;
        into
    }

    /// Loads a database of this server into itself, as it is at this moment.
    pub(crate) async fn reload(&self, url: &str) {
        self.load(url, url, &["--clean"]).await;
    }

    async fn load(&self, from: &str, into: &str, options: &[&str]) {
        let dump = self.dir.join("loaded.dump");
        let dump = dump.to_str().expect("text");
        client("pg_dump", &["-Fc", "-f", dump, "-d", from]).await;
        let loading = ["--exit-on-error", "-d", into, dump];
        client("pg_restore", &[options, &loading].concat()).await;
    }

    /// Kills one client's session, as the out-of-memory killer does. The server ends all others and recovers.
    pub(crate) async fn kill_a_session(&self) {
        let sql = "select pid from pg_stat_activity
            where backend_type = 'client backend' and pid <> pg_backend_pid() and application_name = 'wrkflw'
            order by random() limit 1";
        let pid: Option<i32> = sqlx::query_scalar(sql)
            .fetch_optional(&self.pool)
            .await
            .expect("sessions");
        let pid = pid.expect("a host is connected").to_string();
        let killed = Command::new("kill").args(["-KILL", &pid]).status().await;
        assert!(killed.is_ok_and(|status| status.success()), "{pid} lives");
    }
}

impl Drop for OwnPostgres {
    fn drop(&mut self) {
        let stopped = command(&self.dir, "stop").status();
        if !stopped.is_ok_and(|status| status.success()) {
            eprintln!("the PostgreSQL in {} did not end", self.dir.display());
        }
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            eprintln!("{} is left over: {error}", self.dir.display());
        }
    }
}

fn command(dir: &Path, verb: &str) -> StdCommand {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/postgres.sh");
    let mut command = StdCommand::new(script);
    command
        .arg(verb)
        .arg(dir)
        .stdin(Stdio::null())
        .env("PG_DURABLE", "1")
        .env("PG_OWNER_PID", std::process::id().to_string());
    command
}

/// Runs a client program of the server, or one in the path. Returns its output.
pub(crate) async fn client(name: &str, arguments: &[&str]) -> String {
    let beside = Path::new(&run(Path::new(""), "bindir").await).join(name);
    let program = if beside.exists() { beside } else { name.into() };
    let output = Command::new(program).args(arguments).output().await;
    let output = output.unwrap_or_else(|error| panic!("{name}: {error}"));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} failed: {complaint}");
    String::from_utf8(output.stdout).expect("it prints text")
}

/// Runs the script without blocking the test's runtime, which runs proxies. Returns its output.
async fn run(dir: &Path, verb: &str) -> String {
    let output = Command::from(command(dir, verb)).output().await;
    let output = output.expect("the script can be run");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "postgres.sh {verb} failed: {complaint}"
    );
    let printed = String::from_utf8(output.stdout).expect("a URL is text");
    printed.trim().to_owned()
}

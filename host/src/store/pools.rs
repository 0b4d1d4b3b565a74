//! Connections, one pool per role. Every connection gives up its login's rights for those of its role at once.

use std::str::FromStr;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

use super::StoreError;
use super::outbox::Outbox;
use super::pool::{Pool, within};
use super::renewal::Renewal;
use crate::domain::ids::TenantId;

/// The migrations that this host was built with.
static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

/// How long a statement of the writer waits for a row that another session holds, in milliseconds. Callers look
/// again until their own time is over, so a row that is held for long costs them no connection for ever.
const LOCK_TIMEOUT_MS: &str = "2000";
/// How long a transaction of the writer may be silent, in milliseconds: then its host is taken for gone, and the rows
/// that it held are free.
const SILENT_MAX_MS: &str = "60000";

/// How long a query or the relay waits for a table that another session holds, in milliseconds. Their rows are never
/// held; a table is while somebody alters it.
const READ_LOCK_TIMEOUT_MS: &str = "5000";

/// What a migration begins with: only one goes on at a time, however long that takes.
const ONE_AT_A_TIME: &str = "select pg_advisory_lock(8246133957)";
/// How long a migration waits for a table that somebody works on. Whoever comes meanwhile waits behind it, so it gives way
/// soon, and tries again.
const GIVE_WAY: &str = "set lock_timeout = '1s'";
/// How often it tries, and the pause in between.
const MIGRATION_TRIES: u32 = 60;
const MIGRATION_PAUSE: Duration = Duration::from_secs(1);

/// How the database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// Migrations are missing.
    NotMigrated,
    /// It answers, and takes no writes.
    ReadOnly,
}

/// How many connections each role may open.
#[derive(Debug, Clone, Copy)]
pub struct PoolSizes {
    pub writer: u32,
    pub reader: u32,
    pub relay: u32,
}

impl Default for PoolSizes {
    /// Together about eight per core of a small database, where throughput peaks.
    fn default() -> PoolSizes {
        PoolSizes {
            writer: 8,
            reader: 6,
            relay: 2,
        }
    }
}

/// Where a URL leads. The library takes any scheme for its own.
fn options(url: &str) -> Result<PgConnectOptions, StoreError> {
    match url.split_once("://") {
        Some(("postgres" | "postgresql", _)) => Ok(PgConnectOptions::from_str(url)?),
        _ => Err(StoreError::NoPostgres),
    }
}

/// The pools. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    /// Writes, and reads what commands need; its statements name the tenant.
    pub(super) writer: Pool,
    /// Answers queries; sees the tenant that its connection was set to.
    pub(super) reader: Pool,
    relay: Pool,
}

impl Store {
    /// Opens the pools. No connection is made before it is needed.
    pub fn connect(url: &str, sizes: PoolSizes) -> Result<Store, StoreError> {
        // Compiling a statement of a millisecond costs more than it saves.
        let options = options(url)?
            .application_name("wrkflw")
            .options([("jit", "off")]);
        // The array form of the commit is planned once: planning it anew for each call halves its throughput. All
        // that the writer does is look rows up by their keys. A plan made while a table was empty would scan it
        // for as long as nobody analyses it, slower with every row.
        let writer = options.clone().options([
            ("plan_cache_mode", "force_generic_plan"),
            ("lock_timeout", LOCK_TIMEOUT_MS),
            ("idle_in_transaction_session_timeout", SILENT_MAX_MS),
            ("enable_seqscan", "off"),
            ("enable_bitmapscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
        ]);
        // Lists have many filters, of which few are set: which index serves a request shows in its values alone.
        let reader = options.clone().options([
            ("plan_cache_mode", "force_custom_plan"),
            ("lock_timeout", READ_LOCK_TIMEOUT_MS),
        ]);
        let relay = options.options([("lock_timeout", READ_LOCK_TIMEOUT_MS)]);
        let renewal = Renewal::default();
        Ok(Store {
            writer: Pool::open(writer, "set role wrkflw_writer", sizes.writer, &renewal),
            reader: Pool::open(reader, "set role wrkflw_reader", sizes.reader, &renewal),
            relay: Pool::open(relay, "set role wrkflw_relay", sizes.relay, &renewal),
        })
    }

    /// Brings the schema up to date, beside hosts that work. Runs as the login itself, who must be able to create roles.
    pub async fn migrate(url: &str) -> Result<(), StoreError> {
        let mut tries = 1;
        loop {
            match migrate(url).await {
                Err(error) if error.is_lock_timeout() && tries < MIGRATION_TRIES => {
                    tracing::info!(%error, "somebody works on a table that a migration changes; it tries again");
                    tries += 1;
                    tokio::time::sleep(MIGRATION_PAUSE).await;
                }
                ended => return ended,
            }
        }
    }

    /// Whether the database answers, has all the migrations that this host was built with, and takes writes. Later
    /// migrations do not hurt: each leaves what the release before it reads.
    pub async fn ready(&self) -> Result<Readiness, StoreError> {
        // Not a checked query: the table is there only where the migrator made it.
        let state = sqlx::query_as::<_, (Option<i64>, bool)>(
            "select max(version), current_setting('transaction_read_only')::bool from _sqlx_migrations where success",
        );
        let (applied, read_only) = match state.fetch_one(&self.writer).await {
            Ok(state) => state,
            Err(sqlx::Error::Database(error)) if is_unmigrated(error.code().as_deref()) => {
                (None, false)
            }
            Err(error) => return Err(error.into()),
        };
        let wanted = MIGRATIONS.iter().map(|migration| migration.version).max();
        if applied < wanted {
            return Ok(Readiness::NotMigrated);
        }
        if read_only {
            self.renew();
            return Ok(Readiness::ReadOnly);
        }
        Ok(Readiness::Ready)
    }

    /// Lets every connection be made anew before it is used again, for a database that took no writes.
    pub fn renew(&self) {
        self.writer.renew();
    }

    /// A connection that sees one tenant only.
    pub(super) async fn reading(
        &self,
        tenant: TenantId,
    ) -> Result<sqlx::pool::PoolConnection<sqlx::Postgres>, StoreError> {
        let mut connection = self.reader.acquire().await?;
        let setting = sqlx::query_scalar!(
            "select set_config('wrkflw.tenant', $1, false)",
            tenant.to_string()
        );
        within(setting.fetch_one(&mut *connection)).await?;
        Ok(connection)
    }

    /// What the relay works on.
    pub fn outbox(&self) -> Outbox {
        Outbox::new(self.relay.clone())
    }

    /// Connections in use and idle, per role.
    pub fn usage(&self) -> [(&'static str, u32, usize); 3] {
        let of = |role, pool: &Pool| {
            let (open, idle) = pool.usage();
            (role, open, idle)
        };
        [
            of("writer", &self.writer),
            of("reader", &self.reader),
            of("relay", &self.relay),
        ]
    }

    /// Waits for the connections in use and closes all.
    pub async fn close(&self) {
        tokio::join!(self.writer.close(), self.reader.close(), self.relay.close());
    }
}

/// Applies what is missing, each migration whole or not at all.
async fn migrate(url: &str) -> Result<(), StoreError> {
    let mut connection = PgConnection::connect_with(&options(url)?).await?;
    for first in [ONE_AT_A_TIME, GIVE_WAY] {
        sqlx::query(first).execute(&mut connection).await?;
    }
    MIGRATIONS.run(&mut connection).await?;
    connection.close().await?;
    Ok(())
}

/// No such table, no such role, or no right to read it: all of them say that no migration was here.
fn is_unmigrated(code: Option<&str>) -> bool {
    matches!(code, Some("42P01" | "42501" | "22023" | "42704"))
}

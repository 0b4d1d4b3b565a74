//! Connections, one pool per role. Every connection gives up its login's rights for those of its role at once.

use std::str::FromStr;

use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

use super::StoreError;
use super::outbox::Outbox;
use super::pool::{Pool, within};
use crate::domain::ids::TenantId;

/// The migrations that this host was built with.
static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

/// How long a statement of the writer waits for a row that another session holds, in milliseconds. Callers look
/// again until their own time is over, so a row that is held for long costs them no connection for ever.
const LOCK_TIMEOUT_MS: &str = "2000";
/// How long a transaction of the writer may be silent, in milliseconds: then its host is taken for gone, and the rows
/// that it held are free.
const SILENT_MAX_MS: &str = "60000";

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
        let options = PgConnectOptions::from_str(url)?
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
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
        ]);
        // Lists have many filters, of which few are set: which index serves a request shows in its values alone.
        let reader = options
            .clone()
            .options([("plan_cache_mode", "force_custom_plan")]);
        Ok(Store {
            writer: Pool::open(writer, "set role wrkflw_writer", sizes.writer),
            reader: Pool::open(reader, "set role wrkflw_reader", sizes.reader),
            relay: Pool::open(options, "set role wrkflw_relay", sizes.relay),
        })
    }

    /// Brings the schema up to date. Runs as the login itself, who must be able to create roles.
    pub async fn migrate(url: &str) -> Result<(), StoreError> {
        let mut connection = PgConnection::connect(url).await?;
        MIGRATIONS.run(&mut connection).await?;
        connection.close().await?;
        Ok(())
    }

    /// Whether the database answers and has all the migrations that this host was built with. Later ones do not
    /// hurt: a migration leaves what the release before it reads.
    pub async fn ready(&self) -> Result<bool, StoreError> {
        // Not a checked query: the table is there only where the migrator made it.
        let applied = sqlx::query_scalar::<_, Option<i64>>(
            "select max(version) from _sqlx_migrations where success",
        );
        let applied = match applied.fetch_one(&self.writer).await {
            Ok(version) => version,
            Err(sqlx::Error::Database(error)) if is_unmigrated(error.code().as_deref()) => None,
            Err(error) => return Err(error.into()),
        };
        let wanted = MIGRATIONS.iter().map(|migration| migration.version).max();
        Ok(applied >= wanted)
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

/// No such table, no such role, or no right to read it: all of them say that no migration was here.
fn is_unmigrated(code: Option<&str>) -> bool {
    matches!(code, Some("42P01" | "42501" | "22023" | "42704"))
}

//! The connection pools, one for each role of the database. Each connection takes on its role as soon as it is open.

use std::ops::Deref;
use std::str::FromStr;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};

use super::StoreError;
use super::described::KeptTexts;
use super::outbox::Outbox;
use super::pool::{Limited, Pool, Renewal};
use super::viewer::Viewer;
use super::viewer::plans::{Plans, Tables};

/// The migrations that this host was built with.
static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

/// How long a statement of the writer waits for a locked row, in milliseconds. Callers retry until their own deadline, so a
/// long lock does not occupy a connection.
const LOCK_TIMEOUT_MS: &str = "2000";
/// How long a transaction of the writer may be silent, in milliseconds. Then PostgreSQL ends it and frees its locks, because
/// its host has probably failed.
const SILENT_MAX_MS: &str = "60000";

/// How long a query or the relay waits for a lock, in milliseconds. Usually a migration that alters the table holds the lock.
const READ_LOCK_TIMEOUT_MS: &str = "5000";

/// The first statements of a writer connection. On another server or timeline, `begin_history` begins a history before
/// anything is written.
const WRITER_FIRST: &[&str] = &["set role wrkflw_writer", "select begin_history()"];
/// The time limit of a query. No caller waits longer.
const READ_TIMEOUT: &str = "8s";

/// The first statement of a migration. Only one runs at a time, and the others ask again without limit. They do not wait within a
/// statement: a waiting statement has a snapshot, and a `create index concurrently` of the running migration would wait for that snapshot.
const ONE_AT_A_TIME: &str = "select pg_try_advisory_lock(8246133957)";
/// How long a migration waits for the lock of a table. Other statements queue behind it, so it soon gives up and retries.
const GIVE_WAY: &str = "set lock_timeout = '1s'";
/// Drops invalid indexes. A failed `create index concurrently` leaves an invalid index, and the next attempt would take it for complete.
const DROP_UNFINISHED: &str = "do $$ declare one regclass; begin
    for one in select i.indexrelid from pg_index i join pg_class c on c.oid = i.indexrelid
        where not i.indisvalid and c.relnamespace = 'public'::regnamespace
    loop execute format('drop index %s', one); end loop; end $$";
/// The attempts of a migration, and the pause between them.
const MIGRATION_TRIES: u32 = 60;
const MIGRATION_PAUSE: Duration = Duration::from_secs(1);

/// Whether the database can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// Migrations are missing.
    NotMigrated,
    /// It answers, but takes no writes.
    ReadOnly,
}

/// How many connections each role may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSizes {
    pub writer: u32,
    pub reader: u32,
    pub relay: u32,
}

/// Requests in flight for each connection. With more connections, requests would wait within PostgreSQL instead.
const REQUESTS_PER_CONNECTION: usize = 16;
/// The minimum and maximum of connections of a process. PostgreSQL accepts 100 by default, and other hosts need some.
const CONNECTIONS_MIN: usize = 5;
const CONNECTIONS_MAX: usize = 64;
/// Connections of the relay.
const RELAY_CONNECTIONS: u32 = 2;

impl PoolSizes {
    /// The connections of a process with this limit of concurrent requests: one for each 16 requests. Half of them are for
    /// commands, two for the relay, the rest for queries.
    pub fn serving(requests_in_flight_max: usize) -> PoolSizes {
        let connections = (requests_in_flight_max / REQUESTS_PER_CONNECTION)
            .clamp(CONNECTIONS_MIN, CONNECTIONS_MAX);
        let connections = u32::try_from(connections).expect("at most 64");
        PoolSizes {
            writer: connections / 2,
            reader: connections - connections / 2 - RELAY_CONNECTIONS,
            relay: RELAY_CONNECTIONS,
        }
    }
}

impl Default for PoolSizes {
    /// About eight for each core of a small database, where throughput peaks.
    fn default() -> PoolSizes {
        PoolSizes {
            writer: 8,
            reader: 6,
            relay: RELAY_CONNECTIONS,
        }
    }
}

/// The connection options of a URL. The library alone would accept any scheme.
pub(super) fn options(url: &str) -> Result<PgConnectOptions, StoreError> {
    match url.split_once("://") {
        Some(("postgres" | "postgresql", _)) => Ok(PgConnectOptions::from_str(url)?),
        _ => Err(StoreError::NoPostgres),
    }
}

/// The queries. The HTTP API has a `Reader` and no [`Store`], so the compiler prevents it from writing. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Reader {
    /// For writes, and for reads that must be current. Its statements name the tenant.
    pub(super) writer: Pool,
    /// For queries. A connection sees only the tenant that it was set to.
    pub(super) reader: Pool,
    relay: Pool,
    pub(super) texts: KeptTexts,
    pub(super) tables: Tables,
    /// The time limit of a statement of a snapshot; zero is none.
    pub(super) snapshot_statement_max: Duration,
}

/// The queries of a [`Reader`], and the writes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store(Reader);

impl Deref for Store {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.0
    }
}

impl Reader {
    /// The same for a waiting caller: no statement of a snapshot runs longer than this.
    #[must_use]
    pub fn limiting_snapshots(&self, statement_max: Duration) -> Reader {
        Reader {
            snapshot_statement_max: statement_max,
            ..self.clone()
        }
    }

    /// Whether the database answers, has all the migrations that this host was built with, and takes writes.
    pub async fn ready(&self) -> Result<Readiness, StoreError> {
        let ready = readiness(&self.writer).await?;
        if ready == Readiness::ReadOnly {
            self.renew();
        }
        Ok(ready)
    }

    /// The same for a program that only reads: the login needs no role that writes, and no history begins.
    pub async fn ready_to_read(&self) -> Result<Readiness, StoreError> {
        readiness(&self.reader).await
    }

    /// Like [`Reader::ready`]. Also opens a connection of each role that a host uses, so that a login without one of the roles
    /// is refused before the host serves. Only the relay uses the relay's role.
    pub async fn ready_to_start(&self, relays: bool) -> Result<Readiness, StoreError> {
        let ready = self.ready().await?;
        if ready == Readiness::Ready {
            drop(self.reader.acquire().await?);
            if relays {
                drop(self.relay.acquire().await?);
            }
        }
        Ok(ready)
    }

    /// Makes the pools replace all connections before their next use, after the database took no writes.
    pub fn renew(&self) {
        self.writer.renew();
    }

    /// A connection that sees only what the viewer sees. A tenant as the viewer sees no restricted instance.
    pub(super) async fn reading(&self, viewer: impl Into<Viewer>) -> Result<Limited, StoreError> {
        let mut connection = self.reader_connection().await?;
        let viewer = viewer.into();
        viewer.settle(&mut connection, Plans::OfValues).await?;
        Ok(connection)
    }

    /// A connection without a viewer, which the caller must set.
    pub(super) async fn reader_connection(&self) -> Result<Limited, StoreError> {
        Ok(self.reader.acquire().await?)
    }

    /// Open connections, and the idle ones among them, for each role.
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

impl Store {
    /// Opens the pools. No connection is made before it is needed.
    pub fn connect(url: &str, sizes: PoolSizes) -> Result<Store, StoreError> {
        // JIT compilation costs more than it saves for statements of a millisecond. If a caller goes away during a commit, the library
        // sends a rollback. PostgreSQL would warn each time if the commit has ended, and keeps its warnings in its own log.
        let options = options(url)?
            .application_name("wrkflw")
            .options([("jit", "off"), ("client_min_messages", "error")]);
        // The plan of the commit is cached: planning each call halves its throughput. The writer only looks rows up by key,
        // so other kinds of plans are disabled. A plan made for an empty table would scan it until the table is analysed,
        // slower with every row. Joins compare the tenant with that of the joined row, not with a parameter: without
        // statistics, the planner takes the parameter alone for a key.
        let writer = options.clone().options([
            ("plan_cache_mode", "force_generic_plan"),
            ("lock_timeout", LOCK_TIMEOUT_MS),
            ("idle_in_transaction_session_timeout", SILENT_MAX_MS),
            ("enable_seqscan", "off"),
            ("enable_bitmapscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
        ]);
        // Parallel workers cost more than they save for statements of a millisecond.
        let reader = options.clone().options([
            ("max_parallel_workers_per_gather", "0"),
            ("lock_timeout", READ_LOCK_TIMEOUT_MS),
            ("statement_timeout", READ_TIMEOUT),
        ]);
        let relay = options.options([("lock_timeout", READ_LOCK_TIMEOUT_MS)]);
        let renewal = Renewal::default();
        Ok(Store(Reader {
            writer: Pool::open(writer, WRITER_FIRST, sizes.writer, &renewal),
            reader: Pool::open(reader, &["set role wrkflw_viewer"], sizes.reader, &renewal),
            relay: Pool::open(relay, &["set role wrkflw_relay"], sizes.relay, &renewal),
            texts: KeptTexts::default(),
            tables: Tables::default(),
            snapshot_statement_max: Duration::ZERO,
        }))
    }

    /// Applies the missing migrations while hosts run. Runs as the login itself. The login must be able to create roles, or to take on
    /// all of the host's roles.
    pub async fn migrate(url: &str) -> Result<(), StoreError> {
        Store::migrate_telling(url, |waits| tracing::info!("{waits}")).await
    }

    /// The same. Calls `on_wait` with the reason as soon as it waits.
    pub async fn migrate_telling(url: &str, on_wait: impl Fn(&str)) -> Result<(), StoreError> {
        let mut tries = 1;
        loop {
            match migrate(url, &on_wait).await {
                Err(error) if error.is_contention() && tries < MIGRATION_TRIES => {
                    if tries == 1 {
                        on_wait(&format!(
                            "a migration waits for another session, which pg_stat_activity shows, and is tried again for a minute or two: {error}"
                        ));
                    }
                    tries += 1;
                    tokio::time::sleep(MIGRATION_PAUSE).await;
                }
                ended => return ended,
            }
        }
    }

    /// The outbox, for the relay.
    pub fn outbox(&self) -> Outbox {
        Outbox::new(self.relay.clone(), self.texts.clone())
    }
}

/// Checks the readiness over a connection of this pool. It checks only the last migration, which implies the earlier ones. Later
/// migrations are harmless, because each keeps the columns and tables that the previous release reads.
async fn readiness(pool: &Pool) -> Result<Readiness, StoreError> {
    // Not a checked query, because only the migrator creates the table.
    let state = sqlx::query_as::<_, (bool, bool)>(
        "select exists (select from _sqlx_migrations where version = $1 and checksum = $2 and success),
            current_setting('transaction_read_only')::bool",
    );
    let last = MIGRATIONS.iter().max_by_key(|migration| migration.version);
    let state = state
        .bind(last.map(|last| last.version))
        .bind(last.map(|last| last.checksum.to_vec()));
    match state.fetch_one(pool).await {
        Ok((false, _)) => Ok(Readiness::NotMigrated),
        Ok((true, true)) => Ok(Readiness::ReadOnly),
        Ok((true, false)) => Ok(Readiness::Ready),
        Err(sqlx::Error::Database(error)) if is_unmigrated(error.code().as_deref()) => {
            Ok(Readiness::NotMigrated)
        }
        Err(error) => Err(error.into()),
    }
}

/// Applies the missing migrations.
async fn migrate(url: &str, on_wait: &impl Fn(&str)) -> Result<(), StoreError> {
    let mut connection = PgConnection::connect_with(&options(url)?).await?;
    let mut waits = false;
    while !sqlx::query_scalar::<_, bool>(ONE_AT_A_TIME)
        .fetch_one(&mut connection)
        .await?
    {
        if !waits {
            on_wait("another session migrates this database: waiting until it has ended");
        }
        waits = true;
        tokio::time::sleep(MIGRATION_PAUSE).await;
    }
    for first in [GIVE_WAY, DROP_UNFINISHED] {
        sqlx::query(first).execute(&mut connection).await?;
    }
    match MIGRATIONS.run(&mut connection).await {
        Err(MigrateError::VersionMissing(version) | MigrateError::VersionMismatch(version)) => {
            return Err(StoreError::OtherMigration(version));
        }
        ended => ended?,
    }
    connection.close().await?;
    Ok(())
}

/// Whether the error says that the table or role is missing, or that the table may not be read. Then no migration has run.
fn is_unmigrated(code: Option<&str>) -> bool {
    matches!(code, Some("42P01" | "42501" | "22023" | "42704"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_follow_the_requests_in_flight() {
        let sizes = |requests| {
            let PoolSizes {
                writer,
                reader,
                relay,
            } = PoolSizes::serving(requests);
            (writer, reader, relay)
        };
        assert_eq!(sizes(1), (2, 1, 2));
        assert_eq!(sizes(160), (5, 3, 2));
        assert_eq!(sizes(256), (8, 6, 2));
        assert_eq!(sizes(100_000), (32, 30, 2));
        assert_eq!(PoolSizes::serving(256), PoolSizes::default());
    }
}

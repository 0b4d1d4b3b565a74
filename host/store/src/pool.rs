//! A connection pool whose statements have a time limit.
//!
//! A network may drop a connection silently. The kernel notices that only after a quarter of an hour. Meanwhile the waiting
//! statements would use up the pool. So a statement without an answer fails with a passing error, and its connection is closed.
//! Connections that were idle at that time may be dead as well, so each is pinged before its next use. Connections that were idle
//! for long are also pinged, because some networks drop idle connections.
//!
//! A transaction has three limits. PostgreSQL ends a statement that takes too long, and a transaction whose host is silent.
//! [`transacted`] ends a transaction that takes too long, even if the server does not answer. That of a signer of checkpoints, which works
//! on many tenants, has this limit for each step.
//!
//! Between statements, connections are kept outside the pool (`idle`), because returning one costs a round trip. A reader holds a
//! connection for several statements (`limited`). All rows of a statement are collected before the first is returned.

mod idle;
mod limited;
mod refusal;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use sqlx::postgres::{
    PgConnectOptions, PgPool, PgPoolOptions, PgQueryResult, PgRow, PgStatement, PgTypeInfo,
};
use sqlx::{
    Connection as _, Either, Execute, Executor, PgConnection, Postgres, SqlSafeStr, SqlStr,
    Transaction,
};
use tokio::time::{Instant, timeout};

use self::idle::{IdleConnections, Lease};
pub(super) use self::limited::Limited;
use self::refusal::{OURS, Refusal, begin};
use wrkflw_core::ids::TenantId;

/// How long a caller waits for a free connection.
const ACQUIRE_MAX: Duration = Duration::from_secs(5);
/// The time limit of a statement, including the wait for its connection. It is longer than the lock timeout.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(8);
/// Begins a transaction. PostgreSQL ends its statements when no caller waits for them any more.
const BEGIN: &str = "begin; set local statement_timeout = '8s'";
/// The time limit of a transaction, with all its statements and its commit.
const TRANSACTION_MAX: Duration = Duration::from_secs(30);
/// The time limit of a ping, and of the return of a connection to the pool.
const REST_MAX: Duration = Duration::from_secs(2);

/// The shortest time between two renewals.
const RENEWED_EVERY: Duration = Duration::from_secs(1);

/// Connections of one role. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    inner: PgPool,
    idle: IdleConnections,
    last_timeout: LastTimeout,
    renewal: Renewal,
    refusal: Refusal,
}

/// When a statement last got no answer. Connections that were idle at that time may be dead as well.
#[derive(Debug, Clone, Default)]
struct LastTimeout(Arc<Mutex<Option<Instant>>>);

impl LastTimeout {
    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn was_within(&self, idle_for: Duration) -> bool {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_some_and(|at| at.elapsed() <= idle_for)
    }

    /// Waits at most this long for an answer of the server.
    async fn within<T, E: From<sqlx::Error>>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let answered = timeout(limit, work).await;
        answered.unwrap_or_else(|_| {
            self.note();
            Err(no_answer_within(limit).into())
        })
    }

    /// Whether a connection that was idle for this time can be used. It is pinged if it may be dead.
    async fn clears(&self, connection: &mut PgConnection, idle_for: Duration) -> bool {
        let may_be_dead = idle::is_stale(idle_for) || self.was_within(idle_for);
        !may_be_dead || self.within(REST_MAX, connection.ping()).await.is_ok()
    }
}

/// The renewal of connections. A connection that was opened while the database took no writes may stay read-only for ever.
/// Shared by the pools of one store.
#[derive(Debug, Clone, Default)]
pub(super) struct Renewal(Arc<Mutex<Option<Instant>>>);

impl Renewal {
    /// Makes the pools replace every open connection before its next use.
    pub(super) fn begin(&self) {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if since.is_none_or(|at| at.elapsed() >= RENEWED_EVERY) {
            *since = Some(Instant::now());
        }
    }

    /// Whether a connection of this age must be replaced.
    pub(super) fn outdates(&self, age: Duration) -> bool {
        let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        since.is_some_and(|at| age > at.elapsed())
    }
}

impl Pool {
    /// Opens a pool. Each connection runs the statements `first` when it is opened. Connections are opened on demand.
    pub(super) fn open(
        options: PgConnectOptions,
        first: &'static [&'static str],
        size: u32,
        renewal: &Renewal,
    ) -> Pool {
        let (last_timeout, renewal) = (LastTimeout::default(), renewal.clone());
        let (of_idle, of_old) = (last_timeout.clone(), renewal.clone());
        let options = options.options([OURS]);
        let refusal = Refusal::new(options.clone(), first);
        let inner = PgPoolOptions::new()
            .max_connections(size)
            .acquire_timeout(ACQUIRE_MAX)
            .test_before_acquire(false)
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    let begun = begin(connection, first).await;
                    begun.map_err(|(_, error)| error)
                })
            })
            .before_acquire(move |connection, usage| {
                let is_old = of_old.outdates(usage.age);
                let last_timeout = of_idle.clone();
                Box::pin(async move {
                    Ok(!is_old && last_timeout.clears(connection, usage.idle_for).await)
                })
            })
            // This needs no round trip if no statement is in progress, as in nearly all cases.
            .after_release(|connection, _| {
                Box::pin(async move {
                    ended_within(REST_MAX, connection.flush()).await?;
                    Ok(true)
                })
            })
            .connect_lazy_with(options);
        Pool {
            inner,
            idle: IdleConnections::default(),
            last_timeout,
            renewal,
            refusal,
        }
    }

    /// Makes all pools replace their connections before the next use.
    pub(super) fn renew(&self) {
        self.renewal.begin();
    }

    /// A connection for several statements.
    pub(super) async fn acquire(&self) -> Result<Limited, sqlx::Error> {
        let lease = self.within(self.lease()).await?;
        Ok(Limited::new(lease, self.last_timeout.clone()))
    }

    pub(super) async fn begin(&self) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        self.begin_with(BEGIN).await
    }

    pub(super) async fn begin_with(
        &self,
        statement: impl SqlSafeStr,
    ) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        let statement = Some(statement.into_sql_str());
        let begun = async {
            let connection = self.lease().await?.into_inner();
            Transaction::begin(connection, statement).await
        };
        self.within(begun).await
    }

    /// Waits at most [`ANSWER_MAX`] for an answer of the server.
    pub(super) async fn within<T, E: From<sqlx::Error>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.last_timeout.within(ANSWER_MAX, work).await
    }

    /// The number of connections, and of the idle ones among them.
    pub(super) fn usage(&self) -> (u32, usize) {
        (self.inner.size(), self.inner.num_idle() + self.idle.len())
    }

    /// Waits for the connections in use and closes all.
    pub(super) async fn close(&self) {
        // The call closes the pool. Only the wait for the connections in use is deferred.
        let closed = self.inner.close();
        self.idle.clear();
        closed.await;
    }

    /// Takes a kept connection, or one of the pool.
    async fn lease(&self) -> Result<Lease, sqlx::Error> {
        loop {
            match self.idle.take() {
                Ok((lease, idle_for)) => {
                    if let Some(lease) = self.still_good(lease, idle_for).await {
                        return Ok(lease);
                    }
                }
                // The future that opens a connection has 30 kB. The box keeps it out of the future of every statement.
                Err(_waiting) => {
                    return match Box::pin(self.inner.acquire()).await {
                        Ok(connection) => Ok(Lease::new(connection)),
                        Err(error) => Err(Box::pin(self.refusal.explain(error)).await),
                    };
                }
            }
        }
    }

    async fn still_good(&self, mut lease: Lease, idle_for: Duration) -> Option<Lease> {
        // Dropped here, it returns to the pool, which closes outdated connections.
        if self.renewal.outdates(lease.age()) {
            return None;
        }
        if self.last_timeout.clears(lease.connection(), idle_for).await {
            return Some(lease);
        }
        // The other kept connections were idle for longer. To ping one after the other would use up the time of the statement.
        lease.close();
        self.idle.close();
        None
    }

    /// Runs a statement on a kept connection. A connection is not kept again after a failure.
    async fn on_lease<T>(
        &self,
        statement: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        let work = async {
            let mut lease = self.lease().await?;
            let answer = statement(lease.connection()).await?;
            self.idle.put(lease, || self.inner.is_closed());
            Ok::<_, sqlx::Error>(answer)
        };
        self.within(work).await
    }
}

/// Waits at most [`ANSWER_MAX`] for an answer to statements of an open transaction.
pub(super) async fn within<T, E: From<sqlx::Error>>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    ended_within(ANSWER_MAX, work).await
}

/// Runs a transaction, at most for [`TRANSACTION_MAX`]. Dropping it rolls it back.
pub(super) async fn transacted<T, E: From<sqlx::Error>>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    ended_within(TRANSACTION_MAX, work).await
}

/// Locks that hold until the end of a transaction, so that concurrent requests of one tenant do not pass a limit together.
#[derive(Clone, Copy)]
pub(super) enum LimitLock<'a> {
    RunningOperations,
    StoppedVersions,
    /// The number of views of this person.
    SavedViews(&'a str),
}

/// Takes the lock of this limit of the tenant.
pub(super) async fn lock(
    connection: &mut PgConnection,
    limit: LimitLock<'_>,
    tenant: TenantId,
) -> Result<(), sqlx::Error> {
    let (number, person) = match limit {
        LimitLock::RunningOperations => (13, ""),
        LimitLock::StoppedVersions => (16, ""),
        LimitLock::SavedViews(person) => (17, person),
    };
    // If two people have the same hash, they only wait for each other.
    sqlx::query!(
        r#"select pg_advisory_xact_lock($1, $2 # hashtext($3)) as "locked!: ()""#,
        number,
        tenant.0,
        person
    )
    .execute(connection)
    .await?;
    Ok(())
}

async fn ended_within<T, E: From<sqlx::Error>>(
    limit: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let ended = timeout(limit, work).await;
    ended.unwrap_or_else(|_| Err(no_answer_within(limit).into()))
}

fn no_answer_within(limit: Duration) -> sqlx::Error {
    let message = format!("no answer within {limit:?}");
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, message))
}

impl<'p> Executor<'p> for &'p Pool {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<RowOrCount, sqlx::Error>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let statement = async move |connection: &mut PgConnection| {
            connection.fetch_many(query).try_collect::<Vec<_>>().await
        };
        one_by_one(self.on_lease(statement))
    }

    fn fetch_optional<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxFuture<'e, Result<Option<PgRow>, sqlx::Error>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let statement =
            async move |connection: &mut PgConnection| connection.fetch_optional(query).await;
        Box::pin(self.on_lease(statement))
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, sqlx::Error>>
    where
        'p: 'e,
    {
        Box::pin(self.within((&self.inner).prepare_with(sql, parameters)))
    }

    fn describe<'e>(
        self,
        sql: SqlStr,
    ) -> BoxFuture<'e, Result<sqlx::Describe<Postgres>, sqlx::Error>>
    where
        'p: 'e,
    {
        Box::pin(self.within((&self.inner).describe(sql)))
    }
}

/// A row, or the count that ends a statement.
type RowOrCount = Either<PgQueryResult, PgRow>;

/// Rows that are collected first.
fn one_by_one<'e>(
    rows: impl Future<Output = Result<Vec<RowOrCount>, sqlx::Error>> + Send + 'e,
) -> BoxStream<'e, Result<RowOrCount, sqlx::Error>> {
    let steps = async move { Ok::<_, sqlx::Error>(stream::iter(rows.await?.into_iter().map(Ok))) };
    stream::once(steps).try_flatten().boxed()
}

#[cfg(test)]
mod tests;

//! A connection that is held for several statements, each of which has a time limit.

use std::time::Duration;

use futures_util::TryStreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use sqlx::postgres::{PgRow, PgStatement, PgTypeInfo};
use sqlx::{Execute, Executor, PgConnection, Postgres, SqlStr};

use super::idle::Lease;
use super::{ANSWER_MAX, LastTimeout, REST_MAX, RowOrCount, one_by_one};

/// The time limit of a statement. PostgreSQL ends it before and says why.
const STATEMENT_MAX: Duration = ANSWER_MAX.saturating_add(REST_MAX);

/// A connection whose statements have a time limit.
#[derive(Debug)]
pub(crate) struct Limited {
    lease: Lease,
    last_timeout: LastTimeout,
}

impl Limited {
    pub(super) fn new(lease: Lease, last_timeout: LastTimeout) -> Limited {
        Limited {
            lease,
            last_timeout,
        }
    }

    /// Runs several statements within the time limit of one.
    pub(crate) async fn within<'c, T, E, F>(
        &'c mut self,
        statements: impl FnOnce(&'c mut PgConnection) -> F,
    ) -> Result<T, E>
    where
        E: From<sqlx::Error>,
        F: Future<Output = Result<T, E>>,
    {
        let work = statements(self.lease.connection());
        self.last_timeout.within(STATEMENT_MAX, work).await
    }
}

impl<'c> Executor<'c> for &'c mut Limited {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<RowOrCount, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        one_by_one(self.within(|connection| connection.fetch_many(query).try_collect()))
    }

    fn fetch_optional<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxFuture<'e, Result<Option<PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(self.within(|connection| connection.fetch_optional(query)))
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        Box::pin(self.within(move |connection| connection.prepare_with(sql, parameters)))
    }

    fn describe<'e>(
        self,
        sql: SqlStr,
    ) -> BoxFuture<'e, Result<sqlx::Describe<Postgres>, sqlx::Error>>
    where
        'c: 'e,
    {
        Box::pin(self.within(|connection| connection.describe(sql)))
    }
}

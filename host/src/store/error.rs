//! What can go wrong with the database. A missing row is none of it: that is an `Option`.

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database, or the way to it.
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    /// A row holds what this host never writes.
    #[error("table {table} holds a row {id} that cannot be read: {detail}")]
    Inconsistent {
        table: &'static str,
        id: String,
        detail: String,
    },
    #[error("migration: {0}")]
    Migration(#[from] sqlx::migrate::MigrateError),
}

impl StoreError {
    pub(super) fn inconsistent(
        table: &'static str,
        id: impl ToString,
        detail: impl ToString,
    ) -> StoreError {
        StoreError::Inconsistent {
            table,
            id: id.to_string(),
            detail: detail.to_string(),
        }
    }

    /// Whether the database could not be reached, or gave up: the same request may succeed later.
    pub fn is_passing(&self) -> bool {
        match self {
            StoreError::Database(sqlx::Error::Database(error)) => {
                // Serialization failure, too many connections, shutdown.
                let passes = error.code().is_some_and(|code| {
                    code.starts_with("57P") || matches!(&*code, "40001" | "53300")
                });
                passes || self.is_contention()
            }
            // A connection that ends before it is made is reported as a breach of the protocol.
            StoreError::Database(error) => matches!(
                error,
                sqlx::Error::Io(_)
                    | sqlx::Error::PoolTimedOut
                    | sqlx::Error::PoolClosed
                    | sqlx::Error::Tls(_)
                    | sqlx::Error::Protocol(_)
            ),
            StoreError::Inconsistent { .. } | StoreError::Migration(_) => false,
        }
    }

    /// Whether somebody else held the rows for too long: a deadlock, or a lock that did not come in time.
    pub fn is_contention(&self) -> bool {
        self.is_lock_timeout() || self.has_code("40P01")
    }

    /// Whether a statement ran for longer than it may.
    pub fn is_overlong(&self) -> bool {
        self.has_code("57014")
    }

    /// Whether a row was held by somebody else for longer than a statement waits.
    pub(super) fn is_lock_timeout(&self) -> bool {
        self.has_code("55P03")
    }

    fn has_code(&self, wanted: &str) -> bool {
        match self {
            StoreError::Database(sqlx::Error::Database(error)) => {
                error.code().is_some_and(|code| code == wanted)
            }
            StoreError::Database(_)
            | StoreError::Inconsistent { .. }
            | StoreError::Migration(_) => false,
        }
    }
}

//! What can go wrong with the database. A missing row is none of it: that is an `Option`.

use std::sync::Arc;

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
    /// The failure of a statement that carried several requests.
    #[error(transparent)]
    Shared(Arc<StoreError>),
    /// The statement's end was never heard of in this process.
    #[error("the statement ended without a word")]
    Lost,
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

    /// The same error for each of several requests.
    pub fn for_each(self) -> impl Iterator<Item = StoreError> {
        let shared = Arc::new(self);
        std::iter::repeat_with(move || StoreError::Shared(shared.clone()))
    }

    /// Whether one member of a batch may have failed all of it: by its values, or by a row that somebody holds.
    pub fn may_be_of_one(&self) -> bool {
        !self.is_passing() || self.is_contention()
    }

    /// Whether the database could not be reached, or gave up: the same request may succeed later.
    pub fn is_passing(&self) -> bool {
        match self {
            StoreError::Shared(error) => error.is_passing(),
            StoreError::Lost => true,
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
            StoreError::Shared(error) => error.has_code(wanted),
            StoreError::Database(_)
            | StoreError::Inconsistent { .. }
            | StoreError::Migration(_)
            | StoreError::Lost => false,
        }
    }
}

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
                // Serialization failure, deadlock, shutdown, too many connections.
                error.code().is_some_and(|code| {
                    code.starts_with("57P") || matches!(&*code, "40001" | "40P01" | "53300")
                })
            }
            StoreError::Database(error) => {
                matches!(
                    error,
                    sqlx::Error::Io(_)
                        | sqlx::Error::PoolTimedOut
                        | sqlx::Error::PoolClosed
                        | sqlx::Error::Tls(_)
                )
            }
            StoreError::Inconsistent { .. } | StoreError::Migration(_) => false,
        }
    }
}

//! Errors of the database. A missing row is not an error, but an empty `Option`.

use std::sync::Arc;

use sqlx::error::DatabaseError;
use sqlx::migrate::MigrateError;

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// An error of the database or of the connection to it.
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    /// A row has content that hosts never write.
    #[error("table {table} holds a row {id} that cannot be read: {detail}")]
    Inconsistent {
        table: &'static str,
        id: String,
        detail: String,
    },
    /// The URL is not one of PostgreSQL. It may contain a password, so it is not shown.
    #[error("database_url is not a PostgreSQL URL, which begins with postgres:// or postgresql://")]
    NoPostgres,
    #[error("migration: {0}")]
    Migration(#[from] MigrateError),
    /// This program does not have a migration that was applied, or has another one of that number.
    #[error(
        "this program does not have migration {0} of the database. If a later release applied it, run that release. A database \
         from before the first release cannot be migrated: create a new database"
    )]
    OtherMigration(i64),
    /// The failure of a statement that carried several requests.
    #[error(transparent)]
    Shared(Arc<StoreError>),
    /// The result of the statement was lost within this process.
    #[error("the result of the statement was lost")]
    Lost,
}

/// Why a server accepts no connection from this host.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{words}")]
pub(super) struct NoConnection {
    pub(super) words: String,
    /// Whether the login may not take on the role of the connection.
    pub(super) lacks_role: bool,
}

/// Why the database does not work as usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    /// Its disk is full, or fails.
    Full,
    /// It takes no writes: it is a standby, or set to read-only.
    ReadOnly,
    /// It has no free connection, or all connections of this host are in use.
    Connections,
    /// Another session holds a lock.
    Locked,
    /// A statement took too long, or was cancelled.
    Slow,
    /// It cannot be reached, or the connection broke.
    Unreachable,
}

impl Outage {
    /// Its name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Outage::Full => "full",
            Outage::ReadOnly => "read_only",
            Outage::Connections => "connections",
            Outage::Locked => "locked",
            Outage::Slow => "slow",
            Outage::Unreachable => "unreachable",
        }
    }

    /// The message for callers and operators.
    pub fn words(self) -> &'static str {
        match self {
            Outage::Full => "the disk of the database is full, or fails",
            Outage::ReadOnly => "the database is read-only",
            Outage::Connections => "the database has no connection free",
            Outage::Locked => "the database is busy: another session holds a lock",
            Outage::Slow => "the database took too long",
            Outage::Unreachable => "the database is not available now",
        }
    }

    /// How long to wait before a retry. Operators must fix the first two.
    pub fn retry_seconds(self) -> u32 {
        match self {
            Outage::Full | Outage::ReadOnly => 10,
            Outage::Connections | Outage::Locked | Outage::Slow | Outage::Unreachable => 1,
        }
    }
}

impl StoreError {
    /// An error about a row that no host wrote.
    pub fn inconsistent(
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

    /// Whether one member may have failed the whole batch: by its values, or by a locked row.
    pub fn may_be_of_one(&self) -> bool {
        self.is_contention() || !self.is_passing() && self.outage().is_none()
    }

    /// Whether the error is passing: the same request may succeed later.
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
            // A connection that is closed while it is opened is reported as a protocol error.
            StoreError::Database(error) => matches!(
                error,
                sqlx::Error::Io(_)
                    | sqlx::Error::PoolTimedOut
                    | sqlx::Error::PoolClosed
                    | sqlx::Error::Tls(_)
                    | sqlx::Error::Protocol(_)
            ),
            StoreError::Inconsistent { .. }
            | StoreError::NoPostgres
            | StoreError::Migration(_)
            | StoreError::OtherMigration(_) => false,
        }
    }

    /// The outage that caused the error, if the same request may succeed after it.
    pub fn outage(&self) -> Option<Outage> {
        let error = match self {
            StoreError::Database(error) => error,
            StoreError::Shared(error) => return error.outage(),
            StoreError::Lost => return Some(Outage::Unreachable),
            StoreError::Inconsistent { .. }
            | StoreError::NoPostgres
            | StoreError::Migration(_)
            | StoreError::OtherMigration(_) => return None,
        };
        match error {
            sqlx::Error::Database(error) => outage_of(&error.code()?),
            sqlx::Error::PoolTimedOut => Some(Outage::Connections),
            _ => self.is_passing().then_some(Outage::Unreachable),
        }
    }

    /// Whether the login lacks a role of the database. The error names the grant.
    pub fn lacks_role(&self) -> bool {
        let StoreError::Database(sqlx::Error::Io(error)) = self else {
            return false;
        };
        let cause = error.get_ref();
        let cause = cause.and_then(|cause| cause.downcast_ref::<NoConnection>());
        cause.is_some_and(|cause| cause.lacks_role)
    }

    /// Whether rows were locked for too long: a deadlock or a lock timeout.
    pub fn is_contention(&self) -> bool {
        self.is_lock_timeout() || self.has_code("40P01")
    }

    /// Whether a statement was cancelled because it took too long.
    pub fn is_overlong(&self) -> bool {
        self.has_code("57014")
    }

    /// Whether a statement waited too long for a lock.
    fn is_lock_timeout(&self) -> bool {
        self.has_code("55P03")
    }

    /// Whether a notification exists already.
    pub fn is_known_notification(&self) -> bool {
        self.violates("notification_pkey")
    }

    /// Whether a row would violate this constraint.
    pub(super) fn violates(&self, constraint: &str) -> bool {
        matches!(self, StoreError::Database(sqlx::Error::Database(error)) if error.constraint() == Some(constraint))
    }

    fn has_code(&self, wanted: &str) -> bool {
        match self {
            StoreError::Database(sqlx::Error::Database(error)) => {
                error.code().is_some_and(|code| code == wanted)
            }
            StoreError::Shared(error) => error.has_code(wanted),
            StoreError::Migration(
                MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _),
            ) => {
                let code = error.as_database_error().and_then(DatabaseError::code);
                code.is_some_and(|code| code == wanted)
            }
            StoreError::Database(_)
            | StoreError::Inconsistent { .. }
            | StoreError::NoPostgres
            | StoreError::Migration(_)
            | StoreError::OtherMigration(_)
            | StoreError::Lost => false,
        }
    }
}

/// By SQLSTATE. Its classes are 08 for connections, 53 for resources, 57 for operators, 58 for the system.
fn outage_of(code: &str) -> Option<Outage> {
    match code {
        "53100" | "58030" => Some(Outage::Full),
        "25006" => Some(Outage::ReadOnly),
        "53300" => Some(Outage::Connections),
        "55P03" | "40P01" | "40001" => Some(Outage::Locked),
        "57014" => Some(Outage::Slow),
        _ if ["08", "53", "57P"]
            .iter()
            .any(|class| code.starts_with(class)) =>
        {
            Some(Outage::Unreachable)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_told_from_what_does_not() {
        for (code, outage) in [
            ("53100", Some(Outage::Full)),
            ("25006", Some(Outage::ReadOnly)),
            ("53300", Some(Outage::Connections)),
            ("53200", Some(Outage::Unreachable)),
            ("55P03", Some(Outage::Locked)),
            ("57014", Some(Outage::Slow)),
            ("57P01", Some(Outage::Unreachable)),
            ("08006", Some(Outage::Unreachable)),
            ("23505", None),
            ("42501", None),
            ("XX001", None),
        ] {
            assert_eq!(outage_of(code), outage, "{code}");
        }
        let timed_out = StoreError::Database(sqlx::Error::PoolTimedOut);
        assert_eq!(timed_out.outage(), Some(Outage::Connections));
        let of_a_batch = timed_out.for_each().next().expect("as many as asked for");
        assert_eq!(of_a_batch.outage(), Some(Outage::Connections));
        assert_eq!(StoreError::Lost.outage(), Some(Outage::Unreachable));
        let missing = StoreError::Database(sqlx::Error::RowNotFound);
        assert_eq!(missing.outage(), None);
    }
}

//! Explains why no connection could be opened. If a server refuses, or a first statement of a connection fails, the library
//! retries until its time is up. Then it reports only a timeout, as if all connections were in use.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor, PgConnection};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::error::NoConnection;

/// The time limit of a trial connection.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// For how long the result of a trial is reused.
const ANSWER_KEPT: Duration = Duration::from_secs(1);
/// The SQLSTATE of a server without a free connection.
const TOO_MANY_CONNECTIONS: &str = "53300";
/// The SQLSTATE of an undefined function.
const NO_SUCH_FUNCTION: &str = "42883";
/// The SQLSTATE of a statement that the login may not run.
const NOT_ALLOWED: &str = "42501";
/// The beginning of a statement that takes on a role.
const SET_ROLE: &str = "set role ";

/// A setting that a connection sends, and that no server has by itself. If it is missing, a proxy has dropped all settings of the
/// connection. Such a proxy may also give the connection to other clients, which would then have this host's role and viewer.
pub(super) const OURS: (&str, &str) = ("wrkflw.session", "own");
/// Has a row if the settings of the connection have arrived.
const IS_OURS: &str = "select true where current_setting('wrkflw.session', true) = 'own'";
const DROPPED: &str = "something between the host and PostgreSQL drops the settings of the connection (`options`): connect directly, or \
    through a pooler of whole sessions that passes them on";

/// Opens a connection to the server for trial, one at a time.
#[derive(Clone)]
pub(super) struct Refusal(Arc<Server>);

struct Server {
    options: PgConnectOptions,
    /// The first statements of a connection.
    first: &'static [&'static str],
    last: Mutex<Option<Said>>,
}

/// The result of a trial.
struct Said {
    at: Instant,
    /// Why the server accepts no connection. None if it accepts one, or if all its connections are in use.
    cause: Option<NoConnection>,
}

/// Leaves out the options, which contain a password.
impl fmt::Debug for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Refusal").finish_non_exhaustive()
    }
}

impl Refusal {
    pub(super) fn new(options: PgConnectOptions, first: &'static [&'static str]) -> Refusal {
        let last = Mutex::default();
        Refusal(Arc::new(Server {
            options,
            first,
            last,
        }))
    }

    /// The same error; for a timeout its cause, if the server accepts no connections.
    pub(super) async fn explain(&self, error: sqlx::Error) -> sqlx::Error {
        if !matches!(error, sqlx::Error::PoolTimedOut) {
            return error;
        }
        let mut last = self.0.last.lock().await;
        let known = last
            .take()
            .filter(|attempt| attempt.at.elapsed() < ANSWER_KEPT);
        let attempt = match known {
            Some(known) => last.insert(known),
            None => last.insert(self.0.probe().await),
        };
        match &attempt.cause {
            Some(cause) => io::Error::new(io::ErrorKind::ConnectionRefused, cause.clone()).into(),
            None => error,
        }
    }
}

impl Server {
    async fn probe(&self) -> Said {
        let cause = match timeout(ANSWER_MAX, self.tried()).await {
            Ok(tried) => tried.err(),
            Err(_) => Some(because(format!("no answer within {ANSWER_MAX:?}"))),
        };
        let at = Instant::now();
        Said { at, cause }
    }

    /// Opens a connection as the pool does, and closes it.
    async fn tried(&self) -> Result<(), NoConnection> {
        let mut connection = match self.options.connect().await {
            Ok(connection) => connection,
            Err(error) if has_code(&error, TOO_MANY_CONNECTIONS) => return Ok(()),
            Err(error) => return Err(because(error.to_string())),
        };
        begin(&mut connection, self.first)
            .await
            .map_err(|(statement, error)| self.failure_of(statement, &error))?;
        let closed = connection.close().await;
        closed.map_err(|error| because(error.to_string()))
    }

    /// The failure of a first statement.
    fn failure_of(&self, statement: &str, error: &sqlx::Error) -> NoConnection {
        if let sqlx::Error::Configuration(words) = error {
            return because(words.to_string());
        }
        match statement.strip_prefix(SET_ROLE) {
            Some(role) if has_code(error, NOT_ALLOWED) => {
                let login = self.options.get_username();
                let quoted = login.replace('"', "\"\"");
                NoConnection {
                    words: format!(
                        "the login {login} lacks the role {role}; this gives it: grant {role} to \"{quoted}\""
                    ),
                    lacks_role: true,
                }
            }
            _ => because(format!("{statement}: {error}")),
        }
    }
}

/// Checks a new connection and runs its first statements. Returns the one that failed, and why. They are not prepared, so that each costs
/// one round trip.
pub(super) async fn begin(
    connection: &mut PgConnection,
    first: &'static [&'static str],
) -> Result<(), (&'static str, sqlx::Error)> {
    let ours = Executor::fetch_optional(&mut *connection, IS_OURS).await;
    if ours.map_err(|error| (IS_OURS, error))?.is_none() {
        return Err((IS_OURS, sqlx::Error::Configuration(DROPPED.into())));
    }
    for &statement in first {
        match Executor::execute(&mut *connection, statement).await {
            // The schema is older than the function. The readiness check reports that.
            Err(error) if has_code(&error, NO_SUCH_FUNCTION) => {}
            Err(error) => return Err((statement, error)),
            Ok(_) => {}
        }
    }
    Ok(())
}

fn has_code(error: &sqlx::Error, code: &str) -> bool {
    let error = error.as_database_error();
    error.is_some_and(|error| error.code().as_deref() == Some(code))
}

fn because(words: String) -> NoConnection {
    NoConnection {
        words,
        lacks_role: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreError;
    use crate::error::Outage;

    #[tokio::test]
    async fn a_server_that_refuses_is_told_from_one_without_a_free_connection() {
        // No process listens on a port that was just released.
        let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = port.local_addr().expect("an address");
        drop(port);
        let options = PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(address.port());
        let refusal = Refusal::new(options, &[]);
        let explained = StoreError::from(refusal.explain(sqlx::Error::PoolTimedOut).await);
        assert!(explained.to_string().contains("refused"), "{explained}");
        assert_eq!(explained.outage(), Some(Outage::Unreachable));
        let other = refusal.explain(sqlx::Error::PoolClosed).await;
        assert!(matches!(other, sqlx::Error::PoolClosed), "{other}");
    }
}

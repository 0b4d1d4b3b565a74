//! Explains why no connection could be opened. If a server refuses, the library retries until its time is up and then reports
//! only a timeout, the same as when all connections are in use.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// The time limit of a trial connection.
const ANSWER_MAX: Duration = Duration::from_secs(1);
/// For how long the result of a trial is reused.
const ANSWER_KEPT: Duration = Duration::from_secs(1);
/// The SQLSTATE of a server without a free connection.
const TOO_MANY_CONNECTIONS: &str = "53300";

/// Opens a connection to the server for trial, one at a time.
#[derive(Clone)]
pub(super) struct Refusal(Arc<Server>);

struct Server {
    options: PgConnectOptions,
    last: Mutex<Option<Said>>,
}

/// The result of a trial.
struct Said {
    at: Instant,
    /// Why the server accepts no connection; none if it accepts one, or has none free.
    cause: Option<String>,
}

/// Leaves out the options, which contain a password.
impl fmt::Debug for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Refusal").finish_non_exhaustive()
    }
}

impl Refusal {
    pub(super) fn new(options: PgConnectOptions) -> Refusal {
        let last = Mutex::default();
        Refusal(Arc::new(Server { options, last }))
    }

    /// The same error; for a timeout its cause, if the server accepts no connections.
    pub(super) async fn explain(&self, error: sqlx::Error) -> sqlx::Error {
        if !matches!(error, sqlx::Error::PoolTimedOut) {
            return error;
        }
        let mut last = self.0.last.lock().await;
        let known = last.take().filter(|said| said.at.elapsed() < ANSWER_KEPT);
        let said = match known {
            Some(known) => last.insert(known),
            None => last.insert(self.0.ask().await),
        };
        match &said.cause {
            Some(cause) => io::Error::new(io::ErrorKind::ConnectionRefused, cause.clone()).into(),
            None => error,
        }
    }
}

impl Server {
    async fn ask(&self) -> Said {
        let connected = async { self.options.connect().await?.close().await };
        let cause = match timeout(ANSWER_MAX, connected).await {
            Ok(Ok(())) => None,
            Ok(Err(sqlx::Error::Database(error)))
                if error.code().as_deref() == Some(TOO_MANY_CONNECTIONS) =>
            {
                None
            }
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer within {ANSWER_MAX:?}")),
        };
        let at = Instant::now();
        Said { at, cause }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreError;
    use crate::error::Outage;

    #[tokio::test]
    async fn a_server_that_refuses_is_told_from_one_without_a_free_connection() {
        // Nobody listens on a port that was just given back.
        let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = port.local_addr().expect("an address");
        drop(port);
        let options = PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(address.port());
        let refusal = Refusal::new(options);
        let explained = StoreError::from(refusal.explain(sqlx::Error::PoolTimedOut).await);
        assert!(explained.to_string().contains("refused"), "{explained}");
        assert_eq!(explained.outage(), Some(Outage::Unreachable));
        let other = refusal.explain(sqlx::Error::PoolClosed).await;
        assert!(matches!(other, sqlx::Error::PoolClosed), "{other}");
    }
}

//! Serves a router on a listener until it is cancelled, then finishes the requests in flight.
//!
//! This module limits the cost of connections: their number, and how long one may be idle, take for the head of a request,
//! or leave a response unread. Start at [`serve`]. `connection` runs one connection, and `activity` records its last
//! activity.

mod activity;
mod connection;
mod farewell;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Files that the process needs beside the connections of clients: databases, Kafka, webhooks, logs, guests.
const OTHER_FILES: usize = 512;
/// The backlog of connections that are not accepted yet; `net.core.somaxconn` limits it. If the backlog is full, a client
/// retries only after a second. So a burst of connections must fit. The library's default is 128.
const UNACCEPTED_MAX: u32 = 4096;
/// How long a new connection waits until an idle one is closed. If none was closed, connections that come within the same time
/// after it are refused at once.
const ROOM_WAIT: Duration = Duration::from_millis(50);
/// The pause after a failure to accept connections.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// The limits of connections.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of open connections.
    pub connections_max: usize,
    pub timeouts: Timeouts,
}

/// The timeouts of a connection. Only tests change the defaults.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Between requests, and before the first one.
    pub idle_max: Duration,
    /// From the first byte of a request to the end of its head.
    pub head_max: Duration,
    /// How long in total a client may read nothing of ready responses. Each 16 KiB that it reads give back a second.
    pub unread_max: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections_max: 12_000,
            timeouts: Timeouts::default(),
        }
    }
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            idle_max: Duration::from_secs(75),
            head_max: Duration::from_secs(10),
            unread_max: Duration::from_secs(30),
        }
    }
}

/// The state that all connections of a listener share.
#[derive(Clone)]
struct Shared {
    router: Router,
    timeouts: Timeouts,
    /// Asks idle connections to close.
    crowded: Arc<Notify>,
    cancel: CancellationToken,
}

/// Binds an address; port 0 takes any free one. Must be called on the runtime that will serve.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // Connections of an earlier process on this port may linger.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(UNACCEPTED_MAX)
}

/// Accepts connections until `cancel`, and ends when the last request is answered.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    cancel: CancellationToken,
) -> io::Result<()> {
    let connections = TaskTracker::new();
    let mut room = Room {
        places: Arc::new(Semaphore::new(affordable(limits.connections_max))),
        full_until: None,
    };
    let shared = Shared {
        router,
        timeouts: limits.timeouts,
        crowded: Arc::default(),
        cancel: cancel.clone(),
    };
    while let Some(accepted) = cancel.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => match room.place(&shared.crowded).await {
                Some(permit) => {
                    let shared = shared.clone();
                    connections.spawn(async move {
                        connection::run(stream, shared).await;
                        drop(permit);
                    });
                }
                None => refuse(&stream),
            },
            Err(error) if is_of_the_caller(&error) => {}
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted");
                cancel
                    .run_until_cancelled(tokio::time::sleep(ACCEPT_PAUSE))
                    .await;
            }
        }
    }
    drop(listener);
    connections.close();
    connections.wait().await;
    Ok(())
}

/// The places for connections.
struct Room {
    places: Arc<Semaphore>,
    /// Until when nobody waits for a place, because somebody did in vain.
    full_until: Option<Instant>,
}

impl Room {
    /// A place for a new connection. If all are taken, it closes idle connections, so that a client with many idle connections
    /// does not keep others out, and waits for [`ROOM_WAIT`] at most. Meanwhile it accepts no other connections, so a crowd
    /// does not wait one after the other.
    async fn place(&mut self, crowded: &Notify) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(permit);
        }
        if self.full_until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        crowded.notify_waiters();
        let freed = Arc::clone(&self.places).acquire_owned();
        let permit = tokio::time::timeout(ROOM_WAIT, freed).await.ok();
        self.full_until = permit.is_none().then(|| Instant::now() + ROOM_WAIT);
        permit?.ok()
    }
}

fn refuse(stream: &TcpStream) {
    metrics::counter!("wrkflw_http_connections_ended_total", "reason" => "no_room").increment(1);
    farewell::say(stream, "overloaded", "the host has too many connections");
}

/// Whether only this connection failed, before it was accepted, and the listener still works.
fn is_of_the_caller(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

/// How many connections the process may have open. Raises the process's limit of open files as far as the system allows.
fn affordable(wanted: usize) -> usize {
    let files = (wanted + OTHER_FILES) as u64;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let mut granted = current.unwrap_or(u64::MAX);
    if granted < files {
        let raised = maximum.map_or(files, |maximum| files.min(maximum));
        let limit = Rlimit {
            current: Some(raised),
            maximum,
        };
        if raised > granted && setrlimit(Resource::Nofile, limit).is_ok() {
            granted = raised;
        }
    }
    if granted >= files {
        return wanted;
    }
    let affordable = usize::try_from(granted)
        .unwrap_or(usize::MAX)
        .saturating_sub(OTHER_FILES)
        .max(1);
    tracing::warn!(
        wanted,
        affordable,
        open_files_max = granted,
        "the limit of open files allows fewer connections than connections_max: raise it (ulimit -n)"
    );
    affordable
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More connections than the library's backlog holds. The callers' ends are files of this process.
    const CROWD: usize = 500;

    #[tokio::test]
    async fn a_crowd_that_comes_at_once_is_let_in_at_once() {
        let system = std::fs::read_to_string("/proc/sys/net/core/somaxconn");
        let system: usize = system.expect("a limit").trim().parse().expect("a number");
        let listener = listen("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let address = listener.local_addr().expect("an address");
        // No connection is accepted meanwhile, so a caller without room waits for ever.
        let coming = (0..CROWD.min(system)).map(|_| TcpStream::connect(address));
        let came = futures_util::future::join_all(coming);
        let came = tokio::time::timeout(Duration::from_secs(10), came).await;
        assert!(came.expect("all have room").iter().all(io::Result::is_ok));
    }

    #[tokio::test]
    async fn an_address_is_taken_once() {
        let listener = listen("[::1]:0".parse().expect("an address"));
        let listener = listener.or_else(|_| listen("127.0.0.1:0".parse().expect("an address")));
        let listener = listener.expect("a port");
        let again = listen(listener.local_addr().expect("an address"));
        assert_eq!(
            again.err().map(|error| error.kind()),
            Some(io::ErrorKind::AddrInUse)
        );
    }
}

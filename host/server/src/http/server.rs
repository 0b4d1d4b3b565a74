//! Serves a router on a listener until it is told to stop, then finishes the requests that are under way.
//!
//! What the router does with a request is not known here; here is what a connection may cost, whoever is at its other
//! end: how many there are, how long one may say nothing, take over its head, or leave an answer unread. Start at
//! [`serve`]; one connection is in `connection`, what it was seen doing in `activity`.

mod activity;
mod connection;
mod farewell;
mod stream;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Files that the process needs besides the connections of callers: databases, Kafka, webhooks, logs, guests.
const OTHER_FILES: usize = 512;
/// Connections that the system completes before they are accepted, as far as it lets us (`net.core.somaxconn`). One that
/// finds no room tries again of itself, a second later: so a burst of callers has to fit. The library's own figure is 128.
const UNACCEPTED_MAX: u32 = 4096;
/// How long a new connection waits for an idle one to make room.
const ROOM_WAIT: Duration = Duration::from_millis(50);
/// How long nothing is accepted after the system refused to.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// What connections may cost.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// As many are open at once.
    pub connections_max: usize,
    pub timeouts: Timeouts,
}

/// How long a connection may take. Constants of a host; only tests set others.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// How long one may wait between requests, or before the first.
    pub idle_max: Duration,
    /// From the first byte of a request to the end of its head.
    pub head_max: Duration,
    /// How long a client may take nothing of an answer that is ready.
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

/// What all connections of a listener share.
#[derive(Clone)]
struct Shared {
    router: Router,
    timeouts: Timeouts,
    /// Asks idle connections to make room.
    crowded: Arc<Notify>,
    cancel: CancellationToken,
}

/// Takes an address to serve on; port 0 is any that is free. To be called on the runtime that will serve.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // Connections of the process before this one may linger.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(UNACCEPTED_MAX)
}

/// Accepts connections until `cancel`, and ends when the last request has its answer.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    cancel: CancellationToken,
) -> io::Result<()> {
    let connections = TaskTracker::new();
    let room = Arc::new(Semaphore::new(affordable(limits.connections_max)));
    let shared = Shared {
        router,
        timeouts: limits.timeouts,
        crowded: Arc::default(),
        cancel: cancel.clone(),
    };
    while let Some(accepted) = cancel.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => match place(&room, &shared.crowded).await {
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

/// A place among the connections. Where all are taken, idle ones are asked to leave: whoever opens connections and
/// says nothing keeps nobody else out.
async fn place(room: &Arc<Semaphore>, crowded: &Notify) -> Option<OwnedSemaphorePermit> {
    if let Ok(permit) = Arc::clone(room).try_acquire_owned() {
        return Some(permit);
    }
    crowded.notify_waiters();
    let freed = tokio::time::timeout(ROOM_WAIT, Arc::clone(room).acquire_owned());
    freed.await.ok()?.ok()
}

fn refuse(stream: &TcpStream) {
    metrics::counter!("wrkflw_http_connections_ended_total", "reason" => "no_room").increment(1);
    farewell::say(
        stream,
        "overloaded",
        "the host has as many connections as it takes",
    );
}

/// The connection failed before it was accepted; the listener is well.
fn is_of_the_caller(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

/// How many connections the process may have open, raising its own limit as far as the system lets it.
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
        "fewer connections are taken than connections_max says: raise the limit of open files (ulimit -n)"
    );
    affordable
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than the library would let wait; the callers' ends are files of this process.
    const CROWD: usize = 500;

    #[tokio::test]
    async fn a_crowd_that_comes_at_once_is_let_in_at_once() {
        let system = std::fs::read_to_string("/proc/sys/net/core/somaxconn");
        let system: usize = system.expect("a limit").trim().parse().expect("a number");
        let listener = listen("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let address = listener.local_addr().expect("an address");
        // Nobody accepts meanwhile: whoever finds no room waits for ever.
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

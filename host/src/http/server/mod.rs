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
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Files that the process needs besides the connections of callers: databases, Kafka, webhooks, logs, guests.
const OTHER_FILES: usize = 512;
/// How long a new connection waits for an idle one to make room.
const ROOM_WAIT: Duration = Duration::from_millis(50);
/// How long nothing is accepted after the system refused to.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// What connections may cost.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// As many are open at once.
    pub connections_max: usize,
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
    limits: Limits,
    /// Asks idle connections to make room.
    crowded: Arc<Notify>,
    cancel: CancellationToken,
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
        limits,
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

//! A TCP proxy between a host and a server, which a test can slow down, stop, cut and make lose connections.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

const CHUNK_BYTES: usize = 16 * 1024;

/// The address to connect to.
#[derive(Debug, Clone)]
pub(crate) enum Server {
    Socket(PathBuf),
    Address(SocketAddr),
}

/// How the proxy treats bytes and connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Forwards everything.
    Up,
    /// Forwards each chunk after this pause.
    Slow(Duration),
    /// Forwards nothing, and closes nothing. What was sent arrives later.
    Stalled,
    /// Refuses connections and resets open ones.
    Cut,
}

#[derive(Debug, Clone, Copy)]
struct NetworkState {
    condition: Condition,
    /// Connections with smaller numbers were reset.
    cut_below: u64,
    /// Connections with smaller numbers forward nothing any more, and neither side notices.
    lost_below: u64,
}

/// A TCP proxy on a port of its own.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    server: watch::Sender<Option<Server>>,
    state: Arc<watch::Sender<NetworkState>>,
    accepted: Arc<watch::Sender<u64>>,
    _relays: JoinSet<()>,
}

impl Proxy {
    /// Binds a port. Connections wait until [`Proxy::lead_to`] sets a server.
    pub(crate) async fn open() -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(watch::Sender::new(NetworkState {
            condition: Condition::Up,
            cut_below: 0,
            lost_below: 0,
        }));
        let (server, accepted) = (watch::Sender::new(None), Arc::new(watch::Sender::new(0)));
        let mut relays = JoinSet::new();
        let (leads, numbers, states) = (server.subscribe(), accepted.clone(), state.clone());
        relays.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.expect("a connection");
                let mut number = 0;
                numbers.send_modify(|count| {
                    number = *count;
                    *count += 1;
                });
                connections.spawn(serve(client, leads.clone(), number, states.subscribe()));
                while connections.try_join_next().is_some() {}
            }
        });
        Proxy {
            port,
            server,
            state,
            accepted,
            _relays: relays,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// How many connections were opened or tried.
    pub(crate) fn connections(&self) -> u64 {
        *self.accepted.borrow()
    }

    pub(crate) fn lead_to(&self, server: Server) {
        self.server.send_replace(Some(server));
    }

    /// Changes the condition of the network. A cut resets the open connections.
    pub(crate) fn set(&self, condition: Condition) {
        let count = self.connections();
        self.state.send_modify(|state| {
            state.condition = condition;
            if condition == Condition::Cut {
                state.cut_below = count;
            }
        });
    }

    /// Resets both sides of the lost connections, as their kernels do in the end.
    pub(crate) fn reset_lost(&self) {
        self.state.send_modify(|state| {
            state.cut_below = state.cut_below.max(state.lost_below);
        });
    }

    /// Loses every open connection for good, as a firewall that dropped its state: neither side notices. New ones work.
    pub(crate) fn lose(&self) {
        let count = self.connections();
        self.state.send_modify(|state| {
            state.lost_below = count;
        });
    }
}

/// A connection to the server.
trait Upstream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Upstream for T {}

async fn serve(
    client: TcpStream,
    mut leads: watch::Receiver<Option<Server>>,
    number: u64,
    mut state: watch::Receiver<NetworkState>,
) {
    if state.borrow().condition == Condition::Cut {
        reset(&client);
        return;
    }
    let Ok(server) = leads.wait_for(Option::is_some).await.map(|led| led.clone()) else {
        return;
    };
    let server = server.expect("waited for");
    let connected: std::io::Result<Box<dyn Upstream>> = match server {
        Server::Socket(path) => UnixStream::connect(path).await.map(|it| Box::new(it) as _),
        Server::Address(address) => TcpStream::connect(address)
            .await
            .map(|it| Box::new(it) as _),
    };
    // Refuse, as a server that is down does.
    let Ok(upstream) = connected else {
        reset(&client);
        return;
    };
    // Small chunks are sent at once.
    let _ = client.set_nodelay(true);
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = tokio::io::split(upstream);
    let (mut there, mut back) = (state.clone(), state.clone());
    let is_cut = tokio::select! {
        () = forward(&mut from_client, &mut to_server, number, &mut there) => false,
        () = forward(&mut from_server, &mut to_client, number, &mut back) => false,
        is_cut = until_cut(number, &mut state) => is_cut,
    };
    if is_cut && let Ok(client) = from_client.reunite(to_client) {
        reset(&client);
    }
}

/// Returns when this connection is cut.
async fn until_cut(number: u64, state: &mut watch::Receiver<NetworkState>) -> bool {
    let cut = state.wait_for(|state| number < state.cut_below);
    cut.await.is_ok()
}

/// Resets a connection instead of closing it.
fn reset(client: &TcpStream) {
    // A connection that is closed already needs no reset.
    let _ = client.set_zero_linger();
}

/// Forwards bytes in one direction, as the condition permits, until one side closes.
async fn forward(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    number: u64,
    state: &mut watch::Receiver<NetworkState>,
) {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let Ok(count @ 1..) = from.read(&mut chunk).await else {
            // The close of a lost connection does not reach the other side either.
            passable(number, state).await;
            return;
        };
        passable(number, state).await;
        if to.write_all(&chunk[..count]).await.is_err() {
            return;
        }
    }
}

/// Returns when this connection may forward bytes. Never, for a lost one.
async fn passable(number: u64, state: &mut watch::Receiver<NetworkState>) {
    let passable =
        |state: &NetworkState| state.condition != Condition::Stalled && number >= state.lost_below;
    let Ok(condition) = state.wait_for(passable).await.map(|state| state.condition) else {
        return;
    };
    if let Condition::Slow(pause) = condition {
        tokio::time::sleep(pause).await;
    }
}

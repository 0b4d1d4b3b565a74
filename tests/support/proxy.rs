//! The network between a host and a server, which a test can slow, stop, cut and lose.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

const CHUNK_BYTES: usize = 16 * 1024;

/// Where the bytes go.
#[derive(Debug, Clone)]
pub(crate) enum Server {
    Socket(PathBuf),
    Address(SocketAddr),
}

/// What the network does with bytes and connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Carries everything.
    Sound,
    /// Carries each piece after such a pause.
    Slow(Duration),
    /// Carries nothing and says nothing; what was sent arrives when this is over.
    Still,
    /// Refuses and resets.
    Cut,
}

#[derive(Debug, Clone, Copy)]
struct Weather {
    mood: Mood,
    /// Connections with smaller numbers were reset.
    cut_below: u64,
    /// Connections with smaller numbers carry nothing any more, and neither side is told.
    lost_below: u64,
}

/// A relay of bytes on a port of its own.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    server: watch::Sender<Option<Server>>,
    weather: Arc<watch::Sender<Weather>>,
    accepted: Arc<watch::Sender<u64>>,
    _relays: JoinSet<()>,
}

impl Proxy {
    /// Takes a port. Connections wait until they are led somewhere.
    pub(crate) async fn open() -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let weather = Arc::new(watch::Sender::new(Weather {
            mood: Mood::Sound,
            cut_below: 0,
            lost_below: 0,
        }));
        let (server, accepted) = (watch::Sender::new(None), Arc::new(watch::Sender::new(0)));
        let mut relays = JoinSet::new();
        let (leads, numbers, moods) = (server.subscribe(), accepted.clone(), weather.clone());
        relays.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.expect("a connection");
                let mut number = 0;
                numbers.send_modify(|count| {
                    number = *count;
                    *count += 1;
                });
                connections.spawn(serve(client, leads.clone(), number, moods.subscribe()));
                while connections.try_join_next().is_some() {}
            }
        });
        Proxy {
            port,
            server,
            weather,
            accepted,
            _relays: relays,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn lead_to(&self, server: Server) {
        self.server.send_replace(Some(server));
    }

    /// Changes what the network does from now on. A cut ends what is open.
    pub(crate) fn turn(&self, mood: Mood) {
        let count = *self.accepted.borrow();
        self.weather.send_modify(|weather| {
            weather.mood = mood;
            if mood == Mood::Cut {
                weather.cut_below = count;
            }
        });
    }

    /// Tells both sides of the connections that were lost, as their kernels do in the end.
    pub(crate) fn tell(&self) {
        self.weather.send_modify(|weather| {
            weather.cut_below = weather.cut_below.max(weather.lost_below);
        });
    }

    /// Loses every open connection for good, as a firewall that forgot them: neither side is told. New ones are sound.
    pub(crate) fn lose(&self) {
        let count = *self.accepted.borrow();
        self.weather.send_modify(|weather| {
            weather.lost_below = count;
        });
    }
}

/// Bytes to and from the server.
trait Upstream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Upstream for T {}

async fn serve(
    client: TcpStream,
    mut leads: watch::Receiver<Option<Server>>,
    number: u64,
    mut weather: watch::Receiver<Weather>,
) {
    if weather.borrow().mood == Mood::Cut {
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
    // A server that is down refuses.
    let Ok(upstream) = connected else {
        reset(&client);
        return;
    };
    // Small pieces are not held back.
    let _ = client.set_nodelay(true);
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = tokio::io::split(upstream);
    let (mut there, mut back) = (weather.clone(), weather.clone());
    let is_cut = tokio::select! {
        () = carry(&mut from_client, &mut to_server, number, &mut there) => false,
        () = carry(&mut from_server, &mut to_client, number, &mut back) => false,
        is_cut = until_cut(number, &mut weather) => is_cut,
    };
    if is_cut && let Ok(client) = from_client.reunite(to_client) {
        reset(&client);
    }
}

/// Returns when this connection is cut.
async fn until_cut(number: u64, weather: &mut watch::Receiver<Weather>) -> bool {
    let cut = weather.wait_for(|weather| number < weather.cut_below);
    cut.await.is_ok()
}

/// Ends a connection without the politeness of an end.
fn reset(client: &TcpStream) {
    // A connection that is gone already needs no reset.
    let _ = client.set_zero_linger();
}

/// Carries bytes one way, as the weather permits, until one side ends.
async fn carry(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    number: u64,
    weather: &mut watch::Receiver<Weather>,
) {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let Ok(count @ 1..) = from.read(&mut chunk).await else {
            // Nor does the end of one that is lost reach the other side.
            passable(number, weather).await;
            return;
        };
        passable(number, weather).await;
        if to.write_all(&chunk[..count]).await.is_err() {
            return;
        }
    }
}

/// Returns when bytes of this connection may pass; never for one that is lost.
async fn passable(number: u64, weather: &mut watch::Receiver<Weather>) {
    let passable = |weather: &Weather| weather.mood != Mood::Still && number >= weather.lost_below;
    let Ok(mood) = weather.wait_for(passable).await.map(|weather| weather.mood) else {
        return;
    };
    if let Mood::Slow(pause) = mood {
        tokio::time::sleep(pause).await;
    }
}

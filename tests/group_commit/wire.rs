//! A connection between a host and PostgreSQL, cut when the server has committed and its answer is not yet delivered.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The server's last message before it waits for the next statement (`ReadyForQuery`): its type, its length, and that no
/// transaction is open.
const READY: &[u8] = b"Z\0\0\0\x05I";
const CHUNK_BYTES: usize = 64 * 1024;

/// A TCP proxy to the database's server.
pub(crate) struct Wire {
    url: String,
    plan: Arc<Plan>,
    _relays: JoinSet<()>,
}

#[derive(Default)]
struct Plan {
    /// Cut the connection that sends this text to the server, when the server is ready again.
    needle: Mutex<Option<Vec<u8>>>,
    /// How many connections are refused after the cut.
    outage: AtomicUsize,
    /// How many are still to be refused.
    refusals: AtomicUsize,
    /// Ends the other connections, too, so that the pool must open new ones.
    gone: watch::Sender<()>,
}

/// The server's address: a TCP address, or a socket in a folder.
struct Server {
    user: String,
    address: String,
    folder: Option<String>,
    database: String,
}

impl Server {
    fn of(url: &str) -> Server {
        let rest = url.split("://").nth(1).expect("a URL");
        let (authority, path) = rest.split_once('/').expect("a URL names its database");
        let (user, address) = authority.split_once('@').expect("a URL names its user");
        let (database, query) = path.split_once('?').unwrap_or((path, ""));
        let folder = query.split('&').find_map(|pair| pair.strip_prefix("host="));
        Server {
            user: user.to_owned(),
            address: address.to_owned(),
            folder: folder.map(|folder| folder.replace("%2F", "/")),
            database: database.to_owned(),
        }
    }

    /// The URL of the same database at a port of this machine.
    fn url_at(&self, port: u16) -> String {
        format!(
            "postgres://{}@127.0.0.1:{port}/{}",
            self.user, self.database
        )
    }

    async fn connect(&self) -> Box<dyn Upstream> {
        match &self.folder {
            Some(folder) => {
                let socket = UnixStream::connect(format!("{folder}/.s.PGSQL.5432")).await;
                Box::new(socket.expect("the server's socket"))
            }
            None => Box::new(TcpStream::connect(&self.address).await.expect("the server")),
        }
    }
}

/// A connection to the server.
trait Upstream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Upstream for T {}

impl Wire {
    /// A wire to the server of a database's URL.
    pub(crate) async fn to(url: &str) -> Wire {
        let server = Server::of(url);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let plan = Arc::new(Plan::default());
        let mut relays = JoinSet::new();
        let (url, accepting) = (server.url_at(port), plan.clone());
        relays.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.expect("a connection");
                let refuse = |left: usize| left.checked_sub(1);
                if accepting
                    .refusals
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, refuse)
                    .is_ok()
                {
                    continue;
                }
                let upstream = server.connect().await;
                connections.spawn(relay(client, upstream, accepting.clone()));
            }
        });
        Wire {
            url,
            plan,
            _relays: relays,
        }
    }

    /// The URL of the database through this proxy.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Loses the answer to the next statement that contains `needle`. With an `outage`, all connections end as well, and that
    /// many new ones are refused.
    pub(crate) fn lose_the_answer_to(&self, needle: &str, outage: usize) {
        *self.plan.needle.lock().expect("a lock") = Some(needle.as_bytes().to_vec());
        self.plan.outage.store(outage, Ordering::SeqCst);
    }

    /// Cuts all connections. The server goes on with its statements.
    pub(crate) fn cut(&self) {
        self.plan.gone.send_replace(());
    }

    /// Whether the answer was lost and all intended refusals have happened.
    pub(crate) fn is_spent(&self) -> bool {
        self.plan.needle.lock().expect("a lock").is_none()
            && self.plan.refusals.load(Ordering::SeqCst) == 0
    }
}

impl Plan {
    fn cut(&self) {
        let outage = self.outage.load(Ordering::SeqCst);
        self.refusals.store(outage, Ordering::SeqCst);
        if outage > 0 {
            self.gone.send_replace(());
        }
    }

    /// Whether the text is being sent. It is found only once.
    fn spots(&self, sent: &[u8]) -> bool {
        let mut needle = self.needle.lock().expect("a lock");
        let found = needle
            .as_ref()
            .is_some_and(|needle| sent.windows(needle.len()).any(|window| window == needle));
        if found {
            *needle = None;
        }
        found
    }
}

async fn relay(mut client: TcpStream, mut server: Box<dyn Upstream>, plan: Arc<Plan>) {
    let (mut sent, mut answered) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    let mut gone = plan.gone.subscribe();
    let (mut doomed, mut swallowed) = (false, Vec::new());
    loop {
        tokio::select! {
            _ = gone.changed() => return,
            read = client.read(&mut sent) => {
                let Ok(count @ 1..) = read else { return };
                doomed |= plan.spots(&sent[..count]);
                if server.write_all(&sent[..count]).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Ok(count @ 1..) = read else { return };
                if !doomed {
                    if client.write_all(&answered[..count]).await.is_err() {
                        return;
                    }
                    continue;
                }
                swallowed.extend_from_slice(&answered[..count]);
                if swallowed.ends_with(READY) {
                    plan.cut();
                    return;
                }
            }
        }
    }
}

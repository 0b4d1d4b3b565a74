//! A proxy between a host and PostgreSQL that records which statements are sent with which parameters. The same bytes can be sent
//! again over another connection.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;

/// A statement as it was executed.
#[derive(Clone)]
pub(super) struct Statement {
    /// The role of the connection.
    pub(super) role: String,
    pub(super) sql: String,
    /// The rest of the Parse message: the types of the parameters.
    types: Vec<u8>,
    /// The rest of the Bind message: formats and values.
    values: Vec<u8>,
}

impl fmt::Debug for Statement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} ({} bytes of values)",
            self.sql,
            self.values.len()
        )
    }
}

/// The address of the server: TCP, or a socket in a folder.
#[derive(Clone)]
struct Server {
    address: String,
    folder: Option<String>,
    database: String,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Server {
    fn of(url: &str) -> Server {
        let rest = url.split("://").nth(1).expect("a URL");
        let (authority, path) = rest.split_once('/').expect("a URL names its database");
        let (database, query) = path.split_once('?').unwrap_or((path, ""));
        let folder = query.split('&').find_map(|pair| pair.strip_prefix("host="));
        let address = authority.rsplit('@').next().unwrap_or(authority);
        Server {
            address: address.to_owned(),
            folder: folder.map(|folder| folder.replace("%2F", "/")),
            database: database.to_owned(),
        }
    }

    async fn connect(&self) -> Box<dyn Stream> {
        match &self.folder {
            Some(folder) => {
                let socket = UnixStream::connect(format!("{folder}/.s.PGSQL.5432")).await;
                Box::new(socket.expect("the server's socket"))
            }
            None => Box::new(TcpStream::connect(&self.address).await.expect("the server")),
        }
    }
}

/// A proxy to the server that records everything.
pub(super) struct Recorder {
    url: String,
    statements: Arc<Mutex<Vec<Statement>>>,
    _relay: JoinSet<()>,
}

impl Recorder {
    pub(super) async fn start(url: &str) -> Recorder {
        let server = Server::of(url);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let database = &server.database;
        // Encrypted traffic could not be recorded.
        let own = format!("postgres://postgres@127.0.0.1:{port}/{database}?sslmode=disable");
        let statements = Arc::<Mutex<Vec<Statement>>>::default();
        let mut relay = JoinSet::new();
        let to = Arc::clone(&statements);
        relay.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.expect("a connection");
                let upstream = server.connect().await;
                connections.spawn(pass(client, upstream, Arc::clone(&to)));
            }
        });
        Recorder {
            url: own,
            statements,
            _relay: relay,
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn statements(&self) -> Vec<Statement> {
        self.statements.lock().expect("no panic").clone()
    }
}

/// Forwards bytes in both directions until one side ends. Records what goes to the server.
async fn pass(client: TcpStream, upstream: Box<dyn Stream>, to: Arc<Mutex<Vec<Statement>>>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = tokio::io::split(upstream);
    let back = async {
        drop(tokio::io::copy(&mut from_server, &mut to_client).await);
    };
    let forth = async {
        let mut reader = Reader::default();
        let mut chunk = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from_client.read(&mut chunk).await {
            to.lock()
                .expect("no panic")
                .extend(reader.read(&chunk[..length]));
            if to_server.write_all(&chunk[..length]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = back => {}
        () = forth => {}
    }
}

/// Parses the messages of one client.
#[derive(Default)]
struct Reader {
    buffer: Vec<u8>,
    is_started: bool,
    role: String,
    /// Texts and parameter types by the names of prepared statements.
    prepared: BTreeMap<Vec<u8>, (String, Vec<u8>)>,
}

fn until_nul(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .expect("a text ends");
    (&bytes[..end], &bytes[end + 1..])
}

impl Reader {
    fn read(&mut self, bytes: &[u8]) -> Vec<Statement> {
        self.buffer.extend_from_slice(bytes);
        let mut found = Vec::new();
        loop {
            let tag_bytes = usize::from(self.is_started);
            let Some(length) = self.buffer.get(tag_bytes..tag_bytes + 4) else {
                return found;
            };
            let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
            let Some(message) = self.buffer.get(..tag_bytes + length).map(<[u8]>::to_vec) else {
                return found;
            };
            self.buffer.drain(..message.len());
            if self.is_started {
                found.extend(self.message(message[0], &message[5..]));
            }
            self.is_started = true;
        }
    }

    fn message(&mut self, tag: u8, body: &[u8]) -> Option<Statement> {
        match tag {
            b'Q' => self.begins(&String::from_utf8_lossy(until_nul(body).0)),
            b'P' => {
                let (name, rest) = until_nul(body);
                let (sql, types) = until_nul(rest);
                let sql = String::from_utf8_lossy(sql).into_owned();
                self.begins(&sql);
                self.prepared.insert(name.to_vec(), (sql, types.to_vec()));
            }
            b'B' => {
                let (name, values) = until_nul(until_nul(body).1);
                let (sql, types) = self.prepared.get(name)?.clone();
                return Some(Statement {
                    role: self.role.clone(),
                    sql,
                    types,
                    values: values.to_vec(),
                });
            }
            _ => {}
        }
        None
    }

    fn begins(&mut self, sql: &str) {
        if let Some(role) = sql.strip_prefix("set role ") {
            role.clone_into(&mut self.role);
        }
    }
}

/// A connection of the superuser on which statements are sent again.
pub(super) struct Replay(Box<dyn Stream>);

impl Replay {
    pub(super) async fn connect(url: &str) -> Replay {
        let server = Server::of(url);
        let mut body = 196_608_u32.to_be_bytes().to_vec();
        for text in ["user", "postgres", "database", &server.database] {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        body.push(0);
        let mut stream = server.connect().await;
        let length = u32::try_from(body.len() + 4).expect("a short message");
        stream.write_all(&length.to_be_bytes()).await.expect("sent");
        stream.write_all(&body).await.expect("sent");
        let mut replay = Replay(stream);
        replay
            .outcome()
            .await
            .expect("the server accepts the connection");
        replay
    }

    async fn message(&mut self, tag: u8, body: &[u8]) {
        let length = u32::try_from(body.len() + 4).expect("a short message");
        let message = [&[tag], length.to_be_bytes().as_slice(), body].concat();
        self.0.write_all(&message).await.expect("sent");
    }

    /// Reads until the server is ready again. Returns the rows that it sent, or its error.
    async fn outcome(&mut self) -> Result<Vec<Vec<u8>>, String> {
        let (mut rows, mut error) = (Vec::new(), None);
        loop {
            let mut head = [0; 5];
            self.0.read_exact(&mut head).await.expect("a message");
            let length = u32::from_be_bytes(head[1..].try_into().expect("four bytes")) as usize;
            let mut body = vec![0; length - 4];
            self.0.read_exact(&mut body).await.expect("a message");
            match head[0] {
                b'D' => rows.push(body),
                b'E' => error = Some(String::from_utf8_lossy(&body).replace('\0', " ")),
                b'Z' => return error.map_or(Ok(rows), Err),
                _ => {}
            }
        }
    }

    /// Runs statements without parameters.
    pub(super) async fn run(&mut self, sql: &str) {
        self.message(b'Q', &[sql.as_bytes(), &[0]].concat()).await;
        let outcome = self.outcome().await;
        outcome.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// Sends a statement with its recorded values.
    pub(super) async fn send(&mut self, statement: &Statement) -> Vec<Vec<u8>> {
        let parse = [&[0], statement.sql.as_bytes(), &[0], &statement.types].concat();
        self.message(b'P', &parse).await;
        self.message(b'B', &[&[0, 0], statement.values.as_slice()].concat())
            .await;
        self.message(b'E', &[0, 0, 0, 0, 0]).await;
        self.message(b'S', &[]).await;
        let outcome = self.outcome().await;
        outcome.unwrap_or_else(|error| panic!("{statement:?}: {error}"))
    }
}

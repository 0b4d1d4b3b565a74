//! The HTTP client of the commands: sends JSON, returns JSON or a failure.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, IF_MATCH, RETRY_AFTER};
use hyper::http::request::Builder;
use hyper::{Method, Request, StatusCode};
use serde::Serialize;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use url::Url;
use url::form_urlencoded::Serializer;

use super::digits;
use super::failure::{Exit, Failure};
use wrkflw_runtime::http_client::{self, ClientError, HttpClient, Route, is_loopback};
use wrkflw_sandbox::CompileLimits;

/// The timeout of a response. Publishing compiles on the server, which may take longer than anything else.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(CompileLimits::DEFAULT.wall_seconds + 60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a stream may be silent. The server sends a comment three times as often, so a longer silence is a broken connection.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// The pause before a request is repeated that a server refuses for the moment, unless the server gives a time.
const PASSES_AFTER: Duration = Duration::from_secs(1);
/// The largest response that is read.
const ANSWER_BYTES_MAX: usize = 64 << 20;
const JSON: &str = "application/json";

/// A connection to one server as one person.
pub(super) struct Client {
    http: HttpClient,
    /// Runs one request at a time.
    runtime: Arc<Runtime>,
    route: Route,
    /// Without a trailing slash.
    server: String,
    token: Option<String>,
    silence_max: Duration,
}

/// Options of every change.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct AttemptArgs {
    /// Show all that would follow, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Makes it safe to repeat this command: the same key gives the same answer and one effect. Name an instance by its id then, not
    /// by TYPE/ID
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

/// Options of a change of one instance.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct ChangeArgs {
    #[command(flatten)]
    attempt: AttemptArgs,
    /// Only if the instance still has this revision
    #[arg(long, value_name = "REVISION")]
    if_match: Option<u32>,
}

impl ChangeArgs {
    pub(super) fn is_dry_run(&self) -> bool {
        self.attempt.dry_run
    }

    /// Whether the command may be repeated.
    pub(super) fn is_keyed(&self) -> bool {
        self.attempt.idempotency_key.is_some()
    }
}

/// The option of a change of the directory.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(super) struct DryRunArgs {
    /// Show what would follow, such as open tasks that nobody could do afterwards, and write nothing
    #[arg(long)]
    dry_run: bool,
}

impl DryRunArgs {
    pub(super) fn query(self) -> [(&'static str, Option<String>); 1] {
        [("dryRun", self.dry_run.then(|| "true".to_owned()))]
    }
}

impl Client {
    pub(super) fn new(server: &str, token: Option<String>) -> Result<Client> {
        // A proxy would connect to its own loopback interface.
        let url = Url::parse(server).ok();
        let is_local = url.is_some_and(|url| url.host_str().is_some_and(is_loopback));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the runtime")?;
        Ok(Client {
            http: HttpClient::new().connecting_within(CONNECT_TIMEOUT),
            runtime: Arc::new(runtime),
            route: if is_local {
                Route::Direct
            } else {
                Route::Proxied
            },
            server: server.trim_end_matches('/').to_owned(),
            token,
            silence_max: SILENCE_MAX,
        })
    }

    pub(super) fn get(&self, path: &str, query: &[(&str, Option<String>)]) -> Result<Value> {
        json(&self.answer(self.request(Method::GET, path, query), Vec::new())?)
    }

    /// What is there, or none if the caller may not read it: some commands are open to them. A caller without a valid token is told so
    /// by the command.
    pub(super) fn get_if_permitted(&self, path: &str) -> Result<Option<Value>> {
        self.get(path, &[]).map(Some).or_else(|error| {
            match error.downcast_ref::<Failure>().map(|failure| failure.exit) {
                Some(Exit::Refused | Exit::NotFound) => Ok(None),
                _ => Err(error),
            }
        })
    }

    /// A document that is not JSON.
    pub(super) fn get_text(&self, path: &str) -> Result<String> {
        let text = self.answer(self.request(Method::GET, path, &[]), Vec::new())?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    pub(super) fn post(&self, path: &str, body: &impl Serialize) -> Result<Value> {
        let request = self.request(Method::POST, path, &[]);
        let request = request.header(CONTENT_TYPE, JSON);
        json_if_any(&self.answer(request, text(body)?)?)
    }

    /// Puts a document under a name.
    pub(super) fn put(
        &self,
        path: &str,
        query: &[(&str, Option<String>)],
        body: &impl Serialize,
    ) -> Result<Value> {
        let request = self.request(Method::PUT, path, query);
        let request = request.header(CONTENT_TYPE, JSON);
        json(&self.answer(request, text(body)?)?)
    }

    /// Sends a DELETE. The answer may be empty, which is null.
    pub(super) fn delete(&self, path: &str, query: &[(&str, Option<String>)]) -> Result<Value> {
        json_if_any(&self.answer(self.request(Method::DELETE, path, query), Vec::new())?)
    }

    /// A command on an instance or a task.
    pub(super) fn change(
        &self,
        path: &str,
        body: &impl Serialize,
        with: &ChangeArgs,
    ) -> Result<Value> {
        let mut request = self.attempting(path, &with.attempt);
        if let Some(revision) = with.if_match {
            request = request.header(IF_MATCH, format!("\"{revision}\""));
        }
        json(&self.answer(request, text(body)?)?)
    }

    /// A start, a signal by correlation, or a command on many instances. These have no revision to compare.
    pub(super) fn attempt(
        &self,
        path: &str,
        body: &impl Serialize,
        with: &AttemptArgs,
    ) -> Result<Value> {
        let request = self.attempting(path, with);
        json(&self.answer(request, text(body)?)?)
    }

    /// Sends a multipart form of two files.
    pub(super) fn publish(
        &self,
        path: &str,
        component: &[u8],
        config: &str,
        note: Option<&str>,
    ) -> Result<Value> {
        let boundary = format!("wrkflw-{}", wrkflw_runtime::clock::new_id().simple());
        let mut form = Vec::with_capacity(component.len() + config.len() + 512);
        let note = note.map(|note| ("note", "text/plain; charset=utf-8", note.as_bytes()));
        let fields = [
            ("component", "application/wasm", component),
            ("config", "application/json", config.as_bytes()),
        ];
        for (name, kind, content) in fields.into_iter().chain(note) {
            let head = format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{name}\"\r\nContent-Type: {kind}\r\n\r\n"
            );
            form.extend_from_slice(head.as_bytes());
            form.extend_from_slice(content);
            form.extend_from_slice(b"\r\n");
        }
        form.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        let kind = format!("multipart/form-data; boundary={boundary}");
        let request = self.request(Method::POST, path, &[]);
        json(&self.answer(request.header(CONTENT_TYPE, kind), form)?)
    }

    /// Opens a stream that goes on until either side ends it.
    pub(super) fn stream(
        &self,
        path: &str,
        query: &[(&str, Option<String>)],
        after: Option<&str>,
    ) -> Result<impl Read + use<>> {
        let request = self.request(Method::GET, path, query);
        let mut request = request.header(ACCEPT, "text/event-stream");
        if let Some(after) = after {
            request = request.header("Last-Event-ID", after);
        }
        let request = request
            .body(Vec::new())
            .map_err(|error| self.unreached(error))?;
        let sent = self.http.send(request, self.route.clone(), ANSWER_TIMEOUT);
        let response = self
            .runtime
            .block_on(sent)
            .map_err(|error| self.unreached(error))?;
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            let reading = http_client::read(body, ANSWER_BYTES_MAX);
            let body = self.runtime.block_on(reading).unwrap_or_default();
            return Err(self.refused(head.status, &head.headers, &body).into());
        }
        let stream = Stream {
            runtime: Arc::clone(&self.runtime),
            body,
            unread: Bytes::new(),
            silence_max: self.silence_max,
        };
        Ok(stream)
    }

    /// A request with the caller's token. Parts of the query without a value are left out.
    fn request(&self, method: Method, path: &str, query: &[(&str, Option<String>)]) -> Builder {
        let parameters = query
            .iter()
            .filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        let query = Serializer::new(String::new())
            .extend_pairs(parameters)
            .finish();
        let mark = if query.is_empty() { "" } else { "?" };
        let url = format!("{}{path}{mark}{query}", self.server);
        let request = Request::builder().method(method).uri(url);
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        }
    }

    fn attempting(&self, path: &str, with: &AttemptArgs) -> Builder {
        let dry_run = with.dry_run.then(|| "true".to_owned());
        let request = self.request(Method::POST, path, &[("dryRun", dry_run)]);
        let request = request.header(CONTENT_TYPE, JSON);
        let request = request.header("Prefer", "return=representation");
        match &with.idempotency_key {
            Some(key) => request.header("Idempotency-Key", key),
            None => request,
        }
    }

    /// The body of a successful response.
    fn answer(&self, request: Builder, body: Vec<u8>) -> Result<Bytes> {
        let request = request.body(body).map_err(|error| self.unreached(error))?;
        let route = self.route.clone();
        let fetching = self
            .http
            .fetch(request, route, ANSWER_TIMEOUT, ANSWER_BYTES_MAX);
        let response = match self.runtime.block_on(fetching) {
            Ok(response) => response,
            Err(error @ ClientError::TooLarge(_)) => return Err(error.into()),
            Err(error) => return Err(self.unreached(error).into()),
        };
        if response.status().is_success() {
            return Ok(response.into_body());
        }
        let (head, body) = response.into_parts();
        Err(self.refused(head.status, &head.headers, &body).into())
    }

    fn unreached(&self, error: impl std::fmt::Display) -> Failure {
        let message = format!("{} cannot be reached: {error}", self.server);
        Failure::new(Exit::Unreachable, message)
            .next("start one with `wrkflw dev`, or name another with --server or WRKFLW_SERVER")
    }

    fn refused(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failure {
        let failure = match serde_json::from_slice::<Value>(body) {
            Ok(problem) if problem["code"].is_string() => {
                Failure::of_problem(status.as_u16(), problem)
            }
            _ => Failure::new(
                Exit::Failed,
                format!(
                    "{} answered {status}, but not as a wrkflw server does",
                    self.server
                ),
            )
            .next("check the URL of the server"),
        };
        // A server that is starting or stopping, or a proxy in front of it, answers in this way for a moment.
        if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
            let seconds = headers.get(RETRY_AFTER).and_then(|text| text.to_str().ok());
            let seconds = seconds.and_then(|text| text.trim().parse().ok());
            failure.passing(seconds.map_or(PASSES_AFTER, Duration::from_secs))
        } else {
            failure
        }
    }
}

/// The body of a response, read as it comes.
struct Stream {
    runtime: Arc<Runtime>,
    body: Incoming,
    unread: Bytes,
    silence_max: Duration,
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.unread.is_empty() {
            let (body, silence_max) = (&mut self.body, self.silence_max);
            // The clock of the timeout is that of the runtime, so it begins there.
            let next = async move { timeout(silence_max, http_client::next(body)).await };
            match self.runtime.block_on(next) {
                Ok(Some(bytes)) => self.unread = bytes.map_err(io::Error::other)?,
                Ok(None) => return Ok(0),
                Err(_) => {
                    let silence = format!("nothing came for {} s", silence_max.as_secs());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, silence));
                }
            }
        }
        let count = buffer.len().min(self.unread.len());
        buffer[..count].copy_from_slice(&self.unread.split_to(count));
        Ok(count)
    }
}

/// The body of a request. A `Json` in it is sent as its own text, so that its numbers keep their digits.
fn text(body: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(body).context("the request cannot be written as JSON")
}

/// The answer of a change, which is null if it is empty.
fn json_if_any(text: &[u8]) -> Result<Value> {
    match text {
        [] => Ok(Value::Null),
        text => json(text),
    }
}

fn json(text: &[u8]) -> Result<Value> {
    digits::parse(text).context("the server's answer is no JSON: is this a wrkflw server?")
}

/// Encodes a text as one segment of a path.
pub(super) fn segment(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut path, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            write!(path, "%{byte:02X}").expect("a String takes every write");
        }
        path
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use super::*;

    /// A server that answers one request with this text. The connection is open until the thread is joined.
    fn serving(answer: String) -> (String, std::thread::JoinHandle<TcpStream>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("its address");
        let serving = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().expect("a connection");
            let length = connection.read(&mut [0; 1024]).expect("a request");
            assert!(length > 0);
            connection.write_all(answer.as_bytes()).expect("it is read");
            connection
        });
        (format!("http://{address}"), serving)
    }

    #[test]
    fn only_a_refusal_to_read_is_hidden() {
        for (status, is_hidden) in [(403, true), (404, true), (409, false), (500, false)] {
            let body = r#"{"code":"any"}"#;
            let length = body.len();
            let (url, serving) = serving(format!(
                "HTTP/1.1 {status} Any\r\ncontent-length: {length}\r\n\r\n{body}"
            ));
            let client = Client::new(&url, None).expect("a client");
            let found = client.get_if_permitted("/");
            drop(serving.join().expect("it serves"));
            assert_eq!(found.ok(), is_hidden.then_some(None), "{status}");
        }
    }

    #[test]
    fn a_stream_that_is_silent_for_too_long_is_broken() {
        let (url, serving) = serving("HTTP/1.1 200 OK\r\n\r\nid: 1\n".into());
        let mut client = Client::new(&url, None).expect("a client");
        client.silence_max = Duration::from_millis(100);
        let mut stream = client.stream("/", &[], None).expect("a stream");
        let read = stream.read_to_string(&mut String::new());
        let error = read.expect_err("silence");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(serving.join().expect("it serves"));
    }
}

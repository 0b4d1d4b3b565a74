//! HTTP callers: each has one connection and sends its next request when the last was answered.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::usage::{processor_time, resident_megabytes};

/// Connections that prepare the tasks.
const PREPARING: usize = 16;

#[derive(clap::Args)]
pub(crate) struct Decide {
    /// Address of the host.
    #[arg(long, default_value = "127.0.0.1:8080")]
    address: String,
    /// Bearer token of a member of the initiators.
    #[arg(long, env = "BENCH_AUTHOR")]
    author: String,
    /// Bearer token of a member of the first reviewers.
    #[arg(long, env = "BENCH_REVIEWER")]
    reviewer: String,
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// How many decisions to measure.
    #[arg(long, default_value_t = 2000)]
    count: usize,
    /// Only prepare tasks, and print their ids, one per line.
    #[arg(long, conflicts_with = "tasks")]
    prepare: bool,
    /// Decide the tasks of this file instead of preparing tasks.
    #[arg(long)]
    tasks: Option<PathBuf>,
    /// The host's process id, to measure its processor time and memory.
    #[arg(long)]
    host: Option<u32>,
    /// The process id of the postmaster, to measure the processor time of the database server.
    #[arg(long)]
    database: Option<u32>,
}

pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    address: String,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> anyhow::Result<Connection> {
        let stream = TcpStream::connect(address)
            .await
            .with_context(|| format!("no host at {address}"))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        spawn(connection);
        Ok(Connection {
            sender,
            address: address.to_owned(),
        })
    }

    pub(crate) async fn post(
        &mut self,
        token: &str,
        path: &str,
        body: Value,
    ) -> anyhow::Result<Value> {
        let request = hyper::Request::post(path)
            .header("host", &self.address)
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body.to_string())))?;
        self.answer(request).await
    }

    pub(crate) async fn get(&mut self, token: &str, path: &str) -> anyhow::Result<Value> {
        let request = hyper::Request::get(path)
            .header("host", &self.address)
            .header("authorization", format!("Bearer {token}"))
            .body(Full::default())?;
        self.answer(request).await
    }

    /// Signs in to the console. Returns the cookie of the session.
    pub(crate) async fn sign_in(&mut self, token: &str) -> anyhow::Result<String> {
        let request = hyper::Request::post("/console/sign-in")
            .header("host", &self.address)
            .header("origin", format!("http://{}", self.address))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Full::new(Bytes::from(format!("bearer={token}"))))?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let cookie = response.headers().get("set-cookie");
        let cookie = cookie.and_then(|value| value.to_str().ok()?.split(';').next());
        let cookie = cookie
            .with_context(|| format!("no session: {}", response.status()))?
            .to_owned();
        response.into_body().collect().await?;
        Ok(cookie)
    }

    /// Reads a page of the console. Returns its HTML.
    pub(crate) async fn page(&mut self, cookie: &str, path: &str) -> anyhow::Result<Bytes> {
        let request = hyper::Request::get(path)
            .header("host", &self.address)
            .header("cookie", cookie)
            .body(Full::default())?;
        self.bytes(request).await
    }

    async fn answer(&mut self, request: hyper::Request<Full<Bytes>>) -> anyhow::Result<Value> {
        Ok(serde_json::from_slice(&self.bytes(request).await?)?)
    }

    async fn bytes(&mut self, request: hyper::Request<Full<Bytes>>) -> anyhow::Result<Bytes> {
        let path = request.uri().clone();
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        let bytes = response.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            bail!("{path}: {status} {}", String::from_utf8_lossy(&bytes));
        }
        Ok(bytes)
    }
}

impl Connection {
    /// Sends a request and returns the status and body of the response; no body if there is none or it is not JSON.
    pub(crate) async fn call(
        &mut self,
        method: hyper::Method,
        path: &str,
        token: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<(hyper::StatusCode, Value)> {
        let mut request = hyper::Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.address);
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        // Some servers close a connection after a hundred requests, and announce that in the last response.
        if self.sender.ready().await.is_err() {
            *self = Connection::open(&self.address).await?;
        }
        let response = self
            .sender
            .send_request(request.body(Full::new(Bytes::from(body)))?)
            .await?;
        let status = response.status();
        let bytes = response.into_body().collect().await?.to_bytes();
        Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the connection ends with its sender"
)]
fn spawn(connection: impl Future<Output = Result<(), hyper::Error>> + Send + 'static) {
    tokio::spawn(connection);
}

impl Decide {
    /// Returns one line: clients, decisions per second, latencies, and the cost of each; with `--prepare`, the ids of the tasks.
    pub(crate) async fn run(self) -> anyhow::Result<String> {
        let this = Arc::new(self);
        let tasks = match &this.tasks {
            Some(file) => std::fs::read_to_string(file)?
                .lines()
                .map(str::to_owned)
                .collect(),
            None => prepared(&this).await?,
        };
        if this.prepare {
            return Ok(Vec::from(tasks).join("\n"));
        }
        if tasks.is_empty() {
            bail!("there is no task to decide");
        }
        let tasks = Arc::new(Mutex::new(tasks));
        let used = |pid: Option<u32>| pid.map(processor_time).transpose();
        let (host, database) = (used(this.host)?, used(this.database)?);
        let mut callers = JoinSet::new();
        let begun = Instant::now();
        for _ in 0..this.clients {
            callers.spawn(decisions(this.clone(), tasks.clone()));
        }
        let mut latencies = Vec::with_capacity(this.count);
        while let Some(caller) = callers.join_next().await {
            latencies.extend(caller??);
        }
        let elapsed = begun.elapsed();
        latencies.sort_unstable();
        let at = |quantile: usize| milliseconds(latencies[(latencies.len() - 1) * quantile / 100]);
        let rate = usize::div_ceil(
            latencies.len() * 1000,
            usize::try_from(elapsed.as_millis())?.max(1),
        );
        let mut line = format!(
            "http    {:>3} clients  {rate:>6}/s  p50 {:>7} ms  p95 {:>7} ms  p99 {:>7} ms",
            this.clients,
            at(50),
            at(95),
            at(99)
        );
        for (name, before, pid) in [
            ("host", host, this.host),
            ("postgres", database, this.database),
        ] {
            if let (Some(before), Some(after)) = (before, used(pid)?) {
                let each = after.saturating_sub(before) / u32::try_from(latencies.len())?;
                write!(line, "  {name} {:>4} us", each.as_micros())?;
            }
        }
        if let Some(host) = this.host {
            write!(line, "  {:>3} MB", resident_megabytes(host)?)?;
        }
        Ok(line)
    }
}

pub(crate) fn milliseconds(duration: Duration) -> String {
    format!("{:.2}", duration.as_secs_f64() * 1000.0)
}

/// Starts instances and claims their tasks. This is not measured.
async fn prepared(this: &Arc<Decide>) -> anyhow::Result<VecDeque<String>> {
    let mut preparing = JoinSet::new();
    for share in 0..PREPARING {
        let this = this.clone();
        preparing.spawn(async move {
            let mut connection = Connection::open(&this.address).await?;
            let mut tasks = Vec::new();
            let unique = std::process::id();
            for number in (share..this.count).step_by(PREPARING) {
                let body = json!({
                    "definitionKey": "document-approval", "entityType": "bench", "entityId": format!("{unique}-{}-{number}", this.clients),
                    "data": { "title": "A document that is measured" },
                });
                let instance = connection.post(&this.author, "/v1/instances", body).await?;
                let task = instance["instance"]["states"][0]["tasks"][0]["id"].as_str().context("no task")?.to_owned();
                connection.post(&this.reviewer, &format!("/v1/tasks/{task}/claim"), json!({})).await?;
                tasks.push(task);
            }
            anyhow::Ok(tasks)
        });
    }
    let mut tasks = VecDeque::new();
    while let Some(share) = preparing.join_next().await {
        tasks.extend(share??);
    }
    Ok(tasks)
}

async fn decisions(
    this: Arc<Decide>,
    tasks: Arc<Mutex<VecDeque<String>>>,
) -> anyhow::Result<Vec<Duration>> {
    let mut connection = Connection::open(&this.address).await?;
    let mut latencies = Vec::new();
    loop {
        let next = tasks
            .lock()
            .expect("nobody panics while holding it")
            .pop_front();
        let Some(task) = next else {
            return Ok(latencies);
        };
        let begun = Instant::now();
        let body = json!({ "outcome": "APPROVE", "comment": "measured" });
        connection
            .post(&this.reviewer, &format!("/v1/tasks/{task}/decide"), body)
            .await?;
        latencies.push(begun.elapsed());
    }
}

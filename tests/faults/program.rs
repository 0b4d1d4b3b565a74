//! The program as a child process whose memory is measured, and clients that send HTTP requests to it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;

use super::{TIMEOUT, until};
use crate::support::app::{SECRET, TestApp};

const PROGRAM: &str = env!("CARGO_BIN_EXE_wrkflw-under-test");
/// The key with which the hosts of these tests seal.
const SEAL_KEY: &str = "test:0707070707070707070707070707070707070707070707070707070707070707";

/// A test's folder, removed after it.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Folder {
        let name = format!("wfault-{}", wrkflw_runtime::clock::new_id().simple());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a fresh folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// A host, killed when it is dropped.
pub(super) struct Program {
    child: Child,
    log: PathBuf,
    /// The address of its API.
    pub(super) address: String,
}

/// `wrkflw` without the developer's settings.
pub(super) fn command(folder: &Folder, line: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    let set = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in set.filter(|name| name.starts_with("WRKFLW_")) {
        command.env_remove(name);
    }
    command
        .args(line.split_whitespace())
        .current_dir(&folder.0)
        .stdin(Stdio::null());
    command
}

/// `wrkflw serve` on the database of `app`, with the same keys for tokens and seals.
pub(super) fn serve(folder: &Folder, app: &TestApp, line: &str) -> Command {
    let mut command = command(folder, &format!("serve --output json {line}"));
    let secret = str::from_utf8(SECRET).expect("text");
    for (name, value) in [
        ("WRKFLW_LISTEN", "127.0.0.1:0"),
        ("WRKFLW_DATABASE_URL", app.database.url()),
        ("WRKFLW_JWT_SECRET", secret),
        ("WRKFLW_SEAL_KEYS", SEAL_KEY),
    ] {
        command.env(name, value);
    }
    command
}

/// Runs a command to its end.
pub(super) async fn run(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output())
        .await
        .expect("no panic")
        .expect("the program starts")
}

impl Program {
    /// Starts a host and waits until it says where it listens.
    pub(super) async fn start(folder: &Folder, command: Command) -> Program {
        let log = folder.0.join("host.log");
        let file = File::create(&log).expect("our own folder");
        let mut command = tokio::process::Command::from(command);
        command.stdout(Stdio::piped()).stderr(file);
        let spawned = command.kill_on_drop(true).spawn();
        let mut child = spawned.expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut output = String::new();
        while let Some(line) = lines.next_line().await.expect("text") {
            output += &line;
            if let Ok(facts) = serde_json::from_str::<Value>(&output) {
                let address = facts["listen"].as_str().expect("an address").to_owned();
                return Program {
                    child,
                    log,
                    address,
                };
            }
        }
        child.wait().await.expect("our own child");
        panic!(
            "it ended early: {}",
            fs::read_to_string(&log).expect("a log")
        );
    }

    fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Asks it to stop.
    pub(super) fn terminate(&self) {
        let killed = Command::new("kill")
            .args(["-TERM", &self.pid().to_string()])
            .status();
        assert!(killed.expect("kill runs").success());
    }

    /// Waits until it has ended.
    pub(super) async fn ended(&mut self) -> ExitStatus {
        let ended = tokio::time::timeout(TIMEOUT, self.child.wait()).await;
        let ended = ended.unwrap_or_else(|_| panic!("it never ended: {}", self.log()));
        ended.expect("our own child")
    }

    /// Its log.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("its log")
    }

    /// Waits until its log has these words.
    pub(super) async fn log_reaches(&self, words: &str) {
        let logged = async {
            while !self.log().contains(words) {
                crate::support::pause().await;
            }
        };
        let logged = tokio::time::timeout(TIMEOUT, logged).await;
        assert!(logged.is_ok(), "{words}: {}", self.log());
    }

    /// Its resident memory, in bytes.
    pub(super) fn resident_bytes(&self) -> u64 {
        let status = format!("/proc/{}/status", self.pid());
        let text = fs::read_to_string(Path::new(&status)).expect("a living child");
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.expect("a figure") * 1024
    }

    /// The value of a metric, 0 if it is not there yet.
    pub(super) async fn metric(&self, name: &str) -> f64 {
        let answer = self.get("", "/metrics").await.expect("metrics");
        let line = answer
            .body
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |figure| figure.parse().expect("a number"))
    }

    /// Waits until a metric has such a value.
    pub(super) async fn metric_reaches(&self, name: &str, wanted: impl Fn(f64) -> bool) {
        let look = async || self.metric(name).await;
        until(name, look, |figure: &f64| wanted(*figure)).await;
    }

    /// None if there was no response.
    pub(super) async fn get(&self, token: &str, path: &str) -> Option<Response> {
        ask(&self.address, token, "GET", path, "").await
    }

    pub(super) async fn post(&self, token: &str, path: &str, body: &Value) -> Option<Response> {
        ask(&self.address, token, "POST", path, &body.to_string()).await
    }

    /// Starts an instance of a flow that this host may have to compile first, because another process has published it.
    pub(super) async fn started(&self, token: &str, body: &Value) {
        let deadline = tokio::time::Instant::now() + TIMEOUT;
        loop {
            let response = self.post(token, "/v1/instances", body).await;
            let response = response.expect("an answer");
            if !is_loading(response.status, &response.body) {
                assert_eq!(response.status, 201, "{}", response.body);
                return;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "it is never loaded: {}",
                self.log()
            );
            crate::support::pause().await;
        }
    }
}

/// A response.
#[derive(Debug, Clone)]
pub(super) struct Response {
    pub(super) status: u16,
    head: String,
    pub(super) body: String,
}

impl Response {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    pub(super) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// Whether it is the answer to a call of flow logic that is still being compiled.
pub(super) fn is_loading(status: u16, text: &str) -> bool {
    status == 503 && text.contains("its component is still being loaded")
}

/// Sends one request over a connection of its own.
pub(super) async fn ask(
    address: &str,
    token: &str,
    method: &str,
    path: &str,
    body: &str,
) -> Option<Response> {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    exchange(address, &request).await
}

/// Sends a request as it is over a connection of its own, and reads until the host closes it.
pub(super) async fn exchange(address: &str, request: &str) -> Option<Response> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    // A host that refuses may answer before it has read the whole request.
    drop(stream.write_all(request.as_bytes()).await);
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Response {
        status,
        body: if head
            .to_ascii_lowercase()
            .contains("transfer-encoding: chunked")
        {
            unchunked(body)
        } else {
            body.to_owned()
        },
        head: head.to_owned(),
    })
}

fn unchunked(mut text: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = text.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap_or(0);
        let Some(chunk) = rest.get(..length).filter(|_| length > 0) else {
            break;
        };
        whole += chunk;
        text = rest.get(length + 2..).unwrap_or_default();
    }
    whole
}

//! The program as a child process that serves the API on a port of its own, with the given settings.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::TIMEOUT;
use super::client::{Reply, ask};
use crate::support::unique;

const PROGRAM: &str = env!("CARGO_BIN_EXE_wrkflw-under-test");
/// How much of the end of a host's log a failing test prints.
const LOG_SHOWN_BYTES: usize = 8 * 1024;
/// Times of a host that are no settings. The program under test reads them from a variable, in seconds.
const TIMES: [&str; 7] = [
    "idle_max",
    "head_max",
    "unread_max",
    "body_max",
    "fresh",
    "kept_max",
    "interval_min",
];
/// A key for the seals of decisions.
pub(super) const SEAL: &str = "k1:5ea15ea15ea15ea15ea15ea15ea15ea1";

/// A folder that is removed after the test.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Folder {
        let folder = std::env::temp_dir().join(format!("wrkflw-access-{}", unique()));
        fs::create_dir(&folder).expect("a fresh folder");
        Folder(folder)
    }

    /// Writes a file, and returns its path.
    pub(super) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("our own folder");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// The program with these arguments, without the developer's settings.
pub(super) fn program(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WRKFLW_")) {
        command.env_remove(name);
    }
    command
        .args(line.split_whitespace())
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .kill_on_drop(true);
    command
}

/// A host, killed when it is dropped.
pub(super) struct Host {
    pub(super) address: SocketAddr,
    pub(super) folder: Folder,
    child: Child,
}

impl Host {
    /// Serves the API with the database at `url`. `settings` are further lines of the settings file, or [`TIMES`].
    pub(super) async fn start(url: &str, settings: &[(&str, &str)]) -> Host {
        Host::start_by(url, settings, "wrkflw.toml", "serve --output json").await
    }

    /// The same with a settings file of this name, started with these arguments.
    pub(super) async fn start_by(
        url: &str,
        settings: &[(&str, &str)],
        file: &str,
        line: &str,
    ) -> Host {
        let folder = Folder::new();
        let (times, settings): (Vec<_>, Vec<_>) =
            settings.iter().partition(|(name, _)| TIMES.contains(name));
        let mut text = format!("database_url = {url:?}\nlisten = \"127.0.0.1:0\"\n");
        let own = |name: &str| settings.iter().any(|(set, _)| *set == name);
        for (name, value) in [
            ("seal_keys", SEAL),
            ("roles", "api"),
            // Eight connections to the database.
            ("requests_in_flight_max", "128"),
        ] {
            if !own(name) && !own(&format!("{name}_file")) {
                writeln!(text, "{name} = {value:?}").expect("a String takes every write");
            }
        }
        for (name, value) in &settings {
            writeln!(text, "{name} = {value:?}").expect("a String takes every write");
        }
        if own("database_url_file") {
            text = text.split_once('\n').expect("lines").1.to_owned();
        }
        folder.file(file, &text);
        let log = fs::File::create(folder.0.join("log")).expect("our own folder");
        let times: Vec<String> = times
            .iter()
            .map(|(name, seconds)| format!("{name}={seconds}"))
            .collect();
        let mut child = program(&folder.0, line)
            .env("UNDER_TEST_TIMES", times.join(","))
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let facts = async {
            let mut printed = String::new();
            while let Some(line) = lines.next_line().await.expect("text") {
                printed += &line;
                if let Ok(facts) = serde_json::from_str::<Value>(&printed) {
                    return Some(facts);
                }
            }
            None
        };
        let facts = tokio::time::timeout(TIMEOUT, facts).await.ok().flatten();
        let facts = facts.unwrap_or_else(|| {
            let log = fs::read_to_string(folder.0.join("log")).expect("its log");
            panic!("the host did not start: {log}")
        });
        let address = facts["listen"].as_str().expect("an address").parse();
        Host {
            address: address.expect("an address"),
            folder,
            child,
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// The log of the host so far.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.folder.0.join("log")).expect("its log")
    }

    /// The memory of the host, in KiB.
    pub(super) fn memory_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.expect("it runs");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .expect("a size");
        line.trim_end_matches("kB")
            .trim()
            .parse()
            .expect("a number")
    }

    /// Sends a request on a connection of its own.
    pub(super) async fn ask(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        ask(self.address, line, headers, body).await
    }

    /// The value of the metric whose line begins with this text. None if there is no such line.
    pub(super) async fn measure(&self, name: &str) -> Option<f64> {
        let metrics = self.ask("GET /metrics", &[], "").await;
        assert_eq!(metrics.status, 200);
        let line = metrics
            .text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        Some(line.parse().expect("a number"))
    }
}

/// Prints the log of a host whose test fails.
impl Drop for Host {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.folder.0.join("log")).unwrap_or_default();
            let from = log.len().saturating_sub(LOG_SHOWN_BYTES);
            eprintln!(
                "the host's log: …{}",
                String::from_utf8_lossy(&log.as_bytes()[from..])
            );
        }
    }
}

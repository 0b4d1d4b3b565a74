//! The program `wrkflw` as a child process that can be killed.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::{env, fs};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_wrkflw-under-test");
/// Lines of a host's log that are shown if it did not start.
const LOG_LINES_SHOWN: usize = 20;

/// A host that runs until it is killed or dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    /// The URL of its API.
    pub(crate) url: String,
}

/// The program with these arguments, without the developer's settings.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    let set = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in set.filter(|name| name.starts_with("WRKFLW_")) {
        command.env_remove(name);
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

impl Running {
    /// Starts a host, and waits until it prints its address. The error is the exit status of a host that ended earlier.
    pub(crate) fn start(mut command: Command, log: &Path) -> Result<Running, ExitStatus> {
        let open = || {
            let file = File::options().create(true).append(true).open(log);
            file.expect("a log can be written")
        };
        let spawned = command.stdout(Stdio::piped()).stderr(open()).spawn();
        let mut child = spawned.expect("the program starts");
        let mut printed = String::new();
        for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
            printed += &line.expect("text");
            let Ok(facts) = serde_json::from_str::<Value>(&printed) else {
                continue;
            };
            let address = facts["listen"].as_str().expect("an address");
            return Ok(Running {
                child,
                url: format!("http://{address}"),
            });
        }
        Err(child.wait().expect("our own child"))
    }

    /// `kill -9`.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    /// The exit status of the host, if it has ended by itself.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("our own child")
    }

    fn end(&mut self) {
        // The host may have ended by itself a moment ago.
        let _ = self.child.kill();
        self.child.wait().expect("our own child");
    }
}

/// The last lines of a log.
pub(crate) fn last_words(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n")
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

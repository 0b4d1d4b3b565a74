//! Runs the program in a separate folder, without the developer's settings.

use std::fmt::Debug;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sqlx::Connection as _;
use wrkflw_core::audit::sha256;
use wrkflw_core::ids::Digest;

/// The time between two looks at what a test waits for. A look may run the program. Without a pause, it would take the processor from
/// concurrent tests.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Longer than anything takes on a busy machine, for example to build and publish a change of a flow.
pub(crate) const LOOK_MAX: Duration = Duration::from_mins(4);

/// A folder that is removed after the test.
pub(crate) struct TestFolder {
    pub(crate) folder: PathBuf,
    /// The folder for the user's program state.
    state: PathBuf,
    /// Where cargo builds flows.
    pub(crate) builds: PathBuf,
}

/// The result of a command.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Looks until there is what a test waits for, and returns it. After a time limit, it fails with what was there instead.
pub(crate) fn until<T, E: Debug>(what: &str, mut look: impl FnMut() -> Result<T, E>) -> T {
    let begun = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(
                begun.elapsed() < LOOK_MAX,
                "it never came true: {what}; last seen: {seen:?}"
            ),
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// A host in the background, stopped when it is dropped.
pub(crate) struct Running {
    child: Child,
    /// Its output when it became ready.
    pub(crate) facts: Value,
}

/// A folder that all tests use for builds of flows, so that dependencies are compiled once.
fn shared_builds() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guests")
}

impl TestFolder {
    pub(crate) fn new() -> TestFolder {
        // A short path, because it contains sockets.
        let name = format!("wcli-{}", wrkflw_runtime::clock::new_id().simple());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).expect("a fresh folder");
        let state = folder.join("state");
        TestFolder {
            folder,
            state,
            builds: shared_builds(),
        }
    }

    /// Runs statements in the database of the `wrkflw dev` that runs here.
    pub(crate) fn sql(&self, statements: &'static str) {
        let socket = self.folder.join(".wrkflw/postgres/socket");
        let url = format!(
            "postgres://postgres@localhost/postgres?host={}",
            socket.display()
        );
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let connection = sqlx::PgConnection::connect(&url).await;
            let mut connection = connection.expect("a connection");
            let ran = sqlx::raw_sql(statements).execute(&mut connection).await;
            ran.expect("statements");
        });
    }

    /// The program with the words of `line` as its arguments.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wrkflw"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WRKFLW_")) {
            command.env_remove(name);
        }
        command
            .args(line.split_whitespace())
            .current_dir(&self.folder)
            .env("XDG_STATE_HOME", &self.state)
            .env("CARGO_TARGET_DIR", &self.builds)
            .env("CARGO_NET_OFFLINE", "true");
        command
    }

    pub(crate) fn run(&self, line: &str) -> Ran {
        ran(self.command(line))
    }

    pub(crate) fn run_in(&self, below: impl AsRef<Path>, line: &str) -> Ran {
        let mut command = self.command(line);
        command.current_dir(self.folder.join(below));
        ran(command)
    }

    /// The data that a successful command prints.
    pub(crate) fn data(&self, line: &str) -> Value {
        self.data_in("", line)
    }

    pub(crate) fn data_in(&self, below: impl AsRef<Path>, line: &str) -> Value {
        let Ran {
            code,
            stdout,
            stderr,
        } = self.run_in(below, &format!("{line} --output json"));
        assert_eq!(code, 0, "{line}: {stderr}");
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{line}: {error}: {stdout}"))
    }

    /// The items of a list, once the host has created the first one. A checkpoint takes some seconds.
    pub(crate) fn until_listed(&self, line: &str) -> Value {
        until(&format!("{line} has items"), || {
            let listed = self.data(line)["data"].take();
            if listed == json!([]) {
                Err(listed)
            } else {
                Ok(listed)
            }
        })
    }

    /// Starts a host, and waits until it prints its address.
    pub(crate) fn start(&self, line: &str) -> Running {
        self.start_command(self.command(&format!("{line} --output json")))
    }

    pub(crate) fn start_command(&self, mut command: Command) -> Running {
        let path = self.folder.join("host.log");
        let log = fs::File::create(&path).expect("our own folder");
        let spawned = command.stdout(Stdio::piped()).stderr(log).spawn();
        let child = spawned.expect("the program starts");
        let mut running = Running {
            child,
            facts: Value::Null,
        };
        let mut printed = String::new();
        for line in BufReader::new(running.child.stdout.take().expect("a pipe")).lines() {
            printed += &line.expect("text");
            if let Ok(facts) = serde_json::from_str(&printed) {
                running.facts = facts;
                return running;
            }
        }
        let log = fs::read_to_string(path).expect("its log");
        panic!("it ended early: {log}");
    }
}

/// A key of `wrkflw dev` as settings write it.
pub(crate) fn key_of_dev(secret: &str) -> String {
    let digest = Digest(sha256(secret.trim().as_bytes())).to_string();
    format!("dev-{}:{}", &digest[..8], secret.trim())
}

pub(crate) fn ran(mut command: Command) -> Ran {
    let output = command.output().expect("the program starts");
    Ran {
        code: output.status.code().expect("no signal ends it"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

impl Running {
    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("our own child");
        self.child.wait().expect("our own child");
    }

    /// Asks it to stop, and returns its exit code.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        signal(&mut self.child, Signal::TERM)
    }

    /// Ctrl-C in the terminal of another command.
    pub(crate) fn interrupt(child: &mut Child) {
        signal(child, Signal::INT);
    }
}

fn signal(child: &mut Child, signal: Signal) -> Option<i32> {
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a pid");
    kill_process(pid, signal).expect("our own child");
    child.wait().expect("our own child").code()
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.stop();
        }
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

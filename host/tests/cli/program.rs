//! Runs the program in a folder of its own, with nothing of the developer's settings.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A folder that goes with the test.
pub struct Place {
    pub folder: PathBuf,
    /// What the program remembers of its user.
    state: PathBuf,
}

/// What a command left.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// A host in the background, stopped with this value.
pub struct Running {
    child: Child,
    /// What it said when it was ready.
    pub facts: Value,
}

impl Place {
    pub fn new() -> Place {
        // Short, because sockets lie below it.
        let folder =
            std::env::temp_dir().join(format!("wcli-{}", wrkflw::clock::new_id().simple()));
        fs::create_dir(&folder).unwrap();
        Place {
            state: folder.join("state"),
            folder,
        }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wrkflw"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WRKFLW_")) {
            command.env_remove(name);
        }
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env("XDG_STATE_HOME", &self.state)
            .env("CARGO_NET_OFFLINE", "true");
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments))
    }

    /// The data of a command that succeeds.
    pub fn data(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["--output", "json"]].concat());
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        serde_json::from_str(&ran.stdout)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}", ran.stdout))
    }

    /// Starts a host, and waits until it has said where it is.
    pub fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.command(&[arguments, &["--output", "json"]].concat());
        let log = fs::File::create(self.folder.join("host.log")).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut said = String::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            said += &line.unwrap();
            if let Ok(facts) = serde_json::from_str(&said) {
                return Running { child, facts };
            }
        }
        panic!(
            "{arguments:?} ended early: {}",
            fs::read_to_string(self.folder.join("host.log")).unwrap()
        );
    }
}

pub fn ran(mut command: Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Running {
    /// Asks it to stop, and gives its exit code.
    pub fn stop(&mut self) -> Option<i32> {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.stop();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

//! The PostgreSQL server that `wrkflw dev` runs.
//!
//! It finds the system's server programs, makes a cluster in a folder, and runs it for as long as [`Managed`] lives. Clients
//! connect by a Unix socket in a folder that no other account may enter. There is no TCP port, and so no password.
//!
//! It never touches a cluster that it did not make, and never runs as root. Not for production: use `--database-url` there.

mod account;
mod folders;
mod leftover;
mod programs;
mod settings;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};
use std::{fs, io};

use anyhow::{Context as _, Result, bail, ensure};

use account::Account;
use folders::ServerFolders;
use programs::Programs;

/// The role and the database of a new cluster.
const SUPERUSER: &str = "postgres";
/// How long the server may take to start, including recovery after a crash.
const START_SECONDS_MAX: u32 = 60;
/// How long it may take to stop. Open transactions are rolled back at once.
const STOP_SECONDS_MAX: u32 = 30;
/// How long `drop` repeats a failed step, because a program whose start was aborted may still begin or end, and the pause between attempts.
const REPEATED_MAX: Duration = Duration::from_secs(5);
const REPEATED_EVERY: Duration = Duration::from_millis(100);
/// Number of its last log lines that an error quotes.
const LOG_LINES_QUOTED_MAX: usize = 10;

/// A running server. Dropping it stops it; [`Managed::stop`] also reports whether that succeeded.
#[derive(Debug)]
pub(super) struct Managed {
    programs: Programs,
    account: Account,
    place: ServerFolders,
    running: bool,
}

/// Starts the server with the data in `dir`, and makes a cluster first if there is none.
///
/// Takes over a server that outlived an earlier run. Fails if another process uses it.
pub(super) async fn start(dir: &Path) -> Result<Managed> {
    let account = Account::of_server(&dir.join(folders::DATA)).await?;
    let place = ServerFolders::persistent(dir, &account).await?;
    let programs = programs(&place).await?;
    start_in(place, account, programs).await
}

/// Starts a server in a new temporary folder, which is removed when the server stops. First removes the folders of killed
/// servers.
pub(super) async fn start_ephemeral() -> Result<Managed> {
    let account = Account::of_server(Path::new(folders::DATA)).await?;
    for place in ServerFolders::abandoned(&account) {
        let home = place.home().to_owned();
        match end(place, account).await {
            Ok(()) => {
                tracing::info!(home = %home.display(), "removed the data of a killed server");
            }
            Err(error) => {
                tracing::warn!(home = %home.display(), error = format!("{error:#}"), "the data of a killed server could not be removed");
            }
        }
    }
    // Done first, because a failure after the place was made would leave the place behind.
    let programs = Programs::find(None).await?;
    let place = ServerFolders::ephemeral(&account)?;
    start_in(place, account, programs).await
}

/// Stops the server of a place whose process was killed, and removes the place.
async fn end(place: ServerFolders, account: Account) -> Result<()> {
    // Only a running server needs its programs. The programs of this release may have been removed.
    if !leftover::answers(&place) {
        return place.clear();
    }
    let programs = programs(&place).await?;
    let server = Managed {
        programs,
        account,
        place,
        running: true,
    };
    server.stop().await
}

/// The major version of the cluster of a place. None if there is no cluster.
fn version(place: &ServerFolders) -> Option<String> {
    fs::read_to_string(place.data().join("PG_VERSION")).ok()
}

/// The programs for the cluster of a place.
async fn programs(place: &ServerFolders) -> Result<Programs> {
    let version = version(place);
    let major = version.as_deref().map(str::trim);
    Programs::find(major.map(|major| (major, place.home()))).await
}

async fn start_in(place: ServerFolders, account: Account, programs: Programs) -> Result<Managed> {
    let mut server = Managed {
        programs,
        account,
        place,
        running: false,
    };
    if version(&server.place).is_none() {
        server.make_cluster().await?;
    }
    leftover::settled(&server.place).await;
    if leftover::answers(&server.place) {
        server.running = true;
    } else {
        leftover::clear(&server.place).await?;
        server.run().await?;
    }
    Ok(server)
}

impl Managed {
    /// The URL for clients, as its superuser.
    pub(super) fn url(&self) -> String {
        format!(
            "postgres://{SUPERUSER}@localhost/postgres?host={}",
            percent_encoded(self.place.sockets())
        )
    }

    /// The folder of its data.
    pub(super) fn home(&self) -> &Path {
        self.place.home()
    }

    /// Stops the server: disconnects clients and rolls back their open transactions.
    pub(super) async fn stop(mut self) -> Result<()> {
        // `drop` must not stop it again, even if this fails.
        self.running = false;
        let mut stop = tokio::process::Command::from(self.stop_command());
        stopped(stop.output().await)?;
        self.place.clear()
    }

    /// Makes the cluster under another name and renames it, so that an interrupted run leaves no incomplete cluster.
    async fn make_cluster(&self) -> Result<()> {
        let fresh = self.place.home().join(folders::FRESH);
        if fresh.exists() {
            fs::remove_dir_all(&fresh)
                .with_context(|| format!("cannot remove {}", fresh.display()))?;
        }
        let output = self
            .account
            .command(&self.programs.initdb())
            .arg("-D")
            .arg(&fresh)
            .args([
                "-U",
                SUPERUSER,
                "-A",
                "trust",
                "--no-sync",
                "--encoding",
                "UTF8",
                "--locale",
                "C",
            ])
            // This process has the lock of the folder, so `initdb` must end with it.
            .kill_on_drop(true)
            .output()
            .await
            .with_context(|| format!("cannot run {}", self.programs.initdb().display()))?;
        ensure!(
            output.status.success(),
            "initdb failed in {}: {}",
            fresh.display(),
            text_of(&output)
        );
        fs::rename(&fresh, self.place.data()).context("cannot name the new cluster")
    }

    async fn run(&mut self) -> Result<()> {
        settings::write(&self.place, self.account)?;
        let log = self.place.log();
        // Set before the start, so that a drop in between stops the server.
        self.running = true;
        let output = self
            .account
            .command(&self.programs.pg_ctl())
            .args([
                "start",
                "-w",
                "-s",
                "-t",
                &START_SECONDS_MAX.to_string(),
                "-D",
            ])
            .arg(self.place.data())
            .arg("-l")
            .arg(&log)
            .output()
            .await
            .with_context(|| format!("cannot run {}", self.programs.pg_ctl().display()))?;
        if !output.status.success() {
            self.running = false;
            bail!(
                "PostgreSQL did not start: {}\n{}",
                text_of(&output),
                last_lines(&log)
            );
        }
        Ok(())
    }

    fn stop_command(&self) -> std::process::Command {
        let mut command = self.account.command(&self.programs.pg_ctl()).into_std();
        command
            .args([
                "stop",
                "-w",
                "-s",
                "-m",
                "fast",
                "-t",
                &STOP_SECONDS_MAX.to_string(),
                "-D",
            ])
            .arg(self.place.data());
        command
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        if self.running {
            // A server whose start was aborted may not have written its pid file yet.
            if let Err(error) = repeated(|| stopped(self.stop_command().output())) {
                tracing::warn!(data = %self.place.data().display(), error = format!("{error:#}"), "the next start takes PostgreSQL over");
                return;
            }
        } else if !self.place.is_ephemeral() || leftover::answers(&self.place) {
            return;
        }
        // A child of an `initdb` that was killed may still write.
        if let Err(error) = repeated(|| self.place.clear()) {
            tracing::warn!(%error, "the temporary folder of PostgreSQL could not be removed");
        }
    }
}

/// Repeats an attempt while it fails, for at most [`REPEATED_MAX`].
fn repeated(mut attempt: impl FnMut() -> Result<()>) -> Result<()> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(_) if begun.elapsed() < REPEATED_MAX => std::thread::sleep(REPEATED_EVERY),
            done => return done,
        }
    }
}

/// Whether the command that stops a server did.
fn stopped(output: io::Result<Output>) -> Result<()> {
    let output = output.context("cannot run pg_ctl")?;
    ensure!(
        output.status.success(),
        "PostgreSQL did not stop: {}",
        text_of(&output)
    );
    Ok(())
}

fn text_of(output: &Output) -> String {
    let text = if output.stderr.is_empty() {
        &output.stdout
    } else {
        &output.stderr
    };
    String::from_utf8_lossy(text).trim().to_owned()
}

fn last_lines(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES_QUOTED_MAX)..].join("\n")
}

/// A path as the value of a query parameter.
fn percent_encoded(path: &Path) -> String {
    use std::fmt::Write as _;
    use std::os::unix::ffi::OsStrExt as _;

    let mut text = String::new();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").expect("a String takes every write");
        }
    }
    text
}

//! The PostgreSQL server that `wrkflw dev` brings along.
//!
//! It finds the programs that the system has, makes a cluster in a folder, and
//! runs it for as long as [`Managed`] lives. Clients reach it by a Unix socket in a folder that
//! nobody else may enter; it has no TCP port, and therefore no password.
//!
//! It never touches a cluster that it did not make, and never runs as root.
//! Not for production: there, `--database-url` names a server.

mod account;
mod leftover;
mod place;
mod programs;
mod settings;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;
use std::process::Output;

use anyhow::{Context as _, Result, bail, ensure};

use account::Account;
use place::Place;
use programs::Programs;

/// The role and the database that a fresh cluster has.
const SUPERUSER: &str = "postgres";
/// How long the server may take to start, which includes repair after a crash.
const START_SECONDS_MAX: u32 = 60;
/// How long it may take to stop; open transactions are rolled back at once.
const STOP_SECONDS_MAX: u32 = 30;
/// How many of its last log lines an error quotes.
const LOG_LINES_QUOTED_MAX: usize = 10;

/// A running server of our own. Dropping it stops it; [`Managed::stop`] also
/// tells whether that went well.
#[derive(Debug)]
pub(super) struct Managed {
    programs: Programs,
    account: Account,
    place: Place,
    running: bool,
}

/// Starts the server whose data lies in `dir`, and makes it first if there is none.
///
/// A server that outlived an earlier run is taken over. One that another
/// process uses at the moment is an error.
pub(super) async fn start(dir: &Path) -> Result<Managed> {
    let account = Account::of_server(&dir.join(place::DATA)).await?;
    let place = Place::kept(dir, &account).await?;
    start_in(place, account).await
}

/// Starts a server in a fresh temporary folder, which goes when the server does. What killed servers left there goes first.
pub(super) async fn start_ephemeral() -> Result<Managed> {
    let account = Account::of_server(Path::new(place::DATA)).await?;
    for place in Place::abandoned(&account) {
        let home = place.home().to_owned();
        match end(place, account).await {
            Ok(()) => {
                tracing::info!(home = %home.display(), "removed what a killed server had left");
            }
            Err(error) => {
                tracing::warn!(home = %home.display(), error = format!("{error:#}"), "a killed server's data is left over");
            }
        }
    }
    let place = Place::ephemeral(&account)?;
    start_in(place, account).await
}

/// Ends the server of a place whose process was killed, and removes the place.
async fn end(place: Place, account: Account) -> Result<()> {
    let cluster_version = fs::read_to_string(place.data().join("PG_VERSION")).ok();
    let programs = Programs::find(cluster_version.as_deref().map(str::trim)).await?;
    if !leftover::answers(&place) {
        return place.clear();
    }
    let server = Managed {
        programs,
        account,
        place,
        running: true,
    };
    server.stop().await
}

async fn start_in(place: Place, account: Account) -> Result<Managed> {
    let cluster_version = fs::read_to_string(place.data().join("PG_VERSION")).ok();
    let programs = Programs::find(cluster_version.as_deref().map(str::trim)).await?;
    let mut server = Managed {
        programs,
        account,
        place,
        running: false,
    };
    if cluster_version.is_none() {
        server.make_cluster().await?;
    }
    if leftover::answers(&server.place) {
        server.running = true;
    } else {
        leftover::clear(&server.place).await?;
        server.run().await?;
    }
    Ok(server)
}

impl Managed {
    /// The URL under which sqlx and psql reach the server, as its superuser.
    pub(super) fn url(&self) -> String {
        format!(
            "postgres://{SUPERUSER}@localhost/postgres?host={}",
            percent_encoded(self.place.sockets())
        )
    }

    /// Stops the server: clients are cut off, their open transactions rolled back.
    pub(super) async fn stop(mut self) -> Result<()> {
        // From here on nothing is left to `drop`, even if the stop fails.
        self.running = false;
        let output = tokio::process::Command::from(self.stop_command())
            .output()
            .await?;
        ensure!(
            output.status.success(),
            "PostgreSQL did not stop: {}",
            text_of(&output)
        );
        self.place.clear()
    }

    /// Made under another name and then renamed, so that an interrupted run leaves no half cluster behind.
    async fn make_cluster(&self) -> Result<()> {
        let fresh = self.place.home().join("data.new");
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
            bail!(
                "PostgreSQL did not start: {}\n{}",
                text_of(&output),
                last_lines(&log)
            );
        }
        self.running = true;
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
        if !self.running {
            return;
        }
        let stopped = self.stop_command().output();
        if !stopped.is_ok_and(|output| output.status.success()) {
            tracing::warn!(data = %self.place.data().display(), "PostgreSQL did not stop; the next start takes it over");
            return;
        }
        if let Err(error) = self.place.clear() {
            tracing::warn!(%error, "the temporary folder of PostgreSQL is left over");
        }
    }
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

//! The leftovers of an earlier server of the same cluster: the running server, or only its pid file.
//!
//! PostgreSQL takes any living process with the recorded pid for the earlier server. That is wrong if the pid now belongs to
//! another program, or to a dead server that was not reaped, as in a container without an init process. This module handles these
//! two cases and leaves all others to PostgreSQL.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use tokio::process::Command;

use super::START_SECONDS_MAX;
use super::folders::{SOCKET_NAME, ServerFolders};
use crate::cli::home::remove;

/// The pause between looks at a server that starts or stops.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Waits until a server has started or stopped, because it refuses clients meanwhile. If that takes longer than a start may take, the
/// caller handles it.
pub(super) async fn settled(place: &ServerFolders) {
    let limit = Duration::from_secs(START_SECONDS_MAX.into());
    let settling = async {
        while is_changing(place) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let _ = tokio::time::timeout(limit, settling).await;
}

/// A server writes its state into the eighth line of its pid file.
fn is_changing(place: &ServerFolders) -> bool {
    let text = fs::read_to_string(pid_file(place)).unwrap_or_default();
    let state = text.lines().nth(7).unwrap_or_default().trim();
    matches!(state, "starting" | "stopping") && answers(place)
}

/// Whether a running server of this cluster accepts connections, so that it can be taken over.
pub(super) fn answers(place: &ServerFolders) -> bool {
    pid_file(place).exists() && UnixStream::connect(place.socket()).is_ok()
}

/// Removes the pid files of a server that has certainly ended.
pub(super) async fn clear(place: &ServerFolders) -> Result<()> {
    let path = pid_file(place);
    let Ok(text) = fs::read_to_string(&path) else {
        return Ok(());
    };
    let Some(process) = process(text.lines().next().unwrap_or_default()).await else {
        return Ok(());
    };
    let of_this_cluster = process.contains(&place.data().display().to_string());
    if process.starts_with('Z') || !of_this_cluster {
        // The lock file of the socket names the same pid.
        for path in [
            place.socket().with_file_name(format!("{SOCKET_NAME}.lock")),
            path,
        ] {
            remove(&path)?;
        }
    }
    Ok(())
}

/// The state of a process, and the words of its command. None if it has ended, or the system does not say.
pub(super) async fn process(pid: &str) -> Option<String> {
    // Images of containers lack `ps`, and macOS lacks `/proc`.
    let system = Path::new("/proc");
    let process = if system.join("self/stat").exists() {
        let process = system.join(pid.parse::<u32>().ok()?.to_string());
        let stat = fs::read_to_string(process.join("stat")).ok()?;
        // The name of the program is in parentheses, and may have any character.
        let (_, state) = stat.rsplit_once(')')?;
        let state = state.split_whitespace().next()?;
        let command = fs::read(process.join("cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        format!("{state} {command}")
    } else {
        let options = ["-ww", "-o", "stat=", "-o", "args=", "-p", pid];
        let output = Command::new("ps").args(options).output().await.ok()?;
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    Some(process).filter(|process| !process.is_empty())
}

fn pid_file(place: &ServerFolders) -> PathBuf {
    place.data().join("postmaster.pid")
}

//! What an earlier server of the same cluster left behind: the running server, or only its pid file.
//!
//! PostgreSQL takes any living process with the recorded pid for the earlier server. That is wrong if the pid now belongs to
//! another program, or to a dead server that was not reaped, as in a container without an init process. This module handles these
//! two cases and leaves all others to PostgreSQL.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tokio::process::Command;

use super::place::{Place, SOCKET_NAME};

/// Whether a running server of this cluster accepts connections, so that it can be taken over.
pub(super) fn answers(place: &Place) -> bool {
    pid_file(place).exists() && UnixStream::connect(place.socket()).is_ok()
}

/// Removes the pid files of a server that has certainly ended.
pub(super) async fn clear(place: &Place) -> Result<()> {
    let path = pid_file(place);
    let Ok(text) = fs::read_to_string(&path) else {
        return Ok(());
    };
    let pid = text.lines().next().unwrap_or_default();
    let output = Command::new("ps")
        .args(["-ww", "-o", "stat=", "-o", "args=", "-p", pid])
        .output();
    let output = output.await.context("cannot run `ps`")?;
    let process = String::from_utf8_lossy(&output.stdout);
    let process = process.trim();
    let of_this_cluster = process.contains(&place.data().display().to_string());
    if !process.is_empty() && (process.starts_with('Z') || !of_this_cluster) {
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

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn pid_file(place: &Place) -> PathBuf {
    place.data().join("postmaster.pid")
}

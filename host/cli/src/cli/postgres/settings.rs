//! The server's configuration file. It replaces the one that `initdb` writes.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::account::Account;
use super::folders::ServerFolders;

/// Writes the file. It is written at every start, because the socket's folder changes when the project is moved.
///
/// Only persistent data must survive a power failure.
pub(super) fn write(place: &ServerFolders, account: Account) -> Result<()> {
    let durable = if place.is_ephemeral() { "off" } else { "on" };
    let settings = format!(
        "listen_addresses = ''\n\
         unix_socket_directories = '{sockets}'\n\
         unix_socket_permissions = 0700\n\
         max_connections = 100\n\
         shared_buffers = 128MB\n\
         fsync = {durable}\n\
         synchronous_commit = {durable}\n\
         full_page_writes = {durable}\n\
         timezone = 'UTC'\n\
         log_timezone = 'UTC'\n\
         log_min_messages = warning\n",
        sockets = quoted(place.sockets()),
    );
    let path = place.data().join("postgresql.conf");
    fs::write(&path, settings).with_context(|| format!("cannot write {}", path.display()))?;
    account.take_ownership(&path)
}

/// A path inside single quotes.
pub(super) fn quoted(path: &Path) -> String {
    path.display()
        .to_string()
        .replace('\\', r"\\")
        .replace('\'', "''")
}

//! `wrkflw host`: the hosts that run.

use anyhow::Result;
use clap::Subcommand;

use super::Environment;
use super::connection::ConnectionArgs;
use super::output::{Column, Output};

const HOSTS: &[Column] = &[
    ("NAME", "/name"),
    ("VERSION", "/version"),
    ("ROLES", "/roles"),
    ("STARTED", "/startedAt"),
    ("SEEN", "/seenAt"),
    ("ID", "/id"),
];

#[derive(Debug, Subcommand)]
pub(super) enum HostCommand {
    /// List the hosts of the database that run, with versions and roles; warns if these differ in version
    List(ConnectionArgs),
}

pub(super) fn run(command: HostCommand, output: Output, environment: &Environment) -> Result<()> {
    let HostCommand::List(connection) = command;
    let hosts = connection.open(environment)?.get("/v1/hosts", &[])?;
    output.list(&hosts, HOSTS)?;
    let versions = hosts["versions"].as_array().into_iter().flatten();
    let versions: Vec<_> = versions.filter_map(|version| version.as_str()).collect();
    if versions.len() > 1 {
        Output::warn(&format!("several versions run: {}", versions.join(", ")));
    }
    Ok(())
}

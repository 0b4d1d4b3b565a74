//! `wrkflw me`: who the caller is for the server.

use anyhow::Result;
use clap::Args;

use super::Environment;
use super::connection::ConnectionArgs;
use super::output::{Column, Output};

const ME: &[Column] = &[
    ("id", "/id"),
    ("name", "/name"),
    ("tenant", "/tenant"),
    ("roles", "/roles"),
    ("groups", "/groups"),
    ("manager", "/manager"),
    ("permissions", "/permissions"),
    ("absent", "/absences"),
    ("stands in for", "/standsInFor"),
];

#[derive(Debug, Args)]
pub(super) struct MeArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(super) fn run(args: &MeArgs, output: Output, environment: &Environment) -> Result<()> {
    let client = args.connection.open(environment)?;
    output.record(&client.get("/v1/me", &[])?, ME)
}

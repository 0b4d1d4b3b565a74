//! `wrkflw job`: background jobs: those that fail, and those that are due next.

use anyhow::Result;
use clap::{Args, Subcommand};

use super::Environment;
use super::connection::ConnectionArgs;
use super::definition::PageArgs;
use super::output::{Column, Output};

const JOBS: &[Column] = &[
    ("ID", "/id"),
    ("KIND", "/kind"),
    ("INSTANCE", "/instanceId"),
    ("DEFINITION", "/definitionKey"),
    ("VERSION", "/definitionVersion"),
    ("DUE", "/dueAt"),
    ("ATTEMPTS", "/attempts"),
    ("NEXT", "/nextAt"),
    ("ERROR", "/error"),
];

#[derive(Debug, Subcommand)]
pub(super) enum JobCommand {
    /// List jobs that failed and are retried with the error, or all jobs in the order in which they are due
    List(ListArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Which jobs: failing (default), or due: all, the next ones first
    #[arg(long)]
    state: Option<String>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(super) fn run(command: JobCommand, output: Output, environment: &Environment) -> Result<()> {
    let JobCommand::List(args) = command;
    let state = [("state", args.state)];
    let query: Vec<_> = state.into_iter().chain(args.page.query()).collect();
    let client = args.connection.open(environment)?;
    output.list(&client.get("/v1/jobs", &query)?, JOBS)
}

//! `wrkflw refusal`: commands that were refused because the caller was not allowed to run them.

use anyhow::Result;
use clap::{Args, Subcommand};

use super::Environment;
use super::connection::ConnectionArgs;
use super::definition::PageArgs;
use super::output::{Column, Output};

const REFUSALS: &[Column] = &[
    ("AT", "/occurredAt"),
    ("ACTOR", "/actor"),
    ("ACTION", "/action"),
    ("REASON", "/reason"),
    ("INSTANCE", "/instanceId"),
    ("TASK", "/taskId"),
    ("DETAIL", "/detail"),
];

#[derive(Debug, Subcommand)]
pub(super) enum RefusalCommand {
    /// List the commands that were refused because the caller was not allowed to run them, the newest first
    List(ListArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only those with this reason, such as `permission_missing`
    #[arg(long, value_name = "CODE")]
    reason: Option<String>,
    /// Only what happened at or after this, as 2030-01-31T08:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only what happened before this
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(super) fn run(
    command: RefusalCommand,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    let RefusalCommand::List(args) = command;
    let filter = [
        ("reason", args.reason),
        ("from", args.from),
        ("until", args.until),
    ];
    let query: Vec<_> = filter.into_iter().chain(args.page.query()).collect();
    let client = args.connection.open(environment)?;
    output.list(&client.get("/v1/refusals", &query)?, REFUSALS)
}

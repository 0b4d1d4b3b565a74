//! `wrkflw task bulk`: one action on many tasks. No task fails because of another. The command fails if any task fails.

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::json;

use super::super::client::AttemptArgs;
use super::super::connection::ConnectionArgs;
use super::super::failure::{Exit, Failure};
use super::super::output::{Column, Output, counted};
use super::super::{Environment, argument, pick};
use super::{FilterArgs, View};
use wrkflw_core::json::Json;

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Action {
    Claim,
    Release,
    Reassign,
    Decide,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct BulkArgs {
    /// What is done with each task
    #[arg(value_enum)]
    action: Action,
    /// Ids of tasks or their first digits, at most 100. Default: the first 100 that the filters find, oldest first
    #[arg(required_unless_present = "view")]
    tasks: Vec<String>,
    /// Choose the tasks by view instead of ids
    #[arg(long, value_enum, conflicts_with = "tasks")]
    view: Option<View>,
    #[command(flatten)]
    filter: FilterArgs,
    /// With `decide`: the outcome
    #[arg(long)]
    outcome: Option<String>,
    /// With `decide`: the comment
    #[arg(long)]
    comment: Option<String>,
    /// With `decide`: the input that the outcome asks for, JSON or @FILE
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// With `reassign`: id of the new owner
    #[arg(long, value_name = "PERSON")]
    to: Option<String>,
    /// With `reassign`: the reason
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    attempt: AttemptArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

const RESULTS: &[Column] = &[
    ("TASK", "/taskId"),
    ("STATUS", "/status"),
    ("REVISION", "/revision"),
    ("CODE", "/code"),
    ("DETAIL", "/detail"),
];
const COUNTS: &[Column] = &[
    ("done", "/done"),
    ("refused", "/refused"),
    ("more", "/more"),
];

pub(super) fn run(args: &BulkArgs, output: Output, environment: &Environment) -> Result<()> {
    let action = match args.action {
        Action::Claim => "claim",
        Action::Release => "release",
        Action::Reassign => "reassign",
        Action::Decide => "decide",
    };
    let mut body = vec![("action", Json::of(&action))];
    let mut filter = args.filter.members();
    if let Some(view) = args.view {
        filter.insert("view".to_owned(), json!(view.name()));
        body.push(("filter", Json::of(&filter)));
    } else if !filter.is_empty() {
        let message = "filters need `--view`, but the tasks are given by their ids";
        let next = "leave out the filters, or say `--view` in place of the ids";
        return Err(Failure::new(Exit::Usage, message).next(next).into());
    }
    for (name, value) in [
        ("outcome", &args.outcome),
        ("comment", &args.comment),
        ("to", &args.to),
        ("reason", &args.reason),
    ] {
        if let Some(value) = value {
            body.push((name, Json::of(value)));
        }
    }
    if let Some(input) = &args.input {
        body.push(("input", argument::json("--input", input)?));
    }
    let client = args.connection.open(environment)?;
    if args.view.is_none() {
        let ids = args.tasks.iter().map(|text| pick::task_id(&client, text));
        body.push(("taskIds", Json::of(&ids.collect::<Result<Vec<_>>>()?)));
    }
    let answer = client.attempt("/v1/tasks/bulk", &Json::object(body), &args.attempt)?;
    if output.format == super::Format::Json {
        output.record(&answer, &[])?;
    } else {
        output.list(&json!({ "data": answer["results"] }), RESULTS)?;
        output.record(&answer, COUNTS)?;
    }
    match answer["refused"].as_u64() {
        None | Some(0) => Ok(()),
        Some(refused) => {
            let were = if refused == 1 { "was" } else { "were" };
            let message = format!("{} {were} refused", counted(refused, "task"));
            Err(Failure::new(Exit::Failed, message).into())
        }
    }
}
